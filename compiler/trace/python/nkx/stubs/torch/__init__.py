"""Stands in for torch where it is not installed: kernels only ask torch.distributed for the rank."""
from . import distributed


def __getattr__(name):
    raise AttributeError(f"torch.{name} is not available here: kernels are NumPy code")
