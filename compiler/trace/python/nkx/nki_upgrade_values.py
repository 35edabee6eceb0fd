"""What the expressions of a beta-1 kernel are, and how they are written in the newest generation (nki_upgrade.py).

Nothing is executed: shapes stay the expressions that the source has for them.  A dtype is known as the text of one, such as
"nl.float32" or "a.dtype" for an argument a.  Where beta 1 takes the wider of two types, and the newer function the first
one's, an assertion in the kernel says that they are equal.
"""
import ast

import _nkx


class Uncertain(Exception):
    """Why a statement is not rewritten."""


UNKNOWN = object()  # what a statement makes that is not upgraded: perhaps a tile


class Tile:
    """A tensor.  buffer: "nl.sbuf", "nl.psum" or "nl.hbm"; cut: {axis: size} of a tile that a mask has made smaller."""

    loaded = None  # the part of HBM that it is a copy of

    def __init__(self, dtype=None, buffer="nl.sbuf", ndim=None, cut=None):
        self.dtype, self.buffer, self.ndim, self.cut = dtype, buffer, ndim, dict(cut or {})


class Blocks:
    """A list of tiles, for n block dimensions."""

    def __init__(self, n, tile):
        self.n, self.tile = n, tile


class Index:
    """An index tile: offset + sum of step * (the index of an axis).  axes: {axis: (step, size)}; all are texts, but step."""

    def __init__(self, ndim, offset, axes):
        self.ndim, self.offset, self.axes = ndim, offset, axes


# ---- texts of sums --------------------------------------------------------------------------------------------------


def _number(text):
    try:
        return int(text)
    except ValueError:
        return None


def plus(x, y):
    if _number(x) is not None and _number(y) is not None:
        return str(int(x) + int(y))
    return y if x == "0" else x if y == "0" else f"{x} + {y}"


def minus(x, y):
    is_sum = isinstance(getattr(ast.parse(y, mode="eval").body, "op", None), (ast.Add, ast.Sub))
    return x if y == "0" else f"{x} - ({y})" if is_sum else f"{x} - {y}"


def _is_simple(text):
    return not isinstance(ast.parse(text, mode="eval").body, (ast.BinOp, ast.IfExp, ast.Compare))


def times(x, n):
    return "0" if x == "0" or n == 0 else x if n == 1 else str(int(x) * n) if _number(x) is not None else f"{x} * {n}" if _is_simple(x) else f"({x}) * {n}"


# ---- tables ---------------------------------------------------------------------------------------------------------

_BINARY = {n for n, is_binary in _nkx.nki_operators().items() if is_binary} - {"max", "min"} | {"divide"}
_UNARY = {n for n, is_binary in _nkx.nki_operators().items() if not is_binary} | {"reciprocal", "negative", "cos", "tan", "logical_not", "invert"}
_REDUCTIONS = {"sum", "max", "min", "prod", "mean", "all"}
_OPERATORS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power", ast.BitAnd: "bitwise_and",
              ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor", ast.LShift: "left_shift", ast.RShift: "right_shift", ast.Lt: "less",
              ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal", ast.Eq: "equal", ast.NotEq: "not_equal"}
_NUMPY = {"max": "maximum", "amax": "maximum", "min": "minimum", "amin": "minimum"}

# calls of nki.isa: the positional parameters of beta 1, and the shape of the result from the operand that is named
_ISA = {
    "activation": ("op data", "data", "{0}.shape"), "activation_reduce": ("op data", "data", "{0}.shape"),
    "tensor_tensor": ("data1 data2 op", "data1", "{0}.shape"),
    "tensor_scalar": ("data op0 operand0 reverse0 op1 operand1 reverse1", "data", "{0}.shape"),
    "scalar_tensor_tensor": ("", "data", "{0}.shape"), "reciprocal": ("data", "data", "{0}.shape"),
    "tensor_copy": ("src", "src", "{0}.shape"), "nc_transpose": ("data", "data", "({0}.shape[1], {0}.shape[0])"),
    "tensor_reduce": ("op data axis", "data", "({0}.shape[0], 1)"),
    "tensor_tensor_scan": ("data0 data1 initial op0 op1 reverse0 reverse1", "data0", "{0}.shape"),
    "bn_stats": ("data", "data", "({0}.shape[0], 6)"), "bn_aggr": ("data", "data", "({0}.shape[0], 2)"),
    "max8": ("", "src", "({0}.shape[0], 8)"), "nc_matmul": ("stationary moving", "stationary", "({0}.shape[1], {1}.shape[1])"),
}


