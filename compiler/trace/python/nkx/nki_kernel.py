"""NKI kernels inside NumPy kernels.

A kernel that our @nki.jit decorates is recorded for the shapes of its operands, and the call becomes a custom call that
names the record; linalg-to-nisa puts the kernel's instructions in its place.  The vendor's NKI front end is used for
kernels that its own @nki.jit decorates, and for all kernels if NKX_NKI_FRONTEND names it.

Two generations of the front end are supported.  They are told apart by the names that they define, in any module:

    compile_kernel_to_nir(kernel, …).build_config()    NKI 0.3 and later: a FrameworkConfig with backend_config_b64,
                                                       output_specs, operand_output_aliases {in: out}, has_collectives
    FrameworkKernel                                    NKI 0.1: a subclass says what a tensor is; dump_config(*args)
                                                       gives the configuration, and return_types what comes back

Its result is the custom call AwsNeuronCustomNativeKernel, whose configuration the vendor's compiler understands.
NKX_NKI_FRONTEND names a module to look in first.
"""
import importlib
import inspect
import os
import sys

import _nkx
import numpy as np
from nkx import nki_beta1_kernel, nki_grid, nki_run, package

TARGET = "AwsNeuronCustomNativeKernel"
_PACKAGES = ("nki", "neuronxcc.nki")


def name_of(kernel):
    return getattr(kernel, "__name__", None) or getattr(getattr(kernel, "func", None), "__name__", type(kernel).__name__)


def refuse(message, hint):
    e = _nkx.UnsupportedOp(message)
    e.hint = hint
    raise e


def _imported(name):
    try:
        m = importlib.import_module(name)
    except ImportError:
        return None
    return None if hasattr(m, "__nkx_stub__") else m


def packages():
    """The vendor's packages that are installed."""
    named = os.environ.get("NKX_NKI_FRONTEND")
    return [m for m in map(_imported, ([named] if named else []) + list(_PACKAGES)) if m]


def _find(attribute):
    """The callable of this name in the vendor's packages or in modules that they imported; None if there is none."""
    for top in packages():
        within = [m for name, m in list(sys.modules.items()) if m and name.startswith(top.__name__ + ".")]
        for m in [top, *within]:
            if callable(getattr(m, attribute, None)):
                return getattr(m, attribute)
    return None


class Recorded:
    """A kernel that was recorded for operands of these shapes: name, outputs [(shape, dtype)], aliases {operand: output},
    returned: 0, 1 or 2, if the kernel returned nothing, a tensor or a sequence."""

    def __init__(self, name, outputs, aliases, returned):
        self.name, self.outputs, self.aliases = name, outputs, {operand: output for output, operand in aliases}
        self.returned = returned


class Traced:
    """What the vendor's front end made of a call: config, outputs [(shape, dtype)], aliases {operand: output}, has_collectives, constants (arrays that
    follow the operands), is_sequence (a single result is returned as a tuple, too)."""

    def __init__(self, config, outputs, aliases=None, has_collectives=False, constants=(), is_sequence=False):
        self.config = config.decode() if isinstance(config, (bytes, bytearray)) else str(config)
        self.outputs = list(map(_spec, outputs))
        self.aliases = {int(i): int(o) for i, o in (aliases or {}).items()}
        self.has_collectives, self.constants = bool(has_collectives), list(constants or ())
        self.is_sequence = is_sequence or len(self.outputs) > 1


def dtype_of(d):
    """The dtype for a type of NumPy, ml_dtypes or NKI; those of NKI have NumPy's names."""
    try:
        return np.dtype(d)
    except TypeError:
        return package.dtype(getattr(d, "name", None) or getattr(d, "__name__", None) or str(d).rpartition(".")[2])


def _spec(s):
    """(shape, dtype) of an object that has both, or that is a pair of them in either order."""
    if hasattr(s, "shape") and hasattr(s, "dtype"):
        shape, dtype = s.shape, s.dtype
    else:
        shape, dtype = s if isinstance(s[0], (tuple, list)) else reversed(s)
    return tuple(map(int, shape)), dtype_of(dtype)


# ---- the two generations -------------------------------------------------------------------------------------------


