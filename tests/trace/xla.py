"""Traces a source with the extension and runs the HLO with XLA."""
import os
import pathlib
import sys

import jax
import jax.extend.backend
import jaxlib._jax
import numpy as np
from jaxlib import _hlo, xla_client

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / os.environ.get("BUILD", "build") / "python"))

import _nkx  # noqa: E402
import xla_topk  # noqa: E402

# (relative, absolute), per dtype of the output
TOLERANCE = {"float32": (2e-5, 2e-6), "float16": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2)}


def options():
    """Each program runs once, on little: what LLVM's optimizer costs is never earned back."""
    made = xla_client.CompileOptions()
    debug = made.executable_build_options.debug_options
    debug.xla_backend_optimization_level = 0
    debug.xla_llvm_disable_expensive_passes = True
    return made


def run(proto, inputs):
    """Results of a serialized HloModuleProto, as NumPy arrays."""
    client = jax.extend.backend.get_backend("cpu")
    devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))
    program = jaxlib._jax.mlir.hlo_to_stablehlo(xla_topk.expand(proto))
    done = client.compile_and_load(program, devices, options())
    out = done.execute_sharded([jax.device_put(a) for a in inputs])
    return [np.asarray(o[0]) for o in out.disassemble_into_single_device_arrays()]


def read(proto):
    """What XLA reads, as text."""
    options = _hlo.HloPrintOptions.short_parsable()
    options.print_backend_config = True
    return _hlo.HloModule.from_serialized_hlo_module_proto(proto).to_string(options)


def assert_close(got, want, what):
    assert got.shape == want.shape and got.dtype == want.dtype, what
    name = want.dtype.name
    if name not in TOLERANCE:
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    rtol, atol = TOLERANCE[name]
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol, atol, equal_nan=True, err_msg=what)


def trace(source, **options):
    """The only kernel of a source that must trace without errors."""
    result = _nkx.trace_source(source, **options)
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert not errors, errors
    assert len(result["kernels"]) == 1
    return result["kernels"][0]


def check(source, names=None, inputs=None, **options):
    """Traces, runs with NumPy and with XLA, and compares output by output."""
    kernel = trace(source, evaluate=True, **options)
    given = kernel["input_values"]
    for got, want, out in zip(run(kernel["proto"], given), kernel["expected"], kernel["outputs"], strict=True):
        assert_close(got, want, f"{out['name']} of\n{source}")
    return kernel
