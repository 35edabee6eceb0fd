from _nkx import Kernel as NKIPyKernel

__all__ = ["NKIPyKernel"]
