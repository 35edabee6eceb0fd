from _nkx import fori_loop, knob

__all__ = ["fori_loop", "knob"]
