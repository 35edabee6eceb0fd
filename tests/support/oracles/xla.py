"""XLA as an oracle: reads HLO text and protos, and runs them on the CPU.  Uses jaxlib's own bindings.

    kernel = xla.trace(source, inputs=[("x", (2, 3), "float32")])     # the front end alone, by the extension
    results = xla.run(kernel["proto"], [x])
    results = xla.run_text(text, inputs)
"""
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Loops emitted as LLVM IR, in one module: to compile a program takes a fifth of the time that kernels of MLIR take
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1")

import jax  # noqa: E402
import numpy as np  # noqa: E402
from jaxlib import _hlo, _jax, xla_client  # noqa: E402

import _nkx  # noqa: E402
from support.oracles import xla_topk  # noqa: E402

jax.config.update("jax_enable_x64", True)  # not by environment: jax may be imported already

# (relative, absolute), per dtype of the output
TOLERANCE = {"float32": (2e-5, 2e-6), "float16": (4e-3, 4e-3), "bfloat16": (3e-2, 3e-2), "complex64": (2e-5, 1e-5)}


# ---- modules


def read_text(text):
    return _hlo.hlo_module_from_text(text)


def read_proto(data):
    return _hlo.HloModule.from_serialized_hlo_module_proto(data)


def canonical(module, metadata=True):
    """XLA's own print of a module, with everything that its parser reads."""
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_metadata = metadata
    return module.name + "\n" + module.to_string(options)


def read(proto):
    """What XLA reads in a proto, as short text."""
    options = _hlo.HloPrintOptions.short_parsable()
    options.print_backend_config = True
    return read_proto(proto).to_string(options)


def parameters(proto):
    """Shape and NumPy dtype of each parameter."""
    shapes = _hlo.XlaComputation(proto).program_shape().parameter_shapes()
    return [(s.dimensions(), s.numpy_dtype()) for s in shapes]


# ---- running


def _options(proto):
    """Each program runs once, on little: the time that LLVM's optimizer takes is never earned back."""
    made = xla_client.CompileOptions()
    if b"reduce-precision" in proto:  # XLA's other emitter makes an infinity of a NaN without mantissa bits
        made.env_option_overrides = [("xla_cpu_use_fusion_emitters", True)]
    debug = made.executable_build_options.debug_options
    debug.xla_backend_optimization_level = 0
    debug.xla_llvm_disable_expensive_passes = True
    return made


def run(proto, inputs):
    """Results of a serialized HloModuleProto, as NumPy arrays."""
    device = jax.devices("cpu")[0]
    program = _jax.mlir.hlo_to_stablehlo(xla_topk.expand(proto))
    done = device.client.compile_and_load(program, xla_client.DeviceList((device,)), _options(proto))
    out = done.execute_sharded([jax.device_put(a) for a in inputs])
    return [np.asarray(o[0]) for o in out.disassemble_into_single_device_arrays()]


def run_text(text, inputs):
    return run(read_text(text).as_serialized_hlo_module_proto(), inputs)


def random_inputs(proto, seed=0):
    rng = np.random.default_rng(seed)
    inputs = []
    for shape, dtype in parameters(proto):
        if dtype == np.bool_:
            inputs.append(rng.integers(0, 2, shape).astype(bool))
        elif np.issubdtype(dtype, np.integer):
            inputs.append(rng.integers(0, 3, shape).astype(dtype))
        else:
            inputs.append(rng.uniform(-2, 2, shape).astype(dtype))
    return inputs


def assert_close(got, want, what):
    assert got.shape == want.shape and got.dtype == want.dtype, what
    name = want.dtype.name
    if name not in TOLERANCE:
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    rtol, atol = TOLERANCE[name]
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol, atol, equal_nan=True, err_msg=what)


# ---- the front end


def trace(source, **options):
    """The only kernel of a source that must trace without errors."""
    result = _nkx.trace_source(source, **options)
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert not errors, errors
    assert len(result["kernels"]) == 1
    return result["kernels"][0]


def check(source, **options):
    """Traces, runs with NumPy and with XLA, and compares output by output."""
    kernel = trace(source, evaluate=True, **options)
    for got, want, out in zip(run(kernel["proto"], kernel["input_values"]), kernel["expected"], kernel["outputs"], strict=True):
        assert_close(got, want, f"{out['name']} of\n{source}")
    return kernel
