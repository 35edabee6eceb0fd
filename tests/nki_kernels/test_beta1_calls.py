"""Every call of nki.language and nki.isa of beta 1, on the simulated machine, against NumPy."""
import inspect
import json
import os
import re
import subprocess
import sys

import pytest

import nkipy  # noqa: F401  (it adds neuronxcc.nki where the vendor's package is not installed)
from support.paths import BUILD

HEAD = """
import json, math, sys, traceback
import ml_dtypes
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl

rng = np.random.default_rng(3)
x, y = (rng.uniform(-2, 2, (128, 96)).astype(np.float32) for _ in range(2))
v = rng.uniform(0.5, 2, (128, 96)).astype(np.float32)
i, j = (rng.integers(-50, 50, (128, 96)).astype(np.int32) for _ in range(2))
h = x.astype(ml_dtypes.bfloat16)
c = rng.uniform(0.5, 2, (128, 1)).astype(np.float32)
k3 = rng.uniform(-1, 1, (128, 4, 24)).astype(np.float32)
erf = np.vectorize(math.erf)
ip, jf = nl.arange(128)[:, None], nl.arange(96)[None, :]
i64, j64 = nl.arange(64)[:, None], nl.arange(64)[None, :]
rows, columns = np.arange(128)[:, None], np.arange(96)[None, :]


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def run(names, result, want):
    arrays = [globals()[n] for n in names]

    def kernel(*tensors):
        tiles = [nl.load(t) for t in tensors]
        r = eval(result, globals(), dict(zip(names, tiles)))
        out = nl.ndarray(r.shape, dtype=r.dtype, buffer=nl.shared_hbm)
        nl.store(out, r)
        return out

    kernel.__signature__ = __import__("inspect").signature(eval(f"lambda {', '.join(names)}: 0"))
    got = nki.simulate_kernel(kernel, *arrays)
    want = np.asarray(eval(want, globals(), dict(zip(names, arrays))))
    want = want.reshape(got.shape) if want.size == got.size else want
    error = np.abs(got.astype(np.float64) - want.astype(np.float64)).max() / max(1, np.abs(want.astype(np.float64)).max())
    return {"dtype": got.dtype.name, "error": float(error)}
"""

