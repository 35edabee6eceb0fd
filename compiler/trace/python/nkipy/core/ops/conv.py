"""nkipy.core.ops.conv"""
from nkx.ops import names

globals().update(names("nn"))
