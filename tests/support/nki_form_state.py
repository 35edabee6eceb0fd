"""The forms of calls that have a state, that gather, that take packed elements, or that need two cores, and their models
(nki_forms.py).  Random numbers: nisa.h publishes how ours are made, and nki_more_calls.py has a model of one generator."""
import numpy as np

from support.nki_form_cases import IN_SBUF, ON_CHIP, SHAPE, column, tile
from support.nki_forms import FLOATS, INTS, LATER, TARGETS, TYPES, Form, Out, Tile, dtype, f32, random, stored
from support.nki_more_calls import SMALL, largest_of, pack, rows_of_scales, seeded

P, F = SHAPE
NEWEST = ("trn3",)
WORD = 2**32 - 1


class Generators:
    """XORWOW in `lanes` partitions, k of each, from words of shape (lanes, k * 6)."""

    def __init__(self, words):
        self.words = np.array(words, np.uint32).reshape(len(words), -1, 6)

    @classmethod
    def of_seed(cls, seed, lanes, k):
        return cls([[w for g in range(k) for w in seeded(seed, p, g)] for p in range(lanes)])

    def draw(self, n):
        """n numbers of each lane, of its generators by turns."""
        lanes, k, _ = self.words.shape
        out = np.empty((lanes, n), np.uint32)
        for i in range(n):
            w = self.words[:, i % k].astype(np.uint64)
            t = w[:, 0] ^ w[:, 0] >> 2
            last = w[:, 4] ^ w[:, 4] << 4 ^ t ^ t << 1
            w[:, :4], w[:, 4], w[:, 5] = w[:, 1:5].copy(), last & WORD, w[:, 5] + 362437 & WORD
            self.words[:, i % k] = w
            out[:, i] = w[:, 4] + w[:, 5] & WORD
        return out

    def state(self):
        return self.words.reshape(len(self.words), -1).copy()


def fractions(bits):
    return (bits >> 8).astype(np.float32) / np.float32(2**24)


def seed(number, engine="vector", form="sbuf", kind="uint32"):
    return Form("set_rng_seed", {"src_seeds": Tile(np.array([[number]], kind), form), "engine": f"nisa.engine.{engine}"}, {})


def lanes_of(engine):
    return 1 if engine == "gpsimd" else 4


def randoms():
    for engine, targets, forms in (("vector", TARGETS, ("sbuf", *ON_CHIP)), ("gpsimd", LATER, ("sbuf", *IN_SBUF))):
        bits = Generators.of_seed(42, P, lanes_of(engine)).draw(F)
        for name in INTS:
            yield Form("rng", {"dst": Out(SHAPE, name), "engine": f"nisa.engine.{engine}"}, {"dst": bits.astype(dtype(name))}, targets, (seed(42, engine),))
        for form in forms:
            yield Form("rng", {"dst": Out(SHAPE, "uint32", form), "engine": f"nisa.engine.{engine}"}, {"dst": bits}, targets, (seed(42, engine),))
        for number, kind, form in ((7, "int32", "part"), (2**32 - 1, "uint32", "offset"), (-1, "int32", "sbuf"), (0, "uint32", "stride"), (3, "uint32", "psum")):
            if form != "psum" or engine == "vector":
                again = Generators.of_seed(number & WORD, P, lanes_of(engine)).draw(5)
                yield Form("rng", {"dst": Out((P, 5), "uint32"), "engine": f"nisa.engine.{engine}"}, {"dst": again}, targets, (seed(number, engine, form, kind),))
    # without an engine both calls are those of Vector, in as many partitions as there are
    for p in (1, 33, 128):
        yield Form("rng", {"dst": Out((p, 3), "uint32")}, {"dst": Generators.of_seed(9, p, 4).draw(3)}, after=(Form("set_rng_seed", {"src_seeds": Tile(np.array([[9]], np.uint32))}, {}),))
    two = Generators.of_seed(5, P, 4)
    first, second = two.draw(6), two.draw(6)
    yield Form("rng", {"dst": Out((P, 6), "uint32")}, {"dst": second}, after=(seed(5), Form("rng", {"dst": Out((P, 6), "uint32")}, {"dst": first})))
    u = fractions(Generators.of_seed(11, P, 4).draw(F))
    low, high = column("low"), column("high")
    for name in (*FLOATS[:3], "int32", "uint8"):
        yield Form("rand2", {"dst": Out(SHAPE, name), "min": "-2.0", "max": "100.0"}, {"dst": stored(np.float32(-2) + u * np.float32(102), name)}, NEWEST, (seed(11),))
    for form in ON_CHIP:
        yield Form("rand2", {"dst": Out(SHAPE, "float32", form), "min": "0.0", "max": "1.0"}, {"dst": u}, NEWEST, (seed(11),))
    for form in ("sbuf", "part", "offset", "stride", "psum"):
        between = f32(low.array + u * (high.array - low.array))
        yield Form("rand2", {"dst": Out(SHAPE, "float32"), "min": Tile(low.array, form), "max": high}, {"dst": between}, NEWEST, (seed(11),))
        yield Form("rand2", {"dst": Out(SHAPE, "float32"), "min": low, "max": Tile(high.array, form)}, {"dst": between}, NEWEST, (seed(11),))


