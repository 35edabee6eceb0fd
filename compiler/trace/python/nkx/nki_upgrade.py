"""`nkx nki upgrade`: rewrites kernels of NKI beta 1 for the newest generation, statement by statement.

A statement is rewritten where its meaning is certain:

    ip, jf = nl.arange(128)[:, None], nl.arange(512)[None, :]     (goes away: slices take the place of index tiles)
    x = nl.load(a[i * 128 + ip, jf])                              x = nl.load(a[i * 128:i * 128 + 128, 0:512])
    e = nisa.activation(op=nl.exp, data=x)                        e = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
                                                                  nisa.activation(dst=e, op=nl.exp, data=x)
    acc += nisa.nc_matmul(l, r)                                   nisa.nc_matmul(dst=acc, stationary=l, moving=r)

The others stay, below a comment that says what has to be done by hand; so do those that use what they make.  The text between the statements, with its
comments, stays as it is.  nki_upgrade_values.py rewrites the expressions.
"""
import ast
import re

from nkx.nki_upgrade_helpers import Helpers, reached
from nkx.nki_upgrade_lines import bodies, line_starts, one_on_each_line
from nkx.nki_upgrade_values import UNKNOWN, Blocks, Index, Kernel, Tile, Uncertain

MARK = "# nkx: not upgraded: "
_MODULES = {"neuronxcc.nki": "nki", "neuronxcc.nki.language": "nki.language", "neuronxcc.nki.isa": "nki.isa",
            "neuronxcc.nki.typing": "nki.typing"}
_HOST = {"simulate_kernel", "baremetal", "benchmark", "profile"}
_ONE_AXIS = "a launch now has one axis, of one or two cores: loop over the other instances inside of the kernel"


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
    """A file in which each statement of its kernels has its own line."""

    def __init__(self, text):
        self.data = text.encode()
        self.tree = ast.parse(text)
        self.starts = line_starts(self.data)
        self.edits, self.marks, self.dropped = [], 0, set()  # (begin, end, text)

    def place(self, node):
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def indent(self, node):
        """What is before it on its line: spaces or tabs."""
        begin = self.starts[node.lineno - 1]
        return self.data[begin:begin + node.col_offset].decode()

    def is_on_its_own_line(self, node):
        """A comment can stand above it."""
        begin = self.starts[node.lineno - 1]
        return not self.indent(node).strip() and not self.data[:begin].endswith(b"\\\n")

    def replace(self, node, lines):
        """Writes lines in place of a statement."""
        begin, end = self.place(node)
        self.edits.append((begin, end, ("\n" + self.indent(node)).join(lines)))

    def mark(self, node, reason):
        begin = self.starts[node.lineno - 1]
        self.marks += 1
        self.edits.append((begin, begin, f"{self.indent(node)}{MARK}{reason}\n"))

    def drop(self, statements):
        """Removes those of a body that are dropped, with their lines."""
        for node in statements:
            for inner in bodies(node):
                self.drop(inner)
            if node in self.dropped:
                if self.dropped.issuperset(statements) and node is statements[0]:
                    self.replace(node, ["pass"])
                else:
                    self.edits.append((self.starts[node.lineno - 1], self.starts[node.end_lineno], ""))

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
        if any(isinstance(v, (Index, list)) for v in values):
            raise Uncertain("index tiles and other values are assigned at once")
        return [line for t, v in zip(target.elts, value.elts) for line in _assign(k, node, t, v) or [f"{k.source(t)} = {k.source(v)}"]]
    if k.helper_of(value):
        code, values = k.expression(value)
        values = values if isinstance(values, tuple) and len(values) == len(target.elts) else [UNKNOWN] * len(target.elts)
        for t, v in zip(target.elts, values):
            k.note(t, value, v)
        return k.take_lines() + [f"{k.source(target)} = {code}"]
    v = k.value(value)
    k.note(target, value, None)
    if isinstance(v, list) and len(v) == len(target.elts):  # i, j = nl.mgrid[…]
        for t, i in zip(target.elts, v):
            k.define(t.id, i, node)
    elif k.has_tiles(value):
        raise Uncertain("what this makes is not known here")
    return None


