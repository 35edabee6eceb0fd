"""The package in an ordinary Python: NKIPy's runtime and nkigen's drivers, on kernels that are traced in place."""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import threading
import warnings

import ml_dtypes
import numpy as np
import pytest

from nkigen import CustomOp, apply_passes, knob, trace, verify_against_numpy
from nkigen.llvm import LLVMModule
from nkigen.transforms.nkipy_opt import apply_complete_knob_pipeline, run_nkipy_opt_passes
from nkipy.core import compile as nkipy_compile
from nkipy.core import nki_op
from nkipy.core import typing as nt
from nkipy.core.trace import NKIPyKernel
from nkipy.runtime import (BaremetalExecutor, DeviceKernel, DeviceTensor, baremetal_jit, baremetal_run_traced_kernel,
                           is_neuron_compatible)
from support.oracles import xla
from support.paths import BUILD, EXAMPLES

pytestmark = pytest.mark.filterwarnings("ignore:there is no Neuron device")
RNG = np.random.default_rng(5)


def draw(*shape, dtype=np.float32):
    return RNG.uniform(-2, 2, shape).astype(dtype)


def python(program, *arguments, **variables):
    env = {**os.environ, "PYTHONPATH": str(BUILD / "python"), **variables}
    return subprocess.run([sys.executable, *arguments, "-c", program], capture_output=True, text=True, timeout=60, env=env)


def close(got, want, dtype=np.float32):
    eps = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(want, np.float64), rtol=32 * eps, atol=32 * eps)


# ---- the runtime ---------------------------------------------------------------------------------------------------


def test_importing_the_runtime_does_not_load_mlir():
    done = python("import nkipy.runtime, nkigen, nkipy_kernelgen, sys\n"
                  "print('_nkxc' in sys.modules, 'MLIR' in open('/proc/self/maps').read())")
    assert done.stdout.split() == ["False", "False"], done.stderr


def test_compiled_code_is_written_to_no_file(tmp_path):
    done = python("import numpy as np\nfrom nkipy.runtime import baremetal_jit\n"
                  "assert baremetal_jit(lambda x: x * 2)(np.ones(3, np.float32)).sum() == 6", JITDUMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir()), "MLIR's engine keeps files for perf"


