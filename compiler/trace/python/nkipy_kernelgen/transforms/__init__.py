from nkigen.transforms import nkipy_opt

__all__ = ["nkipy_opt"]
