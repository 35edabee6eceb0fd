"""Every rule of the table decides something in a test, and what its remarks hold is whole."""
import json
import re

import pytest
from support import compiler, knob_offers, warm
from support.nki_kernels import HEAD
from support.paths import EXAMPLES, ROOT
from support.rules import FORCED, TABLE, TEXT, figure, is_priced

RUN = re.compile(r"^// RUN: nkx opt (.*?) *%s", re.M)
FOLDERS = sorted(p for p in (ROOT / "tests/lit").iterdir() if p.is_dir() and not p.name.startswith("__"))

# rules that no file of tests/lit reaches
OWN = {
    "write-out-function": ("--prepare-arithmetic", """
func.func @f(%x: tensor<128x64xf32>) -> tensor<128x64xf32> {
  %e = tensor.empty() : tensor<128x64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
    iterator_types = ["parallel", "parallel"]} ins(%x : tensor<128x64xf32>) outs(%e : tensor<128x64xf32>) {
  ^bb0(%v: f32, %o: f32):
    %y = math.cbrt %v : f32
    linalg.yield %y : f32
  } -> tensor<128x64xf32>
  return %r : tensor<128x64xf32>
}"""),
    "transpose-is-copy": ("--simplify-linalg", """
func.func @f(%x: memref<1x64x32xf32, 1 : i32>, %y: memref<64x1x32xf32, 1 : i32>) {
  linalg.transpose ins(%x : memref<1x64x32xf32, 1 : i32>) outs(%y : memref<64x1x32xf32, 1 : i32>) permutation = [1, 0, 2]
  return
}"""),
}
# an NKI kernel with a chain of views, with a loop, and with one whose rounds differ
LOOPS = HEAD + """
@nki.jit
def loops(x: nl.tensor[128, 64]):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    for i in range(4):
        nisa.tensor_scalar(t, t, nl.add, 1.0)
    for i in range(4):
        nisa.tensor_scalar(t, t, nl.multiply, float(i))
    nisa.tensor_copy(dst=t.reshape((128, 8, 8)).permute((0, 2, 1)), src=t.reshape((128, 8, 8)))
    nl.store(out, t)
    return out
"""
# a kernel of beta 1 with a mask
MASK = """import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from neuronxcc.nki.typing import tensor

@nki.jit
def mask(x: tensor[128, 64]):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    i = nl.arange(128)[:, None]
    nl.store(out, nl.load(x), mask=(i < 100))
    return out
"""


def remarks_of_opt(tmp_path, arguments, text):
    ir, out = tmp_path / "in.mlir", tmp_path / "remarks.json"
    ir.write_text(text)
    warm.run("opt", *arguments, f"--remarks={out}", ir)
    found = json.loads(out.read_text()) if out.exists() else []
    out.unlink(missing_ok=True)
    return found


@pytest.fixture(scope="module")
def remarks(tmp_path_factory):
    """All remarks of tests/lit, of the kernels above and of two examples."""
    folder = tmp_path_factory.mktemp("rules")
    found = []
    for path in (p for f in FOLDERS for p in sorted(f.glob("*.mlir"))):
        text = path.read_text()
        for run in RUN.findall(text):
            found += remarks_of_opt(folder, [a for a in run.split() if a != "--remarks"], text)
    for option, text in OWN.values():
        found += remarks_of_opt(folder, [option], text)
    for source in [*(example.read_text() for example in EXAMPLES[:2]), LOOPS, MASK]:
        found += [r for _, r in knob_offers.remarks_of(compiler.compile(source))]
    return found


@pytest.mark.xdist_group("rules")
@pytest.mark.parametrize("name,by", TABLE, ids=[name for name, _ in TABLE])
def test_the_rule_decides_something_in_its_pass(remarks, name, by):
    own = [r for r in remarks if r["rule"] == name]
    assert own, f"no test reaches the rule {name}"
    assert {r["pass"] for r in own} == {by}


@pytest.mark.xdist_group("rules")
@pytest.mark.parametrize("name", [name for name, _ in TABLE if not FORCED[name]])
def test_a_choice_has_its_cost_and_that_of_a_rejected_one(remarks, name):
    own = [r for r in remarks if r["rule"] == name]
    chosen = [r for r in own if "forced" not in r]
    assert chosen, f"every decision by {name} is forced: the rule has a column for that"
    for r in chosen:
        assert is_priced(r), r
    for r in own:
        assert "forced" not in r or (r["forced"] and not r.get("rejected")), r


@pytest.mark.xdist_group("rules")
def test_what_is_forced_has_no_cost(remarks):
    assert any(FORCED[r["rule"]] for r in remarks)
    for r in remarks:
        if FORCED[r["rule"]]:
            assert FORCED[r["rule"]].endswith(".") and not any("cost" in x for x in [r, *r.get("rejected", [])]) and "forced" not in r, r


@pytest.mark.xdist_group("rules")
def test_costs_are_of_one_kind(remarks):
    """A cost is compared with those of the rejected choices: the same words around other numbers, or nothing."""
    def kind(cost):
        return re.sub(r"(tile|wait|buffer|write|start|call)s\b", r"\1", re.sub(r"[\d.]+", "#", cost).replace("about # us", "nothing"))
    for r in remarks:
        costs = {kind(x["cost"]) for x in r.get("rejected", []) if "cost" in x}
        assert not costs or kind(r["cost"]) in costs, r


# rules by which a choice that costs more is taken where a limit, a knob or a reader decides, as the reason of the other one says
LIMITED = {"tile-size", "value-memory", "partition-dim", "fuse-rows", "fuse-rows-not", "matmul-blocks", "buffer-memory", "spill", "move-to-hbm",
           "engine", "copies", "queue"}


@pytest.mark.xdist_group("rules")
def test_the_chosen_costs_no_more_unless_a_limit_decides(remarks):
    dearer = {r["rule"] for r in remarks for x in r.get("rejected", []) if "cost" in x and figure(x["cost"]) < figure(r["cost"])}
    assert dearer <= LIMITED, dearer - LIMITED
    assert {"spill", "tile-size"} <= dearer


@pytest.mark.xdist_group("rules")
def test_reasons_are_whole(remarks):
    for r in remarks:
        for limit in r.get("limits", []):
            assert limit["name"] and limit["unit"] and limit["used"] >= 0 and limit["available"] > 0, r
        for rejected in r.get("rejected", []):
            assert rejected["choice"] and rejected["reason"], r
        if "knob" in r:
            knob = r["knob"]
            assert knob["offers"] == [x["value"] for x in r.get("rejected", []) if "value" in x], r
            assert knob["value"] not in knob["offers"], r
        else:
            assert not any("value" in x for x in r.get("rejected", [])), r


def test_rules_lead_to_rules_of_the_table_and_say_whole_sentences():
    names = [name for name, _ in TABLE]
    assert len(set(names)) == len(names)
    vias = re.findall(r', "([\w-]*)"\)$', TEXT, re.M)
    assert len(vias) == len(names) and {v for v in vias if v} <= set(names)
