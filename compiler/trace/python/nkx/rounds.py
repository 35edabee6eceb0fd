"""Compiles sources so that the rounds of their loops are counted; see compiler/trace/counting.h.

The code differs only in the expressions that are iterated over and in `while`.  All new instructions have the place of the expression
that they wrap, so that tracebacks and places stay as they are.
"""
import ast
import re

_MAYBE = re.compile(r"\bfor\b[^:#]*?\bin\b|^[ \t]*while\b", re.MULTILINE)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _call(function, at, *args):
    """A call of a builtin at the place of `at`; new nodes in args get this place, too."""
    name = ast.copy_location(ast.Name(function, ast.Load()), at)
    return ast.copy_location(ast.Call(name, [a if hasattr(a, "lineno") else ast.copy_location(a, at) for a in args], []), at)


def _place(first, last):
    return ast.Constant((first.lineno, first.col_offset, last.end_lineno, last.end_col_offset))


def _leaves(body):
    """Whether a statement of `body` leaves or continues the loop around it."""
    for node in body:
        if isinstance(node, (ast.Break, ast.Continue)):
            return True
        if isinstance(node, _SCOPES):
            continue
        inner = [node.orelse] if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) else [
            getattr(node, block, ()) for block in ("body", "orelse", "finalbody")]
        inner += [case.body for block in ("handlers", "cases") for case in getattr(node, block, ())]
        if any(map(_leaves, inner)):
            return True
    return False


def _while(node):
    """`while` within a loop of one round.  None: its `else` has a `break` or `continue`, which would then mean that loop."""
    if _leaves(node.orelse):
        return None
    place = _place(node, node.test)
    test = ast.copy_location(ast.BoolOp(ast.And(), [_call("nkx.round", node.test), node.test]), node.test)
    if node.orelse:
        node.orelse.insert(0, ast.copy_location(ast.Expr(_call("nkx.end", node.orelse[0])), node.orelse[0]))
    inner = ast.copy_location(ast.While(test, node.body, node.orelse), node)
    return ast.copy_location(ast.For(ast.copy_location(ast.Tuple([], ast.Store()), node), _call("nkx.once", node, place),
                                     [inner], []), node)


def _change(tree):
    """Changes all loops of the tree.  Returns whether there are any."""
    any_loop = False
    rest = [tree]
    while rest:
        node = rest.pop()
        kind = type(node)
        if kind is ast.For:
            any_loop = True
            node.iter = _call("nkx.each", node.iter, node.iter, _place(node, node.iter))
        elif kind in _COMPREHENSIONS:
            for part in node.generators:
                if not part.is_async:
                    any_loop = True
                    part.iter = _call("nkx.each", part.iter, part.iter, _place(part.target, part.iter))
        for value in vars(node).values():
            if type(value) is list:
                for i, item in enumerate(value):
                    if type(item) is ast.While:
                        counted = _while(item)
                        if counted:
                            any_loop = True
                            value[i] = counted
                    if isinstance(item, ast.AST):
                        rest.append(item)
            elif isinstance(value, ast.AST):
                rest.append(value)
    return any_loop


def compiled(text, filename):
    """The code of a module; None if it has no loops or cannot be compiled like this."""
    if not _MAYBE.search(text):
        return None
    try:
        tree = ast.parse(text, filename)
        return compile(tree, filename, "exec", dont_inherit=True, optimize=0) if _change(tree) else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
