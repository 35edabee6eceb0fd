"""The cost of NKI kernels: `nkx compile` from the source to the engine programs, in processor time.

    PYTHONPATH=tests python3 tests/bench/nki.py [--json FILE]

Processor time is user and system time of the command with its children, the least of three runs: what the command needs when it
has the machine to itself.  Every stage of each kernel has its text; its longest has a bar, too.  The same kernel with 500 to 40,000
calls shows that the time grows with the calls and no faster: beyond what a kernel of 100 takes, per call, at most twice as much
for the most calls as for the fewest that take measurable time."""
import argparse
import functools
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

from support.nki_kernels import HEAD
from support.paths import NKX

ROUNDS = 3
LINES_BAR = 5000
GROWTH_BAR = 2

# a product of 2048 by 2048 by 2048, tiled
PRODUCT = HEAD + """
@nki.jit
def product(lhsT: nl.tensor[nl.bfloat16, (2048, 2048)], rhs: nl.tensor[nl.bfloat16, (2048, 2048)]):
    out = nl.ndarray((2048, 2048), lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(16):
        for n in nl.affine_range(4):
            total = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(16):
                l = nl.ndarray((128, 128), lhsT.dtype, buffer=nl.sbuf)
                r = nl.ndarray((128, 512), rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=l, src=lhsT[k * 128:(k + 1) * 128, m * 128:(m + 1) * 128])
                nisa.dma_copy(dst=r, src=rhs[k * 128:(k + 1) * 128, n * 512:(n + 1) * 512])
                nisa.nc_matmul(dst=total, stationary=l, moving=r)
            result = nl.ndarray((128, 512), out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=result, src=total)
            nisa.dma_copy(dst=out[m * 128:(m + 1) * 128, n * 512:(n + 1) * 512], src=result)
    return out
"""


def chain(calls):
    """Five calls in each round of the inner loop."""
    return HEAD + f"""
@nki.jit
def chain(x: nl.tensor[nl.bfloat16, (12800, 2000)], scale=0.5):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    for i in nl.affine_range({calls // 100}):
        for j in nl.affine_range(20):
            part = (slice(i % 100 * 128, i % 100 * 128 + 128), slice(j * 100, j * 100 + 100))
            t = nl.ndarray((128, 100), x.dtype, buffer=nl.sbuf)
            e = nl.ndarray((128, 100), nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=t, src=x[part])
            nisa.activation(dst=e, op=nl.exp, data=t, scale=scale)
            nisa.tensor_scalar(dst=e, data=e, op0=nl.add, operand0=1.0)
            nisa.tensor_tensor(dst=t, data1=t, data2=e, op=nl.multiply)
            nisa.dma_copy(dst=out[part], src=t)
    return out
"""


def functions(head, calls):
    """Five calls in each round, made by functions of nki.language and by operators or masks where the generation has them."""
    is_beta1 = head is BETA1
    add = "e + 1.0" if is_beta1 else "nl.add(e, 1.0)"
    part = "i_p + i % 100 * 128, i_f + j * 100" if is_beta1 else "i % 100 * 128:i % 100 * 128 + 128, j * 100:j * 100 + 100"
    mask = ", mask=(i_p < 100)" if is_beta1 else ""
    return head + f"""
@nki.jit
def functions(x: {"nt.tensor[12800, 2000]" if is_beta1 else "nl.tensor[nl.float32, (12800, 2000)]"}):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    {"i_p, i_f = nl.arange(128)[:, None], nl.arange(100)[None, :]" if is_beta1 else "pass"}
    for i in nl.sequential_range({calls // 100}):
        for j in nl.affine_range(20):
            t = nl.load(x[{part}]{mask})
            e = nl.exp(t{mask})
            s = nl.multiply({add}, t{mask})
            nl.store(out[{part}], s{mask})
    return out
"""


BETA1 = "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\nimport neuronxcc.nki.typing as nt\n"

# name, source, seconds of processor time at most
COMMANDS = [("a tiled product of 2048 x 2048 x 2048", PRODUCT, 0.5), ("a kernel of 40,000 calls", chain(40000), 3),
            ("40,000 calls of functions", functions(HEAD, 40000), 3), ("40,000 calls of functions in beta 1, with masks", functions(BETA1, 40000), 3)]
LEAST = 100
SIZES = [500, 2000, 10000, 20000, 40000]
GROWING = {"calls": chain, "calls of functions": functools.partial(functions, HEAD),
           "calls of functions in beta 1, with masks": functools.partial(functions, BETA1)}


def measure(source):
    """Seconds of processor time, and the lines of the longest text."""
    with tempfile.TemporaryDirectory() as tmp:
        path = pathlib.Path(tmp) / "kernel.py"
        path.write_text(source)
        times = []
        for _ in range(ROUNDS):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([NKX, "compile", path, "--quiet", "--json", "-"], capture_output=True, text=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            assert not done.returncode, done.stderr[-2000:]
            times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    (kernel,) = json.loads(done.stdout)["kernels"]
    assert kernel["stages"][-1]["name"] == "engine-programs"
    return min(times), max(s["text"].count("\n") for s in kernel["stages"])


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--json", type=pathlib.Path)
    a = options.parse_args()
    out, failed = {}, []
    for name, source, bar in COMMANDS:
        seconds, lines = measure(source)
        print(f"{name:48s} {seconds:6.2f} s of processor time (bar: {bar}); longest text {lines} lines (bar: {LINES_BAR})")
        out[name] = {"seconds": seconds, "bar_s": bar, "lines": lines, "bar_lines": LINES_BAR}
        failed += [name] if seconds > bar or lines >= LINES_BAR else []
    for what, source in GROWING.items():
        least, _ = measure(source(LEAST))
        growth = {n: max(measure(source(n))[0] - least, 0) for n in SIZES}
        out[f"growth of {what}"] = {"least_s": least, "seconds": growth}
        for n in SIZES:
            print(f"{n:6d} {what}: {growth[n]:6.3f} s more than {LEAST}, {growth[n] / n * 1e6:5.1f} us each")
        if growth[SIZES[-1]] / SIZES[-1] > GROWTH_BAR * max(growth[n] / n for n in SIZES[1:3]):
            failed.append(f"growth of {what}")
    if a.json:
        a.json.write_text(json.dumps(out, indent=1) + "\n")
    for name in failed:
        print(f"over its bar: {name}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
