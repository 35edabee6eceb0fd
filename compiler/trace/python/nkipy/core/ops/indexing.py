"""nkipy.core.ops.indexing"""
from nkx.ops import names

globals().update(names("selection"))
