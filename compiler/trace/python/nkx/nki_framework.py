"""FrameworkKernel: an NKI kernel as a framework sees it, which asks what a call of it needs before it emits a custom call.

A subclass says what the framework's tensors are; without one, the arrays of NumPy and, where they are installed, of PyTorch and JAX
are known.  dump_config(*args, **kwargs) traces the kernel for the shapes and dtypes of its tensors, and gives (config, input names,
output names).  Here the tracer is our own: the configuration says which kernel it is, what goes in and out, and what is
written in place; it holds no code for a device, because only the vendor's compiler makes that, and says so.
"""
import base64
import inspect
import json
import sys

import _nkx
import numpy as np
from nkx import nki_reads, nki_run, package

FORMAT = "nkx-trace"
ALIASED = ".must_alias_input"  # ends the name of an input that is written in place
NOTE = "Traced by nkx: no device code is in it or beside it; the vendor's NKI compiler makes that."
KEPT_MAX = 64


def _framework_types():
    """The classes of tensors of the frameworks that the program has imported."""
    torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
    found = [np.ndarray, getattr(torch, "Tensor", None), getattr(jax, "Array", None), getattr(jax, "ShapeDtypeStruct", None)]
    return tuple(t for t in found if isinstance(t, type))


class Dumped(tuple):
    """(config, input names, output names), and what else a custom call needs: return_types [(dtype, shape)],
    operand_output_aliases {operand: output}, constant_values, has_collectives, result_is_sequence."""

    def __new__(cls, config, inputs, outputs, **more):
        self = super().__new__(cls, (config, inputs, outputs))
        self.__dict__.update(more)
        return self


class FrameworkKernel:
    """kernel[grid] is the same kernel with a launch; both share what was traced."""

    generation = 2

    def __init__(self, func, grid=()):
        self.func = getattr(func, "func", func)
        self.grid = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        self._kernel = func if isinstance(func, _nkx.Kernel) else _nkx.nki_kernel(func, self.generation)
        self._kept = {}

    @property
    def __name__(self):
        return getattr(self.func, "__name__", type(self.func).__name__)

    def __getitem__(self, grid):
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.grid = grid if isinstance(grid, tuple) else (grid,)
        return other

    # ---- what a subclass says ----

    def translate_to_neuron_dtype(self, dtype):
        """NumPy's dtype (of ml_dtypes for those that NumPy lacks) for one of the framework."""
        from nkx import nki_kernel  # which needs the package that this class is a part of
        return nki_kernel.dtype_of(dtype)

    def is_framework_tensor(self, t):
        """True if t is a tensor; everything else is an attribute, whose value the kernel sees while it is traced."""
        return isinstance(t, _framework_types())

    def map_framework_tensor(self, t):
        """(shape, dtype of the framework)."""
        return tuple(t.shape), t.dtype

    # ---- tracing ----

    def _stand_in(self, t):
        shape, dtype = self.map_framework_tensor(t)
        return np.broadcast_to(np.zeros((), self.translate_to_neuron_dtype(dtype)), tuple(map(int, shape)))

    def _bound(self, args, kwargs):
        """The arguments by name, with defaults; tensors as arrays without memory."""
        bound = inspect.signature(self.func).bind(*args, **kwargs)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if self.is_framework_tensor(value):
                bound.arguments[name] = self._stand_in(value)
        return bound

    def _key(self, bound):
        """What the trace depends on: code, grid, machine, shapes and dtypes of tensors, values of attributes."""
        of = lambda v: ("tensor", v.shape, v.dtype.name) if isinstance(v, np.ndarray) else ("attribute", type(v), nki_reads.key(v))
        return (nki_reads.key(self.func), self.grid, nki_run.target(), tuple((n, of(v)) for n, v in bound.arguments.items()))

    def dump_config(self, *args, **kwargs):
        """Traces the kernel for this call, or finds what an equal call gave.  The result's attributes are also set on the kernel."""
        bound = self._bound(args, kwargs)
        try:
            key = self._key(bound)
        except nki_reads.Unknown:  # an attribute that has no value to compare
            key = None
        found = self._kept.pop(key, None) if key else None
        found = found or self._trace(bound)
        if key:
            self._kept[key] = found
            while len(self._kept) > KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        self.__dict__.update(found.__dict__)
        return found

    def _trace(self, bound):
        kernel = self._kernel[self.grid] if self.grid else self._kernel
        t = _nkx.trace_function(kernel, bound.args, bound.kwargs, None, self.__name__, nki_run.target())
        inputs, outputs = package.TensorInfo.all(t["inputs"]), package.TensorInfo.all(t["outputs"])
        aliases = {o.alias_of: i for i, o in enumerate(outputs) if o.alias_of >= 0}
        names, results = [x.name + ALIASED * (i in aliases) for i, x in enumerate(inputs)], [o.name for o in outputs]
        config = {"func_name": self.__name__, "kernel_version": 1, "kernel_format": FORMAT, "platform_target": nki_run.target(),
                  "grid": list(self.grid), "has_collectives": False, "note": NOTE,
                  "klir_binary": {"binary": None, "input_names": names, "output_names": results, "aliases": [[i, o] for i, o in aliases.items()]}}
        text = base64.b64encode(json.dumps(config).encode()).decode()
        return Dumped(text, names, results, return_types=[(o.dtype, tuple(o.shape)) for o in outputs], operand_output_aliases=aliases,
                      constant_values=[], has_collectives=False, result_is_sequence=len(outputs) > 1)


class FrameworkKernelBeta1(FrameworkKernel):
    """That of neuronxcc.nki."""

    generation = nki_run.BETA_1


def kernel_class(generation):
    """FrameworkKernel of a package, under that name."""
    cls = FrameworkKernelBeta1 if generation == nki_run.BETA_1 else FrameworkKernel
    return type("FrameworkKernel", (cls,), {"__doc__": FrameworkKernel.__doc__, "__module__": cls.__module__})
