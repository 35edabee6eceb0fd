"""Element-wise kernels: chains, scalars on either side, broadcasting, comparisons, several results."""
import numpy as np

from support.kernels.suite import ALL_FORMS, SBUF, SHARED, formulas, kernel

# ---- without knobs in the first place --------------------------------------------------------------------------------

formulas(1, {"exp_auto": "np.exp(x)"}, "128x256")
formulas(2, {"chain_auto": "np.square(np.exp(x)) + 1.0"}, "256x128")
formulas(2, {"sigmoid_auto": "1.0 / (1.0 + np.exp(-x))"}, "128x128")
formulas(1, {
    "add": "np.add(x, y)", "subtract": "np.subtract(x, y)", "multiply": "np.multiply(x, y)",
    "maximum": "np.maximum(x, y)", "minimum": "np.minimum(x, y)", "greater_equal": "np.greater_equal(x, y)",
    "less": "np.less(x, y)", "equal": "np.equal(x, y)", "greater": "np.greater(x, y)", "not_equal": "x != y",
    "less_equal": "x <= y",
}, "128x256", "128x256", prefix="auto_")
formulas(1, {"divide": "np.divide(x, y)", "floor_divide": "np.floor_divide(x, y)", "mod": "np.mod(x, y)",
             "floor_divide_operator": "x // y", "mod_operator": "x % y"},
         "128x256 -9:9", "128x256 0.5:3", prefix="auto_")
formulas(1, {"mod_signs": "np.remainder(x, y)"}, "128x256 -9:9", "128x256 -3:-0.5", prefix="auto_")
formulas(1, {"power": "np.power(x, y)"}, "128x256 0.1:3", "128x256 -2:2", prefix="auto_")
formulas(1, {
    "power_two": "np.power(x, 2)", "add_scalar": "x + 2.0", "scalar_subtract": "5.0 - x", "multiply_scalar": "x * 3.0",
    "exp": "np.exp(x)", "negative": "np.negative(x)", "abs": "np.abs(x)", "sin": "np.sin(x)", "cos": "np.cos(x)",
    "tanh": "np.tanh(x)", "square": "np.square(x)", "sign": "np.sign(x)",
    "logical_not": "np.logical_not(x)", "less_scalar": "x > 0.25", "equal_scalar": "np.equal(x, 0.0)",
}, "128x256", prefix="auto_")
formulas(1, {"scalar_divide": "1.0 / x", "sqrt": "np.sqrt(x)", "log": "np.log(x)", "reciprocal": "np.reciprocal(x)"},
         "128x256 0.5:3", prefix="auto_")
formulas(1, {"ceil": "np.ceil(x)", "floor": "np.floor(x)", "clip": "np.clip(x, -0.5, 2.0)", "trunc": "np.trunc(x)",
             "rint": "np.rint(x)"}, "128x256 -9:9", prefix="auto_")
formulas(2, {"exp_times_two": "np.exp(x) * 2.0 + 1.0", "x_plus_exp": "x + np.exp(x)", "sigmoid": "1.0 / (1.0 + np.exp(-x))",
             "gelu_sigmoid": "x * (1.0 / (1.0 + np.exp(-1.702 * x)))", "silu": "x / (1.0 + np.exp(-x))"},
         "128x256 -3:3", prefix="auto_")
formulas(1, {"and": "np.bitwise_and(x, y)", "logical_and": "np.logical_and(x, y)", "where": "np.where(x, y, 0)",
             "where_float": "np.where(x, y * 0.5, 0.0)"}, "128x128 i32 0:2", "128x128 i32 0:2", prefix="flags_")
formulas(1, {"bitwise_and": "x & y", "bitwise_or": "x | y", "bitwise_xor": "x ^ y"}, "128x128 i32", "128x128 i32", prefix="auto_")
formulas(1, {"where_bool": "np.where(x, y, z)"}, "128x128 bool", "128x128", "128x128", prefix="auto_")
formulas(2, {"where_greater": "np.where(x > y, x, y)", "masked": "x * np.less(x, y)"}, "128x128", "128x128", prefix="auto_")
formulas(1, {"square_square": "x + y", "square_times": "x * y"}, "128x128", "128x128", prefix="auto_")
formulas(1, {"simple_add": "np.add(x, y)"}, "32x32", "32x32", prefix="spec_")
formulas(1, {"simple_add_f16": "np.add(x, y)"}, "32x32 f16", "32x32 f16", prefix="spec_")
formulas(2, {"indexed_add": "x[2:4, :] + x[0:2]"}, "4x4", prefix="spec_")
formulas(2, {"indexed_add_halves": "x[128:] + x[:128]"}, "256x128", prefix="auto_")
formulas(1, {"sigmoid_small": "1.0 / (1.0 + np.exp(-x))"}, "4x8", prefix="auto_")
formulas(2, {"hard_sigmoid": "np.clip(x / 6.0 + 0.5, 0.0, 1.0)"}, "128x256 -5:5", prefix="auto_")
formulas(2, {"softplus": "np.log(1.0 + np.exp(x))"}, "128x256 -3:3", prefix="auto_")

# ---- knobs of one result ---------------------------------------------------------------------------------------------

