"""What a module of NKI says about names that it does not have."""
import difflib
import sys

import _nkx


def refuse(cls, message, hint=None):
    e = cls(message)
    if hint:
        e.hint = hint
    raise e


def attribute_of(module, unsupported=(), removed=None):
    """The __getattr__ of a module.  unsupported: names of NKI that are not compiled here yet; removed: names of earlier
    versions, with what replaces them."""
    removed = removed or {}

    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in removed:
            refuse(_nkx.NkiRemovedApi, f"{module}.{name} belongs to an earlier NKI", removed[name])
        if name in unsupported:
            refuse(_nkx.NkiUnsupported, f"{module}.{name} is not compiled here yet")
        near = difflib.get_close_matches(name, [*vars(sys.modules[module]), *unsupported], 1)
        refuse(_nkx.NkiUnknownApi, f"{module} has no {name}", f"did you mean {near[0]}?" if near else None)

    return __getattr__
