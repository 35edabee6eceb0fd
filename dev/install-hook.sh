#!/bin/sh
# Installs the hook that formats staged C files, unless there is another one.
set -eu
cd "$(dirname "$0")/.."
hook=$(git rev-parse --git-path hooks)/pre-commit
if [ -e "$hook" ]; then
  cmp -s dev/pre-commit "$hook" || echo "There is a pre-commit hook already; dev/pre-commit is not installed."
  exit 0
fi
mkdir -p "$(dirname "$hook")"
cp dev/pre-commit "$hook"
echo "Installed $hook: it formats the C files of each commit."
