"""The simulator's values against NumPy on one thread, as ratios of processor time in one run, and its memory.

    PYTHONPATH=tests python3 tests/bench/simulator.py [--json FILE]

Kernels are compiled without knobs; their instructions in program order (linalg-to-nisa) and their engine programs run on the
same inputs as NumPy.  A Llama decoder layer (explorer/examples) has no bar against NumPy, but one in seconds."""
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is loaded

import argparse  # noqa: E402
import json  # noqa: E402
import pathlib  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402

from support import compiler  # noqa: E402
from support.paths import NKX, ROOT  # noqa: E402
from support.simulator import Simulator  # noqa: E402

ROUNDS = 7
DECODER_BAR_S = 3
SOFTMAX = "e = np.exp(x - np.max(x, axis=-1, keepdims=True))\n    return e / np.sum(e, axis=-1, keepdims=True)"
# name, the kernel's body, shapes of x and y, the most times NumPy's time
KERNELS = [
    ("product 1024^3 f32", "return x @ y", [(1024, 1024), (1024, 1024)], 2),
    ("softmax 1024x4096", SOFTMAX, [(1024, 4096)], 3),
    ("elementwise 1024x4096", "return x * y + x", [(1024, 4096), (1024, 4096)], 3),
    ("sigmoid linear unit 1024x4096", "return x / (1 + np.exp(-x))", [(1024, 4096)], 3),
    ("tanh of a sum 1024x4096", "return np.tanh(x * 2 + y)", [(1024, 4096), (1024, 4096)], 3),
]
STAGES = ("linalg-to-nisa", "engine-programs")


def compiled(source, shapes):
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "kernel.py"
        path.write_text(source)
        inputs = [w for n, s in zip("xy", shapes) for w in ("--input", f"{n}={'x'.join(map(str, s))}:f32")]
        done = subprocess.run([NKX, "compile", path, "--quiet", "--json", "-", *inputs], capture_output=True, check=True)
    return json.loads(done.stdout)["kernels"][0]


def numpy_ms(function, arrays):
    times = []
    for _ in range(ROUNDS):
        t = time.process_time()
        function(*arrays)
        times.append((time.process_time() - t) * 1e3)
    return statistics.median(times)


def simulated_ms(text, arrays):
    """Median, and the MiB by which the process grew beyond the arrays that the test gave it."""
    with Simulator() as s:
        times = []
        for _ in range(ROUNDS):
            s.run(text, arrays)
            times.append(s.run_us / 1e3)
        return statistics.median(times), s.most_kib / 1024


def measure(name, body, shapes, bar):
    source = f"import numpy as np\n\ndef kernel({', '.join('xy'[:len(shapes)])}):\n    {body}\n"
    kernel, names = compiled(source, shapes), {}
    exec(source, names)
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    plain = numpy_ms(names["kernel"], arrays)
    out = {"numpy_ms": plain, "bar": bar}
    for stage in STAGES:
        ms, mib = simulated_ms(compiler.stage(kernel, stage)["text"], arrays)
        out[stage] = {"ms": ms, "ratio": ms / plain, "mib": mib}
        print(f"{name:32s} {stage:16s} {ms:8.1f} ms, NumPy {plain:6.1f} ms: {ms / plain:5.2f} times (bar: {bar}); process {mib:.0f} MiB")
    return out


def decoder_layer():
    source = (ROOT / "explorer/examples/12_decoder_layer.py").read_text()
    (kernel,) = compiler.compile(source)["kernels"]
    arrays, out = compiler.random_inputs(kernel), {}
    for stage in STAGES:
        text = compiler.stage(kernel, stage)["text"]
        if "__elided__" in text:
            continue
        out[stage], mib = simulated_ms(text, arrays)
        print(f"{'decoder layer':32s} {stage:16s} {out[stage]:8.1f} ms (bar: {DECODER_BAR_S} s); process {mib:.0f} MiB")
    return out


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--json")
    args = args.parse_args()
    out = {name: measure(name, *rest) for name, *rest in KERNELS}
    out["decoder layer"] = decoder_layer()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(out, indent=1))
    ok = all(r["linalg-to-nisa"]["ratio"] <= r["bar"] for r in out.values() if "bar" in r)
    ok = ok and all(ms < DECODER_BAR_S * 1e3 for ms in out["decoder layer"].values())
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
