"""What tensors do with NumPy's callables: the ufuncs by name, the other functions by object."""
import functools

import _nkx
import numpy as np

__all__ = ["functions", "ufuncs"]

_all = [(functools.reduce(getattr, path.split("."), np), _nkx.operation(row["name"]))
        for row in _nkx.operations() for path in row["numpy"].split()]
ufuncs = {f.__name__: operation for f, operation in _all if isinstance(f, np.ufunc)}
functions = {f: operation for f, operation in _all if not isinstance(f, np.ufunc)}
