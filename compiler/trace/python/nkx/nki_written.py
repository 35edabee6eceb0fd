"""The text of calls as a kernel writes them, which the stage nki-trace shows beside what they consist of (nki/nki.h).

Functions of nki.language, calls of beta 1 and operators of tiles are wrapped.  Only the outermost call is shown: a function that
calls others consists of what they record.
"""
import difflib
import enum
import functools
import inspect
import types

import _nkx
import numpy as np
from nkx import nki_blame, nki_unknown
from nkx.nki_names import Unavailable

_begin, _end = _nkx.nki_written_begin, _nkx.nki_written_end
_MEMORIES = {"sbuf", "psum", "hbm", "private_hbm", "shared_hbm"}


def text(x):
    """A value as it would be written."""
    f = _TEXTS.get(type(x))
    if f:
        return f(x)
    said = getattr(type(x), "nki_text", None)
    if said:
        return said(x)
    if isinstance(x, enum.Enum):
        return f"nisa.{type(x).__name__}.{x.name}"
    if isinstance(x, (int, np.number)):
        return str(x)
    if isinstance(x, np.dtype):
        return f"nl.{x.name}"
    if isinstance(x, type) and issubclass(x, np.generic):
        return f"nl.{x.__name__}"
    if callable(x) and isinstance(getattr(x, "__name__", None), str):
        return f"{'np' if isinstance(x, np.ufunc) else 'nl'}.{x.__name__}"
    name = getattr(x, "name", None)
    return name if isinstance(name, str) else "…"


def _slice(s):
    ends = "".join(("" if s.start is None else text(s.start), ":", "" if s.stop is None else text(s.stop)))
    return ends if s.step is None else f"{ends}:{text(s.step)}"


_TEXTS = {
    int: repr, float: repr, bool: repr, type(None): repr, type(...): lambda x: "...", slice: _slice,
    str: lambda s: f"nl.{s}" if s in _MEMORIES else repr(s),
    tuple: lambda x: f"({', '.join(map(text, x))}{',' * (len(x) == 1)})",
    list: lambda x: f"[{', '.join(map(text, x))}]",
    _nkx.NkiTensor: _nkx.nki_written_view,
    Unavailable: lambda x: x.__name__,  # its use is refused where it is used
    np.ndarray: lambda x: f"<{x.dtype} array of the shape {x.shape}>",
}
_TEXTS |= {type(np.dtype(t)): lambda d: f"nl.{d.name}" for t in ("float32", "float16", "int32", "int16", "int8", "uint32", "uint16",
                                                                 "uint8", "bool", "float64", "int64", "uint64")}


def key_text(key):
    """The index of a tile, without brackets."""
    return ", ".join(map(text, key)) if isinstance(key, tuple) else text(key)


def call_text(name, args, kwargs):
    return f"{name}({', '.join([*map(text, args), *[f'{k}={text(v)}' for k, v in kwargs.items()]])})"


def _wrong_call(name, f, args, kwargs, exception):
    """The refusal of a call that does not fit to the signature of f, or has an argument of another kind; None if it is none."""
    signature = inspect.signature(f)
    if isinstance(exception, AttributeError):
        return nki_blame.no_tensor(name, f, args, kwargs, exception)
    if not isinstance(exception, TypeError):
        return None
    try:
        signature.bind(*args, **kwargs)
    except TypeError as e:
        near = [n for k in kwargs if k not in signature.parameters for n in difflib.get_close_matches(k, signature.parameters, 1)]
        refusal = _nkx.NkiCall(f"{name}: {e}")
        refusal.hint = "".join([f"did you mean {near[0]}? " if near else "", name, str(signature)])
        return refusal
    return None


def wrapped(name, f, write=call_text, goes_on=False, is_statement=False):
    """f, which records the call as well.  write(name, args, kwargs): its text.  goes_on: a refusal becomes a diagnostic, and the
    result is unknown (nki_unknown.py).  is_statement: the text is one, of which the result is no part."""
    @functools.wraps(f)
    def call(*args, **kwargs):
        if goes_on and nki_unknown.among(args, kwargs):
            return nki_unknown.UNKNOWN
        if not _begin(name):
            return f(*args, **kwargs)
        said = name
        nki_blame.begin(f, args, kwargs)
        try:
            said = write(name, args, kwargs)
            result = f(*args, **kwargs)
            made = None if result is None or is_statement else getattr(result, "name", None)
            if isinstance(made, str):
                said = f"{made} = {said}"
            return result
        except Exception as e:  # noqa: BLE001: what is no refusal is raised again
            if not goes_on:
                raise
            refusal = _wrong_call(name, f, args, kwargs, e) or e
            refusal.argument = nki_blame.argument_of(f, args, kwargs, refusal)
            return nki_unknown.reported(refusal)
        finally:
            nki_blame.end()
            _end(said)
    return call


def statement(name, said, f, *args):
    """Calls f(*args), which the kernel has written as said()."""
    if nki_unknown.among(args, {}):
        return
    if not _begin(name):
        f(*args)
        return
    before = None
    try:
        before = said()
        f(*args)
    except Exception as e:  # noqa: BLE001: what is no refusal is raised again
        nki_unknown.reported(e)
    finally:
        _end(before)


def operator_of(name, symbol, f, is_in_place=False):
    """A method that is a binary operator."""
    return wrapped(name, f, lambda _, args, kwargs: f"{text(args[0])} {symbol} {text(args[1])}", True, is_in_place)


def method(name, f, arguments=None):
    """A method that makes instructions.  arguments(self, …): the text after the dot."""
    def write(_, args, kwargs):
        return f"{text(args[0])}.{arguments(*args, **kwargs) if arguments else call_text(name, args[1:], kwargs)}"
    return wrapped(f"tile.{name}", f, write, True)


def mask_text(box, rest, shape):
    """What is said of what a mask leaves of a tile: the box ((first, end), …), or None for nothing, and conditions besides."""
    if box is None:
        return "the mask leaves nothing: there is no instruction"
    if rest:
        return "the mask restricts several axes together: a predicate has the elements where it holds"
    part = ", ".join(":" if (a, b) == (0, n) else f"{a}:{b}" for (a, b), n in zip(box, shape))
    return f"the mask leaves [{part}] of {'x'.join(map(str, shape))}" if box != tuple((0, n) for n in shape) else "the mask holds for all elements"


def install(module, prefix, leave=(), goes_on=False):
    """Wraps the functions of a module that make instructions; leave: those that do not; goes_on: as of wrapped."""
    for name, f in list(module.items()):
        if isinstance(f, types.FunctionType) and not name.startswith("_") and name not in leave:
            module[name] = wrapped(f"{prefix}.{name}", f, goes_on=goes_on)
