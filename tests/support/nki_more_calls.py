"""Cases of test_calls.py: accumulator registers, selections by ranges, shuffles, gathers, random numbers, small transposes,
and operators that only some engines or machines have."""
import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
NEWER, NEWEST = ("trn2", "trn3"), ("trn3",)
FP32_MIN = np.finfo(np.float32).min


def uniform(rng, shape, dtype=np.float32):
    return rng.uniform(-3, 3, shape).astype(np.float32).astype(dtype)


def add_all(rng, add):
    for family in (alu, registers, range_selects, newest, shuffles, gathers, places, randoms, transposes, cores, language, rows, sums, wide_transposes, products, packed):
        family(rng, add)


def alu(rng, add):
    x, y, c = uniform(rng, (64, 20)), uniform(rng, (64, 20)), uniform(rng, (64, 1))
    x[:, 3] = -y[:, 3]
    one = "nisa.tensor_scalar(out, x, nl.{}{})"
    add("tensor_scalar abs", one.format("abs", ""), {"x": x}, (64, 20), "float32", np.abs(x))
    add("tensor_scalar abs, then multiply", one.format("abs", ", op1=nl.multiply, operand1=c"), {"x": x, "c": c}, (64, 20), "float32", np.abs(x) * c, 1e-6)
    add("tensor_scalar subtract, then abs", one.format("subtract", ", 1.0, op1=nl.abs"), {"x": x}, (64, 20), "float32", np.abs(x - 1), 1e-6)
    add("tensor_scalar reciprocal", one.format("reciprocal", ""), {"x": x}, (64, 20), "float32", 1 / x, 1e-6)
    p = np.abs(x) + 0.5
    add("tensor_scalar rsqrt", one.format("add", ", 1.0, op1=nl.rsqrt, engine=nisa.engine.gpsimd"), {"x": p}, (64, 20), "float32", (p + 1) ** -0.5, 1e-6)
    add("tensor_scalar square", one.format("square", ""), {"x": x}, (64, 20), "float32", x * x, 0, NEWEST)
    add("tensor_scalar relu bfloat16", one.format("relu", ", None, op1=nl.add, operand1=0.5"), {"x": x.astype(BF16)}, (64, 20), "bfloat16",
        (np.maximum(x.astype(BF16).astype(np.float32), 0) + np.float32(0.5)).astype(BF16), 0, NEWEST)
    largest, smallest = np.where(np.abs(x) >= np.abs(y), x, y), np.where(np.abs(x) <= np.abs(y), x, y)
    add("tensor_tensor abs_max", "nisa.tensor_tensor(out, x, y, nl.abs_max)", {"x": x, "y": y}, (64, 20), "float32", largest, 0, NEWEST)
    add("nl.abs_min", "nisa.tensor_copy(out, nl.abs_min(x, y))", {"x": x, "y": y}, (64, 20), "float32", smallest, 0, NEWEST)
    add("tensor_scalar abs_max", one.format("abs_max", ", -1.5"), {"x": x}, (64, 20), "float32", np.where(np.abs(x) >= 1.5, x, np.float32(-1.5)), 0, NEWEST)
    add("tensor_reduce abs_max", "nisa.tensor_reduce(out, nl.abs_max, x, axis=1)", {"x": x}, (64, 1), "float32",
        np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1), 0, NEWEST)
    on_scalar = "nisa.tensor_scalar(out, x, nl.{}, engine=nisa.engine.scalar)"
    add("tensor_scalar on Scalar", on_scalar.format("multiply, c, op1=nl.add, operand1=0.5"), {"x": x, "c": c}, (64, 20), "float32", x * c + np.float32(0.5), 1e-6, NEWER)
    add("tensor_scalar on Scalar, a sum", on_scalar.format("add, c"), {"x": x, "c": c}, (64, 20), "float32", x + c, 1e-6, NEWER)
    add("tensor_scalar on Scalar, a product", on_scalar.format("multiply, 3.0"), {"x": x}, (64, 20), "float32", x * 3, 1e-6, NEWER)


