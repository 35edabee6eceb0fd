"""Edges and masks: 300 rows in tiles of 128, and a causal mask."""
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

P = nl.tile_size.pmax


@nki.jit
def scaled_rows(x):
    """The last tile is smaller. Loops are unrolled, so its size is a Python number, and no mask is needed."""
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for start in range(0, x.shape[0], P):
        size = min(P, x.shape[0] - start)
        t = nl.load(x[nl.ds(start, size), :])
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
        nl.store(out[nl.ds(start, size), :], t)
    return out


@nki.jit
def causal(scores):
    """Elements right of the diagonal become -10000: where column > row, that is row - column < 0."""
    out = nl.ndarray(scores.shape, scores.dtype, buffer=nl.shared_hbm)
    rows, columns = scores.shape
    t, kept = nl.load(scores), nl.ndarray(scores.shape, scores.dtype)
    # offset + partition * channel_multiplier + index * step, compared with 0: no mask is loaded, none is stored
    nisa.affine_select(dst=kept, pattern=[[-1, columns]], offset=0, channel_multiplier=1, on_true_tile=t,
                       on_false_value=-10000.0, cmp_op=nl.greater_equal)
    nl.store(out, kept)
    return out


if __name__ == "__main__":
    x = np.random.rand(300, 256).astype(np.float32)
    assert np.array_equal(nki.simulate(scaled_rows)(x), 2 * x)
    scores = np.random.rand(128, 128).astype(np.float32)
    assert np.array_equal(nki.simulate(causal)(scores), np.where(np.tri(128, dtype=bool), scores, -10000))
