"""What kernels of NKI beta 1 carry from one round of a loop to the next: t += x, and nl.loop_reduce."""
import numpy as np
import pytest

from support import compiler
from support.nki_beta1 import HEAD
from support.runs import simulated

KERNEL = HEAD + """
@nki.jit
def kernel(a: tensor[512, 64]):
    out = nl.ndarray((128, 64), dtype={dtype}, buffer=nl.shared_hbm)
    ones = nl.load(nl.shared_constant(np.ones((128, 64)), dtype=nl.float32))
    t = nl.copy(ones, dtype={dtype})
    for i in nl.affine_range(4):
        x = nl.load(a[nl.ds(i * 128, 128), :])
        {statement}
    nl.store(out, value=t)
    return out
"""

# the statement, the formula of the four parts and what t is at first, the type of t
CASES = {
    "plus": ("t += x", lambda x: 1 + x.sum(0), "nl.float32"),
    "add": ("t = nl.loop_reduce(x, op=np.add, loop_indices=[i])", lambda x: 1 + x.sum(0), "nl.float32"),
    "max": ("t = nl.loop_reduce(x, op=nl.max, loop_indices=[i], dtype=nl.float32)", lambda x: np.maximum(1, x.max(0)), "nl.float32"),
    "into a tile": ("t[...] = nl.loop_reduce(x, op=np.add, loop_indices=[i])", lambda x: 1 + x.sum(0), "nl.float32"),
    "another type": ("t = nl.loop_reduce(x, np.multiply, [i], dtype=nl.float32)", lambda x: x.prod(0), "nl.bfloat16"),
    "into a part": ("t[:, nl.ds(8 * i, 8)] = nl.loop_reduce(x[:, nl.ds(8 * i, 8)], op=np.add, loop_indices=[i])",
                    lambda x: 1 + np.hstack([x[i][:, 8 * i:8 * i + 8] for i in range(4)] + [np.zeros((128, 32))]), "nl.float32"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_tile_goes_on_from_round_to_round(name):
    statement, formula, dtype = CASES[name]
    source = KERNEL.replace("{statement}", statement).replace("{dtype}", dtype)
    result = compiler.compile(source)
    assert result["status"] == "ok" and not result["diagnostics"], result["diagnostics"]
    a = np.random.default_rng(3).uniform(-2, 2, (512, 64)).astype(np.float32)
    got, _ = simulated(source, {"a": a})
    want = formula(a.reshape(4, 128, 64).astype(np.float64))
    np.testing.assert_allclose(got["out"].astype(np.float64), want, atol=1e-5 if dtype == "nl.float32" else 0.1)


def test_loop_reduce_needs_a_tile_that_was_made_before_the_loop():
    source = KERNEL.replace("{statement}", "u = nl.loop_reduce(x, np.add, [i])").replace("{dtype}", "nl.float32")
    errors = [d for d in compiler.compile(source)["diagnostics"] if d["severity"] == "error"]
    assert errors and "u" in errors[0]["message"], errors


def test_another_assignment_in_a_loop_is_a_new_tensor():
    source = KERNEL.replace("{statement}", "t = nl.copy(x)").replace("{dtype}", "nl.float32")
    [d] = compiler.compile(source)["diagnostics"]
    assert d["code"] == "nki-scope" and d["severity"] == "warning" and "new tensor in each round" in d["message"]


@pytest.mark.parametrize("identity", ["nl.shared_identity_matrix(64, dtype=nl.bfloat16)", "nl.shared_constant(np.identity(64), dtype=nl.bfloat16)"])
def test_a_product_with_a_constant_identity_transposes_and_keeps_the_type(identity):
    source = HEAD + f"""
@nki.jit
def kernel(a: tensor[nl.bfloat16, (64, 96)]):
    out = nl.ndarray((96, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    turned = nisa.nc_matmul(t, nl.load({identity}), is_moving_onezero=True, is_transpose=True)
    assert turned.dtype == nl.bfloat16
    with nl.no_reorder():
        nl.store(out, value=nl.copy(turned))
    return out
"""
    a = np.random.default_rng(4).uniform(-2, 2, (64, 96)).astype(np.float32).astype(compiler.dtype("bfloat16"))
    assert (simulated(source, {"a": a})[0]["out"] == a.T).all()
