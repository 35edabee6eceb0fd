"""Every NISA operation in the simulator against NumPy (support/oracles/nisa_eval.py, written from compiler/nisa/nisa.h), on
random types, shapes, tiles, places and data (support/nisa_programs.py).

    NKX_SIM_CASES=100 pytest tests/sim/test_operations.py     # so many programs of each kind (default 8)

Where the result is not determined to the last bit (functions, powers, long sums of fractions), it may differ by a few
units in the last place of the destination; everywhere else every element must be equal."""
import itertools
import os
import zlib

import ml_dtypes
import numpy as np
import pytest

from support.nisa_programs import FLOATS, INTS, Program, draw
from support.oracles import nisa_eval
from support.oracles.nisa_eval import DTYPES
from support.simulator import Fault, Simulator

CASES = int(os.environ.get("NKX_SIM_CASES", "8"))
NUMBERS = (*FLOATS, *INTS)
ARITH = ("add", "subtract", "multiply", "divide", "max", "min", "mod", "pow", "divide_int", "mod_int")
COMPARE = ("is_eq", "is_ne", "is_gt", "is_ge", "is_lt", "is_le", "logical_and", "logical_or", "logical_xor")
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor")
SHIFTS = ("shift_left", "shift_right_arith", "shift_right_logical")
FUNCTIONS = ("copy", "exp", "log", "sqrt", "rsqrt", "square", "abs", "tanh", "sin", "erf", "sign", "floor", "ceil", "round",
             "round_even", "trunc", "arctan", "relu", "reciprocal")
SMOOTH = ("sigmoid", "gelu", "gelu_apprx_tanh", "gelu_apprx_sigmoid", "gelu_apprx_sigmoid_dx", "gelu_dx", "silu", "silu_dx", "softplus", "mish",
          "erf_dx")
CLOSE = {"exp", "log", "rsqrt", "tanh", "sin", "erf", "arctan", "pow", *SMOOTH}
# partitions, free dimensions: odd ones, limits of the hardware, several dimensions
SHAPES = [(1, [1]), (1, [7]), (3, [5, 3]), (128, [1]), (128, [517]), (127, [2, 3, 5]), (64, [2, 2, 3, 4]), (32, [512]),
          (33, [65]), (128, [64, 8]), (2, [3000]), (96, [16])]


@pytest.fixture(scope="module")
def simulator():
    with Simulator() as s:
        yield s


def assert_same(got, want, close, text):
    """close: True, or the absolute error that is allowed besides rounding."""
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.shape == w.shape and g.dtype == w.dtype, text
        if g.dtype.kind in "iub" and not close:
            assert np.array_equal(g, w), f"{np.argwhere(g != w)[0]}: {g[g != w][0]}, not {w[g != w][0]}\n{text}"
            continue
        is_float = g.dtype.kind not in "iub"
        eps = max(2e-6, float(ml_dtypes.finfo(g.dtype).eps) if is_float else 0) if close else 0
        with np.errstate(all="ignore"):
            x, y = g.astype(np.float64), w.astype(np.float64)
            tolerance = eps * np.abs(y) + (0 if not close else 1 if not is_float else 1e-37 if close is True else close + float(ml_dtypes.finfo(g.dtype).smallest_subnormal))
            good = (x == y) | (np.isnan(x) & np.isnan(y)) | (np.abs(x - y) <= tolerance)
        assert good.all(), f"{np.argwhere(~good)[0]}: {g[~good][0]}, not {w[~good][0]}; {(~good).sum()} of {good.size}\n{text}"


def check(simulator, p, close=False):
    text = p.text()
    want = nisa_eval.run(text, [a.copy() for a in p.arrays])
    try:
        got = simulator.run(text, p.arrays)
    except Fault as e:
        raise AssertionError(f"{e}\n{text}") from None
    assert_same(got, want, close, text)


def cases(*key, n=CASES):
    """n random programs, the same ones in each run; shapes in turn."""
    rng = np.random.default_rng(zlib.crc32(repr(key).encode()))
    for _, shape in zip(range(n), itertools.cycle([SHAPES[k] for k in rng.permutation(len(SHAPES))])):
        yield Program(rng, str(rng.choice(["trn1", "trn2", "trn3"]))), rng, *shape


def choose(rng, *names):
    return str(rng.choice(names))


