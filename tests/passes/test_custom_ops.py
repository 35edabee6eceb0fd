"""Custom ops down to NISA: the code of each in the place of its calls, computing what its reference function does."""

import numpy as np
import pytest

from nkigen import CustomOp, trace
from nkigen.transforms.nkipy_opt import apply_complete_knob_pipeline
from support.oracles import nisa_eval

SHAPE = (128, 64)
MEMREF = "memref<128x64xf32, strided<[64, 1]>, #nisa.mem<shared_hbm>>"
SBUF = "memref<128x64xf32, #nisa.mem<sbuf>>"

COPY = f"""// nisa text 1
module {{
  func.func @copy(%in: {MEMREF}, %out: {MEMREF}) {{
    %t = nisa.alloc alignment=64 : {SBUF}
    nisa.dma_copy(dst<128| 64>={SBUF} %t[d0, d1], src<128| 64>={MEMREF} %in[d0, d1]) engine=dma
    nisa.dma_copy(dst<128| 64>={MEMREF} %out[d0, d1], src<128| 64>={SBUF} %t[d0, d1]) engine=dma
    nisa.release %t : {SBUF}
    return
  }}
}}
"""


def silu(x):
    return x / (1 + np.exp(-x))


def kernel(fn):
    return trace(fn, input_specs=[(SHAPE, "f32")], name="kernel")


def op(code, reference_fn, name="op"):
    return CustomOp(code, name, ["x"], ["y"], [SHAPE], [SHAPE], ["f32"], ["f32"], reference_fn)


@pytest.fixture(scope="module")
def silu_op():
    """Its code is what our own pipeline makes of it: a function that returns its result."""
    return op(apply_complete_knob_pipeline(kernel(silu).to_mlir()), silu, "silu")


@pytest.fixture(scope="module")
def copy_op():
    """A function that writes its last argument."""
    return op(COPY, lambda x: x.copy(), "copy")


@pytest.mark.parametrize("fn", [
    lambda f, g: lambda x: f(x),
    lambda f, g: lambda x: f(f(x @ x.T @ x * 0.01)) + 1,
    lambda f, g: lambda x: (f(x), g(x * 2)),
    lambda f, g: lambda x: g(f(g(x))).sum(axis=1),
], ids=["alone", "twice", "two", "chain"])
def test_the_code_of_an_op_replaces_its_call(fn, silu_op, copy_op):
    fn = fn(silu_op, copy_op)
    text = apply_complete_knob_pipeline(kernel(fn).to_mlir())
    assert "call" not in text and "custom_op" not in text and text.count("func.func") == 1
    x = np.random.default_rng(3).uniform(-2, 2, SHAPE).astype(np.float32)
    want = fn(x)
    for got, w in zip(nisa_eval.run(text, [x.copy()]), want if isinstance(want, tuple) else (want,), strict=True):
        np.testing.assert_allclose(np.asarray(got), w, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("code, message", [
    ("module {}", "is not a function of one block"),
    (COPY.replace("128x64", "64x64").replace("<128| 64>", "<64| 64>"), "another shape or type for its array 0"),
    (COPY.replace(f", %out: {MEMREF}", "").replace("%out", "%in"), "takes or gives another number of arrays"),
    (COPY.replace("engine=dma", "engine=none_such"), "the code of __custom_op__op, line 5: "),
])
def test_code_that_does_not_fit_is_refused_at_the_call(code, message):
    broken = op(code, silu)
    with pytest.raises(RuntimeError, match=message) as e:
        list(kernel(lambda x: broken(x)).specialize(np.ones(SHAPE, np.float32)).stages())
    assert "test_custom_ops.py:" in str(e.value)
