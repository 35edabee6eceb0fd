"""Rounds of affine_range of beta 1 are independent: two of them may not overwrite the same place."""
import itertools

import pytest

from support import compiler

HEAD = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from neuronxcc.nki.typing import tensor

@nki.jit
def kernel(x: tensor[nl.float32, [128, 2048]]):
    out = nl.ndarray((256, 2048), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((nl.par_dim(128), 512), dtype=x.dtype, buffer=nl.sbuf)
    s = nl.load(x[:, 0:512])
    nl.store(out[128:256, 0:512], s)
"""
STORE = "        nl.store(out[0:128, nl.ds({}, 512)], s)\n"
REFUSED = {
    "a tile that was made before the loop": ("    for i in nl.affine_range(4):\n        «t[...] = nl.load(x[:, nl.ds(i * 512, 512)])»\n"
                                              "        nl.store(out[0:128, nl.ds(i * 512, 512)], t)\n", "of t in line"),
    "results that overlap": ("    for i in nl.affine_range(3):\n        «nl.store(out[0:128, nl.ds(i * 500, 512)], s)»\n", "of out in line"),
    "two statements": ("    for i in nl.affine_range(3):\n" + STORE.format("i * 512") + STORE.format("i * 512 + 512"), "of out in line"),
    "the outer of two loops": ("    for i in nl.affine_range(2):\n        for j in nl.sequential_range(2):\n"
                               "            «nl.store(out[0:128, nl.ds(j * 512, 512)], s)»\n", "of out in line"),
    "rounds with a step that meet": ("    for i in nl.affine_range(2):\n        «nl.store(out[0:128, 3 * i:2048:(2 + i)], nl.load(x[:, 3 * i:2048:(2 + i)]))»\n", "of out"),
}
TAKEN = {
    "a tile of each round": "    for i in nl.affine_range(4):\n        y = nl.load(x[:, nl.ds(i * 512, 512)])\n        nl.store(out[0:128, nl.ds(i * 512, 512)], y)\n",
    "a sum": "    for i in nl.affine_range(4):\n        s += nl.load(x[:, nl.ds(i * 512, 512)])\n    nl.store(out[0:128, 0:512], s)\n",
    "a loop in order": "    for i in nl.sequential_range(3):\n" + STORE.format("i * 500"),
    "two loops": "    for i in nl.affine_range(3):\n" + STORE.format("i * 512") + "    for i in nl.affine_range(3):\n" + STORE.format("i * 512"),
    "an inner loop that ran before": ("    for i in nl.sequential_range(2):\n        for j in nl.affine_range(2):\n"
                                      "            nl.store(out[0:128, nl.ds(j * 512, 512)], s)\n"),
    "every second element": "    for i in nl.affine_range(2):\n        nl.store(out[0:128, i:2048:2], nl.load(x[:, i:2048:2]))\n",
    "a tile twice in one round": ("    for i in nl.affine_range(2):\n        y = nl.ndarray((nl.par_dim(128), 512), dtype=x.dtype)\n"
                                  "        y[...] = s\n        y[...] = nl.exp(s)\n        nl.store(out[0:128, nl.ds(i * 512, 512)], y)\n"),
}


def found(body):
    source = HEAD + body.replace("«", "").replace("»", "") + "    return out\n"
    return source, [d for d in compiler.compile(source, "--stop-after", "nki-trace")["diagnostics"] if d["severity"] == "error"]


@pytest.mark.parametrize("name", REFUSED)
def test_overwriting_another_round_is_refused(name):
    body, message = REFUSED[name]
    source, errors = found(body)
    assert [d["code"] for d in errors] == ["nki-affine-dependence"], errors
    assert message in errors[0]["message"] and "nl.sequential_range" in errors[0]["hint"]
    if "«" in body:
        line = next(i for i, text in enumerate((HEAD + body).splitlines(), 1) if "«" in text)
        text = (HEAD + body).splitlines()[line - 1]
        got = errors[0]["range"]
        assert got["line"] == line and got["col"] >= text.index("«") + 1 and got["end_col"] <= text.index("»") + 1


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_independent_is_taken(name):
    assert found(TAKEN[name])[1] == []


def test_the_answer_is_that_of_sets_of_elements():
    """Stores of random parts by two rounds of one loop: refused if and only if a set of their elements says that they meet."""
    import numpy as np
    rng = np.random.default_rng(7)
    for _ in range(25):
        (r0, c0, cs, cn), (r1, c1, ds, dn) = [(int(rng.integers(0, 40)), int(rng.integers(0, 30)), int(rng.integers(1, 4)), int(rng.integers(1, 9)))
                                              for _ in range(2)]
        parts = [(r0, c0, cs, cn), (r1, c1, ds, dn)]
        sets = [set(itertools.product(range(r, r + 24), range(c, c + s * n, s))) for r, c, s, n in parts]
        body = f"    parts = {parts}\n    for i in nl.affine_range(2):\n        r, c, s, n = parts[i]\n" \
               "        nl.store(out[r:r + 24, c:c + s * n:s], nl.load(x[0:24, 0:n]))\n"
        source, errors = found(body)
        assert [d["code"] for d in errors] == (["nki-affine-dependence"] if sets[0] & sets[1] else []), (parts, errors)
