"""The device of NKIPy's runtime: the simulated machine, which runs the kernel's last stage.  NKX_DEVICE=linalg takes
machine code of this processor instead, made from the kernel's linalg: it is faster.

The explorer executes a program only to find its kernels.  There the device is NumPy, and a call of a kernel gives the
shapes that it is compiled for.
"""
import dataclasses
import glob
import os
import statistics
import time

import _nkx
import numpy as np

from . import package
from .package import DeviceWarning


_announced = False


def announce():
    global _announced
    if not _announced and not _nkx.in_job():
        _announced = True
        what = ("as machine code of this processor, which MLIR makes of their linalg form" if package.is_on_host() else
                "on a simulated one; NKX_DEVICE=linalg is faster")
        package.warn(f"there is no Neuron device behind this nkipy: kernels run {what}", DeviceWarning)


def is_neuron_compatible():
    """Whether there is a Neuron device, or NKX_DEVICE=sim asks for the simulated one.  The
    explorer is such a device, so that a program there reaches the calls of its kernels."""
    return _nkx.in_job() or os.environ.get("NKX_DEVICE") == "sim" or bool(glob.glob("/dev/neuron[0-9]*"))


def _no_trace(save_trace):
    if save_trace and not _nkx.in_job():
        package.warn("save_trace: no trace is saved, since no Neuron device runs the kernel", DeviceWarning)


def _run_traced(code, arrays, name):
    """Runs a NEFF, and saves the trace: of a device in NTFF, else the simulated timeline for ui.perfetto.dev."""
    path = (name or code.name).removesuffix(".ntff") + code.trace_suffix
    return code.save_trace(arrays, path)


# ---- tensors -------------------------------------------------------------------------------------------------------


class DeviceTensor:
    """An array on the device: an input or output of a DeviceKernel."""

    def __init__(self, data, name=None):
        self._data, self.name = data, name or "tensor"

    shape = property(lambda self: self._data.shape)
    dtype = property(lambda self: self._data.dtype)
    size = property(lambda self: self._data.size)
    nbytes = property(lambda self: self._data.nbytes)

    @classmethod
    def from_numpy(cls, array, name=None, core_id=0):
        return cls(np.array(array, order="C"), name)

    @classmethod
    def from_torch(cls, tensor, name=None, core_id=0):
        return cls(_from_torch(tensor), name)

    @classmethod
    def allocate_uninitialized(cls, shape, dtype, name=None, core_id=0):
        return cls(np.zeros(shape, dtype), name)

    def numpy(self):
        return self._data.copy()

    def torch(self):
        import torch

        if self._data.dtype.name == "bfloat16":
            return torch.from_numpy(self._data.view(np.int16).copy()).view(torch.bfloat16)
        return torch.from_numpy(self._data.copy())

    def write_from_numpy(self, array):
        array = np.asarray(array)
        if array.size != self.size:
            raise ValueError(f"Size mismatch: {self.name} has {self.size} elements, the array {array.size}")
        array = array.reshape(self.shape)
        np.copyto(self._data, array, casting="unsafe")

    def write_from_torch(self, tensor):
        self.write_from_numpy(_from_torch(tensor))

    def __array__(self, dtype=None, copy=None):
        return np.array(self._data, dtype=dtype)

    def __repr__(self):
        return f"DeviceTensor({self.name}: {self.dtype}{list(self.shape)})"


def _from_torch(tensor):
    if str(tensor.dtype) == "torch.bfloat16":
        import torch

        return tensor.detach().contiguous().view(torch.int16).numpy().copy().view(package.dtype("bfloat16"))
    return tensor.detach().numpy().copy()


def _host(o):
    return o._data if isinstance(o, DeviceTensor) else o


# ---- running a kernel by its arguments -----------------------------------------------------------------------------


def _call_in_job(kernel, args, kwargs):
    kernel = kernel if isinstance(kernel, _nkx.Kernel) else _nkx.trace(kernel)
    return kernel(*args, **kwargs)


def target_of(target):
    """The name of a target: "trn1", CompilationTarget.TRN1; trn2 by default."""
    name = getattr(target, "value", target) or "default"
    name = "trn2" if name == "default" else name
    if name not in package.TARGETS:
        raise ValueError(f"target must be one of {', '.join(package.TARGETS)}, not {target!r}")
    return name


def run_kernel(kernel, args, kwargs, target=None):
    """Traces the kernel for these arguments, compiles and runs it."""
    args, kwargs = tuple(map(_host, args)), {k: _host(v) for k, v in kwargs.items()}
    if _nkx.in_job():
        return _call_in_job(kernel, args, kwargs)
    announce()
    args, kwargs = package.bind(package.function_of(kernel), args, kwargs)
    code = package.Code(package.function_of(kernel), kernel.__name__, args, kwargs)
    arrays = package.arrays_of(args, kwargs)
    return package.write_back(code, arrays, code.run(arrays, target_of(target)))


