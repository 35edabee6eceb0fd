"""prepare-arithmetic's copies of rows in another order (turns.c, interleave.c): values of random transposes, strided slices, and what
is put together of them, at every stage."""
import os
import random

import pytest

from support import compiler

HEAD = """import ml_dtypes
import numpy as np
from nkigen import knob, trace


"""
TYPES = ("f32", "bf16", "i32", "i8", "f16")
ROUNDS, AT_ONCE = int(os.environ.get("NKX_ROW_ROUNDS", "4")), 6


def dims(rng, rank, most):
    while True:
        d = [rng.choice((1, 2, 3, 4, 5, 7, 8, 16, 33, 64, 130)) for _ in range(rank)]
        n = 1
        for x in d:
            n *= x
        if n <= most:
            return d


def spec(shape, t):
    return f"({tuple(shape)}, '{t}')"


def turned(rng, name):
    """A transpose that mostly keeps its first dimensions, alone or between other operations."""
    rank = rng.randint(3, 6)
    shape, keep = dims(rng, rank, 1 << 16), rng.choice((0, 1, 1, 1, 2))
    if keep:
        shape[0] = rng.choice((31, 64, 130, 200))
    order = list(range(keep, rank))
    rng.shuffle(order)
    order = tuple(range(keep)) + tuple(order)
    body = rng.choice(("x.transpose({o})", "x.transpose({o}) + 1", "np.maximum(x, 0).transpose({o})", "np.abs(x).transpose({o}).reshape(-1, {last})"))
    return f"@trace(input_specs=[{spec(shape, rng.choice(TYPES))}])\ndef {name}(x):\n    return " + body.format(o=order, last=shape[order[-1]]) + "\n"


def combed(rng, name):
    """Slices with a step along the last axis, whole or in part, and rows that are put together again."""
    apart, groups, rows = rng.choice((2, 2, 3, 4, 8, 9)), rng.choice((16, 33, 64, 128)), rng.choice((65, 130, 256))
    shape, t = (rows, groups * apart), rng.choice(TYPES)
    parts = [f"x[:, {k}::{apart}]" for k in range(apart)]
    rng.shuffle(parts)
    of_all = ", ".join(f"p{k}" for k in range(apart))
    lines = [f"p{k} = {p}" for k, p in enumerate(parts)] + [f"p0 = p0 + p{apart - 1}"]
    end = rng.choice((
        [f"return np.stack([{of_all}], axis=-1).reshape(x.shape)"],
        [f"return np.concatenate([{of_all}], axis=1)"],
        ["y = np.zeros_like(x)", *(f"y[:, {k}::{apart}] = p{k}" for k in rng.sample(range(apart), rng.choice((1, apart)))), "return y"],
        [f"return x.reshape({rows}, {groups}, {apart})[:, :, ::-1].reshape(x.shape) + 1, p0"],
        ["y = x + 0", f"y[3:60, {apart - 1}::{apart}] = p0[3:60]", "return y, p1"],
        [f"z = x.reshape({rows}, {groups}, {apart})", "return z[:, :, 0] * 2, z[2:40, :, 1], x[:, 1:-1:2]"],
    ))
    return f"@trace(input_specs=[{spec(shape, t)}])\ndef {name}(x):\n    " + "\n    ".join(lines + end) + "\n"


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("kind", [turned, combed])
def test_every_stage_computes_what_numpy_computes(kind, seed):
    rng = random.Random(f"{kind.__name__} {seed}")
    source = HEAD + "\n\n".join(kind(rng, f"k{i}") for i in range(AT_ONCE))
    result = compiler.compile(source, check=True, timeout=300)
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert not errors, f"{errors}\n{source}"
    assert len(result["kernels"]) == AT_ONCE
    for kernel in result["kernels"]:
        wrong = [s["name"] for s in kernel["stages"] if s["check"]["status"] == "fail"]
        assert not wrong, f"{kernel['name']}: {wrong[0]}\n{source}"


def test_they_are_rewritten():
    """What the cases above are about happens in most of them."""
    said = []
    for kind in (turned, combed):
        rng = random.Random(f"{kind.__name__} 0")
        for kernel in compiler.compile(HEAD + "\n\n".join(kind(rng, f"k{i}") for i in range(AT_ONCE)))["kernels"]:
            said += {r["rule"] for s in kernel["stages"] for r in s.get("remarks", [])} & {"turn-in-rows", "interleave"}
    assert said.count("turn-in-rows") >= AT_ONCE and said.count("interleave") >= AT_ONCE / 2, said