def _call_by_names(function, name, args, kwargs, offered):
    """Calls a function with the arguments that are offered for the names of its parameters; others need defaults."""
    positional, named = [], {}
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            positional += args
        elif p.kind is p.VAR_KEYWORD:
            named.update(kwargs)
        elif p.name in offered and p.kind is p.KEYWORD_ONLY:
            named[p.name] = offered[p.name]
        elif p.name in offered:
            positional.append(offered[p.name])
        elif p.default is p.empty:
            refuse(f"{name}: the NKI front end's {function.__name__} asks for {p.name}, which is not known here",
                   "NKX_NKI_FRONTEND can name a module with a compile_kernel_to_nir(kernel, args, kwargs, grid) of your own")
        elif p.kind is not p.KEYWORD_ONLY:
            positional.append(p.default)
    return function(*positional, **named)


def _trace_nir(compile_kernel_to_nir, kernel, args, kwargs, grid):
    offered = dict.fromkeys(("kernel", "kernel_func", "func", "fn"), kernel)
    offered.update(dict.fromkeys(("args", "inputs", "operands"), args), kwargs=kwargs, grid=grid, lnc=grid[0] if grid else 1)
    c = _call_by_names(compile_kernel_to_nir, name_of(kernel), args, kwargs, offered).build_config()
    return Traced(c.backend_config_b64, c.output_specs, c.operand_output_aliases, c.has_collectives,
                  getattr(c, "constant_values", ()), getattr(c, "result_is_sequence", False))


def _trace_framework(framework_kernel, kernel, args, kwargs, grid):
    class NumPyKernel(framework_kernel):
        def translate_to_neuron_dtype(self, dtype):
            return dtype_of(dtype)

        def is_framework_tensor(self, t):
            return isinstance(t, np.ndarray)

        def map_framework_tensor(self, t):
            return t.shape, t.dtype

    k = NumPyKernel(getattr(kernel, "func", kernel))
    k = k[grid] if grid else k
    config = k.dump_config(*args, **kwargs)[0]
    if not hasattr(k, "return_types"):
        refuse(f"{name_of(kernel)}: the NKI front end does not say what the kernel returns",
               "NKX_NKI_FRONTEND can name a module with a FrameworkKernel of your own that has return_types")
    return Traced(config, k.return_types, getattr(k, "operand_output_aliases", None), getattr(k, "has_collectives", False),
                  getattr(k, "constant_values", ()), getattr(k, "result_is_sequence", False))


_known = {}  # by kernel, shapes and dtypes, other arguments, and grid


def _key(kernel, args, kwargs, grid):
    of = lambda a: (a.shape, a.dtype.str, a.dtype.name) if isinstance(a, np.ndarray) else (type(a), a)
    return kernel, tuple(map(of, args)), tuple((k, of(v)) for k, v in sorted(kwargs.items())), grid


def is_ours(kernel):
    """True if the kernel is recorded here, not by the vendor's front end."""
    return isinstance(kernel, _nkx.Kernel) and kernel.generation > 0 and not os.environ.get("NKX_NKI_FRONTEND")


def record(kernel, args, kwargs, grid=()):
    """The record of one of our kernels.  args, kwargs: arrays and compile-time values."""
    bound = inspect.signature(kernel.func).bind(*args, **kwargs)
    bound.apply_defaults()
    function = nki_beta1_kernel.entry(kernel.func) if kernel.generation == nki_run.BETA_1 else kernel.func
    found = _nkx.nki_record(function, name_of(kernel), dict(bound.arguments), nki_grid.of(grid, kernel.generation))
    r = Recorded(*found)
    if function is not kernel.func:  # results that take the place of arguments are tensors of their own in beta 1
        operands = [name for name, a in bound.arguments.items() for _ in _tensors_in(a)]
        r.aliases.update({operands.index(name): i for i, name in enumerate(function.written) if name})
    return r


def run(kernel, args, kwargs, grid=()):
    """The results for arrays, evaluated call by call."""
    return nki_run.evaluate(kernel, args, kwargs, grid)


def trace(kernel, args, kwargs, grid=()):
    """What the call becomes: Recorded or Traced.  args, kwargs: arrays and compile-time values."""
    grid = grid if isinstance(grid, (tuple, list)) else (grid,)
    return record(kernel, args, kwargs, grid) if is_ours(kernel) else trace_vendor(kernel, args, kwargs, grid)


def trace_vendor(kernel, args, kwargs, grid=()):
    """NotImplementedError where no front end is installed."""
    grid = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    key = _key(kernel, args, kwargs, grid)
    try:
        if key in _known:
            return _known[key]
    except TypeError:  # a value that has no hash
        key = None
    nir, framework = _find("compile_kernel_to_nir"), _find("FrameworkKernel")
    if not nir and not framework:
        refuse(f"{name_of(kernel)}: an NKI kernel without @nki.jit is traced by the vendor's NKI compiler, which is not installed here",
               "decorate it with @nki.jit")
    r = _trace_nir(nir, kernel, args, kwargs, grid) if nir else _trace_framework(framework, kernel, args, kwargs, grid)
    if key:
        _known[key] = r
    return r


