"""nkipy.core.ops.reduce"""
from nkx.ops import names

globals().update(names("reduction"))
