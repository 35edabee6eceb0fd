"""Engines side by side: three engines work on one tile at the same time."""
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def three_engines(x):
    exps = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    scaled = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    doubled = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)

    # Each engine has a program of its own; none of these three waits for another. See `engine-programs`, and the
    # timeline of a run: the lanes overlap.
    e = nl.ndarray(t.shape, t.dtype)
    nisa.activation(dst=e, op=nl.exp, data=t)  # Scalar: functions from a table

    s = nl.ndarray(t.shape, t.dtype)
    nisa.tensor_scalar(dst=s, data=t, op0=nl.multiply, operand0=0.5, op1=nl.add, operand1=1.0)  # Vector: two operations in one

    d = nl.ndarray(t.shape, t.dtype)
    nisa.tensor_tensor(dst=d, data1=t, data2=t, op=nl.add, engine=nisa.gpsimd_engine)  # GpSimd: it can, but slowly

    nl.store(exps, e)
    nl.store(scaled, s)
    nl.store(doubled, d)
    return exps, scaled, doubled


if __name__ == "__main__":
    x = np.random.rand(128, 512).astype(np.float32)
    exps, scaled, doubled = nki.simulate(three_engines)(x)
    assert np.allclose(exps, np.exp(x), rtol=1e-5)
    assert np.allclose(scaled, x * 0.5 + 1) and np.array_equal(doubled, x + x)
