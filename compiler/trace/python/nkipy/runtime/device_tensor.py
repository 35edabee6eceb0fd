from nkx.device import DeviceTensor

__all__ = ["DeviceTensor"]