def _assign_part(k, target, value):
    """t[…] = value"""
    k.cut = k.masked(value)
    if k.is_call(value) and k.name_of(value) == "nl.load":
        to = k.target(target, k.cut)
        source, _ = k.expression(value.args[0] if value.args else next(a.value for a in value.keywords if a.arg == "src"))
        if len(value.args) > 1 or any(a.arg not in ("src", "mask") for a in value.keywords):
            raise Uncertain("a load with a dtype into a part of a tile")
        return k.take_lines() + [f"nisa.dma_copy(dst={to}, src={source})"]
    if k.is_call(value) and k.name_of(value).startswith("nisa."):
        return k.call_into(value, target)
    code, source = k.expression(value)
    to = k.target(target, source.cut if isinstance(source, Tile) else k.cut)
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
    to = k.target(node.target, source.cut)
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
    if isinstance(node, ast.Expr) and k.helper_of(node.value):
        code, _ = k.expression(node.value)
        return k.take_lines() + [code]
    if isinstance(node, ast.Return):
        code, value = k.expression(node.value) if node.value is not None else ("", None)
        k.returned.append(value)
        if node.value is None:
            return None
        return k.take_lines() + [f"return {code}"]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name) and node.value.func.id == "print":
        return None
    if k.has_tiles(node):
        raise Uncertain("this statement is not known")
    return None


def _head(k, node):
    """What a compound statement has beside its bodies; its targets are no tiles as far as is known."""
    if isinstance(node, ast.For):
        is_range = k.is_call(node.iter) and _is_range(node.iter, k) or isinstance(node.iter, ast.Call) and k.source(node.iter.func) == "range"
        numbers = isinstance(node.iter, (ast.Tuple, ast.List)) and all(isinstance(e, ast.Constant) for e in node.iter.elts)
        for n in ast.walk(node.target):
            if isinstance(n, ast.Name):
                k.env[n.id] = int if is_range or numbers else UNKNOWN
        return [] if is_range else [node.iter]
    if isinstance(node, ast.With):
        return [i.context_expr for i in node.items if not k.is_call(i.context_expr)]
    return [getattr(node, "test", getattr(node, "subject", None))]


def _asks_for_other_axes(k, node):
    """The statement, without those inside of it, asks for an axis of the launch that there is not any more."""
    inner = {n for body in bodies(node) for statement in body for n in ast.walk(statement)}
    for n in ast.walk(node):
        if n not in inner and k.is_call(n) and k.name_of(n) in ("nl.program_id", "nl.num_programs"):
            if any(not isinstance(a, ast.Constant) or a.value != 0 for a in [*n.args, *(w.value for w in n.keywords)]):
                return True
    return False


def _body(f, k, statements):
    for node in statements:
        if _asks_for_other_axes(k, node):
            f.mark(node, _ONE_AXIS)
        if any(bodies(node)):
            if isinstance(node, ast.For) and k.is_call(node.iter) and _is_range(node.iter, k):
                begin, end = f.place(node.iter.func)
                f.edits.append((begin, end, "range"))
            if any(part is not None and k.has_tiles(part) for part in _head(k, node)):
                f.mark(node, "this condition or loop is over tiles, as far as can be seen")
                k.keep_names(*(p for p in _head(k, node) if p is not None))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                k.env |= {a.arg: UNKNOWN for n in ast.walk(node) if isinstance(n, ast.arguments) for a in (*n.posonlyargs, *n.args, *n.kwonlyargs)}
            is_function, returned = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)), k.returned
            k.returned = [] if is_function else returned
            for inner in bodies(node):
                _body(f, k, inner)
            k.returned = returned
            continue
        k.lines, k.cut = [], {}
        try:
            lines = _statement(k, node)
            ast.parse("\n".join(lines or []))
        except Uncertain as e:
            _leave(f, k, node, str(e))
        except (AttributeError, IndexError, KeyError, StopIteration, SyntaxError, TypeError, ValueError):
            _leave(f, k, node, "this form of a statement is not known")
        else:
            if lines is not None and lines != [k.source(node)]:
                f.replace(node, lines)