def states():
    for engine, targets in (("gpsimd", LATER), ("vector", NEWEST)):
        n = 6 * lanes_of(engine)
        on = {"engine": f"nisa.engine.{engine}"}
        words = random("words", "uint32", (P, n)) * np.uint32(2654435761)
        for form in ("sbuf", "part", "offset", "stride", "swapped"):
            g = Generators(words)
            numbers = g.draw(13)
            sets = Form("rand_set_state", {"src_seeds": Tile(words, form), **on}, {})
            draws = Form("rng", {"dst": Out((P, 13), "uint32"), **on}, {"dst": numbers})
            yield Form("rand_get_state", {"dst": Out((P, n), "uint32", form), **on}, {"dst": g.state()}, targets, (sets, draws))
        # what was read continues where it was read, whatever came between
        between = Form("rng", {"dst": Out((P, 7), "uint32"), **on}, {"dst": Generators(words).draw(7)})
        yield Form("rand_set_state", {"src_seeds": Tile(words), **on}, {}, targets, (sets, between))
        yield Form("rng", {"dst": Out((P, 7), "uint32"), **on}, {"dst": Generators(words).draw(7)}, targets)
        # a seed is a state
        yield Form("rand_get_state", {"dst": Out((P, n), "uint32"), **on}, {"dst": Generators.of_seed(23, P, lanes_of(engine)).state()}, targets, (seed(23, engine),))


def dropouts():
    u = fractions(Generators.of_seed(3, P, 4).draw(F))

    def form(data, prob, share, to="sbuf"):
        want = np.where(u >= share, data.seen(), np.zeros_like(data.array))
        return Form("dropout", {"dst": Out(SHAPE, data.array.dtype.name, to), "data": data, "prob": prob}, {"dst": want}, after=(seed(3),))

    for name in TYPES:
        yield form(tile("x", name), "0.25", np.float32(0.25))
    for prob in (0.0, 0.5, 1.0):
        yield form(tile("x", "float32"), str(prob), np.float32(prob))
    for at in (*ON_CHIP, "broadcast"):
        yield form(tile("x", "float32", at), "0.5", np.float32(0.5))
    for at in ON_CHIP:
        yield form(tile("x", "bfloat16"), "0.5", np.float32(0.5), at)
    for at in ("sbuf", "part", "offset", "stride", "psum"):
        c = tile("share", "float32", at, (P, 1), low=0, high=1)
        yield form(tile("x", "float32"), c, c.array)


