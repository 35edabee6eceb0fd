"""The Python of NKI kernels: what is accepted is traced and means what Python means; what is refused has its codes and exact
ranges (support/nki_subset_accepted.py, nki_subset_refused.py).  Many kernels are compiled at once, because each reports for itself."""
import functools
import textwrap

import pytest

from support import compiler
from support.nki_subset_accepted import ACCEPTED
from support.nki_subset_refused import DEVICE, REFUSED

HEAD = """import abc, contextlib, dataclasses, enum, functools, math, threading, typing
import numpy as np
import neuronxcc.nki.language as old
import nki
import nki.isa as nisa
import nki.language as nl

P = 128
"""
KERNEL = """
@nki.jit
def kernel_{number}(a: nl.tensor[128, 512], b: nl.tensor[64, 512]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray((128, 512), nl.float32)
    nisa.dma_copy(x, a)
    n = 4
{body}
    nl.store(out, x)
    return out
"""
BATCH = 30
CASES = [(what, text, ()) for what, text in ACCEPTED] + [(what, text, codes) for what, text, *codes in (*REFUSED, *DEVICE)]


def source_of(number, text):
    """The definitions and the kernel of a case, still with « and »."""
    text = text.replace("$", str(number))
    if "@@\n" in text:
        definitions, body = text.split("@@\n")
    else:
        definitions, body = (text, None) if text.startswith("@nki.jit") else ("", text)
    kernel = KERNEL.format(number=number, body=textwrap.indent(body, "    ")) if body is not None else "\n"
    return definitions + kernel


def without_marks(source, first_line):
    """(source, [(line, column, end line, end column), …]) of the ranges that are marked."""
    out, ranges, opened = [], [], None
    line, col = first_line, 1
    for c in source:
        if c == "«":
            opened = line, col
        elif c == "»":
            ranges.append((*opened, line, col))
        else:
            out.append(c)
            line, col = (line + 1, 1) if c == "\n" else (line, col + 1)
    return "".join(out), ranges


@functools.cache
def batch(first):
    """{case: (its diagnostics, its stages, the expected ranges)} of BATCH cases from `first` on."""
    text, expected, lines = HEAD, {}, {}
    for number in range(first, min(first + BATCH, len(CASES))):
        begin = text.count("\n") + 1
        source, expected[number] = without_marks(source_of(number, CASES[number][1]), begin)
        text += source
        lines[number] = range(begin, text.count("\n") + 1)
    result = compiler.compile(text, "--stop-after", "nki-trace")
    found = {number: ([], []) for number in expected}
    for d in result["diagnostics"]:
        if d["code"] != "kernel-output":
            found[next(n for n in lines if d["range"]["line"] in lines[n])][0].append(d)
    for k in result["kernels"]:
        number = int("".join(c for c in k["name"] if c.isdigit()) or -1)
        if number in found:
            found[number][1].extend(k["stages"])
    return {n: (*found[n], expected[n]) for n in expected}


def place(d):
    r = d["range"]
    return r["line"], r["col"], r["end_line"], r["end_col"]


def code(d):
    return d["code"] + ("!" if d["severity"] == "warning" else "")


def of(number):
    """The case's diagnostics without the warnings that it is not about."""
    diagnostics, stages, ranges = batch(number - number % BATCH)[number]
    wanted = CASES[number][2]
    shown = [d for d in diagnostics if d["code"] != "nki-deprecated" or "nki-deprecated!" in wanted]
    if number >= len(ACCEPTED) + len(REFUSED):  # loops on the device: the trace may not know them yet
        shown = [d for d in shown if d["code"] != "nki-unsupported"]
    return sorted(shown, key=place), stages, ranges


@pytest.mark.parametrize("number", range(len(ACCEPTED)), ids=[c[0] for c in ACCEPTED])
def test_what_is_accepted_is_traced_and_means_what_its_asserts_say(number):
    diagnostics, stages, _ = of(number)
    assert not diagnostics, diagnostics
    assert [s["name"] for s in stages if not s.get("partial")][-2:] == ["nki-ast", "nki-trace"]


