"""Gives every statement its own line, for what `nkx nki upgrade` rewrites statement by statement.

    x = nl.load(a); y = x + 1          x = nl.load(a)
                                       y = x + 1
    for i in range(4): f(i)            for i in range(4):
                                           f(i)
"""
import ast
import bisect
import io
import re
import tokenize

_UNIT = "    "  # the indentation of a body that stood on the line of its header
_SEPARATOR = re.compile(rb"(?:[ \t\f]|\\\r?\n)*;")
_REST = re.compile(rb"(?:[ \t\f;]|\\\r?\n)*")


def line_starts(data):
    starts = [0]
    for line in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def bodies(node):
    """The lists of statements of a compound statement."""
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(node, name, None)
        if isinstance(inner, list) and inner and isinstance(inner[0], ast.stmt):
            yield inner
    for part in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
        yield part.body


def _indent(before):
    """The indentation of a statement that has only white space and continued lines before it: Python takes that of the first line
    that has any."""
    return next((part for part in (p.lstrip(b"\r\n") for p in before.split(b"\\")) if part), b"")


def _commented(text):
    """The numbers of lines that have comments.  In a bracket that is never closed no indentation is wrong: tokenize refuses some that
    Python takes, such as those after a line of nothing but a backslash."""
    lines = set()
    try:
        lines.update(t.start[0] for t in tokenize.generate_tokens(io.StringIO("(" + text).readline) if t.type == tokenize.COMMENT)
    except tokenize.TokenError:
        pass
    return lines


class _Splitter:
    def __init__(self, text):
        self.data = text.encode()
        self.starts = line_starts(self.data)
        self.edits = []
        self.commented = _commented(text) if b"\\" in self.data else ()

    def begin(self, node):
        first = min([node, *getattr(node, "decorator_list", [])], key=lambda n: n.lineno)
        return self.starts[first.lineno - 1] + first.col_offset - (first is not node)  # with the @ of a decorator

    def end(self, node):
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def before(self, at):
        """What is before it on its line, or on the lines that go on with a backslash."""
        n = bisect.bisect_right(self.starts, at) - 1
        while n and n not in self.commented and self.data[self.starts[n - 1]:self.starts[n]].rstrip(b"\r\n").endswith(b"\\"):
            n -= 1
        return self.data[self.starts[n]:at]

    def join(self, at):
        """Removes line ends between its indentation and a statement."""
        before = self.before(at)
        if b"\\" in before and not before.strip(b" \t\f\\\r\n"):
            self.edits.append((at - len(before), at, _indent(before)))

    def split(self, statements, header, chosen):
        """header: the indentation of the compound statement; chosen: the nodes that matter, None for all."""
        matters = [chosen is None or any(n in chosen for n in ast.walk(node)) for node in statements]
        at = self.begin(statements[0])
        first = self.before(at)
        alone = not first.strip(b" \t\f\\\r\n")
        indent = _indent(first) if alone else header + _UNIT.encode()
        if not alone and any(matters):
            self.edits.append((at - len(first) + len(first.rstrip(b" \t\\\r\n")), at, b"\n" + indent))
        for node, it_matters, next_matters, after in zip(statements, matters, [*matters[1:], False], [*statements[1:], None]):
            if it_matters:
                self.join(self.begin(node))
                for inner in bodies(node):
                    self.split(inner, indent, None if chosen is None or node in chosen else chosen)
            separator = _SEPARATOR.match(self.data, self.end(node))
            if separator and (it_matters or next_matters):
                rest = _REST.match(self.data, self.end(node)).end()
                follows = after and self.begin(after) == rest
                self.edits.append((self.end(node), rest if follows else separator.end(), b"\n" + indent if follows else b""))

    def text(self):
        out = self.data
        for begin, end, text in sorted(self.edits, reverse=True):
            out = out[:begin] + text + out[end:]
        return out.decode()


def one_on_each_line(text, is_chosen=None):
    """The same program, where each statement in what is_chosen(node) says, and beside it, has its own line; None: all of it."""
    s = _Splitter(text)
    tree = ast.parse(text)
    if tree.body:
        s.split(tree.body, b"", is_chosen and {n for n in ast.walk(tree) if is_chosen(n)})
    return s.text()
