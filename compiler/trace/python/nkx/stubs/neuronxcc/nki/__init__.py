from nki import jit  # noqa: F401

__nkx_stub__ = True
