from _nkx import Tensor as TracedArray

__all__ = ["TracedArray"]