def gathers():
    p, f, k = 64, 64, 3
    for name in TYPES:
        yield local_gather(tile("g", name, shape=(p, f)), 2, k)
    for run in (1, 2, 4, 8, 16, 32):
        for n in (None, 1, 47, 48):
            yield local_gather(tile("g", "bfloat16", shape=(p, f)), run, k, n)
    for at in IN_SBUF:
        yield local_gather(tile("g", "float32", at, shape=(p // 2, f)), 2, 4)
        yield local_gather(tile("g", "float32", shape=(p // 2, f)), 2, 4, index=at)
        yield local_gather(tile("g", "float32", shape=(p // 2, f)), 2, 4, to=at)
    for p in (16, 48, 128):
        yield local_gather(tile("g", "int16", shape=(p, f)), 4, k)


def local_gather(x, run, k, n=None, index="sbuf", to="sbuf"):
    """k indices in each partition; 16 partitions have them in common, counted along the partitions first."""
    p, f = x.array.shape
    i = (random("index", "uint16", (p, k)) * 7 + np.arange(p)[:, None] * 5).astype(np.uint16) % np.uint16(f // run)
    runs = x.array.reshape(p, f // run, run)
    order = i.reshape(p // 16, 16, k).transpose(0, 2, 1).reshape(p // 16, 16 * k)[:, :n]
    want = np.stack([runs[q, order[q // 16]].reshape(-1) for q in range(p)])
    more = {"num_elem_per_idx": str(run)} if run > 1 else {}
    more |= {"num_valid_indices": str(n)} if n else {}
    return Form("local_gather", {"dst": Out(want.shape, x.array.dtype.name, to), "src_buffer": x, "index": Tile(i, index), **more}, {"dst": want})


def places():
    ids = np.array([[3, 3, 0, 0, 0, 1, 2, 2, 2, 2, 7, 0]])
    n = ids.shape[1]
    edges = [(next(k for k in range(j, -1, -1) if k == 0 or ids[0, k - 1] != ids[0, j]), next(k for k in range(j + 1, n + 1) if k == n or ids[0, k] != ids[0, j])) for j in range(n)]
    want = np.array([[[n if not v else a for v, (a, b) in zip(ids[0], edges)], [-1 if not v else b for v, (a, b) in zip(ids[0], edges)]]])
    for name in ("float32", "int32", "uint32", "bfloat16", "int16", "int8"):
        for result in ("float32", "int32", "bfloat16", "int8"):
            yield Form("sequence_bounds", {"dst": Out((1, 2, n), result), "segment_ids": Tile(ids.astype(dtype(name)))}, {"dst": want.astype(dtype(result))})
    for at in ("part", "offset", "stride", "swapped"):
        yield Form("sequence_bounds", {"dst": Out((1, 2, n), "float32"), "segment_ids": Tile(ids.astype(np.float32), at)}, {"dst": want.astype(np.float32)})
        if at != "swapped":
            yield Form("sequence_bounds", {"dst": Out((1, 2, n), "int32", at), "segment_ids": Tile(ids.astype(np.int32))}, {"dst": want.astype(np.int32)})
    yield Form("sequence_bounds", {"dst": Out((1, 2, 1), "int32"), "segment_ids": Tile(np.array([[4]], np.int32))}, {"dst": np.array([[[0], [1]]], np.int32)})
    for n, columns, found in ((16, 1, 1), (100, 8, 2), (128, 8, 8), (520, 40, 3)):
        for numbers in ("uint16", "uint32"):
            yield topk(n, columns, found, numbers=numbers)
    for p in (16, 128):
        yield topk(100, 8, 2, p=p)
    for at in ("part", "offset", "stride"):
        yield topk(100, 8, 2, source=at)
        yield topk(100, 8, 2, to=at)
    for name in TYPES:
        yield nonzero(name)
    for at in ("part", "offset", "stride"):
        yield nonzero("float32", source=at)
        yield nonzero("float32", to=at)
    yield nonzero("float32", source="swapped")
    for more in ({"index_offset": "1000"}, {"padding_val": "0"}, {"index_offset": "-3", "padding_val": "-77"}):
        yield nonzero("int8", **more)
    for p in (1, 16, 17, 128):
        yield nonzero("bfloat16", p=p)


def topk(n, columns, found, p=32, numbers="uint32", source="sbuf", to="sbuf"):
    x = random(f"topk {n}", "bfloat16", (p, columns))
    x[random("equal", "uint8", x.shape) < 4] = 1.5
    values, at = largest_of(x, n, found, dtype(numbers))
    outs = {"val_dst": Out(values.shape, "bfloat16", to), "idx_dst": Out(at.shape, numbers, to)}
    return Form("topk", {**outs, "src": Tile(x, source), "n": str(n)}, {"val_dst": values, "idx_dst": at})


def nonzero(name, source="sbuf", to="sbuf", p=P, **more):
    x = random("nonzero", name, (p, F))
    x[random("where", "uint8", (p, F)) < 10] = 0
    want = np.full((p, F + 1), 55, np.int32)
    for q in range(0, p, 16):
        [found] = np.nonzero(f32(x[q]))
        want[q] = [*(found + int(more.get("index_offset", 0))), *[int(more.get("padding_val", -1))] * (F - len(found)), len(found)]
    dst = Out(want.shape, "int32", to, before=np.full(want.shape, 55, np.int32))
    return Form("nonzero_with_count", {"dst": dst, "src": Tile(x, source), **more}, {"dst": want}, LATER)


# ---- packed elements


def quantizations():
    for name in ("float8_e4m3fn_x4", "float8_e5m2_x4"):
        for source in ("bfloat16", "float16"):
            for scale in ("uint8", "float8_e8m0fnu"):
                yield quantize(name, source, scale=scale)
        for at in ("part", "offset", "stride"):
            yield quantize(name, "bfloat16", source_at=at)
            yield quantize(name, "bfloat16", to=at)
            yield quantize(name, "bfloat16", scale_at=at)
        yield quantize(name, "bfloat16", source_at="swapped")
        for p in (64, 96, 128):
            yield quantize(name, "float16", p=p)


def quantize(name, source, p=32, scale="uint8", source_at="sbuf", to="sbuf", scale_at="sbuf"):
    small, most = SMALL[name]
    x = (random("q", "float32", (p, 24)) * np.exp2(random("e", "int8", (p, 24)) / 2)).astype(dtype(source))
    x[0:8, 4:8] = 0
    x[1, 9] = np.float32(-60000)
    groups = f32(x).reshape(p // 8, 8, 6, 4)
    a = np.abs(groups).max((1, 3))
    power = np.where(a == 0, 0, np.frexp(a)[1] - 1 - (most - 1) + 127)
    values = (groups / np.exp2(power[:, None, :, None] - 127.0)).astype(np.float32).astype(small)
    packed = np.ascontiguousarray(values.reshape(p, 6, 4)).view(np.uint32).reshape(p, 6)
    scales = rows_of_scales(power.astype(np.uint8))
    before = np.full((p, 6), 200, np.uint8)  # rows_of_scales has this where there are none
    return Form("quantize_mx", {"dst": Out((p, 6), name, to, bits="uint32"), "src": Tile(x, source_at), "dst_scale": Out((p, 6), scale, scale_at, before, bits="uint8")},
                {"dst": packed, "dst_scale": scales}, NEWEST)


def packed_products():
    eight = ("float8_e4m3fn_x4", "float8_e5m2_x4")
    for left in SMALL:
        for right in SMALL:
            if (left in eight) == (right in eight):
                yield packed_product(left, right)
    for k in (64, 96, 128):
        yield packed_product(*eight, k=k)
    for at in ("part", "offset", "stride"):
        for operand in ("stationary", "moving", "stationary_scale", "moving_scale"):
            if at != "part":  # rows of the array are partitions of all operands
                yield packed_product(*eight, at={operand: at})
    every = ("stationary", "moving", "stationary_scale", "moving_scale")
    yield packed_product(*eight, at=dict.fromkeys(every, "part"), tile_position="(32, 0)", tile_size="(32, 128)")
    yield packed_product(*eight, tile_position="(0, 0)", tile_size="(64, 128)")
    yield packed_product(*eight, kind="float8_e8m0fnu")
    yield packed_product(*eight, out="bfloat16")
    yield packed_product(*eight, accumulate="False")
    for to in ("psum stride",):
        yield packed_product(*eight, to=to)


def packed_product(left, right, k=32, at=None, to="psum", out="float32", kind=None, **more):
    (l, lv), (r, rv) = (pack(random(name, "float32", (k, n, 4), -4, 4), name) for name, n in ((left, 20), (right, 24)))
    scales = [(random(f"s{n}", "uint8", (k // 8, n)) % 9 + 122).astype(np.uint8) for n in (20, 24)]
    factor = [np.repeat(np.exp2(s.astype(np.float32) - 127), 8, axis=0)[:, :, None] for s in scales]
    want = np.einsum("kmj,knj->mn", lv * factor[0], rv * factor[1])
    at = at or {}
    operands = {"stationary": Tile(l, kind=left), "moving": Tile(r, kind=right), "stationary_scale": Tile(rows_of_scales(scales[0]), kind=kind),
                "moving_scale": Tile(rows_of_scales(scales[1]), kind=kind)}
    for name, x in operands.items():
        x.form = at.get(name, "sbuf")
    return Form("nc_matmul_mx", {"dst": Out((20, 24), out, to, error=0.01 if out == "bfloat16" else 1e-6), **operands, **more}, {"dst": stored(want, out)}, NEWEST)


# ---- cores: a launch on one core.  test_cores.py has those on two.


def cores():
    for name in TYPES:
        x = tile("x", name)
        yield Form("sendrecv", {"src": x, "dst": Out(SHAPE, name), "send_to_rank": "0", "recv_from_rank": "0", "pipe_id": "0"}, {"dst": x.array}, LATER)
    for at in IN_SBUF:
        for source, to in ((at, "sbuf"), ("sbuf", at)):
            if "swapped" not in (source, to):
                x = tile("x", "float32", source)
                yield Form("sendrecv", {"src": x, "dst": Out(SHAPE, "float32", to), "send_to_rank": "0", "recv_from_rank": "0", "pipe_id": "1",
                                        "dma_engine": "nisa.dma_engine.gpsimd_dma"}, {"dst": x.array}, LATER)
    for engine in ("gpsimd", "vector", "scalar", "tensor", "sync"):
        for at in ("sbuf", "hbm"):
            yield Form("core_barrier", {"data": tile("x", "float32", at), "cores": "(0, 1)", "engine": f"nisa.engine.{engine}"}, {}, LATER)


GROUPS = (randoms, states, dropouts, gathers, places, quantizations, packed_products, cores)
