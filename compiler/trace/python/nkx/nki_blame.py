"""Which argument of a call a refusal is about.

A function of nki.language, and a call of beta 1, consist of instructions, whose operands are made of its arguments.  A diagnostic
stands at the argument in the source, where it is known:

    nl.add(x, a)             a is in HBM                                                at a
    nl.load(h[i_p, j_f])     the indices are outside of h: the Tensor of this access    at h[i_p, j_f]
    nl.store(out, p)         src of the dma_copy that it makes is p                     at p

refuse(…, about=object) names the object, refuse(…, argument="mask") the parameter (nki_names.py).
"""
import functools
import inspect

import _nkx

_now = None  # (function, args, kwargs) of the call that is shown as it was written, while it is made


def begin(function, args, kwargs):
    global _now
    _now = function, args, kwargs


def end():
    global _now
    _now = None


@functools.cache
def _names(function):
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind in positional]


def _given(function, args, kwargs):
    """{parameter: argument}"""
    return dict(zip(_names(function), args)) | kwargs


def _tensor_names(x):
    """The names in the record of what an argument is: of a tensor, or of each block of one of beta 1; none if it is no tensor."""
    if isinstance(x, _nkx.NkiTensor):
        return [x.name]
    parts = getattr(getattr(x, "memory", None), "parts", None)
    return [part.name for part in parts.values()] if type(parts) is dict else []


def argument_of(function, args, kwargs, refusal):
    """The parameter whose argument an exception in function(*args, **kwargs) is about; None if it is about the whole call."""
    given = _given(function, args, kwargs)
    name, about = getattr(refusal, "argument", None), getattr(refusal, "about", None)
    if name is not None:
        return name if name in given else None
    if about is not None:
        return next((n for n, x in given.items() if x is about or getattr(x, "memory", None) is about), None)
    message = str(refusal)
    first = None if message.startswith("a tensor ") else message.partition(" ")[0]
    tensors = {n: _tensor_names(x) for n, x in given.items() if _tensor_names(x)}
    found = [n for n, names in tensors.items() if first in names] or [n for n in given if n == first]
    if not found and isinstance(refusal, _nkx.NkiSizeLimit):  # of the result, whose shape comes from the only operand
        found = list(tensors) if len(tensors) == 1 else []
    return found[0] if len(found) == 1 else None


def of_operand(name, operand):
    """The same where an instruction that the call makes is refused: `name` is the instruction's parameter, `operand` what it got."""
    if _now is None:
        return name
    given = _given(*_now)
    names = _tensor_names(operand)
    found = [n for n, x in given.items() if x is operand or any(part in names for part in _tensor_names(x))]
    if name in found or not found and name in given:
        return name
    return found[0] if found else None


def no_tensor(call, function, args, kwargs, error):
    """The refusal of an argument that has no attribute because it is no tensor; None if the error is about something else."""
    obj = getattr(error, "obj", None)
    name = next((n for n, x in _given(function, args, kwargs).items() if x is obj), None) if obj is not None else None
    if name is None or _tensor_names(obj):
        return None
    refusal = _nkx.NkiCall(f"{call}: {name} must be a tensor, not {type(obj).__name__}")
    refusal.argument = name
    return refusal
