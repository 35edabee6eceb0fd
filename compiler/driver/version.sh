#!/bin/sh
# The version of the pipeline: prints the first 12 hex digits of a SHA-256 over everything that decides what a stage's
# output is: the compiler's sources, the Python shims, LLVM's version and the pinned Python packages.
#   compiler/driver/version.sh [LLVM-DIRECTORY]
# Results are kept under this version, so a change to any of these files makes them be compiled again.  It depends on
# names and contents only, not on the machine, the time or the order of a directory.
set -eu
cd "$(dirname "$0")/../.."
LC_ALL=C
export LC_ALL
llvm=${1:-/usr/lib/llvm-22}/include/llvm/Config/llvm-config.h
[ -r "$llvm" ] || { echo "version.sh: $llvm is missing" >&2; exit 1; }
{
  # left out: the terminal's commands, what speaks with assistants and editors, where the programs lie, and the wheel
  find compiler -type f \( -name '*.[ch]' -o -name '*.def' -o -name '*.irdl' -o -name '*.proto' -o -name '*.py' \) \
    ! -path 'compiler/package/*' ! -path 'compiler/driver/main.[ch]' ! -path 'compiler/driver/*_main.c' \
    ! -path 'compiler/rpc/*' ! -path 'compiler/mcp/*' ! -path 'compiler/aside/*' ! -path 'compiler/lsp/*' \
    ! -path 'compiler/driver/opt.h' ! -path 'compiler/driver/paths.[ch]' |
    sort | tr '\n' '\0' | xargs -0 sha256sum
  grep 'define LLVM_VERSION_STRING' "$llvm"
  grep -Eo '^(numpy|ml_dtypes)==[^ ]*' docker/requirements.txt
} | sha256sum | cut -c 1-12
