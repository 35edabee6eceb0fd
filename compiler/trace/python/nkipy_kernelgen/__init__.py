"""nkipy_kernelgen's names: nkigen's, with its own knob module."""
from nkigen import CustomOp, TracedArray, apply_passes, verify_against_numpy

from . import apis, knob, transforms
from .trace import trace

__all__ = ["trace", "knob", "apis", "transforms", "TracedArray", "CustomOp", "verify_against_numpy", "apply_passes"]
