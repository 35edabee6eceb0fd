"""Stencils: sums of shifted slices of one value, whose rows above and below are in other tiles (fuse_row_tiles/windows.c), at every
stage."""
import os
import random

import pytest

from support import compiler

HEAD = """import numpy as np
from nkigen import trace


"""
TYPES = ("f32", "f32", "bf16", "f16", "i32", "i8")
ROUNDS, AT_ONCE = int(os.environ.get("NKX_STENCIL_ROUNDS", "3")), 5


def part(at, reach, n):
    """The rows or columns from `at` on, of which each result needs `reach` more."""
    return f"{at}:{n - reach + at}"


def stencil(rng, name):
    height, width = rng.choice(((130, 517), (258, 64), (300, 37), (5, 700), (258, 130), (513, 20)))
    down, across = rng.randint(1, 3), rng.randint(0, 3)
    padded = rng.random() < 0.3
    lines = ["y = x"]
    if padded:
        up, left = rng.randint(0, down), rng.randint(0, across)
        mode = rng.choice(("constant", "edge", "wrap"))
        lines = [f"y = np.pad(x, (({up}, {down - up}), ({left}, {across - left})), mode='{mode}')"]
    full = (height + down * padded, width + across * padded)
    places = [(i, j) for i in range(down + 1) for j in range(across + 1)]
    for k, (i, j) in enumerate(rng.sample(places, rng.randint(2, min(len(places), 7)))):
        term = f"y[{part(i, down, full[0])}, {part(j, across, full[1])}]"
        form = rng.choice(("{t}", "{t}", "{t} * 2", "np.abs({t})", "np.maximum({t}, 1)"))
        lines.append(("s = " if not k else rng.choice(("s = s + ", "s = s - ", "s = s + "))) + form.format(t=term))
    end = rng.choice((["return s"], ["return s, np.maximum(s, 0)"], ["return s.sum(-1)"], ["return s, x + 1"],
                      [] if padded else ["z = x.copy()", f"z[{part(0, down, full[0])}, {part(0, across, full[1])}] = s", "return z"]))
    if not end:
        end = ["return s * x"]
    body = "\n    ".join(lines + end)
    return f"@trace(input_specs=[(({height}, {width}), '{rng.choice(TYPES)}')])\ndef {name}(x):\n    {body}\n"


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_every_stage_computes_what_numpy_computes(seed):
    rng = random.Random(f"stencil {seed}")
    compiler.assert_equal_at_every_stage(HEAD + "\n\n".join(stencil(rng, f"k{i}") for i in range(AT_ONCE)), AT_ONCE)