# inputs, the tile in beta 1, NumPy's formula, the dtype, the error
F, B, I = "float32", "bfloat16", "int32"
CASES = [
    # operators of Python
    ("x y", "x + y", "x + y", F, 0), ("x y", "x - y", "x - y", F, 0), ("x y", "x * y", "x * y", F, 0),
    ("x v", "x / v", "x / v", F, 1e-6), ("x", "x + 1.5", "x + 1.5", F, 0), ("x", "1.5 - x", "1.5 - x", F, 0),
    ("x", "3 * x", "3 * x", F, 0), ("v", "2.0 / v", "2 / v", F, 1e-6), ("v", "v / 4", "v / 4", F, 0), ("x", "-x", "-x", F, 0),
    ("x c", "x * c", "x * c", F, 0), ("x c", "c - x", "c - x", F, 0), ("x y", "x < y", "x < y", F, 0),
    ("x y", "x >= y", "x >= y", F, 0), ("x", "x > 0", "x > 0", F, 0), ("x", "x == x", "x == x", F, 0),
    ("i j", "i & j", "i & j", I, 0), ("i j", "i | j", "i | j", I, 0), ("i j", "i ^ j", "i ^ j", I, 0), ("i", "~i", "~i", I, 0),
    ("i", "i << 2", "i << 2", I, 0), ("i j", "i + j", "i + j", I, 0), ("i j", "i * j", "i * j", I, 0), ("i", "i + 3", "i + 3", I, 0),
    ("i", "i * 0.5", "i * 0.5", F, 0), ("h", "h * 0.5", "h.astype('f4') * 0.5", F, 0), ("h", "h + 1", "h + 1", B, 0.01),
    ("h x", "h + x", "h.astype('f4') + x", F, 0), ("v", "v ** 2.0", "v ** 2", F, 1e-5),
    # nl, element by element
    ("x y", "nl.add(x, y)", "x + y", F, 0), ("x y", "nl.add(x, y, dtype=nl.bfloat16)", "x + y", B, 0.01),
    ("x y", "nl.subtract(x, y)", "x - y", F, 0), ("x y", "nl.multiply(x, y)", "x * y", F, 0), ("x v", "nl.divide(x, v)", "x / v", F, 1e-6),
    ("x y", "nl.maximum(x, y)", "np.maximum(x, y)", F, 0), ("x y", "nl.minimum(x, y)", "np.minimum(x, y)", F, 0),
    ("x", "nl.maximum(x, 0.5)", "np.maximum(x, 0.5)", F, 0), ("v", "nl.power(v, 3.0)", "v ** 3", F, 1e-5),
    ("x y", "nl.equal(x, y)", "x == y", F, 0), ("x y", "nl.not_equal(x, y)", "x != y", F, 0), ("x y", "nl.less(x, y)", "x < y", F, 0),
    ("x y", "nl.less_equal(x, y)", "x <= y", F, 0), ("x y", "nl.greater(x, y)", "x > y", F, 0),
    ("x y", "nl.greater_equal(x, y, dtype=nl.uint8)", "x >= y", "uint8", 0), ("x", "nl.logical_not(x > 0)", "x <= 0", F, 0),
    ("x y", "nl.logical_and(x > 0, y > 0)", "(x > 0) & (y > 0)", F, 0), ("x y", "nl.logical_or(x > 0, y > 0)", "(x > 0) | (y > 0)", F, 0),
    ("x y", "nl.logical_xor(x > 0, y > 0)", "(x > 0) ^ (y > 0)", F, 0), ("i j", "nl.bitwise_and(i, j)", "i & j", I, 0),
    ("i", "nl.invert(i)", "~i", I, 0), ("i", "nl.left_shift(i, 3)", "i << 3", I, 0),
    ("i", "nl.right_shift(i, 3)", "(i.view('u4') >> 3).view('i4')", I, 0),
    ("x", "nl.exp(x)", "np.exp(x)", F, 1e-6), ("v", "nl.log(v)", "np.log(v)", F, 1e-6), ("v", "nl.sqrt(v)", "np.sqrt(v)", F, 1e-6),
    ("v", "nl.rsqrt(v)", "1 / np.sqrt(v)", F, 1e-6), ("x", "nl.square(x)", "x * x", F, 1e-6), ("x", "nl.abs(x)", "abs(x)", F, 0),
    ("x", "nl.tanh(x)", "np.tanh(x)", F, 1e-6), ("x", "nl.sigmoid(x)", "sigmoid(x)", F, 1e-6), ("x", "nl.relu(x)", "np.maximum(x, 0)", F, 0),
    ("x", "nl.silu(x)", "x * sigmoid(x)", F, 1e-6), ("x", "nl.gelu(x)", "x * (1 + erf(x / 2 ** 0.5)) / 2", F, 1e-6),
    ("x", "nl.softplus(x)", "np.log1p(np.exp(x))", F, 1e-6), ("x", "nl.mish(x)", "x * np.tanh(np.log1p(np.exp(x)))", F, 1e-6),
    ("x", "nl.erf(x)", "erf(x)", F, 1e-6), ("x", "nl.sign(x)", "np.sign(x)", F, 0), ("x", "nl.arctan(x)", "np.arctan(x)", F, 1e-6),
    ("x", "nl.sin(x * 9.0)", "np.sin(x * 9.0)", F, 1e-5), ("x", "nl.cos(x)", "np.cos(x)", F, 1e-6), ("x", "nl.tan(x * 0.5)", "np.tan(x * 0.5)", F, 1e-4),
    ("x", "nl.negative(x)", "-x", F, 0), ("v", "nl.reciprocal(v)", "1 / v", F, 1e-6), ("x", "nl.floor(x)", "np.floor(x)", F, 0),
    ("x", "nl.ceil(x)", "np.ceil(x)", F, 0), ("x", "nl.trunc(x)", "np.trunc(x)", F, 0),
    ("x", "nl.copy(x)", "x", F, 0), ("x", "nl.copy(x, dtype=nl.bfloat16)", "x", B, 0.01), ("x", "x.astype(nl.bfloat16)", "x", B, 0.01),
    ("x", "nl.static_cast(x, nl.bfloat16)", "x", B, 0.01), ("x y", "nl.where(x > y, x, y)", "np.maximum(x, y)", F, 0),
    ("x", "nl.where(x > 0, x, 0.0)", "np.maximum(x, 0)", F, 0),
    # over axes
    ("x", "nl.sum(x, axis=1)", "x.sum(1)", F, 1e-5), ("x", "nl.sum(x, axis=[1], keepdims=True)", "x.sum(1)", F, 1e-5),
    ("v", "nl.prod(v[:, 0:8], axis=1)", "v[:, :8].prod(1)", F, 1e-5), ("x", "nl.max(x, axis=1)", "x.max(1)", F, 0),
    ("x", "nl.min(x, axis=[1])", "x.min(1)", F, 0), ("x", "nl.mean(x, axis=1)", "x.mean(1)", F, 1e-6),
    ("x", "nl.var(x, axis=1)", "x.var(1)", F, 1e-5), ("x", "nl.all(x > -3.0, axis=1)", "np.ones(128)", F, 0),
    ("x", "nl.softmax(x, axis=1)", "np.exp(x) / np.exp(x).sum(1, keepdims=True)", F, 1e-6),
    ("k3", "nl.sum(k3, axis=[1, 2])", "k3.sum((1, 2))", F, 1e-5), ("k3", "nl.sum(k3, axis=2)", "k3.sum(2)", F, 1e-5),
    ("k3", "nl.max(k3, axis=1)", "k3.max(1)", F, 0), ("x", "nl.max(x, axis=1, mask=(jf < 10))", "x[:, :10].max(1)", F, 0),
    ("x c", "nl.rms_norm(x, nl.zeros((128, 96), nl.float32) + c, axis=1, n=96)", "x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * c", F, 1e-5),
    # shapes and products
    ("c", "nl.broadcast_to(c, shape=(128, 5))", "np.repeat(c, 5, 1)", F, 0), ("x", "x.reshape((128, 8, 12))", "x", F, 0),
    ("x", "nl.expand_dims(x, 1)", "x", F, 0), ("k3", "k3[nl.mgrid[0:128, 0:4].p, nl.mgrid[0:128, 0:4].x, 5]", "k3[:, :, 5]", F, 0),
    ("x", "nl.transpose(x)", "x.T", F, 0), ("x y", "nl.matmul(x, y, transpose_x=True)", "x.T @ y", F, 1e-5),
    ("x y", "nl.matmul(nl.copy(x), nl.copy(nl.transpose(y)))", "x @ y.T", F, 1e-5),
    # nisa
    ("x y", "nisa.tensor_tensor(x, y, op=nl.add)", "x + y", F, 0), ("x y", "nisa.tensor_tensor(x, y, np.multiply, dtype=nl.bfloat16)", "x * y", B, 0.01),
    ("i j", "nisa.tensor_tensor(i, j, op=nl.bitwise_xor)", "i ^ j", I, 0), ("x", "nisa.tensor_scalar(x, np.add, 1.0)", "x + 1", F, 0),
    ("x", "nisa.tensor_scalar(x, np.subtract, 1.0, reverse0=True, op1=np.multiply, operand1=2.0)", "(1 - x) * 2", F, 0),
    ("x c", "nisa.tensor_scalar(x, op0=nl.multiply, operand0=c, op1=nl.maximum, operand1=0.0)", "np.maximum(x * c, 0)", F, 0),
    ("x y", "nisa.scalar_tensor_tensor(data=x, op0=np.multiply, operand0=2.0, op1=np.add, operand1=y)", "x * 2 + y", F, 1e-6),
    ("x c", "nisa.activation(op=nl.tanh, data=x, bias=c, scale=0.5)", "np.tanh(x * 0.5 + c)", F, 1e-6),
    ("x", "nisa.activation(np.exp, x, dtype=nl.bfloat16, mask=None)", "np.exp(x)", B, 0.01), ("v", "nisa.reciprocal(v)", "1 / v", F, 1e-6),
    ("x", "nisa.tensor_reduce(np.add, x, axis=[1], negate=True)", "-x.sum(1)", F, 1e-5), ("x", "nisa.tensor_reduce(np.amax, x, axis=1)", "x.max(1)", F, 0),
    ("x", "nisa.tensor_partition_reduce(np.add, x)", "x.sum(0)", F, 1e-5), ("x", "nisa.tensor_copy(x, engine=nisa.scalar_engine)", "x", F, 0),
    ("x", "nisa.tensor_copy(x, dtype=nl.bfloat16)", "x", B, 0.01), ("x y", "nisa.nc_matmul(x, y)", "x.T @ y", F, 1e-5),
    ("x", "nisa.nc_transpose(x)", "x.T", F, 0), ("x", "nisa.bn_aggr(nisa.bn_stats(x))", "np.stack([x.mean(1), x.var(1)], 1)", F, 1e-5),
    ("x", "nisa.max8(src=x)", "-np.sort(-x, 1)[:, :8]", F, 0),
    ("x", "nisa.nc_find_index8(data=x, vals=nisa.max8(src=x))", "np.argsort(-x, 1)[:, :8]", "uint32", 0),
    ("x", "nisa.nc_match_replace8(data=x, vals=nisa.max8(src=x), imm=0.0)", "np.where(np.argsort(np.argsort(-x, 1), 1) < 8, 0, x)", F, 0),
    ("x y", "nisa.tensor_tensor_scan(x, y, initial=0.0, op0=np.multiply, op1=np.add)[:, 0:3]",
     "np.stack([y[:, 0], y[:, 0] * x[:, 1] + y[:, 1], (y[:, 0] * x[:, 1] + y[:, 1]) * x[:, 2] + y[:, 2]], 1)", F, 1e-5),
    ("x", "nisa.memset((128, 4), value=2.5, dtype=nl.float32) + x[:, 0:4]", "x[:, :4] + 2.5", F, 0),
    ("x", "nisa.iota(ip * 3 + jf, dtype=nl.int32)", "rows * 3 + columns", I, 0),
    ("x", "nisa.iota(95 - jf + 0 * ip, dtype=nl.float32) + x * 0.0", "95 - columns + 0 * x", F, 0),
    ("x", "nisa.affine_select(pred=(jf > ip), on_true_tile=x, on_false_value=-1.0)", "np.where(columns > rows, x, -1)", F, 0),
    ("x", "nisa.affine_select(pred=(jf == ip), on_true_tile=x, on_false_value=0.0)", "np.where(columns == rows, x, 0)", F, 0),
    ("h", "nisa.dma_transpose(h)", "h.T", B, 0),
    ("x", "nisa.dropout(x, 0.0)", "x", F, 0), ("x", "nl.dropout(x, 1.0, dtype=nl.bfloat16)", "x * 0", B, 0),
    ("i", "nl.mod(i, 7)", "i % 7", I, 0), ("x y", "nl.fmod(x, y)", "np.fmod(x, y)", F, 1e-5),
    ("x", "nl.floor(nl.rand((128, 96), nl.float32)) + x", "x", F, 0),
    ("x", "(nl.random_seed(5), nl.device_print('x', x), x)[2]", "x", F, 0),
    ("x", "nl.gather_flattened(x, nisa.iota(95 - jf + 0 * ip, nl.uint32))", "x[:, ::-1]", F, 0),
    ("x", "nl.gather_flattened(x, nisa.iota(95 - jf + 0 * ip, nl.uint32), mask=(ip < 128))[:, 0:3]", "x[:, :-4:-1]", F, 0),
    ("x", "nisa.range_select(on_true_tile=x, comp_op0=np.greater_equal, comp_op1=np.less, bound0=nl.full((128, 1), 3.0, nl.float32), bound1=nl.full((128, 1), 9.0, nl.float32), on_false_value=-5.0)",
     "np.where((columns >= 3) & (columns < 9), x, -5)", F, 0),
    ("i j", "nl.bitwise_or(i, j)", "i | j", I, 0),
    ("x", "nl.gelu_apprx_tanh(x)", "x / 2 * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x ** 3)))", F, 1e-6),
    ("x", "nl.gelu_apprx_sigmoid(x)", "x * sigmoid(1.702 * x)", F, 1e-6),
    ("x", "nl.gelu_apprx_sigmoid_dx(x)", "sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - sigmoid(1.702 * x)))", F, 1e-6),
    ("x", "nl.gelu_dx(x)", "(1 + erf(x / 2 ** 0.5)) / 2 + x * np.exp(-x * x / 2) / (2 * np.pi) ** 0.5", F, 1e-6),
    ("x", "nl.silu_dx(x)", "sigmoid(x) * (1 + x * (1 - sigmoid(x)))", F, 1e-6),
    ("x", "nl.erf_dx(x)", "2 / np.pi ** 0.5 * np.exp(-x * x)", F, 1e-6),
    ("x", "nl.ones((128, 96), nl.float32) + x", "x + 1", F, 0), ("x", "nl.zeros_like(x) + x", "x", F, 0),
    ("x", "(t := nl.empty_like(x), nisa.dma_copy(dst=t, src=x), t)[2]", "x", F, 0),
    ("x", "nl.load(nl.shared_constant(np.float32(rows + 2 * columns))) + x", "rows + 2 * columns + x", F, 1e-6),
    ("x", "nl.load_transpose2d(nl.shared_constant(np.float32(rows + 2 * columns)))", "(rows + 2 * columns).T", F, 0),
    ("x", "nl.matmul(x, nl.load(nl.shared_identity_matrix(128, nl.float32)), transpose_x=True)", "x.T", F, 0),
    ("x y", "(t := nl.copy(y), nisa.tensor_copy_predicated(src=x, dst=t, predicate=nl.greater(x, 0.0, dtype=nl.uint8)), t)[2]",
     "np.where(x > 0, x, y)", F, 0),
    ("x", "(r := nl.ndarray((128, 1), nl.float32), nisa.activation_reduce(np.exp, x, reduce_op=np.add, reduce_res=r), r)[2]", "np.exp(x).sum(1)", F, 1e-5),
    ("x", "(r := nl.ndarray((128, 1), nl.float32), nisa.tensor_scalar_reduce(data=x, op0=np.add, operand0=1.0, reduce_op=np.max, reduce_res=r), r)[2]",
     "x.max(1) + 1", F, 1e-6),
    ("x", "(t := nl.zeros_like(x), nisa.select_reduce(dst=t, predicate=nl.greater(x, 0.0, dtype=nl.uint8), on_true=x, on_false=-5.0), t)[2]",
     "np.where(x > 0, x, -5)", F, 0),
    ("x", "(t := nl.zeros_like(x), nisa.nc_stream_shuffle(x, t, [31 - k for k in range(32)]), t)[2]", "x.reshape(4, 32, 96)[:, ::-1].reshape(128, 96)", F, 0),
    ("i", "nisa.sequence_bounds(segment_ids=nl.ndarray((1, 4), nl.int32) if False else nl.full((1, 4), 3, nl.int32))", "np.array([0, 0, 0, 0, 4, 4, 4, 4])", I, 0),
    ("x", "nisa.local_gather(x, nl.full((128, 2), 5, nl.uint16), 4, 32)", "np.tile(x[:, 20:24], (1, 32))", F, 0),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """All cases in one Python, because most of the time is the start."""
    folder = tmp_path_factory.mktemp("calls")
    program = HEAD + f"\ncases = json.loads({json.dumps(json.dumps([c[:3] for c in CASES]))})\n" + """
found = []
for names, result, want in cases:
    try:
        found.append(run(names.split(), result, want))
    except Exception as e:
        found.append({"failed": "".join(traceback.format_exception(e))})
json.dump(found, open("found.json", "w"))
"""
    (folder / "calls.py").write_text(program)
    path = os.pathsep.join(map(str, (BUILD / "python", BUILD / "python/nkx/stubs")))
    done = subprocess.run([sys.executable, "calls.py"], cwd=folder, env={"PATH": os.environ["PATH"], "PYTHONPATH": path},
                          capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "found.json").read_text())


