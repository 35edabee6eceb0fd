"""canonicalize-loop-step runs the same iterations: any range, empty ones, tails, negative bounds, computed bounds."""
import re

import numpy as np
import pytest

from support import values

PASS = "canonicalize-loop-step"


def loop(bounds, args=""):
    """Records the loop variable of every turn, in order."""
    return f"""func.func @f(%s: tensor<64xi32>{args}) -> tensor<64xi32> {{
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : index
{bounds}
  %r:2 = scf.for %i = %lb to %ub step %st iter_args(%t = %s, %at = %zero) -> (tensor<64xi32>, index) {{
    %v = arith.index_cast %i : index to i32
    %u = tensor.insert %v into %t[%at] : tensor<64xi32>
    %next = arith.addi %at, %one : index
    scf.yield %u, %next : tensor<64xi32>, index
  }}
  return %r#0 : tensor<64xi32>
}}"""


@pytest.mark.parametrize("lb,ub,step", [(0, 512, 128), (0, 517, 128), (3, 40, 7), (-9, 9, 4), (5, 5, 2), (9, 3, 2), (0, 8, 8),
                                        (0, 7, 8), (0, 10, 1), (2, 10, 1)])
@pytest.mark.parametrize("known", [True, False])
def test_a_loop_with_another_step_has_the_same_iterations(lb, ub, step, known):
    constants = "\n".join(f"  %{n} = arith.constant {v} : index" for n, v in (("lb", lb), ("ub", ub), ("st", step)))
    if known:
        text, inputs = loop(constants), []
    else:
        text = loop("\n".join(f"  %{n}1 = tensor.extract %b[%{'zero' if n == 'lb' else 'one'}] : tensor<2xi32>\n"
                              f"  %{n} = arith.index_cast %{n}1 : i32 to index" for n in ("lb", "ub"))
                    + f"\n  %st = arith.constant {step} : index", ", %b: tensor<2xi32>")
        inputs = [np.array([lb, ub], np.int32)]
    inputs = [np.full(64, -77, np.int32)] + inputs
    after = values.opt(text, PASS)
    (got,) = values.run(after, inputs)
    turns = list(range(lb, ub, step))
    assert list(got) == turns + [-77] * (64 - len(turns))
    for name in re.findall(r" step (%\S+) iter_args", after):
        assert re.search(rf"{name} = arith.constant 1 : index", after)


def test_nested_loops_whose_bounds_depend_on_each_other(rng):
    text = """func.func @f(%a: tensor<40xf32>) -> tensor<40xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c40 = arith.constant 40 : index
  %two = arith.constant 2.0 : f32
  %r = scf.for %i = %c0 to %c40 step %c8 iter_args(%t = %a) -> (tensor<40xf32>) {
    %end = arith.addi %i, %c8 : index
    %q = scf.for %j = %i to %end step %c4 iter_args(%u = %t) -> (tensor<40xf32>) {
      %x = tensor.extract %u[%j] : tensor<40xf32>
      %y = arith.mulf %x, %two : f32
      %v = tensor.insert %y into %u[%j] : tensor<40xf32>
      scf.yield %v : tensor<40xf32>
    }
    scf.yield %q : tensor<40xf32>
  }
  return %r : tensor<40xf32>
}"""
    values.check(text, PASS, rng)


def test_a_loop_over_i32_keeps_its_values(rng):
    text = """func.func @f(%a: tensor<1xi32>) -> tensor<1xi32> {
  %c0 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c20 = arith.constant 20 : i32
  %z = arith.constant 0 : index
  %r = scf.for %i = %c0 to %c20 step %c3 iter_args(%t = %a) -> (tensor<1xi32>) : i32 {
    %x = tensor.extract %t[%z] : tensor<1xi32>
    %y = arith.addi %x, %i : i32
    %v = tensor.insert %y into %t[%z] : tensor<1xi32>
    scf.yield %v : tensor<1xi32>
  }
  return %r : tensor<1xi32>
}"""
    values.check(text, PASS, rng)
