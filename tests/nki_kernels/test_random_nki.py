"""Random NKI kernels (support/random_nki.py): each computes what the model of the generator does, rolled and unrolled, and every
stage of it computes what its calls do; those with one mistake are refused at its place.  `python3 -m support.shrink_nki` makes a
kernel that fails small."""
import os
import re

import pytest

from support import compiler, random_nki, random_nki_illegal
from support.nki_kernels import TARGETS
from support.runs import simulated
from support.shrink_nki import close, shrink

COUNT = int(os.environ.get("NKX_RANDOM_NKI", "100"))
SEED = int(os.environ.get("NKX_SEED", "1"))
BATCHES = 4  # tests run beside each other


def draw(batch):
    """[(name, kernel)]"""
    return [(f"k{i}", random_nki.kernel([SEED, batch, i], f"k{i}")) for i in range(COUNT // BATCHES)]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_kernels_compute_what_the_model_does_rolled_and_unrolled(batch):
    for _, kernel in draw(batch):
        source = random_nki.HEAD + kernel.source()
        got, _ = simulated(source, kernel.inputs)
        for name, want, is_exact in kernel.results():
            assert close(got[name], want, is_exact), (name, source)
        if "range(" in source:
            unrolled, _ = simulated(source, kernel.inputs, "--unroll")
            assert all(got[n].tobytes() == unrolled[n].tobytes() for n in got), source


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "trn1"])  # trn1 does not have all of the calls
@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_stage_of_random_kernels_computes_what_their_calls_do(batch, target):
    drawn = draw(batch)
    for begin in range(0, len(drawn), 25):
        some = drawn[begin:begin + 25]
        result = compiler.compile(random_nki.HEAD + "".join(k.source() for _, k in some), "--target", target, check=True, timeout=300)
        assert result["status"] == "ok", [d for d in result["diagnostics"] if d["severity"] == "error"]
        for (name, _), k in zip(some, result["kernels"]):
            assert k["name"] == name
            assert [s["check"]["status"] for s in k["stages"] if s["dialect"] == "nisa"] == ["pass"] * 3, name


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_kernels_with_a_mistake_are_refused_at_its_place(batch):
    drawn = [random_nki_illegal.kernel([SEED, batch, i], f"k{i}") for i in range(COUNT // BATCHES)]
    for begin in range(0, len(drawn), 25):
        source, lines, some = random_nki.HEAD, [], drawn[begin:begin + 25]
        for k in some:
            lines.append(source.count("\n"))
            source += k.source()
        found = [[] for _ in some]
        for d in compiler.compile(source, "--stop-after", "nki-trace", timeout=300)["diagnostics"]:
            if d["severity"] == "error":
                place = d["range"]
                assert place["line"] == place["end_line"]
                found[d["kernel"]].append((d["code"], place["line"] - lines[d["kernel"]], place["col"], place["end_col"]))
        for k, codes in zip(some, found):
            assert codes == [(k.code, *k.range())], k.marked()


def test_a_kernel_that_fails_is_made_small():
    kernel = random_nki.kernel([0, 3], "k")
    small = shrink(kernel, lambda k: "out1" in k.outs)
    assert small.source().count("\n") < 10 and simulated(random_nki.HEAD + small.source(), small.inputs)


def test_random_kernels_use_most_calls_and_forms():
    """What is drawn is no small part of NKI: the calls, views, loops and types of a hundred kernels."""
    text = "".join(random_nki.kernel([0, i], "k").source() for i in range(100))
    calls = set(re.findall(r"nisa\.(\w+)\(", text))
    assert len(calls) >= 28, calls
    views = set(re.findall(r"\]?\.(permute|reshape_dim|reshape|flatten_dims|expand_dim|squeeze_dim|broadcast|slice|select|vector_select|rearrange)\(", text))
    assert len(views) >= 11, views
    for what in ("nl.affine_range", "nl.sequential_range", "nl.static_range", "while ", "if ", "else:", "def k_helper", "nl.ds(", "None",
                 "nl.psum", "nl.bfloat16", "nl.float16", "nl.uint8", "engine=nisa.", "nl.softmax", ".append("):
        assert what in text, what
