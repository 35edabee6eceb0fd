"""PSUM: products with a long sum accumulate in a bank."""
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

K_TILE = nl.tile_size.pmax  # 128: the axis that is summed is the partitions of both operands


@nki.jit
def product(lhs_t, rhs):
    """lhs_t.T @ rhs"""
    k_size, m = lhs_t.shape
    n = rhs.shape[1]
    out = nl.ndarray((m, n), nl.float32, buffer=nl.shared_hbm)

    # One bank of PSUM: 128 partitions of 512 elements of float32. The first product overwrites it, the others add.
    acc = nl.ndarray((m, n), nl.float32, buffer=nl.psum)
    for k in range(k_size // K_TILE):
        stationary = nl.load(lhs_t[nl.ds(k * K_TILE, K_TILE), :])
        moving = nl.load(rhs[nl.ds(k * K_TILE, K_TILE), :])
        nisa.nc_matmul(dst=acc, stationary=stationary, moving=moving)

    # DMA does not read PSUM: an engine copies the result to SBUF first.
    result = nl.ndarray((m, n), nl.float32)
    nisa.tensor_copy(dst=result, src=acc)
    nl.store(out, result)
    return out


if __name__ == "__main__":
    lhs_t = np.random.rand(512, 128).astype(np.float32)
    rhs = np.random.rand(512, 512).astype(np.float32)
    assert np.allclose(nki.simulate(product)(lhs_t, rhs), lhs_t.T @ rhs, rtol=1e-4)
