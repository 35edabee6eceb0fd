"""Source texts of NKI kernels: places as users see them, the names of NKI that a file imports, arguments of calls.

A place is (file, line, column, end line, end column); lines and columns count from 1, columns in code points.
"""
import ast
import functools
import inspect
import re
import sys
import types

import _nkx
from nkx import places

_MODULES = ("isa", "language", "typing", "collectives", "compiler")
_LINE_END = re.compile(r"\r\n|\r|\n")


class Api:
    """A name of NKI: the package ("nki", "neuronxcc.nki"), its module ("isa", or ""), and the name in it ("engine.vector")."""

    def __init__(self, path):
        self.package = "neuronxcc.nki" if path.startswith("neuronxcc.nki") else "nki"
        first, _, rest = path[len(self.package) + 1:].partition(".")
        self.module, self.name = (first, rest) if first in _MODULES else ("", path[len(self.package) + 1:])

    @property
    def is_beta_1(self):
        return self.package != "nki"

    @property
    def full_module(self):
        return f"{self.package}.{self.module}" if self.module else self.package

    def __str__(self):
        return f"{self.full_module}.{self.name}" if self.name else self.full_module

    @property
    def short(self):
        """The name as kernels usually write it: nl.add, nisa.memset."""
        return {"isa": "nisa.", "language": "nl.", "": "nki."}.get(self.module, self.module + ".") + self.name


def is_nki(path):
    return path is not None and (path == "nki" or path.startswith(("nki.", "neuronxcc.nki")))


def _module_statements(tree):
    """The statements that run when a module is imported."""
    rest = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        yield node
        for block in ("body", "orelse", "finalbody", "handlers"):
            rest += [x for x in getattr(node, block, ()) if isinstance(x, (ast.stmt, ast.excepthandler))]


def imports_of(statements):
    """{name: dotted path} of what import statements bind."""
    names = {}
    for node in statements:
        if isinstance(node, ast.Import):
            for a in node.names:
                names[a.asname or a.name.partition(".")[0]] = a.name if a.asname else a.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for a in node.names:
                names[a.asname or a.name] = f"{node.module}.{a.name}"
    return names


class File:
    """One of the user's files."""

    def __init__(self, name, text):
        self.name, self.source = name, places.source(text)
        self.lines = _LINE_END.split(text)
        self.imports = imports_of(_module_statements(self.source.tree))

    def _column(self, line, byte):
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return 1 + (byte if text.isascii() else len(text.encode()[:byte].decode("utf-8", "replace")))

    def exact(self, line, col, end_line, end_col):
        return self.name, line, self._column(line, col), end_line, self._column(end_line, end_col)

    def place(self, node):
        return self.exact(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)

    def word(self, node, length):
        """The first `length` characters of a node."""
        return self.exact(node.lineno, node.col_offset, node.lineno, node.col_offset + length)

    def header(self, node):
        """A compound statement up to the colon before its body."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            col = self.lines[node.lineno - 1].find("(", node.col_offset)
            return self.exact(node.lineno, node.col_offset, *self._colon(node, node.lineno, max(col, node.col_offset)))
        last = {ast.For: "iter", ast.AsyncFor: "iter", ast.While: "test", ast.If: "test", ast.Match: "subject"}.get(type(node))
        if last:
            x = getattr(node, last)
            return self.exact(node.lineno, node.col_offset, x.end_lineno, x.end_col_offset)
        if isinstance(node, (ast.With, ast.AsyncWith)):
            x = node.items[-1].optional_vars or node.items[-1].context_expr
            return self.exact(node.lineno, node.col_offset, x.end_lineno, x.end_col_offset)
        return self.word(node, len("try"))

    def _colon(self, node, line, col):
        """The place of the colon that ends the header of a function or a class: the last one before the body."""
        ends = [(line, col)]
        parts = [*getattr(node, "bases", ()), *getattr(node, "keywords", ()), getattr(node, "returns", None)]
        a = getattr(node, "args", None)
        if a:
            parts += [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg, *a.defaults, *a.kw_defaults]
        ends += [(p.end_lineno, p.end_col_offset) for p in parts if p is not None]
        line, col = max(ends)
        while line <= min(node.body[0].lineno, len(self.lines)):
            text = self.lines[line - 1].encode()
            at = text.find(b":", col)
            comment = text.find(b"#", col)
            if at >= 0 and not 0 <= comment < at:
                return line, at
            line, col = line + 1, 0
        return max(ends)

    def else_of(self, node):
        """The word `else` of a loop."""
        for line in range(node.orelse[0].lineno, node.body[-1].end_lineno - 1, -1):
            found = re.match(r"\s*else\b", self.lines[line - 1])
            if found:
                return self.name, line, found.end() - 3, line, found.end() + 1
        return self.place(node.orelse[0])

    def path_of(self, node, names):
        """The dotted path of an expression that names something imported; None if it names something else.  names: the
        globals of the function."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        first = self.imports.get(node.id)
        value = names.get(node.id)
        if isinstance(value, types.ModuleType) and is_nki(value.__name__):
            first = value.__name__
        return ".".join([first, *reversed(parts)]) if first else None


