"""NKI beta 1: its kernels are found, but not compiled yet."""
import functools

import _nkx
from nkx import missing

__nkx_stub__ = True
__getattr__ = missing.attribute_of("neuronxcc.nki")


def jit(fn=None, **options):
    if fn is None:
        return jit

    @functools.wraps(fn)
    def refuse(*args, **kwargs):
        e = _nkx.NkiUnsupported("kernels of NKI beta 1 (neuronxcc.nki) are not compiled here yet")
        e.hint = "write it for nki: calls take dst= and return nothing, and slices replace masks and index tiles"
        raise e

    return _nkx.nki_kernel(refuse)
