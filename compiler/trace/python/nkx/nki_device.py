"""Names of Python in loops and branches on the device.

The body of a loop on the device runs once while the kernel is recorded, and both branches of an `if` on a register run.  A name
of Python that a round would hand on to the next one, or that depends on which branch runs, has no meaning there.
"""
import ast

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Reads:
    """Walks statements in their order.  exposed: {name: its first read} of names that are read before they are bound here;
    bound: {name: the first node that binds it}."""

    def __init__(self, bound=()):
        self.exposed, self.bound, self.sure = {}, {}, set(bound)

    def block(self, statements):
        for s in statements:
            self.visit(s)
        return self

    def visit(self, node):
        if isinstance(node, _NESTED):
            if not isinstance(node, ast.Lambda):
                self._bind(node.name, node)
        elif isinstance(node, _COMPREHENSIONS):
            inner = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
            for n in ast.walk(node):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in inner:
                    self._read(n)
        elif isinstance(node, ast.Name):
            self._read(node) if isinstance(node.ctx, ast.Load) else self._bind(node.id, node)
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name):
                self._read(node.target)
            self.visit(node.value)
            self.visit(node.target)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for part in (node.value, *getattr(node, "targets", [getattr(node, "target", None)])):
                if part is not None:
                    self.visit(part)
        elif isinstance(node, ast.If):
            self.visit(node.test)
            self._branches(node.body, node.orelse)
        elif isinstance(node, (ast.For, ast.While)):
            for part in ([node.iter, node.target] if isinstance(node, ast.For) else [node.test]):
                self.visit(part)
            self.block(node.body)  # a loop without rounds is rare: its names count as bound
            self.block(node.orelse)
        else:
            for child in ast.iter_child_nodes(node):
                self.visit(child)

    def _branches(self, *blocks):
        ends = []
        for b in blocks:
            inner = _Reads(self.sure).block(b)
            for name, at in inner.exposed.items():
                self.exposed.setdefault(name, at)
            for name, at in inner.bound.items():
                self.bound.setdefault(name, at)
            ends.append(inner.sure)
        self.sure = set.intersection(*ends)

    def _read(self, node):
        if node.id not in self.sure:
            self.exposed.setdefault(node.id, node)

    def _bind(self, name, node):
        self.sure.add(name)
        self.bound.setdefault(name, node)


def carried(body, given=()):
    """[(name, the first node that binds it)] of names that a round reads before it binds them.  given: names that the loop
    itself binds."""
    r = _Reads(given).block(body)
    return [(name, at) for name, at in r.bound.items() if name in r.exposed]


def _rest_after(function, statement):
    """The statements that may run after one of a function's, the next ones first; those of loops around it again from their
    start.  None if the statement is not found."""

    def within(block):
        for i, s in enumerate(block):
            if s is statement:
                return block[i + 1:]
            if isinstance(s, _NESTED):
                continue
            for part in ("body", "orelse", "finalbody", "handlers"):
                inner = getattr(s, part, None)
                after = within(inner) if inner else None
                if after is not None:
                    again = [s] if isinstance(s, (ast.For, ast.While)) else []
                    return [*after, *again, *block[i + 1:]]
        return None

    return within(function.body)


def undecided(function, node):
    """[(name, the first node that binds it)] of names that a branch of the `if` binds and something after it reads, or that the
    second branch reads and the first one binds."""
    first, second = _Reads().block(node.body), _Reads().block(node.orelse)
    after = _Reads().block(_rest_after(function, node) or ())
    names = {**second.bound, **first.bound}
    return [(name, at) for name, at in names.items()
            if name in after.exposed or (name in first.bound and name in second.exposed)]
