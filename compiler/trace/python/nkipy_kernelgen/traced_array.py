from nkigen.traced_array import TracedArray

__all__ = ["TracedArray"]
