#!/bin/sh
# The unit tests and every example, through binaries built with AddressSanitizer and UBSan.
#   tests/asan.sh BUILD_DIR
set -u
cd "$(dirname "$0")/.."
build=$1
passed=0 failed=0
# CPython and MLIR keep their own memory until exit, so leaks are looked for in the programs that have neither
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
check() { # name, command...
  name=$1; shift
  if "$@" >"$build/asan.log" 2>&1; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "$name:"; tail -40 "$build/asan.log"; fi
}
for t in "$build"/test/test_*; do
  case $t in *.log | *.d) continue ;; *_py | *_mlir) leaks=0 ;; *) leaks=1 ;; esac
  ASAN_OPTIONS=detect_leaks=$leaks check "$(basename "$t")" "$t"
done
for example in explorer/examples/*.py explorer/examples/nki/*.py; do
  ASAN_OPTIONS=detect_leaks=0 check "$example" "$build/bin/nkx-worker" compile "$example" --check --quiet --json /dev/null
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
