"""Finds the plain function of a source that calls its NKI kernels: then that function is compiled, with the kernels in it."""
import inspect
import types

import _nkx


def _names(code):
    """The global names and attributes that the code and the functions inside of it use."""
    found = set(code.co_names)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            found |= _names(c)
    return found


def _is_nki(o):
    return isinstance(o, _nkx.Kernel) and o.generation > 0


def _fits(function, inputs):
    """True if the inputs, names or None, can be the function's parameters."""
    parameters = inspect.signature(function).parameters
    needed = [p for p in parameters.values() if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not needed:
        return False
    named = [name for name in inputs if name]
    return set(named) <= set(parameters) if named else not inputs or len(needed) <= len(inputs) <= len(parameters)


def find(namespace, filename, inputs, called):
    """The last such function that the file defines and that takes the request's inputs; None if there is none.  Of a file that calls
    functions with arrays and gets arrays, whose code is in `called`, the last one of these."""
    best = None
    for f in list(namespace.values()):
        if not isinstance(f, types.FunctionType) or f.__code__.co_filename != filename or not _fits(f, inputs):
            continue
        if any(_is_nki(f.__globals__.get(name)) for name in _names(f.__code__)):
            best = max(best or f, f, key=lambda f: (f.__code__ in (called or ()), f.__code__.co_firstlineno))
    return best