def values(rng, op, t, shape, role, in_ints):
    """Data for which the operator is defined."""
    if op in ("divide_int", "mod_int") and not in_ints:
        x = rng.integers(-100, 100, shape) if role == "left" else rng.choice([-7, -3, -2, -1, 1, 2, 3, 5, 11], shape)
        return x.astype(np.float32).astype(DTYPES[t]) if t != "i1" else np.ones(shape, bool)
    if op in ("divide", "divide_int", "mod", "mod_int") and in_ints and role == "right":
        x = draw(rng, t, shape)
        return np.where(x == 0, 3, x).astype(DTYPES[t]) if t != "i1" else np.ones(shape, bool)
    if op == "pow":
        if in_ints:
            return draw(rng, t, shape, *((-9, 9) if role == "left" else (-2, 7)))
        return draw(rng, t, shape, 1, 3)
    if op in SHIFTS and role == "right":
        return draw(rng, t, shape, 0, 8 * DTYPES[t].itemsize - 1)
    return draw(rng, t, shape, special=0.1)


def types(rng, op, n):
    """Types of n sources and of the destination that go together."""
    if op in SHIFTS:
        t = choose(rng, *INTS)
        return [t] * n, t
    if op in BITS:
        t = choose(rng, "f32", "i32", "i16", "i8", "i1", "bf16")
        group = {"f32": ("f32", "i32"), "bf16": ("bf16", "i16")}.get(t, (t,))
        return [choose(rng, *group) for _ in range(n)], choose(rng, *group)
    if op == "pow":
        t = choose(rng, *("f32", "bf16", "i32", "i16"))
        return [t] * n, choose(rng, "f32", t)
    return [choose(rng, *NUMBERS, "i1") for _ in range(n)], choose(rng, *NUMBERS, *(["i1"] if op in COMPARE else []))


def is_int(t):
    return t[0] == "i"


def maybe_unsigned(rng, engine, *ts):
    return True if any(t in INTS for t in ts) and rng.random() < 0.3 else None


@pytest.mark.parametrize("engine", ["vector", "gpsimd"])
@pytest.mark.parametrize("op", [*ARITH, *COMPARE, *BITS, *SHIFTS])
def test_tensor_tensor_arith_equals_numpy(simulator, op, engine):
    for p, rng, partitions, free in cases("tt", op, engine):
        (tl, tr), td = types(rng, op, 2)
        in_ints = engine == "gpsimd" and is_int(tl) and is_int(tr)
        unsigned = maybe_unsigned(rng, engine, tl, tr, td) if op not in ("pow", "divide_int", "mod_int") else None
        n = int(np.prod(free))
        lhs = p.operand("lhs", partitions, free, tl, data=values(rng, op, tl, (partitions, n), "left", in_ints))
        rhs = p.operand("rhs", partitions, free, tr, data=values(rng, op, tr, (partitions, n), "right", in_ints))
        dst = p.operand("dst", partitions, free, td, is_written=True)
        p.instr("tensor_tensor_arith", [dst, lhs, rhs], engine, op=op, unsigned=unsigned)
        check(simulator, p, op in CLOSE)


def test_tensor_tensor_power_equals_numpy(simulator):
    for p, rng, partitions, free in cases("power", n=2 * CASES):
        (tl, tr), td = types(rng, "pow", 2)
        n = int(np.prod(free))
        lhs = p.operand("lhs", partitions, free, tl, data=values(rng, "pow", tl, (partitions, n), "left", is_int(tl)))
        rhs = p.operand("rhs", partitions, free, tr, data=values(rng, "pow", tr, (partitions, n), "right", is_int(tr)))
        p.instr("tensor_tensor_power", [p.operand("dst", partitions, free, td, is_written=True), lhs, rhs], "gpsimd")
        check(simulator, p, True)


def scalar_operand(p, rng, role, op, t, partitions, in_ints, side):
    """One number for all, or one for each partition."""
    x = values(rng, op, t, (partitions, 1), side, in_ints)
    if rng.random() < 0.5:
        return p.operand(role, partitions, [1], t, data=x)
    return f"{role}={t} {p.constant(x[0, 0], t)}"


@pytest.mark.parametrize("engine", ["vector", "gpsimd"])
@pytest.mark.parametrize("op", [*ARITH, *COMPARE, *BITS, *SHIFTS])
def test_tensor_scalar_arith_equals_numpy(simulator, op, engine):
    for p, rng, partitions, free in cases("ts", op, engine):
        group = BITS if op in BITS else SHIFTS if op in SHIFTS else ("add", "subtract", "max", "min", "is_gt", "is_eq")
        second = choose(rng, *group) if rng.random() < 0.5 and op != "pow" else None
        (ts, t0, t1), td = types(rng, op, 3)
        if op in SHIFTS or (op in BITS and second):
            t0 = t1 = td = ts
        in_ints = engine == "gpsimd" and is_int(ts) and is_int(t0)
        reverse = choose(rng, "none", "first", "second", "both") if op not in SHIFTS else "none"
        if op in ("pow", "divide_int", "mod_int", "divide", "mod"):
            reverse = choose(rng, "none", "second")
        n = int(np.prod(free))
        src = p.operand("src", partitions, free, ts, data=values(rng, op, ts, (partitions, n), "left", in_ints))
        operands = [src, scalar_operand(p, rng, "operand0", op, t0, partitions, in_ints, "right")]
        if second:
            operands.append(scalar_operand(p, rng, "operand1", second, t1, partitions, in_ints, "right"))
        dst = p.operand("dst", partitions, free, td, is_written=True)
        p.instr("tensor_scalar_arith", [dst, *operands], engine, op0=op, op1=second, reverse_operands=reverse)
        check(simulator, p, op in CLOSE)


