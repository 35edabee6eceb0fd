"""The text of the stage nki-ast: the kernel and what it calls as in the source, with what is known of each line after it.

    # kernel add: NKI GA, because it calls nl.load
    @nki.jit
    def add(a, b):                                       # a: float32[256, 512], b: float32[256, 512]
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)   # tensor in shared_hbm, float32[256, 512]
        for i in nl.affine_range(a.shape[0] // P):       # affine loop of 2 rounds, unrolled
"""
import ast
import builtins

from nkx import nki_source
from nkx.nki_values import Const, Instruction, Loop, Register, Tensor

_COLUMN_MOST = 88  # annotations begin after at most so many characters, if the line is not longer
_VALUE_MOST = 40
_ENGINES = {"tensor": "Tensor", "vector": "Vector", "scalar": "Scalar", "gpsimd": "GpSimd", "dma": "DMA"}


class Block:
    """A function or class of the text, with the Functions in it."""

    def __init__(self, title, node, file, functions):
        self.title, self.node, self.file, self.functions = title, node, file, functions


def _loop_text(loop, generation):
    rounds = "" if loop.rounds is None else f" of {loop.rounds} round{'' if loop.rounds == 1 else 's'}"
    if loop.kind == "dynamic":
        return f"loop on the device{rounds}"
    if generation == 1 and loop.kind in ("affine", "sequential"):
        return f"{loop.kind} loop{rounds}"
    return f"{loop.kind} loop{rounds}, unrolled"


def _constant_text(value):
    text = repr(value)
    return f"compile time: {text}" if len(text) <= _VALUE_MOST else "compile time"


def _call_text(node, f):
    api = f.values.api(node.func)
    if api and api.module == "isa":
        sig = nki_source.signature_of(api)
        if sig and sig.engines:
            return "instruction: " + " or ".join(_ENGINES.get(e, e) for e in sig.engines)
        return "instruction" if sig or f.generation == 1 else None
    if api and api.module == "language":
        return "instructions" if api.name == "store" else None
    if isinstance(node.func, ast.Name) and node.func.id == "print":
        return "printed at compile time"
    if api or not isinstance(node.func, ast.Name):
        return None
    return "compile time" if hasattr(builtins, node.func.id) else f"calls {node.func.id}"


def _calls_of_nki(node, f):
    for n in ast.walk(node):
        if isinstance(n, ast.Call) and f.values.api(n.func):
            return True
    return False


def _value_text(node, f):
    v = f.values.of(node)
    if isinstance(v, Tensor):
        is_view = isinstance(node, (ast.Subscript, ast.Attribute)) or (isinstance(node, ast.Call) and not f.values.api(node.func))
        return ("view of a " if is_view else "") + str(v)
    if isinstance(v, Const):
        return _constant_text(v.value)
    if isinstance(v, Loop):
        return "range"
    if isinstance(v, Register):
        return "register"
    if isinstance(v, Instruction):
        return _call_text(node, f)
    if isinstance(node, ast.Call):
        return _call_text(node, f) or (None if _calls_of_nki(node, f) else "compile time")
    return None if _calls_of_nki(node, f) else "compile time"


def _parameters_text(f):
    known = [f"{name}: {v.dtype or ''}{list(v.shape)}" for name, v in f.values.known.items()
             if isinstance(v, Tensor) and v.shape is not None and name in {a.arg for a in f.node.args.args}]
    return ", ".join(known) or ("a function of the kernel" if f.role == "inner" else None)


def _note(s, f):
    """What is known of one statement."""
    if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)):
        inner = f.inner.get(id(s), f if s is f.node else None)
        return _parameters_text(inner) if inner else None
    if isinstance(s, ast.For):
        v = f.values.of(s.iter)
        return _loop_text(v, f.generation) if isinstance(v, Loop) else "Python loop, unrolled"
    if isinstance(s, ast.While):
        return "loop on the device" if isinstance(f.values.of(s.test), Register) else "Python loop, unrolled"
    if isinstance(s, ast.If):
        return "decided on the device" if isinstance(f.values.of(s.test), Register) else "decided at compile time"
    if isinstance(s, ast.Assert):
        return "checked at compile time"
    if isinstance(s, (ast.Assign, ast.AnnAssign)) and s.value is not None:
        return _value_text(s.value, f)
    if isinstance(s, ast.AugAssign):
        v = f.values.of(s.target) if isinstance(s.target, ast.Name) else None
        return "changes the tensor" if isinstance(v, Tensor) else "compile time"
    if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
        return _call_text(s.value, f)
    return "result" if isinstance(s, ast.Return) and s.value is not None and f.role == "kernel" else None


def _statements(node, f):
    """(statement, Function) of all statements in a function, the function itself first."""
    yield node, f
    rest = [(s, f) for s in reversed(node.body)]
    while rest:
        s, of = rest.pop()
        yield s, of
        inner = of.inner.get(id(s), of)
        for block in ("body", "orelse", "handlers", "finalbody", "cases"):
            rest += [(x, inner) for x in reversed(getattr(s, block, ())) if isinstance(x, (ast.stmt, ast.excepthandler, ast.match_case))]


_COMPOUND = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.For, ast.AsyncFor, ast.While, ast.If, ast.With, ast.AsyncWith,
             ast.Try, ast.TryStar, ast.Match)


def _marks(block):
    """({line: annotation}, {line: (name, place)})"""
    notes, places = {}, {}
    for f in block.functions:
        for s, of in _statements(f.node, f):
            if not hasattr(s, "lineno"):
                continue
            place = f.file.header(s) if isinstance(s, _COMPOUND) else f.file.place(s)
            places.setdefault(place[1], (type(s).__name__.lower(), place))
            note = _note(s, of)
            if note:
                notes[place[3]] = f"{notes[place[3]]}; {note}" if place[3] in notes else note
    return notes, places


def lines(blocks):
    """[(text, name of the kind or None, place or None), …]"""
    out = []
    for b in blocks:
        notes, places = _marks(b)
        first = min([b.node.lineno, *(d.lineno for d in b.node.decorator_list)])
        source = b.file.lines[first - 1:b.node.end_lineno]
        indent = len(source[0]) - len(source[0].lstrip())
        source = [s[indent:] if not s[:indent].strip() else s.lstrip() for s in source]
        column = max((len(s) for i, s in enumerate(source) if first + i in notes and len(s) <= _COLUMN_MOST), default=0)
        if out:
            out.append(("", None, None))
        out.append((f"# {b.title}", "block", b.file.header(b.node)))
        for i, text in enumerate(source):
            number = first + i
            name, place = places.get(number, (None, None))
            stripped = b.file.lines[number - 1].strip()
            if place is None and stripped:
                begin = b.file.lines[number - 1].index(stripped) + 1
                name, place = "line", (b.file.name, number, begin, number, begin + len(stripped))
            note = notes.get(number)
            text = text.rstrip()
            out.append((f"{text:<{column}}  # {note}" if note else text, name if stripped else None, place if stripped else None))
    return out