def _leave(f, k, node, reason):
    f.mark(node, reason)
    if isinstance(node, ast.Return):
        k.returned.append(UNKNOWN)
    k.keep_names(node)
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
            k.env[n.id] = UNKNOWN


def _drop_index_tiles(f, k):
    """Removes the definitions of index tiles that nothing uses any more."""
    nodes = {}
    for name, found in k.definitions.items():
        for node in found:
            nodes.setdefault(node, []).append(name)
    for node, names in nodes.items():
        if not any(n in k.kept for n in names):
            f.dropped.add(node)
        else:
            f.mark(node, "index tiles belong to beta 1; a statement that uses them was not upgraded")


def _is_kernel(node, aliases):
    text = [ast.unparse(d) for d in node.decorator_list]
    names = [n for n, m in aliases.items() if m == "nki"]
    return any(t.split("(")[0] in [f"{n}.{w}" for n in names for w in ("jit", "trace", "baremetal", "benchmark", "profile")] for t in text)


def _kernels_of(tree, aliases):
    """The kernels that are not inside of another one."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and _is_kernel(n, aliases)]
    inner = {n for k in found for part in k.body for n in ast.walk(part)}
    return [k for k in found if k not in inner]


def _kernel(f, node, aliases, helpers):
    k = Kernel(f.data.decode(), node, aliases, helpers)
    for d in node.decorator_list:
        name = ast.unparse(d).split("(")[0]
        if name.rpartition(".")[2] in _HOST:
            begin, end = f.place(d)
            f.edits.append((begin, end, name.rpartition(".")[0] + ".jit"))
    if not any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(node)):
        f.mark(node.body[0], "the results are parameters; make them with nl.ndarray(…, buffer=nl.shared_hbm), and return them")
    _body(f, k, node.body)
    _drop_index_tiles(f, k)
    f.drop(node.body)


def _helpers(f, nodes, aliases):
    """The functions that kernels call, which are rewritten when a call of them is."""
    def rewrite(node, values):
        k = Kernel(f.data.decode(), node, aliases, found)
        k.env = dict(values)
        _body(f, k, node.body)
        _drop_index_tiles(f, k)
        f.drop(node.body)
        if any(v is UNKNOWN for v in k.returned):
            raise Uncertain("a return statement is not upgraded")
        return k.returned

    found = Helpers(nodes, lambda node: _uses_nki(node, aliases), rewrite)
    return found


def _uses_nki(node, aliases):
    """It names a function of nki.language or nki.isa."""
    return any(isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and aliases.get(n.value.id) in ("nki.language", "nki.isa")
               for n in ast.walk(node))


def _mark_what_is_not_read(f, read, aliases):
    """Functions that no kernel calls in a way that is known here, and names that an import brings without their module.  read: the
    kernels and functions that are rewritten."""
    inside = {n for function in read for n in ast.walk(function)}
    for node in ast.walk(f.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node not in inside and any(_uses_nki(n, aliases) for n in node.body):
            f.mark(node.body[0], f"{node.name} is no kernel, and no kernel here calls it in a way that is upgraded: what its parameters are is not known")
            inside |= set(ast.walk(node))
        elif isinstance(node, ast.ImportFrom) and node.module in ("neuronxcc.nki.language", "neuronxcc.nki.isa"):
            f.mark(node, "functions that are imported by name are not looked at: import their module, and write nl.load(…)")
        elif isinstance(node, ast.Import) and any(a.name.startswith("neuronxcc.nki") and not a.asname for a in node.names):
            f.mark(node, "names of a module without a short name are not looked at: import it as nl, nisa or nki")


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


def _is_one_axis(grid):
    """A grid that the newest generation has, too."""
    grid = grid.elts[0] if isinstance(grid, ast.Tuple) and len(grid.elts) == 1 else grid
    return isinstance(grid, ast.Constant) and grid.value in (1, 2)


def _mark_launches(f, kernels):
    """Launches outside of kernels with a grid that the newest generation does not have."""
    inside = {n for kernel in kernels for n in ast.walk(kernel)}
    names = {kernel.name for kernel in kernels}
    for statement in (n for n in ast.walk(f.tree) if isinstance(n, ast.stmt) and n not in inside and f.is_on_its_own_line(n)):
        own = set(ast.walk(statement)) - {n for body in bodies(statement) for s in body if f.is_on_its_own_line(s) for n in ast.walk(s)}
        if any(isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name) and n.value.id in names and not _is_one_axis(n.slice) for n in own):
            f.mark(statement, _ONE_AXIS)


def _with_import(text, line):
    """The text with one more import, after the first of NKI's that is in no block, otherwise as the first statement that may be one."""
    top, after = ast.parse(text).body, 0
    is_import = lambda s: isinstance(s, (ast.Import, ast.ImportFrom))
    for i, s in enumerate(top):
        if is_import(s) and re.search(r"import nki\b", ast.unparse(s)):
            after = s.end_lineno
            break
        is_docstring = i == 0 and isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)
        if is_docstring or getattr(s, "module", None) == "__future__":
            after = s.end_lineno
    data = text.encode()
    at = line_starts(data)[after]
    return data[:at].decode() + line + data[at:].decode()


