from ml_dtypes import bfloat16, float8_e4m3, float8_e5m2

__all__ = ["bfloat16", "float8_e4m3", "float8_e5m2"]
