"""Launches on two cores: two programs side by side, what they share, how they meet, and what is refused.

Values are compared with formulas of NumPy for the whole launch, which know nothing of cores."""
import numpy as np
import pytest

from support import compiler
from support.nki_kernels import HEAD
from support.runs import simulated

MEET = HEAD + """
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    between = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    me = nl.program_id(0)
    own, others = slice(me * P, me * P + P), slice((1 - me) * P, (1 - me) * P + P)
    x, y = nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf), nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a[own])
    if me == 0:
        nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=2.0)
    else:
        nisa.activation(dst=x, op=nl.exp, data=x)
    nisa.dma_copy(dst=between[own], src=x)
    nisa.core_barrier(data=between, cores=(0, 1))
    nisa.dma_copy(dst=y, src=between[others])
    nisa.tensor_tensor(dst=y, data1=x, data2=y, op=nl.subtract)
    nisa.dma_copy(dst=out[own], src=y)
    return out
"""


def meet(a):
    x, y = 2 * a[:128], np.exp(a[128:])
    return np.concatenate([x - y, y - x])


EXCHANGE = HEAD + """
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    me = nl.program_id(0)
    own = slice(me * P, me * P + P)
    x, y = nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf), nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a[own])
    for i in range(2 + 3 * me):
        nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=2.0)
    nisa.sendrecv(src=x, dst=y, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
    nisa.sendrecv(src=x[:, 0:8], dst=y[:, 8:16], send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0, dma_engine=nisa.dma_engine.gpsimd_dma)
    nisa.dma_copy(dst=out[own], src=y)
    return out
"""


def exchange(a):
    x = [4 * a[:128], 32 * a[128:]]
    y = [x[1].copy(), x[0].copy()]
    for k in (0, 1):
        y[k][:, 8:16] = (x[0] + x[1])[:, 0:8]
    return np.concatenate(y)


# each round of the loop hands a tile to the other core and back
ROUNDS = HEAD + """
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    between = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    me = nl.program_id(0)
    own, others = slice(me * P, me * P + P), slice((1 - me) * P, (1 - me) * P + P)
    x = nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a[own])
    for i in range(5):
        nisa.dma_copy(dst=between[own], src=x)
        nisa.core_barrier(data=between, cores=(0, 1))
        y = nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=y, src=between[others])
        nisa.tensor_scalar(dst=x, data=y, op0=nl.add, operand0=1.0)
        nisa.core_barrier(data=between, cores=(0, 1))
    nisa.dma_copy(dst=out[own], src=x)
    return out
"""


def rounds(a):
    return np.concatenate([a[128:], a[:128]]) + 5


# the Tensor engine, PSUM, accumulation in a loop, a constant and a tensor in hbm of each core's own
PRODUCTS = HEAD + """
@nki.jit
def kernel(a):
    out = nl.ndarray((256, 64), a.dtype, buffer=nl.shared_hbm)
    me = nl.program_id(0)
    own = nl.ndarray((P, 64), a.dtype, buffer=nl.hbm)
    psum = nl.ndarray((P, 64), nl.float32, buffer=nl.psum)
    for k in range(2):
        left, right = nl.ndarray((P, P), a.dtype, buffer=nl.sbuf), nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[k * P:k * P + P, 64 + me * P:64 + me * P + P])
        nisa.dma_copy(dst=right, src=a[k * P:k * P + P, 0:64])
        nisa.nc_matmul(psum, left, right)
    x, y = nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf), nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=x, src=psum)
    nisa.dma_copy(dst=own, src=x)
    nisa.dma_copy(dst=y, src=own)
    c = nl.load(nl.shared_constant(np.full((P, 64), float(me + 1), np.float32)))
    nisa.tensor_tensor(dst=y, data1=y, data2=c, op=nl.multiply)
    nisa.dma_copy(dst=out[me * P:me * P + P], src=y)
    return out
"""


def products(a):
    whole = a[:, 64:320].T @ a[:, :64]
    return np.concatenate([whole[:128], 2 * whole[128:]])


KERNELS = {"meet": (MEET, (256, 64), meet), "exchange": (EXCHANGE, (256, 64), exchange), "rounds": (ROUNDS, (256, 64), rounds),
           "products": (PRODUCTS, (256, 320), products)}


def launched(source, shape=(256, 64), grid="2"):
    return f"{source}\nkernel[{grid}](np.zeros({shape}, np.float32))\n"


def compiled(source, *arguments):
    return compiler.compile(source, *arguments, check=True)


def run(source, a, *arguments):
    """The output and the profile of a run on the simulated machine."""
    outputs, kernel = simulated(source, {"a": a}, *arguments)
    return outputs["out"], kernel["profile"]


