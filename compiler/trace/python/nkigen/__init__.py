"""nkigen's names: `from nkigen import trace, knob`, where knob is a module that can also be called."""
from _nkx import Tensor as TracedArray
from _nkx import trace

from . import apis, knob, transforms
from .custom_op import CustomOp
from .execution_engine import verify_against_numpy
from .transforms.nkipy_opt import apply_passes

__all__ = ["trace", "knob", "apis", "transforms", "TracedArray", "CustomOp", "verify_against_numpy", "apply_passes"]
