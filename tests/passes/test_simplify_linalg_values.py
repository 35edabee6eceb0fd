"""Transposes of any dimensions, in HBM and in SBUF: the same values in pieces that a DMA can move."""
import re

import numpy as np
import pytest

from support import values


def transpose(dims, permutation, space):
    out = [dims[p] for p in permutation]
    x, y = ("x".join(map(str, d)) + "xf32" for d in (dims, out))
    text = f"""
    func.func @f(%a: memref<{x}, 4 : i32>) -> memref<{y}, 4 : i32> {{
      %r = memref.alloc() : memref<{y}, 4 : i32>
      %x = memref.alloc() : memref<{x}, {space} : i32>
      %y = memref.alloc() : memref<{y}, {space} : i32>
      memref.copy %a, %x : memref<{x}, 4 : i32> to memref<{x}, {space} : i32>
      linalg.transpose ins(%x : memref<{x}, {space} : i32>) outs(%y : memref<{y}, {space} : i32>) permutation = {permutation}
      memref.copy %y, %r : memref<{y}, {space} : i32> to memref<{y}, 4 : i32>
      return %r : memref<{y}, 4 : i32>
    }}"""
    return text


def check_pieces(text):
    """What is left transposes two dimensions of at most 128, into SBUF."""
    for line in text.splitlines():
        if "linalg.transpose" not in line:
            continue
        assert "permutation = [1, 0]" in line, line
        shapes = re.findall(r"memref<([\dx]+)xf32[^>]*(?:<[^>]*>[^>]*)?, (\d) : i32>", line)
        assert len(shapes) == 2 and shapes[1][1] == "3", line
        assert all(int(d) <= 128 for dims, _ in shapes for d in dims.split("x")), line


@pytest.mark.parametrize("k", range(10))
def test_random_transposes_in_hbm_keep_their_values(rng, k):
    rank = int(rng.integers(2, 6))
    dims = [int(rng.choice([1, 2, 3, 5, 17, 33, 130])) for _ in range(rank)]
    while np.prod(dims) > 400000:
        dims[int(np.argmax(dims))] = 7
    after = values.check(transpose(dims, [int(p) for p in rng.permutation(rank)], 1), "simplify-linalg", rng)
    check_pieces(after)


@pytest.mark.parametrize("dims, permutation", [((128, 8, 33), [0, 2, 1]), ((64, 5, 3, 7), [0, 3, 1, 2]),
                                               ((100, 6, 100), [2, 1, 0])])
def test_transposes_in_sbuf_keep_their_values(rng, dims, permutation):
    check_pieces(values.check(transpose(dims, permutation, 3), "simplify-linalg", rng))
