"""Benchmarks, as ratios in one run.

The example matmul_bias_relu (a matmul, an add and a maximum, with knobs) is compiled over HTTP by a real server: traced,
every stage, texts and maps, in a jailed child.  Peers are measured in the same run, interleaved with ours, on the same
IR: one `mlir-opt-22` process per pass for as many passes as we have stages after the trace, and a single process.

A Llama decoder layer shows how the time grows with a kernel: to its first stage on the wire, and to its end.

Each small example is compiled over HTTP, and chains of operations, one ten times as long as the other, in a process, to their last
stages.

Two texts of 50,000 lines are compared, every name of the second another one and one operation in a hundred edited; and two
large stages over HTTP.  The HLO passes' times are compared for ten times the instructions.

    PYTHONPATH=tests python3 tests/bench/bench.py [--rounds N] [--json FILE]
"""
import argparse
import json
import pathlib
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

from support.paths import BUILD, ROOT, WORKER
from support.server import JSON, Server

MLIR_OPT = "mlir-opt-22"
BAR_PER_PASS = 50
BAR_TRACED_US = 15
BAR_HLO_GROWTH = 12
BAR_SMALL_MS, BAR_DECODER_MS = 25, 400
BAR_CHAIN_GROWTH = 12  # the time of the longer of two chains over that of the shorter one, which has a tenth of its operations
# of each chain its inputs, what repeats, its operations, and the operations of the shorter and the longer one
CHAINS = {
    "element-wise": (["x=128x128:f32"], "    y = np.maximum(np.exp(y * 0.{a}) - x, 0.{b})\n", 4, (500, 5000)),
    "of products": (["x=128x128:f32", "w=128x128:f32"], "    y = np.maximum(y @ w, 0.{b})\n", 2, (125, 1250)),
}
# where profiles of the passes that are slow say that their time goes
WHY = {
    "one-shot-bufferize": "upstream; two fifths decide which tensors are written in place, each read of a tensor "
                          "against its writes (slices of arguments each for itself); half rewrites the operations, the "
                          "types of subviews above all",
    "apply-and-strip-transforms": "upstream's interpreter of transform scripts: tiling, promotion and, per "
                                  "operation, a search for it by its number",
    "canonicalize": "upstream; tries the patterns of all dialects until nothing changes; two fifths are patterns, "
                    "a fifth is the search for dead operations, the rest folding and getting ready",
    "linalg-to-nisa": "half is ours, half upstream's lower-affine, canonicalize and cse for the index arithmetic",
    "insert-spill-reload": "measures what SBUF holds, and where that is more than half of it lowers a clone to see what "
                           "instructions need besides",
}


def compile(connection, body):
    connection.request("POST", "/api/v1/compile", body, {**JSON, "Cache-Control": "no-store"})
    return connection.getresponse().read()


def milliseconds(f):
    t = time.perf_counter()
    f()
    return (time.perf_counter() - t) * 1e3


def percentiles(name, values):
    v = sorted(values)
    p = {"p50": statistics.median(v), "p95": v[int(len(v) * 0.95) - 1], "min": v[0], "max": v[-1]}
    print(f"{name:58s} p50 {p['p50']:8.2f} ms   p95 {p['p95']:8.2f}   min {p['min']:8.2f}   max {p['max']:8.2f}")
    return p


def passes_of(stages):
    """The mlir-opt arguments that a person would run to see the same MLIR stages."""
    found = []
    for s in stages:
        m = re.fullmatch(r"builtin\.module\((.*)\)", s["pass"])
        if m:
            found.append(f"--pass-pipeline={s['pass']}")
    return found


def stream(connection, body):
    """Compiles with frames as they come: milliseconds to the first stage and to the end, and the stages' frames."""
    t = time.perf_counter()
    connection.request("POST", "/api/v1/compile", body,
                       {**JSON, "Accept": "application/x-ndjson"})
    answer = connection.getresponse()
    first, lines = None, []
    while line := answer.readline():
        lines.append(line)
        if first is None and line.startswith(b'{"frame":"stage"'):
            first = time.perf_counter()
    end = time.perf_counter()
    frames = [json.loads(line) for line in lines]
    assert frames[-1]["frame"] == "end" and frames[-1]["status"] == "ok", [f for f in frames if f["frame"] == "diagnostic"]
    return (first - t) * 1e3, (end - t) * 1e3, [f["stage"] for f in frames if f["frame"] == "stage"]


