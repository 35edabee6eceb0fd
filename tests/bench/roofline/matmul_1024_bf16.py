"""Product of two 1024 x 1024 matrices, bf16"""
from nkigen import trace

N = 1024
FLOPS = 2 * N**3


@trace(input_specs=[((N, N), "bf16"), ((N, N), "bf16")])
def matmul_1024_bf16(a, b):
    return a @ b
