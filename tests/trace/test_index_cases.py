"""Random index expressions, for reading and for writing: NumPy against XLA on our HLO.

    NKX_INDEX_CASES=3000 pytest tests/trace/test_index_cases.py     # that many for reading and as many for writing
"""
import os
import random

import numpy as np
import pytest

from support.oracles import xla

TOTAL = int(os.environ.get("NKX_INDEX_CASES", "200"))
BATCH = 50
SHAPE = {1: (7,), 2: (4, 5), 3: (3, 4, 5), 4: (2, 3, 4, 3)}
# traced arrays of indices: valid for every axis of at least 2, negative ones included
TRACED = {"i": (3,), "j": (2, 3), "k": ()}


def slice_text(r, n):
    bound = lambda: r.choice(["", str(r.randint(-n - 2, n + 2))])
    return f"{bound()}:{bound()}" + r.choice(["", "", f":{r.choice([1, 2, 3, -1, -2])}"])


def array_text(r, n, traced):
    """One index array; all of a key broadcast with each other."""
    if traced and r.random() < 0.5:
        return r.choice(list(TRACED))
    return r.choice([str([r.randrange(-n, n) for _ in range(3)]), str([[r.randrange(-n, n)], [r.randrange(-n, n)]]),
                     f"np.array({[r.randrange(n) for _ in range(3)]})"])


def key(r, rank, traced):
    """An index expression for an array of SHAPE[rank]."""
    parts, left, shape = [], r.randint(0, rank), SHAPE[rank]
    arrays = r.random() < 0.5
    dots = r.random() < 0.3
    where = r.randint(0, left) if dots else -1
    for at in range(left):
        if at == where:
            parts.append("...")
        n = shape[at] if not dots or at < where else shape[rank - left + at]
        kind = r.random()
        if arrays and kind < 0.5:
            parts.append(array_text(r, n, traced))
        elif kind < 0.7:
            parts.append(slice_text(r, n))
        else:
            parts.append(str(r.randrange(-n, n)))
        if r.random() < 0.12:
            parts.append("None")
    if where == left:
        parts.append("...")
    if arrays and r.random() < 0.1 and rank > 1:
        return f"np.arange({shape[0] * shape[1]}).reshape({shape[:2]}) % {r.randint(2, 3)} == 0"  # a mask
    return ", ".join(parts) or "..."


def inputs(seed):
    rng = np.random.default_rng(seed)
    made = {f"x{n}": rng.uniform(-4, 4, s).astype(np.float32) for n, s in SHAPE.items()}
    made |= {n: rng.integers(-2, 2, s).astype(np.int32) for n, s in TRACED.items()}
    return made


def agree(source, arrays):
    space = {}
    exec(source, space)
    want = space["kernel"](*[a.copy() for a in arrays.values()])
    kernel = xla.trace(source, inputs=[(n, a.shape, a.dtype.name) for n, a in arrays.items()])
    got = xla.run(kernel["proto"], list(arrays.values()))
    for n, (g, w) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_array_equal(g, np.asarray(w), err_msg=source.splitlines()[5 + n] if len(got) > 1 else source)


def draw(r, arrays, ok, made):
    """Keys that NumPy takes; made(rank, key) is what is run."""
    keys = []
    while len(keys) < BATCH:
        rank = r.choice(list(SHAPE))
        k = key(r, rank, r.random() < 0.5)
        try:
            ok(arrays[f"x{rank}"].copy(), eval(f"np.s_[{k}]", {"np": np, **arrays}))
        except (IndexError, ValueError):
            continue
        keys.append(made(rank, k))
    return keys


@pytest.mark.parametrize("batch", range(max(1, TOTAL // BATCH)))
def test_reading(batch):
    arrays = inputs(batch)
    lines = draw(random.Random(batch), arrays, lambda x, k: x[k], lambda rank, k: f"        x{rank}[{k}],\n")
    agree(f"import numpy as np\n\n\ndef kernel({', '.join(arrays)}):\n    return (\n{''.join(lines)}    )\n", arrays)


@pytest.mark.parametrize("batch", range(max(1, TOTAL // BATCH)))
def test_writing(batch):
    arrays, r = inputs(batch), random.Random(-batch - 1)

    def ok(x, k):  # places that are written twice depend on the order: leave them out
        count = np.zeros(x.shape, int)
        np.add.at(count, k, 1)
        if count.size and count.max() > 1:
            raise IndexError
        x[k] = x[k] * 2

    def made(rank, k):
        value = r.choice(["3", f"x{rank}[{k}] * 2", f"np.ones(np.shape(x{rank}[{k}]), np.int8)"])
        return f"        stored(lambda y: y.__setitem__(np.s_[{k}], {value}), x{rank}),\n"

    lines = draw(r, arrays, ok, made)
    source = ("import numpy as np\ndef stored(w, x): y = x + 0; w(y); return y\n\n"
              f"def kernel({', '.join(arrays)}):\n    return (\n{''.join(lines)}    )\n")
    agree(source, arrays)
