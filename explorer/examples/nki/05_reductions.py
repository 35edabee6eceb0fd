"""Reductions: along the free axis, together with another operation, across partitions."""
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def reductions(x):
    rows, columns = x.shape
    largest = nl.ndarray((rows, 1), x.dtype, buffer=nl.shared_hbm)
    squares = nl.ndarray((rows, 1), x.dtype, buffer=nl.shared_hbm)
    totals = nl.ndarray((1, columns), x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)

    # The Vector engine reduces the last axes: each partition gives one element.
    m = nl.ndarray((rows, 1), x.dtype)
    nisa.tensor_reduce(dst=m, op=nl.maximum, data=t, axis=1)
    nl.store(largest, m)

    # The Scalar engine sums what it computes on the way: the squares and their sum are one instruction.
    q, s = nl.ndarray(t.shape, x.dtype), nl.ndarray((rows, 1), x.dtype)
    nisa.activation_reduce(dst=q, op=nl.square, data=t, reduce_op=nl.add, reduce_res=s)
    nl.store(squares, s)

    # Across partitions a product with ones is the fastest sum: ones.T @ t.
    ones = nl.ones((rows, 1), x.dtype)
    p = nl.ndarray((1, columns), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=ones, moving=t)
    c = nl.ndarray((1, columns), x.dtype)
    nisa.tensor_copy(dst=c, src=p)
    nl.store(totals, c)
    return largest, squares, totals


if __name__ == "__main__":
    x = np.random.rand(128, 512).astype(np.float32)
    largest, squares, totals = nki.simulate(reductions)(x)
    assert np.array_equal(largest, x.max(1, keepdims=True))
    assert np.allclose(squares, (x * x).sum(1, keepdims=True), rtol=1e-4)
    assert np.allclose(totals, x.sum(0, keepdims=True), rtol=1e-4)
