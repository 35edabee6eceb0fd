#!/bin/sh
# Runs every test of `make test` and ends with one summary line.  Each suite's own output is shown; suites go on after a
# failure, so that one run tells everything.
#   BUILD: where the product was built; VENV: the Python environment; SUITES: only these (unit lit page fuzz pytest browser)
set -u
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
VENV=${VENV:-build/venv}
FUZZ_BUILD=${FUZZ_BUILD:-build-fuzz}
SUITES=${SUITES:-unit lit page fuzz pytest browser}
export BUILD VENV PATH="$PWD/$VENV/bin:/usr/lib/llvm-22/bin:$PATH"
passed=0 failed=0
failures=

count() { # suite, passed, failed
  passed=$((passed + $2)) failed=$((failed + $3))
  [ "$3" = 0 ] || failures="$failures $1"
}

unit() {
  for t in "$BUILD"/test/test_*; do
    [ -x "$t" ] && [ -f "$t" ] || continue
    case $t in *.d | *.o) continue ;; esac
    log=$BUILD/test/$(basename "$t").log
    if timeout 300 "$t" >"$log" 2>&1; then bad=0; else bad=1; cat "$log"; fi
    ok=$(grep -c '^\[       OK \]' "$log")
    n=$(grep -c '^\[  FAILED  \] [a-z]' "$log")
    [ $bad = 1 ] && [ "$n" = 0 ] && n=1
    echo "unit $(basename "$t"): $ok passed, $n failed"
    count "$(basename "$t")" "$ok" "$n"
  done
}

lit_suite() {
  log=$BUILD/test/lit.log
  if lit -s --no-progress-bar -j2 tests/lit >"$log" 2>&1; then n=0; else
    n=$(sed -n 's/^ *Failed *: *\([0-9]*\).*/\1/p' "$log"); n=${n:-1}; cat "$log"; fi
  ok=$(sed -n 's/^ *Passed *: *\([0-9]*\).*/\1/p' "$log")
  echo "lit: ${ok:-0} passed, $n failed"
  count lit "${ok:-0}" "$n"
}

page() {
  if (cd web && npm run --silent check); then ok=1 n=0; else ok=0 n=1; fi
  echo "page types: $ok passed, $n failed"
  count page "$ok" "$n"
}

py() { # name, pytest arguments...
  name=$1; shift
  log=$BUILD/test/pytest-$name.log
  python3 -m pytest -q -p no:cacheprovider --tb=short "$@" >"$log" 2>&1
  st=$?
  ok=$(sed -n 's/.*[^0-9]\([0-9][0-9]*\) passed.*/\1/p; s/^\([0-9][0-9]*\) passed.*/\1/p' "$log" | tail -1)
  n=$(sed -n 's/^.*[^0-9]\([0-9][0-9]*\) failed.*/\1/p; s/^\([0-9][0-9]*\) failed.*/\1/p' "$log" | tail -1)
  e=$(sed -n 's/.*[^0-9]\([0-9][0-9]*\) errors\{0,1\}.*/\1/p' "$log" | tail -1)
  n=$((${n:-0} + ${e:-0}))
  [ $st != 0 ] && [ "$n" = 0 ] && n=1
  [ "$n" = 0 ] && tail -3 "$log" || cat "$log"
  echo "pytest $name: ${ok:-0} passed, $n failed"
  count "pytest-$name" "${ok:-0}" "$n"
}

fuzz() { # the whole corpus, and a few seconds of new inputs per target
  log=$BUILD/test/fuzz.log
  BUILD=$FUZZ_BUILD SECONDS_EACH=6 FUZZ_TIMEOUT=20 tests/fuzz/run.sh >"$log" 2>&1
  st=$?
  ok=$(grep -c '^fuzz [a-z_]*: ok,' "$log")
  n=$(grep -c '^fuzz [a-z_]*: FAILED,' "$log")
  [ $st != 0 ] && [ "$n" = 0 ] && n=1
  [ $st = 0 ] || cat "$log"
  echo "fuzz: $ok passed, $n failed"
  count fuzz "$ok" "$n"
}

mkdir -p "$BUILD/test"
for s in $SUITES; do
  case $s in
  unit) unit ;;
  lit) lit_suite ;;
  page) page ;;
  fuzz) fuzz ;;
  pytest)
    py core -n 2 tests/trace tests/conformance tests/passes tests/kernels tests/cli
    # one server at a time: these count processes; apart, since each has a conftest that its tests import from
    py api tests/api
    py store tests/store
    py deploy tests/deploy
    py jail tests/jail
    py hostile tests/hostile
    ;;
  browser) py browser -n 2 --dist loadfile tests/browser ;;
  esac
done
[ -z "$failures" ] || echo "failing:$failures"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
