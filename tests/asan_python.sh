#!/bin/sh
# NEFFs from Python (compiler/package/neff.c), with the extension modules of BUILD_DIR, which were built with AddressSanitizer
# and UBSan.  CPython keeps memory until its end: leaks count that our modules allocated.
#   tests/asan_python.sh BUILD_DIR
set -u
cd "$(dirname "$0")/.."
packages=$PWD/$1/python
log=$1/asan_python.log
export PYTHONMALLOC=malloc UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
NKX_PACKAGES=$packages LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=1 LSAN_OPTIONS=exitcode=0 \
  python3 -m pytest -q -n 0 -p no:cacheprovider tests/trace/test_neff.py >"$log" 2>&1
status=$?
if [ $status != 0 ] || grep -q -e '_nkxc\{0,1\}\.so' -e ' compiler/' "$log"; then cat "$log"; echo "failed, or leaks"; exit 1; fi
grep 'passed' "$log"
