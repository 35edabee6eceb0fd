"""nkipy.core.ops.transform"""
from nkx.ops import names

globals().update(names("shape", "unary"))
