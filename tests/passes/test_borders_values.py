"""prepare-arithmetic's borders and taps (border.c, taps.c): values of random padding, of copies whose interior is written, and of
columns that are read along rows, at every stage."""
import os
import random

import pytest

from support import compiler

HEAD = """import ml_dtypes
import numpy as np
from nkigen import knob, trace


"""
TYPES = ("f32", "f32", "bf16", "f16", "i32", "i8")
ROUNDS, AT_ONCE = int(os.environ.get("NKX_BORDER_ROUNDS", "3")), 4


def shape_of(rng, rank):
    sizes = {1: (5000, 300_000), 2: (3, 64, 130, 700, 1024), 3: (2, 8, 33, 130, 512), 4: (1, 2, 8, 31, 64)}[rank]
    return tuple(rng.choice(sizes) for _ in range(rank))


def padded(rng, name):
    """Padding on some sides, and what reads it."""
    shape, t = shape_of(rng, rng.choice((1, 2, 3, 3, 4))), rng.choice(TYPES)
    widths = tuple((rng.choice((0, 0, 1, 3)), rng.choice((0, 0, 1, 2))) for _ in shape)
    value = rng.choice(("", ", constant_values=2"))
    mean = rng.choice(("p", "p + 1", "p * p, p", "np.maximum(p, 0)"))
    return f"@trace(input_specs=[({shape}, '{t}')])\ndef {name}(x):\n    p = np.pad(x, {widths}{value})\n    return {mean}\n"


def inside(rng, name):
    """A copy, or a constant, of which a part is written."""
    shape, t = rng.choice(((1024, 700), (1024, 515), (300_000,), (8, 512, 130), (33, 130))), rng.choice(TYPES)
    cut = [(rng.randrange(min(3, n)), rng.randrange(min(3, n - 1) or 1)) for n in shape]
    at = ", ".join(f"{a}:{n - b if n - b > a else n}" for (a, b), n in zip(cut, shape, strict=True))
    start = rng.choice(("x.copy()", "x.copy()", "np.zeros_like(x)", "np.full_like(x, 3)", "x + 1"))
    end = rng.choice(("y", "y, x", "y + x"))
    return (f"@trace(input_specs=[({shape}, '{t}')])\ndef {name}(x):\n    y = {start}\n"
            f"    y[{at}] = x[{at}] * {rng.choice((2, 3))}\n    return {end}\n")


def taps(rng, name):
    """Columns of a matrix, along rows or down them."""
    rows, n, m, t = rng.choice((1, 64, 130, 300)), rng.choice((5, 64, 200, 512)), rng.choice((2, 3, 4, 9)), rng.choice(TYPES)
    uses = [rng.choice(("w[:, {k}]", "w[:, {k}]", "w[:, {k}] + 1", "v[:, {k}, None]")).format(k=rng.randrange(m)) for _ in range(3)]
    body = rng.choice(("x * {0} + {1}", "x * {0} + x * {1} + x * {2}", "(x + {0}) * {0}, x - {1}"))
    return (f"@trace(input_specs=[(({rows}, {n}), '{t}'), (({n}, {m}), '{t}'), (({rows}, {m}), '{t}')])\n"
            f"def {name}(x, w, v):\n    return {body.format(*uses)}\n")


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("kind", [padded, inside, taps])
def test_every_stage_computes_what_numpy_computes(kind, seed):
    rng = random.Random(f"{kind.__name__} {seed}")
    compiler.assert_equal_at_every_stage(HEAD + "\n\n".join(kind(rng, f"k{i}") for i in range(AT_ONCE)), AT_ONCE)


def test_they_are_rewritten():
    """What the cases above are about happens in some of them."""
    said = []
    for kind in (padded, inside, taps):
        for seed in range(6):
            rng = random.Random(f"{kind.__name__} {seed}")
            for kernel in compiler.compile(HEAD + "\n\n".join(kind(rng, f"k{i}") for i in range(AT_ONCE)))["kernels"]:
                said += {(kind.__name__, rule) for rule in compiler.rules(kernel)}
    assert min(said.count(x) for x in (("padded", "border"), ("inside", "border"), ("taps", "column-as-row"))) >= 2, said
