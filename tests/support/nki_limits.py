"""Limits of the hardware: the largest size that a call takes, and the next one, with what the refusal says."""
HEAD = "import nki\nimport nki.isa as nisa\nimport nki.language as nl\n"
TARGETS = ("trn1", "trn2", "trn3")
LATER = ("trn2", "trn3")

def sbuf(name, *shape, dtype="float32"):
    return f"{name} = nl.ndarray({shape}, nl.{dtype})"


def psum(name, *shape, dtype="float32"):
    return f"{name} = nl.ndarray({shape}, nl.{dtype}, buffer=nl.psum)"


def product(rows, stationary, moving):
    return [sbuf("l", rows, stationary, dtype="bfloat16"), sbuf("r", rows, moving, dtype="bfloat16"), psum("p", stationary, moving), "nisa.nc_matmul(p, l, r)"]


def eight(n):
    return [sbuf("x", 32, n), sbuf("o", 32, 8), "nisa.max8(o, x)"]


def small(rows, columns):
    return [sbuf("x", rows, columns), sbuf("o", columns, rows), "nisa.nc_transpose(o, x, engine=nisa.engine.vector)"]


def at(start, n):
    return [sbuf("x", 128, 8), f"nisa.memset(x[{start}:{start + n}], 0.0)"]


def local(n):
    return [sbuf("x", 16, 64), sbuf("i", 16, n, dtype="uint16"), sbuf("o", 16, 16 * n), "nisa.local_gather(o, x, i)"]


# name, lines that are accepted, lines of which the last is refused, its code, its words, the machines
LIMITS = [
    ("partitions", [sbuf("x", 128, 8)], [sbuf("x", 129, 8)], "nki-size-limit", "has 129 partitions, but there are 128", TARGETS),
    ("partitions of PSUM", [psum("x", 128, 8)], [psum("x", 129, 8)], "nki-size-limit", "has 129 partitions", TARGETS),
    ("bytes of a partition of PSUM", [psum("x", 128, 4096)], [psum("x", 128, 4097)], "nki-size-limit", "16388 bytes", TARGETS),
    ("stationary", product(128, 128, 64), product(128, 129, 64)[:2] + [psum("p", 128, 64), "nisa.nc_matmul(p, l, r)"], "nki-size-limit",
     "stationary has 129 elements in each partition, but at most 128 fit", TARGETS),
    ("moving", product(128, 64, 512), product(128, 64, 513), "nki-size-limit", "moving has 513 elements in each partition, but at most 512 fit", ("trn1", "trn2")),
    ("bn_stats", [sbuf("x", 32, 512), sbuf("o", 32, 6), "nisa.bn_stats(o, x)"], [sbuf("x", 32, 513), sbuf("o", 32, 6), "nisa.bn_stats(o, x)"], "nki-shape-mismatch",
     "data has 513 elements in each partition, but it must have 1 to 512", TARGETS),
    ("max8, the least", eight(8), eight(7), "nki-shape-mismatch", "src has 7 elements in each partition, but it must have 8 to 16384", TARGETS),
    ("max8, the most", eight(16384), eight(16385), "nki-shape-mismatch", "src has 16385 elements in each partition", TARGETS),
    ("nc_transpose on Vector, rows", small(32, 32), small(33, 32), "nki-size-limit", "data has the shape (33, 32), but Vector transposes at most 32 by 32", TARGETS),
    ("nc_transpose on Vector, columns", small(32, 31), small(32, 33), "nki-size-limit", "data has the shape (32, 33)", TARGETS),
    ("nc_transpose on Tensor", [sbuf("x", 64, 128), psum("o", 128, 64), "nisa.nc_transpose(o, x)"], [sbuf("x", 64, 129), psum("o", 128, 64), "nisa.nc_transpose(o, x)"],
     "nki-size-limit", "data has 129 elements in each partition, but at most 128 fit", TARGETS),
    ("the first partition", at(32, 32), at(33, 1), "nki-address", "dst covers 1 partitions from 33 on", TARGETS),
    ("partitions from 32 on", at(32, 32), at(32, 33), "nki-address", "dst covers 33 partitions from 32 on", TARGETS),
    ("partitions from 64 on", at(64, 64), at(96, 32)[:1] + ["nisa.memset(x[65:128], 0.0)"], "nki-address", "dst covers 63 partitions from 65 on", TARGETS),
    ("local_gather", local(256), local(257), "nki-size-limit", "there are 4112 indices", TARGETS),
    ("a shuffle", [sbuf("x", 32, 4), sbuf("o", 32, 4), "nisa.nc_stream_shuffle(o, x, [31] * 32)"], [sbuf("x", 32, 4), sbuf("o", 32, 4), "nisa.nc_stream_shuffle(o, x, [32] * 32)"],
     "nki-bounds", "takes partition 0 from place 32", TARGETS),
    ("range_select", [sbuf("x", 32, 16), sbuf("o", 32, 16), "nisa.range_select(o, x, nl.less, nl.less, 0.0, 1.0, range_start=16777200.0)"],
     [sbuf("x", 32, 16), sbuf("o", 32, 16), "nisa.range_select(o, x, nl.less, nl.less, 0.0, 1.0, range_start=16777201.0)"], "nki-size-limit", "from 0 to 2^24", LATER),
    ("a pattern", [sbuf("o", 32, 16, dtype="int32"), "nisa.iota(o, [[1, 2], [1, 2], [1, 2], [1, 2]])"],
     [sbuf("o", 32, 32, dtype="int32"), "nisa.iota(o, [[1, 2], [1, 2], [1, 2], [1, 2], [1, 2]])"], "nki-operand", "a pattern has 1 to 4 pairs", TARGETS),
    ("sources of dma_compute", [sbuf("x", 32, 4), sbuf("o", 32, 4), "nisa.dma_compute(o, [x] * 16, nl.add)"], [sbuf("x", 32, 4), sbuf("o", 32, 4), "nisa.dma_compute(o, [x] * 17, nl.add)"],
     "nki-operand", "dma_compute has 17 sources, but it takes 2 to 16", TARGETS),
]


def kernel(number, lines):
    """A kernel that first writes what the lines read."""
    body = []
    for line in lines:
        body.append(line)
        name, is_tensor = line.split(" = ")[0], " = nl.ndarray(" in line
        if is_tensor and "psum" not in line and name in "xlri":
            body.append(f"nisa.memset({name}, 0)" if "int" in line else f"nisa.memset({name}, 0.0)")
    text = "".join(f"    {line}\n" for line in body)
    return (f"\n\n@nki.jit\ndef k{number}(a: nl.tensor[nl.float32, (32, 4)]):\n    out = nl.ndarray((32, 4), nl.float32, buffer=nl.shared_hbm)\n"
            f"{text}    nisa.dma_copy(out, a)\n    return out\n")
