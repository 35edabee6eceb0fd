"""What is known about expressions of an NKI kernel from its source alone.

A value is one of the classes below, or None where nothing is known.  A local name has a value only if it is certain: it is
bound once, or every value that is bound to it is a tensor.  So a refusal that rests on a value is never wrong about it.
"""
import ast
import math
import operator
import types

from nkx import nki_source
from nkx.nki_source import Api

_INT_MOST = 1 << 63
AUGMENTED = ("+=",)  # the path of an augmented assignment: a tensor stays a tensor, other values are then not known
_LENGTH_MOST = 1000  # of constant sequences


class Const:
    """A value of ordinary Python: int, float, bool, str, None, slice, or a tuple or list of such."""

    def __init__(self, value):
        self.value = value


class Tensor:
    """What is not known of a tensor is None."""

    def __init__(self, shape=None, space=None, dtype=None, is_new=False):
        self.shape, self.space, self.dtype = shape, space, dtype
        self.is_new = is_new  # made here, not a view

    def __str__(self):
        where = f" in {self.space}" if self.space else ""
        shape = f", {self.dtype or ''}{list(self.shape)}" if self.shape is not None else ""
        return f"tensor{where}{shape}"


class Loop:
    """What a `for` iterates over: "affine", "sequential", "static", "dynamic", "Python"; the number of rounds, or None."""

    def __init__(self, kind, rounds=None):
        self.kind, self.rounds = kind, rounds


class Register:
    """A number that is known on the device only."""


class Instruction:
    """What a call of nki.isa returns."""


class Seq:
    """A tuple or list of values of which not all are constants."""

    def __init__(self, values):
        self.values = values


RANGES = {"affine_range": "affine", "sequential_range": "sequential", "static_range": "static", "dynamic_range": "dynamic"}
# Functions of nki.language whose result is no tensor.
_NO_TENSOR = {*RANGES, "ds", "store", "program_id", "num_programs", "program_ndim", "is_sbuf", "is_psum", "is_hbm", "is_on_chip",
              "device_print", "no_reorder", "fori_loop", "while_loop", "fp32", "finfo", "par_dim", "nc", "spmd_dim", "random_seed",
              "NKIObject", "arange", "mgrid"}
_MAKERS = {"ndarray": 1, "zeros": 1, "ones": 1, "full": 2}  # and the number of the parameter dtype
_VIEWS = {"slice", "select", "vector_select", "permute", "reshape", "reshape_dim", "flatten_dims", "expand_dim", "squeeze_dim",
          "broadcast", "rearrange", "view", "reinterpret_cast", "ap", "indirect", "broadcast_to", "astype"}
_REGISTERS = {"register_alloc"}
_SPACES = {"sbuf", "psum", "hbm", "private_hbm", "shared_hbm"}
_HBM = {"private_hbm": "hbm"}
_PLAIN = (int, float, bool, str, type(None))

_BINARY = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
           ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
           ast.BitXor: operator.xor}
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
_FUNCTIONS = {"len": len, "min": min, "max": max, "int": int, "float": float, "abs": abs, "divmod": divmod, "bool": bool}


def _is_small(v):
    """Whether a constant is cheap to compute with."""
    if isinstance(v, bool) or v is None or isinstance(v, slice):
        return True
    if isinstance(v, int):
        return abs(v) < _INT_MOST
    if isinstance(v, float):
        return True
    if isinstance(v, str):
        return len(v) <= _LENGTH_MOST
    return isinstance(v, (tuple, list)) and len(v) <= _LENGTH_MOST and all(isinstance(x, _PLAIN + (slice,)) and _is_small(x) for x in v)


def const(v):
    return Const(v) if _is_small(v) else None


def _range_rounds(args):
    try:
        return len(range(*args))
    except (TypeError, ValueError, OverflowError):
        return None


def memory(value):
    """The memory that a constant names; None if it names none."""
    v = value.value if isinstance(value, Const) else None
    return _HBM.get(v, v) if isinstance(v, str) and v in _SPACES else None


