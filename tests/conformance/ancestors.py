"""Where an instruction comes from: its ancestors in every stage before, down to the Python expressions.

    python3 tests/conformance/ancestors.py KERNEL.py        prints them
    python3 tests/conformance/ancestors.py --update         writes the golden files anew

Everything is read from the result object: the ids of `from`, the ranges of `lines`.  A run of stages in which the same
lines are the ancestors is one entry.
"""
import pathlib
import re
import sys

import kernels

GOLDEN = pathlib.Path(__file__).parent / "golden"
SOURCES = {GOLDEN / "matmul_add.ancestors.txt": kernels.ROOT / "explorer/examples/01_matmul_bias_relu.py"}
LINES_MAX = 6  # of one stage; more are counted
WIDTH = 110


def text_of(source, r):
    """The source text of a range."""
    lines = source.split("\n")
    if r["line"] == r["end_line"]:
        return lines[r["line"] - 1][r["col"] - 1 : r["end_col"] - 1]
    inner = lines[r["line"] : r["end_line"] - 1]
    return "\n".join([lines[r["line"] - 1][r["col"] - 1 :], *inner, lines[r["end_line"] - 1][: r["end_col"] - 1]])


def is_instruction(text):
    return re.match(r"\s*(%\S+ = )?nisa\.", text) is not None


def lines_by_op(stage):
    """op -> (line number, text, entry) of the first line on which it is printed."""
    found = {}
    for i, (text, entry) in enumerate(zip(stage["text"].split("\n"), stage["lines"])):
        if "op" in entry:
            found.setdefault(entry["op"], (i + 1, text.strip(), entry))
    return found


def ancestors(stages, op):
    """[(stage, its ops)], from the stage before the last one back to the first; ops without a line included."""
    found, ops = [], {op}
    for stage, before in zip(reversed(stages), reversed(stages[:-1])):
        ops = {f for o in ops for f in stage["from"].get(str(o), [])}
        found.append((before, ops))
    return found


def instructions(kernel):
    """(op, line text, entry) of each NISA instruction."""
    last = kernel["stages"][-1]
    assert last["dialect"] == "nisa"
    return [(e["op"], t.strip(), e) for t, e in zip(last["text"].split("\n"), last["lines"]) if "op" in e and is_instruction(t)]


def cut(text):
    text = re.sub(r"(@\w+)\(.*", r"\1(…", text) if text.startswith(("func.func", "ENTRY")) else text
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def places(source, entry):
    """The Python places, one line each: "15:15-29 product + bias", with the calls that led there."""
    shown = []
    for r in entry.get("src", []):
        at = f"{r['line']}:{r['col']}-" + (f"{r['end_line']}:" if r["end_line"] != r["line"] else "") + str(r["end_col"])
        text = f"{at} {' '.join(text_of(source, r).split())}"
        if r["depth"]:
            shown[-1] += f"  <- {text}"
        else:
            shown.append(text)
    return shown


def entries(stages, op):
    """(first stage, last stage, lines) with runs of equal lines merged, newest stage first."""
    merged = []
    for stage, ops in ancestors(stages, op):
        known = lines_by_op(stage)
        lines = [cut(known[o][1]) for o in sorted(ops) if o in known]
        if merged and merged[-1][2] == lines:
            merged[-1][0] = stage
        else:
            merged.append([stage, stage, lines])
    return merged


def report(source, kernel):
    out = []
    for op, text, entry in instructions(kernel):
        out.append(cut(text))
        for first, last, lines in entries(kernel["stages"], op):
            span = f"{first['index']:02d}" + (f"-{last['index']:02d}" if first is not last else "")
            name = first["name"] if first is last else f"{first['name']} … {last['name']}"
            out.append(f"  {span} {name}")
            out += [f"       {line}" for line in lines[:LINES_MAX]] or ["       (nothing)"]
            if len(lines) > LINES_MAX:
                out.append(f"       and {len(lines) - LINES_MAX} more")
        out += [f"  Python {p}" for p in places(source, entry)] or ["  Python: nowhere"]
        out.append("")
    return "\n".join(out)


def report_of(path):
    source = path.read_text()
    result = kernels.compile(source)
    assert result["status"] == "ok", result["diagnostics"]
    return "\n".join(report(source, k) for k in result["kernels"])


def main():
    if sys.argv[1:] == ["--update"]:
        GOLDEN.mkdir(exist_ok=True)
        for golden, path in SOURCES.items():
            golden.write_text(report_of(path))
    else:
        print(report_of(pathlib.Path(sys.argv[1])))


if __name__ == "__main__":
    main()
