"""nkipy.core.ops: every operation by name."""
from nkx.ops import table

globals().update(table)
__all__ = sorted(table)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise NotImplementedError(f"nkipy.core.ops.{name} has no implementation")