class Values:
    """The values of one function.  file: its File; names: the module's globals; locals: the names that it binds, with the
    list of what is bound, see bindings(); outer: the Values of the function around it, or None."""

    def __init__(self, file, names, bound, params, outer=None):
        self.file, self.names, self.bound, self.outer = file, names, bound, outer
        self.known = dict(params)
        self.types = {}
        for _ in range(2):  # the second time with names that are bound several times
            found = {}
            for name, sites in bound.items():
                if name not in params:
                    values = [self._bound_value(s) for s in sites if s[1] != AUGMENTED]
                    is_changed = len(values) < len(sites) and not all(isinstance(v, (Tensor, Register)) for v in values)
                    found[name] = None if is_changed else self._merge(values)
                    if len(sites) == 1:
                        self.known[name] = found[name]
            self.known.update(found)
            self.types.clear()

    @staticmethod
    def _merge(values):
        if len(values) == 1:
            return values[0]
        if any(isinstance(v, Register) for v in values) and all(v is None or isinstance(v, Register) for v in values):
            return Register()  # what is not known here is computed from it
        if values and all(isinstance(v, Tensor) for v in values):
            first = values[0]
            same = lambda attribute: all(getattr(v, attribute) == getattr(first, attribute) for v in values)
            return Tensor(first.shape if same("shape") else None, first.space if same("space") else None,
                          first.dtype if same("dtype") else None)
        return None

    def _bound_value(self, site):
        """site: (expression or None, how to get at the value, as a tuple of indices; "iter" for the element of a loop)"""
        node, path = site
        if node is None:
            return None
        v = self.of(node)
        for step in path:
            if step == "iter":
                return Register() if isinstance(v, Loop) and v.kind == "dynamic" else None
            if isinstance(v, Seq) and step < len(v.values):
                v = v.values[step]
            elif isinstance(v, Const) and isinstance(v.value, (tuple, list)) and step < len(v.value):
                v = const(v.value[step])
            else:
                return None
        return v

    # ---- names ----

    def lookup(self, name):
        """(whether the name is local here or in a function around, its value)"""
        if name in self.known or name in self.bound:
            return True, self.known.get(name)
        return self.outer.lookup(name) if self.outer else (False, None)

    def path(self, node):
        """The dotted path of an expression that names something imported; None for anything else."""
        base = node
        while isinstance(base, ast.Attribute):
            base = base.value
        if not isinstance(base, ast.Name) or self.lookup(base.id)[0]:
            return None
        return self.file.path_of(node, self.names)

    def api(self, node):
        """The name of NKI that an expression is; None if it is none."""
        path = self.path(node)
        return Api(path) if nki_source.is_nki(path) else None

    # ---- expressions ----

    def of(self, node):
        key = id(node)
        if key not in self.types:
            self.types[key] = None  # while it is computed
            method = getattr(self, "_" + type(node).__name__.lower(), None)
            self.types[key] = method(node) if method else None
        return self.types[key]

    def constant(self, node):
        """The Python value of an expression; None if it is not known, or None."""
        v = self.of(node)
        return v.value if isinstance(v, Const) else None

    def _constant(self, node):
        return const(node.value) if isinstance(node.value, _PLAIN) else None

    def _name(self, node):
        is_local, v = self.lookup(node.id)
        if is_local:
            return v
        api = self.api(node)
        if api:
            return self._of_api(api)
        v = self.names.get(node.id)
        return const(v) if type(v) in (int, float, bool, str, tuple) else None

    def _of_api(self, api):
        if api.module == "language" and api.name in _SPACES:
            return Const(api.name)
        o = nki_source.object_of(api)
        return const(o) if type(o) in (int, float, bool, str) else None

    def _attribute(self, node):
        api = self.api(node)
        if api:
            return self._of_api(api)
        v = self.of(node.value)
        if isinstance(v, Tensor):
            if node.attr == "shape" and v.shape is not None:
                return Const(tuple(v.shape))
            if node.attr == "ndim" and v.shape is not None:
                return Const(len(v.shape))
            if node.attr == "size" and v.shape is not None:
                return const(math.prod(v.shape))
            if node.attr == "dtype" and v.dtype:
                return Const(v.dtype)
            if node.attr == "buffer" and v.space:
                return Const(v.space)
        return None

    def _sequence(self, node):
        values = [None if isinstance(e, ast.Starred) else self.of(e) for e in node.elts[:_LENGTH_MOST]]
        if all(isinstance(v, Const) for v in values):
            return const(tuple(v.value for v in values)) or Seq(values)
        return Seq(values)

    _tuple = _list = _sequence

    def _binop(self, node):
        x, y = self.of(node.left), self.of(node.right)
        if isinstance(x, Tensor) or isinstance(y, Tensor):  # in beta 1; newer kernels are refused
            return Tensor()
        if isinstance(x, Register) or isinstance(y, Register):
            return Register()
        if not isinstance(x, Const) or not isinstance(y, Const):
            return None
        x, y = x.value, y.value
        numbers = all(isinstance(v, (int, float)) for v in (x, y))
        try:
            if isinstance(node.op, (ast.LShift, ast.RShift)):
                if not (type(x) is int and type(y) is int and 0 <= y < 64):
                    return None
                return const(x << y if isinstance(node.op, ast.LShift) else x >> y)
            if isinstance(node.op, ast.Pow):
                return const(x ** y) if numbers and abs(y) <= 64 and abs(x) < 1 << 32 else None
            if type(node.op) not in _BINARY or not (numbers or isinstance(node.op, ast.Add)):
                return None
            return const(_BINARY[type(node.op)](x, y))
        except (TypeError, ValueError, ArithmeticError):
            return None

    def _compare(self, node):
        return Register() if any(isinstance(self.of(x), Register) for x in (node.left, *node.comparators)) else None

    def _unaryop(self, node):
        if isinstance(self.of(node.operand), Register) and not isinstance(node.op, ast.Not):
            return Register()
        v = self.constant(node.operand)
        if isinstance(v, (int, float)) and type(node.op) in _UNARY:
            try:
                return const(_UNARY[type(node.op)](v))
            except TypeError:
                pass
        return None

    def _ifexp(self, node):
        x, y = self.of(node.body), self.of(node.orelse)
        return self._merge([x, y]) if isinstance(x, Tensor) else None

    def _namedexpr(self, node):
        return self.of(node.value)

    def _slice(self, node):
        parts = [self.of(p) if p is not None else Const(None) for p in (node.lower, node.upper, node.step)]
        return Const(slice(*(p.value for p in parts))) if all(isinstance(p, Const) for p in parts) else None

    def _subscript(self, node):
        v = self.of(node.value)
        if isinstance(v, Tensor):
            return Tensor(self.indexed(v, node.slice), v.space, v.dtype)
        index = self.constant(node.slice)
        if isinstance(v, Const) and isinstance(v.value, (tuple, list, str)) and isinstance(index, (int, slice)):
            try:
                return const(v.value[index])
            except (IndexError, ValueError, TypeError):
                return None
        if isinstance(v, Seq) and type(index) is int and -len(v.values) <= index < len(v.values):
            return v.values[index]
        return None

    def indexed(self, t, index):
        """The shape of t[index] where it is easy to say."""
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        if t.shape is None or len(parts) > len(t.shape) or not all(isinstance(p, ast.Slice) for p in parts):
            return None
        shape = list(t.shape)
        for d, p in enumerate(parts):
            s = self.constant(p)
            if not isinstance(s, slice) or not all(v is None or type(v) is int for v in (s.start, s.stop, s.step)) or s.step == 0:
                return None
            shape[d] = len(range(*s.indices(shape[d])))
        return tuple(shape)

    # ---- calls ----

    def _call(self, node):
        api = self.api(node.func)
        if api:
            return self._call_of_nki(api, node)
        if isinstance(node.func, ast.Attribute):
            base = self.of(node.func.value)
            return Tensor(None, base.space, base.dtype) if isinstance(base, Tensor) and node.func.attr in _VIEWS else None
        if not isinstance(node.func, ast.Name) or self.lookup(node.func.id)[0] or node.func.id in self.names:
            return None
        if node.func.id == "range":
            return Loop("Python", self._rounds(node))
        values = [self.of(a) for a in node.args]
        if node.func.id in _FUNCTIONS and not node.keywords and values and all(isinstance(v, Const) for v in values):
            try:
                return const(_FUNCTIONS[node.func.id](*(v.value for v in values)))
            except (TypeError, ValueError, ArithmeticError):
                return None
        return None

    def _rounds(self, node):
        args = [self.constant(a) for a in node.args]
        named = {k.arg: self.constant(k.value) for k in node.keywords}
        if named:  # nl.affine_range(start=0, stop=4)
            args = [*args, *(named[k] for k in ("start", "stop", "step")[len(args):] if k in named)]
        return _range_rounds(args) if all(type(a) is int for a in args) else None

    def argument(self, node, name, number):
        """The expression that a call gives for a parameter, by name or number; None if it gives none."""
        for k in node.keywords:
            if k.arg == name:
                return k.value
        return node.args[number] if number is not None and number < len(node.args) else None

    def dtype_of(self, node):
        """The name of the type that an expression is; None if it is not known."""
        api = self.api(node) if node is not None else None
        if api and api.module == "language":
            return api.name
        v = self.constant(node) if node is not None else None
        return v if isinstance(v, str) else None

    def _call_of_nki(self, api, node):
        if api.module == "isa":
            beta = api.is_beta_1 and api.name not in ("dma_copy", "get_nc_version")
            return Register() if api.name in _REGISTERS else Tensor() if beta else Instruction()
        if api.module != "language" or not api.name or not api.name.isidentifier():
            return None
        if api.name in RANGES:
            return Loop(RANGES[api.name], self._rounds(node))
        if api.name in _NO_TENSOR or (not api.is_beta_1 and not isinstance(nki_source.object_of(api), types.FunctionType)):
            return None
        if api.name in _MAKERS or api.name.endswith("_like"):
            shape = self.argument(node, "shape", 0)
            shape = self.constant(shape) if shape is not None and api.name in _MAKERS else None
            is_shape = isinstance(shape, (tuple, list)) and all(type(n) is int and n >= 0 for n in shape)
            buffer = self.argument(node, "buffer", _MAKERS.get(api.name, 1) + 1)
            space = "sbuf" if buffer is None else memory(self.of(buffer))
            dtype = self.dtype_of(self.argument(node, "dtype", _MAKERS.get(api.name)))
            return Tensor(tuple(shape) if is_shape else None, space if api.name in _MAKERS else None, dtype, True)
        return Tensor(None, "psum" if api.name == "matmul" else None if api.name == "broadcast_to" else "sbuf", None, True)


