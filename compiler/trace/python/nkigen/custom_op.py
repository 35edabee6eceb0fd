"""CustomOp: a function that is given as NISA text, called from a traced kernel."""
import hashlib
import importlib
import os

import _nkx
import numpy as np
from nkx import package

__all__ = ["CustomOp"]

PREFIX = "__custom_op__"
_DTYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float32", "i8": "int8", "i16": "int16",
           "i32": "int32", "i64": "int32"}


def _builder(kernel_func):
    module, _, function = os.environ.get("NKX_KERNEL_BUILDER", "").partition(":")
    if not function:
        raise RuntimeError(f"{getattr(kernel_func, '__name__', kernel_func)}: the vendor's kernel builder, which would "
                           "make NISA of it, is not available here; give CustomOp the NISA text, or name a function that "
                           "makes it in NKX_KERNEL_BUILDER")
    return getattr(importlib.import_module(module), function)


def _builder_name(fn, inputs, outputs, hyper):
    """<fn>_<in-shapes>_<out-shapes>[_<8 hex digits for the other arguments>]"""
    parts = [fn.__name__, *("x".join(map(str, shape)) or "scalar" for shape, _ in inputs + outputs)]
    if hyper:
        parts.append(hashlib.md5(repr(sorted(hyper.items())).encode(), usedforsecurity=False).hexdigest()[:8])
    return "_".join(parts)


_built = {}  # NISA text; the name alone says nothing of dtypes


class CustomOp:
    """input_dtypes, output_dtypes: "f32", "bf16", "float32", ….  reference_fn computes the same with NumPy."""

    def __init__(self, nisa_mlir, func_name, input_names, output_names, input_shapes, output_shapes, input_dtypes,
                 output_dtypes, reference_fn=None):
        self.nisa_mlir, self.func_name = nisa_mlir, PREFIX + func_name.removeprefix(PREFIX)
        self.input_names, self.output_names = list(input_names), list(output_names)
        self.input_shapes, self.output_shapes = list(map(tuple, input_shapes)), list(map(tuple, output_shapes))
        self.input_dtypes, self.output_dtypes = list(input_dtypes), list(output_dtypes)
        self.reference_fn = reference_fn

    @classmethod
    def from_kernel_builder(cls, kernel_func, input_specs, output_specs, reference_fn=None, **hyper):
        """specs: [(shape, "f32"), …].  The vendor's kernel builder makes the NISA text, by way of the function that
        NKX_KERNEL_BUILDER="module:function" names: function(kernel_func, input_specs, output_specs, **hyper) -> text."""
        inputs, outputs = ([(tuple(shape), d) for shape, d in specs] for specs in (input_specs, output_specs))
        name = _builder_name(kernel_func, inputs, outputs, hyper)
        key = kernel_func, tuple(inputs), tuple(outputs), name
        if key not in _built:
            _built[key] = _builder(kernel_func)(kernel_func, inputs, outputs, **hyper)
        return cls(_built[key], name, [f"in{i}" for i in range(len(inputs))], [f"out{i}" for i in range(len(outputs))],
                   [s for s, _ in inputs], [s for s, _ in outputs], [d for _, d in inputs], [d for _, d in outputs],
                   reference_fn)

    def __call__(self, *args):
        if not any(isinstance(a, package.TRACED) for a in args):
            return self._reference(args)
        if len(args) != len(self.input_shapes):
            raise ValueError(f"{self.func_name} takes {len(self.input_shapes)} arguments, not {len(args)}")
        for name, shape, a in zip(self.input_names, self.input_shapes, args):
            if not isinstance(a, package.TRACED):
                raise TypeError(f"{self.func_name}: {name} must be a traced tensor, not {type(a).__name__}")
            if a.shape != shape:
                raise ValueError(f"Shape mismatch: {self.func_name} takes {name} of shape {shape}, not {a.shape}")
        if package.meaning_of_custom_ops():  # to run, not to lower
            return self._reference(args)
        outputs = [(s, np.dtype(package.dtype(_DTYPES.get(d, d)))) for s, d in zip(self.output_shapes, self.output_dtypes)]
        results = _nkx.custom_call(self.func_name, self.nisa_mlir, list(args), outputs, [], False)
        return results[0] if len(results) == 1 else tuple(results)

    def _reference(self, args):
        if self.reference_fn is None:
            raise RuntimeError(f"{self.func_name} cannot be run here: it was made without a reference_fn")
        return self.reference_fn(*args)
