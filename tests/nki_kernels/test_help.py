"""What GET /api/v1/nki and `nkx doc` list: it is what is compiled, and what these tests exercise."""
import inspect
import re

import pytest

import nkipy  # noqa: F401  (it adds nki where the vendor's package is not installed)
import nki.isa as nisa
import nki.language as nl
from support import compiler
from support.paths import ROOT
from support.server import Server

TESTS = "".join(p.read_text() for p in [*(ROOT / "tests/nki_kernels").glob("*.py"), ROOT / "tests/support/nki_kernels.py", ROOT / "tests/support/nki_more_calls.py",
                                       *(ROOT / "explorer/examples/nki").glob("*.py")] if p.name != "test_help.py")


@pytest.fixture(scope="module")
def calls():
    with Server() as server:
        return {c["name"]: c for c in server.get("/api/v1/nki").json["calls"]}


def of_kind(calls, *kinds):
    return {name: c for name, c in calls.items() if c["kind"] in kinds}


def test_every_call_of_the_table_is_listed_with_its_parameters(calls):
    table = re.findall(r'^NKI_CALL\(\w+, "(\w+)"', (ROOT / "compiler/nki/calls.def").read_text(), re.M)
    listed = of_kind(calls, "instruction")
    assert list(listed) == [f"nisa.{name}" for name in table]
    for c in listed.values():
        assert [p.split("=")[0] for p in c["parameters"]] == [*(o["name"] for o in c["operands"]), "name"]
        assert c["engines"] and c["what"] and c["example"].startswith(c["name"] + "(")


def test_every_instruction_says_what_it_becomes_and_costs(calls):
    """A call without a line in compiler/nki/instructions.def fails here."""
    for name, c in of_kind(calls, "instruction").items():
        if name == "nisa.core_barrier":  # on one core there is none to wait for
            assert not c["becomes"]
            continue
        assert c["becomes"] and all(b.startswith("nisa.") for b in c["becomes"]), name
        assert c["costs"] and {cost["engine"] for cost in c["costs"]} & set(c["engines"]), name


def test_every_listed_call_is_exercised_by_these_tests(calls):
    missing = [name for name in of_kind(calls, "instruction", "composed") if not re.search(rf"\b{re.escape(name)}\b", TESTS)]
    assert not missing, "no test of tests/nki_kernels uses these"


def test_every_operator_is_exercised_by_these_tests(calls):
    for name in of_kind(calls, "operator", "bits", "function"):
        assert re.search(rf"\b{name.split('.')[1]}\b", TESTS), name


def resolved(name):
    module, *path = name.split(".")
    value = {"nl": nl, "nisa": nisa}[module]
    for part in path:
        value = getattr(value, part)
    return value


def test_every_listed_name_is_a_name_of_the_package(calls):
    from nkx.nki_names import Unavailable
    for name in calls:
        if name != "nl.tile_size.sbuf_fmax_bytes":  # known while a kernel is compiled
            assert not isinstance(resolved(name), Unavailable), name


def test_the_functions_of_nki_language_are_listed_with_their_parameters(calls):
    """A public function of stubs/nki/language.py without a line in compiler/nki/language.def fails here."""
    own = {name: f for name, f in vars(nl).items()
           if not name.startswith("_") and inspect.isfunction(f) and f.__module__ in ("nki.language", "nkx")}
    functions = of_kind(calls, "composed", "operator", "bits", "function")
    assert {f"nl.{name}" for name in own} - {"nl.refuse"} == {n for n in functions if n.startswith("nl.")}
    for name, f in own.items():
        parameters = inspect.signature(f).parameters
        if any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
            continue  # max and min, which are operators and reductions
        assert [p.split("=")[0] for p in functions[f"nl.{name}"]["parameters"]] == list(parameters), name


def test_examples_of_functions_compile(calls):
    """The example lines of nki.language, in one kernel, on the machine that has all operators."""
    head = """import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def kernel(a: nl.tensor[nl.float32, (128, 512)]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x, i = nl.load(a), 0
    y, w, mask = nl.load(a), nl.load(a), nl.load(a)
    total = nl.sum(x, axis=1, keepdims=True)
    t = nl.copy(x)
    whole = nl.full((128, 512), 1, nl.int32)
    x_all, y_all = x, y
"""
    tail = "    nl.store(out, x)\n    return out\n"
    small = {"nl.transpose", "nl.matmul"}  # of at most 128 columns
    bits = {"nl.bitwise_and", "nl.bitwise_or", "nl.bitwise_xor", "nl.left_shift", "nl.right_shift", "nl.invert"}  # of integers
    body = ""
    for name, c in of_kind(calls, "composed", "operator", "bits", "function").items():
        line = c["example"] + (" pass" if c["example"].endswith(":") else "")
        before = "x, y = x[:, 0:128], y[:, 0:128]" if name in small else "x = y = whole" if name in bits else "pass"
        body += f"    {before}\n    {line}\n    x, y, t = x_all, y_all, x_all\n"
    source = head + body + tail
    result = compiler.compile(source, "--target", "trn3")
    assert result["status"] == "ok", [(d["message"], source.splitlines()[d["range"]["line"] - 1]) for d in result["diagnostics"]]
