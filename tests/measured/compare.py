"""Simulated times beside measured ones: python -m measured.compare [--table FILE].

Builds each case of kernels.py, times it with build/bench/measure, adds what the measurement contains besides (a launch or a
profile's edges), and prints a table with the ratio; then the median error of each group.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from measured.kernels import CASES

MEASURE = Path(os.environ.get("BUILD", "build")) / "bench" / "measure"
GOALS = {("trn2", "traced"): 0.10, ("trn2", "described"): 0.20, ("trn1", "described"): 0.30}
# What a measurement contains besides the program, microseconds: cost.def, SIM_LAUNCH and SIM_PROFILE_EDGES.
BESIDES = {"latency": {"trn1": 8.0, "trn2": 8.9}, "profile": {"trn1": 15.0, "trn2": 15.7}, "core": {"trn1": 0.0, "trn2": 0.0}}


def simulate(case):
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as f:
        f.write(case.build().text())
        f.flush()
        done = subprocess.run([MEASURE, case.target, f.name], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{case.name}: {done.stderr}")
    return json.loads(done.stdout)


def rows(cases=CASES):
    for case in cases:
        result = simulate(case)
        us = result["total_ns"] / 1000 + BESIDES[case.basis][case.target]
        yield case, us, us / case.measured_us


def error(ratio):
    return abs(ratio - 1)


def summary(done):
    for (target, kind), goal in GOALS.items():
        errors = [error(r) for c, _, r in done if (c.target, c.kind) == (target, kind)]
        if errors:
            yield target, kind, len(errors), median(errors), goal


def table(done):
    yield "| kernel | target | measured µs | simulated µs | ratio | what is known, what was assumed |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for c, us, ratio in done:
        yield f"| {c.name} | {c.target} | {c.measured_us:g} | {us:.1f} | {ratio:.2f} | {c.kind}; {c.note or 'as described'} |"
    yield ""
    for target, kind, n, middle, goal in summary(done):
        yield f"Median error on {target}, {kind}, {n} kernels: {middle:.1%} (goal {goal:.0%})."


if __name__ == "__main__":
    only = [a for a in sys.argv[1:] if not a.startswith("--")]
    lines = list(table(list(rows([c for c in CASES if all(o in f"{c.name} {c.target}" for o in only)]))))
    print("\n".join(lines))
