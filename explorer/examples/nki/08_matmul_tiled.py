"""Matmul: tiled, and then with the loads hoisted out of the loops."""
import ml_dtypes
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

TM, TK, TN = nl.tile_size.gemm_stationary_fmax, nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax  # 128, 128, 512


def store_tile(out, m, n, acc):
    """Helpers are ordinary functions; what they call is recorded in the kernel."""
    result = nl.ndarray(acc.shape, out.dtype)
    nisa.tensor_copy(dst=result, src=acc)
    nl.store(out[nl.ds(m * TM, TM), nl.ds(n * TN, TN)], result)


@nki.jit
def tiled(lhs_t, rhs):
    """Every product loads its two tiles: rhs is loaded once for each m."""
    (k_size, m_size), n_size = lhs_t.shape, rhs.shape[1]
    out = nl.ndarray((m_size, n_size), lhs_t.dtype, buffer=nl.shared_hbm)
    for m in range(m_size // TM):
        for n in range(n_size // TN):
            acc = nl.ndarray((TM, TN), nl.float32, buffer=nl.psum)
            for k in range(k_size // TK):
                stationary = nl.load(lhs_t[nl.ds(k * TK, TK), nl.ds(m * TM, TM)])
                moving = nl.load(rhs[nl.ds(k * TK, TK), nl.ds(n * TN, TN)])
                nisa.nc_matmul(dst=acc, stationary=stationary, moving=moving)
            store_tile(out, m, n, acc)
    return out


@nki.jit
def hoisted(lhs_t, rhs):
    """The tiles of a column of rhs stay in SBUF for all m, and each is loaded once."""
    (k_size, m_size), n_size = lhs_t.shape, rhs.shape[1]
    out = nl.ndarray((m_size, n_size), lhs_t.dtype, buffer=nl.shared_hbm)
    # A list of tiles is a Python list. All of lhs_t fits, too: 2 bytes * 256 columns * 2 tiles in each partition.
    left = [nl.load(lhs_t[nl.ds(k * TK, TK), :]) for k in range(k_size // TK)]
    for n in range(n_size // TN):
        right = [nl.load(rhs[nl.ds(k * TK, TK), nl.ds(n * TN, TN)]) for k in range(k_size // TK)]
        for m in range(m_size // TM):
            acc = nl.ndarray((TM, TN), nl.float32, buffer=nl.psum)
            for k in range(k_size // TK):
                nisa.nc_matmul(dst=acc, stationary=left[k][:, nl.ds(m * TM, TM)], moving=right[k])
            store_tile(out, m, n, acc)
    return out


# Compare the two: pin `tiled`, then choose `hoisted` in the list of kernels.
if __name__ == "__main__":
    lhs_t = np.random.rand(256, 256).astype(ml_dtypes.bfloat16)
    rhs = np.random.rand(256, 1024).astype(ml_dtypes.bfloat16)
    want = lhs_t.astype(np.float32).T @ rhs.astype(np.float32)
    for kernel in (tiled, hoisted):
        assert np.allclose(nki.simulate(kernel)(lhs_t, rhs).astype(np.float32), want, rtol=0.02)