@pytest.mark.parametrize("number", range(len(ACCEPTED), len(CASES)), ids=[c[0] for c in CASES[len(ACCEPTED):]])
def test_what_is_refused_has_its_codes_and_exact_ranges(number):
    what, text, codes = CASES[number]
    diagnostics, stages, ranges = of(number)
    assert [code(d) for d in diagnostics] == list(codes), (text, diagnostics)
    assert [place(d) for d in diagnostics] == ranges, (text, [d["message"] for d in diagnostics])
    assert stages[0]["name"] == "nki-ast" and not stages[0].get("partial"), "the analysis remains"
    for d in diagnostics:
        assert d["severity"] == "warning" or d["message"], d


def test_there_are_as_many_cases_as_the_reference_asks_for():
    assert len(ACCEPTED) >= 150 and len(REFUSED) >= 120 and len(CASES) >= 250


CATEGORIES = {  # of the public tests of front ends (KLR), and a case for each thing that they try
    "test_basic": ["constants", "names of the module", "subscripts of a tuple", "and, or and not of Python values", "comparisons", "targets that are tuples",
                   "if on a Python value", "break", "continue", "min and max", "a function that is not called may name anything",
                   "the branch that is not taken may name anything", "a name that does not exist"],
    "test_class": ["a dataclass", "a plain class", "__post_init__", "a change of a field", "fields of the class", "a method", "operators of a class", "reflected operators",
                   "comparisons of a class", "unary operators of a class", "__call__", "__getitem__", "a base from elsewhere", "a decorator of a class",
                   "an attribute that the class does not have"],
    "test_list": ["a list", "append", "clear and copy", "count and index", "extend", "pop", "remove and reverse", "assignment to an element", "an element beyond a list"],
    "test_dict": ["a dict with strings as keys", "get", "items, keys, values", "pop and setdefault", "assignment to a key", "a key that a dict does not have"],
    "test_enum": ["an Enum", "equality of members", "a member decides a branch", "a member that an Enum does not have"],
    "test_fstr": ["an f-string", "an f-string with an expression", "the conversion r", "the conversion s", "the conversion a", "a format"],
    "test_memory": ["memories", "views", "start partitions", "tile sizes", "a start partition", "too many partitions", "partitions permuted"],
    "test_dyn_ap": ["an access pattern", "an access pattern of an access pattern"],  # the second one fails there; the newest package allows it
}


@pytest.mark.parametrize("category", CATEGORIES)
def test_each_category_of_the_public_tests_has_its_cases(category):
    assert set(CATEGORIES[category]) <= {c[0] for c in CASES}


# codes of mistakes that only all rounds, or the whole program, show; the others of the catalogue have cases above, and in test_errors.py
LATE = {"nki-affine-dependence": """@old_nki.jit
def k(a: old.tensor[128, 512]):
    out = old.ndarray(a.shape, dtype=a.dtype, buffer=old.shared_hbm)
    for i in old.affine_range(2):
        «old.store(out[0:128, :], old.load(a))»
    return out
""", "nki-memory-full": """@nki.jit
def k(a: nl.tensor[128, 512]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    u = nl.ndarray((128, 40000), nl.float32)
    v = «nl.ndarray((128, 40000), nl.float32)»
    nisa.memset(u, 1.0)
    nisa.memset(v, 1.0)
    nisa.tensor_tensor(u, u, v, nl.add)
    nl.store(out, u[:, 0:512])
    return out
"""}


@pytest.mark.parametrize("late", LATE)
def test_a_mistake_that_shows_late_has_its_exact_range(late):
    head = HEAD.replace("import nki\n", "import neuronxcc.nki as old_nki\nimport nki\n")
    source, ranges = without_marks(LATE[late], head.count("\n") + 1)
    found = [d for d in compiler.compile(head + source)["diagnostics"] if d["severity"] == "error"]
    assert [(d["code"], place(d)) for d in found] == [(late, ranges[0])]


def test_an_accepted_kernel_of_each_kind_reaches_the_last_stage():
    names = ["a plain class", "a dataclass", "an Enum", "a list of tensors", "a loop over pairs", "a function inside", "lambda",
             "a comprehension over tensors", "a helper returns tensors", "a name with =", "where and reductions"]
    text = HEAD + "".join(source_of(n, c[1]) for n, c in enumerate(ACCEPTED) if c[0] in names)
    result = compiler.compile(text)
    assert result["status"] == "ok" and len(result["kernels"]) == len(names), result["diagnostics"]
    assert all(k["stages"][-1]["name"] == "engine-programs" for k in result["kernels"])
