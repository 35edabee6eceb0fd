"""What GET /api/v1/nki and `nkx doc` list: it is what is compiled, and what these tests exercise."""
import inspect
import re

import pytest

import nkipy  # noqa: F401  (it adds nki where the vendor's package is not installed)
import _nkx
import neuronxcc.nki.isa as nisa1
import neuronxcc.nki.language as nl1
import nki.isa as nisa
import nki.language as nl
from support import compiler
from support.paths import ROOT
from support.server import Server

HELPERS = {"refuse", "reduced", "broadcast_shapes"}

TESTS = "".join(p.read_text() for p in [*(ROOT / "tests/nki_kernels").glob("*.py"), *(ROOT / "tests/support").glob("*nki*.py"),
                                       ROOT / "tests/support/random_views.py", *(ROOT / "explorer/examples/nki").glob("*.py")]
                if p.name != "test_help.py")


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


def resolved(name, modules=({"nl": nl, "nisa": nisa, "tensor": _nkx.NkiTensor})):
    module, *path = name.split(".")
    value = modules[module]
    for part in path:
        value = getattr(value, part)
    return value


def test_every_listed_name_is_a_name_of_the_package(calls):
    from nkx.nki_names import Unavailable
    for name, c in calls.items():
        if c["kind"] == "refused":
            continue
        if name.startswith("nl.tile_size.sbuf_fmax"):  # known while a kernel is compiled
            continue
        assert c["generations"] and set(c["generations"]) <= {"nki", "neuronxcc.nki"}
        for generation, modules in (("nki", {"nl": nl, "nisa": nisa, "tensor": _nkx.NkiTensor}), ("neuronxcc.nki", {"nl": nl1, "nisa": nisa1})):
            if generation in c["generations"]:
                assert not isinstance(resolved(name, modules), Unavailable), (name, generation)


def test_the_calls_of_beta_1_are_listed_with_their_parameters(calls):
    """A call of stubs/neuronxcc/nki without a line in compiler/nki/beta1.def fails here."""
    from nkx.nki_names import Unavailable
    for short, module in (("nl", nl1), ("nisa", nisa1)):
        for name, f in vars(module).items():
            full = f"{short}.{name}"
            if name.startswith("_") or not inspect.isfunction(f) or isinstance(f, Unavailable) or name in HELPERS:
                continue
            assert full in calls and "neuronxcc.nki" in calls[full]["generations"], full
            if calls[full]["kind"] == "name":
                continue
            listed = [p.split("=")[0] for p in calls[full]["beta1"] if p != "*"]
            parameters = inspect.signature(f).parameters.values()
            own = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
            assert [p for p in listed if p in own] == own, full
            assert listed == own or any(p.kind is p.VAR_POSITIONAL for p in parameters), full


def test_the_functions_of_nki_language_are_listed_with_their_parameters(calls):
    """A public function of stubs/nki/language.py without a line in compiler/nki/language.def fails here."""
    own = {name: f for name, f in vars(nl).items()
           if not name.startswith("_") and inspect.isfunction(f) and f.__module__ in ("nki.language", "nkx", "nkx.nki_grid")}
    functions = {n: c for n, c in of_kind(calls, "composed", "operator", "bits", "function").items() if "nki" in c["generations"]}
    assert {f"nl.{name}" for name in own} - {"nl.refuse"} == {n for n in functions if n.startswith("nl.")}
    for name, f in own.items():
        parameters = list(inspect.signature(f).parameters)
        of_reduction = ["keepdims", "axis"] if name in ("max", "min") else []  # these are listed as operators
        assert [p.split("=")[0] for p in functions[f"nl.{name}"]["parameters"]] + of_reduction == parameters, name