def profile_kernel(kernel, args, kwargs, target=None):
    """Runs the kernel like run_kernel, and returns its Profile."""
    if _nkx.in_job():
        raise RuntimeError("the explorer profiles a kernel itself: compile it with \"simulate\"")
    args, kwargs = tuple(map(_host, args)), {k: _host(v) for k, v in kwargs.items()}
    args, kwargs = package.bind(package.function_of(kernel), args, kwargs)
    code = package.Code(package.function_of(kernel), kernel.__name__, args, kwargs)
    arrays = package.arrays_of(args, kwargs)
    results, profile = code.profile(arrays, target_of(target))
    package.write_back(code, arrays, results)
    return profile


def baremetal_run_traced_kernel(kernel, *args, additional_compiler_args="", target=None, artifacts_dir=None,
                                save_trace=False, **kwargs):
    """Runs a traced kernel on arrays; arrays that the kernel writes are written."""
    _no_trace(save_trace)
    return run_kernel(kernel, args, kwargs, target)


def baremetal_jit(fn=None, *, backend="hlo", additional_compiler_args="", target=None):
    """A function whose calls run on the device."""
    if backend not in ("hlo", "nkigen"):
        raise ValueError(f"unknown backend {backend!r}: use \"hlo\" or \"nkigen\"")
    if fn is None:
        return lambda f: baremetal_jit(f, backend=backend, target=target)
    return _nkx.trace(fn) if _nkx.in_job() else Jit(fn, target_of(target))


class Jit:
    """A function decorated with baremetal_jit."""

    def __init__(self, fn, target):
        self.__wrapped__, self.__name__, self.__doc__, self._target = fn, fn.__name__, fn.__doc__, target

    def __call__(self, *args, **kwargs):
        if _nkx.is_tracing():  # part of another kernel
            return self.__wrapped__(*args, **kwargs)
        return run_kernel(self.__wrapped__, args, kwargs, self._target)

    def profile(self, *args, **kwargs):
        """Calls the kernel; returns where the simulated time goes (package.Profile)."""
        return profile_kernel(self.__wrapped__, args, kwargs, self._target)


# ---- kernels that stay on the device -------------------------------------------------------------------------------

_loaded = {}  # by content


@dataclasses.dataclass
class BenchmarkResult:
    """Times in milliseconds.  Of a NEFF on a Neuron device, those of the runtime's call on the host's clock; else those of this
    processor, simulation included, which say nothing about a Neuron device."""

    iterations: int
    mean_ms: float
    min_ms: float
    max_ms: float
    std_dev_ms: float
    warmup_iterations: int = 0


def _time_ms(call):
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def _measure(call, warmup, iterations, time_ms=None):
    """time_ms: calls, and returns the time; None: that of this processor."""
    time_ms = time_ms or (lambda: _time_ms(call))
    for _ in range(warmup):
        call()
    times = [time_ms() for _ in range(iterations)]
    return BenchmarkResult(iterations, statistics.fmean(times), min(times), max(times), statistics.pstdev(times),
                           warmup)


def _plain(name):
    """The parameter's name: an input that the kernel writes is called x.must_alias_input."""
    return name.removesuffix(".must_alias_input")


