"""Complex numbers and Fourier transforms in the trace: dtypes and shapes as NumPy has them (complex128 narrowed), values by
XLA on our HLO, and what is refused, at its place.  NKX_COMPLEX_CALLS=n draws so many calls instead of a few."""
import os
import random

import numpy as np
import pytest

import _nkx
from support import complex_calls
from support.oracles import xla

N = int(os.environ.get("NKX_COMPLEX_CALLS", "60"))
NARROW = {"complex128": "complex64", "float64": "float32", "int64": "int32"}


def prove(calls):
    wrong = []
    for call in calls:
        names = ", ".join(call.arrays)
        text = f"{complex_calls.HEAD}def k({names}):\n    return {call.expression}\n"
        what = f"{call.expression} of { {n: (a.dtype.name, a.shape) for n, a in call.arrays.items()} }"
        try:
            kernel = xla.trace(text, inputs=[(n, a.shape, a.dtype.name) for n, a in call.arrays.items()])
            want, (out,) = complex_calls.expected(call), kernel["outputs"]
            assert (out["shape"], out["dtype"]) == (want.shape, NARROW.get(want.dtype.name, want.dtype.name)), what
            (got,) = xla.run(kernel["proto"], list(call.arrays.values()))
            if want.dtype.kind in "fc":
                np.testing.assert_allclose(got, want, 5e-5, 2e-5 * max(1, np.abs(want[np.isfinite(want)]).max(initial=0)), err_msg=what)
            else:
                np.testing.assert_array_equal(got, want, err_msg=what)
        except AssertionError as e:
            wrong.append(f"{what}: {e}"[:800])
    assert not wrong, f"{len(wrong)} of {len(calls)}:\n" + "\n".join(wrong)


def test_every_operation_on_complex_numbers_computes_what_numpy_computes():
    prove(complex_calls.every_expression((3, 4)))


@pytest.mark.parametrize("seed", range(1 if N <= 60 else -(-N // 60)))
def test_drawn_shapes_axes_lengths_and_norms_compute_what_numpy_computes(seed):
    prove(complex_calls.calls(random.Random(seed), min(N, 60)))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_tensors_without_axes_or_elements_are_computed(shape):
    made = [complex_calls.Call(e, {"x": complex_calls.draw(np.random.default_rng(0), shape, "complex64")}) for e in
            ("x * 2j", "np.exp(x)", "abs(x)", "x.real", "np.sum(x)", "np.prod(x)", "x == 1j", "np.conj(x).reshape(-1)")]
    prove(made + [complex_calls.Call("np.fft.fftshift(x)", c.arrays) for c in made[:1] if shape])


def test_a_python_complex_number_adapts_as_in_numpy():
    arrays = {"r": np.ones(3, np.float32), "h": np.ones(3, np.float16), "i": np.ones(3, np.int8)}
    prove([complex_calls.Call(e, {n: a for n, a in arrays.items() if n in e[:1]}) for e in ("r * 1j", "h + 1j", "i - 2j", "r + complex(2)")])


# ---- what is refused --------------------------------------------------------------------------------------------------

REFUSED = {
    "x < 1": "unsupported-dtype", "np.maximum(x, x)": "unsupported-dtype", "np.sort(x)": "unsupported-dtype", "np.max(x)": "unsupported-dtype",
    "np.floor(x)": "unsupported-dtype", "np.clip(x, 0, 1)": "unsupported-dtype", "np.arcsin(x)": "unsupported-dtype", "x // 2": "unsupported-dtype",
    "x & x": "unsupported-dtype", "np.maximum(r, 1j)": "unsupported-dtype", "np.minimum(r, [1j])": "unsupported-dtype",
    "np.fft.rfft(x)": "unsupported-dtype", "np.mean(x, dtype=np.float32)": "dtype-promotion", "np.sum(x, dtype=np.float32)": "dtype-promotion",
    "np.cumsum(x, axis=0, dtype=np.float32)": "dtype-promotion", "np.concatenate([x, r], dtype=np.float32)": "dtype-promotion",
    "np.multiply(x, r, dtype=np.float32)": "dtype-promotion", "np.full_like(r, 1j)": "dtype-promotion", "r.__iadd__(1j)": "dtype-promotion",
    "r.__setitem__(0, x[0])": "dtype-promotion", "np.multiply(x, x, out=np.zeros((4, 6), np.float32))": "dtype-promotion",
    "x.real.__setitem__(0, 1)": "unsupported-index", "setattr(x, 'real', r)": "unsupported-op", "float(x[0, 0])": "traced-value",
    "np.linalg.norm(x, ord=2)": "unsupported-op", "np.fft.fft(r, n=2053)": "unsupported-op", "np.fft.fft(r, n=0)": "bad-argument",
    "np.fft.fft(r, norm='x')": "bad-argument", "np.fft.fft(r, axis=3)": "bad-argument", "np.fft.fft2(r[0])": "bad-argument",
    "np.fft.fftn(r, s=(3,), axes=(0, 1))": "bad-argument", "np.fft.fft(r[0, 0])": "bad-argument",
}


@pytest.mark.parametrize("expression", REFUSED)
def test_what_complex_numbers_do_not_have_is_refused_at_its_place(expression):
    text = f"import numpy as np\ndef k(x, r):\n    a = {expression}\n    return x\n"
    result = _nkx.trace_source(text, inputs=[("x", (4, 6), "complex64"), ("r", (4, 6), "float32")])
    (error,) = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert error["code"] == REFUSED[expression], error
    assert error["src"][0][1] == 3, error


def test_a_knob_on_complex_numbers_says_that_it_has_no_effect():
    text = "import numpy as np\nfrom nkigen import knob\ndef k(x):\n    y = x * 2\n    knob.knob(y, tile_size=[4, 6])\n    return y\n"
    (d,) = _nkx.trace_source(text, inputs=[("x", (4, 6), "complex64")])["diagnostics"]
    assert (d["severity"], d["code"], d["src"][0][1]) == ("warning", "knob-ignored", 5)


def test_a_part_read_after_its_tensor_was_written_is_refused():
    text = "import numpy as np\ndef k(x):\n    y = x + 0\n    a = y.real\n    y[0] = 1j\n    return a * 2\n"
    (error,) = _nkx.trace_source(text, inputs=[("x", (4,), "complex64")])["diagnostics"]
    assert error["code"] == "unsupported-index" and "take it again" in error["hint"]


def test_an_input_with_too_many_dimensions_is_refused():
    result = _nkx.trace_source("def k(x): return x * 2\n", inputs=[("x", (1,) * 16, "complex64")])
    (error,) = result["diagnostics"]
    assert error["code"] == "unsupported-dtype" and "at most 15" in error["message"]


def test_complex128_inputs_are_narrowed_with_a_warning():
    result = _nkx.trace_source("import numpy as np\ndef k(x): return x * 2\n", inputs=[("x", (4,), "complex128")])
    assert result["kernels"][0]["inputs"][0]["dtype"] == "complex64"
    assert [(d["severity"], d["code"]) for d in result["diagnostics"]] == [("warning", "dtype-narrowed")]
