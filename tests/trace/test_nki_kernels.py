"""NKI kernels inside of NumPy kernels, with stand-ins for the vendor's NKI front ends (stand_ins/)."""
import base64
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import nki_beta1  # noqa: F401
import nki_ga
from _nkx import trace_source
from nkigen import CustomOp, trace
from nkigen.transforms.nkipy_opt import apply_complete_knob_pipeline
from nkipy.core import nki_op
from nkipy.runtime import baremetal_jit
from nkx import nki_kernel, package
from support.oracles import xla
from support.paths import NKX

pytestmark = pytest.mark.filterwarnings("ignore:there is no Neuron device")
A, B = ((128, 64), "f32"), ((128, 64), "bf16")


@pytest.fixture
def ga(monkeypatch):
    monkeypatch.setenv("NKX_NKI_FRONTEND", "nki_ga")
    monkeypatch.setattr(nki_ga, "calls", [])
    nki_kernel.take_over_jit()


def hlo(fn, *specs):
    code = package.code_of(trace(fn, input_specs=list(specs)))
    xla.read(code.to_proto())  # XLA takes it
    return code.text(), code


def config_of(text):
    return json.loads(base64.b64decode(re.search(r'backend_config="(eyJ[^"]*)"', text)[1]))


@nki_ga.jit
def add(a, b):
    return nki_ga.like(a)


