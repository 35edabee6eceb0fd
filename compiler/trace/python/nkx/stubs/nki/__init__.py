"""The part of nki that a program needs to be imported where the vendor's package is not installed."""
import functools

from nkx import missing, nki_kernel

__nkx_stub__ = True
__getattr__ = missing.attribute_of("nki")


class Kernel:
    """An @nki.jit kernel; kernel[grid](…) is one with a grid."""

    def __init__(self, func, grid=()):
        functools.update_wrapper(self, func)
        self.func, self.grid = func, grid

    def __getitem__(self, grid):
        return Kernel(self.func, grid)

    def __call__(self, *args, **kwargs):
        return nki_kernel.call(self, args, kwargs)


def jit(fn=None, **options):
    return Kernel(fn) if fn is not None else Kernel
