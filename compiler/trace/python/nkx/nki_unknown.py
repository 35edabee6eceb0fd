"""What a refused call, method or name would have given.

The refusal becomes a diagnostic, and the kernel runs on, so that it shows its other mistakes.  A call with an UNKNOWN operand does
nothing, and what is computed from it in Python is UNKNOWN, too; where Python needs a number or a truth value of it, the kernel
ends without a word: what follows would only be about the same mistake.
"""
import ast
import builtins
import difflib
import dis
import functools
import sys
import types

import _nkx


class AfterRefusal(Exception):
    """Ends a kernel that has been refused (trace/nki/launch.c)."""


def _end(self, *args):
    raise AfterRefusal


class Unknown:
    __array_ufunc__ = None
    __bool__ = __index__ = __int__ = __float__ = __len__ = __iter__ = __contains__ = _end
    __hash__ = object.__hash__

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __setitem__(self, key, value):
        pass

    def _same(self, *args, **kwargs):
        return self

    __call__ = __getitem__ = __neg__ = __invert__ = __abs__ = _same
    for _name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
        vars()[f"__{_name}__"] = vars()[f"__r{_name}__"] = vars()[f"__i{_name}__"] = _same
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _same


UNKNOWN = Unknown()
_nkx.nki_unknown(UNKNOWN)


def among(args, kwargs):
    for x in (*args, *kwargs.values()) if kwargs else args:
        if x is UNKNOWN or type(x) in (tuple, list) and among(x, None):
            return True
    return False


def reported(exception, value=UNKNOWN):
    """Makes a diagnostic of a refusal and returns a value to go on with; raises the exception if it is none."""
    if not _nkx.nki_report(exception):
        raise exception
    return value


def goes_on(cls, *names):
    """Lets a kernel go on after a refusal by these methods; inside of a call that is recorded, the call is refused as a whole."""
    for name in names:
        setattr(cls, name, _goes_on(vars(cls)[name]))


def _goes_on(f):
    @functools.wraps(f)
    def call(*args):
        try:
            return f(*args)
        except Exception as e:  # noqa: BLE001: what is no refusal is raised again
            if _nkx.nki_is_writing():
                raise
            return reported(e)
    return call


# ---- names ----------------------------------------------------------------------------------------------------------


def _refuse_name(message, name, names):
    near = difflib.get_close_matches(name, names, 1)
    e = _nkx.NkiName(message)
    if near:
        e.hint = f"did you mean {near[0]}?"
    raise e


def no_attribute(name):
    """Refuses an attribute that tensors do not have."""
    _refuse_name(f"a tensor has no {name}", name, [n for n in dir(_nkx.NkiTensor) if n[0] != "_"])


class _Builtins(dict):
    """The builtins of a module: where a kernel reads a name that is not defined anywhere, it is refused, and unknown.  The functions
    that the module defines have them too, those inside of others and methods among them."""

    def __init__(self, names, tried):
        super().__init__(vars(builtins))
        self.names, self.tried = names, tried

    def __missing__(self, name):
        if name in vars(builtins):  # it is newer than this copy
            return vars(builtins)[name]
        line = sys._getframe(1).f_lineno
        if not any(first <= line <= last for first, last in self.tried):
            try:
                _refuse_name(f"{name} is not defined", name, [*(n for n in self.names if not n.startswith("__")), *self])
            except _nkx.NkiName as e:
                if _nkx.nki_report(e):
                    return UNKNOWN
        raise KeyError(name)  # becomes Python's NameError


def _read_and_bound(code):
    """The names that a module reads as globals, in all of its functions, and those that it binds."""
    read, bound, rest = set(), set(), [code]
    while rest:
        c = rest.pop()
        for i in dis.get_instructions(c):
            if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                read.add(i.argval)
            elif i.opname in ("STORE_GLOBAL", "STORE_NAME"):
                bound.add(i.argval)
        rest += [x for x in c.co_consts if type(x) is types.CodeType]
    return read, bound


def builtins_of(code, text, names):
    """The builtins of the module that the code makes, with these names and of this text: Python's own, unless it reads names that
    nothing seems to define.  So what is usual costs nothing more."""
    read, bound = _read_and_bound(code)
    if all(n in bound or n in names or hasattr(builtins, n) for n in read):
        return vars(builtins)
    tried = [(n.lineno, n.body[-1].end_lineno) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Try) and n.handlers]
    return _Builtins(names, tried)
