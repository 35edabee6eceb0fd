from nkx.device import baremetal_jit

__all__ = ["baremetal_jit"]
