from _nkx import fori_loop

__all__ = ["fori_loop"]
