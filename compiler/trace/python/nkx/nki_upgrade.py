"""`nkx nki upgrade`: rewrites kernels of NKI beta 1 for the newest generation, statement by statement.

A statement is rewritten where its meaning is certain:

    ip, jf = nl.arange(128)[:, None], nl.arange(512)[None, :]     (goes away: slices take the place of index tiles)
    x = nl.load(a[i * 128 + ip, jf])                              x = nl.load(a[i * 128:i * 128 + 128, 0:512])
    e = nisa.activation(op=nl.exp, data=x)                        e = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
                                                                  nisa.activation(dst=e, op=nl.exp, data=x)
    acc += nisa.nc_matmul(l, r)                                   nisa.nc_matmul(dst=acc, stationary=l, moving=r)

The others stay, below a comment that says what has to be done by hand.  The text between the statements, with its
comments, stays as it is.  nki_upgrade_values.py rewrites the expressions.
"""
import ast

from nkx.nki_upgrade_values import Blocks, Index, Kernel, Tile, Uncertain

MARK = "# nkx: not upgraded: "
_MODULES = {"neuronxcc.nki": "nki", "neuronxcc.nki.language": "nki.language", "neuronxcc.nki.isa": "nki.isa",
            "neuronxcc.nki.typing": "nki.typing"}
_HOST = {"simulate_kernel", "baremetal", "benchmark", "profile"}


def _import(node):
    """The text of an import for the newer package; None for an import of something else."""
    if isinstance(node, ast.Import) and any(a.name.startswith("neuronxcc") for a in node.names):
        names = [(_MODULES.get(a.name, a.name), a.asname) for a in node.names]
        if any(n.startswith("neuronxcc") for n, _ in names):
            raise Uncertain("this module has no successor")
        return "import " + ", ".join(n if a in (None, n) else f"{n} as {a}" for n, a in names)
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neuronxcc"):
        names = ", ".join(a.name if a.asname is None else f"{a.name} as {a.asname}" for a in node.names)
        if node.module == "neuronxcc" and all(a.name == "nki" for a in node.names):
            return "import " + names
        if node.module not in _MODULES:
            raise Uncertain("this module has no successor")
        return f"from {_MODULES[node.module]} import {names}"
    return None


def _aliases(tree):
    """{name in the file: module of NKI}"""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.asname: _MODULES[a.name] for a in node.names if a.asname and a.name in _MODULES}
        elif isinstance(node, ast.ImportFrom) and node.module in ("neuronxcc", "neuronxcc.nki"):
            for a in node.names:
                full = _MODULES.get(f"{node.module}.{a.name}")
                found |= {a.asname or a.name: full} if full else {}
    return found


class _File:
    def __init__(self, text):
        self.data = text.encode()
        self.tree = ast.parse(text)
        self.starts = [0]
        for line in self.data.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.edits, self.marks = [], 0  # (begin, end, text)

    def place(self, node):
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def replace(self, node, lines):
        """Writes lines in place of a statement; none: the line goes away."""
        begin, end = self.place(node)
        if not lines:
            begin, end = self.starts[node.lineno - 1], self.starts[node.end_lineno]
        indent = " " * node.col_offset
        self.edits.append((begin, end, ("\n" + indent).join(lines)))

    def mark(self, node, reason):
        begin, _ = self.place(node)
        self.marks += 1
        self.edits.append((begin, begin, f"{MARK}{reason}\n{' ' * node.col_offset}"))

    def text(self):
        out = self.data
        for begin, end, text in sorted(self.edits, reverse=True):
            out = out[:begin] + text.encode() + out[end:]
        return out.decode()


# ---- statements -----------------------------------------------------------------------------------------------------


def _is_range(node, k):
    return k.name_of(node) in ("nl.affine_range", "nl.sequential_range", "nl.static_range")


