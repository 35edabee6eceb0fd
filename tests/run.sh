#!/bin/sh
# Runs every test of `make test` and ends with one summary line.  A failure does not stop the others; the
# logs of the suites that failed are shown at the end.
#   BUILD: where the product was built; VENV: the Python environment; SUITES: only these, one after another (unit lit page
#   fuzz core sample api store deploy jail hostile browser; pytest: all suites of pytest except the browser)
set -u
cd "$(dirname "$0")/.."
BUILD=${BUILD:-build}
VENV=${VENV:-build/venv}
FUZZ_BUILD=${FUZZ_BUILD:-build-fuzz}
SUITES=${SUITES:-all}
export BUILD VENV PATH="$PWD/$VENV/bin:/usr/lib/llvm-22/bin:$PATH"
began=${NKX_TESTS_BEGAN:-$(date +%s)}
export NKX_TESTS_BEGAN=$began
results=$BUILD/test/results # a line per suite: its name, passed, failed, its log

result() { # suite, passed, failed, log
  echo "$1 $2 $3 $4" >>"$results"
  echo "$1: $2 passed, $3 failed, after $(($(date +%s) - began)) s"
}

number() { # of what the summary line of pytest counts: "12 failed, 3 passed in 4.05s"; a log may have such words elsewhere
  sed -n "/ in [0-9][0-9.]*s/s/^\(.*[^0-9]\)\{0,1\}\([0-9][0-9]*\) $1.*/\2/p" "$2" | tail -1
}

unit() {
  # programs that run compiled code take longest, so they start first
  programs=$(for t in "$BUILD"/test/test_*_mlir "$BUILD"/test/test_*; do case $t in *.d | *.o | *.log) ;; *) [ ! -x "$t" ] || echo "$t" ;; esac; done |
    awk '!seen[$0]++')
  # shellcheck disable=SC2016
  echo "$programs" | xargs -n 1 -P 2 sh -c 'timeout 300 "$0" >"$0.log" 2>&1 || echo "exit status $?" >>"$0.log"'
  log=$BUILD/test/unit.log
  passed=0 failed=0
  : >"$log"
  for t in $programs; do
    passed=$((passed + $(grep -c '^\[       OK \]' "$t.log")))
    bad=$(grep -c '^\[  FAILED  \] [a-z]' "$t.log")
    if grep -q '^exit status' "$t.log"; then
      { echo "== $t"; cat "$t.log"; } >>"$log"
      [ "$bad" != 0 ] || bad=1
    fi
    failed=$((failed + bad))
  done
  result unit "$passed" "$failed" "$log"
}

lit_suite() {
  log=$BUILD/test/lit.log
  n=0
  lit -s --no-progress-bar -j2 tests/lit >"$log" 2>&1 || n=$(sed -n 's/^ *Failed *: *\([0-9]*\).*/\1/p' "$log")
  ok=$(sed -n 's/^ *Passed *: *\([0-9]*\).*/\1/p' "$log")
  result lit "${ok:-0}" "${n:-1}" "$log"
}

page() {
  log=$BUILD/test/page.log
  if (cd web && npm run --silent check) >"$log" 2>&1; then result page 1 0 "$log"; else result page 0 1 "$log"; fi
}

py() { # name, pytest arguments...
  name=$1; shift
  log=$BUILD/test/pytest-$name.log
  python3 -m pytest -q --tb=short --durations=40 -o cache_dir="$PWD/$BUILD/test/cache-$name" "$@" >"$log" 2>&1
  st=$?
  n=$(number failed "$log") e=$(number 'errors\{0,1\}' "$log") ok=$(number passed "$log")
  n=$((${n:-0} + ${e:-0}))
  [ $st = 0 ] || [ "$n" != 0 ] || n=1
  result "$name" "${ok:-0}" "$n" "$log"
}

