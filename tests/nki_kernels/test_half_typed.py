"""A file of NKI kernels with a syntax error: the error has its place, and what stands without the broken statement is shown."""
import pytest

from support import compiler
from support.nki_kernels import HEAD

STAGES = ["nki-ast", "nki-trace", "nki-canonicalize", "nki-reroll", "nki-to-nisa", "allocate-memory", "engine-programs"]
FIRST = """
@nki.jit
def first(a: nl.tensor[128, 512]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    nisa.tensor_copy(x, x[:, 0:100])
    {line}
    nl.store(out, x)
    return out
"""
SECOND = """
@nki.jit
def second(a: nl.tensor[128, 512]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(a))
    return out
"""
AT = (HEAD + FIRST).split("\n").index("    {line}") + 1
BROKEN = ["nisa.tensor_scalar(x, x, nl.add", "y = nl.exp(x))", "for i in range(3)", "for i in range(3):", "x = = x", "if x", "y = x[:, 0:", "with nl.no_reorder(",
          "y = 'abc", "nl.store(out x)", "def inner(:", "    nisa.memset(x, 0.0)", "y = f'{x y}'"]


def errors(result):
    return [(d["code"], d["range"]["line"]) for d in result["diagnostics"] if d["severity"] == "error"]


def stages(result):
    return {k["name"]: [s["name"] for s in k["stages"]] for k in result["kernels"]}


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_statement_leaves_what_is_before_it_and_the_other_kernels(line):
    result = compiler.compile(HEAD + FIRST.replace("{line}", line) + SECOND)
    assert result["status"] == "error"
    (syntax, at), *others = errors(result)
    assert syntax == "python-syntax" and at in (AT, AT + 1)
    assert others == [("nki-shape-mismatch", AT - 1)], "what was reached is said, and nothing else"
    assert stages(result) == {"first": STAGES[:2], "second": STAGES}
    analysis, trace = result["kernels"][0]["stages"]
    assert "x = nl.load(a)" in analysis["text"] and "nl.store" not in analysis["text"]
    assert trace["partial"] and "x = nl.load(a)" in trace["text"]


@pytest.mark.parametrize("end", ["\n@nki.jit", "\n@nki.jit\ndef third(a: nl.tensor[128, 512]):", "\n@nki.jit\ndef third(a: nl.tensor[128, 512", "\nx = (1,", "\nimport",
                                 "\ntry:\n    x = 1\n", "\ndef third():\n    return 'abc"])
def test_what_is_typed_after_a_kernel_does_not_hide_it(end):
    result = compiler.compile(HEAD + SECOND + end)
    assert [code for code, _ in errors(result)] == ["python-syntax"] and stages(result)["second"][:2] == STAGES[:2]


def test_two_broken_kernels_leave_the_third():
    other = FIRST.replace("first", "third").replace("{line}", "y = )")
    result = compiler.compile(HEAD + FIRST.replace("{line}", "x = = x") + other + SECOND)
    assert errors(result)[0][0] == "python-syntax"  # the one that Python finds first
    assert stages(result) == {"first": STAGES[:2], "third": STAGES[:2], "second": STAGES}


def test_a_kernel_that_uses_a_broken_function_is_not_blamed_for_it():
    helper = "\ndef scaled(x):\n    return x *\n"
    caller = SECOND.replace("nl.load(a)", "nl.multiply(scaled(nl.load(a)), 2.0)")
    result = compiler.compile(HEAD + helper + caller)
    assert [code for code, _ in errors(result)] == ["python-syntax"]
    assert stages(result) == {"second": STAGES[:2]}


def test_nothing_of_a_file_remains_that_has_no_whole_kernel():
    result = compiler.compile(HEAD + "\n@nki.jit\ndef k(a: nl.tensor[4,\n")
    assert [code for code, _ in errors(result)] == ["python-syntax"] and not result["kernels"]


def test_a_file_without_nki_is_refused_as_before():
    result = compiler.compile("import numpy as np\ndef f(x):\n    return x +\n")
    assert [code for code, _ in errors(result)] == ["python-syntax"] and not result["kernels"]
