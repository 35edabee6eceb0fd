"""Kernels of NKI beta 1: arguments become its tensors, and its results those of the record."""
import inspect

import _nkx
from nkx import nki_beta1_ops  # noqa: F401, gives tensors their operators
from nkx.nki_beta1 import Parameter, Tensor, of
from nkx.nki_names import refuse


def _mutable(fn):
    """The parameters that are annotated as nt.mutable_tensor."""
    names = {}
    for p in inspect.signature(fn).parameters.values():
        names[p.name] = "mutable_tensor" in (str(p.annotation), getattr(p.annotation, "name", None)) or (
            isinstance(p.annotation, str) and "mutable_tensor" in p.annotation)
    return names


class Entry:
    """A function of tensors of the record around a kernel of beta 1.  After a call, written has the names of the arguments
    that the kernel wrote, one for each result, or None for a result that the kernel made."""

    def __init__(self, fn):
        self.fn, self.written = fn, []
        self.__name__ = getattr(fn, "__name__", "kernel")

    def __call__(self, *args, **kwargs):
        bound, mutable = inspect.signature(self.fn).bind(*args, **kwargs), _mutable(self.fn)
        parameters = {}
        for name, value in bound.arguments.items():
            if isinstance(value, _nkx.NkiTensor):
                bound.arguments[name] = t = of(value)
                t.memory.parameter = parameters[name] = Parameter(name, mutable.get(name, False))
        return self._results(self.fn(*bound.args, **bound.kwargs), [p for p in parameters.values() if p.result is not None])

    def _results(self, value, written):
        if value is None and written:  # outputs are parameters, as in the first versions
            self.written = [p.name for p in written]
            return written[0].result if len(written) == 1 else tuple(p.result for p in written)
        tiles = [value] if isinstance(value, Tensor) else list(value) if type(value) in (tuple, list) else []
        returned = [t.memory.parameter for t in tiles if isinstance(t, Tensor)]
        self.written = [p.name if p else None for p in returned]
        for p in written:
            if p not in returned:
                refuse(_nkx.NkiOutput, f"the parameter {p.name} is written, but not returned",
                       f"annotate it as {p.name}: nt.mutable_tensor, and return it")
        return unwrapped(value)


def entry(fn):
    return Entry(fn)


def unwrapped(value):
    if isinstance(value, Tensor):
        return value.view()
    return type(value)(map(unwrapped, value)) if type(value) in (tuple, list) else value
