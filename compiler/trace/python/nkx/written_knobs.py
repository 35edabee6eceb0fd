"""The knobs that a text of Python has, as it is written: for tools that add, change and leave out knobs.

Nothing of the text is executed.  All places are bytes of its UTF-8 form.
"""
import ast
import bisect
import io
import json
import re
import tokenize

_POSITIONS = ("partition_dim", "mem_space", "tile_size", "reduction_tile")  # after the value
_NOT_A_TOKEN = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}


class _Text:
    def __init__(self, text):
        self.bytes = text.encode()
        self.text = text
        self.tree = ast.parse(text)
        self.starts = [0] + [m.end() for m in re.finditer(rb"\r\n|\r|\n", self.bytes)]
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self.aliases = {a.asname for node in ast.walk(self.tree) if isinstance(node, ast.ImportFrom) for a in node.names
                        if a.name == "knob" and a.asname}
        self._ends = None

    def range(self, node):
        return (self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset)

    def token_before(self, at):
        """(end, text) of the last token that ends at or before the byte, comments not counted."""
        if self._ends is None:
            lines = self.bytes.splitlines(keepends=True)
            self._ends, self._words = [], []
            for t in tokenize.generate_tokens(io.StringIO(self.text).readline):
                if t.type not in _NOT_A_TOKEN and t.string:
                    row = lines[t.end[0] - 1].decode()
                    self._ends.append(self.starts[t.end[0] - 1] + len(row[:t.end[1]].encode()))
                    self._words.append(t.string)
        i = bisect.bisect_right(self._ends, at) - 1
        return self._ends[i], self._words[i]

    def is_knob(self, f):
        """knob, knob.knob, nkigen.knob.knob, or an alias of one of them."""
        last = f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""
        return last == "knob" or last in self.aliases


def _arguments(t, call, positions):
    """What is known of a call's brackets: where a further argument goes, what separates it, and the values by their names."""
    at, word = t.token_before(t.range(call)[1] - 1)
    values = dict(zip(positions, call.args))
    values.update({k.arg: k.value for k in call.keywords if k.arg})
    return {"put": at, "separator": "" if word == "(" else " " if word == "," else ", ",
            "arguments": [[name, *t.range(v)] for name, v in values.items()]}


def _call(t, call, is_around):
    """The call of knob(value, …) with the methods that are called on what it returns."""
    first = call.args[0]
    methods = []
    out = {"is_around": is_around,
           **_arguments(t, ast.copy_location(ast.Call(call.func, call.args[1:], call.keywords), call), _POSITIONS)}
    while isinstance(t.parents.get(call), ast.Attribute) and isinstance(t.parents.get(t.parents[call]), ast.Call):
        method, call = t.parents[call], t.parents[t.parents[call]]
        if call.func is not method:
            break
        methods.append({"name": method.attr, **_arguments(t, call, ())})
    return {**out, "value": list(t.range(first)), "end": t.range(call)[1], "methods": methods}


def _knobs_in(t, node, is_it):
    found = [n for n in ast.walk(node)
             if isinstance(n, ast.Call) and n.args and t.is_knob(n.func) and is_it(n.args[0])]
    return sorted(found, key=t.range)


def _blocks(tree):
    """All lists of statements."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block


def _target(statement):
    """The one name that a statement sets, or None."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target] if isinstance(
        statement, ast.AnnAssign) else []
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else None


def _after(t, begin, end):
    """The knobs of the variable that the expression is the value of: up to the statement that sets it again."""
    found = []
    for block in _blocks(t.tree):
        for i, s in enumerate(block):
            name = _target(s)
            if not name or not s.value or t.range(s.value) != (begin, end):
                continue
            for later in block[i + 1:]:
                knobs = _knobs_in(t, later, lambda n: isinstance(n, ast.Name) and n.id == name)
                sets = any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in ast.walk(later))
                if sets and not knobs:
                    break
                found += knobs
            return found
    return found


def _statements(t):
    """The statements that are nothing but a knob: knob.knob(x)…, knob.fuse(x, y), …"""
    for node in ast.walk(t.tree):
        f = node.value if isinstance(node, ast.Expr) else None
        is_call, is_knob = isinstance(f, ast.Call), False
        while isinstance(f, (ast.Call, ast.Attribute)):
            f = f.func if isinstance(f, ast.Call) else f.value
            is_knob = is_knob or t.is_knob(f)
        if is_call and is_knob:
            yield [*t.range(node), node.lineno, node.end_lineno]


def _import(t):
    """(byte before which an import of knobs goes, the name of nkigen's object if the text has it)"""
    def is_import(s):
        return isinstance(s, (ast.Import, ast.ImportFrom)) and getattr(s, "module", "") != "__future__"

    def is_code(s):
        is_text = isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant) and isinstance(s.value.value, str)
        return not is_text and getattr(s, "module", "") != "__future__"

    body = t.tree.body
    place = next(filter(is_import, body), None) or next(filter(is_code, body), None)
    lines = [s.lineno for s in (place, *getattr(place, "decorator_list", [])) if s] or [1]
    names = [a.asname or a.name for s in body if isinstance(s, ast.ImportFrom) and s.module == "nkigen"
             for a in s.names if a.name == "knob"]
    return t.starts[min(lines) - 1], names[-1] if names else None


def find(text, begin, end):
    """What a text has, as JSON; with begin < end also the knobs of the expression at these bytes."""
    t = _Text(text)
    place, name = _import(t)
    calls = []
    if begin < end:
        around = _knobs_in(t, t.tree, lambda n: t.range(n) == (begin, end))
        calls = [_call(t, c, True) for c in around] or [_call(t, c, False) for c in _after(t, begin, end)]
    return json.dumps({"import_at": place, "name": name, "statements": sorted(_statements(t)), "calls": calls})
