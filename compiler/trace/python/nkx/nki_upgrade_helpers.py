"""Functions without a decorator that kernels of beta 1 call, for nki_upgrade.py.

What the parameters of such a function are is known from the calls.  It is rewritten when the first call is, and the calls after that
must agree with it: in what is a tensor, in which memory, and in the types of numbers.  A type of elements stays the expression
"x.dtype" of a parameter x, so that the function may be called for several, unless the call has tensors of several types.
"""
import ast

from nkx.nki_upgrade_values import Tile, Uncertain


class _Helper:
    """A function: its node, whether it makes tiles whatever it is given, and, from its first call on, what its parameters are and
    what it returns."""

    def __init__(self, node):
        self.node, self.makes_tiles, self.given, self.is_open, self.returned = node, False, None, False, None
        self.literal = {}  # the types of parameters that are known, and must be the same in each call
        updated = {n.target for n in ast.walk(node) if isinstance(n, ast.AugAssign)}  # t += x changes a tile in its place
        self.is_assigned = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n not in updated}


def _called(node):
    return {n.func.id for n in ast.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}


def _bound_once(tree):
    """{name: function} of the functions of a module whose names nothing else binds."""
    found, names = {}, []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node
        names += [node.name] if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else [
            n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return {n: f for n, f in found.items() if names.count(n) == 1 and not f.decorator_list}


def reached(tree, kernels):
    """The functions of the module that kernels call, directly or through others."""
    functions, found, rest = _bound_once(tree), [], list(kernels)
    while rest:
        for name in sorted(_called(rest.pop())):
            node = functions.get(name)
            if node is not None and node not in found and node not in kernels:
                found.append(node)
                rest.append(node)
    return found


def _arguments(function, call):
    """{parameter: node} of a call, in the order of the parameters; a default stands for one that is not given."""
    a = function.args
    if a.posonlyargs or a.vararg or a.kwonlyargs or a.kwarg or len(call.args) > len(a.args) or any(
            isinstance(x, ast.Starred) for x in call.args) or any(k.arg is None for k in call.keywords):
        raise Uncertain(f"the parameters of {function.name} are not read")
    names = [p.arg for p in a.args]
    given = dict(zip(names[len(names) - len(a.defaults):], a.defaults)) | dict(zip(names, call.args)) | {k.arg: k.value for k in call.keywords}
    if set(given) != set(names):
        raise Uncertain(f"the arguments do not fit to {function.name}")
    return {n: given[n] for n in names}


def _kind(name, value):
    """What two calls must agree in."""
    if isinstance(value, Tile):
        return value.buffer, value.ndim, tuple(sorted(value.cut))
    if value is None or isinstance(value, type):
        return value
    raise Uncertain(f"what is given for {name} is no tensor and no number, as far as can be seen")


def _joined(returned):
    """What a function returns, from what its return statements do."""
    if len(returned) == 1:
        return returned[0]
    if returned and all(isinstance(v, Tile) for v in returned):
        first, *others = returned
        if all((v.buffer, v.cut) == (first.buffer, first.cut) for v in others):
            dtype = first.dtype if all(v.dtype == first.dtype for v in others) else None
            return Tile(dtype, first.buffer, first.ndim if all(v.ndim == first.ndim for v in others) else None, first.cut)
    if not returned or all(v is None or isinstance(v, type) for v in returned):
        return None
    raise Uncertain("what the function returns is not known here")


class Helpers:
    """rewrite(node, {parameter: value}) rewrites a function and gives the values of its return statements, or raises Uncertain where
    one of them is not known; uses_nki(node): it names functions of NKI."""

    def __init__(self, nodes, uses_nki, rewrite):
        self.found, self.rewrite = {n.name: _Helper(n) for n in nodes}, rewrite
        made = {n.name for n in nodes if any(map(uses_nki, n.body))}
        while more := {n.name for n in nodes if n.name not in made and _called(n) & made}:
            made |= more
        for name in made:
            self.found[name].makes_tiles = True

    def rewritten(self):
        return [h.node for h in self.found.values() if h.given is not None]

    def of(self, k, node):
        """The function that a call calls, if it has tensors or makes them; else None."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id in k.env:
            return None
        h = self.found.get(node.func.id)
        return h if h and (h.makes_tiles or any(map(k.has_tiles, [*node.args, *(a.value for a in node.keywords)]))) else None

    def call(self, k, node, h):
        """(text of the call, what it returns)"""
        values, texts = {}, {}
        for name, x in _arguments(h.node, node).items():
            texts[name], values[name] = k.expression(x)
        kinds = {n: _kind(n, v) for n, v in values.items()}
        if h.is_open:
            raise Uncertain(f"{h.node.name} calls itself")
        if h.given is None:
            self._open(h, kinds, values)
        elif h.given != kinds or any(values[n].dtype != dtype for n, dtype in h.literal.items()):
            raise Uncertain(f"{h.node.name} is called above with other kinds of arguments")
        if isinstance(h.returned, Uncertain):
            raise Uncertain(f"what {h.node.name} returns is not known here")
        result = _for_caller(h.returned, values)
        if k.cut and (not isinstance(result, Tile) or result.cut != k.cut):
            raise Uncertain(f"a mask around what {h.node.name} returns")
        words = [texts[p] for p, _ in zip(values, node.args)] + [f"{a.arg}={texts[a.arg]}" for a in node.keywords]
        return f"{h.node.name}({', '.join(words)})", result

    def _open(self, h, kinds, values):
        inside, several = {}, len({v.dtype for v in values.values() if isinstance(v, Tile)}) > 1
        for n, v in values.items():
            inside[n] = v
            if isinstance(v, Tile):
                if several and (v.dtype or "").startswith("nl."):
                    h.literal[n] = v.dtype
                dtype = h.literal.get(n) or (None if n in h.is_assigned else f"{n}.dtype")
                inside[n] = Tile(dtype, v.buffer, v.ndim, {axis: f"<{n}>" for axis in v.cut})
        h.given, h.is_open = kinds, True
        try:
            h.returned = _joined(self.rewrite(h.node, inside))
        except Uncertain as e:
            h.returned = e
        finally:
            h.is_open = False


def _for_caller(value, given):
    """What a function returns, in the words of its caller."""
    if isinstance(value, tuple):
        return tuple(_for_caller(v, given) for v in value)
    if not isinstance(value, Tile):
        return value
    owner = (value.dtype or "").removesuffix(".dtype")
    dtype = given[owner].dtype if isinstance(given.get(owner), Tile) else value.dtype if (value.dtype or "").startswith("nl.") else None
    cut = {}
    for axis, size in value.cut.items():
        owner = given.get(size[1:-1])
        if not size.startswith("<") or axis not in getattr(owner, "cut", ()):
            raise Uncertain("a function makes its result smaller by a mask")
        cut[axis] = owner.cut[axis]
    return Tile(dtype, value.buffer, value.ndim, cut)