@pytest.mark.parametrize("engine", ["vector", "gpsimd"])
@pytest.mark.parametrize("op", ["add", "multiply", "max", "min", *BITS])
def test_tensor_reduce_arith_equals_numpy(simulator, op, engine):
    for p, rng, partitions, free in cases("reduce", op, engine):
        (t,), td = types(rng, op, 1) if op in BITS else ([choose(rng, *NUMBERS)], choose(rng, *NUMBERS))
        n = int(rng.integers(1, len(free) + 1))
        p.cut = list  # the number of reduced dimensions counts
        if op == "add":
            data = rng.integers(-8, 8, (partitions, int(np.prod(free)))).astype(np.float32).astype(DTYPES[t])
        elif op == "multiply":
            data = np.where(rng.random((partitions, int(np.prod(free)))) < 0.01, 2, rng.choice([-1, 1], (partitions, int(np.prod(free)))))
            data = data.astype(np.float32).astype(DTYPES[t])
        else:
            data = draw(rng, t, (partitions, int(np.prod(free))), special=0.1)
        src = p.operand("src", partitions, free, t, data=data)
        kept = free[:len(free) - n] or [1]
        negated = "true" if op not in BITS and rng.random() < 0.3 else "false"
        dst = p.operand("dst", partitions, kept, td, is_written=True)
        p.instr("tensor_reduce_arith", [dst, src], engine, op=op, negated=negated, num_r_dim=n)
        check(simulator, p)


@pytest.mark.parametrize("op", ["add", "max"])
def test_cross_lane_reduce_arith_equals_numpy(simulator, op):
    for p, rng, partitions, free in cases("lanes", op):
        t, td, shape = choose(rng, *NUMBERS), choose(rng, *NUMBERS), (partitions, int(np.prod(free)))
        whole = rng.integers(-8, 8, shape).astype(np.float32).astype(DTYPES[t])
        src = p.operand("src", partitions, free, t, data=whole if op == "add" else draw(rng, t, shape, special=0.1))
        dst = p.operand("dst", 1, free, td, is_written=True)
        p.instr("cross_lane_reduce_arith", [dst, src], "gpsimd", reduce_op=op, num_r_dim=0)
        check(simulator, p)


@pytest.mark.parametrize("op", FUNCTIONS + SMOOTH)
def test_activation_equals_numpy(simulator, op):
    for p, rng, partitions, free in cases("activation", op, n=2 * CASES):
        t, td = choose(rng, *NUMBERS), choose(rng, *NUMBERS)
        space = choose(rng, "sbuf", "psum") if t == "f32" and np.prod(free) <= 300 else "sbuf"
        n = int(np.prod(free))
        low, high = {"log": (0, 100), "sqrt": (0, 100), "rsqrt": (0.01, 100), "sin": (-30, 30), "exp": (-20, 20)}.get(op, (-12, 12))
        data = draw(rng, t, (partitions, n), low, high)
        if t == "f32" and op in ("copy", "abs", "sign", "floor", "ceil", "round", "round_even", "trunc", "square"):
            data = draw(rng, t, (partitions, n), special=0.3)
        if t == "f32" and op in ("exp", "log", "sqrt", "tanh", "erf", "arctan"):
            data = np.where(rng.random(data.shape) < 0.2, rng.choice(np.float32([0, -0.0, 1, np.inf, -np.inf, np.nan, 88, -87, 200, -200, -1, 3e-5, 9]), data.shape), data)
        src = p.operand("src", partitions, free, t, data=data, space=space)
        scale = f"scale=f32 {p.constant(1, 'f32')}"
        bias = f"bias=f32 {p.constant(0, 'f32')}"
        if op in ("copy", "square", "abs") and rng.random() < 0.7:
            scale = p.operand("scale", partitions, [1], "f32", data=draw(rng, "f32", (partitions, 1)))
            bias = p.operand("bias", partitions, [1], "f32", data=draw(rng, "f32", (partitions, 1)))
        dst = p.operand("dst", partitions, free, td, is_written=True)
        p.instr("activation", [dst, src, bias, scale], "scalar", op=op)
        check(simulator, p, 4e-6 if op in SMOOTH else op in CLOSE)  # gelu(-5) is small because large numbers cancel


