"""NEFF files as compiled kernels: simulation packages on the simulated machine, those of the vendor's compiler on a Neuron
device through libnrt.  NKX_DEVICE=neuron takes simulation packages to libnrt, too, which a device's runtime refuses.

One runtime serves the process.  It is initialised when the first NEFF needs it, and closed at the end or by reset().
"""
import atexit
import os
import threading
import time

import _nkx
import numpy as np

from . import package

ALIASED = ".must_alias_input"

_lock = threading.RLock()  # libnrt's handles are used by one thread at a time
_device = _about = None
_cores = None


def configure(visible_cores=None):
    """Which cores the runtime may use: "2", "2-3", or a range of numbers.  Before the first NEFF is loaded."""
    global _cores
    if _device is not None:
        raise RuntimeError("the Neuron runtime is in use: reset() closes it")
    if visible_cores is not None and not isinstance(visible_cores, str):
        numbers = sorted(visible_cores)
        if not numbers or numbers != list(range(numbers[0], numbers[-1] + 1)):
            raise ValueError(f"visible_cores must be successive numbers, not {visible_cores!r}")
        visible_cores = f"{numbers[0]}-{numbers[-1]}"
    _cores = visible_cores


def runtime():
    """The library that runs NEFFs on devices: {"library", "version", "stand_in", "cores"}."""
    global _device, _about
    with _lock:
        if _device is None:
            _device, _about = package.compiler().neuron_open(None, _cores)
            if _about["stand_in"]:
                package.warn(f"{_about['library']} is a stand-in for tests: no Neuron device runs anything", package.DeviceWarning)
        return _about


def reset():
    """Closes the runtime; models that are loaded cannot be used any more."""
    global _device
    with _lock:
        device, _device = _device, None
        if device is not None:
            package.compiler().neuron_close(device)


atexit.register(reset)


def load(path, name=None, core_id=0, group=None):
    """The NEFF in a file, as package.Code: inputs, outputs, aliases, run.  group: (rank, size) of a program that runs on several
    devices."""
    if _nkx.in_job():
        raise RuntimeError(f"{path}: the explorer runs no NEFF; nkx run does")
    with open(path, "rb") as f:
        data = f.read()
    on_device = not package.compiler().neff_is_package(data) or os.environ.get("NKX_DEVICE") == "neuron"
    if on_device:
        return DeviceCode(data, name or _stem(path), core_id, group)
    if group not in (None, (0, 1)):
        raise ValueError(f"{path}: the simulated machine runs one device; the group has {group[1]}")
    return PackageCode(data, name)


def _stem(path):
    return os.path.basename(path).split(".")[0]


class _NeffCode:
    """What package.Code has of a kernel, without its source."""

    is_on_device = False

    def _set_tensors(self, inputs, outputs):
        """Inputs that an output overwrites have the alias in their names."""
        self.inputs, self.outputs = inputs, outputs
        plain = {i.name.removesuffix(ALIASED): k for k, i in enumerate(inputs)}
        self.aliases = []
        for k, o in enumerate(outputs):
            if o.alias_of < 0 and o.name in plain and inputs[plain[o.name]].name.endswith(ALIASED):
                o.alias_of = plain[o.name]
            if o.alias_of >= 0:
                i = inputs[o.alias_of]
                i.name = i.name.removesuffix(ALIASED) + ALIASED
                self.aliases.append(package.Alias(k, o.alias_of, i.name.removesuffix(ALIASED), True))

    def on_device(self, target=None):
        return self._program

    def _check(self, arrays):
        given = []
        for info, a in zip(self.inputs, arrays, strict=True):
            a = np.array(a, info.dtype, order="C")
            if a.shape != info.shape:
                raise ValueError(f"{info.name} has shape {a.shape}; the NEFF was compiled for {info.shape}")
            given.append(a)
        return given


class PackageCode(_NeffCode):
    """A simulation package."""

    def __init__(self, data, name):
        x = package.compiler().package(data)
        self.name, self.target, self._program = name or x["name"], x["target"], x["program"]
        self._set_tensors(package.TensorInfo.all(x["inputs"]), package.TensorInfo.all(x["outputs"]))

    def run(self, arrays, target=None):
        return package.run_program(self._program, self.inputs, self.outputs, arrays, package.compiler().simulate)

    def profile(self, arrays, target=None):
        texts = []

        def call(*run):
            texts.extend(package.compiler().profile(*run, package.TARGETS.index(self.target)))

        return package.run_program(self._program, self.inputs, self.outputs, arrays, call), package.Profile(*texts)

    def save_trace(self, arrays, path):
        """Runs it, and writes the simulated timeline for ui.perfetto.dev."""
        results, profile = self.profile(arrays)
        profile.save_trace(path)
        return results

    def time_ms(self, arrays):
        """How long a run takes this processor."""
        start = time.perf_counter()
        self.run(arrays)
        return (time.perf_counter() - start) * 1000

    trace_suffix = ".json"


class DeviceCode(_NeffCode):
    """A NEFF on a core of a Neuron device."""

    is_on_device = True
    trace_suffix = ".ntff"
    target = "trn2"  # which it was compiled for is not known; nothing depends on it

    def __init__(self, data, name, core_id, group):
        self.name, self.core_id = name, core_id
        with _lock:
            runtime()
            self._program, ios = package.compiler().neuron_load(_device, data, core_id, group)
        tensors = [(is_output, package.TensorInfo(n, shape, self._dtype(n, t))) for n, is_output, t, shape in ios]
        self._set_tensors([t for is_output, t in tensors if not is_output], [t for is_output, t in tensors if is_output])

    @staticmethod
    def _dtype(name, text):
        if not text:
            raise RuntimeError(f"{name}: the NEFF has a type that NumPy and ml_dtypes do not have")
        return package.dtype(text)

    def _run(self, arrays, profile=None):
        arrays = self._check(arrays)
        results = [arrays[o.alias_of] if o.alias_of >= 0 else np.empty(o.shape, o.dtype) for o in self.outputs]
        with _lock:
            ns = package.compiler().neuron_run(self._program, [(i.name, a) for i, a in zip(self.inputs, arrays)],
                                               [(o.name, r) for o, r in zip(self.outputs, results)], profile)
        return results, ns

    def run(self, arrays, target=None):
        return self._run(arrays)[0]

    def profile(self, arrays, target=None):
        raise RuntimeError(f"{self.name}: save_trace=True writes the device's profile, for the vendor's tools")

    def save_trace(self, arrays, path):
        """Runs it, and writes the runtime's profile (NTFF)."""
        return self._run(arrays, os.fspath(path))[0]

    def time_ms(self, arrays):
        """How long the runtime's call takes, on the host's clock."""
        return self._run(arrays)[1] / 1e6
