"""What np.empty gives to a kernel becomes a constant of the program: it is zero, whatever the process had in its memory."""
from support import compiler, reference

SOURCE = """
import numpy as np
from nkigen import trace
for size in (32, 4096, 1 << 20):  # leave bytes in freed memory of all sizes
    dirt = [np.full(size, 0x5A, np.uint8) for _ in range(20)]
    del dirt

@trace(input_specs=[((4, 8), 'f32')])
def kernel(x):
    a = np.empty((4, 8), np.float32)
    return x + a, x + np.empty_like(a), x + np.ndarray((4, 8), np.float32), x + np.empty((256, 4, 8), np.float32)[77]
"""


def test_uninitialized_arrays_are_zero():
    (kernel,) = compiler.compile(SOURCE, check=True)["kernels"]
    (x,) = compiler.random_inputs(kernel)
    assert len(kernel["outputs"]) == 4
    reference.assert_nisa(kernel, [x], [x] * 4)
