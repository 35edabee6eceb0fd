"""nkipy.core.ops.collectives"""
from nkx.ops import names

globals().update(names("collective"))
