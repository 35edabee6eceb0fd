from nkx.device import BaremetalExecutor, CompiledKernel, baremetal_run_traced_kernel

__all__ = ["BaremetalExecutor", "CompiledKernel", "baremetal_run_traced_kernel"]
