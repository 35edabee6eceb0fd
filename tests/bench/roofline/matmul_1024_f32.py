"""Product of two 1024 x 1024 matrices, f32"""
from nkigen import trace

N = 1024
FLOPS = 2 * N**3


@trace(input_specs=[((N, N), "f32"), ((N, N), "f32")])
def matmul_1024_f32(a, b):
    return a @ b
