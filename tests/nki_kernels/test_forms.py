"""Each operand form, type and engine of each call: what the simulated machine computes is what NumPy says.  On trn2, and with
NKX_NKI=all on all machines."""
import pytest

from support import nki_form_cases as cases
from support import nki_form_more as more
from support import nki_form_state as state
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
