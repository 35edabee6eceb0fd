"""Kernels that random search found faults with, kept as they are: test_random_kernels.py compiles this file."""
import numpy as np
from nkipy_kernelgen.knob import knob as annotate

from nkigen import knob, trace
from nkipy import knob as mark


# a tile that does not fit the readers' one
@trace(input_specs=[((7, 64), 'f32'), ((7, 1), 'f32'), ((24, 4), 'f32')])
def k910017_3(p0, p1, p2):
    v0 = np.reshape(p0, (2, 4, 56))
    v1 = p0[:, 28:52]
    v2 = np.minimum(v1, p1)
    knob.knob(v2).tile_op(tile_size=[7, 24]).layout(mem_space='Sbuf')
    v4 = v2 * 0.5 - 1.0
    v5 = np.reshape(v4, (84, 2))
    v6 = np.transpose(v4, (0, 1))
    knob.knob(v6).tile_op(tile_size=[7, 16])
    v8 = v4 @ p2
    knob.knob(v8).layout(mem_space='SharedHbm', partition_dim=0)
    return v8


# a view of a single element
@trace(input_specs=[((1, 2, 7, 5), 'i32')])
def k910018_6(p0):
    v0 = np.square(p0 % 7)
    knob.knob(v0).tile_op(tile_size=[1, 1, 7, 5]).layout(mem_space='SharedHbm')
    v2 = np.abs(v0)
    knob.knob(v2).tile_op(tile_size=[1, 1, 7, 5]).layout(mem_space='Sbuf')
    v4 = np.maximum(v0, v2)
    knob.knob(v4).layout(mem_space='Sbuf', partition_dim=2)
    v6 = np.max(v4, axis=(2, 3), keepdims=True)
    knob.knob(v6).layout(mem_space='Sbuf')
    v8 = v6 - p0
    knob.knob(v8).tile_op(tile_size=[1, 1, 7, 5]).layout(mem_space='SharedHbm')
    return v8


# blocks of one row that cut the result
@trace(input_specs=[((31, 3, 16), 'f32'), ((31, 3), 'f32'), ((31, 3), 'bool'), ((31, 1), 'f32')])
def k910020_7(p0, p1, p2, p3):
    v0 = np.min(p0, axis=-1)
    mark(v0, mem_space='Sbuf', tile_size=[1, 3], reduction_tile=[16])
    v2 = np.where(p2, v0, p1)
    mark(v2, mem_space='Hbm', tile_size=[31, 3])
    v4 = v0 / (np.abs(p3) + 1.0)
    mark(v4, mem_space='Sbuf', tile_size=[31, 3])
    v6 = np.transpose(v4, (1, 0))
    return v6


# partition_dim of a transpose
@trace(input_specs=[((3, 1, 1), 'bf16')])
def k910025_6(p0):
    v0 = np.sin(p0)
    v1 = p0 + v0
    annotate(v1, mem_space='Hbm', partition_dim=1, tile_size=[1, 1, 1])
    v3 = np.transpose(v0, (2, 1, 0))
    annotate(v3, mem_space='Hbm', partition_dim=1, tile_size=[1, 1, 3])
    return v3, v0


# tiles of 128 and 130 in one dimension
@trace(input_specs=[((1, 130), 'f32')])
def k910026_1(p0):
    v0 = 1.0 / (1.0 + np.exp(-np.tanh(p0)))
    knob.knob(v0).tile_op(tile_size=[1, 64]).layout(mem_space='SharedHbm')
    v2 = np.exp(p0 - np.max(p0, axis=0, keepdims=True))
    v3 = v2 / np.sum(v2, axis=0, keepdims=True)
    knob.knob(v3).tile_op(tile_size=[1, 130]).layout(mem_space='Sbuf')
    v5 = np.maximum(v3, 0.0)
    knob.knob(v5).tile_op(tile_size=[1, 128]).layout(mem_space='SharedHbm')
    v7 = np.concatenate([v5, p0], axis=0)
    v8 = np.max(v5, axis=(0, 1), keepdims=True)
    return v8, v2


