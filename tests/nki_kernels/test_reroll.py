"""Loops of NKI kernels: rounds that are alike become loops, and the program computes the same as the unrolled one."""

import numpy as np
import pytest

from support import compiler
from support.nki_kernels import HEAD, KERNELS, TARGETS
from support.nki_matmuls import MATMULS, product
from support.random_loops import Kernel
from support.runs import simulated

SEED = 20240


def rolled(source, *arguments):
    """The lines of nki-reroll, without indentation."""
    [kernel] = compiler.compile(source, "--stop-after", "nki-reroll", *arguments)["kernels"]
    return [line.strip() for line in compiler.stage(kernel, "nki-reroll")["text"].splitlines()]


def loops(source):
    return [line for line in rolled(source) if line.startswith("for ")]


def bits(source, kernel, *arguments):
    """The outputs of the kernel on the simulated machine, as bytes."""
    return {name: array.tobytes() for name, array in simulated(source, None, "--kernel", kernel, *arguments)[0].items()}


@pytest.mark.parametrize("name", [*KERNELS, *MATMULS])
def test_the_unrolled_and_the_rerolled_program_compute_the_same_bits(name):
    source = HEAD + (KERNELS[name][0] if name in KERNELS else MATMULS[name])
    assert bits(source, name) == bits(source, name, "--unroll")


