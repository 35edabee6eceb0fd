"""The cost of the check: `nkx compile --check` in processor time, and a small check through the service.

    PYTHONPATH=tests python3 tests/bench/check.py [--json FILE]

Processor time is user and system time of the command with its children, the least of three runs: what the command needs when it
has the machine to itself.  A small check is the median of requests over HTTP, each with a source that no cache knows, of every
stage in a jailed child."""
import argparse
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from support.paths import NKX, ROOT
from support.server import JSON, Server

EXAMPLES = ROOT / "explorer/examples"
ROUNDS, REQUESTS = 3, 40
# three operations in a round
CHAIN = """import numpy as np

def chain(x):
    y = x
    for i in range(100):
        y = np.maximum(np.exp(y * (0.1 * (i % 7 + 1))) - x, 0.1 * (i % 9 + 1))
    return y
"""
# name, the kernel's file or source, arguments, seconds of processor time at most
COMMANDS = [
    ("check of a decoder layer", EXAMPLES / "12_decoder_layer.py", [], 3),
    ("check of a chain of 300 operations", CHAIN, ["--input", "x=128x128:f32"], 10),
]
SMALL = ["02_add_bias", "03_softmax"]
SMALL_BAR_MS = 150


def processor_s(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert not done.returncode, done.stderr[-2000:]
    (kernel,) = json.loads(done.stdout)["kernels"]
    assert all(s.get("check", {}).get("status", "pass") == "pass" for s in kernel["stages"])
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(name, source, arguments, bar):
    with tempfile.TemporaryDirectory() as tmp:
        path = source
        if isinstance(source, str):
            path = pathlib.Path(tmp) / "kernel.py"
            path.write_text(source)
        command = [NKX, "compile", path, "--quiet", "--json", "-", *arguments]
        plain = min(processor_s(*command) for _ in range(ROUNDS))
        checked = min(processor_s(*command, "--check") for _ in range(ROUNDS))
    print(f"{name:40s} {checked:6.2f} s of processor time (bar: {bar}); {plain:.2f} s without a check")
    return {"check_s": checked, "compile_s": plain, "bar": bar}


def small(connection, name):
    """Milliseconds of requests with the check."""
    source, times = (EXAMPLES / f"{name}.py").read_text(), []
    for i in range(REQUESTS + 3):
        body = json.dumps({"source": f"# {i}\n{source}", "options": {"check": True}})
        t = time.perf_counter()
        connection.request("POST", "/api/v1/compile", body, {**JSON, "Cache-Control": "no-store"})
        answer = connection.getresponse().read()
        if i >= 3:
            times.append((time.perf_counter() - t) * 1e3)
    stages = json.loads(answer)["kernels"][0]["stages"]
    assert all(s["check"]["status"] == "pass" for s in stages), answer[-2000:]
    p50 = statistics.median(times)
    print(f"{'check of ' + name + ' over HTTP':40s} p50 {p50:6.1f} ms (bar: {SMALL_BAR_MS}); least {min(times):.1f}")
    return {"p50_ms": p50, "min_ms": min(times), "bar_ms": SMALL_BAR_MS}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--json")
    args = args.parse_args()
    out = {name: measure(name, *rest) for name, *rest in COMMANDS}
    with Server() as server:
        connection = server.connect(timeout=60)
        out |= {name: small(connection, name) for name in SMALL}
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(out, indent=1))
    ok = all(r["check_s"] < r["bar"] if "bar" in r else r["p50_ms"] < r["bar_ms"] for r in out.values())
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
