"""fori_loop through the whole pipeline: every stage computes what the Python loop computes, down to the instructions.

tests/trace/test_loops.py runs the HLO of the same kernels with XLA.
"""

import numpy as np
import pytest

from support import compiler, reference
from support.kernels import fori_loops


@pytest.mark.parametrize("name", sorted(fori_loops.KERNELS))
def test_every_stage_computes_what_numpy_computes(name):
    source = fori_loops.source(name)
    result = compiler.compile(source, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    (kernel,) = result["kernels"]
    assert len(kernel["stages"]) == len(compiler.pipeline())
    for stage in kernel["stages"]:
        assert compiler.is_checked(stage), (stage["name"], stage["check"])
    inputs = compiler.random_inputs(kernel)
    reference.assert_nisa(kernel, inputs, reference.run_numpy(source, kernel, inputs))


WHOLE = {"rms norm": "<6| 16>", "row sums": "| 4>", "writes into an input": "<5| 4>"}  # partitions and elements


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_what_is_carried_is_updated_in_place(name):
    """acc[i] = … writes one row in each iteration: nothing copies a whole buffer from memory to memory."""
    (kernel,) = compiler.compile(fori_loops.source(name))["kernels"]
    copies = [line for line in compiler.stage(kernel, "linalg-to-nisa")["text"].split("\n") if "nisa.dma_copy" in line]
    assert copies and not [line for line in copies if WHOLE[name] in line and "sbuf" not in line]


# ---- values that a round hands on to other places --------------------------------------------------------------------

SHAPE, ROUNDS = "f32[8,8]", 5
NEXT = {  # what a place gets: of the values j and k, and w, which stays
    "x{j}": lambda c, w, j, k: c[j], "negate(x{j})": lambda c, w, j, k: -c[j],
    "add(x{j}, x{k})": lambda c, w, j, k: c[j] + c[k], "maximum(x{j}, x{k})": lambda c, w, j, k: np.maximum(c[j], c[k]),
    "reverse(x{j}), dimensions={{1}}": lambda c, w, j, k: c[j][:, ::-1],
    "dot(x{j}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}": lambda c, w, j, k: c[j] @ w,
}


def rotation(rng):
    """HLO of a loop, with a product before it, and the same in NumPy."""
    n = int(rng.integers(2, 5))
    picks = [(str(rng.choice(list(NEXT), p=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1])), *map(int, rng.integers(0, n, 2))) for _ in range(n)]
    types = ", ".join([SHAPE] * (n + 1)) + ", s32[]"
    names = [p.format(j=j, k=k) if p.startswith("x") else f"y{i}" for i, (p, j, k) in enumerate(picks)]
    made = [f"  y{i} = {SHAPE} {p.format(j=j, k=k)}" for i, (p, j, k) in enumerate(picks) if not p.startswith("x")]
    text = "\n".join([
        f"HloModule rotation\n\nbody {{\n  p = ({types}) parameter(0)",
        *[f"  x{i} = {SHAPE} get-tuple-element(p), index={i}" for i in range(n)],
        f"  w = {SHAPE} get-tuple-element(p), index={n}\n  i = s32[] get-tuple-element(p), index={n + 1}",
        "  one = s32[] constant(1)\n  next = s32[] add(i, one)", *made,
        f"  ROOT t = ({types}) tuple({', '.join(names)}, w, next)\n}}\n\ncondition {{\n  p = ({types}) parameter(0)",
        f"  i = s32[] get-tuple-element(p), index={n + 1}\n  n = s32[] constant({ROUNDS})",
        "  ROOT less = pred[] compare(i, n), direction=LT\n}\n\nENTRY main {",
        *[f"  a{i} = {SHAPE} parameter({i})" for i in range(n)], f"  w = {SHAPE} parameter({n})",
        f"  first = {SHAPE} dot(a0, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n  zero = s32[] constant(0)",
        f"  t = ({types}) tuple(first, {', '.join(f'a{i}' for i in range(1, n))}, w, zero)",
        f"  l = ({types}) while(t), condition=condition, body=body",
        *[f"  r{i} = {SHAPE} get-tuple-element(l), index={i}" for i in range(n)],
        f"  ROOT all = ({', '.join([SHAPE] * n)}) tuple({', '.join(f'r{i}' for i in range(n))})\n}}\n"])

    def run(first, *rest):
        *rest, w = rest
        carried = [first @ w, *rest]
        for _ in range(ROUNDS):
            carried = [NEXT[p](carried, w, j, k) for p, j, k in picks]
        return tuple(np.ascontiguousarray(c) for c in carried)

    return text, run


@pytest.mark.parametrize("seed", range(16))
def test_values_that_change_places_in_a_loop_are_not_overwritten_before_their_turn(seed):
    text, run = rotation(np.random.default_rng(seed))
    result = compiler.compile(text, "--language", "hlo", check=True)
    assert result["status"] == "ok", (text, result["diagnostics"])
    (kernel,) = result["kernels"]
    assert all(compiler.is_checked(stage) for stage in kernel["stages"]), text
    inputs = compiler.random_inputs(kernel)
    reference.assert_nisa(kernel, inputs, run(*inputs))