@pytest.mark.parametrize("number", range(len(CASES)), ids=[c[1] for c in CASES])
def test_a_call_of_beta_1_computes_what_numpy_computes(results, number):
    found, (_, _, _, dtype, error) = results[number], CASES[number]
    assert "failed" not in found, found["failed"]
    assert found["dtype"] == dtype and found["error"] <= error, found


# what makes no instruction, and what needs a loop, another machine or a tensor in HBM that is written: tested in other files
ELSEWHERE = {"nl.ds", "nl.num_programs", "nl.program_id", "nl.program_ndim", "nl.sequential_range", "nl.static_range", "nl.nc", "nl.spmd_dim",
             "nl.refuse", "nl.finfo", "nl.atomic_rmw", "nl.abs_max", "nl.abs_min", "nl.loop_reduce", "nisa.get_nc_version", "nisa.get_nc_sub_version", "nisa.refuse", "nisa.reduced"}


def test_each_function_of_beta_1_is_the_one_call_of_a_kernel_above():
    import neuronxcc.nki.isa as nisa
    import neuronxcc.nki.language as nl
    written = HEAD + " ".join(c[1] for c in CASES)
    functions = {f"{short}.{n}" for short, m in (("nl", nl), ("nisa", nisa)) for n, f in vars(m).items() if n[0] != "_" and inspect.isfunction(f)}
    assert {n for n in functions if not re.search(rf"\b{re.escape(n)}\b", written)} == ELSEWHERE
