"""Sequences of instructions that are not evident: evaluated as printed, they give NumPy's numbers."""
import itertools

import numpy as np
import pytest

from support import values
from support.oracles import nisa_eval

SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-38, -3e38, 1.5707964, -1.5707963, 2.5], np.float32)


def run(text, *inputs):
    """The module's results on NISA; it has to pass the hardware's rules, too."""
    printed = values.opt(text, "linalg-to-nisa=target=trn2", "nisa-verify", "print-nisa")
    return nisa_eval.run(printed, [np.array(a) for a in inputs])


def elementwise(body, n_inputs, shape, kind="f32", out="f32"):
    """A kernel that brings its arguments to SBUF, applies the body to %x0, %x1, … and stores the result %r."""
    dims = "x".join(map(str, shape)) + "x"
    arguments = ", ".join(f"%a{k}: memref<{dims}{kind}, 4 : i32>" for k in range(n_inputs))
    loads = "".join(f"%s{k} = memref.alloc() : memref<{dims}{kind}, 3 : i32>\n"
                    f"memref.copy %a{k}, %s{k} : memref<{dims}{kind}, 4 : i32> to memref<{dims}{kind}, 3 : i32>\n"
                    for k in range(n_inputs))
    inputs = ", ".join(f"%s{k}" for k in range(n_inputs))
    types = ", ".join(f"memref<{dims}{kind}, 3 : i32>" for _ in range(n_inputs))
    maps = ", ".join(["affine_map<(i, j) -> (i, j)>"] * (n_inputs + 1))
    blocks = ", ".join(f"%x{k}: {kind}" for k in range(n_inputs))
    frees = "".join(f"memref.dealloc %s{k} : memref<{dims}{kind}, 3 : i32>\n" for k in range(n_inputs))
    return f"""
    func.func @f({arguments}) -> memref<{dims}{out}, 4 : i32> {{
      %o = memref.alloc() : memref<{dims}{out}, 4 : i32>
      %d = memref.alloc() : memref<{dims}{out}, 3 : i32>
      {loads}
      linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}} ins({inputs} : {types}) outs(%d : memref<{dims}{out}, 3 : i32>) {{
      ^bb0({blocks}, %z: {out}):
        {body}
        linalg.yield %r : {out}
      }}
      memref.copy %d, %o : memref<{dims}{out}, 3 : i32> to memref<{dims}{out}, 4 : i32>
      memref.dealloc %d : memref<{dims}{out}, 3 : i32>
      {frees}
      return %o : memref<{dims}{out}, 4 : i32>
    }}"""


def same_float(got, want, rtol=1e-6):
    """Close, and the same NaNs and signs, of zeros too."""
    np.testing.assert_allclose(got, want, rtol, 1e-30)
    known = ~np.isnan(want)
    assert np.array_equal(np.signbit(got[known]), np.signbit(want[known]))


def test_arctan2_knows_quadrants_infinities_and_signed_zeros():
    y, x = (np.array(v, np.float32).reshape(12, 12) for v in zip(*itertools.product(SPECIAL, SPECIAL)))
    (got,) = run(elementwise("%r = math.atan2 %x0, %x1 : f32", 2, (12, 12)), y, x)
    same_float(got, np.arctan2(y, x))


@pytest.mark.parametrize("c", [1.0, 0.25, -2.0])
def test_arctan2_with_a_constant_is_exact(c):
    y = SPECIAL.reshape(4, 3)
    (got,) = run(elementwise(f"%c = arith.constant {c} : f32\n%r = math.atan2 %x0, %c : f32", 1, (4, 3)), y)
    same_float(got, np.arctan2(y, np.float32(c)))


def test_arctan_of_special_values_is_exact():
    (got,) = run(elementwise("%r = math.atan %x0 : f32", 1, (4, 3)), SPECIAL.reshape(4, 3))
    same_float(got, np.arctan(SPECIAL.reshape(4, 3)))


def test_cosine_keeps_its_digits_near_its_zeros():
    x = np.float32([[0, -0.0, 0.5, np.pi / 2], [-np.pi / 2, 1.5707, -1.5709, 3.0]])
    (got,) = run(elementwise("%r = math.cos %x0 : f32", 1, (2, 4)), x)
    np.testing.assert_allclose(got, np.cos(x.astype(np.float64)), 2e-6, 0)


def over_partitions(op, kind, shape):
    """A reduction of [P, F] over P, everything on the chip; the result has one partition."""
    p, f = shape
    start = {"arith.mulf": "1.0", "arith.muli": "1", "arith.minsi": "100", "arith.andi": "-1", "arith.maxui": "0"}[op]
    return f"""
    func.func @f(%a: memref<{p}x{f}x{kind}, 4 : i32>) -> memref<1x{f}x{kind}, 4 : i32> {{
      %o = memref.alloc() : memref<1x{f}x{kind}, 4 : i32>
      %c = arith.constant {start} : {kind}
      %s = memref.alloc() : memref<{p}x{f}x{kind}, 3 : i32>
      memref.copy %a, %s : memref<{p}x{f}x{kind}, 4 : i32> to memref<{p}x{f}x{kind}, 3 : i32>
      %d = memref.alloc() : memref<1x{f}x{kind}, 3 : i32>
      linalg.fill ins(%c : {kind}) outs(%d : memref<1x{f}x{kind}, 3 : i32>)
      linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (0, j)>], iterator_types = ["reduction", "parallel"]}}
          ins(%s : memref<{p}x{f}x{kind}, 3 : i32>) outs(%d : memref<1x{f}x{kind}, 3 : i32>) {{
      ^bb0(%x: {kind}, %z: {kind}):
        %r = {op} %x, %z : {kind}
        linalg.yield %r : {kind}
      }}
      memref.copy %d, %o : memref<1x{f}x{kind}, 3 : i32> to memref<1x{f}x{kind}, 4 : i32>
      memref.dealloc %d : memref<1x{f}x{kind}, 3 : i32>
      memref.dealloc %s : memref<{p}x{f}x{kind}, 3 : i32>
      return %o : memref<1x{f}x{kind}, 4 : i32>
    }}"""


@pytest.mark.parametrize("partitions", [1, 7, 128])
def test_products_over_partitions_are_exact(partitions, rng):
    x = rng.uniform(0.9, 1.1, (partitions, 5)).astype(np.float32)
    (got,) = run(over_partitions("arith.mulf", "f32", x.shape), x)
    np.testing.assert_allclose(got, x.prod(axis=0, keepdims=True), 1e-5)


@pytest.mark.parametrize("op, kind, numpy", [("arith.muli", "i32", np.multiply), ("arith.minsi", "i8", np.minimum),
                                             ("arith.andi", "i32", np.bitwise_and), ("arith.maxui", "i8", np.maximum)])
def test_reductions_of_integers_over_partitions_are_exact(op, kind, numpy, rng):
    x = rng.integers(-90, 100, (37, 6)).astype(kind.replace("i", "int"))
    (got,) = run(over_partitions(op, kind, x.shape), x)
    want = numpy.reduce(x.view(np.uint8) if op.endswith("ui") else x, axis=0, keepdims=True, dtype=None if kind == "i8" else np.int32)
    assert np.array_equal(got, want.view(x.dtype))
