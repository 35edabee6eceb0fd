"""The Python that kernels of NKI may contain, decided from the source.

These rules are about the kernel and the functions inside of it.  Functions that it calls are ordinary Python at compile time
and may contain anything.  What the language guide and the public front ends leave open, or contradict each other in, is decided here:

    nested functions, lambda, comprehensions   accepted: they run at compile time, and fori_loop needs them
    is, is not                                 with None accepted; otherwise a warning, because newer versions drop it.  They mean
                                               identity, as in Python; one front end reads ==
    integers                                   Python's, without a limit, at compile time; a number that a call takes has at
                                               most 64 bits, and a register has 32.  The guide says 32 bits for all
    raise, try, match                          refused in the kernel, accepted in functions that it calls
    displays of sets, dicts with other keys    refused: the order of sets is not defined, and keys are strings
    f-strings                                  {x}, {x!r}, {x=}; no format
    **kwargs as a parameter                    a warning; *args, keyword-only and position-only parameters are refused
    x += y, x a Python value                   Python's meaning
    x += y, x a tensor                         refused: tensors have no operators.  Beta 1 has them, on tiles, in place:
                                               psum += nc_matmul(…) accumulates, and its tile type does that
    t[…] += y, t[…] = y                        refused, the same
    names bound in loops and branches          stay bound after them, as in Python.  In beta 1 a tensor that is made
                                               inside cannot be used after it: nki-scope

A kernel of beta 1 is executed by Python, once.  So the rules for it are those without which that has no meaning.
"""
import ast

_BETA_1_TOO = (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await, ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)
_ELSEWHERE = "move it to a function outside of the kernel, which runs at compile time"
_REFUSED = {
    ast.Import: ("an import", "import at the top of the file"),
    ast.ImportFrom: ("an import", "import at the top of the file"),
    ast.Try: ("try", _ELSEWHERE),
    ast.TryStar: ("try", _ELSEWHERE),
    ast.Raise: ("raise", "write assert condition, \"message\""),
    ast.Match: ("match", "write if and elif"),
    ast.AsyncFunctionDef: ("async def", "write def: a kernel does not wait"),
    ast.AsyncFor: ("async for", "write for"),
    ast.AsyncWith: ("async with", "write nl.no_reorder() in a plain with"),
    ast.Await: ("await", "call the function without await"),
    ast.Delete: ("del", "leave it out: memory is free after the last use of a tensor"),
    ast.Global: ("global", "pass the value as an argument, and return it"),
    ast.Nonlocal: ("nonlocal", "pass the value as an argument, and return it"),
    ast.ClassDef: ("a class", "define it outside of the kernel"),
    ast.Yield: ("yield", "return a list"),
    ast.YieldFrom: ("yield from", "return a list"),
    ast.NamedExpr: ("an assignment inside of an expression", "assign on a line of its own"),
    ast.Set: ("a set", "write a tuple or a list: a set has no order"),
    ast.SetComp: ("a set", "write a list: a set has no order"),
}
_WORDS = {ast.Try: 3, ast.TryStar: 3, ast.Match: None, ast.AsyncFunctionDef: None, ast.AsyncFor: None, ast.AsyncWith: None,
          ast.ClassDef: None}  # statements with a body: how much of the header is shown, None: all of it


def check_node(node, file, generation, add):
    """One statement or expression inside of a kernel.  add(code, place, message, hint, severity="error")"""
    kind = type(node)
    if kind in _REFUSED and (generation > 1 or isinstance(node, _BETA_1_TOO)):
        what, hint = _REFUSED[kind]
        place = file.header(node) if kind in _WORDS else file.place(node)
        add("nki-unsupported-statement", place, f"{what} is not possible inside of a kernel", hint)
    if generation == 1:
        return
    if kind in (ast.For, ast.While) and node.orelse:
        word = "for" if kind is ast.For else "while"
        add("nki-unsupported-statement", file.else_of(node), f"{word} … else is not possible inside of a kernel",
            "put the statements after the loop")
    elif kind is ast.Dict:
        for k in node.keys:
            if k is not None and isinstance(k, ast.Constant) and not isinstance(k.value, str):
                add("nki-unsupported-statement", file.place(k), f"a dict inside of a kernel has strings as keys, not {k.value!r}",
                    "write a list, or make the dict outside of the kernel")
    elif kind is ast.FormattedValue and node.format_spec is not None:
        # the places of parts of an f-string are not known to Python 3.11: the caller shows the whole string
        add("nki-unsupported-format", None, "an f-string inside of a kernel has no format after the colon",
            "write {x} or {x!r}, or make the text in a function outside of the kernel")
    elif kind is ast.Compare:
        _check_identity(node, file, add)
    elif kind is ast.Call:
        _check_stars(node, file, add)
    elif kind is ast.Assign:
        for t in node.targets:
            for n in ast.walk(t):
                if isinstance(n, ast.Starred):
                    add("nki-unsupported-signature", file.place(n), "a name with a star is not possible inside of a kernel",
                        "index the list: first, rest = xs[0], xs[1:]")


