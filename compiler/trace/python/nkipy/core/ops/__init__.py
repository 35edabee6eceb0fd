"""nkipy.core.ops: every operation by name."""
from nkx.ops import table

globals().update(table)
__all__ = sorted(table)


class MissingOperation(AttributeError, NotImplementedError):
    """NKIPy raises a NotImplementedError; Python's import and hasattr need an AttributeError."""


def __getattr__(name):
    raise MissingOperation(f"nkipy.core.ops.{name} has no implementation")