def show_stages(stages):
    for s in stages:
        print(f"  {s['index']:3d} {s['name']:28s} {s['time_us'] / 1e3:8.2f} ms")
    print("slowest:")
    for s in sorted(stages, key=lambda s: -s["time_us"])[:3]:
        print(f"  {s['name']} {s['time_us'] / 1e3:.1f} ms: {WHY.get(s['name'], 'not profiled yet')}")


def middle(runs):
    """The stages of several runs of one kernel, each with its median time."""
    times = [[s["time_us"] for s in run] for run in runs]
    return [s | {"time_us": statistics.median(t)} for s, t in zip(runs[0], zip(*times))]


def decoder_layer(connection, rounds):
    """Hidden size 1024, 8 heads, 128 tokens: every stage, text and map, over HTTP, jailed."""
    source = (ROOT / "explorer/examples/12_decoder_layer.py").read_text()
    runs = [stream(connection, json.dumps({"source": f"# {i}\n{source}"})) for i in range(max(3, rounds // 6))]
    stages = middle([r[2] for r in runs])
    out = {}
    print(f"\nexample decoder_layer: {len(stages)} stages, {sum(stages[-1]['op_counts'].values())} operations at the end\n")
    out["first_stage"] = percentiles("request to first stage on the wire (bar: 100 ms)", [r[0] for r in runs])
    out["end"] = percentiles(f"request to end (bar: {BAR_DECODER_MS} ms)", [r[1] for r in runs])
    print(f"\ntime per stage (median of {len(runs)}):")
    show_stages(stages)
    return out


def small_examples(connection, rounds):
    """The median over HTTP of each example but the decoder layer; returns the slowest."""
    slowest = 0
    print(f"\nsmall examples over HTTP, jailed, p50 (bar: {BAR_SMALL_MS} ms):")
    for path in sorted((ROOT / "explorer/examples").glob("*.py")):
        if "decoder_layer" in path.name:
            continue
        source = path.read_text()
        times = [milliseconds(lambda: compile(connection, json.dumps({"source": f"# {i}\n{source}"}))) for i in range(rounds)]
        slowest = max(slowest, statistics.median(times))
        print(f"  {path.stem:28s} {statistics.median(times):8.2f} ms")
    return slowest


def chain_seconds(kind, operations):
    """Processor time to the last stage of a kernel of so many operations."""
    inputs, line, each, _ = CHAINS[kind]
    steps = "".join(line.format(a=1 + k % 7, b=1 + k % 9) for k in range(operations // each))
    names = ", ".join(x.split("=")[0] for x in inputs)
    with tempfile.NamedTemporaryFile("w", suffix=".py") as f:
        f.write(f"import numpy as np\ndef f({names}):\n    y = x\n{steps}    return y\n")
        f.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([WORKER, "compile", f.name, "--quiet", *(a for x in inputs for a in ("--input", x)), "--json", "/dev/null"],
                       check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def chains():
    """How the time of all passes grows with the operations; 10 would be linear.  Returns the most of all chains."""
    print()
    most = 0
    for kind, (*_, lengths) in CHAINS.items():
        empty, *seconds = (chain_seconds(kind, n) for n in (0, *lengths))
        growth = (seconds[1] - empty) / (seconds[0] - empty)
        most = max(most, growth)
        print(f"chain {kind}: {lengths[0]:,} operations {seconds[0] - empty:.2f} s of processor time, {lengths[1]:,} operations "
              f"{seconds[1] - empty:.2f} s: {growth:.1f} times (bar: {BAR_CHAIN_GROWTH})")
    return most


# 18 operations a round
TRACED = """import numpy as np

def step(x, w, v):
    y = x @ w + v
    y = np.exp(y - np.max(y, axis=-1, keepdims=True))
    y = y / np.sum(y, axis=-1, keepdims=True)
    z = np.where(y > 0.5, y, x[:, ::-1])
    z = np.transpose(np.reshape(z, (4, 16, 32)), (1, 0, 2))
    z = np.concatenate([z[:8], z[8:]], axis=0)
    return np.tanh(np.reshape(z, (64, 32))) * 0.5

def kernel(x, w, v):
    for _ in range(278):
        x = step(x, w, v)
    return x
"""


def tracing(connection, rounds):
    """A kernel of 5,004 NumPy operations: from Python's first line of it to the whole HLO, with each one's place."""
    inputs = [{"name": n, "shape": s, "dtype": "float32"} for n, s in (("x", [64, 32]), ("w", [32, 32]), ("v", [32]))]
    times = []
    for i in range(rounds):
        request = {"source": f"# {i}\n{TRACED}", "inputs": inputs, "options": {"stop_after": "trace"}}
        connection.request("POST", "/api/v1/compile", json.dumps(request), JSON)
        result = json.loads(connection.getresponse().read())
        trace = result["kernels"][0]["stages"][0]
        assert trace["op_counts"]["dot"] == 278, result["diagnostics"]
        times.append(trace["time_us"] / 5004)
    print()
    t = {"p50": statistics.median(times), "max": max(times)}
    print(f"tracing, microseconds an operation (bar: {BAR_TRACED_US})           p50 {t['p50']:8.2f}      max {t['max']:8.2f}")
    return t


def program(operations, first_name):
    return "".join(f"  %{i + first_name} = d.op{kind} %{a + first_name}, %{b + first_name} : tensor<{kind % 7}x16xf32>\n"
                   for i, (kind, a, b) in enumerate(operations))


def diff_of_large_texts(rounds):
    """In the server's own code, without HTTP: build/bench/diff_speed prints the milliseconds and the lines in hunks."""
    draw = random.Random(1)
    v = [(draw.randrange(40), draw.randrange(i or 1), draw.randrange(i or 1)) for i in range(50000)]
    edited = sorted(draw.sample(range(len(v)), 500))
    w = list(v)
    for i in edited:
        w[i] = (50 + draw.randrange(40), *v[i][1:])
    with tempfile.TemporaryDirectory() as tmp:
        paths = [pathlib.Path(tmp) / name for name in "ab"]
        paths[0].write_text(program(v, 0))
        paths[1].write_text(program(w, 70000))
        runs = [json.loads(subprocess.run([BUILD / "bench/diff_speed", *paths], capture_output=True, check=True).stdout)
                for _ in range(rounds)]
    assert runs[0]["lines"] == [i + 1 for i in edited], "wrong hunks"
    print()
    return percentiles("diff, 50,000 lines against 50,000 (bar: 300 ms)", [r["ms"] for r in runs])


def hlo_passes():
    """build/bench/hlo_speed: the time of each HLO pass for ten times the instructions; 10 would be linear."""
    lines = subprocess.run([BUILD / "bench/hlo_speed", "5000", "50000"], capture_output=True, check=True).stdout.splitlines()
    few, many = map(json.loads, lines)
    growth = {name: many[name] * many["ops"] / (few[name] * few["ops"]) for name in few if name != "ops" and few[name]}
    total = [sum(v for name, v in x.items() if name not in ("ops", "read")) * x["ops"] for x in (few, many)]
    growth["all passes"] = total[1] / total[0]
    print(f"\nHLO passes, 50,000 instructions against 5,000 (bar: {BAR_HLO_GROWTH} times):")
    for name, times in sorted(growth.items(), key=lambda g: -g[1]):
        print(f"  {name:32} {times:5.1f} times{f', {many[name]} ns an instruction' if name in many else ''}")
    return growth


def one_result(connection):
    source = (ROOT / "explorer/examples/12_decoder_layer.py").read_text()
    connection.request("POST", "/api/v1/compile", json.dumps({"source": source}), JSON)
    result = json.loads(connection.getresponse().read())
    return result["kernels"][0]["stages"], result["key"]


def diff_over_http(connection, stages, key):
    """The two largest neighbours of a result's stages."""
    n = max(range(1, len(stages)), key=lambda i: len(stages[i - 1]["text"]) + len(stages[i]["text"]))
    lines = [stages[i]["text"].count("\n") for i in (n - 1, n)]

    def ask():
        connection.request("GET", f"/api/v1/results/{key}/diff?from={n - 1}&to={n}")
        assert connection.getresponse().read()

    return percentiles(f"diff over HTTP, {lines[0]:,} lines against {lines[1]:,}", [milliseconds(ask) for _ in range(20)])


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--rounds", type=int, default=60)
    args.add_argument("--json")
    args = args.parse_args()
    source = (ROOT / "explorer/examples/01_matmul_bias_relu.py").read_text()
    out = {}

    with Server() as server, tempfile.TemporaryDirectory() as tmp:
        connection = server.connect(timeout=60)

        def body(i):  # a different source each time: no cache of any kind can help
            return json.dumps({"source": f"# {i}\n{source}"})

        result = json.loads(compile(connection, body(-1)))
        assert result["status"] == "ok", result["diagnostics"]
        stages = result["kernels"][0]["stages"]
        first = next(i for i, s in enumerate(stages) if s["name"] == "hlo-to-linalg")
        passes = passes_of(stages)
        n_passes = len(stages) - 1  # every stage but the trace is a pass
        ir = pathlib.Path(tmp) / "in.mlir"
        ir.write_text(stages[first]["text"])

        def mlir_opt(argument):
            subprocess.run([MLIR_OPT, f"--irdl-file={BUILD}/dialects.irdl", argument, ir], stdout=subprocess.DEVNULL, check=True)

        for i in range(5):
            compile(connection, body(f"warm {i}"))
        ours, per_pass, single = [], [], []
        for i in range(args.rounds):
            ours.append(milliseconds(lambda: compile(connection, body(i))))
            if i % 6 == 0:  # the peers are slow; every sixth round is plenty
                per_pass.append(milliseconds(lambda: [mlir_opt(passes[k % len(passes)]) for k in range(n_passes)]))
                single.append(milliseconds(lambda: mlir_opt(passes[0])))

        print(f"example matmul_bias_relu: {len(stages)} stages; {args.rounds} rounds\n")
        out["ours"] = percentiles("all stages, over HTTP, jailed", ours)
        out["per_pass"] = percentiles(f"{n_passes} passes, one {MLIR_OPT} each, no tracing", per_pass)
        out["single"] = percentiles(f"one {MLIR_OPT}, one pass", single)
        out["ratio_per_pass"] = out["per_pass"]["p50"] / out["ours"]["p50"]
        out["ratio_single"] = out["single"]["p50"] / out["ours"]["p50"]
        print(f"\n{out['ratio_per_pass']:.1f} times faster than one process per pass (bar: {BAR_PER_PASS})")
        print(f"{out['ratio_single']:.1f} times faster than a single process (bar: 1)")

        streams = [stream(connection, body(f"stream {i}")) for i in range(20)]
        out["first_stage"] = percentiles("request to first stage on the wire", [r[0] for r in streams])

        print(f"\ntime per stage (median of {len(streams)}):")
        show_stages(middle([r[2] for r in streams]))
        out["decoder_layer"] = decoder_layer(connection, args.rounds)
        out["small_p50"] = small_examples(connection, max(5, args.rounds // 6))
        out["tracing"] = tracing(connection, 20)
        out["diff_http"] = diff_over_http(connection, *one_result(connection))
    out["chain_growth"] = chains()
    out["diff"] = diff_of_large_texts(10)
    out["hlo_growth"] = hlo_passes()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(out, indent=1))
    decoder = out["decoder_layer"]
    ok = out["ratio_per_pass"] >= BAR_PER_PASS and out["ratio_single"] > 1
    ok = ok and out["diff"]["p50"] < 300
    ok = ok and out["tracing"]["p50"] < BAR_TRACED_US
    ok = ok and out["hlo_growth"]["all passes"] <= BAR_HLO_GROWTH
    ok = ok and decoder["first_stage"]["p50"] <= 100 and decoder["end"]["p50"] < BAR_DECODER_MS
    ok = ok and out["small_p50"] < BAR_SMALL_MS and out["chain_growth"] < BAR_CHAIN_GROWTH
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
