"""Kernels whose time was measured on a device, from their published descriptions.

A case says what was measured and how: "latency" contains a launch (NC latency of nki.benchmark), "profile" the edges of a
profile, "core" neither.  kind is "traced" if the instruction stream is known from a published trace or its counts, else
"described".  note says what the description leaves open and what was assumed.
"""

from dataclasses import dataclass
from typing import Callable

from measured.nisa import Kernel


@dataclass
class Case:
    name: str
    target: str
    measured_us: float
    basis: str
    kind: str
    build: Callable[[], Kernel]
    note: str = ""


CASES = []


def case(name, target, measured_us, basis, kind, note=""):
    def add(build):
        CASES.append(Case(name, target, measured_us, basis, kind, build, note))
        return build

    return add


# ---- attention of TKF: d 128, one head --------------------------------------------------------------------------------


def load_transposed_v(k, v, s, dtype, banks):
    """V^T, 128 rows of the sequence per partition block, by PE transposes of 128 columns into one bank."""
    identity = k.sbuf(128, 128, dtype=dtype)
    vt = k.sbuf(128, s, dtype="f32")
    for n in range(s // 512):
        p = banks[n % len(banks)]
        for j in range(4):
            at = n * 512 + j * 128
            k.matmul(p.tile(128, 128, f"d0, d1 + {j * 128}"), v.tile(128, 128, f"d0, d1 + {at}"),
                     identity.tile(128, 128, "d0, d1"), transposes=True)
        k.copy(vt.tile(128, 512, f"d0, d1 + {n * 512}"), p.tile(128, 512, "d0, d1"), "scalar")
    return vt


def highest_score(k, scores):
    """The bias of exp: the maximum of a row tile, whose scores are tiles of 512."""
    n = len(scores)
    parts, bias = k.sbuf(128, n), k.sbuf(128, 1)
    for c in range(n):
        k.reduce(parts.tile(128, 1, f"d0, d1 + {c}"), scores[c], "max")
    k.reduce(bias.tile(128, 1, "d0, d1"), parts.tile(128, n, "d0, d1"), "max")
    return bias


def exp_and_sum(k, scores, bias, e, total):
    """exp of the scores to e; their sum to the tile `total`."""
    n = len(scores)
    parts = k.sbuf(128, n)
    for c in range(n):
        k.activation(e.tile(128, 512, f"d0, d1 + {c * 512}"), scores[c], "exp", bias.tile(128, 1, "d0, d1"))
        k.reduce(parts.tile(128, 1, f"d0, d1 + {c}"), e.tile(128, 512, f"d0, d1 + {c * 512}"))
    k.reduce(total, parts.tile(128, n, "d0, d1"))


def transpose_scores(k, e, s, identity, banks):
    """exp^T: per 512 columns four PE transposes into one bank and a copy."""
    et = k.sbuf(128, s)
    for n in range(s // 512):
        p = banks[n % len(banks)]
        for j in range(4):
            at = n * 512 + j * 128
            k.matmul(p.tile(128, 128, f"d0, d1 + {j * 128}"), e.tile(128, 128, f"d0, d1 + {at}"),
                     identity.tile(128, 128, "d0, d1"), transposes=True)
        k.copy(et.tile(128, 512, f"d0, d1 + {n * 512}"), p.tile(128, 512, "d0, d1"), "scalar")
    return et


def fused_attention(s, dtype):
    """The compiler overlaps row tiles: the scores of the next but one and exp of the next come before transposes and P·V."""
    k = Kernel("trn2")
    q, kk, v = (k.hbm(128, s, dtype=dtype) for _ in range(3))
    out = k.hbm(s, 128, dtype=dtype)
    on_chip = [k.sbuf(128, s, dtype=dtype) for _ in range(3)]
    for to, source in zip(on_chip, (q, kk, v)):
        k.dma(to.tile(128, s, "d0, d1"), source.tile(128, s, "d0, d1"))
    identity = k.sbuf(128, 128)
    tiles, chunks = s // 128, s // 512
    total, inverse = k.sbuf(128, tiles), k.sbuf(128, tiles)
    kept = k.sbuf(128, tiles * 128)
    banks = [k.psum(128, 512) for _ in range(4)]
    turned, weighted = [k.psum(128, 512) for _ in range(2)], [k.psum(128, 128) for _ in range(2)]

    scores, bias, e = {}, {}, {}

    def find_scores(t):
        scores[t] = []
        for c in range(chunks):
            p = banks[(t * chunks + c) % len(banks)]
            k.matmul(p.tile(128, 512, "d0, d1"), on_chip[0].tile(128, 128, f"d0, d1 + {t * 128}"),
                     on_chip[1].tile(128, 512, f"d0, d1 + {c * 512}"))
            if c + 1 < chunks:
                copied = k.sbuf(128, 512)
                k.copy(copied.tile(128, 512, "d0, d1"), p.tile(128, 512, "d0, d1"), "scalar")
                p = copied
            scores[t].append(p.tile(128, 512, "d0, d1"))
        bias[t] = highest_score(k, scores[t])

    def find_exp(t):
        e[t] = k.sbuf(128, s)
        exp_and_sum(k, scores[t], bias[t], e[t], total.tile(128, 1, f"d0, d1 + {t}"))

    def find_result(t):
        et = transpose_scores(k, e[t], s, identity, turned)
        p = weighted[t % 2]
        for j in range(tiles):
            k.matmul(p.tile(128, 128, "d0, d1"), et.tile(128, 128, f"d0, d1 + {j * 128}"),
                     vt.tile(128, 128, f"d0, d1 + {j * 128}"))
        k.copy(kept.tile(128, 128, f"d0, d1 + {t * 128}"), p.tile(128, 128, "d0, d1"))

    find_scores(0)
    vt = load_transposed_v(k, on_chip[2], s, dtype, turned)
    for t in range(-1, tiles):
        if t + 2 < tiles:
            find_scores(t + 2)
        if t + 1 < tiles:
            find_exp(t + 1)
        if t >= 0:
            find_result(t)
    k.reciprocal(inverse.tile(128, tiles, "d0, d1"), total.tile(128, tiles, "d0, d1"))
    with k.loop(tiles) as t:
        o = k.sbuf(128, 128)
        k.scalar(o.tile(128, 128, "d0, d1"), kept.tile(128, 128, f"d0, {t} * 128 + d1"),
                 inverse.tile(128, 1, f"d0, {t} + d1"))
        k.dma(out.tile(128, 128, f"{t} * 128 + d0, d1"), o.tile(128, 128, "d0, d1"))
    return k


def baseline_attention(s, dtype):
    """Scores, softmax and the product with V as three phases with their intermediates in HBM."""
    k = Kernel("trn2")
    q, kk, v = (k.hbm(128, s, dtype=dtype) for _ in range(3))
    scores, weights = k.hbm(s, s), k.hbm(s, s)
    out = k.hbm(s, 128, dtype=dtype)
    on_chip = [k.sbuf(128, s, dtype=dtype) for _ in range(3)]
    tiles, chunks = s // 128, s // 512
    for to, source in zip(on_chip[:2], (q, kk)):
        k.dma(to.tile(128, s, "d0, d1"), source.tile(128, s, "d0, d1"))
    with k.loop(tiles) as t:
        row = k.sbuf(128, s)
        for c in range(chunks):
            p = k.psum(128, 512)
            k.matmul(p.tile(128, 512, "d0, d1"), on_chip[0].tile(128, 128, f"d0, {t} * 128 + d1"),
                     on_chip[1].tile(128, 512, f"d0, d1 + {c * 512}"))
            k.copy(row.tile(128, 512, f"d0, d1 + {c * 512}"), p.tile(128, 512, "d0, d1"), "scalar")
        k.dma(scores.tile(128, s, f"{t} * 128 + d0, d1"), row.tile(128, s, "d0, d1"))
    total, inverse = k.sbuf(128, tiles), k.sbuf(128, tiles)
    with k.loop(tiles) as t:
        row = k.sbuf(128, s)
        k.dma(row.tile(128, s, "d0, d1"), scores.tile(128, s, f"{t} * 128 + d0, d1"))
        e = k.sbuf(128, s)
        parts = [row.tile(128, 512, f"d0, d1 + {c * 512}") for c in range(chunks)]
        exp_and_sum(k, parts, highest_score(k, parts), e, total.tile(128, 1, f"d0, {t} + d1"))
        k.reciprocal(inverse.tile(128, 1, f"d0, {t} + d1"), total.tile(128, 1, f"d0, {t} + d1"))
        for c in range(chunks):
            at = f"d0, d1 + {c * 512}"
            k.scalar(e.tile(128, 512, at), e.tile(128, 512, at), inverse.tile(128, 1, f"d0, {t} + d1"))
        k.dma(weights.tile(128, s, f"{t} * 128 + d0, d1"), e.tile(128, s, "d0, d1"))
    k.dma(on_chip[2].tile(128, s, "d0, d1"), v.tile(128, s, "d0, d1"))
    turned = [k.psum(128, 512) for _ in range(2)]
    vt = load_transposed_v(k, on_chip[2], s, dtype, turned)
    identity = k.sbuf(128, 128)
    with k.loop(tiles) as t:
        row = k.sbuf(128, s)
        k.dma(row.tile(128, s, "d0, d1"), weights.tile(128, s, f"{t} * 128 + d0, d1"))
        et = transpose_scores(k, row, s, identity, turned)
        p = k.psum(128, 128)
        for j in range(tiles):
            k.matmul(p.tile(128, 128, "d0, d1"), et.tile(128, 128, f"d0, d1 + {j * 128}"),
                     vt.tile(128, 128, f"d0, d1 + {j * 128}"))
        o = k.sbuf(128, 128)
        k.copy(o.tile(128, 128, "d0, d1"), p.tile(128, 128, "d0, d1"))
        k.dma(out.tile(128, 128, f"{t} * 128 + d0, d1"), o.tile(128, 128, "d0, d1"))
    return k


for _s, _dtype, _fused, _baseline in ((512, "f32", 38.1, 58.7), (512, "bf16", 36.4, 54.3),
                                      (1024, "f32", 73.3, 116.9), (1024, "bf16", 66.2, 102.7)):
    case(f"fused attention s{_s} {_dtype}", "trn2", _fused, "profile", "traced",
         "counts of instructions as traced; their order is assumed: row tiles overlap")(lambda s=_s, d=_dtype: fused_attention(s, d))
    case(f"baseline attention s{_s} {_dtype}", "trn2", _baseline, "profile", "traced",
         "the transfers between the phases are not in the published counts")(lambda s=_s, d=_dtype: baseline_attention(s, d))


# ---- GEMM of TKF's MLP ------------------------------------------------------------------------------------------------


def mlp(m, kdim, n, dtype, fused):
    """Row tiles of 128×n; bias; fused: three more operations; else GELU as a second pass through HBM.

    The source loads both operands in the K loop.  The measured slope, 4.33 µs for 128 rows in bf16, leaves no time for that:
    the compiler keeps the weights on chip, and so does this.
    """
    k = Kernel("trn2")
    tiles = kdim // 128
    a, b = k.hbm(tiles, 128, m, dtype=dtype), k.hbm(tiles, 128, n, dtype=dtype)
    bias, out, result = k.hbm(1, n), k.hbm(m, n, dtype=dtype), k.hbm(m, n, dtype=dtype)
    weights, shift = k.sbuf(128, tiles, n, dtype=dtype), k.sbuf(128, n)
    k.dma(shift.tile(128, n, "d0, d1"), bias.tile(128, n, "0, d1"))
    with k.loop(tiles) as c:
        k.dma(weights.tile(128, n, f"d0, {c}, d1"), b.tile(128, n, f"{c}, d0, d1"))
    with k.loop(m // 128) as i:
        x, o = k.sbuf(128, tiles, 128, dtype=dtype), k.sbuf(128, n, dtype=dtype)
        k.dma(x.tile(128, (tiles, 128), "d0, d1, d2"), a.tile(128, (tiles, 128), f"d1, d0, {i} * 128 + d2"))
        with k.loop(n // 512) as j:
            p, z = k.psum(128, 512), k.sbuf(128, 512)
            with k.loop(tiles) as c:
                k.matmul(p.tile(128, 512, "d0, d1"), x.tile(128, 128, f"d0, {c}, d1"),
                         weights.tile(128, 512, f"d0, {c}, {j} * 512 + d1"))
            part = o.tile(128, 512, f"d0, {j} * 512 + d1")
            k.tensor(z.tile(128, 512, "d0, d1") if fused else part, p.tile(128, 512, "d0, d1"),
                     shift.tile(128, 512, f"d0, {j} * 512 + d1"))
            if fused:
                k.scalar(z.tile(128, 512, "d0, d1"), z.tile(128, 512, "d0, d1"), op="max")
                k.activation(part, z.tile(128, 512, "d0, d1"), "copy")
        k.dma(out.tile(128, n, f"{i} * 128 + d0, d1"), o.tile(128, n, "d0, d1"))
    if not fused:
        k.barrier()
        with k.loop(m // 128) as i:
            x, y = k.sbuf(128, n, dtype=dtype), k.sbuf(128, n, dtype=dtype)
            k.dma(x.tile(128, n, "d0, d1"), out.tile(128, n, f"{i} * 128 + d0, d1"))
            k.activation(y.tile(128, n, "d0, d1"), x.tile(128, n, "d0, d1"), "erf")
            k.dma(result.tile(128, n, f"{i} * 128 + d0, d1"), y.tile(128, n, "d0, d1"))
    return k


for _shape, _bf16, _f32 in (((128, 128, 512), (34, 19), (37, 21)), ((256, 512, 1024), (48, 28), (59, 40)),
                            ((512, 1024, 2048), (82, 56), (182, 150)), ((1024, 512, 2048), (97, 58), (233, 175)),
                            ((4096, 512, 2048), (260, 164), (834, 647))):
    for _dtype, _times in (("bf16", _bf16), ("f32", _f32)):
        for _is_fused, _us in zip((False, True), _times):
            _note = "that the weights stay on chip and the pieces of the fused activation are assumed"
            if not _is_fused:
                _note += "; at least 10 µs between the two passes are not explained"
            if _dtype == "f32" and _shape[1] == 512 and _shape[2] == 2048:
                _note += "; the measured slope is 1.4 times that of the Tensor engine, not explained"
            case(f"{'fused' if _is_fused else 'baseline'} MLP {'×'.join(map(str, _shape))} {_dtype}", "trn2", _us, "latency",
                 "described", _note)(
                lambda s=_shape, d=_dtype, f=_is_fused: mlp(*s, d, f))


# ---- matmul 2048³ of NAT ----------------------------------------------------------------------------------------------


def resident_matmul(copies):
    k = Kernel("trn2")
    a, b, out = (k.hbm(2048, 2048, dtype="bf16") for _ in range(3))
    x, y = k.sbuf(128, 16, 2048, dtype="bf16"), k.sbuf(128, 16, 2048, dtype="bf16")
    with k.loop(16) as c:
        k.dma(x.tile(128, 2048, f"d0, {c}, d1"), a.tile(128, 2048, f"{c} * 128 + d0, d1"))
        k.dma(y.tile(128, 2048, f"d0, {c}, d1"), b.tile(128, 2048, f"{c} * 128 + d0, d1"))
    banks = [k.psum(128, 2048) for _ in range(copies)]
    for m in range(16):
        p, o = banks[m % copies], k.sbuf(128, 2048, dtype="bf16")
        for j in range(4):
            with k.loop(16) as c:
                k.matmul(p.tile(128, 512, f"d0, d1 + {j * 512}"), x.tile(128, 128, f"d0, {c}, d1 + {m * 128}"),
                         y.tile(128, 512, f"d0, {c}, d1 + {j * 512}"))
        k.copy(o.tile(128, 2048, "d0, d1"), p.tile(128, 2048, "d0, d1"))
        k.dma(out.tile(128, 2048, f"d0 + {m * 128}, d1"), o.tile(128, 2048, "d0, d1"))
    return k


case("matmul 2048³ bf16, one set of banks", "trn2", 366, "profile", "described",
     "the copy of a set of banks begins when all of it is computed")(lambda: resident_matmul(1))
case("matmul 2048³ bf16, two sets of banks", "trn2", 262, "profile", "described")(lambda: resident_matmul(2))


# ---- elementwise of KDA and ACO ---------------------------------------------------------------------------------------


def silu(target, fused):
    """M 4096, N 7168 in tiles of 128×1024; fused: one activation; else exp, +1, reciprocal, multiply of 512."""
    k = Kernel(target)
    a, out = k.hbm(4096, 7168), k.hbm(4096, 7168)
    with k.loop(32) as i, k.loop(7) as j:
        x, o = k.sbuf(128, 1024), k.sbuf(128, 1024)
        at = f"{i} * 128 + d0, {j} * 1024 + d1"
        k.dma(x.tile(128, 1024, "d0, d1"), a.tile(128, 1024, at))
        if fused:
            k.activation(o.tile(128, 1024, "d0, d1"), x.tile(128, 1024, "d0, d1"), "tanh")
        for h in () if fused else (0, 512):
            part = f"d0, d1 + {h}"
            e = k.sbuf(128, 512)
            whole = "d0, d1"
            k.activation(e.tile(128, 512, whole), x.tile(128, 512, part), "exp")
            k.scalar(e.tile(128, 512, whole), e.tile(128, 512, whole), op="add")
            k.reciprocal(e.tile(128, 512, whole), e.tile(128, 512, whole))
            k.tensor(o.tile(128, 512, part), x.tile(128, 512, part), e.tile(128, 512, whole), "multiply")
        k.dma(out.tile(128, 1024, at), o.tile(128, 1024, "d0, d1"))
    return k


case("silu 4096×7168, one activation", "trn2", 588, "latency", "described")(lambda: silu("trn2", True))
case("silu 4096×7168, four operations", "trn2", 2045, "latency", "described",
     "all but exp on Vector")(lambda: silu("trn2", False))
case("silu 4096×7168, four operations", "trn1", 1333, "profile", "described",
     "all but exp on Vector")(lambda: silu("trn1", False))


def adamw_like(target):
    """The traffic of adamw, M 10944 N 2048: four arrays in, one out; the arithmetic is spread over three engines."""
    k = Kernel(target)
    arrays, out = [k.hbm(11008, 2048) for _ in range(4)], k.hbm(11008, 2048)
    with k.loop(86) as i, k.loop(2) as j:
        at = f"{i} * 128 + d0, {j} * 1024 + d1"
        tiles = [k.sbuf(128, 1024) for _ in range(4)]
        for tile, a in zip(tiles, arrays):
            k.dma(tile.tile(128, 1024, "d0, d1"), a.tile(128, 1024, at))
        whole = "d0, d1"
        k.activation(tiles[1].tile(128, 1024, whole), tiles[1].tile(128, 1024, whole), "sqrt")
        k.tensor(tiles[0].tile(128, 1024, whole), tiles[0].tile(128, 1024, whole), tiles[1].tile(128, 1024, whole))
        k.dma(out.tile(128, 1024, at), tiles[0].tile(128, 1024, whole))
    return k


case("adamw 10944×2048, bound by DMA", "trn2", 1095, "latency", "described",
     "only the traffic is as described: 358.6 and 89.7 MB")(lambda: adamw_like("trn2"))


# ---- matmuls bound by the Tensor engine or by DMA ---------------------------------------------------------------------


def blocked_matmul(target, m, kdim, n, dtype, bm, bn, products=1):
    """Blocks of bm rows and bn columns of the result; the operands of a block, for all of K, are loaded once for it."""
    k = Kernel(target)
    a, b, out = k.hbm(kdim, m, dtype=dtype), k.hbm(kdim, n, dtype=dtype), k.hbm(m, n, dtype=dtype)
    tiles = kdim // 128
    with k.loop(n // bn) as j:
        y = k.sbuf(128, tiles, bn, dtype=dtype)
        with k.loop(tiles) as c:
            k.dma(y.tile(128, bn, f"d0, {c}, d1"), b.tile(128, bn, f"{c} * 128 + d0, {j} * {bn} + d1"))
        with k.loop(m // bm) as i:
            x = k.sbuf(128, tiles, bm, dtype=dtype)
            with k.loop(tiles) as c:
                k.dma(x.tile(128, bm, f"d0, {c}, d1"), a.tile(128, bm, f"{c} * 128 + d0, {i} * {bm} + d1"))
            for s in range(bm // 128):
                o = k.sbuf(128, bn, dtype=dtype)
                for t in range(bn // 512):
                    p = k.psum(128, 512)
                    for _ in range(products):
                        with k.loop(tiles) as c:
                            k.matmul(p.tile(128, 512, "d0, d1"), x.tile(128, 128, f"d0, {c}, d1 + {s * 128}"),
                                     y.tile(128, 512, f"d0, {c}, d1 + {t * 512}"))
                    k.copy(o.tile(128, 512, f"d0, d1 + {t * 512}"), p.tile(128, 512, "d0, d1"))
                k.dma(out.tile(128, bn, f"{i} * {bm} + d0 + {s * 128}, {j} * {bn} + d1"), o.tile(128, bn, "d0, d1"))
    return k


case("matmul 4096×12288×5120 f32, blocked", "trn2", 26703, "latency", "described",
     "the blocks are assumed; the Tensor engine is 100 % busy")(
    lambda: blocked_matmul("trn2", 4096, 5120, 12288, "f32", 512, 512))
case("matmul 4096×12288×5120, three bf16 products", "trn2", 21312, "latency", "described",
     "splitting f32 in three, which costs Vector time, is left out")(
    lambda: blocked_matmul("trn2", 4096, 5120, 12288, "bf16", 512, 512, 3))
case("matmul 4096×8192×8192 bf16, blocked", "trn1", 6970, "profile", "described", "blocks of 512×512")(
    lambda: blocked_matmul("trn1", 4096, 8192, 8192, "bf16", 512, 512))


def tiled_matmul(target, m, kdim, n, dtype):
    """Tiles of 128×128×512; both operands are loaded in the K loop."""
    k = Kernel(target)
    a, b, out = k.hbm(kdim, m, dtype=dtype), k.hbm(kdim, n, dtype=dtype), k.hbm(m, n, dtype=dtype)
    with k.loop(m // 128) as i, k.loop(n // 512) as j:
        p, o = k.psum(128, 512), k.sbuf(128, 512, dtype=dtype)
        with k.loop(kdim // 128) as c:
            x, y = k.sbuf(128, 128, dtype=dtype), k.sbuf(128, 512, dtype=dtype)
            k.dma(x.tile(128, 128, "d0, d1"), a.tile(128, 128, f"{c} * 128 + d0, {i} * 128 + d1"))
            k.dma(y.tile(128, 512, "d0, d1"), b.tile(128, 512, f"{c} * 128 + d0, {j} * 512 + d1"))
            k.matmul(p.tile(128, 512, "d0, d1"), x.tile(128, 128, "d0, d1"), y.tile(128, 512, "d0, d1"))
        k.copy(o.tile(128, 512, "d0, d1"), p.tile(128, 512, "d0, d1"))
        k.dma(out.tile(128, 512, f"{i} * 128 + d0, {j} * 512 + d1"), o.tile(128, 512, "d0, d1"))
    return k


case("matmul 4096×8192×8192 bf16, tiled", "trn1", 20990, "profile", "described",
     "51.8 ms with the compiler of 2024")(lambda: tiled_matmul("trn1", 4096, 8192, 8192, "bf16"))
def streaming_matmul(target, m, kdim, n):
    """For each row tile all of the right operand; the left one for every 1024 columns: the traffic that was counted."""
    k = Kernel(target)
    a, b, out = k.hbm(kdim, m), k.hbm(kdim, n), k.hbm(m, n)
    tiles = kdim // 128
    with k.loop(m // 128) as i, k.loop(n // 1024) as j:
        x = k.sbuf(128, tiles, 128)
        with k.loop(tiles) as c:
            k.dma(x.tile(128, 128, f"d0, {c}, d1"), a.tile(128, 128, f"{c} * 128 + d0, {i} * 128 + d1"))
        for h in range(2):
            p, o = k.psum(128, 512), k.sbuf(128, 512)
            with k.loop(tiles) as c:
                y = k.sbuf(128, 512)
                k.dma(y.tile(128, 512, "d0, d1"), b.tile(128, 512, f"{c} * 128 + d0, {j} * 1024 + d1 + {h * 512}"))
                k.matmul(p.tile(128, 512, "d0, d1"), x.tile(128, 128, f"d0, {c}, d1"), y.tile(128, 512, "d0, d1"))
            k.copy(o.tile(128, 512, "d0, d1"), p.tile(128, 512, "d0, d1"))
            k.dma(out.tile(128, 512, f"{i} * 128 + d0, {j} * 1024 + d1 + {h * 512}"), o.tile(128, 512, "d0, d1"))
    return k


case("matmul 4096×12288×5120 f32, bound by DMA", "trn1", 35200, "profile", "described",
     "the order of loops that gives the measured traffic, 9.06 and 0.20 GB")(
    lambda: streaming_matmul("trn1", 4096, 5120, 12288))


def bmm():
    """B 16, M 4096, K 64, N 4096 in f32: the left operand is turned by the Tensor engine, row tiles are stored whole."""
    k = Kernel("trn2")
    a, b, out = k.hbm(16, 4096, 64), k.hbm(16, 64, 4096), k.hbm(16, 4096, 4096)
    identity = k.sbuf(128, 128)
    with k.loop(16) as i:
        y = k.sbuf(64, 4096)
        k.dma(y.tile(64, 4096, "d0, d1"), b.tile(64, 4096, f"{i}, d0, d1"))
        with k.loop(32) as m:
            x, turned, o = k.sbuf(128, 64), k.sbuf(64, 128), k.sbuf(128, 4096)
            p = k.psum(64, 128)
            k.dma(x.tile(128, 64, "d0, d1"), a.tile(128, 64, f"{i}, {m} * 128 + d0, d1"))
            k.matmul(p.tile(64, 128, "d0, d1"), x.tile(128, 64, "d0, d1"), identity.tile(128, 128, "d0, d1"))
            k.copy(turned.tile(64, 128, "d0, d1"), p.tile(64, 128, "d0, d1"))
            banks = [k.psum(128, 512) for _ in range(3)]
            for j in range(8):
                q = banks[j % 3]
                k.matmul(q.tile(128, 512, "d0, d1"), turned.tile(64, 128, "d0, d1"),
                         y.tile(64, 512, f"d0, d1 + {j * 512}"))
                k.copy(o.tile(128, 512, f"d0, d1 + {j * 512}"), q.tile(128, 512, "d0, d1"), ("scalar", "vector")[j % 2])
            k.dma(out.tile(128, 4096, f"{i}, {m} * 128 + d0, d1"), o.tile(128, 4096, "d0, d1"))
    return k


case("bmm 16×4096×64×4096 f32, dense", "trn2", 4070, "latency", "described",
     "copies alternate between Scalar and Vector")(bmm)


# ---- mamba of TUT -----------------------------------------------------------------------------------------------------


def mamba(channels, hoisted):
    """State 16, sequence 512: per channel tile and state exp, three or four tensor_tensor and a scan (2N, as one more)."""
    k = Kernel("trn1")
    delta, u, out = (k.hbm(channels, 512) for _ in range(3))
    b = k.psum(128, 512)
    c = k.psum(128, 512)
    whole = "d0, d1"
    with k.loop(channels // 128) as i:
        x, y, acc = k.sbuf(128, 512), k.sbuf(128, 512), k.sbuf(128, 512)
        for to, a in ((x, delta), (y, u)):
            k.dma(to.tile(128, 512, whole), a.tile(128, 512, f"{i} * 128 + d0, d1"))
        if hoisted:
            k.tensor(y.tile(128, 512, whole), x.tile(128, 512, whole), y.tile(128, 512, whole), "multiply")
        with k.loop(16):
            e, s, r = k.sbuf(128, 512), k.sbuf(128, 512), k.sbuf(128, 512)
            k.activation(e.tile(128, 512, whole), x.tile(128, 512, whole), "exp")
            du = y
            if not hoisted:
                du = k.sbuf(128, 512)
                k.tensor(du.tile(128, 512, whole), x.tile(128, 512, whole), y.tile(128, 512, whole), "multiply")
            k.tensor(s.tile(128, 512, whole), du.tile(128, 512, whole), b.tile(128, 512, whole), "multiply")
            k.tensor(r.tile(128, 512, whole), e.tile(128, 512, whole), s.tile(128, 512, whole))
            k.tensor(r.tile(128, 512, whole), r.tile(128, 512, whole), c.tile(128, 512, whole), "multiply")
            k.tensor(acc.tile(128, 512, whole), acc.tile(128, 512, whole), r.tile(128, 512, whole))
        k.dma(out.tile(128, 512, f"{i} * 128 + d0, d1"), acc.tile(128, 512, whole))
    return k


case("mamba v1, 256 channels", "trn1", 172.9, "profile", "described", "B and C are in PSUM from the start")(
    lambda: mamba(256, False))
case("mamba v1, 4096 channels", "trn1", 2340, "profile", "described", "B and C are in PSUM from the start")(
    lambda: mamba(4096, False))
case("mamba v2, 4096 channels", "trn1", 1610, "profile", "described", "B and C are in PSUM from the start")(
    lambda: mamba(4096, True))


# ---- vector additions of CS1 and CS2 ----------------------------------------------------------------------------------


class Text:
    """A kernel that is text already."""

    def __init__(self, text):
        self._text = text

    def text(self):
        return self._text


def vector_add(target, partitions, columns):
    """Sync triggers all three transfers of a round; loads are two rounds ahead; three copies of each buffer."""
    n = 25600 // (partitions * columns)
    hbm = f"memref<{n}x{partitions}x{columns}xf32, #nisa.mem<shared_hbm>>"
    sbuf = f"memref<{partitions}x{columns}xf32, #nisa.mem<sbuf>>"
    shape = f"<{partitions}| {columns}>="
    ahead = min(2, n)

    def load(to, source):
        return (f"%l{to} = nisa.rotate %{to}[%i] : {sbuf}\nnisa.dma_copy(dst{shape}{sbuf} %l{to}[d0, d1], "
                f"src{shape}{hbm} %{source}[%i, d0, d1]) engine=dma signal\n")

    allocs = "".join(f'%{b} = "nisa.alloc"() {{copies = 3 : i64}} : () -> {sbuf}\n' for b in "xyz")
    rounds = "scf.for %i = %c0 to %n step %c1 {\n"
    both = "nisa.dma_trigger qSyncIn\nnisa.dma_trigger qSyncIn\n"
    tail = "".join(f"nisa.wait vector >= {n - ahead + k + 1}\nnisa.dma_trigger qSyncOut\n" for k in range(ahead))
    sync = (f"nisa.program sync {{\n{both * ahead}scf.for %i = %c0 to %m step %c1 {{\nnisa.wait vector >= %i\n{both}"
            f"nisa.wait vector >= %i + 1\nnisa.dma_trigger qSyncOut\n}}\n{tail}}}\n")
    vector = (f"nisa.program vector {{\n{rounds}nisa.wait qSyncIn >= %i * 2 + 2\nnisa.wait qSyncOut >= %i - 2\n"
              + "".join(f"%v{b} = nisa.rotate %{b}[%i] : {sbuf}\n" for b in "xyz")
              + f"nisa.tensor_tensor_arith(dst{shape}{sbuf} %vz[d0, d1], lhs{shape}{sbuf} %vx[d0, d1], "
                f"rhs{shape}{sbuf} %vy[d0, d1], op=add) engine=vector signal\n}}\n}}\n")
    queues = (f"nisa.queue qSyncIn on sync {{\n{rounds}{load('x', 'a')}{load('y', 'b')}}}\n}}\n"
              f"nisa.queue qSyncOut on sync {{\n{rounds}%sz = nisa.rotate %z[%i] : {sbuf}\n"
              f"nisa.dma_copy(dst{shape}{hbm} %out[%i, d0, d1], src{shape}{sbuf} %sz[d0, d1]) engine=dma signal\n}}\n}}\n")
    return Text(f"// nisa text 1\nmodule attributes {{nisa.target = #nisa.target<{target}>}} {{\n"
                f"func.func @k(%a: {hbm}, %b: {hbm}, %out: {hbm}) {{\n{allocs}%c0 = arith.constant 0 : index\n"
                f"%c1 = arith.constant 1 : index\n%n = arith.constant {n} : index\n%m = arith.constant {n - ahead} : index\n"
                f"{sync}{vector}{queues}return\n}}\n}}\n")


for _target, _times in (("trn2", (37318, 378, 186, 15)), ("trn1", (27404, 206, 53, 19))):
    for (_p, _c), _us in zip(((1, 1), (128, 1), (128, 2), (128, 200)), _times):
        case(f"vector add of 25600, {_p}×{_c}", _target, _us, "latency", "described",
             "one engine triggers all transfers" + ("" if _target == "trn2" else "; costs of a transfer on trn1 are not published"))(
            lambda t=_target, p=_p, c=_c: vector_add(t, p, c))
