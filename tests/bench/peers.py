"""Our code beside another's, in simulated time on trn2: NKX_DUMPS=DIRECTORY PYTHONPATH=tests python3 tests/bench/peers.py [--no-bars] [--write]

    dumps   the programs of another compiler (measured/dumps.py), with the knobs that they have, and without any.  Bars: never
            slower with the knobs, and twice as fast at the median without.  Left out if NKX_DUMPS is not set.
    nki     what the NumPy formula compiles to, beside the same kernel written by hand with NKI (explorer/examples/nki).  Bar: 1.25
            times the hand-written one's time.  --write puts this table into tests/RESULTS.md.
"""
import argparse
import datetime
import os
import pathlib
import statistics
import sys
import tempfile

from measured import compare, dumps
from support import timing
from support.paths import ROOT

NKI_BAR, MEDIAN_BAR = 1.25, 0.5
FORMULAS = """import numpy as np


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(q_t, k_t, v):
    return softmax(q_t.T @ k_t * q_t.shape[0] ** -0.5) @ v


def product(lhs_t, rhs):
    return lhs_t.T @ rhs


def rmsnorm(x, weights):
    wide = x.astype(np.float32)
    return (wide / np.sqrt(np.mean(np.square(wide), axis=-1, keepdims=True) + 1e-5) * weights).astype(x.dtype)
"""
HEAD = "## What NumPy compiles to beside NKI written by hand"
ABOUT = """
Simulated times on trn2, without a launch, {date}. By hand: kernels of explorer/examples/nki. Ours: the NumPy formula of the same
kernel (tests/bench/peers.py), without knobs. The bar is {bar} times.
"""
# the file of explorer/examples/nki, its kernel, the formula, the inputs
PAIRS = [
    ("12_flash_attention", "flash_attention", "attention", ["q_t=64x256:bfloat16", "k_t=64x256:bfloat16", "v=256x64:bfloat16"]),
    ("12_flash_attention", "flash_attention", "attention", ["q_t=128x2048:bfloat16", "k_t=128x2048:bfloat16", "v=2048x128:bfloat16"]),
    ("08_matmul_tiled", "hoisted", "product", ["lhs_t=256x256:bfloat16", "rhs=256x1024:bfloat16"]),
    ("08_matmul_tiled", "hoisted", "product", ["lhs_t=1024x1024:bfloat16", "rhs=1024x1024:bfloat16"]),
    ("07_rmsnorm", "rmsnorm", "rmsnorm", ["x=256x384:bfloat16", "weights=1x384:float32"]),
    ("07_rmsnorm", "rmsnorm", "rmsnorm", ["x=4096x2048:bfloat16", "weights=1x2048:float32"]),
]


def timed(path, kernel, inputs):
    (found,) = timing.compiled(path, "--kernel", kernel, *(w for i in inputs for w in ("--input", i)))
    return timing.rows([timing.last_text(found)])[0]["us"]


def nki_table(writes):
    """True if the bar is met."""
    is_met = True
    lines = ["| formula | inputs | by hand µs | ours µs | ratio |", "| --- | --- | --- | --- | --- |"]
    print(f"{'formula':12} {'inputs':64} {'by hand us':>12} {'ours us':>12} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as tmp:
        formulas = pathlib.Path(tmp) / "formulas.py"
        formulas.write_text(FORMULAS)
        for file, kernel, formula, inputs in PAIRS:
            theirs = timed(ROOT / f"explorer/examples/nki/{file}.py", kernel, inputs)
            ours = timed(formulas, formula, inputs)
            is_met &= ours <= NKI_BAR * theirs
            print(f"{formula:12} {' '.join(inputs):64} {theirs:12.1f} {ours:12.1f} {ours / theirs:7.2f}{'!' * (ours > NKI_BAR * theirs)}", flush=True)
            lines.append(f"| {formula} | {', '.join(inputs)} | {theirs:.1f} | {ours:.1f} | {ours / theirs:.2f} |")
    if writes:
        compare.write(lines, HEAD, ABOUT.format(bar=NKI_BAR, date=datetime.date.today().isoformat()))
    return is_met


def dump_table(directory):
    """True if the bars are met."""
    ratios, free = [], []
    print(f"{'program':24} {'theirs us':>10} {'ours us':>10} {'ratio':>7} {'no knobs us':>12} {'ratio':>7}")
    for kernel, stages in dumps.kernels(directory):
        theirs, ours, without = (dumps.figures(t)["us"] for t in (dumps.theirs(stages), dumps.ours(stages), dumps.ours(stages, knobs=False)))
        ratios.append(ours / theirs)
        free.append(without / theirs)
        print(f"{kernel:24} {theirs:10.1f} {ours:10.1f} {ratios[-1]:7.2f}{' !'[ratios[-1] > 1.0005]}{without:11.1f} {free[-1]:7.2f}", flush=True)
    print(f"{'median':46} {statistics.median(ratios):7.2f} {'':11} {statistics.median(free):7.2f}{'!' * (statistics.median(free) > MEDIAN_BAR)}")
    return max(ratios) <= 1.0005 and statistics.median(free) <= MEDIAN_BAR


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--no-bars", action="store_true", help="always exit with 0")
    args.add_argument("--write", action="store_true", help="put the table of NKI into tests/RESULTS.md")
    args = args.parse_args()
    directory = os.environ.get("NKX_DUMPS")
    is_met = dump_table(directory) if directory else True
    print("" if directory else "another compiler's programs: left out, NKX_DUMPS is not set\n")
    is_met &= nki_table(args.write)
    sys.exit(0 if is_met or args.no_bars else 1)


if __name__ == "__main__":
    main()
