"""Running NKI kernels on arrays: kernel(x, y), nki.simulate(kernel)(x, y), nki.benchmark(kernel)(x, y), ….

In the explorer, which executes a program to find its kernels, a call is evaluated with NumPy, instruction by instruction.
In an ordinary Python it runs on the simulated machine: the kernel goes through all stages, and the last one is executed.
"""
import inspect
import os
import warnings

import _nkx
import numpy as np
from nkx import nki_grid, nki_names, nki_reads, package

BETA_1 = 1


def check_options(options, generation=2):
    """The options of nki.jit.  Those of beta 1 say where a kernel runs, and nothing of what it computes."""
    for name in options if generation > BETA_1 else ():
        if name == "platform_target":
            nki_names.refuse(_nkx.NkiRemovedApi, "jit has no platform_target",
                             "the target of the compile decides, or NEURON_PLATFORM_TARGET_OVERRIDE")
        if name not in ("mode", "debug_kernel"):
            nki_names.refuse(_nkx.NkiCall, f'jit has no parameter "{name}"')


def target():
    """The machine on which a call with arrays runs."""
    named = os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")
    return {"gen2": "trn1", "inf2": "trn1", "gen3": "trn2", "gen4": "trn3"}.get(named, named)


def _array(value):
    """A NumPy array for what a framework calls a tensor; other values as they are."""
    if isinstance(value, tuple):
        return package.in_tuples(value, _array)
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "__array__"):
        return value
    return np.asarray(value)


def as_arrays(args, kwargs):
    """The arguments of a call, frameworks' tensors as arrays."""
    return tuple(map(_array, args)), {name: _array(value) for name, value in (kwargs or {}).items()}


def _bound(kernel, args, kwargs):
    """The call's arguments by name, with defaults; frameworks' tensors as arrays."""
    bound = inspect.signature(kernel.func).bind(*args, **kwargs)
    bound.apply_defaults()
    for name, value in bound.arguments.items():
        bound.arguments[name] = _array(value)
    return bound


# ---- calls ----------------------------------------------------------------------------------------------------------


class Program:
    """A kernel that is compiled for one call: for the shapes of its arrays, its other arguments, and one machine."""

    def __init__(self, kernel, bound):
        self.target = target()
        stand_ins = {k: package.stand_in(v) for k, v in bound.arguments.items()}
        call = inspect.BoundArguments(bound.signature, stand_ins)
        trace = _nkx.trace_function(kernel, call.args, call.kwargs, None, kernel.__name__, self.target)
        self.inputs, self.outputs = package.TensorInfo.all(trace["inputs"]), package.TensorInfo.all(trace["outputs"])
        self.simulator = package.simulator(trace["trace"], self.target)

    def run(self, arrays):
        return package.run_program(self.simulator, self.inputs, self.outputs, arrays, package.compiler().simulate)

    def profile(self, arrays):
        """The results, and the package.Profile of the run."""
        texts = []

        def call(*run):
            texts.extend(package.compiler().profile(*run, package.TARGETS.index(self.target)))

        results = package.run_program(self.simulator, self.inputs, self.outputs, arrays, call)
        return results, package.Profile(*texts)


_programs = {}  # by what the kernel reads, its launch, machine and arguments: the newest ones
_PROGRAMS_MAX = 32


def _program(kernel, bound):
    """The compiled kernel: one that is kept, if nothing that it depends on has changed."""
    of = lambda v: ((v.shape, v.dtype) if isinstance(v, np.ndarray) else
                    (type(v), *map(of, v)) if isinstance(v, tuple) else nki_reads.key(v))
    try:
        key = (nki_reads.key(kernel.func), nki_grid.of(kernel.grid, kernel.generation), target(),
               tuple((name, of(v)) for name, v in bound.arguments.items()))
    except nki_reads.Unknown:
        return Program(kernel, bound)
    found = _programs.pop(key, None) or Program(kernel, bound)
    _programs[key] = found
    while len(_programs) > _PROGRAMS_MAX:
        del _programs[next(iter(_programs))]
    return found


def _results(names, results, bound):
    """What the call returns.  A result that is an argument is also written into its array."""
    returned = []
    for i, r in enumerate(results):
        array = bound.arguments.get(names[i]) if i < len(names) and names[i] else None
        if isinstance(array, np.ndarray) and array.flags.writeable:
            np.copyto(array, r, casting="unsafe")
        returned.append(r)
    return returned[0] if len(returned) == 1 else tuple(returned)


def _evaluated(kernel, bound, grid):
    """The call, evaluated with NumPy."""
    launch = nki_grid.of(grid, kernel.generation)
    if kernel.generation > BETA_1:
        return _nkx.nki_run(kernel.func, bound.arguments, target(), launch)
    from nkx import nki_beta1_kernel
    entry = nki_beta1_kernel.entry(kernel.func)
    r = _nkx.nki_run(entry, bound.arguments, target(), launch)
    return _results(entry.written, list(r) if isinstance(r, (tuple, list)) else [r], bound)


def evaluate(kernel, args, kwargs, grid):
    """A call of kernel[grid], evaluated with NumPy."""
    return _evaluated(kernel, _bound(kernel, args, kwargs), grid)


