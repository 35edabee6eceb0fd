"""NKIPy's names: `from nkipy import knob`."""
import os
import sys

import nkx
from _nkx import knob_function as knob

# Stand-ins for what model kernels import beside NKIPy; last, so that the real ones come first where they are installed.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(nkx.__file__)), "stubs"))

__all__ = ["knob"]
