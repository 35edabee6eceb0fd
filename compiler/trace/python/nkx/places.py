"""Places of functions, parameters and loops in a source text, from Python's own syntax tree.

A place is (line, column, end line, end column) as ast has them: lines from 1, columns in bytes of UTF-8 from 0.
"""
import ast
import functools

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.AsyncFor)


def _place(node):
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _statements(tree):
    """All statements of a module; those within expressions do not exist."""
    rest = [tree]
    while rest:
        node = rest.pop()
        yield node
        for blocks in ("body", "orelse", "finalbody", "handlers", "cases"):
            rest += getattr(node, blocks, ())


def _arguments(node):
    a = node.args
    return [*a.posonlyargs, *a.args, *filter(None, [a.vararg]), *a.kwonlyargs, *filter(None, [a.kwarg])]


class Source:
    def __init__(self, tree):
        self.tree, self.functions, self.loops = tree, {}, {}
        for node in _statements(tree):
            if isinstance(node, _FUNCTIONS):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                self.functions[first, node.name] = node
            elif isinstance(node, _LOOPS):
                self.loops[node.lineno, node.col_offset] = node

    def _lambda(self, code):
        """The innermost lambda that begins on the code's line and whose value all of its instructions belong to."""
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        within = [(line, col) for line, _, col, _ in code.co_positions() if line and col]
        for node in reversed(list(ast.walk(self.tree))):  # the inner ones come last
            if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
                first, last = _place(node.body)[:2], _place(node.body)[2:]
                a = node.args
                if names == tuple(p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs]) and within and all(
                        first <= at < last for at in within):
                    return node
        return None

    def _function(self, code):
        if code.co_name == "<lambda>":
            return self._lambda(code)
        return self.functions.get((code.co_firstlineno, code.co_name))

    def header(self, code):
        """From `def` to the last part before the colon; None if the text has no such function."""
        node = self._function(code)
        if node is None:
            return None
        last = (node.lineno, node.col_offset)
        parts = [*_arguments(node), *node.args.defaults, *filter(None, node.args.kw_defaults),
                 *filter(None, [getattr(node, "returns", None)])]
        return _place(node)[:2] + max([last, *(_place(p)[2:] for p in parts)])

    def param(self, code, name):
        """The name of a parameter in the header; None if the function has none of this name."""
        node = self._function(code)
        for p in _arguments(node) if node is not None else ():
            if p.arg == name:
                end = p.col_offset + len(name.encode()) if p.annotation else p.end_col_offset
                return p.lineno, p.col_offset, p.lineno, end
        return None

    def iterated(self, line, col):
        """What the `for` statement that begins here iterates over; None if there is none."""
        node = self.loops.get((line, col))
        return _place(node.iter) if node else None


@functools.lru_cache(16)
def source(text):
    return Source(ast.parse(text))


def header(text, indent, first, code):
    """Source of the header of a function with a name, without its decorators; None if it cannot be parsed alone.

    text: lines of the file from line `first`, that of the code, to the line before the body's first instruction, which begins
    with `indent`.  The last lines may be a docstring.
    """
    if "\r" in text:
        return None
    lines = text.split("\n")
    at = next((i for i, line in enumerate(lines) if line.lstrip(" \t").startswith(("def ", "async def "))), None)
    if at is None:
        return None
    before = "\n" * (first + at - 1)  # so that the tree has the file's line numbers
    if lines[at][0] in " \t":
        before = before[1:] + "if 1:\n"
    try:
        found = Source(ast.parse("".join([before, "\n".join(lines[at:]), indent, "pass\n"])))
    except (SyntaxError, ValueError):
        return None
    node = found.functions.popitem()[1] if len(found.functions) == 1 else None
    if node is None or node.name != code.co_name:
        return None
    found.functions[code.co_firstlineno, code.co_name] = node  # its first line is that of a decorator, which is not in the tree
    return found