# a knob on a reduction of nothing
@trace(input_specs=[((1, 1), 'f32'), ((1, 4), 'f32')])
def k910030_2(p0, p1):
    v0 = np.matmul(p0, p1)
    knob.knob(v0).tile_op(tile_size=[1, 4, 1]).layout(mem_space='SharedHbm')
    v2 = np.min(v0, axis=-2, keepdims=True)
    knob.knob(v2).tile_op(tile_size=[1, 4]).layout(mem_space='Hbm')
    v4 = np.max(v2, axis=0, keepdims=True)
    v5 = np.sum(v2, axis=0, keepdims=True)
    knob.knob(v5).layout(mem_space='Sbuf')
    return v5, v4


# a knob on a transpose of nothing
@trace(input_specs=[((4, 4, 1), 'f32'), ((4, 1, 7), 'f32'), ((4, 4, 7), 'f32')])
def k910031_5(p0, p1, p2):
    v0 = np.matmul(p0, p1)
    knob.knob(v0).layout(mem_space='Hbm', partition_dim=1)
    v2 = np.transpose(v0, (0, 1, 2))
    knob.knob(v2).tile_op(tile_size=[1, 4, 7])
    v4 = v2 + p1
    knob.knob(v4).layout(mem_space='Sbuf')
    v6 = np.abs(v4)
    v7 = v6 * p2
    knob.knob(v7).layout(mem_space='Sbuf')
    return v7


# a gather along the last axis
@trace(input_specs=[((64, 7), 'f32'), ((130,), 'i32'), ((), 'f32'), ((3, 1), 'f32'), ((1, 2), 'f32')])
def k920000_6(p0, p1, p2, p3, p4):
    v0 = p0[:, 3:6]
    v1 = np.take(v0, p1 % 3, axis=1)
    v2 = np.abs(v0)
    v3 = v0 - p2
    v4 = v3 / (np.abs(v3) + 1.0)
    v5 = v4 @ p3
    v6 = v5 @ p4
    return v6, v1


# a gather that loses a loop of extent 1
@trace(input_specs=[((1, 7), 'f16'), ((2, 3), 'i32')])
def k920002_3(p0, p1):
    v0 = np.transpose(p0, (0, 1))
    annotate(v0, mem_space='SharedHbm', partition_dim=0)
    v2 = 0.75 / (np.abs(v0) + 1.0)
    annotate(v2, mem_space='Sbuf')
    v4 = v2 @ np.swapaxes(v2, -1, -2)
    annotate(v4, mem_space='Hbm', partition_dim=0, tile_size=[1, 1], reduction_tile=[7])
    v6 = v2[p1 % 1]
    return v6


# a knob on a transpose that ends as the argument
@trace(input_specs=[((1, 1, 517), 'bf16')])
def k930020_3(p0):
    v0 = np.min(p0, axis=2, keepdims=True)
    v1 = np.transpose(p0, (1, 0, 2))
    v2 = np.swapaxes(v1, 0, -2)
    annotate(v2, mem_space='Sbuf', partition_dim=1)
    v4 = np.max(v2, axis=-3, keepdims=True)
    return v4, v0


# two knobs on a reduction to one element
@trace(input_specs=[((4,), 'bf16')])
def k500017_1(p0):
    v0 = np.sum(p0, axis=0, keepdims=True)
    mark(v0, mem_space='Sbuf')
    v2 = np.mean(v0, axis=0, keepdims=True)
    mark(v2, mem_space='Hbm', partition_dim=0, tile_size=[1])
    return v2


# a tile size on what only repeats a product
@trace(input_specs=[((130, 2), 'f32'), ((1, 2), 'f32'), ((8, 2), 'f32')])
def k500161_9(p0, p1, p2):
    v0 = np.matmul(p0, np.transpose(p1))
    knob.knob(v0).tile_op(tile_size=[128, 1, 2])
    v2 = np.broadcast_to(v0, (5, 130, 8))
    v3 = np.broadcast_to(v2, (2, 5, 130, 8))
    v4 = np.maximum(v3, v3)
    knob.knob(v4).tile_op(tile_size=[1, 1, 64, 8])
    v6 = np.matmul(v4, p2)
    knob.knob(v6).tile_op(tile_size=[1, 1, 64, 2, 8]).layout(mem_space='Sbuf')
    v8 = p2 - p2
    return v8, v4


