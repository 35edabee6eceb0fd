"""Rows in another order or shape: values of random transposes, strided slices, what is put together of them, of what computes with
short rows (prepare_arithmetic/turns.c, interleave.c, short.c), of equal parts (parts.c), of axes that are taken backwards (hlo/simplify_reverse.c,
linalg_to_nisa/backwards.c), and of places that are runs (hlo/simplify_runs.c), at every stage."""
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


def stripped(rng, name):
    """Transposes of matrices with a short side, one or a batch of them."""
    narrow, long, batch = rng.choice((2, 3, 4, 7, 8, 16)), rng.choice((4096, 4000, 8192, 6272)), rng.choice((1, 1, 2, 3, 4))
    shape, ops = ([long, narrow] if rng.random() < 0.5 else [narrow, long]), rng.choice(("{x}", "{x} * 2", "np.maximum({x}, 1)"))
    if batch > 1:
        shape = [batch, *shape]
    order = (0, 2, 1) if batch > 1 else (1, 0)
    body = rng.choice((f"x.transpose({order})", f"x.transpose({order}).reshape(-1)"))
    inner = ops.format(x="x")
    return f"@trace(input_specs=[{spec(shape, rng.choice(TYPES))}])\ndef {name}(x):\n    x = {inner}\n    return " + ops.format(x=body) + "\n"


def computing(rng, name, lead, columns):
    """Element-wise operations on rows, with numbers for each row or column, and reductions of the row, the rows, or both."""
    last, t = len(lead), rng.choice(("f32", "f32", "bf16"))
    lead_axes = tuple(range(last))
    lines = rng.sample((
        "y = y - y.max(axis=-1, keepdims=True)",
        "y = np.exp(np.minimum(y, 1))",
        "y = y + b",
        "y = y * x",
        "y = y * np.abs(y).sum(axis=-1, keepdims=True)",
        "y = np.where(y > 0, y, 0 * b)",
        "y = y / (1 + y.mean(axis=-1, keepdims=True) ** 2)",
        "y = np.maximum(y, x.min(axis=-1)[..., None])",
        f"y = y - y.mean(axis={lead_axes})",
    ), rng.randint(1, 4))
    end = rng.choice(("y", "y.sum(axis=-1)", f"y.sum(axis={lead_axes})", f"y.max(axis={lead_axes}, keepdims=True)", "y.mean()", "y.max()",
                      f"y, y.sum(axis={lead_axes}), y.min(axis=-1)", "y.reshape(-1), y.argmax(axis=-1)", f"np.sqrt(np.abs(y.sum(axis={lead_axes}))) + b"))
    specs = f"{spec((*lead, columns), t)}, {spec((columns,), t)}"
    return f"@trace(input_specs=[{specs}])\ndef {name}(x, b):\n    y = x\n    " + "\n    ".join(lines) + f"\n    return {end}\n"


def stepped(rng, name):
    """Slices with a step along the last axis that begin and end anywhere, of rows that have a step, too."""
    rows, apart = rng.choice((130, 256, 513)), rng.choice((2, 2, 3, 4, 8))
    width, lead = rng.choice((67, 130, 251)) * apart // 2 + rng.randrange(3), rng.choice(((), (), (3,)))
    start, end = rng.randrange(apart + 3), rng.choice(("", "-1", str(width - rng.randrange(1, 9))))
    at = f"x[{':, ' if lead else ''}{rng.choice((':', '::2', '1:'))}, {start}:{end}:{apart}]"
    if rng.random() < 0.2:
        at = at.replace(f"{start}:{end}:{apart}", f"{width - 1 - start}:2:-{apart}")
    body = rng.choice(("{at}", "{at} + 1", "{at}.sum(-1)", "np.maximum({at}, {at} * 2)", "{at}, x[..., 1::2]"))
    return f"@trace(input_specs=[{spec((*lead, rows, width), rng.choice(TYPES))}])\ndef {name}(x):\n    return " + body.format(at=at) + "\n"


def halves(rng, name):
    """What is computed of concatenations of equal parts: rotary embeddings and the like."""
    parts, width, lead = rng.choice((2, 2, 3, 4)), rng.choice((32, 64, 80)), rng.choice(((130,), (2, 65), (3, 1, 40), (300,)))
    whole, t = (*lead, parts * width), rng.choice(TYPES)
    pieces = [f"x[..., {k * width}:{(k + 1) * width}]" for k in range(parts)]
    rng.shuffle(pieces)
    pieces = [rng.choice(("{p}", "-{p}", "np.abs({p})", "{p} * 2")).format(p=p) for p in pieces]
    lines = [f"r = np.concatenate([{', '.join(pieces)}], axis=-1)"]
    lines += rng.sample(("r = r * c", "r = r + x * c", "r = np.maximum(r, c)", "r = np.abs(r)", "r = r - x", "r = r * c[:1]", "r = r + c[..., :1]",
                         "r = r * (x - 1)", "r = r + x.max()"), rng.randint(1, 4))
    end = rng.choice(("return r", "return r, x * c", "return r.sum(-1)", "return r[..., 3:]", "return r + r.max(-1, keepdims=True)"))
    c = rng.choice((whole, whole[-2:], whole[-1:]) if len(whole) > 2 else (whole, whole[-1:]))
    if len(c) == 1:
        lines = [line.replace("c[:1]", "c[-1]").replace("c[..., :1]", "c[:1]") for line in lines]
    return f"@trace(input_specs=[{spec(whole, t)}, {spec(c, t)}])\ndef {name}(x, c):\n    " + "\n    ".join([*lines, end]) + "\n"


