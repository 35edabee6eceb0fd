#!/bin/sh
# Runs every test of `make test` and ends with one summary line.  Each suite's own output is shown; suites go on after a
# failure, so that one run tells everything.
#   BUILD: where the product was built; VENV: the Python environment; SUITES: only these (unit lit page fuzz core
#   api store deploy jail hostile browser; pytest: all of them that are pytest's but the browser)
set -u
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
VENV=${VENV:-build/venv}
FUZZ_BUILD=${FUZZ_BUILD:-build-fuzz}
SUITES=${SUITES:-all}
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
  BUILD=$FUZZ_BUILD SECONDS_EACH=4 FUZZ_TIMEOUT=20 tests/fuzz/run.sh >"$log" 2>&1
  st=$?
  ok=$(grep -c '^fuzz [a-z_]*: ok,' "$log")
  n=$(grep -c '^fuzz [a-z_]*: FAILED,' "$log")
  [ $st != 0 ] && [ "$n" = 0 ] && n=1
  [ $st = 0 ] || cat "$log"
  echo "fuzz: $ok passed, $n failed"
  count fuzz "$ok" "$n"
}

run() { # suites in order
  for s in "$@"; do
    case $s in
    unit) unit ;;
    lit) lit_suite ;;
    page) page ;;
    fuzz) fuzz ;;
    core) py core -n 2 tests/trace tests/conformance tests/passes tests/kernels tests/cli ;;
    # each in a process of its own, since each has a conftest that its tests import from
    api | store | deploy | jail | hostile) py "$s" "tests/$s" ;;
    browser) py browser ${WORKERS--n 2 --dist loadfile} tests/browser ;;
    esac
  done
}

# A lane's counts and failures, for the summary.
report() {
  printf '%s %s %s\n' "$passed" "$failed" "$failures" >"$BUILD/test/lane-$1"
}

mkdir -p "$BUILD/test"
servers="api store deploy jail hostile"
case $SUITES in
all) # the tests of the server wait more than they compute: beside them there is room for a browser
  rm -f "$BUILD/test/lane-browser"
  (WORKERS=; run browser; report browser) >"$BUILD/test/browser.out" 2>&1 &
  run unit lit page fuzz $servers
  wait
  cat "$BUILD/test/browser.out"
  read -r p f what <"$BUILD/test/lane-browser" || p=0 f=1 what=pytest-browser
  passed=$((passed + p)) failed=$((failed + f)) failures="$failures${what:+ $what}"
  run core
  ;;
*) run $(echo "$SUITES" | sed "s/pytest/core $servers/") ;;
esac
[ -z "$failures" ] || echo "failing:$failures"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
