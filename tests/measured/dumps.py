"""Simulated times of another compiler's programs beside ours: NKX_DUMPS=DIRECTORY PYTHONPATH=tests python3 -m measured.dumps [--write]

The directory is that of tests/sim/test_dumps.py: a folder for each kernel, with numbered stages.  The first stage, linalg with
its knobs, goes through our whole pipeline; the last one, memrefs, through our last three stages.  Both are timed on trn2 by
build/bench/measure.  --write puts the table into tests/RESULTS.md.
"""

import collections
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measured import floors
from measured.compare import MEASURE, write
from support import compiler
from support.paths import WORKER

TARGET = "trn2"
HEAD = "## Another compiler's programs beside ours"
ABOUT = """
Nine kernels (tests/sim/test_dumps.py) on trn2. Theirs: the memref stage that another compiler printed, lowered by our
linalg-to-nisa, allocate-memory and engine-programs. Ours: the same linalg with the same knobs through our whole pipeline. No knobs:
ours from the linalg without them, the best that it does by itself. Both as simulated, without a launch. The floor is what no
program whose inputs lie on all partitions can beat on this machine (tests/measured/floors.py has the formula): the fixed costs of
the first load and the last store, about 2.1 µs together, and between them what the engines, their latencies or the bytes take; it
lets memory, triggers and semaphores cost nothing, and the Tensor engine have its full clock from its second window on. Floor /
theirs is the least ratio that such programs can have: twice as fast in five of the nine needs one of them to be at its floor,
without a memory port, a trigger or a semaphore that makes it wait. On the critical path: the engine or queue that is on it longest,
and its time there. Bytes a descriptor are the mean over all transfers.
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
    yield ("| kernel | theirs µs | ours µs | ratio | no knobs µs | ratio | floor µs | floor / theirs | ours / floor | no knobs / floor | ours differs by | "
           "critical path, theirs | critical path, ours |")
    yield "| " + " | ".join(["---"] * 13) + " |"
    ratios = []
    for kernel, stages in kernels(directory):
        a, b, free = (figures(t) for t in (theirs(stages), ours(stages), ours(stages, knobs=False)))
        floor = floors.floor_us(kernel)
        ratios.append((b["us"] / a["us"], free["us"] / a["us"], floor / a["us"], b["us"] / floor, free["us"] / floor))
        with_knobs, without, least, over, free_over = (f"{r:.2f}" for r in ratios[-1])
        yield (f"| {kernel} | {a['us']:.1f} | {b['us']:.1f} | {with_knobs} | {free['us']:.1f} | {without} | {floor:.1f} | {least} | {over} | "
               f"{free_over} | {difference(a, b)} | {a['longest']} | {b['longest']} |")
    middle = [f"{statistics.median(r):.2f}" for r in zip(*ratios)]
    yield f"| median | | | {middle[0]} | | {middle[1]} | | {middle[2]} | {middle[3]} | {middle[4]} | {datetime.date.today().isoformat()} | | |"


if __name__ == "__main__":
    lines = list(table(os.environ["NKX_DUMPS"]))
    print("\n".join(lines))
    if "--write" in sys.argv:
        write(lines, HEAD, ABOUT)