# What failed beside the other suites is run once more, with the machine to itself: two processors are shared by servers,
# browsers and compilers, and a deadline of a test can pass.  What fails again has failed; what passes is named in the summary.
again() { # suite
  grep -q "^$1 [0-9]* [1-9]" "$results" || return 0
  read -r _ ok bad log <<EOF
$(grep "^$1 " "$results")
EOF
  # all of the long tests, because which ones are in the sample is counted among those that are collected
  # shellcheck disable=SC2046
  env -u NKX_SAMPLE python3 -m pytest -q --tb=short -o cache_dir="$PWD/$BUILD/test/cache-$1" --last-failed --last-failed-no-failures none -rp $(paths "$1") >"$log.again" 2>&1
  now=$(number passed "$log.again")
  n=$(number failed "$log.again") e=$(number 'errors\{0,1\}' "$log.again")
  now=${now:-0} n=$((${n:-0} + ${e:-0}))
  [ "$now" != 0 ] && [ $((now + n)) = "$bad" ] || return 0
  echo "$1: $now of $bad passed when they ran again, alone:"
  sed -n 's/^PASSED /  /p' "$log.again"
  cat "$log.again" >>"$log"
  sed -i "s#^$1 .*#$1 $((ok + now)) $n $log#" "$results"
}

fuzz() { # the whole corpus, and a few seconds of new inputs per target
  log=$BUILD/test/fuzz.log
  BUILD=$FUZZ_BUILD SECONDS_EACH=4 FUZZ_TIMEOUT=20 tests/fuzz/run.sh >"$log" 2>&1
  st=$?
  ok=$(grep -c '^fuzz [a-z_]*: ok,' "$log")
  n=$(grep -c '^fuzz [a-z_]*: FAILED,' "$log")
  [ $st = 0 ] || [ "$n" != 0 ] || n=1
  result fuzz "$ok" "$n" "$log"
}

paths() { # of a suite's tests
  case $1 in
  core) echo tests/trace tests/conformance tests/passes tests/sim tests/nki_kernels tests/kernels tests/cli tests/docs tests/measured ;;
  *) echo "tests/$1" ;;
  esac
}

run() { # suites in order
  for s in "$@"; do
    case $s in
    unit) unit ;;
    lit) lit_suite ;;
    page) page ;;
    fuzz) fuzz ;;
    # shellcheck disable=SC2046
    core) py core -n 2 --dist loadgroup $(paths core) ;;
    # a part of core: the front end, the terminal, the maps, and three examples at every stage
    sample) NKX_SAMPLE=1 py sample -n 2 --dist loadgroup tests/trace tests/cli/test_compile.py tests/conformance/test_maps.py tests/conformance/test_examples.py \
      -k "(not test_examples or 01_ or 04_ or 08_) and not without_time" ;;
    api | store | deploy | jail | hostile) py "$s" "tests/$s" ;;
    browser) py browser -n 2 --dist loadfile tests/browser ;;
    *) echo "there is no suite $s" ;;
    esac
  done
}

if [ "${1:-}" = --lane ]; then
  shift
  run "$@"
  exit
fi
mkdir -p "$BUILD/test"
: >"$results"
servers="api store deploy jail hostile"
computing="unit lit page fuzz core"
case $SUITES in
all) # tests of the server and of the page mostly wait, so those that compute run at the same time, at a lower priority
  SUITES="$servers browser $computing"
  if [ "${NKX_ROUND:-}" != all ]; then
    export NKX_SAMPLE=1 # of the long tests: tests/support/cases.py
    NKX_ROUND=${NKX_ROUND:-$(git rev-list --count HEAD 2>/dev/null || echo 0)}
    export NKX_ROUND
    echo "of the long tests: the sample of NKX_ROUND=$NKX_ROUND"
  fi
  "$0" --lane api browser &
  "$0" --lane store deploy jail hostile &
  # shellcheck disable=SC2086
  nice -n 10 "$0" --lane $computing &
  wait
  for s in $servers browser core; do
    again "$s"
  done
  ;;
*)
  SUITES=$(echo "$SUITES" | sed "s/pytest/core $servers/")
  # shellcheck disable=SC2086
  run $SUITES
  ;;
esac
for s in $SUITES; do
  grep -q "^$s " "$results" || result "$s" 0 1 /dev/null # it did not finish
done

passed=0 failed=0 failing=
while read -r name p f log; do
  passed=$((passed + p)) failed=$((failed + f))
  [ "$f" = 0 ] || { failing="$failing $name"; echo "==== $name"; cat "$log"; }
done <"$results"
[ -z "$failing" ] || echo "failing:$failing"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
