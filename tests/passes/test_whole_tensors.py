"""MLIR text with arith and math on whole tensors: the instructions compute what NumPy does, and each has its own place."""
import json

import ml_dtypes
import numpy as np

from nkigen.transforms.nkipy_opt import apply_complete_knob_pipeline
from support import source_map, warm
from support.oracles import nisa_eval

TEXT = """func.func @f(%a: tensor<130x17xf32>, %b: tensor<130x17xbf16>, %n: tensor<130x17xi32>)
    -> (tensor<130x17xf32>, tensor<130x17xi32>, tensor<f32>) {
  %two = arith.constant dense<2.0> : tensor<130x17xf32>
  %w = arith.extf %b : tensor<130x17xbf16> to tensor<130x17xf32>
  %0 = arith.mulf %a, %two : tensor<130x17xf32>
  %c = arith.cmpf olt, %0, %w : tensor<130x17xf32>
  %s = arith.select %c, %0, %w : tensor<130x17xi1>, tensor<130x17xf32>
  %t = math.tanh %s : tensor<130x17xf32>
  %m = arith.addi %n, %n : tensor<130x17xi32>
  %k = arith.constant dense<2.25> : tensor<f32>
  %q = math.sqrt %k : tensor<f32>
  return %t, %m, %q : tensor<130x17xf32>, tensor<130x17xi32>, tensor<f32>
}
"""


def test_the_instructions_compute_what_numpy_does():
    rng = np.random.default_rng(7)
    a = rng.uniform(-1, 1, (130, 17)).astype(np.float32)
    b = rng.uniform(-1, 1, (130, 17)).astype(ml_dtypes.bfloat16)
    n = rng.integers(-9, 9, (130, 17)).astype(np.int32)
    before = a.copy(), b.copy(), n.copy()
    t, m, q = nisa_eval.run(apply_complete_knob_pipeline(TEXT), [a, b, n])
    np.testing.assert_allclose(t, np.tanh(np.minimum(2 * a, b.astype(np.float32))), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(m, 2 * n)
    np.testing.assert_allclose(q, 1.5, rtol=1e-5)
    for x, y in zip((a, b, n), before):
        np.testing.assert_array_equal(x, y)  # no input is written


def test_every_stage_is_checked_and_each_operation_has_its_line():
    done = warm.run("compile", "-", "--language", "mlir", "--check", "--quiet", "--json", "-", input=TEXT.encode())
    stages = source_map.expanded(json.loads(done.stdout))["kernels"][0]["stages"]
    assert done.returncode == 0 and all(s["check"]["status"] == "pass" for s in stages[:-1])
    first, lines = stages[0]["lines"], stages[0]["text"].split("\n")
    for name, line in (("arith.extf", 4), ("math.tanh", 8), ("math.sqrt", 11)):
        k = next(k for k, x in enumerate(lines) if name in x)
        assert first[k]["src"][0]["line"] == line, name