USES = {
    "nl.all_reduce": [None, "nl.all_reduce(t, np.add, (0,))"], "nisa.tensor_copy_dynamic_src": [None, "nisa.tensor_copy_dynamic_src(t)"],
    "nisa.tensor_copy_dynamic_dst": [None, "nisa.tensor_copy_dynamic_dst(dst=t, src=t)"],
    "nisa.builtin_custom_op": [None, "nisa.builtin_custom_op('f', [t], [t])"], "nki.collectives": ["nki.collectives.all_reduce([a], [a])", None],
    "nki.compiler": ["nki.compiler.sbuf.alloc(1)", None]}


def test_what_is_not_compiled_is_listed_and_refused_with_the_same_words(calls):
    listed = of_kind(calls, "refused")
    assert set(listed) == set(USES)
    for name, c in listed.items():
        for generation, package, use in zip(("nki", "neuronxcc.nki"), ("nki", "neuronxcc.nki"), USES[name]):
            assert (use is None) == (generation not in c["generations"]), name
            if use is None:
                continue
            source = (f"import numpy as np\nimport {package} as nki\nimport {package}.language as nl\nimport {package}.isa as nisa\n"
                      f"from {package}.typing import tensor\n\n@nki.jit\ndef k(a: tensor[128, 16]):\n"
                      "    out = nl.ndarray((128, 16), dtype=nl.float32, buffer=nl.shared_hbm)\n    t = nl.load(a)\n"
                      f"    {use}\n    nl.store(out, t)\n    return out\n")
            errors = [d for d in compiler.compile(source, "--input", "a=128x16:f32")["diagnostics"] if d["severity"] == "error"]
            assert [d["code"] for d in errors] == ["nki-unsupported"], (name, errors)
            assert c["what"] in errors[0]["message"] and errors[0]["hint"] == c["instead"]
            assert errors[0]["range"]["line"] == 11, name


def test_the_methods_and_members_of_tensors_are_listed_and_exercised(calls):
    """A method of trace/nki/tensor.c without a line in compiler/nki/language.def fails here."""
    own = {name for name in vars(_nkx.NkiTensor) if not name.startswith("_")}
    listed = {name.split(".")[1]: c["kind"] for name, c in calls.items() if name.startswith("tensor.")}
    assert set(listed) == own
    methods = [name for name, kind in listed.items() if kind == "method"]
    assert all(callable(getattr(_nkx.NkiTensor, name)) == (listed[name] in ("method", "refused")) for name in own)
    missing = [name for name in methods if not re.search(rf"\.{name}\(", TESTS)]
    assert not missing, "no test of tests/nki_kernels uses these"


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
    n = nisa.register_alloc(4)
"""
    tail = "    nl.store(out, x)\n    return out\n"
    small = {"nl.transpose", "nl.matmul"}  # of at most 128 columns
    bits = {"nl.bitwise_and", "nl.bitwise_or", "nl.bitwise_xor", "nl.left_shift", "nl.right_shift", "nl.invert"}  # of integers
    body = ""
    for name, c in of_kind(calls, "composed", "operator", "bits", "function").items():
        if "nki" not in c["generations"]:
            continue
        line = c["example"] + (" pass" if c["example"].endswith(":") else "")
        before = "x, y = x[:, 0:128], y[:, 0:128]" if name in small else "x = y = whole" if name in bits else "pass"
        body += f"    {before}\n    {line}\n    x, y, t = x_all, y_all, x_all\n"
    source = head + body + tail
    result = compiler.compile(source, "--target", "trn3")
    assert result["status"] == "ok", [(d["message"], source.splitlines()[d["range"]["line"] - 1]) for d in result["diagnostics"]]


def test_every_function_of_nki_isa_is_listed(calls):
    """The 49 instructions, those of registers among them, and what is known at compile time."""
    own = {name for name, o in vars(nisa).items() if callable(o) and not inspect.isclass(o) and name[0] != "_"}
    assert {f"nisa.{name}" for name in own} <= set(calls)
    assert {"nisa.get_nc_version", "nisa.get_nc_sub_version"} <= set(calls)
