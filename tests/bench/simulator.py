"""The simulator's values against NumPy on one thread, as ratios of processor time in one run, and its memory.

    PYTHONPATH=tests python3 tests/bench/simulator.py [--json FILE]

Kernels are compiled without knobs; their instructions in program order (linalg-to-nisa) and their engine programs run on the
same inputs as NumPy.  A Llama decoder layer (explorer/examples) has no bar against NumPy, but one in seconds, for values and
timeline together and for the timeline alone.  A run may take twice the memory of arguments and results, and 64 MiB.  Exits
with 1 if a bar is missed."""
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
from support.paths import BUILD, NKX, ROOT  # noqa: E402
from support.simulator import Simulator  # noqa: E402

ROUNDS = 9
MIB, MIB_MORE = 2**20, 64
DECODER_MS, DECODER_TIME_MS = 3000, 300  # values and time; time alone
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


def warm_ms(function, arrays):
    function(*arrays)  # brings the arrays into the caches, and memory for the results into the process
    begin = time.process_time()
    function(*arrays)
    return (time.process_time() - begin) * 1e3


def simulated(text, arrays, between=lambda: None):
    """Median time of the runs in ms, and the MiB that a run takes: the arrays, the results, and what the process grew by."""
    with Simulator() as s:
        times, grown = [], []
        for _ in range(ROUNDS):
            between()
            results = s.run(text, arrays)
            times.append(s.run_us / 1e3)
            grown.append(s.grown_kib / 1024)
        given = sum(a.nbytes for a in (*arrays, *results)) / MIB
        return {"ms": statistics.median(times), "mib": given + grown[0], "mib_bar": 2 * given + MIB_MORE}


def report(name, what, row):
    """Prints a row; true if its bars are met."""
    is_met = row["ms"] <= row["ms_bar"] and row["mib"] <= row["mib_bar"]
    ratio = f" NumPy {row['numpy_ms']:6.1f} ms: {row['ms'] / row['numpy_ms']:5.2f} times" if "numpy_ms" in row else " " * 31
    print(f"{name:31s} {what:16s} {row['ms']:7.1f} ms of {row['ms_bar']:7.1f},{ratio};  {row['mib']:4.0f} MiB of {row['mib_bar']:4.0f}  "
          f"{'ok' if is_met else 'MISSED'}")
    return is_met


def against_numpy(name, body, shapes, bar):
    """A row per stage.  NumPy and the simulator take turns, so that what else the machine does slows both."""
    source = f"import numpy as np\n\ndef kernel({', '.join('xy'[:len(shapes)])}):\n    {body}\n"
    kernel, names, out = compiled(source, shapes), {}, {}
    exec(source, names)
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    for stage in STAGES:
        plain = []
        row = simulated(compiler.stage(kernel, stage)["text"], arrays, lambda: plain.append(warm_ms(names["kernel"], arrays)))
        numpy_ms = statistics.median(plain)
        out[stage] = {**row, "numpy_ms": numpy_ms, "ms_bar": bar * numpy_ms}
    return out


def time_only(text):
    """Processor time of the timeline alone, in ms."""
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "kernel.nisa"
        path.write_text(text)
        runs = [subprocess.run([BUILD / "bench/measure", "trn2", path], capture_output=True, check=True) for _ in range(ROUNDS)]
    return statistics.median(json.loads(r.stdout)["took_us"] / 1e3 for r in runs)


def decoder_layer():
    (kernel,) = compiler.compile((ROOT / "explorer/examples/12_decoder_layer.py").read_text())["kernels"]
    arrays, out = compiler.random_inputs(kernel), {}
    texts = {stage: compiler.stage(kernel, stage)["text"] for stage in STAGES}
    ms = time_only(texts["engine-programs"])
    for stage, text in texts.items():
        assert "__elided__" not in text, f"{stage}: constants of the layer are not in the text"
        row = simulated(text, arrays)
        out[stage] = {**row, "ms": row["ms"] + ms, "ms_bar": DECODER_MS}
    out["time alone"] = {"ms": ms, "ms_bar": DECODER_TIME_MS, "mib": 0, "mib_bar": 0}
    return out


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--json")
    args = args.parse_args()
    out = {name: against_numpy(name, *rest) for name, *rest in KERNELS}
    out["decoder layer"] = decoder_layer()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(out, indent=1))
    are_met = [report(name, what, row) for name, rows in out.items() for what, row in rows.items()]
    sys.exit(0 if all(are_met) else 1)


if __name__ == "__main__":
    main()
