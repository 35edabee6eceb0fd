"""The list that GET /api/v1/ops serves: every operation of the front end, with what it becomes at each level.

What an operation becomes is not said by hand: its first form in operations/table.py is compiled, and the opcodes of its
HLO, the operations of its linalg and its NISA instructions are read from the stages.  Its parameters are read from NumPy,
those of the knobs from the extension.
"""
import inspect
import json
import operator
import re

import numpy as np

import _nkx
from support import compiler
from support.operations import sources

AT_ONCE = 40
PLUMBING = {"parameter", "constant", "tuple", "get-tuple-element"}
NOT_THE_WORK = re.compile(r"(func\.func|module|nkipy|builtin)\b|linalg\.(yield|index|fill)|arith\.constant|tensor\.(empty|dim)")


def work(names, common):
    """Without repeats, and without what every kernel has, unless there is nothing else."""
    names = list(dict.fromkeys(names))
    return [n for n in names if n != common] or names


def hlo_opcodes(text):
    found = re.findall(r"^\s*(?:ROOT )?%?[\w.-]+ = \S+(?: \S+?)*? ([a-z][a-z0-9-]*)\(", text, re.M)
    return work([o for o in found if o not in PLUMBING], "copy")


def mlir_operations(text):
    text = text.replace(" call @", " func.call @")
    found = re.findall(r'^\s*(?:%[\w:, %#]+ = )?"?((?:linalg|arith|math|tensor|scf|func)\.[\w.]+)', text, re.M)
    return work([o for o in found if not NOT_THE_WORK.match(o)], "linalg.generic")


def instructions(text):
    found = re.findall(r"^\s*(?:%\S+ = )?nisa\.(\w+)", text, re.M)
    return work([o for o in found if o not in ("alloc", "release")], "dma_copy")


def forms():
    """operation -> (the Python expression, {level: names})."""
    made, first = {}, [f for f in sources.forms(sources.SHAPES[:1]) if f.number == 0]
    first = list({f.op: f for f in reversed(first)}.values())
    for k in range(0, len(first), AT_ONCE):
        batch = first[k : k + AT_ONCE]
        result = compiler.compile(sources.FORMS_HEAD + "\n".join(b.source for b in batch), timeout=300)
        for one, compiled in zip(batch, result["kernels"], strict=True):
            stages = {s["name"]: s for s in reversed(compiled["stages"])}
            levels = {"hlo": hlo_opcodes(stages["trace"]["text"]), "linalg": [], "nisa": []}
            if "hlo-to-linalg" in stages:
                levels["linalg"] = mlir_operations(stages["hlo-to-linalg"]["text"])
            if "linalg-to-nisa" in stages:
                levels["nisa"] = instructions(stages["linalg-to-nisa"]["text"])
            made[one.op] = (one.source.rsplit("return ", 1)[1].strip(), levels)
    return made


# Keywords about the memory of arrays, which mean nothing in a kernel.
MEMORY = {"casting", "copy", "device", "like", "order", "signature", "subok", "kwargs"}
REFUSED = {"reduction": {"out", "where"}}


def parameter(p):
    if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
        return f"*{p.name}"
    if p.default is p.empty:
        return p.name
    return f"{p.name}={'…' if 'no value' in repr(p.default) else repr(p.default)}"


def parameters(function, left_out=frozenset()):
    """As the signature writes them; "*" stands before those that are given by name only."""
    made, star = [], False
    for p in inspect.signature(function).parameters.values():
        if p.name in left_out:
            continue
        if p.kind == p.KEYWORD_ONLY and not star:
            made.append("*")
        star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        made.append(parameter(p))
    return made


def knobs():
    builder = _nkx.knob(np.zeros(1))
    functions = {"knob.knob": _nkx.knob, "knob.fuse": _nkx.fuse, ".tile_op": builder.tile_op, ".layout": builder.layout}
    return [{"name": n, "parameters": parameters(f), "what": f.__doc__} for n, f in functions.items()]


def listed(name, numpy, method, kind):
    """An operation without what it becomes."""
    row = {"name": name, "kind": kind, "numpy": [f"np.{n}" for n in numpy.split()]}
    if method:
        row["method"] = method
    if row["numpy"]:
        function = operator.attrgetter(row["numpy"][0].removeprefix("np."))(np)
        row["parameters"] = parameters(function, MEMORY | REFUSED.get(kind, set()))
    return row


def lines(rows):
    return ",\n".join(json.dumps(r) for r in rows)


def document():
    made = forms()
    rows = [{**listed(*op), "example": made[op[0]][0], **made[op[0]][1]} for op in sources.operations()]
    return f'{{"ops":[\n{lines(rows)}\n],"knobs":[\n{lines(knobs())}\n]}}\n'
