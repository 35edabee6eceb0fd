"""prepare-arithmetic's swapped operands (swap.c): values of random products of images and matrices, in many orders of their
dimensions, at every stage."""
import os
import random

import pytest

from support import compiler

HEAD = """import ml_dtypes
import numpy as np
from nkigen import knob, trace


"""
ROUNDS, AT_ONCE = int(os.environ.get("NKX_IMAGE_ROUNDS", "4")), 6
SIZES = {"n": (1, 1, 2, 3), "c": (1, 5, 64, 130), "d": (1, 3, 9), "h": (1, 7, 14, 28), "w": (1, 9, 14, 28), "o": (1, 8, 64, 130)}


def shuffled(rng, names):
    """Mostly in an order in which images lie."""
    return "".join(rng.sample(names, len(names))) if rng.random() < 0.25 else names


def product(rng, name):
    """einsum of images with dimensions n, c, d, h, w and a matrix, of which c and d are summed."""
    size = {d: rng.choice(s) for d, s in SIZES.items()}
    features = rng.choice(("c", "c", "cd"))
    images, kernel = shuffled(rng, f"n{features}hw"), rng.choice((f"o{features}", f"{features}o"))
    sides, t = [(images, "x"), (kernel, "k")], rng.choice(("f32", "f32", "bf16", "f16"))
    if rng.random() < 0.4:
        sides.reverse()
    result = shuffled(rng, "nohw")
    call = f"np.einsum('{sides[0][0]},{sides[1][0]}->{result}', {sides[0][1]}, {sides[1][1]})"
    bias = [None] * 4
    bias[result.index("o")] = ":"
    end = rng.choice(("{c}", "np.maximum({c} + b[{i}], 0)", "{c} + b[{i}], {c} * 2", "np.tanh({c}) * {c}, {c}.sum({i1})")).format(
        c=call, i=", ".join(map(str, bias)), i1=result.index("w"))
    shapes = [tuple(size[d] for d in images), tuple(size[d] for d in kernel), (size["o"],)]
    specs = ", ".join(f"({s}, '{t}')" for s in shapes)
    return f"@trace(input_specs=[{specs}])\ndef {name}(x, k, b):\n    return {end}\n"


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_every_stage_computes_what_numpy_computes(seed):
    rng = random.Random(f"images {seed}")
    compiler.assert_equal_at_every_stage(HEAD + "\n\n".join(product(rng, f"k{i}") for i in range(AT_ONCE)), AT_ONCE)


def test_operands_are_swapped():
    """What the cases above are about happens in some of them."""
    said = []
    for seed in range(8):
        rng = random.Random(f"images {seed}")
        for kernel in compiler.compile(HEAD + "\n\n".join(product(rng, f"k{i}") for i in range(AT_ONCE)))["kernels"]:
            said += compiler.rules(kernel) & {"swap-operands"}
    assert len(said) >= 6, said
