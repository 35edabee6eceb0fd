"""NKIPy's runtime.  What stands in for the device is said in nkx/device.py."""
from nkx.device import (BaremetalExecutor, CompiledKernel, DeviceKernel, DeviceTensor, baremetal_jit,
                        baremetal_run_traced_kernel, is_neuron_compatible)

__all__ = ["BaremetalExecutor", "CompiledKernel", "DeviceKernel", "DeviceTensor", "baremetal_jit",
           "baremetal_run_traced_kernel", "is_neuron_compatible"]