# a second result without dimensions
@trace(input_specs=[((), 'f32'), ((), 'f32'), ((), 'f32'), ((), 'f32')])
def k500131_2(p0, p1, p2, p3):
    v0 = p0 / (np.abs(p1) + 1.0)
    v1 = v0 + p2
    v2 = p0 < p2
    v3 = np.where(v2, v1, p3)
    v4 = v3 - v3
    v5 = np.sin(v1)
    v6 = v5.astype(np.float16)
    v7 = v6.astype(np.float32) * 0.0 + v5
    v8 = np.expand_dims(v5, 0)
    return v8, v5


# two results without dimensions
@trace(input_specs=[((), 'f32'), ((), 'bool')])
def k500027_0(p0, p1):
    v0 = np.where(p1, p0, p0)
    v1 = np.maximum(p0, v0)
    v2 = 2.0 - p0
    v3 = np.broadcast_to(v2, (5,))
    v4 = v1 / (np.abs(p0) + 1.0)
    return v4, v1


# a tile for a reduction that is merged with another one
@trace(input_specs=[((7, 1, 8), 'bf16')])
def k500088_5(p0):
    v0 = np.exp(np.minimum(p0, 1.0))
    annotate(v0, mem_space='Sbuf', partition_dim=1)
    v2 = np.min(p0, axis=-3)
    annotate(v2, mem_space='Hbm')
    v4 = np.sum(v2, axis=-2, keepdims=True)
    annotate(v4, mem_space='Hbm', tile_size=[8], reduction_tile=[1])
    return v4


# the same with all dimensions reduced
@trace(input_specs=[((517, 3, 1, 2), 'i32')])
def k500031_9(p0):
    v0 = np.min(p0, axis=None, keepdims=True)
    v1 = np.min(v0, axis=-1, keepdims=True)
    mark(v1, mem_space='SharedHbm', partition_dim=2, tile_size=[1, 1, 1], reduction_tile=[1])
    v3 = p0 * v1
    mark(v3, mem_space='SharedHbm', tile_size=[1, 1, 1, 2])
    return v3


# a tile for a value that becomes a row of two dimensions
@trace(input_specs=[((1, 130), 'f32')])
def k500097_4(p0):
    v0 = np.sin(p0)
    knob.knob(v0).tile_op(tile_size=[1, 16]).layout(mem_space='Sbuf', partition_dim=0)
    v2 = np.mean(v0, axis=0)
    v3 = np.minimum(v2, v2)
    knob.knob(v3).tile_op(tile_size=[128]).layout(mem_space='Sbuf')
    v5 = np.maximum(v3, p0)
    v6 = np.min(v3, axis=0, keepdims=True)
    return v6


# a gather from a table that is to be in SBUF
@trace(input_specs=[((130,), 'i8'), ((16,), 'i32')])
def k500124_7(p0, p1):
    v0 = np.concatenate([p0, p0], axis=0)
    v1 = p0[2:66:2]
    v2 = -v1
    mark(v2, mem_space='Sbuf', partition_dim=0)
    v4 = v2[p1 % 32]
    return v4


# the same with rows
@trace(input_specs=[((128, 3), 'f32'), ((128,), 'f32'), ((3,), 'i32')])
def k500129_5(p0, p1, p2):
    v0 = np.mean(p0, axis=1)
    v1 = p1 == 0.25
    v2 = np.where(v1, v0, p1)
    annotate(v2, mem_space='Sbuf', tile_size=[128])
    v4 = np.maximum(v2, p1)
    v5 = np.take(v2, p2 % 128, axis=0)
    return v5


# a tile of a transpose whose rows are more than the partitions
@trace(input_specs=[((517, 4), 'f32'), ((1,), 'f32')])
def k500165_1(p0, p1):
    v0 = np.transpose(p0, (1, 0))
    annotate(v0, mem_space='SharedHbm', partition_dim=0, tile_size=[4, 512])
    v2 = v0 >= 0.25
    v3 = np.where(v2, v0, p1)
    annotate(v3, mem_space='SharedHbm', tile_size=[4, 512])
    return v3


