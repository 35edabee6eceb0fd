"""Each operand form, type and engine of each call: what the simulated machine computes is what NumPy says.  On trn2, and with
NKX_NKI=all on all machines."""
import ast

import numpy as np
import pytest

from support import nki_form_cases as cases
from support import nki_form_more as more
from support import nki_form_state as state
from support import nki_more_calls
from support.nki_forms import Kernel, Out, Tile
from support.nki_kernels import TARGETS
from support.paths import ROOT
from support.server import Server

FORMS = {f.__name__: list(f()) for f in (cases.elementwise, *more.GROUPS, *state.GROUPS)}
CHUNK = 40


def chunks(target):
    for group, forms in FORMS.items():
        mine = [f for f in forms if target in f.targets]
        for k in range(0, len(mine), CHUNK):
            yield pytest.param(target, mine[k:k + CHUNK], id=f"{target} {group} {k // CHUNK}")


@pytest.mark.parametrize("target, forms", [c for target in TARGETS for c in chunks(target)])
def test_each_form_computes_what_numpy_says(target, forms):
    wrong = Kernel(forms).run(target)
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def listed():
    with Server() as server:
        return {c["name"].removeprefix("nisa."): c for c in server.get("/api/v1/nki").json["calls"] if c["kind"] == "instruction"}


def used(call):
    return [x for forms in FORMS.values() for f in forms for x in (*f.after, f) if x.call == call]


def memories(call, parameter):
    return {v.memory() for f in used(call) for v in [f.arguments.get(parameter)] if isinstance(v, (Tile, Out))}


# Operands of registers have no memory; their forms are cases of this file.
REGISTERS = (ROOT / "tests/nki_kernels/test_registers.py").read_text()


def test_every_listed_call_has_forms(listed):
    assert {c for c in listed if not used(c)} == {c for c in listed if c.startswith("register_")}
    assert {c for c in listed if c.startswith("register_") and f"nisa.{c}(" not in REGISTERS} == set()


def test_every_operand_of_these_calls_is_tried_in_each_memory_that_the_help_names(listed):
    untried = {}
    for name, c in listed.items():
        if name.startswith("dma_"):  # row numbers are views here, whose forms are those of test_calls.py
            continue
        for o in c["operands"] if used(name) else []:
            want = {m for m in o.get("memories", []) if m in ("sbuf", "psum")}
            if want - memories(name, o["name"]):
                untried[f"{name}.{o['name']}"] = want - memories(name, o["name"])
    assert not untried, "\n" + "\n".join(f"{k} {v}" for k, v in untried.items())


def engines_tried(call):
    """The engines that forms of a call name, and the usual one if a form names none."""
    found = set()
    for f in used(call):
        named = f.arguments.get("engine")
        found.add(named.rpartition(".")[2] if isinstance(named, str) else "usual")
    return found


def test_every_engine_that_the_help_names_is_tried(listed):
    untried = {}
    for name, c in listed.items():
        if not used(name) or not any(o["name"] == "engine" for o in c["operands"]) or name.startswith("dma_"):
            continue  # there is one engine only
        tried = engines_tried(name)
        usual = {c["engines"][0]} if "usual" in tried or "unknown" in tried else set()
        if set(c["engines"]) - tried - usual:
            untried[name] = sorted(set(c["engines"]) - tried - usual)
    assert untried == {}, "\n".join(f"{k} {v}" for k, v in untried.items())


def given_by_cases(listed):
    """{call: the parameters that the value cases of test_calls.py give}; positions count in the order of the help."""
    given, bodies = {}, []
    nki_more_calls.add_all(np.random.default_rng(0), lambda name, body, *rest: bodies.append(body))
    own = ast.walk(ast.parse((ROOT / "tests/nki_kernels/test_calls.py").read_text()))
    bodies += [n.value for n in own if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.startswith("nisa.")
               and n.value.endswith(")") and "{" not in n.value]
    for node in (n for body in bodies for n in ast.walk(ast.parse(body))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("nisa."):
            name = ast.unparse(node.func).removeprefix("nisa.")
            order = [p.split("=")[0] for p in listed[name]["parameters"]] if name in listed else []
            given.setdefault(name, set()).update(order[:len(node.args)], (k.arg for k in node.keywords))
    return given


# Parameters without a value of their own: nothing of a result depends on them, and other tests have them.
NO_VALUE = {"priority", "dge_mode", "is_stationary_onezero", "is_moving_onezero", "pipe_id", "name"}
VIEWS = {"dst_index", "src_index", "other"}  # of views with row numbers, and of lists of sources, which cases of these calls have


def test_every_parameter_that_the_help_names_has_a_value_test(listed):
    cases, untried = given_by_cases(listed), {}
    for name, c in listed.items():
        given = {p for f in used(name) for p in f.arguments} | cases.get(name, set()) | NO_VALUE | VIEWS
        missing = {o["name"] for o in c["operands"]} - given
        if used(name) and missing:
            untried[name] = sorted(missing)
    assert untried == {}, "\n".join(f"{k} {v}" for k, v in untried.items())
