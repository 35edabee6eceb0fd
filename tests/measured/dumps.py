"""Simulated times of another compiler's programs beside ours: NKX_DUMPS=DIRECTORY PYTHONPATH=tests python3 -m measured.dumps [--write]

The directory is that of tests/sim/test_dumps.py: a folder for each kernel, with numbered stages.  The first stage, linalg with
its knobs, goes through our whole pipeline; the last one, memrefs, through our last three stages.  Both are timed on trn2 by
build/bench/measure.  --write puts the table into tests/RESULTS.md.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measured.compare import MEASURE, write
from support import compiler
from support.paths import WORKER

TARGET = "trn2"
HEAD = "## Another compiler's programs beside ours"
ABOUT = """
Nine kernels (tests/sim/test_dumps.py) on trn2. Theirs: the memref stage that another compiler printed, lowered by our
linalg-to-nisa, allocate-memory and engine-programs. Ours: the same linalg with the same knobs through our whole pipeline.
Both as simulated, without a launch. On the critical path: the engine or queue that is on it longest, and its time there. Bytes a descriptor are the mean over all transfers.
"""


def theirs(stages):
    passes = [f"--linalg-to-nisa=target={TARGET}", "--allocate-memory", "--engine-programs", "--print-nisa"]
    return subprocess.run([WORKER, "opt", *passes, stages[-1]], capture_output=True, text=True, check=True).stdout


def without_knobs(text):
    return "".join(line for line in text.splitlines(keepends=True) if not line.lstrip().startswith(("nkipy.tile_op", "nkipy.layout", "nkipy.fuse")))


def ours(stages, knobs=True):
    text = stages[0].read_text()
    result = compiler.compile(text if knobs else without_knobs(text), "--language", "mlir", "--target", TARGET)
    assert result["status"] == "ok", result["diagnostics"]
    return compiler.stage(result["kernels"][0], "engine-programs")["text"]


def measure(text, what):
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as f:
        f.write(text)
        f.flush()
        return json.loads(subprocess.run([MEASURE, TARGET, what, f.name], capture_output=True, text=True, check=True).stdout)


def figures(text):
    """What a difference in time can come from."""
    p = measure(text, "--json")
    sizes = [e["args"] for e in measure(text, "--trace")["traceEvents"] if "bytes per descriptor" in e.get("args", {})]
    descriptors = sum(x["bytes"] / x["bytes per descriptor"] for x in sizes)
    queues = [x for x in p["lanes"] if x["engine"] == "dma"]
    transfers = sum(x["executions"] for x in queues)
    on_path = collections.Counter()
    for part in p["path"]["parts"]:
        on_path[part["lane"]] += part["to_us"] - part["from_us"]
    lane, us = on_path.most_common(1)[0]
    return {"us": p["total_us"], "transfers": transfers, "kib": p["dma"]["bytes"] / 1024,
            "descriptor": sum(x["bytes"] for x in sizes) / descriptors, "instructions": p["executions"] - transfers,
            "longest": f"{lane} {us:.1f} µs"}


def difference(a, b):
    """In words, the figures of `b` against those of `a`; those that are equal are left out."""
    words = []
    if a["transfers"] != b["transfers"]:
        words.append(f"{b['transfers']} transfers instead of {a['transfers']}")
    if round(a["kib"]) != round(b["kib"]):
        words.append(f"{b['kib']:.0f} KiB moved instead of {a['kib']:.0f}")
    if round(a["descriptor"]) != round(b["descriptor"]):
        words.append(f"{b['descriptor']:.0f} bytes a descriptor instead of {a['descriptor']:.0f}")
    if a["instructions"] != b["instructions"]:
        words.append(f"{b['instructions']} instructions instead of {a['instructions']}")
    return "; ".join(words) or "the same transfers and instructions"


def kernels(directory):
    """(name, stages) of each kernel."""
    for kernel in sorted(x for x in Path(directory).iterdir() if x.is_dir()):
        yield kernel.name, sorted(kernel.glob("*.mlir"))


def table(directory):
    yield "| kernel | theirs µs | ours µs | ratio | ours differs by | critical path, theirs | critical path, ours |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for kernel, stages in kernels(directory):
        a, b = figures(theirs(stages)), figures(ours(stages))
        yield (f"| {kernel} | {a['us']:.1f} | {b['us']:.1f} | {b['us'] / a['us']:.2f} | {difference(a, b)} | "
               f"{a['longest']} | {b['longest']} |")


if __name__ == "__main__":
    lines = list(table(os.environ["NKX_DUMPS"]))
    print("\n".join(lines))
    if "--write" in sys.argv:
        write(lines, HEAD, ABOUT)