def registers(rng, add):
    x, y = uniform(rng, (64, 20)), uniform(rng, (64, 20))
    t = "t = nl.ndarray((64, 20), nl.float32)\n"
    cmd = "nisa.reduce_cmd."
    act = "nisa.activation(t, nl.{}, {}, reduce_op=nl.add, reduce_cmd=" + cmd + "{}{})\n"
    both = (np.exp(x).sum(1) + np.square(y).sum(1))[:, None]
    add("activation accumulates", t + act.format("exp", "x", "reset_reduce", "") + act.format("square", "y", "reduce", ", reduce_res=out"), {"x": x, "y": y},
        (64, 1), "float32", both, 1e-5)
    add("activation reads its registers", t + act.format("exp", "x", "reset_reduce", "") + act.format("square", "y", "idle", ", reduce_res=out"),
        {"x": x, "y": y}, (64, 1), "float32", np.exp(x).sum(1)[:, None], 1e-5)
    add("activation resets its registers", t + act.format("exp", "x", "reset_reduce", "") + act.format("exp", "x", "reset", "")
        + act.format("square", "y", "reduce", ", reduce_res=out"), {"x": x, "y": y}, (64, 1), "float32", np.square(y).sum(1)[:, None], 1e-5)
    add("activation_reduce begins anew", t + act.format("exp", "x", "reset_reduce", "") + "nisa.activation_reduce(t, nl.square, y, nl.add, out)\n"
        + act.format("copy", "x", "reduce", ", reduce_res=out"), {"x": x, "y": y}, (64, 1), "float32", (np.square(y).sum(1) + x.sum(1))[:, None], 1e-5)
    add("registers of a part of the partitions", "nisa.memset(out, 5.0)\n" + t + act.format("exp", "x", "reset_reduce", "")
        + "nisa.activation(t[32:64], nl.square, y[32:64], reduce_op=nl.add, reduce_res=out[32:64], reduce_cmd=" + cmd + "reduce)", {"x": x, "y": y}, (64, 1),
        "float32", np.where(np.arange(64)[:, None] < 32, 5, both), 1e-5)
    tsr = "nisa.tensor_scalar_reduce(t, {}, nl.multiply, 2.0, nl.{}, reduce_cmd=" + cmd + "{}{})\n"
    for op, f, g in (("add", np.sum, np.add), ("maximum", np.max, np.maximum), ("minimum", np.min, np.minimum), ("multiply", np.prod, np.multiply)):
        a, b = (x, y) if op != "multiply" else (x[:, :20] / 2, y / 2)
        a, b = np.float32(a), np.float32(b)
        add(f"tensor_scalar_reduce accumulates by {op}", t + tsr.format("x", op, "reset_reduce", "") + tsr.format("y", op, "reduce", ", reduce_res=out"),
            {"x": a, "y": b}, (64, 1), "float32", g(f(2 * a, 1), f(2 * b, 1))[:, None], 1e-4)
    add("tensor_scalar_reduce from a number", t + tsr.format("x", "add", "load_reduce", ", reduce_res=out, reduce_init=7.0"), {"x": x}, (64, 1), "float32",
        7 + 2 * x.sum(1, keepdims=True), 1e-5)
    add("tensor_scalar_reduce negated", t + tsr.format("x", "maximum", "reset_reduce", ", reduce_res=out, reduce_res_negate=True"), {"x": x}, (64, 1), "float32",
        -2 * x.max(1, keepdims=True), 1e-6)
    add("tensor_scalar_reduce reversed", t + "nisa.tensor_scalar_reduce(t, x, nl.subtract, 2.0, nl.add, reduce_res=out, reverse0=True)", {"x": x}, (64, 1), "float32",
        (2 - x).sum(1, keepdims=True), 1e-5)
    p = (rng.random((64, 20)) < 0.5).astype(np.uint8)
    add("select_reduce goes on with the registers of Vector", t + tsr.format("x", "maximum", "reset_reduce", "")
        + "nisa.select_reduce(t, p, y, 0.0, reduce_res=out, reduce_cmd=" + cmd + "reduce, reduce_op=nl.maximum)", {"x": x, "y": y, "p": p}, (64, 1), "float32",
        np.maximum(2 * x.max(1), np.where(p, y, 0).max(1))[:, None], 1e-6)
    cumulative = "nisa.tensor_scalar_cumulative({}, {}, nl.multiply, nl.add, 0.5, reduce_cmd=" + cmd + "{})\n"
    add("tensor_scalar_cumulative goes on", t + cumulative.format("t", "x", "reset_reduce") + cumulative.format("out", "y", "reduce"), {"x": x, "y": y}, (64, 20),
        "float32", np.cumsum(np.hstack([x, y]) / 2, axis=1)[:, 20:], 1e-5)


def range_selects(rng, add):
    x = uniform(rng, (64, 20))
    low, high = (np.sort(rng.integers(0, 20, (64, 2)), axis=1).astype(np.float32)[:, k:k + 1] for k in range(2))
    i = np.arange(20)
    select = "nisa.range_select({}, x, nl.greater_equal, nl.less, {}, {}{})"
    add("range_select", select.format("out", 3.0, 11.0, ""), {"x": x}, (64, 20), "float32", np.where((i >= 3) & (i < 11), x, FP32_MIN), 0, NEWER)
    add("range_select by columns", select.format("out", "l", "h", ", on_false_value=-1.0"), {"x": x, "l": low, "h": high}, (64, 20), "float32",
        np.where((i >= low) & (i < high), x, -1), 0, NEWER)
    add("range_select from a start", select.format("out", 103.0, 111.0, ", range_start=100.0, on_false_value=0.5"), {"x": x.astype(BF16)}, (64, 20), "bfloat16",
        np.where((i >= 3) & (i < 11), x.astype(BF16), BF16.type(0.5)), 0, NEWER)
    for t in ("float32", "bfloat16"):
        body = f"t = nl.ndarray((64, 20), nl.{t})\n" + select.format("t", 3.0, 11.0, ", reduce_res=out, reduce_op=nl.maximum")
        add(f"range_select begins its maximum anew {t}", body.replace("nl.maximum)", "nl.maximum, reduce_cmd=nisa.reduce_cmd.reset_reduce)"), {"x": x}, (64, 1),
            "float32", x[:, 3:11].max(1, keepdims=True), 0, NEWER)
        add(f"range_select with its maximum {t}", body, {"x": x}, (64, 1), "float32", x[:, 3:11].max(1, keepdims=True), 0, NEWER)


