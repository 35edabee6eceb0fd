"""The import paths that kernels use, the stand-ins beside them, and operations outside of a trace."""
import numpy as np
import pytest

from support.oracles import xla

IMPORTS = """
from nkipy import knob
from nkipy.core.knob import knob
from nkipy.core.compile import trace
from nkipy.core.trace import NKIPyKernel
from nkipy.core import ops, tensor_apis
from nkipy.core.tensor_apis import constant, topk, rms_norm, softmax, conv2d, conv3d, zeros, full
from nkipy.core.ops.creation import constant, zeros, full, ones_like
from nkipy.core.ops.transform import concatenate, astype
from nkipy.core.ops.conv import conv2d
from nkipy.core.ops.reduce import sum
from nkipy.core.ops.unary import exp
from nkipy.core.ops.binary import add
from nkipy.core.ops.indexing import where
from nkipy.core.ops.linalg import matmul
from nkipy.core.ops.nn import softmax
from nkipy.core.ops.collectives import all_reduce
from nkipy.core.tensor import NKIPyTensorRef
from nkipy.core.specs import ShapeSpec, TypeSpec, TensorInputSpec, ScalarInputSpec, KernelSpec, CommonTypes
from nkipy.core.language import bfloat16, float8_e5m2, float8_e4m3
import nkipy.core.typing as nt
import nkipy.distributed.collectives as cc
import torch.distributed as dist
import neuronxcc.nki.language as nl
import nki.language
from nkigen import trace, knob
from nkigen.apis import knob, fori_loop
from nkipy_kernelgen.apis import fori_loop
""".strip().splitlines()


@pytest.mark.parametrize("line", IMPORTS)
def test_a_kernel_may_import(line):
    xla.trace(f"{line}\ndef kernel(x):\n    return x + 1\n", inputs=[("x", (3,), "f32")])


def test_annotations_and_stand_ins():
    xla.check("""
import numpy as np, torch.distributed as dist, neuronxcc.nki.language as nl, nkipy.core.typing as nt
from nkipy.core import ops
from nkipy.core.compile import trace
def kernel(x: nt.tensor[nt.mutable, "float32", (4, 6)], c: nt.mutable_tensor):
    g = [list(range(dist.get_world_size()))]
    return ops.all_reduce(x.astype(nl.bfloat16), g), ops.softmax(x) * c, ops.exp(x) + dist.get_rank()
trace(kernel).specialize(np.ones((4, 6), np.float32), np.ones(6, np.float32))
""")


def test_specs_check_shapes():
    xla._nkx  # the path
    from nkipy.core.specs import ShapeSpec

    s = ShapeSpec((4, None, (2, None)), (4, 1, 2))
    assert s.is_valid((4, 9, 2)) and not s.is_valid((4, 9, 1)) and not s.is_valid((4, 9))


def test_operations_outside_of_a_trace_compute_on_arrays():
    from nkipy.core import ops

    x = np.random.default_rng(0).uniform(-1, 1, (3, 5)).astype(np.float32)
    np.testing.assert_allclose(ops.softmax(x).sum(-1), np.ones(3), rtol=1e-6)
    values, places = ops.topk(x, 2)
    np.testing.assert_array_equal(values, np.sort(x)[:, :-3:-1])
    assert places.dtype == np.uint32
    np.testing.assert_array_equal(ops.all_gather(x, 0, [[0, 1]]), np.concatenate([x, x]))
    np.testing.assert_array_equal(ops.sum(x, axis=0), x.sum(0))
    with pytest.raises(NotImplementedError):
        ops.nothing_like_this
