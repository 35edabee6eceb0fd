"""Where an operation comes from: its ancestors in every stage before, down to the Python expressions.

    PYTHONPATH=tests python3 -m support.ancestors KERNEL.py        prints them, group by group

Everything is read from the result object: the ids of `from`, the ranges of `lines`.  A run of stages in which the same
lines are the ancestors is one entry.  Stages are taken in groups, so that a pass that changes what it makes changes the
report of its own group and of the next one.
"""
import pathlib
import re
import sys

from support import compiler, source_map

# name -> its phases (compiler/driver/stages.def), in the order of the pipeline, down to the instructions
GROUPS = {
    "1-hlo": ("Trace", "HLO"),
    "2-linalg": ("linalg", "NISA-shaped linalg"),
    "3-tiling": ("Layout and tiling",),
    "4-memory": ("Bufferization", "Memory spaces"),
    "5-layout": ("Physical layout", "Lifetimes"),
    "6-nisa": ("NISA",),
}
LINES_MAX = 6  # of one stage; more are counted
WIDTH = 110


def is_instruction(text):
    return re.match(r"\s*(%\S+ = )?nisa\.(?!program |queue )", text) is not None


def lines_by_op(stage):
    """op -> (text, entry) of the first line on which it is printed."""
    found = {}
    for text, entry in zip(stage["text"].split("\n"), stage["lines"]):
        if "op" in entry:
            found.setdefault(entry["op"], (text.strip(), entry))
    return found


def ancestors(stages, op):
    """[(stage, its ops)], from the stage before the last one back to the first; ops without a line included."""
    found, ops = [], {op}
    for stage, before in zip(reversed(stages), reversed(stages[:-1])):
        ops = {f for o in ops for f in stage["from"].get(str(o), [])}
        found.append((before, ops))
    return found


def up_to(kernel, name):
    """The stages from the first to the one of this name."""
    return kernel["stages"][: compiler.stage(kernel, name)["index"] + 1]


def instructions(kernel, name="linalg-to-nisa"):
    """(op, line text, entry) of each NISA instruction of the stage."""
    last = compiler.stage(kernel, name)
    return [(e["op"], t.strip(), e) for t, e in zip(last["text"].split("\n"), last["lines"]) if "op" in e and is_instruction(t)]


def cut(text):
    text = re.sub(r"(@\w+)\(.*", r"\1(…", text) if text.startswith(("func.func", "ENTRY")) else text
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def places(source, entry):
    """The Python places, one line each: "15:15-29 product + bias", with the calls that led there."""
    shown = []
    for r in entry.get("src", []):
        at = f"{r['line']}:{r['col']}-" + (f"{r['end_line']}:" if r["end_line"] != r["line"] else "") + str(r["end_col"])
        text = f"{at} {' '.join(source_map.text_of(source, r).split())}"
        if r["depth"]:
            shown[-1] += f"  <- {text}"
        else:
            shown.append(text)
    return shown


def merged(found):
    """[(newest stage, oldest stage, lines)] of [(stage, ops)], with runs of equal lines merged."""
    out = []
    for stage, ops in found:
        known = lines_by_op(stage)
        lines = [cut(known[o][0]) for o in sorted(ops) if o in known]
        if out and out[-1][2] == lines:
            out[-1][1] = stage
        else:
            out.append([stage, stage, lines])
    return out


def shown(found):
    """A chain of ancestors, newest first, as lines."""
    out = []
    for newest, oldest, lines in merged(found):
        out.append(f"  {oldest['name']}" + (f" … {newest['name']}" if oldest is not newest else ""))
        out += [f"       {line}" for line in lines[:LINES_MAX]] or ["       (nothing)"]
        if len(lines) > LINES_MAX:
            out.append(f"       and {len(lines) - LINES_MAX} more")
    return out


def reports(source, kernel):
    """group -> the chains of ancestors of all instructions within the group, down to the last stage of the group before.
    Chains are listed once; those of the last group are listed by instruction, with the places in Python."""
    stages, listed, begin = up_to(kernel, "linalg-to-nisa"), {}, 0
    chains = {op: ancestors(stages, op) for op, _, _ in instructions(kernel)}
    for name, phases in GROUPS.items():
        end = begin + sum(s["phase"] in phases for s in stages)
        group = [s["index"] for s in stages[max(begin - 1, 0) : end]]
        parts = {op: shown([(s, ops) for s, ops in chain if s["index"] in group]) for op, chain in chains.items()}
        if name == list(GROUPS)[-1]:
            listed[name] = [[cut(text), *parts[op], *([f"  Python {p}" for p in places(source, entry)] or ["  Python: nowhere"])]
                            for op, text, entry in instructions(kernel)]
        else:
            listed[name] = [list(part) for part in dict.fromkeys(tuple(part) for part in parts.values())]
        begin = end
    assert begin == len(stages), "a stage is in no group"
    return {name: "".join("\n".join([*part, "", ""]) for part in parts) for name, parts in listed.items()}


def reports_of(path):
    """The reports of a file with one kernel."""
    source = path.read_text()
    result = compiler.compile(source)
    assert result["status"] == "ok", result["diagnostics"]
    (kernel,) = result["kernels"]
    return reports(source, kernel)


if __name__ == "__main__":
    for name, text in reports_of(pathlib.Path(sys.argv[1])).items():
        print(f"==== {name}\n{text}")