BINARY = {"add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y"}
formulas(1, BINARY, "128x256 -1:1", "128x256 0.5:2", tile=[64, 128], prefix="tile_")
formulas(1, BINARY, "256x512 -1:1", "256x512 0.5:2", tile=[128, 256], prefix="tile_large_")
formulas(1, BINARY, "128x128 f16 -1:1", "128x128 f16 0.5:2", tile=[64, 64], prefix="tile_f16_")
formulas(1, {"add": "x + 2.5", "add_left": "2.5 + x", "sub": "x - 3.0", "sub_left": "3.0 - x", "mul": "x * 2.5",
             "mul_left": "2.5 * x", "div": "x / 3.0", "div_left": "1.0 / x"}, "128x256 0.5:2", tile=[64, 128], prefix="scalar_")
formulas(1, {"square": "np.square(x)", "abs": "np.abs(x)", "sqrt": "np.sqrt(x)", "exp": "np.exp(x)",
             "negative": "np.negative(x)"}, "128x256 0.01:2", tile=[64, 128], prefix="tile_")
formulas(2, {"chained": "(x + y) * z - 1.0"}, "128x256", "128x256", "128x256", tile=[64, 128], prefix="tile_")
formulas(1, {"mem_space_knob": "x + y"}, "128x128", "128x128", tile=[128, 128], prefix="auto_")


@kernel(2, "128x256", forms=ALL_FORMS)
def knob_exp(x):
    r = np.exp(x)
    put(r, [128, 128], SHARED)
    return r


@kernel(2, "128x256")
def knob_add_scalar(x):
    r = x + 2.0
    put(r, [128, 128], SHARED)
    return r


@kernel(2, "128x256")
def knob_scalar_subtract(x):
    r = 5.0 - x
    put(r, [128, 128], SHARED)
    return r


@kernel(2, "128x256")
def knob_divide_scalar(x):
    r = x / 2.0
    put(r, [128, 128], SHARED)
    return r


@kernel(2, "128x256", forms=ALL_FORMS)
def knob_sigmoid(x):
    negated = -x
    put(negated, [128, 128], SBUF)
    e = np.exp(negated)
    put(e, [128, 128], SBUF)
    below = 1.0 + e
    put(below, [128, 128], SBUF)
    r = 1.0 / below
    put(r, [128, 128], SHARED)
    return r


@kernel(3, "64x128")
def partition_dim_exp(x):
    r = np.exp(x)
    put(r, [64, 128], SHARED, dim=1)
    return r


@kernel(3, "64x128")
def partition_dim_sigmoid(x):
    negated = -x
    put(negated, [64, 128], SBUF, dim=1)
    e = np.exp(negated)
    put(e, [64, 128], SBUF, dim=1)
    below = e + 1.0
    put(below, [64, 128], SBUF, dim=1)
    r = 1.0 / below
    put(r, [64, 128], SHARED, dim=1)
    return r


@kernel(3, "256x2x256", "256x2x256", "256x2x256", name="add_chain_3d", FIRST="Sbuf")
@kernel(3, "256x2x256", "256x2x256", "256x2x256", name="add_chain_3d_shared", FIRST="SharedHbm")
def add_chain_3d(a, b, c):
    first = a + b
    put(first, [128, 1, 128], FIRST)
    r = first + c
    put(r, [128, 1, 128], SHARED)
    return r


@kernel(2, "256x256", "256x256")
def two_results(a, b):
    return a + b, a - b


@kernel(2, "256x256", "256x256")
def sum_and_product(a, b):
    return a + b, a * b


@kernel(2, "256x256", "256x256")
def three_results(a, b):
    return a + b, a - b, a * b


# ---- broadcasting ----------------------------------------------------------------------------------------------------

BROADCAST = {"row": ("128x256", "1x256"), "column": ("128x256", "128x1"), "vector": ("128x256", "256"),
             "one": ("128x256", "1"), "one_by_one": ("128x256", "1x1"), "both": ("128x1", "1x256"),
             "leading": ("4x128x256", "128x256"), "leading_vector": ("2x128x64", "64"), "middle": ("4x1x64", "4x128x64"),
             "rank_four": ("2x64x128x128", "1x64x1x1"), "left": ("256", "128x256"), "scalar": ("128x256", "scalar")}
for _name, _shapes in BROADCAST.items():
    formulas(2, {_name: "x + y"}, *_shapes, prefix="broadcast_add_")
formulas(2, {"row": "x * y"}, "128x256", "1x256", prefix="broadcast_multiply_")
formulas(2, {"column": "x / y"}, "128x256 -1:1", "128x1 0.5:2", prefix="broadcast_divide_")
formulas(2, {"column": "y - x"}, "128x256", "128x1", prefix="broadcast_subtract_left_")
formulas(2, {"row": "x + y"}, "256x256", "1x256", tile=[128, 128], prefix="broadcast_tile_")
formulas(2, {"column": "x + y"}, "256x256", "256x1", tile=[128, 128], prefix="broadcast_tile_")
formulas(2, {"vector": "x + y"}, "256x256", "256", tile=[128, 128], prefix="broadcast_tile_")
