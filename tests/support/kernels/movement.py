"""Kernels that move data: reshapes, transposes, slices, concatenation, gathers."""
import numpy as np

from support.kernels.suite import SBUF, SHARED, formulas, kernel

formulas(1, {"merge": "np.reshape(x, (256, 256))"}, "2x128x256", prefix="reshape_")
formulas(1, {"split": "np.reshape(x, (2, 128, 256))", "insert_unit": "np.reshape(x, (256, 1, 256))",
             "infer": "np.reshape(x, (-1, 128))", "identity": "np.reshape(x, (256, 256))",
             "regroup": "np.reshape(x, (512, 128))"}, "256x256", prefix="reshape_")
formulas(1, {"remove_unit": "np.reshape(x, (256, 256))"}, "256x1x256", prefix="reshape_")
formulas(2, {"merge": "np.reshape(np.exp(x), (256, 256)) + 1.0"}, "2x128x256", prefix="reshape_used_")
formulas(2, {"split": "np.reshape(np.exp(x), (2, 128, 256)) + 1.0", "regroup": "np.reshape(np.exp(x), (512, 128)) + 1.0"},
         "256x256", prefix="reshape_used_")
formulas(1, {"expand_first": "np.expand_dims(x, 0)", "expand_last": "np.expand_dims(x, -1)", "copy": "np.copy(x)",
             "transpose": "np.transpose(x)", "swapaxes": "np.swapaxes(x, 0, 1)"}, "128x256", prefix="auto_")
formulas(1, {"reshape": "np.reshape(x, (256, 64))"}, "128x128", prefix="auto_")
formulas(1, {"squeeze": "np.squeeze(x, 1)"}, "128x1x128", prefix="auto_")
formulas(1, {"broadcast_to": "np.broadcast_to(x, (128, 256))"}, "1x256", prefix="auto_")
formulas(1, {"concatenate_last": "np.concatenate([x, y], axis=-1)", "concatenate_first": "np.concatenate([x, y], axis=0)",
             "stack": "np.stack([x, y], axis=0)", "stack_last": "np.stack([x, y], axis=-1)"}, "128x256", "128x256", prefix="auto_")
formulas(1, {"transpose_2d": "np.transpose(x)"}, "128x256", tile=[128, 128], prefix="knob_")
formulas(1, {"transpose_3d": "np.transpose(x, (0, 2, 1))"}, "2x128x256", tile=[1, 128, 128], prefix="knob_")
formulas(1, {"repeat": "np.repeat(x, 2, axis=1)"}, "2x4x64x32", prefix="auto_")
for _heads in (3, 16):
    formulas(2, {f"head_split_{_heads}": f"np.transpose(np.reshape(x, (2, 64, {_heads}, 32)), (0, 2, 1, 3))"},
             f"128x{_heads * 32}", prefix="auto_")
    formulas(2, {f"head_merge_{_heads}": f"np.reshape(np.transpose(x, (0, 2, 1, 3)), (128, {_heads * 32}))"},
             f"2x{_heads}x64x32", prefix="auto_")


# ---- rotary embedding ------------------------------------------------------------------------------------------------

@kernel(3, "256x4x128", "256x64", "256x64", name="rope")
def rope(x, cos, sin):
    cos = np.expand_dims(cos, axis=1)
    sin = np.expand_dims(sin, axis=1)
    half = x.shape[-1] // 2
    x0, x1 = x[:, :, :half], x[:, :, half:]
    a = x0 * cos - x1 * sin
    put(a, [128, 1, 64], SBUF)
    b = x0 * sin + x1 * cos
    put(b, [128, 1, 64], SBUF)
    r = np.concatenate([a, b], axis=-1)
    put(r, [128, 1, 64], SHARED)
    return r


@kernel(3, "4x128x64", "4x128x64", "1x128x64", "1x128x64")
def rope_3d_multi_partition(q0, q1, cos, sin):
    q0c = q0 * cos
    put(q0c, [1, 128, 64], SHARED)
    q1s = q1 * sin
    put(q1s, [1, 128, 64], SHARED)
    q0s = q0 * sin
    put(q0s, [1, 128, 64], SHARED)
    q1c = q1 * cos
    put(q1c, [1, 128, 64], SHARED)
    a = q0c - q1s
    put(a, [1, 128, 64], SHARED)
    b = q0s + q1c
    put(b, [1, 128, 64], SHARED)
    r = np.concatenate([a, b], axis=-1)
    put(r, [1, 128, 128], SHARED)
    return r


