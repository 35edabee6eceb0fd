"""NumPy's files of arrays with the narrow floats of ml_dtypes.

NumPy writes such elements as bytes without a type, except float8_e5m2, which it writes as '<f1' and cannot read again.  Ours are
all written as bytes, and '<f1' is read as what it can only be.
"""
import ast
import zipfile

import ml_dtypes
import numpy as np

_E5M2 = np.dtype(ml_dtypes.float8_e5m2)
_HEADER_MOST = 10000  # bytes; NumPy's own limit


class _Arrays:
    """The arrays of an open .npz file."""

    def __init__(self, file):
        self._file, self.files = file, file.files

    def __contains__(self, name):
        return name in self._file

    def __getitem__(self, name):
        try:
            return self._file[name]
        except ValueError:
            array = self._of_e5m2(name)
            if array is None:
                raise
            return array

    def _of_e5m2(self, name):
        with self._file.zip.open(name if name in self._file.zip.namelist() else f"{name}.npy") as f:
            major, _ = np.lib.format.read_magic(f)
            size = int.from_bytes(f.read(2 if major == 1 else 4), "little")
            if size > _HEADER_MOST:
                return None
            header = ast.literal_eval(f.read(size).decode())
            if header["descr"] != _E5M2.str:
                return None
            return np.frombuffer(f.read(), _E5M2).reshape(header["shape"], order="F" if header["fortran_order"] else "C")


def load(path):
    file = np.load(path, allow_pickle=False)
    return _Arrays(file) if isinstance(file, np.lib.npyio.NpzFile) else file


def save(path, arrays):
    """arrays: {name: array}.  What is at `path` is replaced."""
    with zipfile.ZipFile(path, "w") as z:
        for name, x in arrays.items():
            with z.open(f"{name}.npy", "w", force_zip64=True) as f:
                np.lib.format.write_array(f, x.view("V1") if x.dtype == _E5M2 else x, allow_pickle=False)
