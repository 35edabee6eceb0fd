"""The list that GET /api/v1/ops serves: every operation of the front end, with what it becomes at each level.

What an operation becomes is not said by hand: its first form in operations/table.py is compiled, and the opcodes of its
HLO, the operations of its linalg and its NISA instructions are read from the stages.
"""
import json
import re

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


def document():
    made, rows = forms(), []
    for name, numpy, method, kind in sources.operations():
        example, levels = made[name]
        row = {"name": name, "kind": kind, "numpy": [f"np.{n}" for n in numpy.split()]}
        if method:
            row["method"] = method
        rows.append({**row, "example": example, **levels})
    return '{"ops":[\n' + ",\n".join(json.dumps(r) for r in rows) + "\n]}\n"