def test_what_stands_in_for_the_device_is_said_once_at_the_line_of_the_call():
    done = python("import numpy as np\nfrom nkipy.runtime import baremetal_jit\nx = np.ones(3, np.float32)\n"
                  "@baremetal_jit\ndef f(x): return x + 1\n"
                  "f(x)\nassert f(x).sum() == 6\nbaremetal_jit(lambda x: x * 2)(x)\n")
    assert done.returncode == 0 and done.stderr.count("no Neuron device") == 1
    assert "<string>:6: DeviceWarning" in done.stderr


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32, np.int8, np.uint8, np.bool_])
def test_a_function_runs_as_with_numpy(dtype):
    def f(a, b, *, twice=True):
        c = np.where(a > b, a, b)
        return c, a == b, np.concatenate([c, a], axis=0)[::2] if twice else None

    a, b = draw(5, 7).astype(dtype), draw(7).astype(dtype)
    got = baremetal_jit(f)(a, b)
    assert isinstance(got, tuple)
    for g, w in zip(got, f(a, b), strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_array_equal(g, w)


def test_products_sums_and_functions_equal_numpy():
    @baremetal_jit(backend="nkigen", target=nkipy_compile.CompilationTarget.TRN2)
    def mlp(x, w, b):
        h = np.maximum(x @ w + b, 0)
        return (h / (1 + np.exp(-h))).sum(axis=-1, keepdims=True)

    x, w, b = draw(64, 96), draw(96, 32), draw(32)
    close(mlp(x, w, b), mlp.__wrapped__(x, w, b))
    empty = baremetal_jit(lambda x: x * 2)(np.zeros((0, 3), np.float32))
    assert empty.shape == (0, 3)


def test_what_a_kernel_writes_is_written_into_the_callers_arrays():
    def update(cache, row, at):
        cache[at : at + 1] = row
        return cache.sum()

    def both(x, y):
        x[0] = 7
        y[1:] = x[:-1]
        return y, x * 2

    cache, row = np.zeros((4, 3), np.float32), draw(1, 3)
    total = baremetal_run_traced_kernel(NKIPyKernel.trace(update), cache, row, 2)
    np.testing.assert_array_equal(cache[2], row[0])
    close(total, row.sum())
    x, y = draw(5), draw(5)
    wx, wy = x.copy(), y.copy()
    want = both(wx, wy)
    got = baremetal_run_traced_kernel(nkipy_compile.trace(both), x, y)
    assert got[0] is y
    for g, w in zip((x, y, *got), (wx, wy, *want)):
        np.testing.assert_array_equal(g, w)
    z = draw(3)
    assert baremetal_jit(lambda z: z.__setitem__(0, 1.0))(z) is None and z[0] == 1


def test_64_bit_arrays_are_narrowed_with_a_warning_that_names_them():
    with pytest.warns(UserWarning, match='"wide" is narrowed from float64 to float32') as said:
        r = baremetal_jit(lambda wide: wide + 1)(np.ones(3))
    assert r.dtype == np.float32 and said[0].filename == __file__


def test_device_kernels_take_tensors_by_name():
    def step(x, cache, scale):
        cache[0] = x
        return x * scale

    x, cache = draw(4), np.zeros((2, 4), np.float32)
    k = DeviceKernel.compile_and_load(nkipy_compile.trace(step), DeviceTensor.from_numpy(x), cache, scale=3.0, name="step")
    assert list(k.input_tensors_info) == ["x", "cache.must_alias_input"] and list(k.output_tensors_info) == ["output0", "cache"]
    dx, dc = DeviceTensor.from_numpy(x, name="x"), DeviceTensor.from_numpy(cache, name="c")
    out = DeviceTensor.allocate_uninitialized((4,), np.float32)
    assert k(inputs={"x": dx, "cache.must_alias_input": dc}, outputs={"output0": out, "cache": dc}) is None
    close(out.numpy(), x * 3)
    np.testing.assert_array_equal(dc.numpy()[0], x)
    assert not cache.any()
    first, second = k(inputs={"x": dx, "cache": dc})
    assert (first.name, second.name) == ("output0", "cache")
    with pytest.raises(ValueError, match="missing: cache; not known: y"):
        k(inputs={"x": dx, "y": dx})
    with pytest.raises(ValueError, match=r"x has shape \(3,\)"):
        k(inputs={"x": np.ones(3, np.float32), "cache": dc})
    assert DeviceKernel.compile_and_load(step, x, cache, scale=3.0).code is k.code  # compiled once
    assert k.benchmark({"x": dx, "cache": dc}, warmup_iter=1, benchmark_iter=3).iterations == 3
    with BaremetalExecutor() as device:
        close(device.run(step, x, cache, 2.0), x * 2)


def test_threads_run_one_kernel_at_the_same_time():
    k = DeviceKernel.compile_and_load(lambda a, b: np.exp(a @ b), draw(64, 64), draw(64, 64))
    pairs = [(draw(64, 64), draw(64, 64)) for _ in range(4)]
    got = [None] * 4

    def work(i):
        got[i] = [k.code.run(pairs[i])[0] for _ in range(20)]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    for (a, b), results in zip(pairs, got):
        for r in results:
            np.testing.assert_allclose(r, np.exp(a @ b), rtol=1e-3)


def test_specialize_gives_the_code_that_xla_accepts():
    @NKIPyKernel.trace
    def f(x, *more, start=1):
        x[start] = more[0]
        return x @ more[1]

    x, row, m = draw(3, 4), draw(4), draw(4, 2)
    code = f.specialize(x, row, m)
    assert f._code is code and [i.name for i in code.inputs] == ["x.must_alias_input", "more_0", "more_1"]
    assert [(a.output_index, a.param_name, a.is_user_returned) for a in code.aliases] == [(1, "x", False)]
    assert [op.op_name for op in code.operations].count("dot") == 1
    want = x.copy()
    want[1] = row
    out = xla.run(code.to_proto().SerializeToString(), [x, row, m])
    close(out[0], want @ m)
    np.testing.assert_array_equal(out[1], want)
    assert len(code.content_hash()) == 12 and code.content_hash() != code.content_hash("--lnc 2")


# ---- refusals ------------------------------------------------------------------------------------------------------


def test_a_refusal_is_an_exception_of_the_users_line_with_its_hint():
    def f(x):
        return np.linalg.svd(x)

    with pytest.raises(NotImplementedError, match="np.linalg.svd is not supported") as e:
        baremetal_jit(f)(draw(3, 3))
    assert e.traceback[-1].path == pathlib.Path(__file__) and e.traceback[-1].name == "f"
    assert any("hint: decompositions" in note for note in e.value.__notes__)
    with pytest.raises(ZeroDivisionError):
        baremetal_jit(lambda x: x + 1 // 0)(draw(3))
    with pytest.raises(TypeError, match="not a traced tensor"):
        baremetal_jit(lambda x: 3)(draw(3))


def test_a_kernel_inside_of_another_is_a_part_of_it_and_cannot_be_compiled_there():
    inner = baremetal_jit(lambda x: x * 2)
    close(baremetal_jit(lambda x: inner(x) + 1)(np.ones(3, np.float32)), [3, 3, 3])
    with pytest.raises(ValueError, match="while another one is traced"):
        baremetal_jit(lambda x: nkipy_compile.trace(inner.__wrapped__).specialize(np.ones(3)))(draw(3))
    with pytest.raises(ValueError, match="unknown backend"):
        baremetal_jit(backend="gpu")


def test_the_vendors_compiler_is_missed_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    k = nkipy_compile.trace(lambda x: x + 1)
    k.specialize(np.ones(3, np.float32))
    with pytest.raises(RuntimeError, match="neuronx-cc"):
        nkipy_compile.compile_to_neff(k, tmp_path / "out")
    assert (tmp_path / "out/hlo_module.pb").read_bytes() == k._code.to_proto()
    tool = tmp_path / "neuronx-cc"
    tool.write_text('#!/bin/sh\necho "$@" > args\n')
    tool.chmod(0o755)
    assert nkipy_compile.compile_to_neff(k, tmp_path / "out", target=nkipy_compile.CompilationTarget.TRN1).endswith(".neff")
    assert "--target trn1 --output=kernel.neff --lnc 1" in (tmp_path / "out/args").read_text()
    tool.write_text('#!/bin/sh\necho "$@" > args\necho "def k(): pass" > nki.py\n')
    assert nkipy_compile.lower_to_nki(k, tmp_path / "out") == "def k(): pass\n"
    assert "--pipeline tensorize SaveTemps --target trn2 --tensorizer-options=--print-nki" in (tmp_path / "out/args").read_text()
    tool.write_text("#!/bin/sh\necho no >&2; exit 70\n")
    with pytest.raises(RuntimeError, match="failed:\nno"):
        nkipy_compile.lower_to_nki(k, tmp_path / "out")


# ---- nkigen --------------------------------------------------------------------------------------------------------


@trace(input_specs=[((128, 256), "f32"), ((256, 128), "f32"), ((128,), "f32")])
def affine(a, b, bias):
    c = a @ b
    knob.knob(c).tile_op(tile_size=[128, 128, 128]).layout(mem_space="Sbuf")
    return np.exp(c * 0.01 + bias), c


def test_to_mlir_has_the_knobs_and_runs():
    text = affine.to_mlir()
    assert "linalg.matmul" in text and "loop_tile_size = array<i64: 128, 128, 128>" in text and "mem_space = 3" in text
    assert "test_package.py" not in text and "test_package.py:" in affine.to_mlir(debug=True)
    x = [draw(128, 256), draw(256, 128), draw(128)]
    for g, w in zip(LLVMModule(text)(*x), affine(*x), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4)
    small = affine.__class__.trace(lambda x: x + 1).to_mlir(specs=[((3,), "bf16")])
    assert "tensor<3xbf16>" in small
    with pytest.raises(ValueError, match="shapes of the inputs"):
        trace(lambda x: x).to_mlir()


@pytest.mark.parametrize("stop_after", [None, "trace", 3, "infer-layout", "one-shot-bufferize", "canonicalize:3", 25])
def test_stages_compute_what_numpy_computes(stop_after):
    verify_against_numpy(affine, stop_after=stop_after)


def test_a_difference_from_numpy_is_found():
    @trace(input_specs=[((4,), "f32")])
    def other(x):
        return x + (1 if isinstance(x, np.ndarray) else 1.001)

    with pytest.raises(AssertionError, match="other, output0"):
        verify_against_numpy(other)
    verify_against_numpy(other, inputs=[np.ones(4)], rtol=0.01)


@pytest.mark.parametrize("path", EXAMPLES, ids=[p.stem for p in EXAMPLES])
def test_examples_run_as_a_program_imports_them(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec.loader.exec_module(module)
    kernels = [k for k in vars(module).values() if isinstance(k, NKIPyKernel)]
    for k in kernels:
        if k.input_specs:
            verify_against_numpy(k)
    assert kernels or "def " in path.read_text()


def test_the_pipeline_takes_text_to_text(tmp_path, capsys):
    text = affine.to_mlir()
    done = apply_complete_knob_pipeline(text, stop_after="infer-layout", dump_dir=tmp_path, print_ir_after_all=True)
    names = sorted(p.name for p in tmp_path.iterdir())
    n = len(names) - 1  # passes
    assert names[0] == "00_input.mlir" and names[-1] == f"{n:02}_infer-layout.mlir" and n >= 4
    assert (tmp_path / names[-1]).read_text() == done and capsys.readouterr().err.count("// -----") == n
    assert apply_complete_knob_pipeline(text, stop_after=n) == done == \
        apply_complete_knob_pipeline(text, stop_after="py:infer-layout:1")
    assert apply_complete_knob_pipeline(text, stop_after=0) == text
    group = apply_complete_knob_pipeline(text, stop_after="canonicalize-linalg-for-nisa")
    assert group == (tmp_path / f"{n - 1:02}_decompose-batch-matmul.mlir").read_text()
    assert '"linalg.' in apply_complete_knob_pipeline(text, stop_after=3, print_generic=True)
    assert "trn1" in apply_complete_knob_pipeline(text, target="trn1")
    for wrong, what in ((("nothing", ValueError), "remove-redundant-zero-fill"), ((99, ValueError), r"\d+ passes"),
                        ((1.5, TypeError), "float"), (("canonicalize:9", ValueError), "the passes are")):
        with pytest.raises(wrong[1], match=what):
            apply_complete_knob_pipeline(text, stop_after=wrong[0])
    with pytest.raises(RuntimeError, match="module.mlir:1:1"):
        apply_complete_knob_pipeline("nonsense")


def test_single_passes():
    text = affine.to_mlir()
    assert run_nkipy_opt_passes(text, ["remove-redundant-zero-fill", "canonicalize"]).count("linalg.fill") == 0
    options = 'one-shot-bufferize="bufferize-function-boundaries=1 allow-unknown-ops=1"'
    assert "memref" in apply_passes(text, ["--canonicalize", options])
    with pytest.raises(ValueError, match="there is no such pass"):
        apply_passes(text, "nothing-like-this")


# ---- custom ops ----------------------------------------------------------------------------------------------------


def silu(n=8, reference_fn=lambda x: x / (1 + np.exp(-x)), outputs=1):
    return CustomOp("module { /* NISA */ }", f"silu_{n}x{n}", ["x"], ["y", "z"][:outputs], [(n, n)], [(n, n)] * outputs,
                    ["f32"], ["f32", "bf16"][:outputs], reference_fn)


def test_a_custom_op_is_a_call_with_its_code_in_the_module():
    op, two = silu(), silu(4, outputs=2)

    @trace(input_specs=[((8, 8), "f32"), ((4, 4), "f32")])
    def k(x, y):
        a, b = two(y)
        return op(op(x @ x)), a + b.astype(np.float32)

    text = k.to_mlir()
    assert text.count("call @__custom_op__silu_8x8") == 2 and text.count("func.func private @__custom_op__silu_8x8") == 1
    assert "attributes {nkipy.custom_op}" in text and "-> (tensor<4x4xf32>, tensor<4x4xbf16>)" in text
    assert 'nkipy.custom_op_bodies = {__custom_op__silu_4x4 = "module { /* NISA */ }", __custom_op__silu_8x8 =' in text


def test_a_custom_op_runs_as_what_it_means():
    op = silu()
    x = draw(8, 8)
    close(op(x), op.reference_fn(x))
    with pytest.warns(UserWarning, match="reference_fn of a custom op runs in place of its NISA text"):
        close(baremetal_jit(lambda x: op(x) + 1)(x), op.reference_fn(x) + 1)
    verify_against_numpy(trace(lambda x: op(x) * 2, input_specs=[((8, 8), "f32")]))
    with pytest.raises(RuntimeError, match="without a reference_fn"):
        silu(reference_fn=None)(x)
    with pytest.raises(RuntimeError, match="without a reference_fn"):
        baremetal_jit(silu(reference_fn=None).__call__)(x)


TWO = CustomOp("module {}", "two", ["x", "y"], ["z"], [(8, 8), ()], [(8, 8)], ["f32", "f32"], ["f32"])


@pytest.mark.parametrize("error, call", [(ValueError, lambda op, x: op(x[:4])), (ValueError, lambda op, x: op(x, x)),
                                         (TypeError, lambda op, x: TWO(x, 1.0))])
def test_custom_ops_check_their_arguments(error, call):
    with pytest.raises(error, match="Shape mismatch|takes 1 arguments|must be a traced tensor"):
        trace(lambda x: call(silu(), x), input_specs=[((8, 8), "f32")]).to_mlir()


def test_nki_custom_ops_say_what_they_lack():
    with pytest.raises(ValueError, match="nki_kernel or kernel_builder"):
        nki_op.nki_custom_op()
    with pytest.raises(ValueError, match="input_specs"):
        nki_op.nki_custom_op(kernel_builder=silu)
    op = nki_op.nki_custom_op(kernel_builder=silu, input_specs=[((8, 8), "f32")], output_specs=[((8, 8), "f32")])
    with pytest.raises(RuntimeError, match="traced"):
        op(draw(8, 8))
    with pytest.raises(RuntimeError, match="kernel builder"):
        baremetal_jit(lambda x: op(x))(draw(8, 8))
    with pytest.raises(NotImplementedError, match="NKI compiler"):
        nki_op.wrap_nki_kernel(silu, [draw(8, 8)])


# ---- annotations ---------------------------------------------------------------------------------------------------

N = 6


def test_annotations_say_shapes_where_nothing_else_does():
    def k(x: nt.tensor[nt.mutable, np.float32, (N,)], y: nt.tensor[(N, 2), "bfloat16"], scale=2.0):
        x[0] = 1
        return x @ y * scale

    text = trace(k).to_mlir()
    assert "tensor<6xf32>" in text and "tensor<6x2xbf16>" in text
    assert "tensor<3xf32>" in trace(k).to_mlir(specs=[((3,), "f32"), ((3, 2), "f32")])


@pytest.mark.parametrize("head", ["", "from __future__ import annotations\n"])
def test_a_sources_annotations_say_shapes_and_inputs_win(head):
    source = (head + "from numpy import float32\nfrom typing import Optional\nfrom nkipy.core.typing import tensor, mutable\n"
              "N = 12\ndef k(x: tensor[mutable, float32, (N,)], y: Optional[tensor['int32', (N,)]], n=2): return x * y + n\n")
    kernel = xla.trace(source)
    assert [(i["name"], i["shape"], i["dtype"]) for i in kernel["inputs"]] == [("x", (12,), "float32"), ("y", (12,), "int32")]
    kernel = xla.trace(source, inputs=[("x", (3,), "f16"), ("y", (3,), "f16")])
    assert [i["shape"] for i in kernel["inputs"]] == [(3,), (3,)]
    result = xla._nkx.trace_source(source.replace("Optional[tensor['int32', (N,)]]", "tensor"))
    assert [d["code"] for d in result["diagnostics"]] == ["bad-inputs"]


# ---- what NKIPy's and nkigen's programs ask of the package ---------------------------------------------------------------


def test_a_neuron_device_is_there_if_it_is_or_if_the_simulated_one_is_asked_for():
    program = "from nkipy.runtime import is_neuron_compatible\nprint(is_neuron_compatible())"
    assert python(program, NKX_DEVICE="").stdout == "False\n"
    assert python(program, NKX_DEVICE="sim").stdout == "True\n"
    assert xla._nkx.trace_source(program + "\ndef k(x): return x", inputs=[(None, (2,), "f32")])["output"] == "True\n"


DOUBLE = """func.func @double(%a: memref<4x8xf32, #nisa.mem<shared_hbm>>) -> memref<4x8xf32, #nisa.mem<shared_hbm>> {
  %s = nisa.alloc : memref<4x8xf32, #nisa.mem<sbuf>>
  %r = nisa.alloc : memref<4x8xf32, #nisa.mem<shared_hbm>>
  nisa.dma_copy(dst<4| 8>=memref<4x8xf32, #nisa.mem<sbuf>> %s[d0, d1], src<4| 8>=memref<4x8xf32, #nisa.mem<shared_hbm>> %a[d0, d1]) engine=dma
  nisa.tensor_tensor_arith(dst<4| 8>=memref<4x8xf32, #nisa.mem<sbuf>> %s[d0, d1], lhs<4| 8>=memref<4x8xf32, #nisa.mem<sbuf>> %s[d0, d1], rhs<4| 8>=memref<4x8xf32, #nisa.mem<sbuf>> %s[d0, d1], op=add) engine=vector
  nisa.dma_copy(dst<4| 8>=memref<4x8xf32, #nisa.mem<shared_hbm>> %r[d0, d1], src<4| 8>=memref<4x8xf32, #nisa.mem<sbuf>> %s[d0, d1]) engine=dma
  nisa.release %s : memref<4x8xf32, #nisa.mem<sbuf>>
  return %r : memref<4x8xf32, #nisa.mem<shared_hbm>>
}
"""


def test_the_nisa_text_of_a_custom_op_runs_on_the_simulated_machine():
    op = CustomOp(DOUBLE, "double", ["a"], ["b"], [(4, 8)], [(4, 8)], ["f32"], ["f32"], reference_fn=lambda a: a * 0)
    x = draw(4, 8)
    np.testing.assert_array_equal(baremetal_jit(lambda x: op(x) + 1)(x), x * 2 + 1)


DEVICE = """
import numpy as np
from nkipy.runtime import BaremetalExecutor, DeviceKernel, baremetal_jit

def k(x, y):
    y[1] = x.sum(axis=0)
    return np.exp(x @ x.T), (x * 3).astype(np.int32), x.astype(np.float16)

x, y = np.linspace(-1, 1, 60).reshape(6, 10).astype(np.float32), np.zeros((3, 10), np.float32)
a, b, c = baremetal_jit(k)(x, y)
assert np.allclose(a, np.exp(x @ x.T), rtol=1e-5) and np.allclose(y[1], x.sum(0), atol=1e-5), a
assert (b == (x * 3).astype(np.int32)).all() and (c == x.astype(np.float16)).all()
with BaremetalExecutor() as device:
    assert np.allclose(device.run(k, x, y)[0], a)
print(DeviceKernel.compile_and_load(k, x, y).model_ref)
"""


@pytest.mark.parametrize("device, program, said", [("", "nkx.simulator", "on a simulated one"), ("sim", "nkx.simulator", "on a simulated one"),
                                                   ("linalg", "nkx.program", "machine code of this processor")])
def test_the_device_is_the_simulated_machine_unless_machine_code_is_asked_for(device, program, said):
    done = python(DEVICE, NKX_DEVICE=device)
    assert done.returncode == 0 and program in done.stdout and said in done.stderr, done.stderr


def test_another_device_is_refused():
    done = python(DEVICE, NKX_DEVICE="neuron")
    assert done.returncode and "NKX_DEVICE is 'neuron': use" in done.stderr


@pytest.mark.parametrize("target", ["trn1", nkipy_compile.CompilationTarget.TRN3, nkipy_compile.CompilationTarget.DEFAULT])
def test_a_kernel_runs_on_the_target_that_it_is_for(target):
    x = draw(8, 8)
    close(baremetal_jit(target=target)(lambda x: np.tanh(x @ x))(x), np.tanh(x @ x))
    kernel = DeviceKernel.compile_and_load(lambda x: x + 1, x, target=target)
    close(kernel({"x": x})[0].numpy(), x + 1)
    with pytest.raises(ValueError, match="target must be one of trn1, trn2, trn3"):
        baremetal_jit(target="trn9")(lambda x: x)


def test_a_fault_on_the_simulated_machine_names_its_line():
    source = DOUBLE.replace("%a[d0, d1]) engine=dma", "%a[d0, d1]) engine=dma", 1).split("\n")
    del source[3]  # the load
    op = CustomOp("\n".join(source), "double", ["a"], ["b"], [(4, 8)], [(4, 8)], ["f32"], ["f32"])
    with pytest.raises(RuntimeError, match=r"test_package.py:\d+:\d+: unwritten-read: tensor_tensor_arith: lhs"):
        baremetal_jit(lambda x: op(x) + 1)(draw(4, 8))


def test_the_device_says_where_the_simulated_time_goes(tmp_path):
    def k(x, y):
        y[0] = x[0]
        return np.exp(x) @ x.T

    x, y = draw(64, 128), np.zeros((2, 128), np.float32)
    p = baremetal_jit(k).profile(x, y)
    np.testing.assert_array_equal(y[0], x[0])
    assert p["total_us"] > 0 and {"tensor", "scalar"} <= {l["name"] for l in p["lanes"]} and p["target"] == "trn2"
    assert {l["file"] for l in p["lines"] if l.get("file")} == {__file__} and "us" in str(p)
    p.save_trace(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    kernel = DeviceKernel.compile_and_load(k, x, y)
    assert kernel.profile({"x": x, "y": y})["total_us"] == p["total_us"]
    with BaremetalExecutor() as device:
        assert device.profile(k, x, y)["total_us"] == p["total_us"]
    other = baremetal_jit(target="trn1")(k).profile(x, y)
    assert other["target"] == "trn1" and other["total_us"] != p["total_us"]


def test_machine_code_has_no_simulated_time(monkeypatch):
    monkeypatch.setenv("NKX_DEVICE", "linalg")
    with pytest.raises(RuntimeError, match="says nothing about the time of a device"):
        baremetal_jit(lambda x: x + 1).profile(draw(3))


def test_a_trace_that_is_not_saved_is_said():
    with pytest.warns(UserWarning, match="save_trace: no trace is saved"):
        baremetal_run_traced_kernel(trace(lambda x: x + 1), draw(3), save_trace=True)
    with pytest.warns(UserWarning, match="save_trace: no trace is saved") as said:
        DeviceKernel.compile_and_load(lambda x: x + 1, draw(3))(inputs={"x": draw(3)}, save_trace=True)
    assert said[0].filename == __file__


def test_the_code_of_a_kernel_has_nkipys_fields():
    def step(x, cache):
        cache[0] = x[0]
        return np.concatenate([np.transpose(x), np.transpose(x)], axis=1)[1:4:2]

    code = NKIPyKernel.trace(step).specialize(draw(3, 4), draw(2, 4))
    assert [p.name for p in code.parameters] == ["x", "cache.must_alias_input"] and code.auto_aliased_indices == [1]
    by_name = {o.op_name: o.attributes for o in code.operations}
    assert by_name["transpose"] == {"dimensions": [1, 0]}
    assert by_name["concatenate"]["dimension"] == 1 and by_name["slice"]["slice"].startswith("{[1:4")
    device = DeviceKernel.compile_and_load(step, draw(3, 4), draw(2, 4))
    assert device.model_ref is device.model_ref
    assert device.benchmark({"x": draw(3, 4), "cache": draw(2, 4)}, warmup_iter=3, benchmark_iter=2).warmup_iterations == 3
    with pytest.raises(ValueError, match="Size mismatch"):
        DeviceTensor.from_numpy(draw(3)).write_from_numpy(draw(4))
    assert nkipy_compile.Compiler(nkipy_compile.CompilationConfig(neff_name="k.neff")).config.neff_name == "k.neff"


def test_every_module_of_operations_is_imported_by_name():
    from nkipy.core import ops

    for kind in ("creation", "transform", "conv", "reduce", "unary", "binary", "indexing", "linalg", "nn", "collectives"):
        exec(f"from nkipy.core.ops import {kind}")
    assert not hasattr(ops, "no_such_operation")
    for kind in (AttributeError, NotImplementedError):
        with pytest.raises(kind, match="nkipy.core.ops.no_such_operation has no implementation"):
            ops.no_such_operation


@pytest.mark.parametrize("package", ["nkigen", "nkipy_kernelgen"])
@pytest.mark.parametrize("module, names", [
    ("trace", "trace"), ("traced_array", "TracedArray"), ("op_vtable", "ufuncs, functions"), ("pass_manager", "run_nkipy_opt_passes"), ("control_flow", "fori_loop"),
    ("execution", "verify_against_numpy"), ("mlir_utils", "extract_and_clean_func_from_module"), ("utils", "extract_and_clean_func_from_module"),
    ("llvm", "LLVMModule, extract_and_clean_func_from_module"), ("testing", "Mode, run_kernel_test")])
def test_every_module_of_nkigen_is_there_and_trace_stays_the_decorator(package, module, names):
    done = python(f"from {package}.{module} import {names}\nfrom {package} import trace\nimport {package}.builder\n"
                  f"@trace(input_specs=[((2,), 'f32')])\ndef k(x): return x\nprint(hasattr({package}.builder, 'IRBuilder'))")
    assert done.stdout == "False\n", done.stderr


@trace(input_specs=[((256, 256), "f32"), ((256, 256), "f32")])
def tiled(x, y):
    z = np.exp(x) @ y
    knob.knob(z).tile_op(tile_size=[128, 128, 128])
    return z


def test_passes_are_run_with_nkigens_arguments(capfd):
    text = tiled.to_mlir()
    after = run_nkipy_opt_passes(text, ["infer-layout"], False)
    assert after == run_nkipy_opt_passes(text, ["infer-layout"], "trn2") == run_nkipy_opt_passes(text, ["--infer-layout"], print_stderr=False, print_debuginfo=True)
    assert "nkipy.layout" in after
    names = ["inline-nkipy-reference", "canonicalize", "py:resolve-custom-ops", "prepare-for-nki", "cse"]
    both = run_nkipy_opt_passes(text, names, print_ir_after_all=True)
    assert both == run_nkipy_opt_passes(text, ["canonicalize", "cse"])
    assert "----- canonicalize -----" in capfd.readouterr().err
    with pytest.raises(ValueError, match="target must be one of"):
        run_nkipy_opt_passes(text, [], target="trn9")


@pytest.mark.parametrize("stage", ["trace", "infer-layout", "apply-and-strip-transforms", "canonicalize-loop-step"])
def test_a_function_is_taken_out_of_a_module_and_run(stage):
    from nkigen.llvm import extract_and_clean_func_from_module

    text = tiled._code.stages(stage)[-1][1] if tiled._code else apply_complete_knob_pipeline(tiled.to_mlir(), stop_after=stage)
    clean = extract_and_clean_func_from_module(text, "tiled")
    assert "nkipy.layout" not in clean and "transform." not in clean
    x, y = draw(256, 256), draw(256, 256)
    np.testing.assert_allclose(LLVMModule(text, "tiled")(x, y), np.exp(x) @ y, rtol=1e-4, atol=1e-3)
    with pytest.raises(ValueError, match="no function @other"):
        extract_and_clean_func_from_module(text, "other")


def test_kernels_are_tested_in_nkigens_modes():
    from nkigen.testing import Mode, nkigen_test, run_kernel_test

    run_kernel_test(tiled, "apply-and-strip-transforms", rtol=1e-4, atol=1e-3)
    run_kernel_test(tiled, modes=Mode.STRING_CHECK | Mode.FILECHECK, check_ir_contains=["nisa.matmul"], check_ir_not_contains=["transform."],
                    check_patterns="CHECK: func.func @tiled\nCHECK: nisa.matmul\n")
    nkigen_test([((4, 4), "f32")], stop_after="trace")(lambda x: x * 2)()
    for wrong in ({"modes": Mode.LLVM}, {"modes": Mode.LLVM | Mode.HW, "stop_after": "trace"}, {"modes": Mode.HW, "stop_after": 3}, {"modes": Mode.FILECHECK},
                  {"modes": Mode.STRING_CHECK}):
        with pytest.raises(ValueError):
            run_kernel_test(tiled, **wrong)
    with pytest.raises(AssertionError):
        run_kernel_test(tiled, modes=Mode.FILECHECK, check_patterns="CHECK: nisa.nothing\n")
    with pytest.raises(AssertionError, match="nisa.nothing"):
        run_kernel_test(tiled, modes=Mode.STRING_CHECK, check_ir_contains=["nisa.nothing"])
    with pytest.raises(RuntimeError, match="there is no Neuron device: HW cannot run"):
        run_kernel_test(tiled, modes=Mode.HW)


def complex_kernel(x):
    x[0] = x[1] * 2j
    return np.fft.fft(x), x.real + 1


def test_complex_numbers_are_numpys_in_ordinary_python():
    for stage in (None, "trace", "canonicalize-loop-step"):
        verify_against_numpy(trace(input_specs=[((4, 6), "c64")])(complex_kernel), stop_after=stage, rtol=1e-4, atol=1e-4)
    x = (draw(4, 6) + 1j * draw(4, 6)).astype(np.complex64)
    want = x.copy()
    wanted = complex_kernel(want)
    for got, w in zip([*baremetal_jit(complex_kernel)(x), x], [*wanted, want], strict=True):
        assert got.dtype == w.dtype
        np.testing.assert_allclose(got, w, rtol=1e-4, atol=1e-4)


def test_nkigens_simulation_runs_the_instructions(monkeypatch):
    from nkigen.testing import Mode, run_kernel_test

    run_kernel_test(tiled, modes=Mode.BIR_SIM, rtol=1e-3, atol=1e-3)
    monkeypatch.setenv("NKX_DEVICE", "sim")
    run_kernel_test(tiled, modes=Mode.HW | Mode.BIR_SIM, rtol=1e-3, atol=1e-3)

    @trace(input_specs=[((4, 4), "f32")])
    def other(x):
        return x + (1 if isinstance(x, np.ndarray) else 2)

    with pytest.raises(AssertionError, match="other, output0, instructions"):
        run_kernel_test(other, modes=Mode.BIR_SIM)


def test_an_array_that_a_kernel_filled_is_a_traced_argument():
    op = CustomOp("", "double", ["a"], ["b"], [(4,)], [(4,)], ["f32"], ["f32"], reference_fn=lambda a: a * 2)

    def kernel(x):
        a = np.zeros(4, np.float32)
        a[1:] = x[1:]
        return op(a)

    x = draw(4)
    with pytest.warns(UserWarning, match="reference_fn of a custom op"):
        np.testing.assert_array_equal(baremetal_jit(kernel)(x), np.array([0, *x[1:]]) * 2)


def test_places_in_the_other_files_of_a_program_name_them(tmp_path):
    (tmp_path / "act.py").write_text("import numpy as np\n\ndef gelu(x):\n    return np.tanh(x) * 2\n")
    (tmp_path / "program.py").write_text(
        "import numpy as np\nfrom nkigen import trace\nfrom act import gelu\n@trace\ndef k(x):\n    return gelu(x) + 1\n"
        "for o in k.specialize(np.ones((4, 8), np.float32)).operations:\n    print(o.op_name, [(s[0].split('/')[-1], s[1]) for s in o.source])\n")
    done = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, text=True, timeout=60,
                          env={"PYTHONPATH": str(BUILD / "python")})
    assert "tanh [('act.py', 4), ('program.py', 6)]" in done.stdout and "add [('program.py', 6)]" in done.stdout, done.stderr
