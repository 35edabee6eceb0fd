"""XLA as an oracle: reads HLO text and protos, and runs them on the CPU.  Uses jaxlib's own bindings."""

import os
import pathlib
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
from jax._src.lib import xla_client
from jaxlib import _hlo, _jax

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "trace"))
import xla_topk  # noqa: E402

jax.config.update("jax_enable_x64", True)  # not by environment: jax may be imported already


def read_text(text):
    return _hlo.hlo_module_from_text(text)


def read_proto(data):
    return _hlo.HloModule.from_serialized_hlo_module_proto(data)


def canonical(module, metadata=True):
    """XLA's own printing of a module, with everything that its parser reads."""
    options = _hlo.HloPrintOptions()
    options.print_large_constants = True
    options.print_metadata = metadata
    return module.name + "\n" + module.to_string(options)


def parameters(data):
    """Shape and NumPy dtype of each parameter."""
    shapes = _hlo.XlaComputation(data).program_shape().parameter_shapes()
    return [(s.dimensions(), s.numpy_dtype()) for s in shapes]


def run(data, inputs):
    """Compiles the serialized HloModuleProto and runs it; the results as a list of arrays."""
    mlir = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(xla_topk.expand(data)))
    device = jax.devices()[0]
    executable = device.client.compile_and_load(
        mlir, xla_client.DeviceList((device,)), xla_client.CompileOptions()
    )
    results = executable.execute_sharded([jax.device_put(x) for x in inputs])
    return [np.asarray(a[0]) for a in results.disassemble_into_single_device_arrays()]


def random_inputs(data, seed=0):
    rng = np.random.default_rng(seed)
    inputs = []
    for shape, dtype in parameters(data):
        if dtype == np.bool_:
            inputs.append(rng.integers(0, 2, shape).astype(bool))
        elif np.issubdtype(dtype, np.integer):
            inputs.append(rng.integers(0, 3, shape).astype(dtype))
        else:
            inputs.append(rng.uniform(-2, 2, shape).astype(dtype))
    return inputs


def run_text(text, inputs):
    return run(read_text(text).as_serialized_hlo_module_proto(), inputs)
