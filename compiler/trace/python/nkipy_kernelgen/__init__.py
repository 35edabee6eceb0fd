"""nkipy_kernelgen's names: `from nkipy_kernelgen import trace, knob`, where knob is a module that can also be called."""
from _nkx import trace

from . import apis, knob

__all__ = ["trace", "knob", "apis"]