# a partition_dim that is reduced once the value is simplified
@trace(input_specs=[((4, 8), 'i32'), ((4, 8), 'i32')])
def k1100022_5(p0, p1):
    v0 = np.max(p0, axis=-2, keepdims=True)
    v1 = np.minimum(v0, v0)
    knob.knob(v1).tile_op(tile_size=[1, 8]).layout(mem_space='SharedHbm', partition_dim=0)
    v3 = np.minimum(v1, p0)
    knob.knob(v3).tile_op(tile_size=[4, 8]).layout(mem_space='Sbuf')
    v5 = np.minimum(v0, 5)
    knob.knob(v5).tile_op(tile_size=[1, 8])
    v7 = v3 >= 3
    v8 = np.where(v7, v3, p1)
    v9 = v8 & v8
    knob.knob(v9).layout(mem_space='Sbuf', partition_dim=0)
    v11 = np.transpose(v8, (1, 0))
    knob.knob(v11).tile_op(tile_size=[8, 4]).layout(mem_space='Hbm')
    return v11


# two partition_dims of length 1
@trace(input_specs=[((7, 1, 3), 'f32'), ((), 'f32'), ((1, 1), 'f32')])
def k1100027_4(p0, p1, p2):
    v0 = np.square(p0)
    knob.knob(v0).tile_op(tile_size=[1, 1, 3]).layout(mem_space='Sbuf')
    v2 = np.mean(v0, axis=0, keepdims=True)
    knob.knob(v2).layout(mem_space='Sbuf', partition_dim=1)
    v4 = v2 + p1
    v5 = v2 - p2
    v6 = np.max(v4, axis=-2)
    knob.knob(v6).tile_op(tile_size=[1, 1, 3]).layout(mem_space='Sbuf', partition_dim=0)
    v8 = np.sqrt(np.abs(v6) + 0.25)
    knob.knob(v8).tile_op(tile_size=[1, 3]).layout(mem_space='Sbuf', partition_dim=0)
    return v8


# a sum that NumPy itself rounds at each step
@trace(input_specs=[((3, 16, 31, 3), 'bf16')])
def k1100012_5(p0):
    v0 = np.sum(p0, axis=(0, 1, 2, 3), keepdims=True)
    return v0


# indices of a block that is read in pieces: the remainder of a sum whose other terms are whole blocks
@trace(input_specs=[((4, 517), 'i32'), ((1, 1), 'i32')])
def k100193_7(p0, p1):
    v0 = np.reshape(p0, (1, 2068))
    v1 = v0[:, ::-1]
    v2 = p1 * v1
    return v2


# a fill of more blocks than an operation may have parts
@trace(input_specs=[((517, 4, 2), 'f32'), ((517, 1, 4), 'bool'), ((4, 128), 'f32')])
def k100001_8(p0, p1, p2):
    v0 = p0 @ np.swapaxes(p0, -1, -2)
    annotate(v0, mem_space='Sbuf')
    v2 = np.sqrt(np.abs(v0) + 0.25)
    annotate(v2, mem_space='Sbuf', partition_dim=1)
    v4 = v2 / (np.abs(v0) + 1.0)
    annotate(v4, mem_space='Sbuf')
    v6 = np.where(p1, v4, v0)
    annotate(v6, mem_space='SharedHbm', partition_dim=2, tile_size=[1, 4, 4])
    v8 = np.max(v6, axis=-2)
    v9 = np.matmul(v8, p2)
    annotate(v9, mem_space='Sbuf', tile_size=[128, 64], reduction_tile=[4])
    v11 = np.tanh(v9)
    return v11, v8


# a rounding of a product in a loop that computes more: it is not the product's
@trace(input_specs=[((512, 64), 'bf16'), ((512, 64), 'bf16'), ((512, 64), 'bf16')])
def attend(q, k, v):
    s = (q @ k.T).astype(np.float32) * 0.125
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return (e / np.sum(e, axis=-1, keepdims=True)).astype(v.dtype) @ v


# sums of long columns and rows are spread over the partitions
@trace(input_specs=[((1026, 1), "f32"), ((1, 1026), "f32")])
def long_ones(x, y):
    return np.exp(x - x.max()) / x.sum(), y * np.mean(y * y, -1, keepdims=True), x.T + y, np.argmax(x), x.sum(axis=1)