@pytest.mark.parametrize("name", MATMULS)
@pytest.mark.parametrize("target", TARGETS)
def test_matrix_products_with_blocks_compute_the_product(name, target, rng):
    source = HEAD + MATMULS[name]
    result = compiler.compile(source, "--target", target, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    [kernel] = result["kernels"]
    assert [s["check"]["status"] for s in kernel["stages"][-3:]] == ["pass"] * 3
    l, r = compiler.random_inputs(kernel)
    got, want = (a.astype("f4") for a in (simulated(source, {"lhsT": l, "rhs": r}, "--target", target)[0]["out"], product(l, r)))
    assert np.abs(got - want).max() <= 0.01 * np.abs(want).max()


@pytest.mark.parametrize("name", [name for name in MATMULS if name != "basic"])
def test_all_loops_of_a_matrix_product_become_loops(name):
    lines = rolled(HEAD + MATMULS[name])
    assert len([line for line in lines if "nisa.nc_matmul" in line]) == 1
    assert len([line for line in lines if line.startswith("for ")]) == MATMULS[name].count("for ")


@pytest.mark.parametrize("batch", range(4))
def test_random_loops_compute_the_same_bits_rolled_and_unrolled(batch):
    for k in range(6):
        rng = np.random.default_rng([SEED, batch, k])
        source = HEAD + Kernel(rng, "nest").source()
        once, again = (bits(source, "nest", *a) for a in ([], ["--unroll"]))
        assert once == again, source


@pytest.mark.parametrize("batch", range(4))
def test_every_stage_of_random_loops_computes_what_the_calls_compute(batch):
    kernels = [Kernel(np.random.default_rng([SEED, 50 + batch, k]), f"nest{k}").source() for k in range(6)]
    result = compiler.compile(HEAD + "".join(kernels), check=True)
    assert result["status"] == "ok", (result["diagnostics"], kernels)
    for kernel, source in zip(result["kernels"], kernels):
        assert [s["check"]["status"] for s in kernel["stages"][-3:]] == ["pass"] * 3, source


def simulated_us(source, name, *arguments):
    return simulated(source, None, "--kernel", name, *arguments)[1]["profile"]["total_us"]


@pytest.mark.parametrize("name, slower", [("tiled", 1.03), ("blocked", 1.03), ("optimised", 1.08), ("hoisted", 1.03)])
def test_loops_take_as_long_as_unrolled_rounds(name, slower):
    """Of `hoisted` two engines share the loop that loads the larger operand (passes/engine_programs/split.c)."""
    source = HEAD + MATMULS[name]
    assert simulated_us(source, name) <= slower * simulated_us(source, name, "--unroll")


def test_constants_of_the_rounds_are_parts_of_one(rng):
    source = HEAD + """
@nki.jit
def kernel(a: nl.tensor[128, 16]):
    out = nl.ndarray((4, 128, 16), nl.float32, buffer=nl.shared_hbm)
    for i in range(4):
        x, y = nl.load(a), nl.load(nl.shared_constant(np.full((128, 16), float(i * i), np.float32)))
        nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
        nisa.dma_copy(dst=out[i], src=x)
    return out
"""
    [kernel] = compiler.compile(source)["kernels"]
    assert compiler.stage(kernel, "nki-reroll")["text"].count("nl.shared_constant(float32[4, 128, 16])") == 1
    a = rng.uniform(-1, 1, (128, 16)).astype(np.float32)
    got = simulated(source, {"a": a})[0]["out"]
    np.testing.assert_allclose(got, a + (np.arange(4) ** 2)[:, None, None], atol=1e-5)


# ---- which rounds become loops


def copies(place, n, more=""):
    return HEAD + f"""
@nki.jit
def copies(x: nl.tensor[4096, 64]):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    for i in range({n}):
        t = nl.ndarray((32, 64), x.dtype)
        nisa.dma_copy(dst=t, src=x[{place}:{place} + 32, :])
        {more}
        nisa.dma_copy(dst=out[32 * i:32 * i + 32, :], src=t)
    return out
"""


def test_places_that_are_affine_in_the_round_become_a_loop():
    lines = rolled(copies("64 * i + 5", 8))
    assert lines[3:] == [
        "for i in nl.affine_range(8):",
        "t = nl.ndarray((32, 64), nl.float32, buffer=nl.sbuf)",
        "nisa.dma_copy(dst=t, src=x[i*64+5:i*64+37, :])",
        "nisa.dma_copy(dst=out[i*32:i*32+32, :], src=t)",
        "return out",
    ]


def test_a_loop_may_go_backwards():
    assert "nisa.dma_copy(dst=t, src=x[224-i*32:256-i*32, :])" in rolled(copies("224 - 32 * i", 8))


def test_a_product_of_the_round_with_itself_is_not_affine():
    source = copies("32 * i * i", 8)
    assert not loops(source)
    [kernel] = compiler.compile(source)["kernels"]
    [remark] = compiler.stage(kernel, "nki-reroll")["remarks"]
    assert remark["rule"] == "keep-rounds" and remark["text"] == "the place of src of nisa.dma_copy is not affine in the round"
    assert remark["src"][0]["line"] == source[:source.index("for i")].count("\n") + 1


def test_a_remainder_is_affine_between_its_jumps():
    assert loops(copies("32 * (i % 4)", 12)) == ["for i in nl.affine_range(4):"] * 3


def test_a_last_round_that_differs_stays_behind_the_loop():
    assert loops(copies("(7 if i == 9 else 32 * i)", 10)) == ["for i in nl.affine_range(9):"]


def test_a_first_round_that_differs_stays_before_the_loop():
    assert loops(copies("(99 if i == 0 else 32 * i)", 10)) == ["for i in nl.affine_range(9):"]


def test_a_round_with_another_number_is_cut_out():
    lines = rolled(copies("32 * i", 10, "nisa.tensor_scalar(t, t, nl.multiply, 3.0 if i == 5 else 2.0)"))
    assert [line for line in lines if line.startswith("for ")] == ["for i in nl.affine_range(5):", "for i in nl.affine_range(4):"]


def test_a_round_without_calls_does_not_count():
    source = copies("32 * i", 10).replace("        t = nl.nd", "        if i % 2:\n            continue\n        t = nl.nd")
    assert loops(source) == ["for i in nl.affine_range(5):"] and "nisa.dma_copy(dst=t, src=x[i*64:i*64+32, :])" in rolled(source)


def test_tensors_of_a_list_become_parts_of_one():
    lines = rolled(HEAD + MATMULS["hoisted"])
    assert "tile = nl.ndarray((128, 4, 128), nl.bfloat16, buffer=nl.sbuf)" in lines
    assert "nisa.nc_matmul(dst=total, stationary=tile[:, k, :], moving=tile_1[:, k, :])" in lines


def test_a_tensor_that_the_next_round_reads_keeps_the_loop_unrolled():
    source = HEAD + """
@nki.jit
def running(x: nl.tensor[1024, 64]):
    out = nl.ndarray((32, 64), x.dtype, buffer=nl.shared_hbm)
    total = nl.load(x[0:32])
    for i in range(1, 8):
        total = nl.add(total, nl.load(x[32 * i:32 * i + 32]))
    nl.store(out, total)
    return out
"""
    assert not loops(source)
    [kernel] = compiler.compile(source)["kernels"]
    assert any("is a tensor of another round" in r["text"] for r in compiler.stage(kernel, "nki-reroll")["remarks"])


HANDED_ON = HEAD + """
@nki.jit
def handed_on(x: nl.tensor[1280, 8192]):
    out = nl.ndarray((1280, 1), x.dtype, buffer=nl.shared_hbm)
    tiles = [nl.load(x[0:128])]
    for i in range(1, 10):
        tiles.append(nl.load(x[128 * i:128 * i + 128]))
        total = nl.ndarray((128, 1), nl.float32)
        nisa.tensor_reduce(dst=total, data=tiles[i - 1], op=nl.add, axis=1)
        nisa.dma_copy(dst=out[128 * i - 128:128 * i], src=total)
    last = nl.ndarray((128, 1), nl.float32)
    nisa.tensor_reduce(dst=last, data=tiles[9], op=nl.add, axis=1)
    nisa.dma_copy(dst=out[1152:1280], src=last)
    return out
"""


@pytest.mark.parametrize("arguments", [[], ["--unroll"]], ids=["rolled", "unrolled"])
def test_a_tensor_that_the_next_round_reads_is_made_in_its_own_round(arguments, rng):
    """All ten tiles together are larger than SBUF; two of them are in use at a time."""
    lines = rolled(HANDED_ON, *arguments)
    made = [i for i, line in enumerate(lines) if "nl.ndarray((128, 8192)" in line]
    assert len(made) == 10 and all("nisa.dma_copy(dst=" in lines[i + 1] and "src=x[" in lines[i + 1] for i in made)
    x = rng.uniform(-1, 1, (1280, 8192)).astype(np.float32)
    got = simulated(HANDED_ON, {"x": x}, *arguments)[0]["out"]
    np.testing.assert_allclose(got, x.sum(1, keepdims=True), atol=1e-2)


def test_a_tensor_that_a_loop_on_the_device_adds_to_is_made_before_it():
    lines = rolled(HEAD + """
@nki.jit
def counted(x: nl.tensor[128, 64]):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray(x.shape, x.dtype)
    for k in range(3):
        spare = nl.load(x)
        if k == 2:
            nisa.memset(total, 0.0)
            for i in nl.dynamic_range(4):
                nisa.tensor_tensor(dst=total, data1=total, data2=spare, op=nl.add)
        nisa.dma_copy(dst=out, src=spare)
    nisa.dma_copy(dst=out, src=total)
    return out
""")
    assert lines.index("total = nl.ndarray((128, 64), nl.float32, buffer=nl.sbuf)") + 1 == lines.index("nisa.memset(dst=total, value=0.0)")
    assert any(line.startswith("for ") and "dynamic_range" in line for line in lines)


def test_a_memset_before_products_in_a_loop_vanishes():
    assert not [line for line in rolled(HEAD + KERNELS["matmul"][0]) if "memset" in line]


def test_groups_of_products_that_begin_with_accumulate_false_become_a_loop():
    source = HEAD + KERNELS["matmul_one_tile"][0].replace("float(half + 1)", "2.0")
    assert loops(source) == ["for i in nl.affine_range(2):", "for j in nl.affine_range(4):"]


def test_the_option_unroll_keeps_every_round():
    lines = rolled(copies("32 * i", 8), "--unroll")
    assert len([line for line in lines if "nisa.dma_copy" in line]) == 17 and not [line for line in lines if line.startswith("for ")]


def test_lines_of_a_loop_come_from_all_rounds_and_lead_to_their_places():
    source = copies("32 * i", 8)
    [kernel] = compiler.compile(source)["kernels"]
    trace, roll = compiler.stage(kernel, "nki-canonicalize"), compiler.stage(kernel, "nki-reroll")
    at = next(k for k, line in enumerate(roll["text"].splitlines()) if "dst=t, src=x[" in line)
    text_of = {line["op"]: text for line, text in zip(trace["lines"], trace["text"].splitlines())}
    from_lines = [text_of[op] for op in roll["from"][str(roll["lines"][at]["op"])]]
    assert len(from_lines) == 8 and all("dst=t" in line and "src=x[" in line for line in from_lines)
    assert [place["line"] for place in roll["lines"][at]["src"]] == [source[:source.index("nisa.dma_copy(dst=t")].count("\n") + 1]


def test_a_line_of_a_loop_comes_from_every_round_however_many_there_are():
    [kernel] = compiler.compile(copies("32 * i", 128))["kernels"]
    assert max(len(ids) for ids in compiler.stage(kernel, "nki-reroll")["from"].values()) == 128


# ---- long kernels


LONG = HEAD + """
@nki.jit
def long(lhsT: nl.tensor[nl.bfloat16, (2048, 2048)], rhs: nl.tensor[nl.bfloat16, (2048, 2048)]):
    out = nl.ndarray((2048, 2048), lhsT.dtype, buffer=nl.shared_hbm)
    for m in nl.affine_range(16):
        for n in nl.affine_range(4):
            total = nl.zeros((128, 512), nl.float32, buffer=nl.psum)
            for k in nl.affine_range(16):
                l = nl.load(lhsT[k * 128:(k + 1) * 128, m * 128:(m + 1) * 128])
                r = nl.load(rhs[k * 128:(k + 1) * 128, n * 512:(n + 1) * 512])
                nisa.nc_matmul(dst=total, stationary=l, moving=r)
            nl.store(out[m * 128:(m + 1) * 128, n * 512:(n + 1) * 512], nl.copy(total, dtype=out.dtype))
    return out
"""


def test_a_long_record_leaves_rounds_out_and_says_so():
    [kernel] = compiler.compile(LONG)["kernels"]
    lines = compiler.stage(kernel, "nki-trace")["text"].splitlines()
    assert len(lines) < 500 and any("# … 13 more rounds of this loop" in line for line in lines)
    assert "l_15" not in lines and all(stage["text"].count("\n") < 1000 for stage in kernel["stages"])
    # the first two rounds and the last one of m and k, all four of n
    assert len([line for line in lines if "nisa.nc_matmul" in line]) == 3 * 4 * 3
