"""Product of two 4096 x 4096 matrices, bf16"""
from nkigen import trace

N = 4096
FLOPS = 2 * N**3


@trace(input_specs=[((N, N), "bf16"), ((N, N), "bf16")])
def matmul_4096_bf16(a, b):
    return a @ b