class DeviceKernel:
    """A compiled kernel: called with device tensors by name."""

    def __init__(self, code, name=None, target="trn2"):
        self.code, self.name, self.target = code, name or code.name, target

    @classmethod
    def compile_and_load(cls, kernel, *args, name=None, additional_compiler_args="", use_cached_if_exists=True,
                         build_dir=None, target=None, **kwargs):
        args, kwargs = tuple(map(_host, args)), {k: _host(v) for k, v in kwargs.items()}
        fn = package.function_of(kernel)
        if _nkx.in_job():
            return _JobKernel(kernel, args, kwargs)
        announce()
        code = package.Code(fn, kernel.__name__, *package.bind(fn, args, kwargs))
        key = code.content_hash(additional_compiler_args)
        code = _loaded.setdefault(key, code) if use_cached_if_exists else code
        code.on_device(target_of(target))
        return cls(code, name, target_of(target))

    @classmethod
    def load_from_neff(cls, neff_path, name=None, core_id=0, cc_enabled=False, rank_id=0, world_size=1, **kwargs):
        """A NEFF in a file: a simulation package runs on the simulated machine, one of the vendor's compiler on a Neuron device
        (nkx/neuron.py).  cc_enabled: it has collective operations, and is program rank_id of world_size."""
        from . import neuron

        code = neuron.load(neff_path, name, core_id, (rank_id, world_size) if cc_enabled else None)
        return cls(code, name, code.target)

    @property
    def model_ref(self):
        """The loaded program."""
        return self.code.on_device(self.target)

    @property
    def input_tensors_info(self):
        return {i.name: i for i in self.code.inputs}

    @property
    def output_tensors_info(self):
        return {o.name: o for o in self.code.outputs}

    def _arrays(self, inputs, outputs):
        given = {_plain(k): v for k, v in (inputs or {}).items()}
        names = [_plain(i.name) for i in self.code.inputs]
        missing = [n for n in names if n not in given]
        unknown = [k for k in given if k not in names]
        unknown += [k for k in outputs or {} if k not in self.output_tensors_info]
        if missing or unknown:
            raise ValueError(f"{self.name}: " + "; ".join(
                f"{what}: {', '.join(names)}" for what, names in (("missing", missing), ("not known", unknown)) if names))
        return [_host(given[n]) for n in names]

    def __call__(self, inputs=None, outputs=None, save_trace=False, ntff_name=None):
        """inputs, outputs: {name: tensor}.  Without outputs, returns new tensors in the kernel's order.  An output that
        aliases an input is also written into that input."""
        arrays = self._arrays(inputs, outputs)
        if save_trace and hasattr(self.code, "save_trace"):
            results = _run_traced(self.code, arrays, ntff_name)
        else:
            _no_trace(save_trace)
            results = self.code.run(arrays, self.target)
        for alias in self.code.aliases:
            np.copyto(arrays[alias.param_index], results[alias.output_index], casting="unsafe")
        for info, r in zip(self.code.outputs, results):
            if outputs and info.name in outputs:
                np.copyto(_host(outputs[info.name]), r, casting="unsafe")
        return None if outputs else [DeviceTensor(r, o.name) for o, r in zip(self.code.outputs, results)]

    def profile(self, inputs=None):
        """Runs the kernel on the inputs, which stay as they are; returns where the simulated time goes
        (package.Profile)."""
        return self.code.profile(self._arrays(inputs, None), self.target)[1]

    def benchmark(self, inputs=None, outputs=None, warmup_iter=2, benchmark_iter=10):
        time_ms = None
        if getattr(self.code, "is_on_device", False):
            time_ms = lambda: self.code.time_ms(self._arrays(inputs, outputs))
        return _measure(lambda: self(inputs, outputs), warmup_iter, benchmark_iter, time_ms)


class _JobKernel:
    """The DeviceKernel while the explorer looks for kernels: calls the function with NumPy arrays."""

    def __init__(self, kernel, args, kwargs):
        self.name, self._kernel = kernel.__name__, kernel
        self._args, self._kwargs = package.bind(package.function_of(kernel), args, kwargs)
        _call_in_job(kernel, self._args, self._kwargs)

    def __call__(self, inputs=None, outputs=None, save_trace=False, ntff_name=None):
        given = {_plain(k): _host(v) for k, v in (inputs or {}).items()}
        fn = package.function_of(self._kernel)
        call = package.inspect.signature(fn).bind(*self._args, **self._kwargs)
        call.arguments.update({k: v for k, v in given.items() if k in call.arguments})
        r = fn(*call.args, **call.kwargs)
        results = [] if r is None else list(r) if isinstance(r, (tuple, list)) else [r]
        for i, v in enumerate(results):
            if outputs and f"output{i}" in outputs:
                np.copyto(_host(outputs[f"output{i}"]), v, casting="unsafe")
        return None if outputs else [DeviceTensor(np.asarray(v), f"output{i}") for i, v in enumerate(results)]

    def benchmark(self, inputs=None, outputs=None, warmup_iter=0, benchmark_iter=1):
        return _measure(lambda: self(inputs, outputs), 0, 1)


@dataclasses.dataclass
class CompiledKernel:
    kernel: object
    name: str = "kernel"


class BaremetalExecutor:
    """`with BaremetalExecutor() as device: device.run(kernel, x, y)`"""

    def __init__(self, verbose=0, **kwargs):
        self.verbose = verbose

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False

    def run(self, kernel, *args, **kwargs):
        return run_kernel(kernel.kernel if isinstance(kernel, CompiledKernel) else kernel, args, kwargs)

    def profile(self, kernel, *args, **kwargs):
        """Runs the kernel; returns where the simulated time goes (package.Profile)."""
        return profile_kernel(kernel.kernel if isinstance(kernel, CompiledKernel) else kernel, args, kwargs)

    def benchmark(self, kernel, *args, warmup_iterations=2, benchmark_iterations=10, **kwargs):
        kernel = kernel.kernel if isinstance(kernel, CompiledKernel) else kernel
        device = DeviceKernel.compile_and_load(kernel, *args, **kwargs)
        fn = package.function_of(kernel)
        arrays = package.arrays_of(*package.bind(fn, tuple(map(_host, args)), {k: _host(v) for k, v in kwargs.items()}))
        if _nkx.in_job():
            return device.benchmark()
        return _measure(lambda: device.code.run(arrays), warmup_iterations, benchmark_iterations)
