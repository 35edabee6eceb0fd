"""A knob that a decision offers is written by the page's own code, and then the kernel compiles, computes what NumPy
computes, and the decision is the one that was asked for.

Some offers of each kernel are tried; NKX_KNOBS=all tries all of them.
"""
import os
import random

import pytest
from support import compiler, knob_offers, source_map
from support.kernels import matrix, suite
from support.marks import few
from support.paths import EXAMPLES

ALL = os.environ.get("NKX_KNOBS") == "all"
LARGE = ("12_decoder_layer", "08_attention")
KERNELS = """auto_gelu auto_softmax_axis0 broadcast_add_middle matrix_mean_axis0 cube_max_axis1 auto_std rmsnorm matmul_add
qkv_projection matmul_bf16 reshape_used_regroup auto_transpose rope scatter_rows feedforward_gated""".split()
SOURCES = {p.stem: p.read_text() for p in EXAMPLES if ALL or p.stem not in LARGE}
SOURCES |= {k.name: suite.source([k], "plain") for k in matrix.wanted()
            if "plain" in k.variants() and not k.heavy and (ALL or k.name in KERNELS)}

# why an offer cannot be written: the value has no name, and knob(x, …) cannot say what is offered; or it is a part
REFUSALS = ("Give it a name", "changes a part of a value in place")

# many calls of one helper give one expression several tiles
HELPER = """import numpy as np
from nkigen import trace


def double(v):
    return v + v


@trace(input_specs=[((256, 512), "f32"), ((256, 512), "f32")])
def sums(a, b):
    return double(a) * double(b)
"""
SOURCES["helper"] = HELPER


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return knob_offers.Writer(tmp_path_factory.mktemp("writer"))


def some(offers, name):
    if ALL:
        return offers
    by_rule = {}
    for o in random.Random(name).sample(offers, len(offers)):
        by_rule.setdefault(o["rule"], o)
    return list(by_rule.values())


@pytest.mark.parametrize("name", few(SOURCES, 10))
def test_an_offered_knob_is_obeyed_and_computes_what_numpy_computes(writer, name):
    source = SOURCES[name]
    result = compiler.compile(source)
    assert result["status"] == "ok", result["diagnostics"]
    offers = some(knob_offers.offers(result), name)
    assert offers or name not in (p.stem for p in EXAMPLES)
    written = writer.write([{"text": source, "range": o["range"], "wanted": o["wanted"]} for o in offers])
    for offer, new in zip(offers, written):
        text = source_map.text_of(source, offer["range"])
        about = (name, text, offer["wanted"], new)
        if "why" in new:
            assert any(sentence in new["why"] for sentence in REFUSALS), about
            continue
        changed = compiler.compile(new["text"], check=True)
        assert changed["status"] == "ok", (about, changed["diagnostics"])
        bad = [s["name"] for k in changed["kernels"] for s in k["stages"] if s["check"]["status"] == "fail"]
        assert not bad, (about, bad)
        assert knob_offers.obeys(changed, offer, text, new["text"]), about