def upgrade(text):
    """(the new text, the number of statements that stay to be done by hand)"""
    tree = ast.parse(text)
    aliases = _aliases(tree)
    is_newer = not any((getattr(n, "module", None) or "").startswith("neuronxcc") or any(a.name.startswith("neuronxcc") for a in n.names)
                       for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)))
    if is_newer:
        return text, 0
    called = {n.name for n in reached(tree, _kernels_of(tree, aliases))}
    f = _File(one_on_each_line(text, lambda n: isinstance(n, (ast.Import, ast.ImportFrom)) or isinstance(n, ast.FunctionDef) and (
        _is_kernel(n, aliases) or _uses_nki(n, aliases) or n.name in called)))
    kernels = _kernels_of(f.tree, aliases)
    inner = {n for k in kernels for part in k.body for n in ast.walk(part)}
    helpers = _helpers(f, reached(f.tree, kernels), aliases)
    for node in ast.walk(f.tree):
        try:
            new = _import(node) if isinstance(node, (ast.Import, ast.ImportFrom)) and node not in inner else None
            if new:
                f.replace(node, [new])
        except Uncertain as e:
            f.mark(node, str(e))
    for node in kernels:
        _kernel(f, node, aliases, helpers)
    _mark_what_is_not_read(f, kernels + helpers.rewritten(), aliases)
    _host_calls(f, f.tree, kernels, aliases)
    _mark_launches(f, kernels)
    new = f.text()
    for module, alias in (("nki.isa", "nisa"), ("nki.language", "nl")):
        if f"{alias}." in new and module not in aliases.values() and kernels:
            new = _with_import(new, f"import {module} as {alias}\n")
    return new, f.marks


def marks_of(text):
    """[(line, reason)] of the comments below which a statement stays"""
    lines = [line.strip() for line in text.split("\n")]
    return [(i + 1, line.removeprefix(MARK)) for i, line in enumerate(lines) if line.startswith(MARK)]


def upgrade_files(files):
    """[(name, new text, marks_of it)] for [(name, text)]; a SyntaxError has the file's name."""
    for name, text in files:
        ast.parse(text, name)
    return [(name, new, marks_of(new)) for name, new in ((name, upgrade(text)[0]) for name, text in files)]


def main(path, text):
    """What the terminal prints: the new text, and a summary."""
    try:
        new, marks = upgrade(text)
    except SyntaxError as e:
        return None, f"{path}:{e.lineno}: {e.msg}"
    said = f"{marks} statement{'s' if marks != 1 else ''} to be done by hand: look for \"{MARK.strip()}\"" if marks else "everything is upgraded"
    return new, f"{path}: {said}"
