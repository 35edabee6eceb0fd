"""Matrix products: sizes, chains, batches, with bias."""
import numpy as np

from support.kernels.suite import ALL_FORMS, SBUF, SHARED, formulas, kernel

formulas(2, {"matmul_auto": "x @ y"}, "256x128", "128x256")
formulas(2, {"matmul_add_auto": "x @ y + z"}, "256x128", "128x512", "256x512")
formulas(1, {"matmul": "np.matmul(x, y)"}, "128x128", "128x128", prefix="square_")
formulas(1, {"matmul": "np.matmul(x, y)"}, "128x256", "256x512", prefix="rectangular_")
formulas(1, {"matmul": "np.matmul(x, y)"}, "512x128", "128x128", prefix="tall_")
formulas(1, {"matmul": "np.matmul(x, y)"}, "128x128", "128x512", prefix="wide_")
formulas(1, {"batched_matmul": "x @ y"}, "2x128x128", "2x128x128")
formulas(1, {"batched_matmul_4d": "x @ y"}, "2x3x64x128", "2x3x128x32")
formulas(1, {"batched_by_one": "x @ y"}, "1x2x128x512", "512x256")
formulas(1, {"one_by_batched": "x @ y"}, "128x512", "1x2x512x256")
formulas(1, {"broadcast_batches": "x @ y"}, "1x1x128x512", "1x1x1x512x256")
formulas(1, {"vector_batch": "x @ y"}, "64", "2x64x32")
formulas(1, {"batch_vector": "x @ y"}, "2x32x64", "64")
formulas(1, {"vector_vector": "x @ y"}, "64", "64")
formulas(1, {"matmul_chain_auto": "(x @ y) @ z"}, "128x256", "256x128", "128x512")
formulas(2, {"matmul_bias_small": "x @ y + z"}, "4x8", "8x4", "4")
formulas(2, {"matmul_bias_relu": "np.maximum(np.matmul(x, y) + z, 0.0)"}, "128x128", "128x128", "128")
formulas(1, {"matmul_bf16": "x @ y"}, "128x256 bf16", "256x128 bf16")
formulas(1, {"transposed_left": "x.T @ y"}, "256x256 f16", "256x256 f16")
formulas(1, {"outer": "np.outer(x, y)"}, "128", "256")
formulas(1, {"dot": "np.dot(x, y)"}, "2x64x128", "3x128x32")


@kernel(3, "256x256", "256x256", "256x256", name="matmul_add", forms=ALL_FORMS, FIRST="Sbuf")
@kernel(3, "256x256", "256x256", "256x256", name="matmul_add_shared", FIRST="SharedHbm")
@kernel(3, "128x128", "128x128", "128x128", name="matmul_add_128", FIRST="Sbuf")
@kernel(3, "1024x1024", "1024x1024", "1024x1024", name="matmul_add_1024", heavy=True, FIRST="Sbuf")
@kernel(3, "1024x1024", "1024x1024", "1024x1024", name="matmul_add_1024_shared", heavy=True, FIRST="SharedHbm")
@kernel(3, "2048x2048", "2048x2048", "2048x2048", name="matmul_add_2048", heavy=True, FIRST="Sbuf")
@kernel(3, "4096x1024", "1024x1024", "4096x1024", name="matmul_add_4096x1024x1024", heavy=True, FIRST="Sbuf")
@kernel(3, "1024x1024", "1024x4096", "1024x4096", name="matmul_add_1024x4096x1024", heavy=True, FIRST="Sbuf")
@kernel(3, "2048x2048", "2048x1024", "2048x1024", name="matmul_add_2048x1024x2048", heavy=True, FIRST="Sbuf")
@kernel(3, "1024x2048", "2048x2048", "1024x2048", name="matmul_add_1024x2048x2048", heavy=True, FIRST="Sbuf")
@kernel(3, "2048x1024", "1024x2048", "2048x2048", name="matmul_add_2048x2048x1024", heavy=True, FIRST="Sbuf")
def matmul_add(a, b, bias):
    product = np.matmul(a, b)
    put(product, [128, 128], FIRST, reduction=[128])
    r = product + bias
    put(r, [128, 128], SHARED)
    return r


@kernel(2, "256x256", "256x256", name="knob_matmul", forms=ALL_FORMS)
@kernel(2, "128x256", "256x512", name="knob_matmul_rectangular")
@kernel(2, "128x256", "256x128", name="knob_matmul_reduction")
@kernel(2, "512x128", "128x128", name="knob_matmul_tall")
@kernel(2, "128x128", "128x512", name="knob_matmul_wide")
def knob_matmul(a, b):
    r = np.matmul(a, b)
    put(r, [128, 128], SHARED, reduction=[128])
    return r


@kernel(3, "256x128", "128x256", "256x128", forms=ALL_FORMS)
def knob_matmul_chain(a, b, c):
    first = np.matmul(a, b)
    put(first, [128, 128], SBUF, reduction=[128])
    r = np.matmul(first, c)
    put(r, [128, 128], SHARED, reduction=[128])
    return r


@kernel(2, "128x256", "128x256")
def scaled_dot_product(q, k):
    scores = np.matmul(q, np.transpose(k)) * 0.0625
    put(scores, [128, 128], SHARED)
    return scores


@kernel(3, "2x256x256", "2x256x256", name="knob_bmm_2")
@kernel(3, "8x256x256", "8x256x256", name="knob_bmm_8")
def knob_bmm(a, b):
    r = np.matmul(a, b)
    put(r, [1, 128, 128], SHARED, reduction=[128], dim=1)
    return r


@kernel(3, "256x384", "384x512", name="three_k_steps", M=128, N=128)
@kernel(3, "128x128", "128x1536", name="wide_n_tiles", M=128, N=512)
@kernel(3, "384x128", "128x256", name="three_row_tiles", M=128, N=128)
def matmul_tiles(a, b):
    r = a @ b
    put(r, [M, N], SHARED, reduction=[128])
    return r


@kernel(3, "256x256", "256x768")
def qkv_projection(x, w):
    qkv = np.matmul(x, w)
    put(qkv, [128, 128], SBUF, reduction=[128])
    q, k, v = np.split(qkv, 3, axis=qkv.ndim - 1)
    return q, k, v
