import _nkx
from nkx.package import Code as HLOModule

__all__ = ["HLOModule", "get_hlo_context"]


def get_hlo_context():
    """None outside of a trace."""
    if _nkx.is_tracing():
        raise NotImplementedError("the trace that runs is not open to kernels; nkipy.core.ops has its operations")