def _check_identity(node, file, add):
    left = node.left
    for op, right in zip(node.ops, node.comparators):
        if isinstance(op, (ast.Is, ast.IsNot)) and not any(isinstance(x, ast.Constant) and x.value is None for x in (left, right)):
            place = file.exact(left.lineno, left.col_offset, right.end_lineno, right.end_col_offset)
            word = "is" if isinstance(op, ast.Is) else "is not"
            add("nki-deprecated", place, f'newer versions of NKI have "{word}" only with None',
                f'write {"==" if isinstance(op, ast.Is) else "!="}', "warning")
        left = right


def _check_stars(node, file, add):
    for a in node.args:
        if isinstance(a, ast.Starred):
            add("nki-unsupported-signature", file.place(a), "an argument with a star is not possible inside of a kernel",
                "write the arguments one by one")
    for k in node.keywords:
        if k.arg is None:
            add("nki-unsupported-signature", file.starred(k.value, 2),
                "an argument with two stars is not possible inside of a kernel", "write the arguments one by one")


def check_signature(function, file, generation, is_kernel, add):
    """The parameters of a kernel, or of a function inside of it."""
    if generation == 1:
        return
    a = function.args
    one_by_one = "write the parameters one by one"
    if a.vararg:
        p = a.vararg
        add("nki-unsupported-signature", file.starred(p, 1),
            f"the parameter *{p.arg} is not possible", one_by_one)
    for p in a.kwonlyargs:
        add("nki-unsupported-signature", file.place(p), f"the parameter {p.arg} is keyword-only, which is not possible",
            "write it before the star; NKI 0.3 dropped keyword-only parameters")
    for p in a.posonlyargs:
        add("nki-unsupported-signature", file.place(p), f"the parameter {p.arg} is position-only, which is not possible",
            "leave out the slash")
    if a.kwarg and is_kernel:
        p = a.kwarg
        add("nki-unsupported-signature", file.starred(p, 2),
            f"the parameter **{p.arg} is ignored by NKI", one_by_one, "warning")


# ---- classes ---------------------------------------------------------------------------------------------------------

_BASES = {"NKIObject", "Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "NamedTuple", "object", "Exception", "Protocol", "ABC"}
_CLASS_DECORATORS = {"dataclass", "unique", "total_ordering", "final", "runtime_checkable"}
_METHOD_DECORATORS = {"staticmethod", "classmethod", "property", "cached_property", "abstractmethod", "override", "lru_cache",
                      "cache", "setter"}


def last_name(node):
    """f of a.b.f, f(…) and f[…]"""
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def check_class(node, file, own_classes, add):
    """A class that a kernel uses.  own_classes: the names of classes of the user's files."""
    allowed = "derive it from nl.NKIObject, Enum or NamedTuple, or from a class of your own"
    for b in node.bases:
        if last_name(b) not in _BASES and last_name(b) not in own_classes:
            add("nki-unsupported-class", file.place(b), f"a class that a kernel uses cannot be derived from {ast.unparse(b)}", allowed)
    for k in node.keywords:
        add("nki-unsupported-class", file.place(k), f"a class that a kernel uses has no {k.arg or '**'}=", "leave it out")
    for d in node.decorator_list:
        if last_name(d) not in _CLASS_DECORATORS:
            add("nki-unsupported-class", file.place(d), f"a class that a kernel uses cannot be decorated with {ast.unparse(d)}",
                "use @dataclass, or no decorator")
    for s in node.body:
        if isinstance(s, ast.Expr) and not (isinstance(s.value, ast.Constant) and isinstance(s.value.value, (str, type(...)))):
            add("nki-unsupported-class", file.place(s), "a class that a kernel uses has only fields and methods",
                "move the expression out of the class")
        for d in getattr(s, "decorator_list", ()):
            if last_name(d) not in _METHOD_DECORATORS:
                add("nki-unsupported-class", file.place(d), f"a method cannot be decorated with {ast.unparse(d)}",
                    "use @staticmethod, @classmethod or @property")


def check_decorators(function, file, is_kernel_decorator, add):
    """Those of a function inside of a kernel."""
    for d in function.decorator_list:
        if not is_kernel_decorator(d):
            add("nki-unsupported-class", file.place(d), f"a function inside of a kernel cannot be decorated with {ast.unparse(d)}",
                "leave the decorator out")
