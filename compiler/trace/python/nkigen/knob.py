"""knob.knob(x)…, knob.fuse(a, b), knob.fuse(a, never=True), and knob(x, mem_space=…)."""
import sys
import types

from _nkx import fuse, knob

__all__ = ["fuse", "knob"]


class _Callable(types.ModuleType):
    __call__ = staticmethod(knob)


sys.modules[__name__].__class__ = _Callable
