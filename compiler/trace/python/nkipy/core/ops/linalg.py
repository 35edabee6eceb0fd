"""nkipy.core.ops.linalg"""
from nkx.ops import names

globals().update(names("linalg"))