# ---- what a function binds -------------------------------------------------------------------------------------------


def _targets(target, node, path, add):
    if isinstance(target, ast.Name):
        add(target.id, (node, path))
    elif isinstance(target, (ast.Tuple, ast.List)):
        starred = any(isinstance(e, ast.Starred) for e in target.elts)
        for i, e in enumerate(target.elts):
            _targets(e.value if isinstance(e, ast.Starred) else e, None if starred else node, (*path, i), add)


def bindings(function):
    """{name: [(expression, path), …]} of the names that a function binds, its parameters among them; in the form of
    Values._bound_value."""
    bound = {}
    add = lambda name, site: bound.setdefault(name, []).append(site)
    a = function.args
    for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))):
        add(p.arg, (None, ()))
    rest = list(function.body) if isinstance(function.body, list) else [function.body]
    rest.reverse()
    while rest:
        node = rest.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            add(node.name, (None, ()))
            continue
        if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            for n in ast.walk(node):
                if isinstance(n, ast.NamedExpr):
                    add(n.target.id, (None, ()))
            continue
        if isinstance(node, ast.Assign):
            for t in node.targets:
                _targets(t, node.value, (), add)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            _targets(node.target, node.value, (), add)
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):
                add(node.target.id, (None, AUGMENTED))
        elif isinstance(node, ast.NamedExpr):
            add(node.target.id, (node.value, ()))
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            _targets(node.target, node.iter, ("iter",), add)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for i in node.items:
                if i.optional_vars:
                    _targets(i.optional_vars, None, (), add)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for x in node.names:
                add((x.asname or x.name).partition(".")[0], (None, ()))
        elif isinstance(node, ast.ExceptHandler) and node.name:
            add(node.name, (None, ()))
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            add(node.name, (None, ()))
        elif isinstance(node, ast.MatchMapping) and node.rest:
            add(node.rest, (None, ()))
        rest += reversed(list(ast.iter_child_nodes(node)))
    return bound
