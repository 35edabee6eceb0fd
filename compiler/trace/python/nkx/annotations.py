"""The shapes that a kernel's annotations say (nkipy/core/typing.py)."""
import inspect
import typing


def _spec(annotation, names):
    if isinstance(annotation, str):  # from __future__ import annotations
        try:
            annotation = eval(annotation, names)
        except Exception:  # a name that only type checkers know
            return None
    for a in (annotation, *typing.get_args(annotation)):  # Optional[nt.tensor[…]]
        if getattr(a, "shape", None) is not None and getattr(a, "dtype", None) is not None:
            return (a.shape, a.dtype)
    return None


def specs_of(fn):
    """[(number of the parameter, (shape, dtype)), …] of the parameters that are annotated with a shape."""
    names = getattr(inspect.unwrap(fn), "__globals__", {})
    specs = [_spec(p.annotation, names) for p in inspect.signature(fn).parameters.values()]
    return [(i, s) for i, s in enumerate(specs) if s]
