"""Scans: a recurrence along the free axis is one instruction."""
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

TILE = 256


@nki.jit
def recurrence(decay, x):
    """h[i] = decay[i] * h[i - 1] + x[i], as in a state-space model; each partition is a channel of its own."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    channels, length = x.shape

    # A long sequence is scanned tile by tile: the last element of a tile starts the next, so the rounds are a chain.
    state = nl.zeros((channels, 1), nl.float32)
    for i in range(length // TILE):
        here = nl.ds(i * TILE, TILE)
        a, b = nl.load(decay[:, here]), nl.load(x[:, here])
        h = nl.ndarray((channels, TILE), nl.float32)
        nisa.tensor_tensor_scan(dst=h, data0=a, data1=b, initial=state, op0=nl.multiply, op1=nl.add)
        nl.store(out[:, here], h)
        nisa.tensor_copy(dst=state, src=h[:, TILE - 1:TILE])
    return out


if __name__ == "__main__":
    decay = np.random.rand(128, 512).astype(np.float32)
    x = np.random.rand(128, 512).astype(np.float32)
    want, h = np.empty_like(x), np.zeros(128, np.float32)
    for i in range(x.shape[1]):
        want[:, i] = h = decay[:, i] * h + x[:, i]
    assert np.allclose(nki.simulate(recurrence)(decay, x), want, rtol=1e-4)
