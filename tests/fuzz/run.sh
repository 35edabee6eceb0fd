#!/bin/sh
# Runs the fuzz targets, two at a time: first every input of the target's corpus, then SECONDS of new ones.  What fails is
# left in BUILD/fuzz/failed/ as TARGET-crash-…; once understood it goes into tests/fuzz/corpus/TARGET under a name.
#   BUILD: where `make fuzz` builds; SECONDS_EACH (30); TARGETS: only these; FUZZ_TIMEOUT: seconds of one input (10)
set -u
cd "$(dirname "$0")/../.."
BUILD=${BUILD:-build-fuzz}
SECONDS_EACH=${SECONDS_EACH:-30}
FUZZ_TIMEOUT=${FUZZ_TIMEOUT:-10}
TARGETS=${TARGETS:-$(ls tests/fuzz/fuzz_*.c | sed 's,.*/fuzz_,,; s,\.c$,,')}
export BUILD SECONDS_EACH FUZZ_TIMEOUT
export ASAN_OPTIONS=abort_on_error=0:detect_leaks=1:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$BUILD/fuzz/failed"

one() {
  corpus=tests/fuzz/corpus/$1 new=$BUILD/fuzz/new/$1 log=$BUILD/fuzz/$1.log
  mkdir -p "$new" "$corpus"
  set -- "$1" -artifact_prefix="$BUILD/fuzz/failed/$1-" -timeout="$FUZZ_TIMEOUT" -rss_limit_mb=2048 \
    -malloc_limit_mb=512 -print_final_stats=1 -verbosity=1
  [ -e "tests/fuzz/$1.dict" ] && set -- "$@" -dict="tests/fuzz/$1.dict"
  name=$1
  shift
  bin=$BUILD/fuzz/fuzz_$name
  "$bin" "$@" -runs=0 "$corpus" >"$log" 2>&1 &&
    "$bin" "$@" -max_total_time="$SECONDS_EACH" -reload=0 "$new" "$corpus" >>"$log" 2>&1
  status=$?
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
  edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
  [ $status = 0 ] && verdict=ok || { verdict=FAILED; grep -av '^#\|^NEW\|REDUCE' "$log" | tail -60; }
  echo "fuzz $name: $verdict, $(ls "$corpus" | wc -l) inputs in the corpus, ${runs:-0} tried, ${edges:-0} edges"
  [ $status = 0 ]
}

if [ "${1:-}" = one ]; then
  one "$2"
  exit
fi
# shellcheck disable=SC2086
printf '%s\n' $TARGETS | xargs -P 2 -n 1 "$0" one >"$BUILD/fuzz/summary"
failed=$?
cat "$BUILD/fuzz/summary"
echo "$(grep -c ': ok,' "$BUILD/fuzz/summary") passed, $(grep -c ': FAILED,' "$BUILD/fuzz/summary") failed"
[ $failed = 0 ]
