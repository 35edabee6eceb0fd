"""NKI beta 1: its kernels are found, but not compiled yet."""
import _nkx
from nkx import missing

__nkx_stub__ = True
__getattr__ = missing.attribute_of("neuronxcc.nki")
GENERATION = 1  # NKI_BETA_1 of compiler/trace/kernels.h


def jit(fn=None, **options):
    return jit if fn is None else _nkx.nki_kernel(fn, GENERATION)