@nki_ga.jit
def split(a, *, parts):
    return tuple(nki_ga.like(a, shape=(128, 64 // parts)) for _ in range(parts))


@nki_ga.jit
def add_in_place(a, b):
    return nki_ga.like(a), b


@nki_ga.jit
def collective_sum(a):
    return nki_ga.like(a)


@nki_ga.jit
def alone(a):
    return (nki_ga.like(a),)


def test_a_kernel_called_with_traced_tensors_is_a_custom_call(ga):
    text, _ = hlo(lambda x, y: add(x * 2, y) + 1, A, A)
    line = next(x for x in text.split("\n") if "custom-call" in x)
    assert re.search(r'= f32\[128,64\]\S* custom-call\(.*\), custom_call_target="AwsNeuronCustomNativeKernel"', line)
    assert config_of(line)["func_name"] == "add" and config_of(line)["kernel_format"] == "bir"
    assert "has_collectives" not in line and "aliasing" not in line


def test_arrays_among_the_operands_are_constants_and_scalars_are_values(ga):
    @nki_ga.jit
    def scaled(a, table, factor):
        assert isinstance(factor, np.float32) and table.shape == (4,)
        return nki_ga.like(a)

    text, _ = hlo(lambda x: scaled(x, np.arange(4, dtype=np.int32), np.float32(2)), A)
    assert re.search(r"s32\[4\]\S* constant\({0, 1, 2, 3}\)", text) and text.count("custom-call(%x, %op1)") == 1


def test_what_was_traced_once_is_known(ga):
    @nki_ga.jit
    def once(a, b):
        return nki_ga.like(a)

    hlo(lambda x, y: once(once(x, y), y), A, A)
    assert nki_ga.calls == ["once"]
    hlo(lambda x, y: once(x, y), A, B)
    assert nki_ga.calls == ["once"] * 2  # for another dtype
    text, _ = hlo(lambda x, y: once[2](x, b=y), A, A)  # and for another grid
    assert nki_ga.calls == ["once"] * 3 and config_of(text)["grid"] == 2


def test_several_results_are_a_tuple(ga):
    text, code = hlo(lambda x: split(x, parts=2), A)
    assert "(f32[128,32]" in text and text.count("get-tuple-element(") == 2
    assert [o.shape for o in code.outputs] == [(128, 32)] * 2
    text, code = hlo(lambda x: alone(x)[0], A)  # of one
    assert len(code.outputs) == 1 and "get-tuple-element" not in text


def test_what_is_written_in_place_is_the_input_from_then_on(ga):
    def k(x, y):
        add_in_place(x, y)
        return y * 2

    text, code = hlo(k, A, A)
    assert "output_to_operand_aliasing={{1}: (1, {})}" in text
    product = next(x for x in text.split("\n") if " multiply(" in x)
    element = re.search(r"(%\S+) = \S+ get-tuple-element\(\S+ \S+\), index=1|(%\S+) = \S+ get-tuple-element\(\S+\), index=1", text)
    assert (element[1] or element[2]) in product
    assert [(a.param_name, a.is_user_returned) for a in code.aliases] == [("y", False)]
    assert "y.must_alias_input" in text


def test_collectives_within_are_said(ga):
    text, code = hlo(lambda x: collective_sum(x) + 1, A)
    assert re.search(r'custom-call\(.*frontend_attributes=\{has_collectives="1"\}', text)
    assert 'has_collectives="1"' in xla.read(code.to_proto())
    text, _ = hlo(lambda x: collective_sum(x), A)  # beside what the root says
    assert re.search(r'frontend_attributes=\{has_collectives="1"|,has_collectives="1"', text) and "neff_output_names" in text


def test_the_readers_keep_what_the_call_says(ga, tmp_path):
    text, code = hlo(lambda x: collective_sum(x) + 1, A)
    (tmp_path / "k.hlo").write_text(text)
    (tmp_path / "k.pb").write_bytes(code.to_proto())
    for name in ("k.hlo", "k.pb"):
        subprocess.run([NKX, "compile", tmp_path / name, "--quiet",
                        "--stop-after", "cse", "--dump-dir", tmp_path / "out"], check=True, capture_output=True)
        again = (tmp_path / "out/kernel0/hlo.txt").read_text()
        assert 'frontend_attributes={has_collectives="1"}' in again and config_of(again) == config_of(text), name


def test_a_wrapped_kernel_takes_what_it_was_traced_for(ga):
    x = np.zeros((128, 64), np.float32)
    wrapped = nki_op.wrap_nki_kernel(add, [x, x], grid=(1,))
    assert "custom-call" in hlo(lambda a, b: wrapped(a, b), A, A)[0]
    with pytest.raises(ValueError, match="was traced for operands of shape"):
        hlo(lambda a: wrapped(a[:64], a[:64]), A)
    op = nki_op.nki_custom_op(nki_kernel=add)
    assert "custom-call" in hlo(lambda a, b: op(a, b), A, A)[0]


def test_not_traced_it_is_the_vendors_affair(ga):
    assert add(np.zeros(3)) == "the vendor's own way"


def test_it_is_a_call_in_linalg_and_has_no_meaning_here(ga):
    text = trace(lambda x, y: add(x, y) + collective_sum(y), input_specs=[A, A]).to_mlir()
    assert len(set(re.findall(r"call (@AwsNeuronCustomNativeKernel\w*)\(", text))) == 2
    assert text.count("nkipy.custom_call = {backend_config =") == 2 and text.count("has_collectives") == 1
    with pytest.raises(RuntimeError, match="AwsNeuronCustomNativeKernel"):
        apply_complete_knob_pipeline(text)
    with pytest.raises(NotImplementedError, match="add is an NKI kernel: it runs on a Neuron device only"):
        baremetal_jit(lambda x: add(x, x))(np.ones((4, 4), np.float32))


def test_the_first_generation(monkeypatch):
    monkeypatch.setenv("NKX_NKI_FRONTEND", "nki_beta1")

    def double(a, times=2):
        return a, a.T

    double.constants = [np.eye(4, dtype=np.float32)]
    wrapped = nki_op.wrap_nki_kernel(double, [np.zeros((128, 64), np.float32)], grid=(2, 2), times=3)
    text, code = hlo(lambda x: wrapped(x), A)
    assert config_of(text)["grid"] == [2, 2] and [o.shape for o in code.outputs] == [(128, 64), (64, 128)]
    constant = re.search(r"(%\S+) = f32\[4,4\]\S* constant\(", text)[1]
    assert f"custom-call(%x, {constant})" in text  # the kernel's own constant follows its operands


def test_a_source_of_nki_kernels_only_is_traced_through_the_front_end(monkeypatch):
    monkeypatch.setenv("NKX_NKI_FRONTEND", "nki_ga")
    source = "import nki_ga\n\n@nki_ga.jit\ndef alone(a, b):\n    return nki_ga.like(b)\n"
    result = trace_source(source, inputs=[(None, (128, 64), "f32"), (None, (4, 4), "bf16")])
    assert result["diagnostics"] == []
    kernel = result["kernels"][0]
    assert kernel["name"] == "alone" and [(t["shape"], t["dtype"]) for t in kernel["outputs"]] == [((4, 4), "bfloat16")]
    assert 'custom_call_target="AwsNeuronCustomNativeKernel"' in kernel["text"]


def test_a_call_outside_of_kernels_is_refused_by_name(monkeypatch):
    monkeypatch.delenv("NKX_NKI_FRONTEND", raising=False)
    [d] = trace_source("import nki.isa\ndef alone(a):\n    return nki.isa.activation(a)\n", inputs=[(None, (4,), "f32")])["diagnostics"]
    assert d["code"] == "nki-call" and d["src"][0][1] == 3 and d["message"] == "no NKI kernel is running here"


def test_without_a_front_end_it_is_refused_by_name(monkeypatch):
    monkeypatch.delenv("NKX_NKI_FRONTEND", raising=False)
    import nki

    @nki.jit(mode="trace")
    def inner(a):
        return a

    for call in (inner, inner[2]):
        with pytest.raises(NotImplementedError, match="inner: an NKI kernel is traced by the vendor's NKI compiler"):
            hlo(lambda x: call(x), A)


def test_a_front_end_that_asks_for_more_is_refused_by_what_it_asks(monkeypatch):
    monkeypatch.setenv("NKX_NKI_FRONTEND", "nki_ga")
    monkeypatch.setattr(nki_ga, "compile_kernel_to_nir", lambda kernel, schedule: None)

    @nki_ga.jit
    def other(a):
        return a

    with pytest.raises(NotImplementedError, match="asks for schedule, which is not known here"):
        nki_kernel.trace(other, (), {})


# ---- the kernel builder --------------------------------------------------------------------------------------------

built = []


def builder(kernel_func, inputs, outputs, **hyper):
    built.append((kernel_func.__name__, inputs, outputs, hyper))
    return f"module {{ /* {kernel_func.__name__} */ }}"


def silu(x, scale=1.0):
    return x


def test_a_kernel_builder_that_is_named_makes_custom_ops(monkeypatch):
    monkeypatch.setenv("NKX_KERNEL_BUILDER", "test_nki_kernels:builder")
    built_here = sys.modules.setdefault("test_nki_kernels", sys.modules[__name__]).built
    specs = [((128, 64), "f32")], [((128, 64), "f32")]
    op = CustomOp.from_kernel_builder(silu, *specs)
    assert op.func_name == "__custom_op__silu_128x64_128x64" and op.nisa_mlir == "module { /* silu */ }"
    other = CustomOp.from_kernel_builder(silu, *specs, scale=2.0)
    assert re.fullmatch(r"__custom_op__silu_128x64_128x64_[0-9a-f]{8}", other.func_name)
    CustomOp.from_kernel_builder(silu, *specs, scale=2.0)
    assert [h for _, _, _, h in built_here] == [{}, {"scale": 2.0}]  # each once
    CustomOp.from_kernel_builder(silu, [((128, 64), "bf16")], [((128, 64), "bf16")])
    assert len(built_here) == 3  # of the same name, with other types
    custom = nki_op.nki_custom_op(kernel_builder=silu, input_specs=specs[0], output_specs=specs[1])
    text = trace(lambda x: custom(x), input_specs=[A]).to_mlir()
    assert "call @__custom_op__silu_128x64_128x64" in text
