"""Kernels of NKI beta 1 in the style of the public tutorials: layers whose last tile is smaller, and fused attention.

KERNELS: as of nki_beta1.py."""
import numpy as np

LAYERNORM_EDGES = """
@nki.jit
def layernorm_edges(x: tensor[200, 700], g: tensor[1, 700], b: tensor[1, 700]):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    n_rows, n_columns = x.shape
    P, most = nl.tile_size.pmax, nl.tile_size.bn_stats_fmax
    n_parts = (n_columns + most - 1) // most
    ip, jf, i1 = nl.arange(P)[:, None], nl.arange(n_columns)[None, :], nl.arange(1)[:, None]
    j_part, j_stats, j_all = nl.arange(most)[None, :], nl.arange(6)[None, :], nl.arange(6 * n_parts)[None, :]
    scale = nl.load(g[i1, jf]).broadcast_to((P, n_columns))
    shift = nl.load(b[i1, jf]).broadcast_to((P, n_columns))
    for i in nl.affine_range((n_rows + P - 1) // P):
        tile = nl.load(x[i * P + ip, jf], mask=(i * P + ip < n_rows))
        stats = nl.ndarray((nl.par_dim(P), 6 * n_parts), dtype=nl.float32)
        for j in nl.affine_range(n_parts):
            stats[ip, j * 6 + j_stats] = nisa.bn_stats(tile[ip, j * most + j_part], mask=(j * most + j_part < n_columns), dtype=nl.float32)
        both = nisa.bn_aggr(stats[ip, j_all], mask=(i * P + ip < n_rows), dtype=nl.float32)
        factor = nl.rsqrt(both[ip, 1] + 1e-5)
        y = nisa.tensor_scalar(data=tile, op0=np.subtract, operand0=both[ip, 0], op1=np.multiply, operand1=factor, mask=(i * P + ip < n_rows))
        y[...] = y * scale
        result = nl.add(y, shift)
        nl.store(out[i * P + ip, jf], value=result, mask=(i * P + ip < n_rows))
    return out
"""

# Scores go from PSUM through affine_select, whose engine does not reach that.
ATTENTION_FUSED = """
@nki.jit
def attention_fused(q: tensor[256, 64], k: tensor[256, 64], v: tensor[256, 64]):
    n, d = q.shape
    tiles, P = n // 128, 128
    out = nl.ndarray((n, d), dtype=q.dtype, buffer=nl.shared_hbm)
    ip, jf, id_p, id_f = nl.arange(P)[:, None], nl.arange(P)[None, :], nl.arange(d)[:, None], nl.arange(d)[None, :]
    turned_q = nl.ndarray((tiles, nl.par_dim(d), P), dtype=q.dtype)
    turned_k = nl.ndarray((tiles, nl.par_dim(d), P), dtype=q.dtype)
    values = nl.ndarray((nl.par_dim(P), tiles, d), dtype=q.dtype)
    for i in nl.affine_range(tiles):
        turned_q[i, id_p, jf] = nl.load_transpose2d(q[i * P + ip, id_f]) * 0.125
        turned_k[i, id_p, jf] = nl.load_transpose2d(k[i * P + ip, id_f])
        values[ip, i, id_f] = nl.load(v[i * P + ip, id_f])
    for i in nl.affine_range(tiles):
        scores = nl.ndarray((nl.par_dim(P), n), dtype=nl.float32)
        lowest = nl.ndarray((nl.par_dim(P), tiles), dtype=nl.float32)
        for j in nl.affine_range(tiles):
            product = nl.zeros((nl.par_dim(P), P), dtype=nl.float32, buffer=nl.psum)
            product[ip, jf] += nisa.nc_matmul(moving=turned_k[j, id_p, jf], stationary=turned_q[i, id_p, jf])
            scores[ip, j * P + jf] = nisa.affine_select(pred=(i * P + ip >= j * P + jf), on_true_tile=product[ip, jf], on_false_value=-9984.0,
                                                        dtype=nl.float32)
            lowest[ip, j] = nisa.tensor_reduce(np.max, data=scores[ip, j * P + jf], axis=(1,), dtype=nl.float32, negate=True)
        bias = nisa.tensor_reduce(np.min, data=lowest[ip, nl.arange(tiles)[None, :]], axis=(1,), dtype=nl.float32)
        e = nisa.activation(np.exp, data=scores[ip, nl.arange(n)[None, :]], bias=bias, scale=1.0)
        total = nisa.tensor_reduce(np.add, data=e, axis=(1,), dtype=nl.float32)
        share = nl.ndarray((nl.par_dim(P), d), dtype=nl.float32)
        share[ip, id_f] = nl.copy((1.0 / total).broadcast_to((P, d)), dtype=nl.float32)
        sums = nl.zeros((nl.par_dim(d), P), dtype=nl.float32, buffer=nl.psum)
        for j in nl.affine_range(tiles):
            turned = nl.copy(nisa.nc_transpose(e[ip, j * P + jf]))
            sums[id_p, jf] += nisa.nc_matmul(moving=turned, stationary=values[ip, j, id_f])
        result = nl.copy(sums[id_p, jf]) * nisa.nc_transpose(share[ip, id_f])
        nl.store(out[i * P + jf, id_p], value=result)
    return out
"""


def _layernorm(x, g, b):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * g + b


def _causal_attention(q, k, v):
    e = np.exp(q @ k.T / 8) * np.tri(len(q))
    return e / e.sum(1, keepdims=True) @ v


KERNELS = {
    "layernorm_edges": (LAYERNORM_EDGES, _layernorm, 1e-5),
    "attention_fused": (ATTENTION_FUSED, _causal_attention, 1e-5),
}
