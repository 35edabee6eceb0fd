"""Double buffering: the next tile is loaded while this one is computed."""
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

P = nl.tile_size.pmax


def work(t):
    for _ in range(3):
        nisa.activation(dst=t, op=nl.tanh, data=t)


@nki.jit
def one_buffer(x):
    """The load of a round waits until the store of the round before has read the buffer."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((P, x.shape[1]), x.dtype)
    for i in range(x.shape[0] // P):
        nisa.dma_copy(dst=t, src=x[nl.ds(i * P, P), :])
        work(t)
        nisa.dma_copy(dst=out[nl.ds(i * P, P), :], src=t)
    return out


@nki.jit
def two_buffers(x):
    """Two tensors take turns: in the timeline of a run, transfers and the Scalar engine overlap."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    buffers = [nl.ndarray((P, x.shape[1]), x.dtype) for _ in range(2)]
    for i in range(x.shape[0] // P):
        t = buffers[i % 2]
        nisa.dma_copy(dst=t, src=x[nl.ds(i * P, P), :])
        work(t)
        nisa.dma_copy(dst=out[nl.ds(i * P, P), :], src=t)
    return out


# A tensor that is made in the loop is a new one in each round, as in the other examples: then the compiler chooses.
if __name__ == "__main__":
    x = np.random.randn(768, 512).astype(np.float32)
    want = np.tanh(np.tanh(np.tanh(x)))
    for kernel in (one_buffer, two_buffers):
        assert np.allclose(nki.simulate(kernel)(x), want, rtol=1e-3, atol=1e-5)