def test_an_activation_adds_up_what_it_computes(simulator):
    for p, rng, partitions, free in cases("reduce_res", n=2 * CASES):
        data = rng.integers(-5, 6, (partitions, int(np.prod(free)))).astype(np.float32)
        src = p.operand("src", partitions, free, "f32", data=data)
        dst = p.operand("dst", partitions, free, "f32", is_written=True)
        start = rng.integers(-5, 6, (partitions, 1)).astype(np.float32)
        total = p.operand("reduce_res", partitions, [1], "f32", is_written=True, data=start)
        one, zero = p.constant(2, "f32"), p.constant(0, "f32")
        p.instr("activation", [dst, total, src, f"bias=f32 {zero}", f"scale=f32 {one}"], "scalar", op=choose(rng, "copy", "square"))
        check(simulator, p)


def test_reciprocal_equals_numpy(simulator):
    for p, rng, partitions, free in cases("reciprocal", n=2 * CASES):
        t, td = choose(rng, *NUMBERS), choose(rng, *NUMBERS)
        src = p.operand("src", partitions, free, t, repeats=True)
        p.instr("reciprocal", [p.operand("dst", partitions, free, td, is_written=True), src], "vector")
        check(simulator, p)


@pytest.mark.parametrize("engine", ["vector", "scalar", "gpsimd"])
@pytest.mark.parametrize("source", [*NUMBERS, "i1"])
def test_tensor_copy_converts_every_type_to_every_type(simulator, source, engine):
    for p, rng, partitions, free in cases("copy", source, engine, n=2 * CASES):
        td = choose(rng, *NUMBERS, "i1")
        space = choose(rng, "sbuf", "psum") if engine != "gpsimd" and source == "f32" and np.prod(free) <= 300 else "sbuf"
        src = p.operand("src", partitions, free, source, repeats=True, space=space)
        unsigned = maybe_unsigned(rng, engine, source, td)
        p.instr("tensor_copy", [p.operand("dst", partitions, free, td, is_written=True), src], engine, unsigned=unsigned)
        check(simulator, p)


def test_f8e4m3fn_converts_on_trn3(simulator):
    for p, rng, partitions, free in cases("fn", n=2 * CASES):
        p.target = "trn3"
        t, td = rng.permutation(["f8E4M3FN", choose(rng, *NUMBERS)])
        src = p.operand("src", partitions, free, str(t))
        p.instr("tensor_copy", [p.operand("dst", partitions, free, str(td), is_written=True), src], "vector")
        check(simulator, p)


def test_tensor_copy_predicated_equals_numpy(simulator):
    for p, rng, partitions, free in cases("predicated", n=4 * CASES):
        t, td, tp = choose(rng, *NUMBERS), choose(rng, *NUMBERS), choose(rng, "i1", *INTS)
        shape = (partitions, int(np.prod(free)))
        where = draw(rng, tp, shape) if tp == "i1" else rng.integers(0, 3, shape).astype(DTYPES[tp])
        src = p.operand("src", partitions, free, t, repeats=True) if rng.random() < 0.7 else f"src={t} {p.constant(3, t)}"
        operands = [p.operand("dst", partitions, free, td, is_written=True), src, p.operand("predicate", partitions, free, tp, data=where)]
        p.instr("tensor_copy_predicated", operands, "vector", reverse_pred=choose(rng, "true", "false"))
        check(simulator, p)


