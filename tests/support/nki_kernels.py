"""NKI kernels, each with NumPy's formula for the same result."""
import math
import os

import numpy as np

# The machines of tests that are the same on each; all of them with NKX_NKI=all.
TARGETS = ["trn1", "trn2", "trn3"] if os.environ.get("NKX_NKI") == "all" else ["trn2"]

HEAD = """import ml_dtypes
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl

P = 128
"""

ADD = """
@nki.jit
def add(a: nl.tensor[256, 512], b: nl.tensor[256, 512]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(a.shape[0] // P):
        rows = slice(i * P, (i + 1) * P)
        x = nl.ndarray((P, a.shape[1]), a.dtype, buffer=nl.sbuf)
        y = nl.ndarray((P, a.shape[1]), a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=a[rows])
        nisa.dma_copy(dst=y, src=b[rows])
        nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
        nisa.dma_copy(dst=out[rows, :], src=x)
    return out
"""

MATMUL = """
@nki.jit
def matmul(lhsT: nl.tensor[nl.bfloat16, (256, 256)], rhs: nl.tensor[nl.bfloat16, (256, 1024)]):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    TM, TK, TN = nl.tile_size.gemm_stationary_fmax, nl.tile_size.pmax, nl.tile_size.gemm_moving_fmax
    out = nl.ndarray((M, N), lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(M // TM):
        for n in nl.affine_range(N // TN):
            acc = nl.zeros((TM, TN), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // TK):
                l = nl.load(lhsT[k * TK:(k + 1) * TK, m * TM:(m + 1) * TM])
                r = nl.load(rhs[k * TK:(k + 1) * TK, n * TN:(n + 1) * TN])
                nisa.nc_matmul(dst=acc, stationary=l, moving=r)
            nl.store(out[m * TM:(m + 1) * TM, n * TN:(n + 1) * TN], nl.copy(acc, dtype=out.dtype))
    return out
"""

MATMUL_ONE_TILE = """
@nki.jit
def matmul_one_tile(lhsT: nl.tensor[512, 128], rhs: nl.tensor[512, 512]):
    out = nl.ndarray((128, 1024), nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((128, 512), nl.float32, buffer=nl.psum)
    for half in range(2):
        for k in range(4):
            l, r = nl.load(lhsT[k * P:(k + 1) * P]), nl.load(rhs[k * P:(k + 1) * P])
            nisa.nc_matmul(acc, l, r, accumulate=k > 0)
        scaled = nl.ndarray((128, 512), nl.float32)
        nisa.tensor_scalar(scaled, acc, nl.multiply, float(half + 1))
        nl.store(out[:, half * 512:(half + 1) * 512], scaled)
    return out
"""

SOFTMAX = """
@nki.jit
def softmax(x: nl.tensor[256, 300]):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for i in range(x.shape[0] // P):
        t = nl.load(x[i * P:(i + 1) * P])
        nl.store(out[i * P:(i + 1) * P], nl.softmax(t, axis=-1))
    return out
"""

RMSNORM = """
@nki.jit
def rmsnorm(x: nl.tensor[nl.bfloat16, (256, 384)], w: nl.tensor[1, 384], eps=1e-5):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    weights = nl.ndarray((P, 384), nl.float32)
    nisa.dma_copy(weights, w.broadcast(0, P))
    for i in nl.affine_range(2):
        t = nl.load(x[i * P:(i + 1) * P], dtype=nl.float32)
        squares, total = nl.ndarray((P, 384), nl.float32), nl.ndarray((P, 1), nl.float32)
        nisa.activation_reduce(squares, op=nl.square, data=t, reduce_op=nl.add, reduce_res=total)
        nisa.tensor_scalar(total, total, nl.multiply, 1.0 / 384, op1=nl.add, operand1=eps)
        nisa.activation(total, op=nl.rsqrt, data=total)
        nisa.tensor_scalar(t, t, nl.multiply, total)
        nisa.tensor_tensor(t, t, weights, op=nl.multiply)
        nl.store(out[i * P:(i + 1) * P], nl.copy(t, dtype=x.dtype))
    return out
"""

TRANSPOSE = """
@nki.jit
def transpose(x: nl.tensor[64, 6, 8]):
    # each row of 6 by 8 elements is transposed by its access pattern
    out = nl.ndarray((64, 8, 6), x.dtype, buffer=nl.shared_hbm)
    t, u = nl.load(x), nl.ndarray((64, 8, 6), x.dtype)
    nisa.tensor_copy(u, t.permute((0, 2, 1)))
    nl.store(out, u)
    return out
"""

