"""NKIPy's names: `from nkipy import knob`."""
import os
import sys

import nkx
from _nkx import knob_function as knob
from nkx import missing

# Stand-ins for other packages that model kernels import.  They are last in the path: an installed package comes first.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(nkx.__file__)), "stubs"))
sys.meta_path.append(missing.Finder())

__all__ = ["knob"]
