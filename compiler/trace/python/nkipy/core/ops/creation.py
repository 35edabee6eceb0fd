"""nkipy.core.ops.creation"""
from nkx.ops import names

globals().update(names("creation"))