def newest(rng, add):
    x, c = uniform(rng, (64, 20)), uniform(rng, (64, 1))
    add("exponential", "nisa.exponential(out, x)", {"x": x}, (64, 20), "float32", np.exp(x), 1e-5, NEWEST)
    add("exponential of a difference", "nisa.exponential(dst=out, src=x, max_value=c)", {"x": x.astype(BF16), "c": c}, (64, 20), "bfloat16",
        np.exp(x.astype(BF16).astype(np.float32) - c).astype(BF16), 0.01, NEWEST)
    add("exponential with its sum", "t = nl.ndarray((64, 20), nl.bfloat16)\nnisa.exponential(t, x, 0.5, out, nisa.reduce_cmd.load_reduce, 2.0)", {"x": x},
        (64, 1), "float32", np.exp(x - np.float32(0.5)).sum(1, keepdims=True) + 2, 1e-5, NEWEST)
    two = "nisa.activate2({}, nl.{}, x, {}, nl.{}, nl.{}{})"
    add("activate2 multiply add", two.format("out", "tanh", "c, 0.5", "multiply", "add", ""), {"x": x, "c": c}, (64, 20), "float32", np.tanh(x * c + np.float32(0.5)), 1e-5, NEWEST)
    add("activate2 subtract reversed", two.format("out", "exp", "1.0, 0.0", "subtract", "bypass", ", reverse0=True"), {"x": x}, (64, 20), "float32", np.exp(1 - x), 1e-5, NEWEST)
    add("activate2 subtract second reversed", two.format("out", "tanh", "2.0, 0.5", "multiply", "subtract", ", reverse1=True"), {"x": x}, (64, 20), "float32",
        np.tanh(np.float32(0.5) - 2 * x), 1e-5, NEWEST)
    add("activate2 bypass", two.format("out", "square", "0.0, 0.0", "bypass", "bypass", ""), {"x": x}, (64, 20), "float32", x * x, 1e-6, NEWEST)
    add("activate2 prelu", two.format("out", "prelu", "2.0, 1.0", "multiply", "subtract", ", relu_param=0.25"), {"x": x}, (64, 20), "float32",
        np.where(2 * x - 1 > 0, 2 * x - 1, (2 * x - 1) / 4), 1e-6, NEWEST)
    for op, f in {"add": np.sum, "maximum": np.max, "minimum": np.min}.items():
        body = "t = nl.ndarray((64, 20), nl.float32)\n" + two.format("t", "copy", "2.0, 0.0", "multiply", "bypass", f", reduce_op=nl.{op}, reduce_res=out")
        add(f"activate2 with its {op}", body, {"x": x}, (64, 1), "float32", f(2 * x, axis=1, keepdims=True), 1e-5, NEWEST)
    body = "t = nl.ndarray((64, 20), nl.float32)\n" + two.format("t", "copy", "0.0, 0.0", "bypass", "bypass", ", reduce_op=nl.abs_max, reduce_res=out")
    add("activate2 with its abs_max", body, {"x": x}, (64, 1), "float32", np.take_along_axis(x, np.abs(x).argmax(1)[:, None], 1), 0, NEWEST)


def shuffles(rng, add):
    for t, p in (("float32", 128), ("bfloat16", 64), ("int32", 32), ("uint8", 96)):
        x = rng.integers(0, 100, (p, 6)).astype(BF16 if t == "bfloat16" else t)
        mask = rng.integers(0, 32, 32)
        add(f"nc_stream_shuffle {t}", f"nisa.nc_stream_shuffle(out, x, {mask.tolist()})", {"x": x}, (p, 6), t, x.reshape(-1, 32, 6)[:, mask].reshape(p, 6))
    x, mask = uniform(rng, (64, 6)), rng.permutation(32)
    kept = np.where(mask % 3 == 0, np.arange(32), mask)
    body = f"nisa.nc_stream_shuffle(dst=x, src=x, shuffle_mask={np.where(mask % 3 == 0, 255, mask).tolist()})\nnisa.tensor_copy(out, x)"
    add("nc_stream_shuffle in place, with partitions that stay", body, {"x": x}, (64, 6), "float32", x.reshape(2, 32, 6)[:, kept].reshape(64, 6))
    add("nc_stream_shuffle of few partitions", f"nisa.nc_stream_shuffle(out, x, {[3, 2, 1, 0] + [0] * 28})", {"x": x[:4]}, (4, 6), "float32", x[3::-1])


