"""The tool that compares modules sees differences: a comparison that cannot fail proves nothing."""
import pytest

from support import values

ADD = """
func.func @f(%a: tensor<3x5xf32>, %b: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %e = tensor.empty() : tensor<3x5xf32>
  %r = linalg.add ins(%a, %b : tensor<3x5xf32>, tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) -> tensor<3x5xf32>
  "nkipy.layout"(%r) {mem_space = 3 : i32, tile_size = array<i64: 3, 5>} : (tensor<3x5xf32>) -> ()
  return %r : tensor<3x5xf32>
}
"""


def test_a_module_with_annotations_runs(rng):
    a, b = values.random_inputs(ADD, rng)
    (got,) = values.run(ADD, [a, b])
    assert (got == a + b).all()


def test_the_comparison_tells_an_addition_from_a_subtraction(rng):
    inputs = values.random_inputs(ADD, rng)
    with pytest.raises(AssertionError):
        values.same(values.run(ADD.replace("linalg.add", "linalg.sub"), inputs), values.run(ADD, inputs))


def test_empty_tensors_and_allocations_start_at_zero(rng):
    text = """
    func.func @f(%a: memref<4x4xf32, 4 : i32>) -> memref<4x4xf32, 4 : i32> {
      %m = memref.alloc() {alignment = 64 : i64} : memref<4x4xf32, 2 : i32>
      linalg.matmul ins(%a, %a : memref<4x4xf32, 4 : i32>, memref<4x4xf32, 4 : i32>) outs(%m : memref<4x4xf32, 2 : i32>)
      %r = memref.alloc() : memref<4x4xf32, 4 : i32>
      memref.copy %m, %r : memref<4x4xf32, 2 : i32> to memref<4x4xf32, 4 : i32>
      memref.dealloc %m : memref<4x4xf32, 2 : i32>
      return %r : memref<4x4xf32, 4 : i32>
    }"""
    (a,) = values.random_inputs(text, rng)
    values.same(values.run(text, [a]), [a @ a])