def test_running_results_equal_numpy(simulator):
    for p, rng, partitions, free in cases("scan", n=4 * CASES):
        t, td, n = choose(rng, *FLOATS[:3], "i8"), choose(rng, *FLOATS[:3]), int(np.prod(free))
        # halves with one whole factor stay exact, so that the order of rounding does not matter
        x, y = (rng.integers(-3, 4, (partitions, n)).astype(DTYPES[t]) for _ in range(2))
        start = rng.integers(-3, 4, (partitions, 1)).astype(np.float32)
        initial = p.operand("initial", partitions, [1], "f32", data=start) if rng.random() < 0.5 else f"initial=f32 {p.constant(2, 'f32')}"
        src = p.operand("lhs", partitions, free, t, data=x)
        other = p.operand("rhs", partitions, free, t, data=y)
        dst = p.operand("dst", partitions, free, td, is_written=True)
        p.instr("tensor_tensor_scan", [dst, src, other, initial], "vector", op0=choose(rng, "max", "min", "is_lt", "logical_xor", "is_ge"),
                op1=choose(rng, "add", "subtract", "max", "min"), reverse_operands=choose(rng, "none", "first", "second", "both"))
        check(simulator, p)
    for p, rng, partitions, free in cases("scalar tensor", n=4 * CASES):
        t, td, n = choose(rng, *FLOATS[:3], "i8"), choose(rng, *FLOATS[:3], "i16"), int(np.prod(free))
        x, y = (rng.integers(-3, 4, (partitions, n)).astype(DTYPES[t]) for _ in range(2))
        column = rng.integers(-3, 4, (partitions, 1)).astype(np.float32)
        first = p.operand("operand0", partitions, [1], "f32", data=column) if rng.random() < 0.5 else f"operand0=f32 {p.constant(2, 'f32')}"
        src = p.operand("src", partitions, free, t, data=x)
        other = p.operand("operand1", partitions, free, t, data=y)
        dst = p.operand("dst", partitions, free, td, is_written=True)
        p.instr("scalar_tensor_tensor", [dst, src, first, other], "vector", op0=choose(rng, "add", "subtract", "multiply", "max", "is_lt", "logical_xor"),
                op1=choose(rng, "add", "subtract", "multiply", "min", "is_ge"), reverse_operands=choose(rng, "none", "first", "second", "both"))
        check(simulator, p)
    for p, rng, partitions, free in cases("cumulative", n=4 * CASES):
        t, td, n = choose(rng, *FLOATS[:3], "i8"), choose(rng, *FLOATS[:3]), int(np.prod(free))
        src = p.operand("src", partitions, free, t, data=rng.integers(-3, 4, (partitions, n)).astype(DTYPES[t]))
        dst = p.operand("dst", partitions, free, td, is_written=True)
        p.instr("tensor_scalar_cumulative", [dst, src, f"operand0=f32 {p.constant(2, 'f32')}", f"initial=f32 {p.constant(-1, 'f32')}"], "vector",
                op0=choose(rng, "add", "subtract", "multiply", "max"), op1=choose(rng, "add", "subtract", "max", "min"))
        check(simulator, p)


def test_statistics_equal_numpy(simulator):
    for p, rng, partitions, _ in cases("stats", n=4 * CASES):
        t, n = choose(rng, *FLOATS[:3]), int(rng.choice([1, 2, 7, 300, 512]))
        src = p.operand("src", partitions, [n], t, data=rng.uniform(-5, 5, (partitions, n)).astype(np.float32).astype(DTYPES[t]))
        p.instr("bn_stats", [p.operand("dst", partitions, [6], "f32", is_written=True), src], "vector")
        groups = rng.uniform(1, 9, (partitions, 12)).astype(np.float32)
        p.instr("bn_aggr", [p.operand("dst", partitions, [2], "f32", is_written=True), p.operand("src", partitions, [12], "f32", data=groups)], "vector")
        check(simulator, p, close=True)


def test_eight_elements_are_numpys(simulator):
    for p, rng, partitions, _ in cases("eight", n=4 * CASES):
        t, n = choose(rng, *FLOATS[:3]), int(rng.choice([8, 9, 100, 1500]))
        # few different values, so that they occur several times or not at all
        x = rng.integers(-20, 20, (partitions, n)).astype(DTYPES[t])
        values = rng.integers(-20, 20, (partitions, 8)).astype(DTYPES[t])
        src = p.operand("src", partitions, [n], t, data=x)
        values = p.operand("values", partitions, [8], t, data=values)
        p.instr("max8", [p.operand("dst", partitions, [8], t, is_written=True), src], "vector")
        ti = choose(rng, "i16", "i32")
        p.instr("find_index8", [p.operand("dst", partitions, [8], ti, is_written=True), src, values], "vector", unsigned=True)
        index = [p.operand("dst_index", partitions, [8], ti, is_written=True)] if rng.random() < 0.5 else []
        p.instr("match_replace8", [p.operand("dst", partitions, [n], t, is_written=True), *index, src, values,
                                   f"replacement=f32 {p.constant(-100, 'f32')}"], "vector", unsigned=True)
        check(simulator, p)


def test_shuffles_and_transposes_equal_numpy(simulator):
    for p, rng, partitions, free in cases("shuffle", n=4 * CASES):
        t, n = choose(rng, *NUMBERS), int(np.prod(free))
        groups = int(rng.integers(1, 5)) * 32
        mask = rng.permutation(32)
        mask[rng.random(32) < 0.2] = 255
        dst, src = p.operand("dst", groups, free, t, is_written=True), p.operand("src", groups, free, t)
        p.instr("stream_shuffle", [dst, src], "vector", shuffle_mask=f"[{', '.join(map(str, mask))}]")
        rows, columns = (int(rng.integers(1, 33)) for _ in range(2))
        p.instr("transpose", [p.operand("dst", columns, [rows], t, is_written=True), p.operand("src", rows, [columns], t)], "vector")
        check(simulator, p)


