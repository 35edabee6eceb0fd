"""The place of a function's header, when it is parsed alone, is the place in the whole file's syntax tree."""
import ast
import glob
import os
import types

import pytest

from nkx import places
from support.paths import ROOT

FILES = sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), "[a-j]*.py"))) + sorted(map(str, ROOT.glob("tests/**/*.py")))


def functions(code):
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            if not inner.co_name.startswith("<"):
                yield inner
            yield from functions(inner)


def header_alone(lines, code):
    """As compiler/trace/ranges.c cuts it out."""
    body = next((line for _, _, line in code.co_lines() if line and line > code.co_firstlineno), 0)
    if not 0 < body <= len(lines):
        return None
    text, end = "".join(line + "\n" for line in lines[code.co_firstlineno - 1:body - 1]), lines[body - 1]
    return places.header(text, end[:len(end) - len(end.lstrip(" \t\f"))], code.co_firstlineno, code)


def answers(source, code):
    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    return [source.header(code), *(source.param(code, name) for name in names)]


def test_headers_of_all_functions_of_many_files():
    alone = 0
    for path in FILES:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        whole, lines = places.Source(ast.parse(text)), text.split("\n")
        for code in functions(compile(text, path, "exec")):
            found = header_alone(lines, code)
            if found is not None and whole.header(code) is not None:  # two functions may begin on one line
                alone += 1
                assert answers(found, code) == answers(whole, code), (path, code.co_name)
    assert alone > 3000


@pytest.mark.parametrize("text, is_alone", [
    ("def f(a, b=1):\n    return a\n", True),
    ("@d(\n  1)\nasync def f(a):\n    return a\n", True),
    ("class C:\n    def f(self, a):\n        'doc'\n        return a\n", True),
    ("def f(a, b=(1,\n  2)):\n    # a comment\n    return (\n        a)\n", False),  # the statement begins before its first instruction
    ("def f(a): return a\n", False),
    ("f = lambda a: (\n    a)\n", False),
    ("@d('''\ndef f(x):\n''')\ndef f(a):\n    return a\n", False),
])
def test_headers_that_can_be_parsed_alone(text, is_alone):
    module = compile(text, "k.py", "exec")
    code = (list(functions(module)) or [c for c in module.co_consts if isinstance(c, types.CodeType)])[-1]
    found, whole = header_alone(text.split("\n"), code), places.source(text)
    assert (found is not None) == is_alone
    if found is not None:
        assert answers(found, code) == answers(whole, code) and found.header(code)
