"""nkipy.core.ops.unary"""
from nkx.ops import names

globals().update(names("unary"))
