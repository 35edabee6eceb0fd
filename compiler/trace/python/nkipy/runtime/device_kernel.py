from nkx.device import DeviceKernel

__all__ = ["DeviceKernel"]
