"""Running NKI kernels on arrays: kernel(x, y), nki.simulate(kernel)(x, y)."""
import inspect
import os

import _nkx
import numpy as np
from nkx import nki_grid, nki_names


def check_options(options):
    for name in options:
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
    if isinstance(value, (np.ndarray, np.generic)) or not hasattr(value, "__array__"):
        return value
    return np.asarray(value)


def call(kernel, *args, **kwargs):
    """An @nki.jit kernel called with arrays: its results, computed instruction by instruction."""
    if kernel.generation == 1:
        nki_names.refuse(_nkx.NkiUnsupported, "kernels of NKI beta 1 (neuronxcc.nki) are not run here yet")
    bound = inspect.signature(kernel.func).bind(*args, **kwargs)
    bound.apply_defaults()
    return _nkx.nki_run(kernel.func, {name: _array(v) for name, v in bound.arguments.items()}, target(),
                        nki_grid.of(kernel.grid, kernel.generation))


def simulate(kernel):
    """A function that runs the kernel on arrays."""
    return lambda *args, **kwargs: call(kernel, *args, **kwargs)
