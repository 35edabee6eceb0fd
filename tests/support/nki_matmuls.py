"""Matrix products as NKI kernels, from one tile to blocks in all three dimensions.

Each computes lhsT.T @ rhs, with lhsT of shape (K, M) and rhs of shape (K, N).  A tile of the left side has 128 rows of K and
128 columns of M, a tile of the right side 128 rows of K and 512 columns of N.  The variants differ in what they load again:

    basic       one tile of each side
    tiled       a tile of each side for each product
    hoisted     the tiles of a row of M once for all N, in a list; those of N once per row
    blocked     blocks of several tiles along M and N: each side is loaded once per block of the other
    optimised   blocks along K, too: partial sums of a block are added up in SBUF
"""
import numpy as np

BASIC = """
@nki.jit
def basic(lhsT: nl.tensor[nl.bfloat16, (128, 64)], rhs: nl.tensor[nl.bfloat16, (128, 512)]):
    out = nl.ndarray((64, 512), lhsT.dtype, buffer=nl.shared_hbm)
    l = nl.ndarray(lhsT.shape, lhsT.dtype, buffer=nl.sbuf)
    r = nl.ndarray(rhs.shape, rhs.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=l, src=lhsT)
    nisa.dma_copy(dst=r, src=rhs)
    product = nl.ndarray((64, 512), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=product, stationary=l, moving=r)
    result = nl.ndarray((64, 512), out.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=product)
    nisa.dma_copy(dst=out, src=result)
    return out
"""

# what the others share: the sizes of tiles, and a tile of an array in HBM, loaded or stored
TILES = """
TM, TK, TN = 128, 128, 512


def load_tile(array, row, column, columns):
    tile = nl.ndarray((TK, columns), array.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=array[row * TK:(row + 1) * TK, column * columns:(column + 1) * columns])
    return tile


def store_tile(array, row, column, tile):
    result = nl.ndarray((TM, TN), array.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=tile)
    nisa.dma_copy(dst=array[row * TM:(row + 1) * TM, column * TN:(column + 1) * TN], src=result)
"""

TILED = TILES + """
@nki.jit
def tiled(lhsT: nl.tensor[nl.bfloat16, (384, 256)], rhs: nl.tensor[nl.bfloat16, (384, 1536)]):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    out = nl.ndarray((M, N), lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(M // TM):
        for n in nl.affine_range(N // TN):
            total = nl.ndarray((TM, TN), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // TK):
                l = load_tile(lhsT, k, m, TM)
                r = load_tile(rhs, k, n, TN)
                nisa.nc_matmul(dst=total, stationary=l, moving=r)
            store_tile(out, m, n, total)
    return out
"""

HOISTED = TILES + """
@nki.jit
def hoisted(lhsT: nl.tensor[nl.bfloat16, (512, 384)], rhs: nl.tensor[nl.bfloat16, (512, 1536)]):
    (K, M), (_, N) = lhsT.shape, rhs.shape
    out = nl.ndarray((M, N), lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(M // TM):
        left = []
        for k in nl.affine_range(K // TK):
            left.append(load_tile(lhsT, k, m, TM))
        for n in nl.affine_range(N // TN):
            right = []
            for k in nl.affine_range(K // TK):
                right.append(load_tile(rhs, k, n, TN))
            total = nl.ndarray((TM, TN), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(K // TK):
                nisa.nc_matmul(dst=total, stationary=left[k], moving=right[k])
            store_tile(out, m, n, total)
    return out
"""

BLOCKED = TILES + """
@nki.jit
def blocked(lhsT: nl.tensor[nl.bfloat16, (384, 512)], rhs: nl.tensor[nl.bfloat16, (384, 2048)], in_m=2, in_n=2):
    # a block has in_m * in_n tiles of the result
    (K, M), (_, N) = lhsT.shape, rhs.shape
    out = nl.ndarray((M, N), lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(M // TM // in_m):
        left = []
        for bm in nl.affine_range(in_m):
            left.append([load_tile(lhsT, k, m * in_m + bm, TM) for k in nl.affine_range(K // TK)])
        for n in nl.affine_range(N // TN // in_n):
            right = []
            for bn in nl.affine_range(in_n):
                right.append([load_tile(rhs, k, n * in_n + bn, TN) for k in nl.affine_range(K // TK)])
            for bm in nl.affine_range(in_m):
                for bn in nl.affine_range(in_n):
                    total = nl.ndarray((TM, TN), nl.float32, buffer=nl.psum)
                    for k in nl.affine_range(K // TK):
                        nisa.nc_matmul(dst=total, stationary=left[bm][k], moving=right[bn][k])
                    store_tile(out, m * in_m + bm, n * in_n + bn, total)
    return out
"""

OPTIMISED = TILES + """
@nki.jit
def optimised(lhsT: nl.tensor[nl.bfloat16, (768, 512)], rhs: nl.tensor[nl.bfloat16, (768, 2048)], in_m=2, in_n=2, in_k=3):
    # a block has in_m * in_n tiles of the result, and adds up in_k products at a time
    (K, M), (_, N) = lhsT.shape, rhs.shape
    out = nl.ndarray((M, N), lhsT.dtype, buffer=nl.shared_hbm)
    for n in nl.affine_range(N // TN // in_n):
        for m in nl.affine_range(M // TM // in_m):
            sums = nl.ndarray((TM, in_m, in_n, TN), nl.float32, buffer=nl.sbuf)
            nisa.memset(dst=sums, value=0.0)
            for k in nl.sequential_range(K // TK // in_k):
                right = [[load_tile(rhs, k * in_k + bk, n * in_n + bn, TN) for bn in nl.affine_range(in_n)] for bk in nl.affine_range(in_k)]
                left = [[load_tile(lhsT, k * in_k + bk, m * in_m + bm, TM) for bm in nl.affine_range(in_m)] for bk in nl.affine_range(in_k)]
                for bn in nl.affine_range(in_n):
                    for bm in nl.affine_range(in_m):
                        part = nl.ndarray((TM, TN), nl.float32, buffer=nl.psum)
                        for bk in nl.affine_range(in_k):
                            nisa.nc_matmul(dst=part, stationary=left[bk][bm], moving=right[bk][bn])
                        nisa.tensor_tensor(dst=sums[:, bm, bn, :], data1=sums[:, bm, bn, :], data2=part, op=nl.add)
            for bm in nl.affine_range(in_m):
                for bn in nl.affine_range(in_n):
                    store_tile(out, m * in_m + bm, n * in_n + bn, sums[:, bm, bn, :])
    return out
"""


def product(l, r):
    return (l.astype(np.float32).T @ r.astype(np.float32)).astype(l.dtype)


# name: source
MATMULS = {"basic": BASIC, "tiled": TILED, "hoisted": HOISTED, "blocked": BLOCKED, "optimised": OPTIMISED}
