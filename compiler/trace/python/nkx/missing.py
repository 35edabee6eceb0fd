"""Stand-ins for modules that are not installed.

A kernel's file often imports packages that its computation does not need.  Such an import gives a stand-in, whose
attributes are stand-ins, too.  They may be named: in annotations, as base classes, as classes of isinstance, as
decorators.  What makes arrays of torch and JAX makes arrays of NumPy, because a file calls its kernel with them
(stand_ins/arrays.py).  Every other use fails, and names the module and the line that imports it.

An import that some `except ImportError` on the stack would catch fails as in CPython: the program says itself what it
does without the module.  So do imports by other code than the user's, and importlib.util.find_spec finds nothing.
"""
import ast
import builtins
import contextlib
import importlib
import importlib.machinery
import linecache
import os
import sys
import types

import _nkx
import numpy as np
from nkx import places
from nkx.stand_ins import arrays, torch_distributed

_AVAILABLE = ("available: numpy, ml_dtypes, Python's standard library, nkipy, nkigen, nkipy_kernelgen, nkx; "
              "a module of your own is a file beside this one")
_VENDOR = "NKI kernels are traced by the vendor's nki package, which is not installed here"

# Decorators that leave what a function computes as it is.
_TRANSPARENT = {"beartype.beartype", "jax.jit", "jaxtyping.jaxtyped", "numba.jit", "numba.njit", "torch.compile",
                "torch.inference_mode", "torch.jit.script", "torch.no_grad", "typeguard.typechecked"}

# Packages of which only parts are here: their other modules are missing.  Of any other package all modules are here.
_PARTIAL = {"neuronxcc", "nki", "nkigen", "nkipy", "nkipy_kernelgen"}

# Stand-ins that have contents: kernels ask torch.distributed for the rank.
_WRITTEN = {"torch.distributed": torch_distributed}


# ---- where the program is -------------------------------------------------------------------------------------------


def _tree(filename):
    return places.source("".join(linecache.getlines(filename))).tree


def _position(frame):
    """Line and column of the instruction that runs, as ast has them."""
    at = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    return at[0] or frame.f_lineno, at[2] or 0


def _contains(node, at):
    first = [node, *getattr(node, "decorator_list", ())]
    return hasattr(node, "lineno") and any((n.lineno, n.col_offset) <= at for n in first) and (
        at < (node.end_lineno, node.end_col_offset))


def _path_to(tree, at):
    """The nodes around a position, from the outermost on, each with its parent."""
    node = tree
    while True:
        for child in ast.iter_child_nodes(node):
            inner = child if hasattr(child, "lineno") else None
            if inner is not None and _contains(inner, at):
                yield node, child
                node = child
                break
            if inner is None and any(_contains(c, at) for c in ast.iter_child_nodes(child)):  # withitem, arguments, …
                node = child
                break
        else:
            return


def _value(frame, node):
    """What a name or an attribute of one is where the frame runs, or None."""
    if isinstance(node, ast.Attribute):
        return getattr(_value(frame, node.value), node.attr, None)
    name = node.id if isinstance(node, ast.Name) else None
    for names in (frame.f_locals, frame.f_globals, vars(builtins)):
        if name in names:
            return names[name]
    return None


def _catches(frame, node):
    """True if `except <node>` catches a ModuleNotFoundError."""
    if isinstance(node, ast.Tuple):
        return any(_catches(frame, e) for e in node.elts)
    cls = _value(frame, node)
    if isinstance(cls, tuple):
        return any(isinstance(c, type) and issubclass(ModuleNotFoundError, c) for c in cls)
    return isinstance(cls, type) and issubclass(ModuleNotFoundError, cls)


def _suppresses(frame, node):
    return isinstance(node, ast.Call) and _value(frame, node.func) is contextlib.suppress and any(
        _catches(frame, a) for a in node.args)


