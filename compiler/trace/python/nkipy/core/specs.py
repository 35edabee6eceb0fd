"""Descriptions of a kernel's inputs, for tests."""
import dataclasses
import typing

import numpy as np


@dataclasses.dataclass
class ShapeSpec:
    """dims: an int (exactly that), None (anything) or (least or None, most or None) per dimension."""

    dims: tuple
    default: tuple

    def is_valid(self, shape):
        def fits(want, n):
            if want is None:
                return True
            if isinstance(want, int):
                return n == want
            least, most = want
            return (least is None or n >= least) and (most is None or n <= most)

        return len(shape) == len(self.dims) and all(map(fits, self.dims, shape))


@dataclasses.dataclass
class TypeSpec:
    allowed: set
    default: typing.Any


class CommonTypes:
    FLOATS = TypeSpec({np.float32, np.float16}, np.float32)
    INTS = TypeSpec({np.int8, np.int16, np.int32, np.int64}, np.int32)
    BOOL = TypeSpec({np.bool_}, np.bool_)


@dataclasses.dataclass
class TensorInputSpec:
    shape_spec: ShapeSpec
    dtype_spec: TypeSpec
    description: str = ""
    default_value: typing.Any = None


@dataclasses.dataclass
class ScalarInputSpec:
    dtype_spec: TypeSpec
    description: str = ""
    default_value: typing.Any = None


@dataclasses.dataclass
class KernelSpec:
    function: typing.Callable
    inputs: list
    is_pure_numpy: bool = True
    description: str = ""
