"""nkigen's names: `from nkigen import trace, knob`, where knob is a module that can also be called."""
from . import apis, knob, transforms
from .custom_op import CustomOp
from .execution_engine import verify_against_numpy
from .trace import trace
from .traced_array import TracedArray
from .transforms.nkipy_opt import apply_passes

__all__ = ["trace", "knob", "apis", "transforms", "TracedArray", "CustomOp", "verify_against_numpy", "apply_passes"]
