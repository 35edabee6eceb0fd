"""NKIPy's names: `from nkipy import knob`."""
from _nkx import knob_function as knob

__all__ = ["knob"]
