"""What a function reads besides its arguments: if it is equal at two calls, the function does the same in both.

Compiled kernels are kept by it: a notebook that changes a global between two calls gets the kernel that it now describes.
"""
import enum
import sys
import types

import _nkx
import numpy as np

_PLAIN = (int, bool, str, bytes, type(None), type(...), np.dtype)
_FIXED = {"nki", "neuronxcc", "nkipy", "nkx", "_nkx", "numpy", "ml_dtypes", *sys.stdlib_module_names}  # packages that do not change


class Unknown(Exception):
    """A value that may change without notice."""


def key(value):
    """A value that is equal for equal values, and can be hashed.  Raises Unknown."""
    return _key(value, set())


def _key(v, seen):
    if type(v) in _PLAIN:
        return type(v), v
    if isinstance(v, (float, complex, np.generic)):
        return type(v), repr(v)  # tells 0.0 from -0.0
    if isinstance(v, enum.Enum):
        return type(v), v.name
    if type(v) in (tuple, list):
        return type(v), tuple(_key(x, seen) for x in v)
    if type(v) is dict:
        return dict, tuple((_key(k, seen), _key(x, seen)) for k, x in v.items())
    if isinstance(v, types.FunctionType) and not _is_fixed(v.__module__):
        return _function(v, seen)
    if isinstance(v, _nkx.Kernel):
        return _key(v.func, seen)
    name = v.__name__ if isinstance(v, types.ModuleType) else getattr(v, "__module__", None) or type(v).__module__
    if _is_fixed(name):
        return id(v), name
    raise Unknown


def _is_fixed(module):
    return isinstance(module, str) and module.partition(".")[0] in _FIXED


def _function(f, seen):
    if id(f) in seen:
        return id(f)
    seen.add(id(f))
    names, codes = set(), [f.__code__]
    for code in codes:
        names |= set(code.co_names)
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    cells = [_cell(c, seen) for c in f.__closure__ or ()]
    read = [(n, _key(f.__globals__[n], seen)) for n in sorted(names & f.__globals__.keys())]
    return f.__code__, _key(f.__defaults__, seen), _key(f.__kwdefaults__, seen), tuple(cells), tuple(read)


def _cell(cell, seen):
    try:
        return _key(cell.cell_contents, seen)
    except ValueError:  # nothing is bound yet
        return None
