"""Kernels whose operands lack leading axes use the partitions: right at every stage, and nothing large is transposed or copied."""
import re

import pytest
from support import compiler, reference

HEAD = "import numpy as np\nfrom nkigen import trace\n\n"

# name -> (body, shapes): what lacks an axis is read again or broadcast; what has it is taken as it is
KERNELS = {
    "mask": ("return x + y", [(6, 128, 64), (128, 64)]),
    "mask_of_several_tiles": ("return np.exp(x + y)", [(3, 300, 40), (300, 40)]),
    "column_of_a_batch": ("return x * y", [(5, 130, 33), (130, 1)]),
    "row_of_a_batch": ("return x * y", [(5, 130, 33), (5, 1, 33)]),
    "bias": ("return x + y", [(300, 70), (70,)]),
    "bias_of_long_rows": ("return x + y", [(140, 4500), (4500,)]),
    "scalar": ("return x * (y + 1.0)", [(3, 70, 20), ()]),
    "channels": ("return x * y[None, :, None, None]", [(3, 140, 9, 11), (140,)]),
    "batch_norm": ("m = np.mean(x, axis=(0, 2, 3), keepdims=True)\n    v = np.mean((x - m) ** 2, axis=(0, 2, 3), keepdims=True)\n"
                   "    return (x - m) / np.sqrt(v + 1e-5) * y[None, :, None, None]", [(3, 140, 6, 7), (140,)]),
    "comparison": ("return np.where(x > y[..., None], x, 0.0)", [(4, 128, 32), (4, 128)]),
    "rope": ("a, b = x[..., :16], x[..., 16:]\n    return np.concatenate([a * y - b * y, a * y + b * y], axis=-1)", [(4, 128, 32), (128, 16)]),
}
# name -> (body, shape): sums over the partitions
SUMS = {
    "rows": ("np.sum(x, axis=0)", (300, 70)),
    "a_prime_number_of_rows": ("np.mean(x, axis=0, keepdims=True)", (257, 33)),
    "two_axes": ("np.sum(x, axis=(0, 1))", (3, 100, 40)),
    "of_each_batch": ("np.sum(x, axis=1)", (3, 200, 40)),
    "long_rows": ("np.sum(x, axis=0)", (130, 1100)),
}


def right(body, shapes):
    names = ["x", "y"][:len(shapes)]
    specs = ", ".join(f"({s}, 'f32')" for s in shapes)
    source = f"{HEAD}@trace(input_specs=[{specs}])\ndef f({', '.join(names)}):\n    {body}\n"
    result = compiler.compile(source, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    (kernel,) = result["kernels"]
    assert {s["check"]["status"] for s in kernel["stages"]} <= {"pass", "skipped"}
    reference.assert_nisa_is_function(kernel, compiler.random_inputs(kernel, seed=3), reference.functions(source)["f"])
    return {s["name"]: s["text"] for s in kernel["stages"]}


@pytest.mark.parametrize("name", KERNELS)
def test_an_operand_without_leading_axes_is_read_in_place(name):
    body, shapes = KERNELS[name]
    text = right(body, shapes)
    assert "linalg.transpose" not in text["canonicalize-partition-dim"]
    assert not re.search(r"linalg\.broadcast.*outs\(\S+ : tensor", text["canonicalize-partition-dim"])


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_over_the_partitions_is_a_product(name):
    body, shape = SUMS[name]
    text = right(f"return {body}", [shape])
    assert "linalg.matmul" in text["decompose-batch-matmul"] and "transpose" not in text["canonicalize-partition-dim"]


@pytest.mark.parametrize("body", ["np.max(x, axis=0)", "np.sum(x.astype(np.int32), axis=0)", "np.sum(x, axis=(0, 2))"])
def test_other_reductions_over_the_partitions_are_right(body):
    right(f"return {body}", [(200, 33, 5) if "2" in body.split("axis")[1] else (200, 33)])


def test_what_a_loop_writes_is_not_loaded_before_it():
    right("y = np.zeros_like(x)\n    for i in range(3):\n        y = y + x\n        x = y * 0.5\n    return x + y", [(130, 40)])


@pytest.mark.parametrize("shape", [(700, 333), (512, 1030), (5, 600)])
def test_long_tiles_of_a_transposed_matrix_are_right(shape):
    right("return np.exp(x.T) + 1.0", [shape])
    right("return x.T, x.T @ x", [shape])


@pytest.mark.parametrize("heads, rows, width, dtype", [(8, 128, 64, "f32"), (4, 100, 32, "f32"), (6, 130, 20, "bf16"), (1, 17, 64, "f32")])
def test_heads_that_become_rows_of_a_product_are_loaded_in_whole_rows(heads, rows, width, dtype):
    n = heads * width
    source = (f"{HEAD}@trace(input_specs=[(({heads}, {rows}, {width}), '{dtype}'), (({n}, 96), '{dtype}')])\n"
              f"def f(x, w):\n    return np.exp(x).transpose(1, 0, 2).reshape({rows}, {n}) @ w\n")
    result = compiler.compile(source, check=True)
    (kernel,) = result["kernels"]
    assert result["status"] == "ok" and all(s["check"]["status"] != "fail" for s in kernel["stages"]), result["diagnostics"]
    inputs = compiler.random_inputs(kernel, seed=3)
    reference.assert_nisa_is_function(kernel, inputs, reference.functions(source)["f"])
    # the innermost dimension of each transfer's source is that of the tile, so that a descriptor moves a row
    for line in compiler.stage(kernel, "linalg-to-nisa")["text"].splitlines():
        if "dma_copy(" not in line:
            continue
        dst, src = re.findall(r"(?:dst|src)<([^>]*)>=.*?%\w+(?:\s*\[([^\]]*)\])?", line)[:2]
        last = f"d{len(re.findall(r'[0-9]+', src[0])) - 1}"
        assert not src[1] or last in src[1].rsplit(",", 1)[-1], line
