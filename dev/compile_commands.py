"""Writes compile_commands.json for clangd: every compiler command that make would run, read from its standard input.

    make --no-print-directory -nB V=1 binaries python unit-bin | python3 dev/compile_commands.py FILE
"""
import json
import pathlib
import re
import shlex
import sys

COMMAND = re.compile(r"^(?:gcc|clang\S*) .* -c -o (\S+) (\S+\.c)$", re.M)


def entries(text, directory):
    return [{"directory": directory, "file": m[2], "output": m[1], "arguments": shlex.split(m[0])} for m in COMMAND.finditer(text)]


def main():
    file = pathlib.Path(sys.argv[1])
    found = entries(sys.stdin.read(), str(file.resolve().parent))
    if not found:
        sys.exit("compile_commands: make showed no compiler command")
    text = json.dumps(found, indent=1) + "\n"
    if not file.exists() or file.read_text() != text:  # clangd indexes again when it changes
        file.write_text(text)


if __name__ == "__main__":
    main()
