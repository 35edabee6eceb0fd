from _nkx import Tensor as NKIPyTensorRef

__all__ = ["NKIPyTensorRef"]
