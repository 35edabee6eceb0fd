from nkigen.op_vtable import functions, ufuncs

__all__ = ["functions", "ufuncs"]
