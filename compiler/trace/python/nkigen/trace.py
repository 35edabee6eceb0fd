from _nkx import trace

__all__ = ["trace"]
