"""The types of nki.language."""
from ml_dtypes import bfloat16, float8_e4m3, float8_e4m3fn, float8_e5m2
from numpy import bool_, float16, float32, int8, int16, int32, uint8, uint16, uint32

from nkipy.core.typing import immutable, mutable, mutable_tensor, tensor
from nkx import missing

__getattr__ = missing.attribute_of("nki.language")
