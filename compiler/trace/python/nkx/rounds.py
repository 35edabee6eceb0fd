"""Compiles sources so that the rounds of their loops are counted; see compiler/trace/counting.h.

The code differs only in the expressions that are iterated over and in `while`.  All new instructions have the place of the expression
that they wrap, so that tracebacks and places stay as they are.

In a source that names loops or registers of NKI's devices, the tests of `while` and `if` may be registers (nki_registers.py):

    while c:        ==>   while `nkx.round`() and `nkx.before`(place) and `nkx.test`(place, c, names):
    if c: … else: … ==>   for branch in `nkx.branches`(c, names):
                              if branch: … else: …

The names are those whose values a loop or branch of the device cannot have (nki_device.py).

In a source that names loop_reduce of NKI beta 1, its calls get what their result is assigned to:

    t = nl.loop_reduce(x, op)    ==>   t = nl.loop_reduce(x, op, into=lambda: t)
"""
import ast
import copy
import importlib
import re

from nkx import nki_device

_MAYBE = re.compile(r"\bfor\b[^:#]*?\bin\b|^[ \t]*while\b", re.MULTILINE)
_ON_DEVICE = re.compile(r"\b(register_alloc|register_load|dynamic_range|fori_loop|while_loop)\b")
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


def _returns(body):
    return any(isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom)) for s in body for n in ast.walk(s))


def _names(found):
    return ast.Constant(tuple(name for name, _ in found))


def _undecided(tree):
    """{the number of an `if` in a function: the names that it leaves undecided if its test is a register}"""
    found, rest = {}, [(tree, None)]
    while rest:
        node, function = rest.pop()
        if isinstance(node, ast.FunctionDef):
            function = node
        if isinstance(node, ast.If) and function is not None:
            found[id(node)] = _names(nki_device.undecided(function, node))
        rest += [(child, function) for child in ast.iter_child_nodes(node)]
    return found


def _if(node, names):
    """`if` whose test may be a register; None if a branch leaves a loop or the function around it, as none on the device can."""
    if _leaves(node.body) or _leaves(node.orelse) or _returns(node.body) or _returns(node.orelse):
        return None
    branches = _call("nkx.branches", node.test, node.test, names)
    node.test = ast.copy_location(ast.Name("nkx.branch", ast.Load()), node.test)
    loop = ast.For(ast.copy_location(ast.Name("nkx.branch", ast.Store()), node.test), branches, [node], [],
                   lineno=node.lineno, col_offset=node.col_offset)
    loop.end_lineno, loop.end_col_offset = node.test.end_lineno, node.test.end_col_offset
    return loop


def _while(node, is_on_device):
    """`while` within a loop of one round.  None: its `else` has a `break` or `continue`, which would then mean that loop."""
    if _leaves(node.orelse):
        return None
    place = _place(node, node.test)
    tests = [_call("nkx.round", node.test), node.test]
    if is_on_device:
        tests[1:] = [_call("nkx.before", node.test, place), _call("nkx.test", node.test, place, node.test, _names(nki_device.carried(node.body)))]
    test = ast.copy_location(ast.BoolOp(ast.And(), tests), node.test)
    if node.orelse:
        node.orelse.insert(0, ast.copy_location(ast.Expr(_call("nkx.end", node.orelse[0])), node.orelse[0]))
    inner = ast.copy_location(ast.While(test, node.body, node.orelse), node)
    return ast.copy_location(ast.For(ast.copy_location(ast.Tuple([], ast.Store()), node), _call("nkx.once", node, place),
                                     [inner], []), node)


def _reduce(node):
    """Gives the call of loop_reduce that an assignment consists of the target of the assignment."""
    call = node.value
    if not isinstance(call, ast.Call) or len(node.targets) != 1:
        return
    name, (target,) = getattr(call.func, "attr", getattr(call.func, "id", None)), node.targets
    if name == "loop_reduce" and isinstance(target, (ast.Name, ast.Subscript)):
        value = copy.copy(target)
        value.ctx = ast.Load()
        none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        into = ast.copy_location(ast.Lambda(none, value), target)
        call.keywords.append(ast.copy_location(ast.keyword("into", into), target))


def _change(tree, is_on_device, has_reductions):
    """Changes all loops of the tree, the branches of one that may have registers, and the calls of loop_reduce of one that may
    have some.  Returns whether there are loops."""
    any_loop = False
    undecided = _undecided(tree) if is_on_device else {}
    rest = [tree]
    while rest:
        node = rest.pop()
        kind = type(node)
        if has_reductions and kind is ast.Assign:
            _reduce(node)
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
                    counted = _if(item, undecided[id(item)]) if id(item) in undecided else None
                    if counted:
                        any_loop = True
                        value[i] = counted
                    if type(item) is ast.While:
                        counted = _while(item, is_on_device)
                        if counted:
                            any_loop = True
                            value[i] = counted
                    if isinstance(item, ast.AST):
                        rest.append(item)
            elif isinstance(value, ast.AST):
                rest.append(value)
    return any_loop


def may_have_registers(text):
    return bool(_ON_DEVICE.search(text))


def compiled(text, filename):
    """The code of a module; None if it has no loops, and no branches on registers, or cannot be compiled like this."""
    is_on_device = may_have_registers(text)
    if not is_on_device and not _MAYBE.search(text):
        return None
    try:
        tree = ast.parse(text, filename)
        return compile(tree, filename, "exec", dont_inherit=True, optimize=0) if change(tree, text) else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def change(tree, text):
    """Changes the tree of a source with this text; whether there are loops, or branches on registers."""
    is_on_device = may_have_registers(text)
    if is_on_device:
        importlib.import_module("nkx.nki_registers")  # has the functions that the code calls
    return _change(tree, is_on_device, "loop_reduce" in text)