@functools.lru_cache(16)
def file(name, text):
    return File(name, text)


# ---- signatures ------------------------------------------------------------------------------------------------------


class Param:
    """kind: as in compiler/nki/calls.def, in lower case ("dst", "op"); "" where it is not known."""

    def __init__(self, name, kind="", memories=(), is_optional=False):
        self.name, self.kind, self.memories, self.is_optional = name, kind, memories, is_optional


class Signature:
    def __init__(self, name, params, engines=(), has_rest=False, has_keywords=False):
        self.name, self.params, self.engines = name, params, engines
        self.has_rest, self.has_keywords = has_rest, has_keywords  # *args, **kwargs

    def find(self, name):
        return next((p for p in self.params if p.name == name), None)

    def __str__(self):
        return f"{self.name}({', '.join(p.name + ('=…' if p.is_optional else '') for p in self.params)})"


def of_function(name, function):
    """The signature of a Python function; None if it has none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = {p.kind for p in parameters}
    params = [Param(p.name, is_optional=p.default is not p.empty) for p in parameters
              if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY, p.KEYWORD_ONLY)]
    return Signature(name, params, (), inspect.Parameter.VAR_POSITIONAL in kinds, inspect.Parameter.VAR_KEYWORD in kinds)


@functools.lru_cache(1)
def _isa():
    return _nkx.nki_signatures()


def module_of(api):
    """Our module of a name of NKI; None if it is not loaded, or the vendor's."""
    m = sys.modules.get(api.full_module)
    return m if m is not None and getattr(sys.modules.get(api.package), "__nkx_stub__", False) else None


def object_of(api):
    """What our modules have under a name; None if they do not have it."""
    o = module_of(api)
    for part in api.name.split(".") if o is not None and api.name else ():
        if isinstance(o, types.ModuleType):
            o = vars(o).get(part)
        else:
            o = getattr(o, part, None) if isinstance(o, type) else vars(type(o)).get(part)
        if o is None:
            return None
    return o


def signature_of(api):
    """The signature of a function of NKI; None if it is not known."""
    o = object_of(api)
    if isinstance(o, types.BuiltinFunctionType) and api.module == "isa" and api.name in _isa():
        engines, params = _isa()[api.name]
        return Signature(api.short, [Param(*p) for p in params], engines, False, False)
    return of_function(api.short, o) if isinstance(o, types.FunctionType) else None


# ---- arguments -------------------------------------------------------------------------------------------------------


def argument(name, text, line, col, end_line, end_col, param):
    """The place of the argument for a parameter in the call at a place, which is NKI's; None if it is not found."""
    f = file(name, text)
    for node in ast.walk(f.source.tree):
        if isinstance(node, ast.Call) and f.place(node)[1:] == (line, col, end_line, end_col):
            for k in node.keywords:
                if k.arg == param:
                    return f.place(k.value)
            path = f.path_of(node.func, {})
            sig = signature_of(Api(path)) if is_nki(path) else None
            for p, value in zip(sig.params if sig else (), node.args):
                if isinstance(value, ast.Starred):
                    break
                if p.name == param:
                    return f.place(value)
    return None
