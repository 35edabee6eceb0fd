"""Running NKI kernels on arrays: kernel(x, y), nki.simulate(kernel)(x, y)."""
import inspect
import os

import _nkx
import numpy as np
from nkx import nki_kernel, nki_names


def check_options(options, generation=2):
    for name in options:
        if name == "platform_target" and generation > 1:
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
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "__array__"):
        return value
    return np.asarray(value)


def _entry(kernel):
    """The function that the record is made of."""
    if kernel.generation > 1:
        return kernel.func
    from nkx import nki_beta1
    return nki_beta1.entry(kernel.func)


def call(kernel, *args, **kwargs):
    """An @nki.jit kernel called with arrays: its results, computed instruction by instruction."""
    bound = inspect.signature(kernel.func).bind(*args, **kwargs)
    bound.apply_defaults()
    return _nkx.nki_run(_entry(kernel), {name: _array(v) for name, v in bound.arguments.items()}, target())


def call_traced(kernel, *args, **kwargs):
    """An @nki.jit kernel called by a NumPy kernel that is traced."""
    return nki_kernel.call(kernel, args, kwargs)


def simulate(kernel):
    """A function that runs the kernel on arrays."""
    return lambda *args, **kwargs: call(kernel, *args, **kwargs)


def simulate_kernel(kernel, *args, **kwargs):
    """Beta 1: runs the kernel on arrays."""
    return call(kernel, *args, **kwargs)


baremetal = benchmark = profile = None