def test_gathers_equal_numpy(simulator):
    for p, rng, partitions, free in cases("gathers", n=4 * CASES):
        t, n, most = choose(rng, *NUMBERS), int(np.prod(free)), int(rng.choice([1, 7, 300]))
        src = p.operand("src", partitions, [most], t)
        index = p.operand("src_index", partitions, free, "i32", data=rng.integers(0, most, (partitions, n)).astype(np.int32))
        p.instr("gather", [p.operand("dst", partitions, free, t, is_written=True), src, index], "gpsimd", unsigned=True)
        cores, run, each = 16 * int(rng.integers(1, 9)), int(rng.choice([1, 2, 8])), int(rng.integers(1, 4))
        indices = int(rng.integers(1, 16 * each + 1))
        src = p.operand("src", cores, [most * run], t)
        index = p.operand("src_index", cores, [each], "i16", data=rng.integers(0, most, (cores, each)).astype(np.int16))
        p.instr("local_gather", [p.operand("dst", cores, [indices * run], t, is_written=True), src, index], "gpsimd", elements_per_index=run, n_indices=indices, unsigned=True)
        check(simulator, p)


def test_places_of_segments_and_of_elements_that_are_not_0_equal_numpy(simulator):
    for p, rng, partitions, _ in cases("places", n=4 * CASES):
        p.target = choose(rng, "trn2", "trn3")
        n = int(rng.choice([1, 5, 200]))
        ids = np.repeat(rng.integers(0, 4, n), rng.integers(1, 4, n))[:n].astype(np.float32)[None]
        p.instr("sequence_bounds", [p.operand("dst", 1, [2 * n], choose(rng, "f32", "i32"), is_written=True), p.operand("src", 1, [n], "f32", data=ids)], "gpsimd")
        t = choose(rng, "f32", "bf16", "i8")
        x = rng.integers(-1, 2, (partitions, n)).astype(DTYPES[t])
        dst = p.operand("dst", partitions, [n + 1], "i32", is_written=True)
        p.instr("nonzero_with_count", [dst, p.operand("src", partitions, [n], t, data=x)], "gpsimd", index_offset=int(rng.integers(0, 9)), padding=-3)
        check(simulator, p)