def gathers(rng, add):
    for t in ("float32", "bfloat16", "int8"):
        x = rng.integers(0, 100, (64, 40)).astype(BF16 if t == "bfloat16" else t)
        i = rng.integers(0, 40, (64, 13)).astype(np.uint32)
        add(f"nc_n_gather {t}", "nisa.nc_n_gather(out, x, i)", {"x": x, "i": i}, (64, 13), t, np.take_along_axis(x, i.astype(int), 1))
        add(f"nl.gather_flattened {t}", "nisa.tensor_copy(out, nl.gather_flattened(x, i))", {"x": x, "i": i}, (64, 13), t, np.take_along_axis(x, i.astype(int), 1))
    x = uniform(rng, (32, 128))
    for run in (1, 2, 8):
        i = rng.integers(0, 128 // run, (32, 2)).astype(np.uint16)
        for n in (32, 19):
            want = np.concatenate([x[p:p + 16].reshape(16, -1, run)[:, [i[p + k % 16, k // 16] for k in range(n)]].reshape(16, -1) for p in (0, 16)])
            call = f"nisa.local_gather(out, x, i, {run}{'' if n == 32 else f', num_valid_indices={n}'})"
            add(f"local_gather of {n} runs of {run}", call, {"x": x, "i": i}, (32, n * run), "float32", want)


def largest_of(x, n, found, numbers):
    """What topk finds among the first n elements of each 16 partitions: the values, and their numbers."""
    p, columns = x.shape
    place = [(r if c % 2 == 0 else 15 - r, c) for c in range(columns) for r in range(16)]
    values, at = np.zeros((p, found), x.dtype), np.zeros((p, found), numbers)
    for q in range(0, p, 16):
        order = sorted(range(n), key=lambda k: (float(x[q + place[k][0], place[k][1]]), -k))[n - 16 * found:]
        for (r, c), k in zip(place, order):
            values[q + r, c], at[q + r, c] = x[q + place[k][0], place[k][1]], k
    return values, at


def places(rng, add):
    ids = np.array([[1, 1, 0, 0, 2, 2, 2, 5, 0]], np.float32)
    want = np.array([[[0, 0, 9, 9, 4, 4, 4, 7, 9], [2, 2, -1, -1, 7, 7, 7, 8, -1]]])
    for t in ("float32", "int32"):
        add(f"sequence_bounds {t}", "nisa.sequence_bounds(out, s)", {"s": ids.astype(t)}, (1, 2, 9), t, want.astype(t))
    for t in ("float32", "int8"):
        x = (rng.integers(-2, 3, (48, 30))).astype(t)
        want = np.full((48, 31), 77, np.int32)
        for p in (0, 16, 32):
            found = np.flatnonzero(x[p])
            want[p] = [*(found + 100), *[-5] * (30 - len(found)), len(found)]
        add(f"nonzero_with_count {t}", "nisa.memset(out, 77)\nnisa.nonzero_with_count(out, x, index_offset=100, padding_val=-5)", {"x": x}, (48, 31), "int32", want, 0, NEWER)
    x = uniform(rng, (32, 8), BF16)
    values, at = largest_of(x, 100, 2, np.uint32)
    call = "{} = nl.ndarray((32, 2), nl.{}, buffer=nl.sbuf)\nnisa.topk({}, x, 100)"
    add("topk, its values", call.format("at", "uint32", "out, at"), {"x": x}, (32, 2), "bfloat16", values)
    add("topk, its places", call.format("most", "bfloat16", "most, out"), {"x": x}, (32, 2), "uint32", at)


def xorwow(state, n):
    """n numbers of a generator with the six words of `state`; the words after that."""
    x, d, out = [int(v) for v in state[:5]], int(state[5]), []
    for _ in range(n):
        t = x[0] ^ x[0] >> 2
        x = [*x[1:], (x[4] ^ x[4] << 4 & 0xffffffff) ^ (t ^ t << 1 & 0xffffffff)]
        d = d + 362437 & 0xffffffff
        out.append(x[4] + d & 0xffffffff)
    return out, [*x, d]


def seeded(seed, p, k):
    """The words of generator k of partition p."""
    words = []
    for w in range(6):
        v = seed + 0x9e3779b9 * (1 + w + 6 * (k + 4 * p)) & 0xffffffff
        for factor, shift in ((0x85ebca6b, 16), (0xc2b2ae35, 13)):
            v = (v ^ v >> shift) * factor & 0xffffffff
        words.append(v ^ v >> 16)
    return words


def vector_numbers(seed, partitions, n):
    out = np.empty((partitions, n), np.uint32)
    for p in range(partitions):
        for k in range(4):
            numbers, _ = xorwow(seeded(seed, p, k), len(range(k, n, 4)))
            out[p, k::4] = numbers
    return out


def randoms(rng, add):
    state = rng.integers(0, 2**32, (32, 6), dtype=np.uint32)
    numbers = np.array([xorwow(s, 9)[0] for s in state], np.uint32)
    after = np.array([xorwow(s, 9)[1] for s in state], np.uint32)
    g = ", engine=nisa.engine.gpsimd)\n"
    add("rng on GpSimd", "nisa.rand_set_state(s" + g + "nisa.rng(out" + g, {"s": state}, (32, 9), "uint32", numbers, 0, NEWER)
    add("rand_get_state", "t = nl.ndarray((32, 9), nl.uint32)\nnisa.rand_set_state(s" + g + "nisa.rng(t" + g + "nisa.rand_get_state(out" + g, {"s": state}, (32, 6), "uint32",
        after, 0, NEWER)
    add("rng uint8", "nisa.rand_set_state(s" + g + "nisa.rng(out" + g, {"s": state}, (32, 9), "uint8", numbers.astype(np.uint8), 0, NEWER)
    seed = np.array([[42]], np.uint32)
    want = vector_numbers(42, 20, 11)
    add("rng after a seed", "nisa.set_rng_seed(s)\nnisa.rng(out)", {"s": seed}, (20, 11), "uint32", want)
    add("rng before any seed", "nisa.rng(out)", {"s": seed}, (20, 11), "uint32", vector_numbers(0, 20, 11))
    u = (want >> 8).astype(np.float32) / 2**24
    add("nl.rand after nl.random_seed", "nl.random_seed(42)\nnisa.tensor_copy(out, nl.rand((20, 11), nl.float32))", {"s": seed}, (20, 11), "float32", u)
    c = uniform(rng, (20, 1))
    add("rand2", "nisa.set_rng_seed(s)\nnisa.rand2(out, c, 4.0)", {"s": seed, "c": c}, (20, 11), "float32", c + u * (4 - c), 1e-6, NEWEST)
    for t in ("float32", "bfloat16", "int32"):
        x = rng.integers(1, 90, (20, 11)).astype(BF16 if t == "bfloat16" else t)
        add(f"dropout {t}", "nisa.set_rng_seed(s)\nnisa.dropout(out, x, 0.3)", {"s": seed, "x": x}, (20, 11), t, np.where(u >= np.float32(0.3), x, np.zeros_like(x)))
    p = rng.random((20, 1), np.float32)
    add("dropout by a column", "nisa.set_rng_seed(s)\nnisa.dropout(dst=out, data=x, prob=p)", {"s": seed, "x": c * np.ones((1, 11), np.float32), "p": p}, (20, 11), "float32",
        np.where(u >= p, c, 0))
    add("nl.dropout", "nl.random_seed(s)\nnisa.tensor_copy(out, nl.dropout(x, 0.5))", {"s": seed, "x": u}, (20, 11), "float32", np.where(u >= 0.5, u, 0))


def transposes(rng, add):
    for t in ("float32", "bfloat16", "int8", "int32"):
        x = rng.integers(0, 100, (32, 20)).astype(BF16 if t == "bfloat16" else t)
        add(f"nc_transpose on Vector {t}", "nisa.nc_transpose(out, x)", {"x": x}, (20, 32), t, x.T)
    x = uniform(rng, (20, 20))
    add("nc_transpose on Vector in place", "nisa.nc_transpose(x, x, engine=nisa.engine.vector)\nnisa.tensor_copy(out, x)", {"x": x}, (20, 20), "float32", x.T)
    body = "p = nl.ndarray((20, 20), nl.float32, buffer=nl.psum)\nnisa.nc_transpose(p, x, engine=nisa.engine.vector)\nnisa.nc_transpose(out, p)"
    add("nc_transpose on Vector through PSUM", body, {"x": x}, (20, 20), "float32", x)


def cores(rng, add):
    x = uniform(rng, (64, 20))
    body = "h = nl.ndarray((4, 4), nl.float32, buffer=nl.shared_hbm)\nnisa.core_barrier(h, (0, 1))\nnisa.tensor_copy(out, x)"
    add("core_barrier on one core", body, {"x": x}, (64, 20), "float32", x, 0, NEWER)
    add("sendrecv on one core", "nisa.sendrecv(src=x, dst=out, send_to_rank=0, recv_from_rank=0, pipe_id=0)", {"x": x}, (64, 20), "float32", x, 0, NEWER)


def language(rng, add):
    x, y = uniform(rng, (64, 20)), uniform(rng, (64, 20))
    y[np.abs(y) < 0.1] = 1
    for text, want in {"nl.fmod(x, y)": np.fmod(x, y), "nl.fmod(x, 0.75)": np.fmod(x, np.float32(0.75)), "nl.mod(x, y)": np.mod(x, y), "nl.mod(x, -0.75)": np.mod(x, np.float32(-0.75))}.items():
        add(text, f"nisa.tensor_copy(out, {text})", {"x": x, "y": y}, (64, 20), "float32", want, 1e-6)
    add("nl.matmul", "nisa.tensor_copy(out, nl.matmul(x, w))", {"x": x, "w": y[:20]}, (64, 20), "float32", x @ y[:20], 1e-5)
    for t in ("float32", "int32", "uint8"):
        add(f"nl.shared_constant {t}", f"c = nl.shared_constant(np.arange(1280).reshape(64, 20).astype('{t}'))\nnisa.dma_copy(out, c[:, 1:5])", {"x": x}, (64, 4), t,
            np.arange(1280).reshape(64, 20).astype(t)[:, 1:5])
    add("nl.no_reorder", "with nl.no_reorder():\n    nisa.tensor_copy(out, x)\n    nisa.tensor_tensor(out, out, x, nl.add)", {"x": x}, (64, 20), "float32", 2 * x)
    add("nl.device_print", "nl.device_print('x', x)\nnisa.tensor_copy(out, x)", {"x": x}, (64, 20), "float32", x)


def rows(rng, add):
    for t in ("float32", "bfloat16", "int32"):
        x = rng.integers(0, 100, (9, 6)).astype(BF16 if t == "bfloat16" else t)
        i = rng.integers(0, 9, (32, 1)).astype(np.uint32)
        add(f"dma_copy of rows {t}", "nisa.dma_copy(out, x_.ap([[6, 32], [1, 6]], vector_offset=i))", {"x": x, "i": i}, (32, 6), t, x[i[:, 0]])
    part = "nisa.dma_copy(out, x_.ap([[6, 32], [2, 2]], offset=1, vector_offset=i, indirect_dim=0))"
    add("dma_copy of parts of rows", part, {"x": x, "i": i.astype(np.int32)}, (32, 2), "int32", x[i[:, 0]][:, [1, 3]])
    add("dma_copy of rows by vector_select", "nisa.dma_copy(out, x_.vector_select(0, i))", {"x": x, "i": i}, (32, 6), "int32", x[i[:, 0]])
    blocks = rng.integers(0, 100, (9, 2, 3)).astype(np.float32)
    add("dma_copy of blocks by vector_select", "nisa.dma_copy(out, x_.vector_select(0, i))", {"x": blocks, "i": i}, (32, 2, 3), "float32", blocks[i[:, 0]])
    far = i.copy()
    far[::3] = [[9], [2**32 - 1]] * 5 + [[100]]
    add("dma_copy of rows, of which some are skipped", "nisa.memset(out, -1)\nnisa.dma_copy(out, x_.vector_select(0, i), oob_mode=nisa.oob_mode.skip)",
        {"x": x, "i": far}, (32, 6), "int32", np.where(far < 9, x[np.minimum(far, 8)[:, 0]], -1))
    add("dma_copy on the queue of an engine", "nisa.dma_copy(out, x_, dge_mode=nisa.dge_mode.hwdge, engine=nisa.engine.sync)", {"x": x}, (9, 6), "int32", x)
    y, to = rng.integers(0, 100, (9, 6)).astype(np.float32), rng.permutation(12)[:9].astype(np.uint32)[:, None]
    new = "h = nl.ndarray((12, 6), nl.float32, buffer=nl.hbm)\nnl.store(h, nl.full((12, 6), -1.0, nl.float32))\n"
    scattered = np.full((12, 6), -1, np.float32)
    scattered[to[:, 0]] = y
    add("dma_copy to rows", new + "nisa.dma_copy(h.vector_select(0, i), y)\nnisa.dma_copy(out, h)", {"y": y, "i": to}, (12, 6), "float32", scattered)
    add("dma_copy to parts of rows", new + "nisa.dma_copy(h.ap([[6, 9], [1, 3]], offset=2, vector_offset=i), y[:, 0:3])\nnisa.dma_copy(out, h)", {"y": y, "i": to},
        (12, 6), "float32", np.where((np.arange(6) >= 2) & (np.arange(6) < 5), np.roll(np.where(scattered == -1, -1, scattered), 2, 1), -1))
    twice = np.array([[3], [3], [0], [3], [7], [0], [1], [1], [3]], np.uint32)
    sums = np.full((12, 6), -1, np.float32)
    np.add.at(sums, twice[:, 0], y)
    call = "nisa.dma_compute(h.vector_select(0, i), [h.vector_select(0, i), y], nl.add)\nnisa.dma_copy(out, h)"
    add("dma_compute to rows", new + call, {"y": y, "i": twice}, (12, 6), "float32", sums)
    outside = np.where(np.arange(9) % 3 == 1, 12 + twice[:, 0], twice[:, 0]).astype(np.uint32)[:, None]
    inside = np.full((12, 6), -1, np.float32)
    np.add.at(inside, outside[outside < 12], y[outside[:, 0] < 12])
    add("dma_compute to rows, of which some are skipped", new + call.replace("nl.add)", "nl.add, oob_mode=nisa.oob_mode.skip)"), {"y": y, "i": outside},
        (12, 6), "float32", inside)
    acc = uniform(rng, (32, 6))
    add("dma_compute of rows", "nisa.dma_compute(a, [a, y_.vector_select(0, i)], nl.add)\nnisa.tensor_copy(out, a)", {"a": acc, "y": y, "i": i}, (32, 6), "float32", acc + y[i[:, 0]], 1e-6)


def sums(rng, add):
    x, y, z = (uniform(rng, (64, 20)) for _ in range(3))
    add("dma_compute", "nisa.dma_compute(out, [x, y_], nl.add)", {"x": x, "y": y}, (64, 20), "float32", x + y, 1e-6)
    add("dma_compute of three sources", "nisa.dma_compute(dst=out, srcs=(x_, y, z_), reduce_op=nl.add, scales=[1.0, 1.0, 1.0])", {"x": x, "y": y, "z": z}, (64, 20), "float32",
        x + y + z, 1e-6)
    b, c = x.astype(BF16), y.astype(BF16)
    want = (b.astype(np.float32) + c.astype(np.float32) + b.astype(np.float32)).astype(BF16)
    add("dma_compute bfloat16 in place", "nisa.dma_compute(x, [x, y_, x_], nl.add)\nnisa.tensor_copy(out, x)", {"x": b, "y": c}, (64, 20), "bfloat16", want)


def wide_transposes(rng, add):
    for t in ("bfloat16", "float32"):
        x = rng.integers(0, 100, (16, 3, 20)).astype(BF16 if t == "bfloat16" else t)
        add(f"dma_transpose of 3 dimensions {t}", "nisa.dma_transpose(out, x, axes=(2, 1, 0))", {"x": x}, (20, 3, 16), t, x.transpose(2, 1, 0))
        add(f"dma_transpose whose indices are inside {t}", "nisa.dma_transpose(out, x, axes=(2, 1, 0), oob_mode=nisa.oob_mode.error)", {"x": x}, (20, 3, 16), t, x.transpose(2, 1, 0))
        w = rng.integers(0, 100, (8, 2, 3, 20)).astype(BF16 if t == "bfloat16" else t)
        add(f"dma_transpose of 4 dimensions {t}", "nisa.dma_transpose(dst=out, src=x_, axes=(3, 1, 2, 0))", {"x": w}, (20, 2, 3, 8), t, w.transpose(3, 1, 2, 0))


def products(rng, add):
    new = "p = nl.ndarray({}, nl.{}, buffer=nl.psum)\n{}\nnisa.tensor_copy(out, p)"
    for t in ("float32", "bfloat16"):
        x = uniform(rng, (48, 20), BF16 if t == "bfloat16" else np.float32)
        body = new.format("(20, 48)", t, f"e = nl.shared_identity_matrix(48, nl.{t})\nnisa.nc_matmul(p, x, e, is_transpose=True)")
        add(f"nc_matmul is_transpose {t}", body, {"x": x}, (20, 48), t, x.T)
    l, r = uniform(rng, (128, 64)), uniform(rng, (128, 100))
    for size, at, targets in ((64, 0, ("trn2", "trn1", "trn3")), (64, 64, ("trn2", "trn1", "trn3")), (32, 32, NEWER), (32, 96, NEWER)):
        rows = slice(at, at + size)
        part = f"nisa.nc_matmul(p, l[{at}:{at + size}], r[{at}:{at + size}], tile_position=({at}, 0), tile_size=({size}, 128))"
        add(f"nc_matmul of {size} rows from {at} on", new.format("(64, 100)", "float32", part), {"l": l, "r": r}, (64, 100), "float32", l[rows].T @ r[rows], 1e-4, targets)
    both = "p = nl.ndarray((128, 100), nl.float32, buffer=nl.psum)\n" + "".join(
        f"nisa.nc_matmul(p[{c}:{c + 64}], l[{k}:{k + 64}], r[{k}:{k + 64}], tile_position=({k}, {c}), tile_size=(64, 64))\n" for k, c in ((0, 0), (64, 64)))
    add("nc_matmul of tiles of rows and columns", both + "nisa.tensor_copy(out, p)", {"l": l, "r": r}, (128, 100), "float32",
        np.concatenate([l[:64].T @ r[:64], l[64:].T @ r[64:]]), 1e-4)
    for t in (ml_dtypes.float8_e4m3, ml_dtypes.float8_e5m2):
        name = np.dtype(t).name
        x, y = uniform(rng, (64, 2, 24)).astype(t), uniform(rng, (64, 2, 40)).astype(t)
        want = np.einsum("kjm,kjn->mn", x.astype(np.float32), y.astype(np.float32))
        call = "nisa.nc_matmul(p, x, y, perf_mode=nisa.matmul_perf_mode.double_row)"
        add(f"nc_matmul of double rows {name}", new.format("(24, 40)", "float32", call), {"x": x, "y": y}, (24, 40), "float32", want, 1e-4, NEWER)
        add(f"nc_matmul of double rows {name} twice", new.format("(24, 40)", "float32", call + "\n" + call), {"x": x, "y": y}, (24, 40), "float32", 2 * want, 1e-4, NEWER)
    l, r = uniform(rng, (64, 128)), uniform(rng, (64, 512))
    add("nc_matmul at its limits", new.format("(128, 512)", "float32", "nisa.nc_matmul(p, l, r)"), {"l": l, "r": r}, (128, 512), "float32", l.T @ r, 1e-4)
    l, r = uniform(rng, (64, 32), BF16), uniform(rng, (64, 40), BF16)
    want = (l.astype(np.float32).T @ r.astype(np.float32)).astype(BF16)
    add("nc_matmul to bfloat16", new.format("(32, 40)", "bfloat16", "nisa.nc_matmul(p, l, r)"), {"l": l, "r": r}, (32, 40), "bfloat16", want, 0.02, NEWEST)


SMALL = {"float8_e4m3fn_x4": (ml_dtypes.float8_e4m3fn, 8), "float8_e5m2_x4": (ml_dtypes.float8_e5m2, 15), "float4_e2m1fn_x4": (ml_dtypes.float4_e2m1fn, 2)}


def rows_of_scales(scale):
    """A row of scales for 8 partitions as 4 of 32 partitions; the others have numbers that must not matter."""
    out = np.full((4 * 8 * len(scale) // 4, scale.shape[1]), 200, np.uint8)
    for k, row in enumerate(scale):
        out[k // 4 * 32 + k % 4] = row
    return out


def pack(values, name):
    """(partitions, n, 4) of small floats as (partitions, n) integers, and the values that they are."""
    small = values.astype(SMALL[name][0])
    if name == "float4_e2m1fn_x4":
        magnitudes, exact = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6]), small.astype(float).reshape(-1, 4)
        codes = (np.searchsorted(magnitudes, abs(exact)) + 8 * np.signbit(exact)).astype(np.uint16)
        return (codes << np.array([0, 4, 8, 12], np.uint16)).sum(1).astype(np.uint16).reshape(values.shape[:2]), small.astype(np.float32)
    return np.ascontiguousarray(small).view(np.uint32).reshape(values.shape[:2]), small.astype(np.float32)


def packed(rng, add):
    for name, p in (("float8_e4m3fn_x4", 64), ("float8_e5m2_x4", 32)):
        small, most = SMALL[name]
        x = (rng.standard_normal((p, 24)) * np.exp2(rng.integers(-20, 6, (p, 24)))).astype(BF16)
        x[0:8, 4:8] = 0
        groups = x.astype(np.float32).reshape(p // 8, 8, 6, 4)
        a = np.abs(groups).max((1, 3))
        scale = np.where(a == 0, 0, np.floor(np.log2(np.where(a == 0, 1, a))) - (most - 1) + 127).astype(np.uint8)
        bits = (groups * np.exp2(127 - scale[:, None, :, None].astype(np.float32))).astype(np.float32).astype(small)
        new = f"d = nl.ndarray(({p}, 6), nl.{name})\ns = nl.ndarray(({p}, 6), nl.uint8)\nnisa.memset(s, 200)\nnisa.quantize_mx(d, x, s)\n"
        want = np.ascontiguousarray(bits.reshape(p, 6, 4)).view(np.uint32).reshape(p, 6)
        add(f"quantize_mx {name}", new + "nisa.dma_copy(out, d)", {"x": x}, (p, 6), "uint32", want, 0, NEWEST)
        add(f"quantize_mx {name}, its scales", new + "nisa.tensor_copy(out, s)", {"x": x}, (p, 6), "uint8", rows_of_scales(scale), 0, NEWEST)
    for left, right, k in (("float8_e4m3fn_x4", "float8_e4m3fn_x4", 64), ("float8_e5m2_x4", "float8_e4m3fn_x4", 32), ("float4_e2m1fn_x4", "float4_e2m1fn_x4", 128)):
        (l, lv), (r, rv) = (pack(rng.uniform(-4, 4, (k, n, 4)).astype(np.float32), name) for name, n in ((left, 20), (right, 40)))
        ls, rs = (rng.integers(120, 134, (k // 8, n)).astype(np.uint8) for n in (20, 40))
        factor = [np.repeat(np.exp2(s.astype(np.float32) - 127), 8, axis=0)[:, :, None] for s in (ls, rs)]
        want = np.einsum("kmj,knj->mn", lv * factor[0], rv * factor[1])
        body = "".join(f"{v} = nl.ndarray(({k}, {n}), nl.{t})\nnisa.dma_copy({v}, {v}i)\n" for v, n, t in (("l", 20, left), ("r", 40, right)))
        body += "p = nl.ndarray((20, 40), nl.float32, buffer=nl.psum)\n" + "nisa.nc_matmul_mx(p, l, r, ls, rs{})\nnisa.tensor_copy(out, p)"
        inputs = {"li": l, "ri": r, "ls": rows_of_scales(ls), "rs": rows_of_scales(rs)}
        add(f"nc_matmul_mx {left} {right}", body.format(""), inputs, (20, 40), "float32", want, 1e-3, NEWEST)
        twice = body.replace("\nnisa.tensor_copy(out", "\nnisa.nc_matmul_mx(p, l, r, ls, rs)\nnisa.tensor_copy(out")
        add(f"nc_matmul_mx {left} {right} twice", twice.format(""), inputs, (20, 40), "float32", 2 * want, 1e-3, NEWEST)
    x = uniform(rng, (32, 80), BF16)
    body = "".join(f"{v} = nl.ndarray((32, {n}), nl.float8_e4m3fn_x4)\n{v}s = nl.ndarray((32, {n}), nl.float8_e8m0fnu)\nnisa.quantize_mx({v}, x[:, {a}:{b}], {v}s)\n"
                   for v, n, a, b in (("l", 8, 0, 32), ("r", 12, 32, 80)))
    body += "p = nl.ndarray((8, 12), nl.float32, buffer=nl.psum)\nnisa.nc_matmul_mx(p, l, r, ls, rs, tile_position=(0, 0), tile_size=(32, 128))\nnisa.tensor_copy(out, p)"
    l, r = (x.astype(np.float32)[:, a:b].reshape(32, -1, 4) for a, b in ((0, 32), (32, 80)))
    add("quantize_mx and nc_matmul_mx", body, {"x": x}, (8, 12), "float32", np.einsum("kmj,knj->mn", l, r), 3, NEWEST)
    add("packed elements are copied", "d = nl.ndarray((32, 5), nl.float8_e4m3fn_x4)\nnisa.memset(d, 0)\nnisa.tensor_copy(d[:, 1:5], u[:, 0:4])\nnisa.dma_copy(out, d)",
        {"u": np.arange(1, 161, dtype=np.uint32).reshape(32, 5)}, (32, 5), "uint32",
        np.hstack([np.zeros((32, 1), np.uint32), np.arange(1, 161, dtype=np.uint32).reshape(32, 5)[:, :4]]), 0, NEWEST)