@pytest.mark.parametrize("target", ["trn2", "trn3"])
@pytest.mark.parametrize("name", KERNELS)
def test_two_programs_compute_what_the_launch_means(name, target, rng):
    source, shape, want = KERNELS[name]
    a = rng.uniform(-1, 1, shape).astype(np.float32)
    result = compiled(launched(source, shape), "--target", target)
    assert result["status"] == "ok" and not result["diagnostics"], result["diagnostics"]
    [kernel] = result["kernels"]
    assert [s["check"]["status"] for s in kernel["stages"][-3:]] == ["pass"] * 3
    for stage in kernel["stages"][-3:]:
        assert "nisa.core 0 {" in stage["text"] and "nisa.core 1 {" in stage["text"]
    assert "# core 0" in compiler.stage(kernel, "nki-trace")["text"] and "# core 1" in compiler.stage(kernel, "nki-reroll")["text"]
    got, _ = run(launched(source, shape), a, "--target", target)
    np.testing.assert_allclose(got, want(a), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("name", KERNELS)
def test_numpy_evaluates_both_cores(name, rng, tmp_path):
    source, shape, want = KERNELS[name]
    np.save(tmp_path / "a.npy", rng.uniform(-1, 1, shape).astype(np.float32))
    np.save(tmp_path / "want.npy", want(np.load(tmp_path / "a.npy")))
    source += f"""
a = np.load({str(tmp_path / "a.npy")!r})
np.testing.assert_allclose(kernel[2](a), np.load({str(tmp_path / "want.npy")!r}), rtol=1e-5, atol=1e-4)
"""
    result = compiler.compile(source)
    assert result["status"] == "ok", result["diagnostics"]


def test_each_core_has_lanes_of_its_own_and_works_at_the_same_time(rng):
    """Twice the work on two cores takes hardly longer than the same on one."""
    source = HEAD + """
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    rows = a.shape[0] // 8
    for i in range(8 // nl.num_programs(0)):
        part = nl.ds(nl.program_id(0) * (a.shape[0] // nl.num_programs(0)) + i * rows, rows)
        x = nl.load(a[part])
        for k in range(12):
            nisa.activation(dst=x, op=nl.tanh, data=x)
        nl.store(out[part], x)
    return out
"""
    a = rng.uniform(-1, 1, (1024, 512)).astype(np.float32)
    one, two = (run(launched(source, a.shape, grid), a)[1] for grid in ("1", "2"))
    assert {lane.get("core") for lane in one["lanes"]} == {None} and {lane["core"] for lane in two["lanes"]} == {0, 1}
    assert {"core0.scalar", "core1.scalar", "core0.qSyncIn", "core1.qSyncIn"} <= {lane["name"] for lane in two["lanes"]}
    assert one["total_us"] / 2 < two["total_us"] < 0.7 * one["total_us"]
    assert two["memory"]["sbuf"]["peak"] and two["memory"]["sbuf"]["peak"] == two["core1_memory"]["sbuf"]["peak"]


def test_each_type_and_view_goes_to_the_other_core_past_a_barrier_of_each_engine(rng):
    """What a core gets from the other is at the place of the view, in its type; the rest of the tile stays."""
    kinds = ("float32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2", "int8", "uint8", "int16", "uint16", "int32", "uint32")
    views = ("[:, 0:12]", "[:, 4:16]", "[:, 0:24:2]", "[32:64, 0:12]")
    engines = ("gpsimd", "vector", "scalar", "tensor", "sync")
    pairs = [(views[k % 3], views[k // 3 % 3]) for k in range(9)] + [(views[3], views[3])] * 2
    body = ""
    for k, (kind, (source, to)) in enumerate(zip(kinds, pairs)):
        body += f"""    x{k}, y{k} = (nl.ndarray((P, 24), nl.{kind}, buffer=nl.sbuf) for _ in range(2))
    nisa.dma_copy(dst=x{k}, src=a[own])
    nisa.memset(dst=y{k}, value={0 if 'int' in kind else 0.0})
    nisa.core_barrier(data={"out" if k % 2 else f"x{k}"}, cores=(0, 1), engine=nisa.engine.{engines[k % 5]})
    nisa.sendrecv(src=x{k}{source}, dst=y{k}{to}, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id={k}, dma_engine=nisa.dma_engine.{"dma gpsimd_dma".split()[k % 2]})
    nisa.dma_copy(dst=out[{k}, own], src=y{k})
"""
    source = HEAD + f"""
@nki.jit
def kernel(a):
    out = nl.ndarray(({len(kinds)}, 256, 24), nl.float32, buffer=nl.shared_hbm)
    me = nl.program_id(0)
    own = slice(me * P, me * P + P)
{body}    return out
"""
    a = rng.integers(0, 8, (256, 24)).astype(np.float32)  # each type has these numbers
    want = np.zeros((len(kinds), 2, 128, 24), np.float32)
    for k, views in enumerate(pairs):
        at = [tuple(slice(*(int(n) if n else None for n in part.split(":"))) for part in v[1:-1].split(", ")) for v in views]
        for core in range(2):
            want[k, core][at[1]] = a.reshape(2, 128, 24)[1 - core][at[0]]
    for target in ("trn2", "trn3"):
        got, _ = run(launched(source, a.shape), a, "--target", target)
        np.testing.assert_array_equal(got.reshape(want.shape), want)


def test_a_race_between_cores_is_reported_with_both_places():
    source = launched("".join(line + "\n" for line in MEET.splitlines() if "core_barrier" not in line))
    result = compiled(source)
    [kernel] = result["kernels"]
    assert [s["check"]["status"] for s in kernel["stages"][-3:]] == ["fail"] * 3
    [d] = [d for d in result["diagnostics"] if d["code"] == "check-failed"]
    lines = source.splitlines()
    line = lines[d["range"]["line"] - 1]
    assert "race" in d["message"] and "no core_barrier orders it with dma_copy of core" in d["message"]
    other = int(d["message"].split("(line ")[1].split(")")[0])
    assert {line.strip(), lines[other - 1].strip()} == {"nisa.dma_copy(dst=between[own], src=x)", "nisa.dma_copy(dst=y, src=between[others])"}


REFUSED = {
    "one core misses a barrier": (MEET, "    nisa.core_barrier(data=between, cores=(0, 1))", "    if me == 1:\n        nisa.core_barrier(data=between, cores=(0, 1))",
                                  "core 1 calls core_barrier, but core 0 does not"),
    "one core misses an exchange": (EXCHANGE, "    nisa.sendrecv(src=x[", "    if me == 0: nisa.sendrecv(src=x[", "core 0 calls sendrecv, but core 1 does not"),
    "a barrier meets an exchange": (EXCHANGE, "    nisa.sendrecv(src=x, dst=y, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)",
                                    "    if me:\n        nisa.sendrecv(src=x, dst=y, send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)\n    else:\n"
                                    "        nisa.core_barrier(data=out, cores=(0, 1))", "core 0 calls core_barrier where core 1 (line 19) calls sendrecv"),
    "another size": (EXCHANGE, "x[:, 0:8], dst=y[:, 8:16]", "x[:, 0:8 + 8 * me], dst=y[:, 8:16 + 8 * me]", "core 0 sends float32 (128, 8), but dst of core 1 (line 20) is float32 (128, 16)"),
    "another type": (EXCHANGE, "    nisa.sendrecv(src=x, dst=y,", "    x, y = (x, y) if me else (nl.ndarray((P, 64), nl.int32, buffer=nl.sbuf), nl.ndarray((P, 64), nl.int32, buffer=nl.sbuf))\n"
                     "    nisa.memset(dst=x, value=1 if not me else 1.0)\n    nisa.sendrecv(src=x, dst=y,", "core 0 sends int32 (128, 64), but dst of core 1 (line 20) is float32 (128, 64)"),
    "another pipe": (EXCHANGE, "pipe_id=0)", "pipe_id=me)", "core 0 exchanges data through pipe 0, core 1 (line 18) through pipe 1"),
    "with itself": (EXCHANGE, "send_to_rank=1 - me, recv_from_rank=1 - me, pipe_id=0)", "send_to_rank=me, recv_from_rank=me, pipe_id=0)",
                    "core 0 exchanges data with the other core, 1, but send_to_rank is 0 and recv_from_rank 0"),
}


IN_REGIONS = {
    "a loop": "    def body(i):\n        nisa.core_barrier(data=between, cores=(0, 1))\n    nl.fori_loop(0, 4, body)",
    "a branch": "    flag = nisa.register_alloc(me)\n    if flag == 0:\n        nisa.core_barrier(data=between, cores=(0, 1))",
}


@pytest.mark.parametrize("name", IN_REGIONS)
def test_cores_do_not_meet_in_loops_and_branches_on_the_device(name):
    source = launched(MEET.replace("    nisa.core_barrier(data=between, cores=(0, 1))", IN_REGIONS[name]))
    found = [d for d in compiler.compile(source)["diagnostics"] if d["severity"] == "error" and d["code"] == "nki-device-loop"]
    assert found and all("core_barrier in a loop or branch on the device" in d["message"] for d in found)
    assert any(source.splitlines()[d["range"]["line"] - 1].strip().startswith("nisa.core_barrier(") for d in found)


@pytest.mark.parametrize("name", REFUSED)
def test_cores_that_do_not_meet_are_refused(name):
    source, line, other, message = REFUSED[name]
    assert source.count(line) == 1
    source = launched(source.replace(line, other))
    found = [d for d in compiler.compile(source)["diagnostics"] if d["severity"] == "error" and d["code"] == "nki-cores"]
    assert found and any(message in d["message"] for d in found), found
    at = [source.splitlines()[d["range"]["line"] - 1][d["range"]["col"] - 1:] for d in found]
    assert any(x.startswith(("nisa.core_barrier(", "nisa.sendrecv(")) for x in at), at
    assert all(d["hint"] for d in found)


def test_a_kernel_that_another_calls_runs_on_one_core_and_meets_nothing():
    source = MEET + "\nfrom nkigen import trace\n\n@trace(input_specs=[((256, 64), 'f32')])\ndef model(a):\n    return kernel[2](a * 2) + 1\n"
    found = [d for d in compiler.compile(source)["diagnostics"] if d["severity"] == "error"]
    assert {d["code"] for d in found} == {"nki-cores"} and "both instances run on one" in found[0]["message"]


BETA_1 = """import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i = nl.program_id(0)
    rows = i * 32 + nl.arange(32)[:, None]
    columns = nl.arange(16)[None, :]
    nl.store(out[rows, columns], nl.load(a[rows, columns]) + nl.program_id(0))
    return out
"""


@pytest.mark.parametrize("grid, cores", [("4", [0, 0, 0, 0]), ("nl.spmd_dim(nl.nc(2), 2)", [0, 0, 1, 1]), ("nl.spmd_dim(2, nl.nc(2))", [0, 1, 0, 1]),
                                         ("nl.nc(2) * 2", [0, 0, 1, 1]), ("2 * nl.nc(2)", [0, 1, 0, 1])])
def test_beta_1_spreads_an_axis_over_cores(grid, cores, rng):
    source = launched(BETA_1, (128, 16), grid)
    result = compiled(source)
    assert result["status"] == "ok" and not result["diagnostics"], result["diagnostics"]
    trace = compiler.stage(result["kernels"][0], "nki-canonicalize")
    said, core = [], 0
    for line in trace["text"].splitlines():
        core = int(line.split()[-1]) if line.strip().startswith("# core") else core
        if "dst=out" in line:
            said.append((int(line.split("out[")[1].split(":")[0]) // 32, core))
    assert [c for _, c in sorted(said)] == cores
    a = rng.uniform(-1, 1, (128, 16)).astype(np.float32)
    np.testing.assert_allclose(run(source, a)[0], a + np.arange(4).repeat(32)[:, None], atol=1e-5)


def test_the_generators_of_random_numbers_are_each_core_s_own():
    """Both cores seed theirs alike, and core 1 draws once more before."""
    source = HEAD + """
@nki.jit
def kernel(a):
    out = nl.ndarray((16, 32), nl.uint32, buffer=nl.shared_hbm)
    me = nl.program_id(0)
    seed, x = nl.ndarray((1, 1), nl.uint32, buffer=nl.sbuf), nl.ndarray((8, 32), nl.uint32, buffer=nl.sbuf)
    nisa.memset(dst=seed, value=7)
    nisa.set_rng_seed(seed)
    for i in range(1 + me):
        nisa.rng(dst=x)
    nisa.dma_copy(dst=out[me * 8:me * 8 + 8], src=x)
    return out
"""
    assert {s["check"]["status"] for s in compiled(launched(source))["kernels"][0]["stages"][-3:]} == {"pass"}
    got, _ = run(launched(source), np.zeros((256, 64), np.float32))
    alone, _ = run(launched(source.replace("me = nl.program_id(0)", "me = 0").replace("(16, 32)", "(8, 32)"), grid="1"),
                   np.zeros((256, 64), np.float32))
    np.testing.assert_array_equal(got[:8], alone)
    assert not (got[8:] == got[:8]).any()


def test_two_cores_share_the_bandwidth_of_their_stack_of_memory():
    """On trn2 a stack feeds 29 of the 32 DMA engines of two cores; copies that keep all of them busy take that much longer."""
    source = HEAD + """
@nki.jit
def kernel(a):
    out = nl.ndarray((2, P, 16384), a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray((P, 16384), a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a[nl.program_id(0)])
    nisa.dma_copy(dst=out[nl.program_id(0)], src=x)
    return out
"""
    a = np.ones((2, 128, 16384), np.float32)
    two = run(launched(source, a.shape), a)[1]
    one = run(launched(source.replace("(2, P, 16384)", "(1, P, 16384)"), a.shape, grid="1"), a)[1]
    assert 1.05 < two["total_us"] / one["total_us"] < 32 * 25.6 / 750 + 0.01
    assert (one["dma"]["peak_gb_s"], two["dma"]["peak_gb_s"]) == (410, 750)