def run(kernel, args, kwargs, with_profile=False):
    """(results of the call, the Profile of the simulated machine or None)"""
    bound = _bound(kernel, args, kwargs)
    if _nkx.in_job():
        return _evaluated(kernel, bound, kernel.grid), None
    program = _program(kernel, bound)
    arrays = package.arrays_of(bound.args, bound.kwargs)
    results, profile = program.profile(arrays) if with_profile else (program.run(arrays), None)
    names = [_argument_of(o) if kernel.generation == BETA_1 else o.name for o in program.outputs]
    return _results(names, results, bound), profile


def _argument_of(output):
    """The argument that an output of beta 1 is: nki_beta1.Parameter calls it NAME_result."""
    return output.name.removesuffix("_result") if output.name.endswith("_result") else None


def call(kernel, *args, **kwargs):
    """An @nki.jit kernel called with arrays."""
    return run(kernel, args, kwargs)[0]


# ---- ways to run ----------------------------------------------------------------------------------------------------


def simulate(kernel):
    """A function that runs the kernel on arrays."""
    return lambda *args, **kwargs: kernel(*args, **kwargs)


def _host_only(name):
    if _nkx.nki_is_recording():
        nki_names.refuse(_nkx.NkiRemovedApi, f"nki.{name} belongs to an earlier NKI, and runs kernels: it is no part of one",
                         "call the other kernel as a function")


class Latency:
    """Times of the simulated machine, which does not vary, in microseconds."""

    def __init__(self, us):
        self.us = us

    def get_latency_percentile(self, percentile):
        return self.us


class UnknownLatency:
    """Times of a kernel that the explorer found in a file: it compiles such a kernel, and simulates it when it is asked to."""

    def get_latency_percentile(self, percentile):
        warnings.warn("get_latency_percentile: 0.0 is no measured time, since a compile does not time the kernels that it finds; "
                      "Run on the page, `nkx run`, and this file under the installed package tell the simulated time", stacklevel=2)
        return 0.0


class BenchmarkResult:
    def __init__(self, latency):
        self.nc_latency = latency


class Measured:
    """A kernel whose calls are timed on the simulated machine: benchmark_result has the time, profile where it goes."""

    def __init__(self, kernel, trace_path=None):
        self._kernel, self._trace_path = kernel, trace_path
        self.benchmark_result = self.profile = None
        self.__name__, self.__wrapped__ = kernel.__name__, kernel.func

    func = property(lambda self: self._kernel.func)

    def __getitem__(self, grid):
        other = Measured(self._kernel[grid], self._trace_path)
        return other

    __iter__ = None  # [0], [1], … would never end

    def __call__(self, *args, **kwargs):
        if _nkx.nki_is_recording():
            return self._kernel(*args, **kwargs)
        results, self.profile = run(self._kernel, args, kwargs, with_profile=True)
        self.benchmark_result = BenchmarkResult(Latency(self.profile["total_us"]))
        if self._trace_path:
            os.makedirs(os.path.dirname(self._trace_path) or ".", exist_ok=True)
            self.profile.save_trace(self._trace_path)
        return results


def _kernel_of(fn, generation):
    return fn if hasattr(fn, "generation") else _nkx.nki_kernel(getattr(fn, "__wrapped__", fn), generation)


def _measured(fn, generation, trace_path=None):
    kernel = _kernel_of(fn, generation)
    if not _nkx.in_job():
        return Measured(kernel, trace_path)
    kernel.benchmark_result = BenchmarkResult(UnknownLatency())
    return kernel


def _note_unwritten(options):
    """Says that a NEFF is asked for that nobody here can make."""
    if options.get("save_neff_name"):
        warnings.warn("save_neff_name: no NEFF is written; the kernel runs on the simulated machine. `nkx neff pack` makes a "
                      "simulation package, and the vendor's compiler a NEFF for devices", stacklevel=3)


def ways_to_run(generation):
    """(simulate_kernel, baremetal, benchmark, profile) for the kernels of one generation."""

    def simulate_kernel(kernel, *args, **kwargs):
        """Runs the kernel on arrays, and returns its results."""
        _host_only("simulate_kernel")
        return call(_kernel_of(kernel, generation), *args, **kwargs)

    def baremetal(fn=None, **options):
        """Makes a function a kernel that a call runs."""
        _host_only("baremetal")
        _note_unwritten(options)
        return (lambda f: baremetal(f)) if fn is None else _kernel_of(fn, generation)

    def benchmark(fn=None, **options):
        """The kernel, whose calls also set benchmark_result.nc_latency; warmup and iters do not matter."""
        _host_only("benchmark")
        _note_unwritten(options)
        return (lambda f: _measured(f, generation)) if fn is None else _measured(fn, generation)

    def profile(fn=None, *, working_directory=None, save_trace_name=None, **options):
        """The kernel, whose calls also set profile, and write the timeline for ui.perfetto.dev if a name for it is given."""
        _host_only("profile")
        _note_unwritten(options)
        path = os.path.join(working_directory or ".", save_trace_name or "profile.json") if working_directory or save_trace_name else None
        return (lambda f: _measured(f, generation, path)) if fn is None else _measured(fn, generation, path)

    return simulate_kernel, baremetal, benchmark, profile