class Kernel:
    """The names of one kernel, and its expressions."""

    def __init__(self, text, function, aliases, helpers):
        self.data, self.aliases, self.helpers = text.encode(), aliases, helpers
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.env, self.definitions, self.kept = {}, {}, set()
        self.lines, self.cut, self.n_temporary, self.asserted, self.returned = [], {}, 0, {}, []
        defaults = function.args.defaults
        for i, a in enumerate(function.args.args):
            j = i - (len(function.args.args) - len(defaults))
            is_number = j >= 0 and isinstance(defaults[j], ast.Constant)
            self.env[a.arg] = type(defaults[j].value) if is_number else Tile(f"{a.arg}.dtype", "nl.hbm")

    # ---- the source

    def source(self, node):
        begin, end = self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset
        return self.data[begin:end].decode()

    def define(self, name, value, node):
        """Notes a name of an index tile or a mask, which goes away where all its uses are rewritten."""
        self.env[name] = value
        self.definitions.setdefault(name, []).append(node)

    def note(self, target, node, value):
        """Notes what a target of an assignment is; the parts of a shape are integers."""
        if isinstance(target, ast.Name):
            self.env[target.id] = value
        elif isinstance(node, ast.Attribute) and node.attr == "shape":
            self.env |= {t.id: int for t in target.elts if isinstance(t, ast.Name)}

    def mask_of(self, node):
        """The expression, if it is a mask."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            return node if self.mask_of(node.left) and self.mask_of(node.right) else None
        is_mask = isinstance(node, ast.Compare) and any(isinstance(self.value(x), Index) for x in (node.left, *node.comparators))
        return node if is_mask else None

    def keep_names(self, *nodes):
        self.kept |= {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name)}

    def has_tiles(self, node):
        """It has a function of NKI, or a name of a tile or of what may be one; shapes and types of tiles are none."""
        if isinstance(node, ast.Attribute) and node.attr in ("shape", "dtype", "ndim") and isinstance(node.value, ast.Name):
            return False
        if isinstance(node, ast.Call) and self.name_of(node).startswith(("nl.", "nisa.")):
            return self.name_of(node) not in ("nl.ds", "nl.program_id", "nl.num_programs", "nl.program_ndim")
        if self.helper_of(node):
            return True
        if isinstance(node, ast.Name):
            v = self.env.get(node.id)
            return v is UNKNOWN or isinstance(v, (Tile, Blocks, Index, list, ast.AST))
        return any(self.has_tiles(n) for n in ast.iter_child_nodes(node))

    def take_lines(self):
        lines, self.lines = self.lines, []
        return lines

    def is_call(self, node):
        return isinstance(node, ast.Call) and self.name_of(node) is not None

    def helper_of(self, node):
        """The function without a decorator that a call calls, where it has to do with tiles (nki_upgrade_helpers.py)."""
        return self.helpers.of(self, node)

    def name_of(self, node):
        """"nl.load" for a function of nki.language, "nisa.iota", "nki.jit"; "" for another one."""
        func = node.func if isinstance(node, ast.Call) else node
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            module = self.aliases.get(func.value.id)
            if module:
                return {"nki.language": "nl.", "nki.isa": "nisa.", "nki": "nki.", "nki.typing": "nt."}[module] + func.attr
        return ""

    # ---- values

    def value(self, node):
        """The Tile, Blocks, Index or type of number that an expression is; a list for nl.mgrid; None if it is not known."""
        if isinstance(node, ast.Name):
            return self.env.get(node.id)
        if isinstance(node, ast.Constant):
            return type(node.value)
        if isinstance(node, ast.Call) and self.name_of(node) == "nl.arange":
            return self._arange(node)
        if isinstance(node, ast.Subscript):
            return self._value_of_subscript(node)
        if isinstance(node, ast.Attribute):
            v = self.value(node.value)
            if isinstance(v, list) and node.attr in "pxyzwv":
                return v["pxyzwv".index(node.attr)] if "pxyzwv".index(node.attr) < len(v) else None
            return None
        if isinstance(node, ast.BinOp):
            return self._sum(node)
        return None

    def _arange(self, node):
        bounds = [self.source(a) for a in node.args]
        if len(bounds) == 1:
            return Index(1, "0", {0: (1, bounds[0])})
        return Index(1, bounds[0], {0: (1, minus(bounds[1], bounds[0]))}) if len(bounds) == 2 else None

    def _value_of_subscript(self, node):
        if self.name_of(node.value) == "nl.mgrid":
            axes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            starts = [self.source(a.lower) if a.lower else "0" for a in axes]
            return [Index(len(axes), s, {d: (1, minus(self.source(a.upper), s))}) for d, (a, s) in enumerate(zip(axes, starts))]
        v = self.value(node.value)
        if isinstance(v, Index):
            entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            at = [d for d, e in enumerate(entries) if isinstance(e, ast.Slice)]
            if v.ndim == len(at) == 1:
                return Index(len(entries), v.offset, {at[0]: v.axes[0]})
            return None
        return v if isinstance(v, (Tile, Blocks)) else int if isinstance(node.value, ast.Attribute) and node.value.attr == "shape" else None

    def _sum(self, node):
        x, y = self.value(node.left), self.value(node.right)
        if isinstance(x, Index) and isinstance(y, Index) and isinstance(node.op, ast.Add) and not set(x.axes) & set(y.axes):
            return Index(max(x.ndim, y.ndim), plus(x.offset, y.offset), x.axes | y.axes) if x.ndim == y.ndim else None
        for i, other, is_left in ((x, node.right, True), (y, node.left, False)):
            if not isinstance(i, Index) or isinstance(self.value(other), Index):
                continue
            text, n = self.source(other), _number(self.source(other))
            if isinstance(node.op, ast.Add):
                return Index(i.ndim, plus(i.offset, text) if is_left else plus(text, i.offset), i.axes)
            if isinstance(node.op, ast.Sub) and is_left:
                return Index(i.ndim, minus(i.offset, text), i.axes)
            if isinstance(node.op, ast.Mult) and n is not None:
                return Index(i.ndim, times(i.offset, n), {d: (s * n, size) for d, (s, size) in i.axes.items()})
            raise Uncertain("an index is not affine, as far as can be seen")
        numbers = {int, float, bool}
        if x in numbers and y in numbers:
            return float if isinstance(node.op, ast.Div) or float in (x, y) else int
        return None

    # ---- masks

    def masked(self, call):
        """The sizes to which the mask of a call cuts axes: {axis: size}."""
        masks = [a.value for a in call.keywords if a.arg == "mask"] if isinstance(call, ast.Call) else []
        if not masks or isinstance(masks[0], ast.Constant):
            return {}
        return self._cut(masks[0])

    def _cut(self, node):
        if isinstance(node, ast.Name) and isinstance(self.env.get(node.id), ast.AST):
            return self._cut(self.env[node.id])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            return self._cut(node.left) | self._cut(node.right)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt):
            i = self.value(node.left)
            if isinstance(i, Index) and len(i.axes) == 1 and next(iter(i.axes.values()))[0] == 1:
                ((axis, (_, size)),) = i.axes.items()
                return {axis: f"min({size}, {minus(self.source(node.comparators[0]), i.offset)})"}
        raise Uncertain("the mask is no bound of one axis, as far as can be seen")

    # ---- expressions

    def expression(self, node):
        """(text, value)"""
        if isinstance(node, ast.Name):
            v = self.env.get(node.id)
            if isinstance(v, (Index, list, ast.AST)):
                raise Uncertain("an index tile outside of an index")
            if v is UNKNOWN:
                raise Uncertain(f"what {node.id} is, is not known here")
            return self._cut_tile(node.id, v) if isinstance(v, Tile) else (node.id, v)
        if isinstance(node, ast.Subscript):
            return self._access(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, (ast.BinOp, ast.Compare)) and not isinstance(self.value(node), Index):
            x, y, op = (node.left, node.right, node.op) if isinstance(node, ast.BinOp) else (node.left, node.comparators[0], node.ops[0])
            x, y = self.expression(x), self.expression(y)
            if isinstance(x[1], Tile) or isinstance(y[1], Tile):
                return self.operation(type(op), x, y)
            return self.source(node), self.value(node)
        if isinstance(node, ast.UnaryOp):
            code, v = self.expression(node.operand)
            if isinstance(v, Tile) and isinstance(node.op, ast.USub):
                return f"nl.negative({code})", Tile(v.dtype, ndim=v.ndim, cut=v.cut)
            return self.source(node), v if not isinstance(v, Tile) else None
        if isinstance(node, (ast.Tuple, ast.List)):
            both = [self.expression(e) for e in node.elts]
            codes = [code for code, _ in both]
            text = ", ".join(codes) + ("," if len(codes) == 1 and isinstance(node, ast.Tuple) else "")
            if isinstance(node, ast.List):
                return f"[{text}]", None
            has_brackets = not node.elts or self.source(node).startswith("(")
            return f"({text})" if has_brackets else text, tuple([v for _, v in both])
        self._check_plain(node)
        return self._with_newer_names(node), self.value(node)

    def _check_plain(self, node):
        for n in ast.walk(node):
            if isinstance(n, ast.Name) and isinstance(self.env.get(n.id), (Index, list, ast.AST)):
                raise Uncertain("an index tile outside of an index")
        is_part = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant))
        if self.has_tiles(node) and (not is_part or any(isinstance(n, ast.Call) for n in ast.walk(node))):
            raise Uncertain("this expression is not known")

    def _with_newer_names(self, node):
        """np.float32 as a dtype, np.add as an operator: nl has both."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy"):
            return f"nl.{_NUMPY.get(node.attr, node.attr)}"
        return self.source(node)

    def _cut_tile(self, code, v):
        """A tile where the statement's mask leaves its part."""
        if not self.cut or v.buffer == "nl.hbm" or v.cut == self.cut:
            return code, v
        if v.ndim is None or v.cut or max(self.cut) >= v.ndim:
            raise Uncertain("a mask on a tile whose shape is not known here")
        return self._part(code, v, self.cut)

    def _part(self, code, v, cut):
        sizes = [f"0:{cut[d]}" if d in cut else ":" for d in range(v.ndim)]
        return f"{code}[{', '.join(sizes)}]", Tile(v.dtype, v.buffer, v.ndim, cut)

    def _as_small(self, code, v, cut):
        """A tile beside one that a mask has made smaller: beta 1 computes what both have."""
        if v.cut == cut or v.buffer == "nl.hbm":
            return code, v
        if v.cut or set(cut) != {0} or v.ndim is None:
            raise Uncertain("a mask has made one of the operands smaller")
        return self._part(code, v, cut)

    def _access(self, node):
        v = self.value(node.value)
        if isinstance(node.value, ast.Name):
            base = node.value.id
        elif isinstance(v, (Tile, Blocks)) or isinstance(node.value, ast.Call):
            outer, self.cut = self.cut, {}  # the index cuts
            base, v = self.expression(node.value)
            self.cut = outer
        if not isinstance(v, (Tile, Blocks)):
            self._check_plain(node)
            return self.source(node), self.value(node)
        keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(v, Blocks):
            if len(keys) < v.n or any(isinstance(self.value(x), Index) or isinstance(x, ast.Slice) for x in keys[:v.n]):
                raise Uncertain("block dimensions are not indexed by loop variables")
            base += "".join(f"[{self.source(x)}]" for x in keys[:v.n])
            keys, v = keys[v.n:], v.tile
        tile = Tile(v.dtype, v.buffer, v.ndim, v.cut)
        if not keys or len(keys) == 1 and isinstance(keys[0], ast.Constant) and keys[0].value is Ellipsis:
            return self._cut_tile(base, tile) if keys and self.cut else (base + ("[...]" if keys and not isinstance(node.value, ast.Name) else ""), tile)
        entries, axes, outer, self.cut = [], [], self.cut, dict(self.cut)
        try:
            for d, x in enumerate(keys):
                i = self.value(x)
                if not isinstance(i, Index) and self.has_tiles(x):
                    raise Uncertain("a tile selects rows; write them with .ap(vector_offset=…)")
                if d in v.cut and not (d == 0 and self._is_whole(x)):
                    self._keep_inside(i, v.cut[d])
                entries.append(self._slice(i, axes) if isinstance(i, Index) else self.source(x))
            cut = self.cut
        finally:
            self.cut = outer
        if axes != sorted(axes):
            raise Uncertain("the axes of the access are in another order; write it with .ap")
        tile.ndim = sum(isinstance(x, (ast.Slice, ast.Call)) or isinstance(self.value(x), Index) for x in keys) or None
        tile.cut = {d: size for d, size in cut.items() if d in axes} if axes else {}
        tile.cut |= {0: v.cut[0]} if 0 in v.cut and self._is_whole(keys[0]) else {}
        return f"{base}[{', '.join(entries)}]", tile

    def _is_whole(self, node):
        return isinstance(node, ast.Slice) and not (node.lower or node.upper or node.step)

    def _keep_inside(self, i, size):
        """Cuts an access to all elements of an axis that a mask has made smaller."""
        if not isinstance(i, Index) or len(i.axes) != 1 or i.offset != "0":
            raise Uncertain("a mask has made the tile smaller")
        ((axis, (step, whole)),) = i.axes.items()
        if step != 1 or not size.startswith(f"min({whole}, ") or self.cut.get(axis, size) != size:
            raise Uncertain("a mask has made the tile smaller")
        self.cut[axis] = size

    def _slice(self, i, axes):
        if len(i.axes) != 1 or next(iter(i.axes)) in axes:
            raise Uncertain("an index has several axes; write it with .ap")
        ((axis, (step, size)),) = i.axes.items()
        axes.append(axis)
        size = self.cut.get(axis, size)
        if step == 1:
            return f"0:{size}" if i.offset == "0" else f"nl.ds({i.offset}, {size})"
        if step < 1:
            raise Uncertain("an index goes backwards")
        end = str(step * (int(size) - 1) + 1) if _number(size) is not None else f"{step} * ({size} - 1) + 1"
        return f"{i.offset}:{plus(i.offset, end)}:{step}"

    # ---- dtypes

    def _same_dtype(self, x, y):
        """The common dtype, and the argument that the newer function needs."""
        one = "nl.float32"
        x, y = self.asserted.get(x, x), self.asserted.get(y, y)
        if x == y:
            return x, ""
        if one in (x, y):
            return one, f", dtype={one}"
        if x is None or y is None or (x.startswith("nl.") and y.startswith("nl.")):
            raise Uncertain("the types of the operands differ, or are not known here")
        x, y = (y, x) if y.startswith("nl.") else (x, y)
        self.lines.append(f"assert {y} == {x}")
        self.asserted[y] = x
        return x, ""

    def operation(self, op, x, y, dtype=None):
        """nl.add(x, y) and the like.  x, y: (text, value)"""
        name = _OPERATORS.get(op) if isinstance(op, type) else op
        if name is None:
            raise Uncertain("this operator has no function")
        tile, number = (x[1], y[1]) if isinstance(x[1], Tile) else (y[1], x[1])
        if not isinstance(tile, Tile):
            raise Uncertain("the operand is no tile, as far as can be seen")
        cut = tile.cut or (number.cut if isinstance(number, Tile) else {})
        x, y = (self._as_small(*o, cut) if isinstance(o[1], Tile) else o for o in (x, y))
        extra, result = "", dtype
        if dtype:
            extra = f", dtype={dtype}"
        elif name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
            result = tile.dtype
        elif isinstance(number, Tile):
            result, extra = self._same_dtype(x[1].dtype, y[1].dtype)
        elif number is float:
            result, extra = "nl.float32", "" if tile.dtype == "nl.float32" else ", dtype=nl.float32"
        elif number in (int, bool) or tile.dtype == "nl.float32":
            result = tile.dtype
        else:
            raise Uncertain("the type of a number is not known here")
        return f"nl.{name}({x[0]}, {y[0]}{extra})", Tile(result, ndim=tile.ndim, cut=cut)

    # ---- calls

    def _arguments(self, node, names):
        """{parameter: node}"""
        if len(node.args) > len(names):
            raise Uncertain("there are more arguments than expected")
        return dict(zip(names, node.args)) | {a.arg: a.value for a in node.keywords if a.arg}

    def _dtype_argument(self, given):
        return self._with_newer_names(given["dtype"]) if "dtype" in given else None

    def _call(self, node):
        helper, name = self.helper_of(node), self.name_of(node)
        if helper:
            return self.helpers.call(self, node, helper)
        if self.masked(node) != self.cut and any(a.arg == "mask" for a in node.keywords):
            outer, self.cut = self.cut, self.masked(node)
            try:
                return self._named_call(node, name)
            finally:
                self.cut = outer
        return self._named_call(node, name)

    def _named_call(self, node, name):
        if not name and isinstance(node.func, ast.Attribute) and node.func.attr in ("astype", "broadcast_to", "reshape"):
            return self._method(node)
        short = name.rpartition(".")[2]
        if name.startswith("nisa.") and short in _ISA:
            self.n_temporary += 1
            temporary = f"tile_{self.n_temporary}"
            lines, tile = self.result_of_call(node, temporary)
            self.lines += lines
            return temporary, tile
        if name == "nisa.dma_copy":
            given = self._arguments(node, ())
            return f"nisa.dma_copy(dst={self.expression(given['dst'])[0]}, src={self.expression(given['src'])[0]})", None
        if name.startswith("nl."):
            method = getattr(self, f"_nl_{short}", None)
            if method:
                return method(node)
            if short in _BINARY:
                given = self._arguments(node, ("x", "y"))
                return self.operation(short, self.expression(given["x"]), self.expression(given["y"]), self._dtype_argument(given))
            if short in _UNARY or short in _REDUCTIONS or short == "softmax":
                return self._mapped(node, short)
            if short in ("ds", "program_id", "num_programs", "program_ndim", "affine_range", "sequential_range", "static_range"):
                return self.source(node), int
        if name.startswith(("nl.", "nisa.")):
            raise Uncertain(f"{name} is not known to this tool")
        self._check_plain(node)
        return self.source(node), float if isinstance(node.func, ast.Attribute) and self.source(node.func.value) == "math" else None

    def _mapped(self, node, short):
        given = self._arguments(node, ("x", "axis") if short in _REDUCTIONS or short == "softmax" else ("x",))
        code, tile = self.expression(given["x"])
        if not isinstance(tile, Tile):
            raise Uncertain("the operand is no tile, as far as can be seen")
        dtype = self._dtype_argument(given)
        extra = [f"{k}={self.source(v)}" for k, v in given.items() if k in ("axis", "keepdims")] + ([f"dtype={dtype}"] if dtype else [])
        cut = {0: tile.cut[0]} if 0 in tile.cut and short in _REDUCTIONS else {} if short in _REDUCTIONS else tile.cut
        ndim = 2 if short in _REDUCTIONS and tile.ndim == 2 else None if short in _REDUCTIONS else tile.ndim
        return f"nl.{short}({', '.join([code, *extra])})", Tile(dtype or tile.dtype, ndim=ndim, cut=cut)

    def _method(self, node):
        code, tile = self.expression(node.func.value)
        if not isinstance(tile, Tile):
            self._check_plain(node)
            return self.source(node), None
        shape = node.args[0].elts if node.args and isinstance(node.args[0], ast.Tuple) else ()
        if node.func.attr == "broadcast_to" and tile.loaded and len(shape) == 2:  # DMA repeats a row of HBM
            return f"nl.load({tile.loaded}.broadcast(0, {self.source(shape[0])}))", Tile(tile.dtype, ndim=2)
        if node.func.attr == "astype":
            dtype = self._with_newer_names(node.args[0])
            return f"nl.copy({code}, dtype={dtype})", Tile(dtype, ndim=tile.ndim, cut=tile.cut)
        if node.func.attr == "reshape" and tile.buffer == "nl.hbm":
            return f"{code}.reshape({', '.join(map(self.source, node.args))})", Tile(tile.dtype, tile.buffer)
        raise Uncertain(f"{node.func.attr} of a tile: load it as often as it is needed, a[…].broadcast(0, n)")

    def _nl_load(self, node):
        given = self._arguments(node, ("src",))
        code, tile = self.expression(given["src"])
        if not isinstance(tile, Tile):
            raise Uncertain("the source is no tensor, as far as can be seen")
        dtype = self._dtype_argument(given)
        loaded = Tile(dtype or tile.dtype, ndim=tile.ndim, cut=tile.cut)
        loaded.loaded = None if dtype or tile.cut else code
        return f"nl.load({code}{f', dtype={dtype}' if dtype else ''})", loaded

    def _nl_copy(self, node):
        given = self._arguments(node, ("src",) if any(a.arg == "src" for a in node.keywords) else ("x", "dtype"))
        code, tile = self.expression(given.get("x") or given["src"])
        dtype = self._dtype_argument(given)
        if not isinstance(tile, Tile):
            raise Uncertain("the source is no tile, as far as can be seen")
        return f"nl.copy({code}{f', dtype={dtype}' if dtype else ''})", Tile(dtype or tile.dtype, ndim=tile.ndim, cut=tile.cut)

    _nl_static_cast = _nl_copy

    def _nl_transpose(self, node):
        code, tile = self.expression(node.args[0])
        return f"nl.transpose({code})", Tile(tile.dtype, ndim=2)

    def _nl_matmul(self, node):
        given = self._arguments(node, ("x", "y"))
        (x, a), (y, b) = self.expression(given["x"]), self.expression(given["y"])
        if not isinstance(a, Tile) or not isinstance(b, Tile):
            raise Uncertain("the operand is no tile, as far as can be seen")
        x, y = (f"nl.copy({code})" if t.buffer == "nl.psum" else code for code, t in ((x, a), (y, b)))
        if "transpose_x" not in given or self.source(given["transpose_x"]) != "True":
            x = f"nl.transpose({x})"
        return f"nl.matmul({x}, {y}, transpose_x=True)", Tile("nl.float32", "nl.psum", 2)

    def _nl_ndarray(self, node):
        given = self._arguments(node, ("shape", "fill_value", "dtype") if self.name_of(node) == "nl.full" else ("shape", "dtype"))
        sizes = given["shape"].elts if isinstance(given["shape"], (ast.Tuple, ast.List)) else None
        is_par = lambda n: isinstance(n, ast.Call) and self.name_of(n) == "nl.par_dim"
        n = next((d for d, s in enumerate(sizes) if is_par(s)), 0) if sizes else 0
        plain = [self.source(s.args[0]) if is_par(s) else self.source(s) for s in sizes or ()]
        shape = f"({', '.join(plain[n:])})" if sizes else self.source(given["shape"])
        buffer = self.source(given["buffer"]) if "buffer" in given else "nl.sbuf"
        dtype = self._dtype_argument(given)
        value = [self.source(given["fill_value"])] if "fill_value" in given else []
        if "hbm" not in buffer and "psum" not in buffer and "sbuf" not in buffer:
            raise Uncertain("the memory is not known here")
        text = f"{self.source(node.func)}({', '.join([shape, *value, f'dtype={dtype}', f'buffer={buffer}'])})"
        tile = Tile(dtype, "nl.hbm" if "hbm" in buffer else "nl.psum" if "psum" in buffer else "nl.sbuf", len(sizes) - n if sizes else None)
        for size in plain[:n][::-1]:
            text = f"[{text} for _ in range({size})]"
        return text, Blocks(n, tile) if n else tile

    _nl_zeros = _nl_ones = _nl_full = _nl_ndarray

    # ---- calls of nki.isa

    def _isa_arguments(self, node):
        name = self.name_of(node).rpartition(".")[2]
        if name not in _ISA:
            raise Uncertain(f"nisa.{name} is not known to this tool")
        positional, operand, shape = _ISA[name]
        given = self._arguments(node, positional.split())
        texts, tiles = {}, {}
        for k, v in given.items():
            if k not in ("mask", "dtype"):
                texts[k], tiles[k] = self.expression(v)
        main = tiles.get(operand)
        if not isinstance(main, Tile):
            raise Uncertain("the operand is no tile, as far as can be seen")
        for k, t in tiles.items():
            if isinstance(t, Tile) and name != "nc_matmul":
                texts[k], tiles[k] = self._as_small(texts[k], t, main.cut)
            if name in ("tensor_reduce", "nc_transpose", "nc_matmul") and isinstance(t, Tile):
                self._check_is_2d(texts[k], t)
        return name, texts, tiles, operand, shape, self._dtype_argument(given)

    def _check_is_2d(self, text, tile):
        if tile.ndim is None:
            self.lines.append(f"assert len({text}.shape) == 2")
            tile.ndim = 2
        if tile.ndim != 2:
            raise Uncertain("the result of an operand of more than two axes")

    def _isa_dtype(self, name, texts, tiles, operand, dtype):
        if dtype:
            return dtype, dtype
        if name == "nc_matmul":
            return "nl.float32", "nl.float32"
        if name in ("bn_stats", "bn_aggr"):
            return "nl.float32", "nl.float32"
        second = {"tensor_tensor": "data2", "tensor_tensor_scan": "data1"}.get(name)
        if second and isinstance(tiles.get(second), Tile):
            common, extra = self._same_dtype(tiles[operand].dtype, tiles[second].dtype)
            return (common, common) if extra else (f"{texts[operand]}.dtype", common)
        return f"{texts[operand]}.dtype", tiles[operand].dtype

    def result_of_call(self, node, name):
        """(lines that make the tile `name` and write the call's result to it, the Tile)"""
        outer, self.cut = self.cut, self.masked(node) or self.cut
        call, texts, tiles, operand, shape, dtype = self._isa_arguments(node)
        self.cut = outer
        text, known = self._isa_dtype(call, texts, tiles, operand, dtype)
        buffer = "nl.psum" if call in ("nc_matmul", "nc_transpose") else "nl.sbuf"
        main, like = tiles[operand], shape == "{0}.shape"
        made = shape.format(texts[operand], texts.get("moving"))
        to = name
        if any(n.id == name for t in texts.values() for n in ast.walk(ast.parse(t)) if isinstance(n, ast.Name)):  # x = f(x)
            self.n_temporary += 1
            to = f"tile_{self.n_temporary}"
        lines = self.take_lines() + [f"{to} = nl.ndarray({made}, dtype={text}, buffer={buffer})",
                                     f"nisa.{call}(dst={to}, {', '.join(f'{k}={v}' for k, v in texts.items())})"]
        lines += [f"{name} = {to}"] if to != name else []
        cut = main.cut if like else {0: main.cut[0]} if 0 in main.cut and buffer == "nl.sbuf" else {}
        return lines, Tile(known, buffer, main.ndim if like else 2, cut)

    def target(self, node, cut):
        """The text of a target of an assignment, where what is assigned leaves its part."""
        outer, self.cut = self.cut, cut
        try:
            return self.expression(node)[0]
        finally:
            self.cut = outer

    def call_into(self, node, target):
        """t[…] = nisa.f(…): the call writes there."""
        call, texts, tiles, operand, shape, _ = self._isa_arguments(node)
        cut = tiles[operand].cut
        if shape != "{0}.shape":  # the other axes of the result are none of the operand's
            if cut and call in ("nc_matmul", "nc_transpose"):
                raise Uncertain("a mask has made the operand smaller")
            cut = {0: cut[0]} if 0 in cut else {}
        to = self.target(target, cut)
        more = ", accumulate=False" if call == "nc_matmul" else ""
        return self.take_lines() + [f"nisa.{call}(dst={to}, {', '.join(f'{k}={v}' for k, v in texts.items())}{more})"]

    def product_into(self, node, to):
        """psum += a product"""
        given = self._arguments(node, ("stationary", "moving") if self.name_of(node).startswith("nisa.") else ("x", "y"))
        x, y = (self.expression(v)[0] for k, v in given.items() if k in ("stationary", "moving", "x", "y"))
        return self.take_lines() + [f"nisa.nc_matmul(dst={to}, stationary={x}, moving={y})"]

    def store(self, node):
        given = self._arguments(node, ("dst", "value"))
        self.cut = self.masked(node)
        try:
            to, _ = self.expression(given["dst"])
            code, tile = self.expression(given["value"])
        finally:
            self.cut = {}
        if not isinstance(tile, Tile):
            raise Uncertain("the value is no tile, as far as can be seen")
        if tile.cut and not self.masked(node):
            to = self.target(given["dst"], tile.cut)
        if tile.buffer == "nl.psum":
            code = f"nl.copy({code})"
        return self.take_lines() + [f"nl.store({to}, {code})"]
