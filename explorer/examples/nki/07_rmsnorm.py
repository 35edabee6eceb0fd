"""RMS norm: a row of weights for all partitions."""
import ml_dtypes
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

P = nl.tile_size.pmax


@nki.jit
def rmsnorm(x, weights, eps=1e-5):
    columns = x.shape[1]
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)

    # An operand of an instruction has a row in every partition. DMA repeats the one row of the weights 128 times; a view
    # with stride 0 says so, and the loop below uses the copy in every round.
    w = nl.ndarray((P, columns), nl.float32)
    nisa.dma_copy(dst=w, src=weights.broadcast(0, P))

    for i in range(x.shape[0] // P):
        t = nl.load(x[nl.ds(i * P, P), :], dtype=nl.float32)  # bfloat16 in HBM, computed in float32

        squares, scale = nl.ndarray(t.shape, nl.float32), nl.ndarray((P, 1), nl.float32)
        nisa.activation_reduce(dst=squares, op=nl.square, data=t, reduce_op=nl.add, reduce_res=scale)
        # 1 / sqrt(sum / n + eps): a number for each partition
        nisa.tensor_scalar(dst=scale, data=scale, op0=nl.multiply, operand0=1.0 / columns, op1=nl.add, operand1=eps)
        nisa.activation(dst=scale, op=nl.rsqrt, data=scale)

        y = nl.ndarray(t.shape, x.dtype)
        nisa.scalar_tensor_tensor(dst=y, data=t, op0=nl.multiply, operand0=scale, op1=nl.multiply, operand1=w)
        nl.store(out[nl.ds(i * P, P), :], y)
    return out


if __name__ == "__main__":
    x = np.random.randn(256, 384).astype(ml_dtypes.bfloat16)
    weights = np.random.rand(1, 384).astype(np.float32)
    wide = x.astype(np.float32)
    want = wide / np.sqrt((wide * wide).mean(1, keepdims=True) + 1e-5) * weights
    assert np.allclose(nki.simulate(rmsnorm)(x, weights).astype(np.float32), want, rtol=0.02, atol=0.02)