def computed(rng, name):
    """Transposes of what is computed of one element, and what computes one element of their results."""
    shape, order = rng.choice((((3, 3, 64, 62), (0, 2, 3, 1)), ((2, 64, 62, 3), (0, 3, 1, 2)), ((4, 33, 2, 2, 8, 9), (0, 1, 4, 2, 5, 3)),
                               ((300, 64, 2), (0, 2, 1)), ((4, 5, 8192), (0, 2, 1)), ((130, 517), (1, 0))))
    one = ("{x} * 2", "np.abs({x})", "np.maximum({x}, 1)", "({x}).astype(np.float32)", "np.exp(np.minimum({x}, 1))", "({x}) - 1", "({x}) * x.max()")
    lines = ["y = x"]
    lines += ["y = " + rng.choice(one).format(x="y") for _ in range(rng.randint(0, 3))]
    lines += [f"t = y.transpose({order})"]
    lines += ["t = " + rng.choice(one).format(x="t") for _ in range(rng.randint(0, 3))]
    lines += [rng.choice(("return t", "return t", "return t, y", "return t.reshape(-1)"))]
    return f"@trace(input_specs=[{spec(shape, rng.choice(TYPES))}])\ndef {name}(x):\n    " + "\n    ".join(lines) + "\n"


def short(rng, name):
    rows = rng.choice((256, 512, 1000, 2048, 3072, 130 * 8))
    return computing(rng, name, rng.choice(((rows,), (rows // 4, 4), (2, rows // 2))), rng.choice((2, 3, 5, 8, 10, 16, 31)))


def long(rng, name):
    return computing(rng, name, rng.choice(((2,), (3,), (8,), (2, 3), (1, 4), (31,))), rng.choice((8192, 25000, 65536, 98304)))


def backwards(rng, name):
    """Axes from the last place to the first one, alone or between other operations; long ones beside few others."""
    if rng.random() < 0.3:
        shape = rng.choice(((20011,), (1, 8192), (3, 5000), (4096, 3), (2, 700, 5)))
    else:
        shape = dims(rng, rng.randint(1, 4), 1 << 16)
        shape[rng.randrange(len(shape))] = rng.choice((5, 31, 67, 130, 256))
    axes = rng.sample(range(len(shape)), rng.randint(1, min(2, len(shape))))
    at = ", ".join("::-1" if d in axes else ":" for d in range(len(shape)))
    body = rng.choice(("x[{at}]", "x[{at}] + x", "np.flip(np.abs(x), {axes})", "x[{at}].reshape(-1)", "np.maximum(x, 1)[{at}] * 2",
                       "x[{at}][{at}] + 1", "x[{half}]"))
    half = ", ".join(f"{n - 2}:1:-{rng.choice((1, 2))}" if d in axes and n > 6 else ":" for d, n in enumerate(shape))
    return f"@trace(input_specs=[{spec(shape, rng.choice(TYPES))}])\ndef {name}(x):\n    return " + body.format(at=at, axes=tuple(axes), half=half) + "\n"


def runs(rng, name):
    """Axes that are continued at their ends, and lists of places that follow each other."""
    shape = dims(rng, rng.randint(1, 4), 1 << 14)
    axis = rng.randrange(len(shape))
    shape[axis] = n = rng.choice((5, 31, 67, 130, 256))
    width = [(rng.randint(0, n - 1) if d == axis or rng.random() < 0.3 else 0, rng.choice((0, 1, 3))) if m > 3 else (0, 0) for d, m in enumerate(shape)]
    width = [(min(a, m - 1), b) for (a, b), m in zip(width, shape)]
    places = []
    for _ in range(rng.randint(1, 5)):
        start, step = rng.randrange(n), rng.choice((1, 1, 1, 2, -1, -2, 0))
        places += [p for p in range(start, start + 9 * step, step) if 0 <= p < n] if step else [start] * rng.randint(1, 7)
    body = rng.choice((f"np.pad(x, {width}, mode={rng.choice(('edge', 'reflect', 'symmetric', 'wrap'))!r})",) * 2 + (f"np.take(x, {places}, axis={axis})",))
    end = rng.choice(("{b}", "{b} + 1", "np.abs({b})", "({b}).reshape(-1)"))
    return f"@trace(input_specs=[{spec(shape, rng.choice(TYPES))}])\ndef {name}(x):\n    return " + end.format(b=body) + "\n"


@pytest.mark.parametrize("seed", range(ROUNDS))
@pytest.mark.parametrize("kind", [turned, combed, stripped, short, long, backwards, runs, stepped, computed, halves])
def test_every_stage_computes_what_numpy_computes(kind, seed):
    rng = random.Random(f"{kind.__name__} {seed}")
    compiler.assert_equal_at_every_stage(HEAD + "\n\n".join(kind(rng, f"k{i}") for i in range(AT_ONCE)), AT_ONCE)


def test_they_are_rewritten():
    """What the cases above are about happens in most of them."""
    said = []
    for kind in (turned, combed, stripped, short, long, backwards):
        rng = random.Random(f"{kind.__name__} 0")
        for kernel in compiler.compile(HEAD + "\n\n".join(kind(rng, f"k{i}") for i in range(AT_ONCE)))["kernels"]:
            said += compiler.rules(kernel) & {"turn-in-rows", "interleave", "turn-in-strips", "short-rows", "long-rows", "backwards"}
    assert said.count("turn-in-rows") >= AT_ONCE and min(said.count("interleave"), said.count("backwards")) >= AT_ONCE / 2, said
    assert said.count("turn-in-strips") >= AT_ONCE / 2 and said.count("short-rows") >= AT_ONCE / 2 and said.count("long-rows") >= 2, said
