"""nkipy.core.ops.nn"""
from nkx.ops import names

globals().update(names("nn", "selection"))
