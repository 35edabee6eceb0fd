"""Softmax: four instructions for each tile."""
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

P = nl.tile_size.pmax


@nki.jit
def softmax(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for i in range(x.shape[0] // P):
        t = nl.load(x[nl.ds(i * P, P), :])

        # exp(x) overflows for large x, so the largest element of the row is taken away first. `negate` gives -max, which
        # the next instruction can add as its bias.
        top = nl.ndarray((P, 1), nl.float32)
        nisa.tensor_reduce(dst=top, op=nl.maximum, data=t, axis=1, negate=True)

        # exp(x - max), and its sum along the row, in one pass over the data
        e, total = nl.ndarray(t.shape, nl.float32), nl.ndarray((P, 1), nl.float32)
        nisa.activation_reduce(dst=e, op=nl.exp, data=t, bias=top, reduce_op=nl.add, reduce_res=total)

        # One reciprocal for each row, and a product for each element: no engine divides.
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=t, data=e, op0=nl.multiply, operand0=total)
        nl.store(out[nl.ds(i * P, P), :], t)
    return out


if __name__ == "__main__":
    x = np.random.randn(256, 512).astype(np.float32)
    e = np.exp(x - x.max(1, keepdims=True))
    assert np.allclose(nki.simulate(softmax)(x), e / e.sum(1, keepdims=True), rtol=1e-4)
