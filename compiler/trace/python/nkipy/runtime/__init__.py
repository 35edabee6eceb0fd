"""NKIPy's runtime.  nkx/device.py says what takes the place of the device."""
from nkx.device import (BaremetalExecutor, CompiledKernel, DeviceKernel, DeviceTensor, baremetal_jit,
                        baremetal_run_traced_kernel, is_neuron_compatible)

__all__ = ["BaremetalExecutor", "CompiledKernel", "DeviceKernel", "DeviceTensor", "baremetal_jit",
           "baremetal_run_traced_kernel", "is_neuron_compatible"]