# ---- the call --------------------------------------------------------------------------------------------------------


def is_tensor(t):
    """True for what the front end takes as a tensor.  Other arguments, NumPy's scalars too, are compile-time values."""
    return isinstance(t, package.TRACED) or (hasattr(t, "shape") and hasattr(t, "dtype") and not isinstance(t, np.generic))


def _tensors_in(value):
    """The argument, or what the tuple has, as far as these are tensors."""
    if isinstance(value, tuple):
        return [t for v in value for t in _tensors_in(v)]
    return [value] if is_tensor(value) else []


def stand_in(t):
    """An array of the tensor's shape and dtype that needs no memory; in a tuple, too."""
    if isinstance(t, tuple):
        return package.in_tuples(t, stand_in)
    return np.broadcast_to(np.zeros((), t.dtype), t.shape) if is_tensor(t) else t


def _operands(kernel, args, kwargs):
    """The tensors among the arguments, in the order of the kernel's parameters."""
    try:
        args, kwargs = package.bind(getattr(kernel, "func", kernel), args, kwargs)
    except (TypeError, ValueError):
        pass
    return [t for a in (*args, *kwargs.values()) for t in _tensors_in(a)]


def _write_aliases(traced, tensors, results):
    for i, o in traced.aliases.items():
        if isinstance(tensors[i], (*package.TRACED, np.ndarray)):
            tensors[i][...] = results[o]


def emit(kernel, traced, args, kwargs):
    """Records the custom call, and writes the results that alias operands into them."""
    if isinstance(traced, Recorded):
        tensors = _operands(kernel, args, kwargs)
        results = _nkx.custom_call(traced.name, "", tensors, traced.outputs,
                                   [(o, i) for i, o in traced.aliases.items()], False)
        _write_aliases(traced, tensors, results)
        return (None, results[0], tuple(results))[traced.returned]
    if package.meaning_of_custom_ops():
        refuse(f"{name_of(kernel)} is an NKI kernel: it runs on a Neuron device only", "to_mlir() and to_proto() work")
    tensors = _operands(kernel, args, kwargs)
    constant = _nkx.operation("constant")
    results = _nkx.custom_call(TARGET, traced.config, tensors + [constant(c) for c in traced.constants], traced.outputs,
                               [(o, i) for i, o in traced.aliases.items()], traced.has_collectives)
    _write_aliases(traced, tensors, results)
    return tuple(results) if traced.is_sequence else results[0]


def call(kernel, args, kwargs, grid=None):
    """An NKI kernel called by a NumPy kernel: with traced tensors, or with arrays if the NumPy kernel runs on them."""
    grid = grid if grid is not None else getattr(kernel, "grid", None) or ()
    if not _nkx.is_tracing():
        return run(kernel, args, kwargs, grid)
    traced = trace(kernel, tuple(map(stand_in, args)), {k: stand_in(v) for k, v in kwargs.items()}, grid)
    return emit(kernel, traced, args, kwargs)


def call_traced(kernel, *args, **kwargs):
    """One of our kernels, called by a NumPy kernel that is traced."""
    return call(kernel, args, kwargs)


def _is_traced_call(args, kwargs):
    return _nkx.is_tracing() and any(isinstance(t, package.TRACED) for a in (*args, *kwargs.values()) for t in _tensors_in(a))


def _take_over(cls):
    """Lets call() handle calls of this class of kernels with traced tensors; inspect sees the function's parameters."""
    plain = cls.__call__
    if hasattr(plain, "__nkx_plain__"):
        return

    def __call__(self, *args, **kwargs):
        return call(self, args, kwargs) if _is_traced_call(args, kwargs) else plain(self, *args, **kwargs)

    __call__.__nkx_plain__ = plain
    cls.__call__ = __call__
    if not hasattr(cls, "__wrapped__"):
        cls.__wrapped__ = property(lambda self: self.func)


def take_over_jit():
    """Makes the vendor's @nki.jit kernels callable with traced tensors."""
    for top in packages():
        try:
            kernel = top.jit(take_over_jit)
            _take_over(type(kernel))
            _take_over(type(kernel[1]))
        except Exception:  # a version with another interface: its kernels need wrap_nki_kernel
            continue
