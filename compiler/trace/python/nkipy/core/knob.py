from _nkx import knob_function as knob

__all__ = ["knob"]