@kernel(3, "128x4x64", "128x4x64", "128x1x64", "128x1x64", name="rope_3d_compound_pd0", TILE=[128, 1, 64], WHOLE=[128, 1, 128], DIM=0)
@kernel(3, "4x128x64", "4x128x64", "1x128x64", "1x128x64", name="rope_3d_compound_pd1", TILE=[1, 128, 64], WHOLE=[1, 128, 128], DIM=1)
def rope_3d_compound(x0, x1, cos, sin):
    a = x0 * cos - x1 * sin
    put(a, TILE, SBUF, dim=DIM)
    b = x0 * sin + x1 * cos
    put(b, TILE, SBUF, dim=DIM)
    r = np.concatenate([a, b], axis=-1)
    put(r, WHOLE, SHARED)
    return r


@kernel(3, "4x128x128", "256x256")
def head_deconcat(x, w):
    heads = np.reshape(x, (2, 2, 128, 128))
    turned = np.transpose(heads, (0, 2, 1, 3))
    rows = np.reshape(turned, (256, 256))
    put(rows, [128, 128], SHARED)
    r = np.matmul(rows, w)
    put(r, [128, 128], SHARED, reduction=[128])
    return r


# ---- gathers ---------------------------------------------------------------------------------------------------------

for _rows, _width, _n in ((128, 128, 8), (256, 64, 16), (128, 256, 4), (128, 64, 1), (512, 128, 32), (1000, 96, 130)):
    formulas(1, {f"take_{_rows}x{_width}_by_{_n}": "np.take(x, y, axis=0)"}, f"{_rows}x{_width} -1:1", f"{_n} i32 0:{_rows}")
formulas(2, {"take_add": "np.take(x, y, axis=0) + z"}, "128x128 -1:1", "8 i32 0:128", "8x128 -1:1")
formulas(2, {"take_scale": "np.take(x, y, axis=0) * 0.5"}, "512x128 -1:1", "32 i32 0:512")
formulas(2, {"take_2d_ids": "x[y]"}, "512x64 -1:1", "8x16 i32 0:512")
formulas(2, {"take_columns": "np.take(x, y, axis=1)"}, "128x64 -1:1", "8 i32 0:64")
formulas(2, {"take_heads": "x[:, y]"}, "8x12x64x64 -1:1", "4 i32 0:12")


@kernel(2, "1x128 i32 0:256", "256x128 -1:1")
def embedding_where(ids, table):
    """Ids of another shard of the table (the upper half) give zeros."""
    inside = ids < 128
    rows = np.take(table, ids * inside, axis=0)
    return np.where(np.expand_dims(inside, -1), rows, 0.0)


@kernel(3, "1x128 i32 0:1000", "500x256 -1:1")
def embedding_shard(ids, table):
    inside = np.logical_and(ids >= 100, ids < 600)
    local = np.multiply(ids - 100, inside, dtype=np.int32)
    rows = np.take(table, local, axis=0)
    return np.multiply(rows, np.expand_dims(inside, -1), dtype=np.float32)


@kernel(3, "1024x512 -1:1", "256 i32 0:1024", "512")
def embedding_bias(table, ids, bias):
    return np.take(table, ids, axis=0) + bias


@kernel(2, "8x128", "256x128", "8 i32 0:256")
def scatter_rows(new, cache, where):
    cache[where, :] = new
    return cache


@kernel(2, "128x512 f16", "128x512 f16")
def alias_row(a, b):
    a[0, :] = b[1, :]
    return a


@kernel(2, "128x512 f16", "128x512 f16")
def alias_and_sum(a, b):
    a[0, :] = b[1, :]
    return a + b


@kernel(2, "128x512 f16", "128x512 f16")
def alias_two(a, b):
    a[0:3, :] = b[1:4, :]
    b[5, :] = a[7, :]
    return a, a * 2.0, b
