from nki import jit  # noqa: F401
from nkx import missing

__nkx_stub__ = True
__getattr__ = missing.attribute_of("neuronxcc.nki")