def _assign(k, node, target, value):
    """The lines for `target = value`."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return _assign_several(k, node, target, value)
    if isinstance(target, ast.Subscript):
        t = k.value(target.value)
        if isinstance(t, (Tile, Blocks)):
            return _assign_part(k, target, value)
    if not isinstance(target, ast.Name):
        return None
    v = k.mask_of(value) or k.value(value)
    if isinstance(v, (Index, list, ast.AST)):  # index tiles and masks
        k.define(target.id, v, node)
        return None
    if k.is_call(value) and k.name_of(value).startswith("nisa."):
        lines, tile = k.result_of_call(value, target.id)
    else:
        code, tile = k.expression(value)
        lines = k.take_lines() + [f"{target.id} = {code}"]
    k.env[target.id] = tile
    return lines


def _assign_several(k, node, target, value):
    if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
        values = [k.value(v) for v in value.elts]
        if all(isinstance(v, (Index, list)) for v in values):
            for t, v in zip(target.elts, values):
                k.define(t.id, v, node)
            return None
        if not any(isinstance(v, (Index, list)) for v in values) and not any(
                k.is_call(v) and k.name_of(v).startswith("nisa.") for v in value.elts):
            codes = []
            for t, v in zip(target.elts, value.elts):
                code, tile = k.expression(v)
                codes.append(code)
                k.note(t, v, tile)
            return k.take_lines() + [f"{k.source(target)} = {', '.join(codes)}"]
        return [line for t, v in zip(target.elts, value.elts) for line in _assign(k, node, t, v) or [f"{k.source(t)} = {k.source(v)}"]]
    v = k.value(value)
    k.note(target, value, None)
    if isinstance(v, list) and len(v) == len(target.elts):  # i, j = nl.mgrid[…]
        for t, i in zip(target.elts, v):
            k.define(t.id, i, node)
    return None


def _assign_part(k, target, value):
    """t[…] = value"""
    k.cut = k.masked(value)
    to, tile = k.expression(target)
    if k.is_call(value) and k.name_of(value) == "nl.load":
        source, _ = k.expression(value.args[0] if value.args else next(a.value for a in value.keywords if a.arg == "src"))
        if len(value.args) > 1 or any(a.arg not in ("src", "mask") for a in value.keywords):
            raise Uncertain("a load with a dtype into a part of a tile")
        return k.take_lines() + [f"nisa.dma_copy(dst={to}, src={source})"]
    if k.is_call(value) and k.name_of(value).startswith("nisa."):
        return k.take_lines() + k.call_into(value, to)
    code, source = k.expression(value)
    if not isinstance(source, Tile):
        if isinstance(value, ast.Constant):
            return k.take_lines() + [f"nisa.memset(dst={to}, value={code})"]
        raise Uncertain("the value is no tile, as far as can be seen")
    return k.take_lines() + [f"nisa.tensor_copy(dst={to}, src={code})"]


def _augment(k, node):
    """t += value"""
    t = k.value(node.target)
    if not isinstance(t, (Tile, Blocks)):
        return None
    to, tile = k.expression(node.target)
    is_product = k.is_call(node.value) and (k.name_of(node.value) == "nisa.nc_matmul" or (
        k.name_of(node.value) == "nl.matmul" and any(a.arg == "transpose_x" for a in node.value.keywords)))
    if isinstance(node.op, ast.Add) and is_product and tile.buffer == "nl.psum":
        return k.take_lines() + k.product_into(node.value, to)
    code, source = k.operation(type(node.op), (to, tile), k.expression(node.value))
    return k.take_lines() + [f"nisa.tensor_copy(dst={to}, src={code})"]


def _statement(k, node):
    """The lines that replace a simple statement; None: it stays."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return _assign(k, node, node.targets[0], node.value)
    if isinstance(node, ast.AugAssign):
        return _augment(k, node)
    if isinstance(node, ast.Expr) and k.is_call(node.value):
        name = k.name_of(node.value)
        if name == "nl.store":
            return k.store(node.value)
        if name == "nisa.dma_copy":
            code, _ = k.expression(node.value)
            return k.take_lines() + [code]
        if name.startswith("nisa."):  # for another of its results
            k.expression(node.value)
            return k.take_lines()
    if isinstance(node, ast.Return) and node.value is not None:
        code, _ = k.expression(node.value)
        return k.take_lines() + [f"return {code}"]
    if isinstance(node, (ast.Assert, ast.Pass, ast.Expr, ast.Return, ast.Break, ast.Continue, ast.Import, ast.ImportFrom)):
        return None
    if any(isinstance(n, ast.Call) and (k.name_of(n) or "").startswith(("nl.", "nisa.")) for n in ast.walk(node)):
        raise Uncertain("this statement is not known")
    return None


