"""Rows of HBM that numbers select, additions in HBM, and writes to given tiles, in NKI beta 1."""
import numpy as np
import pytest

from support import compiler
from support.nki_beta1 import HEAD
from support.runs import simulated

KERNEL = HEAD + """
@nki.jit
def kernel(table: {table}[512, 64], rows: tensor[nl.int32, (128, 1)], x: tensor[128, 64]):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    ip, jf = nl.arange(128)[:, None], nl.arange(64)[None, :]
    idx, v = nl.load(rows), nl.load(x)
    {statement}
    {end}
"""
OUT, TABLE = "return out", "return table"
RNG = np.random.default_rng(7)
A, R, X = RNG.uniform(-1, 1, (512, 64)).astype("f4"), RNG.permutation(512)[:128].astype("i4")[:, None], RNG.uniform(-1, 1, (128, 64)).astype("f4")
SHUFFLE = [*range(1, 32), 0]


def written(part, value):
    a = A.copy()
    a[part] = value
    return a


# the statement, what is returned, and its value
CASES = {
    "load": ("nl.store(out, nl.load(table[idx[ip, 0], jf]))", OUT, lambda: A[R[:, 0]]),
    "load of a part": ("nl.store(out[ip, jf], value=nl.add(nl.load(table[idx[ip, 0], 63 - jf + 2 * jf - 63]), 1.0))", OUT, lambda: A[R[:, 0]] + 1),
    "load with a slice": ("nl.store(out[:, 0:32], nl.load(table[idx, 32:64])); nl.store(out[:, 32:64], v[:, 0:32])", OUT,
                          lambda: np.hstack([A[R[:, 0], 32:], X[:, :32]])),
    "load with a mask": ("nl.store(out, v); nl.store(out, nl.load(table[idx[ip, 0], jf], mask=(ip < 40)), mask=(ip < 40))", OUT,
                         lambda: np.where(np.arange(128)[:, None] < 40, A[R[:, 0]], X)),
    "store": ("nl.store(table[idx[ip, 0], jf], v)", TABLE, lambda: written(R[:, 0], X)),
    "store of a part": ("nl.store(table[idx[ip, 0], jf], v, mask=(jf < 8))", TABLE, lambda: np.hstack([written(R[:, 0], X)[:, :8], A[:, 8:]])),
    "copy": ("w = nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf); nisa.dma_copy(dst=w, src=table[idx[ip, 0], jf]); nl.store(out, w)", OUT, lambda: A[R[:, 0]]),
    "addition to rows": ("nl.atomic_rmw(table[idx[ip, 0], jf], value=v, op=np.add)", TABLE, lambda: written(R[:, 0], A[R[:, 0]] + X)),
    "addition": ("nl.atomic_rmw(table[ip + 128, jf], value=v, op=nl.add)", TABLE, lambda: written(slice(128, 256), A[128:256] + X)),
    "copy that adds": ("nisa.dma_copy(dst=table[ip + 64, jf], src=v, dst_rmw_op=np.add)", TABLE, lambda: written(slice(64, 192), A[64:192] + X)),
    "shuffle": (f"w = nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf); nisa.nc_stream_shuffle(v, w, {SHUFFLE}); nl.store(out, w)", OUT,
                lambda: X.reshape(4, 32, 64)[:, SHUFFLE].reshape(128, 64)),
}


def source(statement, end):
    return KERNEL.format(statement=statement, end=end, table="nl.mutable_tensor" if end == TABLE else "tensor")


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_numpys(name):
    statement, end, want = CASES[name]
    got, _ = simulated(source(statement, end), {"table": A, "rows": R, "x": X})
    np.testing.assert_allclose(list(got.values())[0], want(), rtol=1e-6, atol=1e-6)


REFUSED = {
    "nl.store(out, nl.load(table[0, idx[ip, 0]]))": ("nki-bounds", "selects rows of the first axis only"),
    "nl.store(out, nl.load(table[v, jf]))": ("nki-bounds", "the row numbers have the shape (128, 64)"),
    "nl.store(out, v[idx[ip, 0], jf])": ("nki-unsupported", "on chip"),
    "nl.store(out, table[idx[ip, 0], jf])": ("nki-call", "stores a tile"),
    "nl.atomic_rmw(out, value=v, op=np.multiply)": ("nki-operator", "adds"),
}


@pytest.mark.parametrize("statement", REFUSED)
def test_what_rows_cannot_be_is_refused(statement):
    code, message = REFUSED[statement]
    errors = [d for d in compiler.compile(source(statement, OUT))["diagnostics"] if d["severity"] == "error"]
    assert errors and errors[0]["code"] == code and message in errors[0]["message"], errors
