"""nkipy.core.ops.binary"""
from nkx.ops import names

globals().update(names("binary"))
