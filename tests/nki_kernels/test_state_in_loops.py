"""Calls that go on with what earlier ones left, and calls with parts, in loops that become loops of instructions."""
import pytest

from support import compiler
from support.nki_kernels import HEAD

KERNELS = {
    "registers of Scalar over rounds": """
@nki.jit
def kernel(a: nl.tensor[nl.float32, (128, 2048)]):
    out = nl.ndarray((128, 1), nl.float32, buffer=nl.shared_hbm)
    total, t = nl.ndarray((128, 1), nl.float32), nl.ndarray((128, 256), nl.float32)
    nisa.activation(t, nl.square, nl.load(a[:, 0:256]), reduce_op=nl.add, reduce_cmd=nisa.reduce_cmd.reset_reduce)
    for i in nl.affine_range(1, 8):
        x = nl.load(a[:, i * 256:(i + 1) * 256])
        nisa.activation(t, nl.square, x, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reduce)
    nl.store(out, total)
    return out
""",
    "registers of Vector by partitions": """
@nki.jit
def kernel(a: nl.tensor[nl.float32, (128, 256)]):
    out = nl.ndarray((128, 1), nl.float32, buffer=nl.shared_hbm)
    x, t, r = nl.load(a), nl.ndarray((128, 256), nl.float32), nl.ndarray((128, 1), nl.float32)
    for i in nl.affine_range(4):
        p = slice(i * 32, (i + 1) * 32)
        nisa.tensor_scalar_reduce(t[p], x[p], nl.multiply, 2.0, nl.maximum)
    for i in nl.affine_range(4):
        p = slice(i * 32, (i + 1) * 32)
        nisa.tensor_scalar_reduce(t[p], x[p], nl.add, 1.0, nl.maximum, r[p], reduce_cmd=nisa.reduce_cmd.reduce)
    nl.store(out, r)
    return out
""",
    "ranges, shuffles and constants": """
@nki.jit
def kernel(a: nl.tensor[nl.float32, (128, 512)]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    weights = nl.shared_constant(np.arange(512, dtype=np.float32).reshape(1, 512))
    for i in nl.affine_range(4):
        c = slice(i * 128, (i + 1) * 128)
        x, y = nl.load(a[:, c]), nl.ndarray((128, 128), nl.float32)
        nisa.nc_stream_shuffle(y, x, [(k + 5) % 32 for k in range(32)])
        nisa.range_select(y, y, nl.greater_equal, nl.less, 10.0, 100.0, on_false_value=0.0)
        w = nl.load(weights[:, c])
        nisa.tensor_tensor(y[0:1], y[0:1], w, nl.add)
        nl.store(out[:, c], y)
    return out
""",
    "rows by number": """
@nki.jit
def kernel(a: nl.tensor[nl.float32, (16, 256)], i: nl.tensor[nl.uint32, (128, 1)]):
    out = nl.ndarray((128, 256), a.dtype, buffer=nl.shared_hbm)
    rows = nl.load(i)
    for k in nl.affine_range(4):
        x = nl.ndarray((128, 64), nl.float32)
        nisa.dma_copy(x, a.ap([[256, 128], [1, 64]], offset=k * 64, vector_offset=rows))
        nl.store(out[:, k * 64:(k + 1) * 64], x)
    return out
""",
    "random numbers": """
@nki.jit
def kernel(a: nl.tensor[nl.float32, (64, 256)]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.random_seed(7)
    for k in nl.affine_range(4):
        c = slice(k * 64, (k + 1) * 64)
        nl.store(out[:, c], nl.dropout(nl.load(a[:, c]), 0.25))
    return out
""",
}


@pytest.mark.parametrize("target", ["trn2", "trn3"])
@pytest.mark.parametrize("name", KERNELS)
def test_every_stage_computes_what_the_calls_do(name, target):
    result = compiler.compile(HEAD + KERNELS[name], "--target", target, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    [kernel] = result["kernels"]
    checks = [s["check"]["status"] for s in kernel["stages"]]
    assert "pass" in checks and set(checks) <= {"skipped", "pass"} and checks[-1] == "pass", [s["check"] for s in kernel["stages"]]
