"""Programs with places compute, in memories that are real, what they compute in buffers of their own."""
import re

import numpy as np
import pytest

from support import compiler, values
from support.paths import EXAMPLES
from support.simulator import Fault, Simulator

SMALL = [p for p in EXAMPLES if p.stem not in ("12_decoder_layer", "08_attention")]
AT = re.compile(r"at=\[([\d, ]+)\](?: copies=\d+ stride=\d+)? : (memref<(\S+?), #nisa\.mem<(\w+)>>)")


@pytest.fixture(scope="module")
def simulator():
    with Simulator() as s:
        yield s


@pytest.mark.parametrize("target", ("trn1", "trn2", "trn3"))
@pytest.mark.parametrize("path", SMALL, ids=lambda p: p.stem)
def test_places_change_no_bit_of_the_outputs(path, target, simulator):
    for kernel in compiler.compile(path.read_text(), "--target", target)["kernels"]:
        inputs = compiler.random_inputs(kernel)
        plain, placed = (simulator.run(compiler.stage(kernel, s)["text"], inputs) for s in ("linalg-to-nisa", "allocate-memory"))
        for want, got in zip(plain, placed, strict=True):
            assert want.tobytes() == got.tobytes()


def places(text):
    """[(match, space)] of the allocations on chip."""
    return [(m, m[4]) for m in AT.finditer(text) if m[4] in ("sbuf", "psum")]


def alive_together(text):
    """Two allocations in SBUF, of which the first is not released when the second is made."""
    allocations = [m for m, space in places(text) if space == "sbuf"]
    for first, second in zip(allocations, allocations[1:]):
        name = re.search(r"(%\w+) = [^\n]*$", text[: first.start()])[1]
        if text.find(f"nisa.release {name} ", 0, second.start()) < 0:
            return first, second
    raise AssertionError(text)


@pytest.mark.parametrize("path", SMALL[:3], ids=lambda p: p.stem)
def test_an_allocation_at_the_place_of_one_that_is_alive_is_refused(path, simulator):
    (kernel,) = compiler.compile(path.read_text())["kernels"]
    text = compiler.stage(kernel, "allocate-memory")["text"]
    inputs = compiler.random_inputs(kernel)
    first, second = alive_together(text)
    moved = text[: second.start(1)] + first[1] + text[second.end(1):]
    with pytest.raises(Fault, match="shares memory with an allocation that is alive"):
        simulator.run(moved, inputs)


LOOP = """// nisa text 1
module attributes {nisa.target = #nisa.target<trn2>} {
  func.func @k(%a: memref<128x64xf32, #nisa.mem<shared_hbm>>) -> memref<128x64xf32, #nisa.mem<shared_hbm>> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %r = nisa.alloc : memref<128x64xf32, #nisa.mem<shared_hbm>>
    scf.for %i = %c0 to %c4 step %c1 {
      %s = nisa.alloc : memref<128x16xf32, #nisa.mem<sbuf>>
      nisa.dma_copy(dst<128| 16>=memref<128x16xf32, #nisa.mem<sbuf>> %s[d0, d1], src<128| 16>=memref<128x64xf32, #nisa.mem<shared_hbm>> %a[d0, %i*16 + d1]) engine=dma
      nisa.tensor_tensor_arith(dst<128| 16>=memref<128x16xf32, #nisa.mem<sbuf>> %s[d0, d1], lhs<128| 16>=memref<128x16xf32, #nisa.mem<sbuf>> %s[d0, d1], rhs<128| 16>=memref<128x16xf32, #nisa.mem<sbuf>> %s[d0, d1], op=add) engine=vector
      nisa.dma_copy(dst<128| 16>=memref<128x64xf32, #nisa.mem<shared_hbm>> %r[d0, %i*16 + d1], src<128| 16>=memref<128x16xf32, #nisa.mem<sbuf>> %s[d0, d1]) engine=dma
      nisa.release %s : memref<128x16xf32, #nisa.mem<sbuf>>
    }
    return %r : memref<128x64xf32, #nisa.mem<shared_hbm>>
  }
}
"""


def test_text_that_is_written_by_hand_gets_places_and_runs(simulator, rng):
    placed = values.opt(LOOP, "allocate-memory", "nisa-verify", "print-nisa")
    assert "at=[0, 0] copies=4 stride=64" in placed
    x = rng.uniform(-1, 1, (128, 64)).astype(np.float32)
    (got,) = simulator.run(placed, [x])
    np.testing.assert_array_equal(got, 2 * x)