def _is_guarded(frame):
    """True if the instruction that runs lies in a `try` or `with` of its function that catches a ModuleNotFoundError."""
    try:
        tree = _tree(frame.f_code.co_filename)
    except (SyntaxError, ValueError, RecursionError):
        return False
    guarded = False
    for node, child in _path_to(tree, _position(frame)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and child in node.body or isinstance(node, ast.Lambda):
            guarded = False  # what is outside of a function does not run around its body
        elif isinstance(node, (ast.Try, ast.TryStar)) and child in node.body:
            guarded |= any(h.type is None or _catches(frame, h.type) for h in node.handlers)
        elif isinstance(node, (ast.With, ast.AsyncWith)) and child in node.body:
            guarded |= any(_suppresses(frame, i.context_expr) for i in node.items)
    return guarded


def _is_decorating(frame):
    """True if the instruction that runs is of a decorator."""
    return any(child in getattr(node, "decorator_list", ())
               for node, child in _path_to(_tree(frame.f_code.co_filename), _position(frame)))


_IMPORT_CODE = {importlib.import_module.__code__, importlib.reload.__code__}


def _is_importing(code):
    return code.co_filename == __file__ or code.co_filename.startswith("<frozen importlib._boot") or code in _IMPORT_CODE


def _importer():
    """The innermost frame that is not of the import system."""
    frame = sys._getframe(1)
    while frame and _is_importing(frame.f_code):
        frame = frame.f_back
    return frame


def _stack(frame):
    while frame:
        yield frame
        frame = frame.f_back


# What a stand-in may not be compared with: the answer is not known.  With anything else it is not equal.
_VALUES = (str, bytes, int, float, complex, tuple, list, np.generic, np.ndarray, np.dtype, _nkx.Tensor)

# ---- stand-ins ------------------------------------------------------------------------------------------------------


def _fail(thing):
    name, (module, place) = vars(thing)["_nkx_name"], vars(thing)["_nkx_module"]
    e = _nkx.MissingModule(f'{name} cannot be used: the module "{module}", imported at {place}, is not available here')
    e.name, e.hint = module, _VENDOR if module.split(".")[0] in ("nki", "neuronxcc") else _AVAILABLE
    raise e


class Missing:
    """Something of a module that is not installed."""

    def __init__(self, name, module):
        self._nkx_name, self._nkx_module = name, module  # module: its name, and the place of its import

    def __repr__(self):
        return f"<{self._nkx_name}, which is not available here>"

    def __getattr__(self, name):
        mine = vars(self).get("_nkx_name")
        if mine is None or name.startswith("__") and name.endswith("__") and name != "__version__":
            raise AttributeError(name)  # a protocol that some library asks for
        if f"{mine}.{name}" in _WRITTEN:
            return _WRITTEN[f"{mine}.{name}"]
        if f"{mine}.{name}" in arrays.FUNCTIONS and _nkx.in_job():
            return arrays.FUNCTIONS[f"{mine}.{name}"]
        return Missing(f"{mine}.{name}", self._nkx_module)

    def __call__(self, *args, **kwargs):
        frame = sys._getframe(1)
        if not _is_decorating(frame):
            _fail(self)
        if len(args) != 1 or not callable(args[0]):  # @decorator(option=…)
            return self
        return args[0] if self._nkx_name in _TRANSPARENT else _decorated(self, args[0])

    def __mro_entries__(self, bases):
        def fail(cls, *args, **kwargs):
            _fail(self)

        ignore = classmethod(lambda cls, **kwargs: None)
        return (type(self._nkx_name.rpartition(".")[2], (), {"__new__": fail, "__init_subclass__": ignore}),)

    def __instancecheck__(self, instance):
        return False

    def __subclasscheck__(self, subclass):
        return False

    def __getitem__(self, key):
        return Missing(f"{self._nkx_name}[…]", self._nkx_module)

    def __setitem__(self, key, value):
        pass

    def __or__(self, other):
        if other is None or isinstance(other, (type, str, Missing, types.GenericAlias, types.UnionType)) or (
                type(other).__module__ == "typing"):
            return Missing(f"{self._nkx_name} | …", self._nkx_module)
        _fail(self)

    __ror__ = __or__
    __hash__ = object.__hash__

    def __eq__(self, other):
        if isinstance(other, _VALUES):
            _fail(self)
        return other is self


def _refused(self, *args, **kwargs):
    _fail(self)


for _name in """add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor radd rsub rmul rmatmul rtruediv
        rfloordiv rmod rdivmod rpow rlshift rrshift rand rxor neg pos abs invert lt le gt ge iter next len contains reversed
        bool int float complex index round trunc floor ceil enter exit aenter aexit await aiter anext delitem array
        array_ufunc array_function""".split():
    setattr(Missing, f"__{_name}__", _refused)


def _decorated(decorator, function):
    """What a decorator that is missing makes of a function: it fails when it is called."""
    r = Missing(f"{decorator._nkx_name}({getattr(function, '__name__', '…')})", decorator._nkx_module)
    vars(r).update(__wrapped__=function, __name__=getattr(function, "__name__", "…"))
    return r


class MissingModule(Missing, types.ModuleType):
    def __init__(self, name, module):
        types.ModuleType.__init__(self, name)
        Missing.__init__(self, name, module)

    def __bool__(self):
        return True


# ---- the import system's side -----------------------------------------------------------------------------------------


def _place(frame):
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class Finder:
    """Comes last in sys.meta_path.  files: names of the user's files; without them it stands in for torch alone, in an
    ordinary Python, wherever a program that is not of the standard library imports it."""

    def __init__(self, files=None):
        self._files, self._made = files, {}
        self.names = set()  # of the stand-ins in sys.modules

    def _is_users(self, frame):
        file = frame.f_code.co_filename
        return file in self._files if self._files is not None else not file.startswith((os.path.dirname(os.__file__), "<frozen"))

    def _is_wanted(self, fullname, path):
        top, frame = fullname.partition(".")[0], _importer()
        if self._files is None and (top != "torch" or _nkx.in_job()):
            return False
        if frame is None or top in sys.stdlib_module_names:
            return False
        if path is not None and top not in _PARTIAL and fullname.rpartition(".")[0] not in self._made:
            return False
        return self._is_users(frame) and not self.is_guarded(frame)

    def is_guarded(self, frame):
        """True if the user's code, from here outwards, says what it does without the module."""
        return any(self._is_users(f) and _is_guarded(f) for f in _stack(frame))

    def find_spec(self, fullname, path=None, target=None):
        if not self._is_wanted(fullname, path):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        name = spec.name
        if name in _WRITTEN:
            self._made[name] = types.ModuleType(name)
            vars(self._made[name]).update(vars(_WRITTEN[name]))
        elif name not in self._made:
            parent = self._made.get(name.rpartition(".")[0])
            module = vars(parent).get("_nkx_module") if parent else None
            self._made[name] = MissingModule(name, module or (name, _place(_importer())))
        return self._made[name]

    def exec_module(self, module):
        self.names.add(module.__name__)

    def close(self):
        """Takes the stand-ins out of sys.modules and out of the packages that they are in."""
        for name, module in self._made.items():
            parent, _, last = name.rpartition(".")
            for holder in filter(None, [sys.modules.get(parent)]):
                if vars(holder).get(last) is module:
                    delattr(holder, last)
            if sys.modules.get(name) is module:
                del sys.modules[name]
        self.names.clear()
        self._made.clear()


def is_guarded_here():
    """True if the user's code says what it does without the name that it asks a module for."""
    finders = [f for f in sys.meta_path if isinstance(f, Finder)]
    return bool(finders) and finders[-1].is_guarded(_importer())


def attribute_of(module):
    """The __getattr__ of a module that stands in for a part of the vendor's: the rest is missing."""

    def __getattr__(name):
        if name.startswith("__") or is_guarded_here():
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return Missing(f"{module}.{name}", (f"{module}.{name}", _place(_importer())))

    return __getattr__