def _body(f, k, statements):
    for node in statements:
        if isinstance(node, (ast.For, ast.While, ast.If, ast.With, ast.FunctionDef)):
            if isinstance(node, ast.For) and k.is_call(node.iter) and _is_range(node.iter, k):
                begin, end = f.place(node.iter.func)
                f.edits.append((begin, end, "range"))
            _body(f, k, node.body)
            _body(f, k, getattr(node, "orelse", []))
            continue
        k.lines, k.cut = [], {}
        try:
            lines = _statement(k, node)
        except Uncertain as e:
            f.mark(node, str(e))
            k.keep_names(node)
            continue
        if lines is not None and lines != [k.source(node)]:
            f.replace(node, lines)


def _drop_index_tiles(f, k):
    """Removes the definitions of index tiles that nothing uses any more."""
    nodes = {}
    for name, found in k.definitions.items():
        for node in found:
            nodes.setdefault(node, []).append(name)
    for node, names in nodes.items():
        if not any(n in k.kept for n in names):
            f.replace(node, [])
        else:
            f.mark(node, "index tiles belong to beta 1; a statement that uses them was not upgraded")


def _is_kernel(node, aliases):
    text = [ast.unparse(d) for d in node.decorator_list]
    names = [n for n, m in aliases.items() if m == "nki"]
    return any(t.split("(")[0] in [f"{n}.{w}" for n in names for w in ("jit", "trace", "baremetal", "benchmark", "profile")] for t in text)


def _kernel(f, node, aliases):
    k = Kernel(f.data.decode(), node, aliases)
    for d in node.decorator_list:
        name = ast.unparse(d).split("(")[0]
        if name.rpartition(".")[2] in _HOST:
            begin, end = f.place(d)
            f.edits.append((begin, end, name.rpartition(".")[0] + ".jit"))
    if not any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node)):
        f.mark(node.body[0], "the results are parameters; make them with nl.ndarray(…, buffer=nl.shared_hbm), and return them")
    _body(f, k, node.body)
    _drop_index_tiles(f, k)


def _host_calls(f, tree, kernels, aliases):
    """nki.simulate_kernel(k, x) outside of kernels becomes nki.simulate(k)(x)."""
    inside = {n for kernel in kernels for n in ast.walk(kernel)}
    names = [n for n, m in aliases.items() if m == "nki"]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or node in inside or not isinstance(node.func, ast.Attribute):
            continue
        if ast.unparse(node.func.value) in names and node.func.attr == "simulate_kernel" and node.args:
            begin, end = f.place(node.args[0])
            f.edits.append((f.place(node.func)[0], begin, f"{ast.unparse(node.func.value)}.simulate("))
            after = f.place(node.args[1])[0] if len(node.args) > 1 else end
            f.edits.append((end, after, ")("))


def upgrade(text):
    """(the new text, the number of statements that stay to be done by hand)"""
    f = _File(text)
    aliases = _aliases(f.tree)
    kernels = [n for n in ast.walk(f.tree) if isinstance(n, ast.FunctionDef) and _is_kernel(n, aliases)]
    for node in ast.walk(f.tree):
        try:
            new = _import(node) if isinstance(node, (ast.Import, ast.ImportFrom)) else None
            if new:
                f.replace(node, [new])
        except Uncertain as e:
            f.mark(node, str(e))
    for node in kernels:
        _kernel(f, node, aliases)
    _host_calls(f, f.tree, kernels, aliases)
    new = f.text()
    for module, alias in (("nki.isa", "nisa"), ("nki.language", "nl")):
        if f"{alias}." in new and module not in aliases.values() and kernels:
            at = new.index("\n", new.index("import nki")) + 1 if "import nki" in new else 0
            new = new[:at] + f"import {module} as {alias}\n" + new[at:]
    return new, f.marks


def main(path, text):
    """What the terminal prints: the new text, and a summary."""
    try:
        new, marks = upgrade(text)
    except SyntaxError as e:
        return None, f"{path}:{e.lineno}: {e.msg}"
    said = f"{marks} statement{'s' if marks != 1 else ''} to be done by hand: look for \"{MARK.strip()}\"" if marks else "everything is upgraded"
    return new, f"{path}: {said}"