AVERAGE_POOL = """
@nki.jit
def average_pool(x: nl.tensor[64, 12, 20]):
    out = nl.ndarray((64, 6, 5), x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    windows = t.ap([[240, 64], [40, 6], [4, 5], [20, 2], [1, 4]])
    total = nl.ndarray((64, 6, 5), x.dtype)
    nisa.tensor_reduce(total, nl.add, windows, axis=(3, 4))
    nisa.tensor_scalar(total, total, nl.multiply, 1 / 8)
    nl.store(out, total)
    return out
"""

GELU = """
@nki.jit
def gelu(x: nl.tensor[100, 70]):
    # x * (1 + erf(x / sqrt(2))) / 2
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    e = nl.ndarray(t.shape, nl.float32)
    nisa.activation(e, nl.erf, t, scale=0.7071067811865476)
    nisa.tensor_scalar(e, e, nl.add, 1.0, op1=nl.multiply, operand1=0.5)
    nl.store(out, nl.multiply(t, e))
    return out
"""

MASK = """
@nki.jit
def mask(x: nl.tensor[128, 96]):
    # the upper triangle is replaced by -1: an index along the row is compared with the partition
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t, where = nl.load(x), nl.ndarray((128, 96), nl.float32)
    nisa.iota(where, [[1, 96]], offset=0, channel_multiplier=-1)
    above = nl.ndarray((128, 96), nl.uint8)
    nisa.tensor_scalar(above, where, nl.greater, 0.0)
    nisa.tensor_copy_predicated(t, -1.0, above)
    nl.store(out, t)
    return out
"""

COLUMN_SUM = """
@nki.jit
def column_sum(x: nl.tensor[128, 40]):
    out = nl.ndarray((1, 40), x.dtype, buffer=nl.shared_hbm)
    t, s = nl.load(x), nl.ndarray((1, 40), x.dtype)
    nisa.tensor_partition_reduce(s, nl.add, t)
    nl.store(out, s)
    return out
"""

SEVERAL = """
class Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, t):
        r = nl.ndarray(t.shape, t.dtype)
        nisa.tensor_scalar(r, t, nl.multiply, self.factor)
        return r


def halves(t, n=2):
    return [t[:, i * t.shape[1] // n:(i + 1) * t.shape[1] // n] for i in range(n)]


@nki.jit
def several(x: nl.tensor[32, 64], flag=True):
    total = nl.ndarray((32, 32), x.dtype, buffer=nl.shared_hbm)
    scaled = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    left, right = halves(t)
    nl.store(total, nl.add(left, right) if flag is not None else left)
    nl.store(scaled, Scale(3.0)(t))
    return total, scaled
"""

# name: (source, formula on the inputs, the largest error as a share of the largest result)
KERNELS = {
    "add": (ADD, lambda a, b: a + b, 0),
    "matmul": (MATMUL, lambda l, r: (l.astype("f4").T @ r.astype("f4")).astype(l.dtype), 0.01),
    "matmul_one_tile": (MATMUL_ONE_TILE, lambda l, r: np.hstack([l.T @ r, 2 * (l.T @ r)]), 1e-4),
    "softmax": (SOFTMAX, lambda x: (lambda e: e / e.sum(1, keepdims=True))(np.exp(x - x.max(1, keepdims=True))), 1e-6),
    "rmsnorm": (RMSNORM, lambda x, w: (x.astype("f4") / ((x.astype("f4") ** 2).mean(1, keepdims=True) + 1e-5) ** 0.5 * w).astype(x.dtype), 0.01),
    "transpose": (TRANSPOSE, lambda x: x.transpose(0, 2, 1), 0),
    "average_pool": (AVERAGE_POOL, lambda x: x.reshape(64, 6, 2, 5, 4).mean((2, 4)), 1e-6),
    "gelu": (GELU, lambda x: x * (1 + np.vectorize(math.erf)(x / 2 ** 0.5)) / 2, 1e-6),
    "mask": (MASK, lambda x: np.where(np.arange(96) > np.arange(128)[:, None], -1, x), 0),
    "column_sum": (COLUMN_SUM, lambda x: x.sum(0, keepdims=True), 1e-4),
    "several": (SEVERAL, lambda x: (x[:, :32] + x[:, 32:], 3 * x), 0),
}