def test_the_largest_elements_of_16_partitions_equal_numpy(simulator):
    for p, rng, _, _ in cases("topk", n=4 * CASES):
        columns, groups = int(rng.integers(1, 40)), int(rng.integers(1, 5))
        n = int(rng.integers(max(8, 16 * columns - 20), 16 * columns + 1))
        k = int(rng.integers(1, n // 16 + 1)) if n >= 16 else 0
        if not k:
            continue
        x = rng.choice(np.arange(-20, 20) / 4, (16 * groups, columns)).astype(DTYPES["bf16"])
        p.instr("topk", [p.operand("dst", 16 * groups, [k], "bf16", is_written=True), p.operand("dst_index", 16 * groups, [k], choose(rng, "i32", "i16"), is_written=True),
                         p.operand("src", 16 * groups, [columns], "bf16", data=x)], "gpsimd", n_elements=n)
        check(simulator, p)


@pytest.mark.parametrize("engine", ["vector", "gpsimd"])
def test_memset_equals_numpy(simulator, engine):
    for p, rng, partitions, free in cases("memset", engine, n=3 * CASES):
        t, td = choose(rng, *FLOATS[:3], "i32", "i8"), choose(rng, *NUMBERS, "i1")
        value = draw(rng, t, (1,), special=0.5)[0]
        p.instr("memset", [p.operand("dst", partitions, free, td, is_written=True), f"value={t} {p.constant(value, t)}"], engine)
        check(simulator, p)


def test_iota_equals_numpy(simulator):
    for p, rng, partitions, free in cases("iota", n=3 * CASES):
        td = choose(rng, *NUMBERS)
        p.cut = list
        dst = p.operand("dst", partitions, free, td, is_written=True)
        coefficients = rng.choice([0, 1, -1, 3, 100, -7, 40000], 1 + len(free))
        p.instr("iota", [dst, f"offset=index {p.constant(int(rng.integers(-50, 50)), 'index')}"], "gpsimd",
                coefficients=f"[{', '.join(map(str, coefficients))}]")
        check(simulator, p)


# ---- data -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [*NUMBERS, "f64", "i64"])
def test_dma_copy_equals_numpy(simulator, source):
    """From HBM to HBM or SBUF, any dimension to any."""
    for p, rng, partitions, free in cases("dma", source, n=2 * CASES):
        td = choose(rng, *FLOATS, "f64", source) if not is_int(source) else choose(rng, source, *FLOATS)
        array = draw(rng, source, (partitions + 2, *free), special=0.05)
        src = p.argument(array, source)
        indices = ", ".join(f"d{k}" + (" + 1" if not k else "") for k in range(array.ndim))
        from_ = f"src<{partitions}| {', '.join(map(str, free))}>=memref<{'x'.join(map(str, array.shape))}x{source}, #nisa.mem<shared_hbm>> {src}[{indices}]"
        if td in ("f64", "i64"):
            shape = [partitions, *free]
            dst, result = p.name(), p.name()
            p.line(f"{dst} = nisa.alloc : memref<{'x'.join(map(str, shape))}x{td}, #nisa.mem<hbm>>")
            p.instr("dma_copy", [p.whole("dst", dst, shape, td, "hbm"), from_], "dma")
            p.give(dst, shape, td, "hbm")
        else:
            p.instr("dma_copy", [p.operand("dst", partitions, free, td, is_written=True), from_], "dma")
        check(simulator, p)


@pytest.mark.parametrize("t", ["f32", "i32", "bf16", "f16", "i16"])
def test_dma_transpose_equals_numpy(simulator, t):
    for p, rng, *_ in cases("transpose", t):
        rows, columns = int(rng.choice([1, 2, 31, 128])), int(rng.choice([1, 5, 64, 128]))
        src = p.operand("src", rows, [columns], t)
        p.instr("dma_transpose", [p.operand("dst", columns, [rows], t, is_written=True), src], "dma", permutation="[1, 0]")
        check(simulator, p)


@pytest.mark.parametrize("dim", [0, 1])
def test_dma_copy_indirect_equals_numpy(simulator, dim):
    for p, rng, *_ in cases("gather", dim):
        partitions, columns, t = int(rng.choice([1, 17, 128])), int(rng.choice([1, 8, 130])), choose(rng, "f32", "bf16", "i8")
        shape = [40, columns] if dim == 0 else [partitions, 40, columns]
        table = p.argument(draw(rng, t, shape), t)
        at = "0, d1" if dim == 0 else "d0, 0, d1"
        limit = int(rng.integers(1, 41))
        index = p.operand("src_index", partitions, [1], "i32", data=rng.integers(0, limit, (partitions, 1)).astype(np.int32))
        src = f"src<{partitions}| {columns}>=memref<{'x'.join(map(str, shape))}x{t}, #nisa.mem<shared_hbm>> {table}[{at}]"
        p.instr("dma_copy_indirect", [p.operand("dst", partitions, [columns], t, is_written=True), src, index], "dma",
                src_index_dim=dim, src_indirect_max_index=limit)
        check(simulator, p)


# ---- products -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("types", [("f32", "f32"), ("bf16", "bf16"), ("f16", "bf16"), ("f8E4M3", "bf16"), ("f8E5M2", "f8E4M3")])
def test_matmul_equals_numpy(simulator, types):
    """Small whole numbers: every sum is exact.  Several products add up in one group; others start over."""
    for p, rng, *_ in cases("matmul", types, n=2 * CASES):
        depth, rows, columns = int(rng.choice([1, 3, 64, 127, 128])), int(rng.choice([1, 5, 128])), int(rng.choice([1, 3, 130, 512]))
        zero, group = p.constant(0, "index"), p.name()
        p.line(f"{group} = nisa.alloc : memref<{rows}x{columns}xf32, #nisa.mem<psum>>")
        p.releases.append(f"nisa.release {group} : memref<{rows}x{columns}xf32, #nisa.mem<psum>>")
        for _ in range(int(rng.integers(1, 4))):
            a, b = (rng.integers(-4, 5, (depth, n)).astype(np.float32).astype(DTYPES[t]) for n, t in zip((rows, columns), types))
            stationary = p.operand("stationary", depth, [rows], types[0], data=a)
            moving = p.operand("moving", depth, [columns], types[1], data=b)
            p.instr("matmul", [p.whole("dst", group, (rows, columns), "f32", "psum"), stationary, moving, f"row_pos=index {zero}",
                               f"col_pos=index {zero}"], "tensor", is_transpose="false", perf_opt="none_", psum_zero_region="size2048")
        p.give(group, (rows, columns), "f32", "psum")
        check(simulator, p)


@pytest.mark.parametrize("t", ["f32", "bf16", "f16"])
def test_a_transpose_on_the_tensor_engine_changes_no_element(simulator, t):
    for p, rng, *_ in cases("transpose", t, n=CASES):
        depth, rows = int(rng.choice([1, 3, 64, 128])), int(rng.choice([1, 5, 128]))
        zero, group = p.constant(0, "index"), p.name()
        p.line(f"{group} = nisa.alloc : memref<{rows}x{depth}x{t}, #nisa.mem<psum>>")
        p.releases.append(f"nisa.release {group} : memref<{rows}x{depth}x{t}, #nisa.mem<psum>>")
        stationary = p.operand("stationary", depth, [rows], t, data=draw(rng, t, (depth, rows), special=0.3))
        moving = p.operand("moving", depth, [depth], t, data=np.eye(depth).astype(DTYPES[t]))
        p.instr("matmul", [p.whole("dst", group, (rows, depth), t, "psum"), stationary, moving, f"row_pos=index {zero}",
                           f"col_pos=index {zero}"], "tensor", is_transpose="true", perf_opt="none_", psum_zero_region="size2048")
        p.give(group, (rows, depth), t, "psum")
        check(simulator, p)


def test_a_product_of_fractions_is_as_exact_as_numpys(simulator):
    for p, rng, *_ in cases("fractions"):
        a, b = (rng.standard_normal((128, n)).astype(np.float32) for n in (128, 512))
        zero, group = p.constant(0, "index"), p.name()
        p.line(f"{group} = nisa.alloc : memref<128x512xf32, #nisa.mem<psum>>")
        p.releases.append(f"nisa.release {group} : memref<128x512xf32, #nisa.mem<psum>>")
        p.instr("matmul", [p.whole("dst", group, (128, 512), "f32", "psum"), p.operand("stationary", 128, [128], "f32", data=a),
                           p.operand("moving", 128, [512], "f32", data=b), f"row_pos=index {zero}", f"col_pos=index {zero}"],
                "tensor", is_transpose="false", perf_opt="none_", psum_zero_region="size2048")
        p.give(group, (128, 512), "f32", "psum")
        (got,) = simulator.run(p.text(), p.arrays)
        exact = a.astype(np.float64).T @ b.astype(np.float64)
        assert np.abs(got - exact).max() <= 2 * np.abs(a.T @ b - exact).max()


# ---- devices --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["all_gather", "all_reduce", "reduce_scatter", "all_to_all", "collective_permute"])
def test_collectives_equal_numpy(simulator, kind):
    for p, rng, *_ in cases(kind, n=3 * CASES):
        n, t, dim = int(rng.choice([1, 2, 4])), choose(rng, "f32", "bf16", "i32", "i8"), int(rng.integers(0, 3))
        shape = [4, 8, 12]
        op = choose(rng, "add", "multiply", "max", "min", *(BITS[:2] if is_int(t) else ())) if kind in ("all_reduce", "reduce_scatter") else None
        out = list(shape)
        if kind == "all_gather":
            out[dim] *= n
        if kind == "reduce_scatter":
            out[dim] //= n
        groups = f"dense<{[list(range(n))]}> : tensor<1x{n}xi64>"
        pairs = "dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"
        dst = p.name()
        p.line(f"{dst} = nisa.alloc : memref<{'x'.join(map(str, out))}x{t}, #nisa.mem<hbm>>")
        src = p.argument(draw(rng, t, shape), t)
        p.instr(kind, [p.whole("dst", dst, out, t, "hbm"), p.whole("src", src, shape, t, "shared_hbm")], "dma", op=op,
                dim=dim if kind in ("all_gather", "reduce_scatter", "all_to_all") else None,
                replica_groups=groups if kind != "collective_permute" else None,
                source_target_pairs=pairs if kind == "collective_permute" else None)
        p.give(dst, out, t, "hbm")
        check(simulator, p)


# ---- registers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", ["i32", "i16", "i8", "i1"])
def test_a_register_that_is_loaded_moves_an_access(simulator, t):
    for p, rng, *_ in cases("register", t):
        at = p.operand("src", 1, [1], t, data=rng.integers(0, 2 if t == "i1" else 7, (1, 1)).astype(DTYPES[t]))
        loaded, index = p.name(), p.name()
        p.line(f"{loaded} = nisa.register_load({at}) engine=sync : {t}")
        p.line(f"{index} = arith.{'index_castui' if t == 'i1' else 'index_cast'} {loaded} : {t} to index")
        src = p.buffer(draw(rng, "f32", (64, 9)), "f32")
        dst = p.operand("dst", 64, [2], "f32", is_written=True)
        p.instr("tensor_copy", [dst, f"src<64| 2>=memref<64x9xf32, #nisa.mem<sbuf>> {src}[d0, {index} + d1]"], "vector")
        check(simulator, p)


@pytest.mark.parametrize("t", ["i32", "i16", "i8", "f32"])
def test_a_register_that_is_stored_is_the_result_of_arithmetic(simulator, t):
    operation = "mulf" if t == "f32" else "muli"
    for p, rng, *_ in cases("register_store", t):
        at = p.operand("src", 1, [1], t, data=draw(rng, t, (1, 1)))
        loaded, product = p.name(), p.name()
        p.line(f"{loaded} = nisa.register_load({at}) engine=sync : {t}")
        p.line(f"{product} = arith.{operation} {loaded}, {loaded} : {t}")
        p.instr("register_store", [p.operand("dst", 1, [1], t, is_written=True), f"value={t} {product}"], "sync")
        check(simulator, p)
