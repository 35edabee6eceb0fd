"""HLO opcodes that JAX does not write for the CPU, and options of those that it does: XLA, our print, what op-expander writes
out, and NISA compute the same."""
import itertools
import json

import numpy as np
import pytest

from support import compiler, jax_functions, reference, warm
from support.oracles import xla


def module(body, parameters):
    shapes = ", ".join(parameters)
    lines = [f"  p{k} = {shape} parameter({k})" for k, shape in enumerate(parameters)]
    result = body.split("ROOT r = ")[1].split(" ")[0]
    return f"HloModule m, entry_computation_layout={{({shapes})->{result}}}\n\nENTRY main {{\n" + "\n".join([*lines, f"  {body}", "}\n"])


def flags(**options):
    return ", ".join(f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in options.items())


MODULES = {}
for lower in (False, True):
    MODULES[f"cholesky_{lower}"] = module(f"ROOT r = f32[2,5,5] cholesky(p0), lower={str(lower).lower()}", ["f32[2,5,5]"])
for left, lower, unit, trans in itertools.product((False, True), (False, True), (False, True), ("NO_TRANSPOSE", "TRANSPOSE")):
    options = flags(left_side=left, lower=lower, unit_diagonal=unit, transpose_a=trans)
    b = "f32[5,3]" if left else "f32[3,5]"
    MODULES[f"triangular_solve_{left}_{lower}_{unit}_{trans}"] = module(f"ROOT r = {b} triangular-solve(p0, p1), {options}", ["f32[5,5]", b])
for kind, length in itertools.product(("FFT", "IFFT", "RFFT", "IRFFT"), (1, 2, 7, 8, 61, 144)):
    half = length // 2 + 1
    source = f"f32[3,{length}]" if kind == "RFFT" else f"c64[3,{half if kind == 'IRFFT' else length}]"
    to = f"f32[3,{length}]" if kind == "IRFFT" else f"c64[3,{half if kind == 'RFFT' else length}]"
    MODULES[f"{kind}_{length}"] = module(f"ROOT r = {to} fft(p0), fft_type={kind}, fft_length={{{length}}}", [source])
for exponent, mantissa in ((5, 10), (8, 7), (2, 23), (8, 0), (1, 1), (11, 52)):
    MODULES[f"reduce_precision_{exponent}_{mantissa}"] = module(
        f"ROOT r = f32[8,16] reduce-precision(p0), {flags(exponent_bits=exponent, mantissa_bits=mantissa)}", ["f32[8,16]"])
MODULES["complex_parts"] = module("ROOT r = c64[4] complex(p0, p0)", ["f32[4]"])


def inputs_of(name, text):
    rng = np.random.default_rng(3)
    inputs = xla.random_inputs(xla.read_text(text).as_serialized_hlo_module_proto()) if "c64" not in text else None
    if inputs is None:
        shape = next(line for line in text.splitlines() if " parameter(0)" in line).split("[")[1].split("]")[0]
        x = rng.uniform(-2, 2, [int(n) for n in shape.split(",")]) + 0j
        is_complex = "c64" in next(line for line in text.splitlines() if " parameter(0)" in line)
        return [(x + 1j * rng.uniform(-2, 2, x.shape)).astype(np.complex64) if is_complex else x.real.astype(np.float32)]
    if name.startswith("cholesky"):
        inputs = [x @ np.swapaxes(x, -1, -2) + 5 * np.eye(5, dtype=np.float32) for x in inputs]
    if name.startswith("triangular"):
        inputs[0] += 5 * np.eye(5, dtype=np.float32)
    if name.startswith("reduce"):
        inputs[0] *= np.float32(2.0) ** rng.integers(-140, 127, inputs[0].shape).astype(np.float32)
        inputs[0][0, :6] = [np.nan, np.inf, -np.inf, 0, -0.0, 3.4e38]
    return inputs


def assert_close(name, got, want):
    got, want = (jax_functions.as_reals(np.asarray(a)) for a in (got, want))
    assert got.shape == want.shape and got.dtype == want.dtype
    if name.startswith("cholesky"):  # XLA leaves something in the other triangle
        keep = np.tril if name.endswith("True") else np.triu
        got, want = keep(got), keep(want)
    if name.startswith("reduce"):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    else:
        np.testing.assert_allclose(got, want, 2e-4, 2e-5 * max(1, abs(want).max()))


@pytest.mark.parametrize("name", MODULES)
def test_an_opcode_computes_at_every_form_what_xla_computes(name):
    text = MODULES[name]
    inputs = inputs_of(name, text)
    (want,) = xla.run_text(text, inputs)
    done = warm.run("compile", "-", "--language", "hlo", "--quiet", "--json", "-", *compiler.CONSTANTS, input=text.encode())
    result = json.loads(done.stdout)
    assert not [d for d in result["diagnostics"] if d["severity"] == "error"], result["diagnostics"]
    kernel = result["kernels"][0]
    stages = {stage["name"]: stage["text"] for stage in kernel["stages"]}
    assert_close(name, xla.run_text(stages["trace"], inputs)[0], want)
    reals = [jax_functions.as_reals(a) for a in inputs]
    assert_close(name, xla.run_text(stages["op-expander"], reals)[0], want)
    assert_close(name, reference.run_nisa(kernel, reals)[0], want)
