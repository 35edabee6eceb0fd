"""Simulated time over the roofline of the kernels in tests/bench/roofline, without knobs, on trn2.

    PYTHONPATH=tests python3 tests/bench/roofline.py [-k WORD]… [--no-bars] [--json FILE]

The roof is the larger of two times: that of the inputs' and outputs' bytes at the rate at which one core reads and writes HBM,
and that of the products at the Tensor engine's peak for the inputs' type.  Both rates are the simulator's
(compiler/sim/cost.def).  A kernel states its products as FLOPS.  No values are computed.  Exits with 1 if a bar is missed.
"""
import argparse
import json
import pathlib
import re
import sys
import time

from support import compiler, timing
from support.paths import TESTS

FOLDER = TESTS / "bench/roofline"
# The most times the roof, and why not 1.  Where no reason is given: what blocking, fusion and a good order leave.
BARS = {
    "matmul_1024_f32": (1.3, ""),
    "matmul_1024_bf16": (1.6, "the first blocks arrive before the first product, half clock at the start"),
    "matmul_4096_bf16": (1.15, ""),
    "softmax": (1.5, ""),
    "layernorm": (1.6, ""),
    "rmsnorm": (1.6, ""),
    "gelu": (1.6, ""),
    "sigmoid": (1.6, ""),
    "chain": (1.4, ""),
    "swiglu": (1.6, ""),
    "attention_bf16": (8, "4 M scores are read by max, exp and products: Vector and Scalar take 4 times the products' time"),
    "attention_f32": (3, "the same at a quarter of the products' rate"),
    "decoder_128": (4, "128 rows fill one tile: each step waits for the one before"),
    "decoder_2048": (2, ""),
    "column_sum": (2, ""),
    "transpose_add": (2, "a transpose on the Tensor engine or by DMA is slower than a copy"),
    "cumsum": (3, "one scan of 2048 elements, two cycles each, between two transfers of 1 MiB"),
    "batchnorm": (3, "mean and variance are complete before the first result: x stays in SBUF, load and store do not overlap"),
    "topk": (2.5, "max8 and find_index8 take a cycle an element each on Vector: 1.7 times the roof, and the first and last transfer"),
    "rope": (3, "six passes over half of the elements on Vector: 2.4 times the roof, less what GpSimd takes over"),
    "moe_routing": (3, "tokens lie across partitions for the softmax, so x is transposed for the product: 32 transfers "
                       "of 256 KiB; then a dozen short instructions for each four of 32 tiles, the last ones after the last transfer"),
    "depthwise": (6, "nine products and sums of 25,088 elements a partition, a cycle or two each, shared by Vector, GpSimd and the "
                     "Tensor engine (diagonal weights)"),
    "mamba_scan": (75, "32,768 states a step side by side are 64 scans of 64 steps, two cycles a step, between three passes on other engines; the roof is 0.4 MB"),
}
HEAD = ["kernel", "roof us", "simulated us", "ratio", "bar", "instructions", "DMA", "HBM MB", "one partition", "bound", "compiled s"]
FORM = "{:18} {:>9} {:>12} {:>8} {:>6} {:>12} {:>7} {:>8} {:>13}  {:8} {:>10}"


def roof_us(kernel, flops, row):
    """Of a compiled kernel; `row` has the machine's rates."""
    size = sum(compiler.dtype(t["dtype"]).itemsize * product(t["shape"]) for t in kernel["inputs"] + kernel["outputs"])
    kind = "bf16" if kernel["inputs"][0]["dtype"] == "bfloat16" else "f32"
    return max(size / row["gb_s"] / 1e3, flops / row["tflops"][kind] / 1e6)


def product(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def flops_of(path):
    """The module's FLOPS; 0 without.  Its lines of capitals are arithmetic, so that nothing of the kernel has to be imported."""
    names = {}
    for line in path.read_text().splitlines():
        if re.match(r"[A-Z, ]+ = ", line):
            exec(line, names)
    return names.get("FLOPS", 0)


def measured(path, arguments):
    begin = time.perf_counter()
    (kernel,) = timing.compiled(path, *arguments)
    took = time.perf_counter() - begin
    (row,) = timing.rows([timing.last_text(kernel)])
    roof = roof_us(kernel, flops_of(path), row)
    return {**row, "roof_us": roof, "ratio": row["us"] / roof, "compiled_s": took}


def line(name, row, bar):
    print(FORM.format(name, f"{row['roof_us']:.1f}", f"{row['us']:.1f}", f"{row['ratio']:.2f}" + (" !"[row["ratio"] > bar]), f"{bar:g}",
                      row["instructions"], row["transfers"], f"{row['hbm_bytes'] / 1e6:.1f}",
                      f"{timing.share_on_one_partition(row):.1%}", row["bound"], f"{row['compiled_s']:.1f}"), flush=True)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("-k", action="append", default=[], metavar="WORD", help="only kernels whose name has it")
    args.add_argument("--no-bars", action="store_true", help="always exit with 0 if the kernels compile")
    args.add_argument("--json", help="write the rows there")
    args.add_argument("arguments", nargs="*", help="more arguments for nkx compile, after --")
    args = args.parse_args()
    paths = [p for p in sorted(FOLDER.glob("*.py")) if not args.k or any(k in p.stem for k in args.k)]
    out, failed = {}, []
    print(FORM.format(*HEAD))
    for path in paths:
        bar = BARS[path.stem][0]
        try:
            out[path.stem] = measured(path, args.arguments)
        except RuntimeError as e:  # refused by the compiler, or more executions than the simulator counts
            print(f"{path.stem:18} {str(e).split(': ', 1)[1].strip()}", flush=True)
            failed.append(path.stem)
            continue
        line(path.stem, out[path.stem], bar)
    missed = [n for n, r in out.items() if r["ratio"] > BARS[n][0]]
    print(f"\n{len(out) - len(missed)} of {len(paths)} bars are met; ! marks the others")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(out, indent=1))
    sys.exit(1 if failed or (missed and not args.no_bars) else 0)


if __name__ == "__main__":
    main()
