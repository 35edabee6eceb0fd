"""Products of microscaled elements (trn3): lhsT.T @ rhs with lhsT of shape (K, M) and rhs of shape (K, N)."""
import nki
import nki.isa as nisa
import nki.language as nl

from mx_helpers import P, PACK, interleaved, quantized


@nki.jit
def mx_matmul(lhsT, rhs):
    """One tile: both sides are quantized here."""
    m, n = lhsT.shape[1], rhs.shape[1]
    out = nl.ndarray((m, n), nl.bfloat16, buffer=nl.shared_hbm)
    left, left_scale = quantized(interleaved(lhsT), nl.float8_e4m3fn_x4)
    right, right_scale = quantized(interleaved(rhs), nl.float8_e4m3fn_x4)
    psum = nl.ndarray((m, n), nl.float32, buffer=nl.psum)
    nisa.nc_matmul_mx(dst=psum, stationary=left, moving=right, stationary_scale=left_scale, moving_scale=right_scale)
    result = nl.ndarray((m, n), nl.bfloat16, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=psum)
    nisa.dma_copy(dst=out, src=result)
    return out


@nki.jit
def mx_matmul_tiled(lhsT, rhs):
    """Several tiles of K, M and N; the right side with more range and fewer digits."""
    (k, m), n = lhsT.shape, rhs.shape[1]
    out = nl.ndarray((m, n), nl.float32, buffer=nl.shared_hbm)
    K = P * PACK
    rights = [quantized(interleaved(rhs[i * K:(i + 1) * K, :]), nl.float8_e5m2_x4) for i in range(k // K)]
    for j in nl.affine_range(m // P):
        psum = nl.ndarray((P, n), nl.float32, buffer=nl.psum)
        for i in nl.affine_range(k // K):
            left, left_scale = quantized(interleaved(lhsT[i * K:(i + 1) * K, j * P:(j + 1) * P]), nl.float8_e4m3fn_x4)
            nisa.nc_matmul_mx(dst=psum, stationary=left, moving=rights[i][0], stationary_scale=left_scale, moving_scale=rights[i][1])
        result = nl.ndarray((P, n), nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=psum)
        nisa.dma_copy(dst=out[j * P:(j + 1) * P, :], src=result)
    return out


@nki.jit
def mx_matmul_of_weights(weights, scales, rhs):
    """The left side was packed before: weights (128, M) in uint32, four fp8 numbers each, scales (16, M), one for eight
    partitions.  Scales of four groups stand at the begin of each quadrant."""
    m, n = weights.shape[1], rhs.shape[1]
    out = nl.ndarray((m, n), nl.float32, buffer=nl.shared_hbm)
    left = nl.ndarray((P, m), nl.float8_e4m3fn_x4, buffer=nl.sbuf)
    left_scale = nl.ndarray((P, m), nl.uint8, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=weights)
    nisa.memset(dst=left_scale, value=0)
    for quadrant in range(4):
        nisa.dma_copy(dst=left_scale[quadrant * 32:quadrant * 32 + 4, :], src=scales[quadrant * 4:quadrant * 4 + 4, :])
    right, right_scale = quantized(interleaved(rhs), nl.float8_e4m3fn_x4)
    psum = nl.ndarray((m, n), nl.float32, buffer=nl.psum)
    nisa.nc_matmul_mx(dst=psum, stationary=left, moving=right, stationary_scale=left_scale, moving_scale=right_scale)
    result = nl.ndarray((m, n), nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=psum)
    nisa.dma_copy(dst=out, src=result)
    return out
