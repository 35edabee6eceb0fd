#!/bin/sh
# Installs what the project needs and is missing: Debian packages (as root), a Python venv, npm packages.
#   docker/setup.sh build|test
# Does nothing, in a few milliseconds, once everything is there: each step leaves a stamp named after the content
# of its list.
set -eu
cd "$(dirname "$0")/.."
what=${1:-build}
venv=build/venv
mkdir -p build/stamps

stamp() { # kind, files... -> path of the stamp for their present content
  kind=$1; shift
  echo "build/stamps/$kind-$(cat "$@" | cksum | tr ' ' '-')"
}

apt_install() { # list file
  s=$(stamp "apt-$(basename "$1")" "$1")
  [ -e "$s" ] && return
  missing=
  for p in $(grep -v '^#' "$1"); do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q '^install ok installed$' || missing="$missing $p"
  done
  if [ -n "$missing" ]; then
    if [ "$(id -u)" != 0 ]; then
      echo "These Debian packages are missing; install them as root:$missing" >&2
      exit 1
    fi
    apt-get update -q
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
  fi
  touch "$s"
}

pip_install() { # requirements file: all that is needed, with hashes; flags
  s=$(stamp "pip-$(basename "$1")" "$1")
  [ -e "$s" ] && [ -x $venv/bin/python3 ] && return
  # Debian's own interpreter: the one that the C code is linked with
  [ -x $venv/bin/python3 ] || /usr/bin/python3 -m venv $venv
  list=$1; shift
  $venv/bin/python3 -m pip install -q --disable-pip-version-check --no-deps --require-hashes "$@" -r "$list"
  touch "$s"
}

npm_install() {
  s=$(stamp npm web/package.json web/package-lock.json)
  [ -e "$s" ] && [ -d web/node_modules ] && return
  (cd web && PATH="$PWD/../$venv/bin:$PATH" npm ci --no-audit --no-fund --loglevel=error)
  touch "$s"
}

cargo_build() { # a program that tests/api/test_ce_clients.py runs
  from=tests/api/clients/godbolt
  s=$(stamp cargo $from/Cargo.toml $from/Cargo.lock $from/src/main.rs)
  [ -e "$s" ] && [ -x build/clients/debug/ce-godbolt ] && return
  cargo build -q --locked --manifest-path $from/Cargo.toml --target-dir build/clients
  touch "$s"
}

apt_install docker/packages.apt
pip_install docker/requirements.txt
[ -e web/package-lock.json ] && npm_install
if [ "$what" = test ]; then
  apt_install docker/packages-test.apt
  pip_install docker/requirements-test.txt --no-compile
  cargo_build
fi