# a gather reads v0 only in its body, and what follows from it meets v0 again: not one loop with v0
@trace(input_specs=[((1000,), 'f32'), ((3,), 'i32')])
def k1600072_6(p0, p1):
    v0 = np.square(p0)
    v1 = np.repeat(v0, 2, axis=0)
    v2 = np.take(v0, p1 % 1000, axis=0)
    v3 = np.mean(v2, axis=-1)
    v4 = np.abs(v3)
    v6 = np.minimum(v1, v4)
    return v6, v3


# two loads of neighbouring columns become one, and a transfer reads what one of them loaded
@trace(input_specs=[((130, 31), 'i8'), ((130, 31), 'i8'), ((130, 1), 'i8')])
def k1600189_1(p0, p1, p2):
    v3 = p1 + p0
    annotate(v3, mem_space='SharedHbm', partition_dim=1, tile_size=[128, 16])
    v5 = np.maximum(v3, p2)
    v6 = np.stack([v5, p1], axis=0)
    v7 = np.max(v6, axis=(0, 1), keepdims=True)
    return v7


# a scalar argument is read along the partitions: an operand without dimensions
@trace(input_specs=[((517,), 'bf16'), ((), 'bf16')])
def k100063_3(p0, p1):
    v0 = p0 < p1
    v1 = np.logical_not(v0)
    v2 = v1 | v1
    v3 = np.where(v2, p0, p1)
    knob.knob(v3).tile_op(tile_size=[32])
    return v3


# transposes that keep their first dimensions: each row by itself
@trace(input_specs=[((3, 40, 2, 2, 5, 7), 'f32'), ((130, 3, 5), 'bf16'), ((33, 4, 3, 2, 5), 'i32')])
def turned_rows(p0, p1, p2):
    return (p0.transpose(0, 1, 4, 2, 5, 3).reshape(3, 40, 10, 14), p1.swapaxes(1, 2) + 1, p2.transpose(0, 4, 3, 2, 1), p2.transpose(0, 2, 3, 4, 1) * 2,
            np.maximum(p2.transpose(0, 1, 4, 3, 2), 0).transpose(0, 2, 1, 4, 3))


# a sum in f32 of bf16 is transposed and then converted: the transpose itself converts nothing
@trace(input_specs=[((7, 5, 8), 'bf16'), ((7, 8), 'bf16')])
def k9100017_4(p0, p1):
    v0 = 0.75 / (np.abs(p0) + 1.0)
    mark(v0, mem_space='SharedHbm', partition_dim=0)
    v2 = np.sum(v0, axis=1)
    mark(v2, mem_space='Sbuf', partition_dim=1, tile_size=[1, 8], reduction_tile=[5])
    v4 = p1 > 0.25
    v5 = np.where(v4, v2, p1)
    mark(v5, mem_space='Hbm', tile_size=[7, 8])
    v7 = np.exp(v5 - np.max(v5, axis=-1, keepdims=True))
    v8 = v7 / np.sum(v7, axis=-1, keepdims=True)
    mark(v8, mem_space='SharedHbm', partition_dim=1, tile_size=[7, 8])
    return v8


# a select of a mean and the same mean: one row is loaded to all partitions for two operands
@trace(input_specs=[((2, 3, 2, 130), 'f32')])
def select_of_same(p0):
    p0 = np.transpose(p0, (3, 2, 1, 0))
    v1 = np.mean(p0)
    v5 = p0 >= 0.25
    return -np.where(~v5 | v5, v1, v1), p0


# a buffer that spills, whose last tile of a row is not full: only what was written goes to HBM and back
@trace(input_specs=[((4, 25000), 'bf16'), ((25000,), 'bf16')])
def long_rows_that_spill(x, b):
    y = x * b
    y = y - y.mean(axis=0)
    return y, y.argmax(axis=-1)


# the same with rows that fill one block of partitions and two partitions of the next
@trace(input_specs=[((130, 9000), 'f32'), ((9000,), 'f32')])
def many_rows_that_spill(x, b):
    y = x * b
    y = y - y.mean(axis=0)
    return y, y.argmax(axis=-1)
