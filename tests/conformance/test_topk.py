"""The largest and smallest elements of rows, down to NISA: what becomes max8, that every stage computes what NumPy does, and what is
left to the comparison of all pairs."""
import numpy as np
import pytest

from support import compiler, reference

HEAD = """import numpy as np
from nkigen import trace
from nkipy.core.tensor_apis import topk
"""
# name: (expression, shape, uses max8)
KERNELS = {
    "largest": ("topk(x, 8)", (130, 77), True),
    "many": ("topk(x, 64)", (3, 5, 260), True),
    "rounds": ("topk(x, 9)", (129, 37), True),
    "smallest": ("topk(x, 10, is_ascend=True)", (128, 40), True),
    "end_of_sort": ("np.sort(x, axis=-1)[..., -5:]", (7, 50), True),
    "begin_of_sort": ("np.sort(x)[:, :17]", (257, 50), True),
    "begin_of_argsort": ("np.argsort(-x, axis=-1, kind='stable')[:, :3]", (65, 300), True),
    "one_row": ("np.sort(x)[:4]", (211,), True),
    "end_of_argsort": ("np.argsort(x, axis=-1, kind='stable')[:, -3:]", (20, 40), True),
    "end_of_both": ("(lambda i: (i, np.take_along_axis(x, i, -1)))(np.argsort(x, axis=-1, kind='stable')[:, -9:])", (130, 50), True),
    "descending": ("np.sort(x)[:, ::-1][:, :5]", (256, 50), True),
    "descending_places": ("np.argsort(x, axis=-1, kind='stable')[:, ::-1][:, :6]", (257, 50), True),
    "backwards_places": ("np.argsort(x, axis=-1, kind='stable')[..., :-3:-1]", (3, 5, 77), True),
    "last_place": ("np.argsort(x, axis=-1, kind='stable')[:, -1]", (130, 40), True),
    "short_rows": ("topk(x, 3)", (20, 32), False),
    "near_the_zeros": ("topk(x, 12)", (5, 40), False),
    "whole_sort": ("np.sort(x)[:, 1:-1]", (20, 40), False),
    "read_twice": ("(lambda s: (s[:, :2], s.sum(axis=1)))(np.sort(x))", (20, 40), False),
    "other_axis": ("np.sort(x, axis=0)[:2]", (40, 20), False),
}


def source(name, dtype="f32"):
    text, shape, _ = KERNELS[name]
    return HEAD + f"@trace(input_specs=[({shape}, {dtype!r})])\ndef {name}(x):\n    return {text}\n"


def compiled(name, dtype="f32"):
    result = compiler.compile(source(name, dtype), check=True)
    assert not [d for d in result["diagnostics"] if d["severity"] == "error"], result["diagnostics"]
    (kernel,) = result["kernels"]
    return kernel


def run(kernel, name, x):
    plain = reference.functions(source(name))[name]
    return zip(reference.run_nisa(kernel, [x.copy()]), reference.call(plain, kernel, [x]), strict=True)


@pytest.mark.parametrize("name", KERNELS)
def test_it_computes_what_numpy_does(name):
    kernel = compiled(name)
    text = kernel["stages"][-1]["text"]
    assert ("nisa.max8" in text) == KERNELS[name][2]
    shape = KERNELS[name][1]
    rng = np.random.default_rng(7)
    # Many equal elements, and infinities.
    for x in (rng.standard_normal(shape), rng.integers(-4, 5, shape), rng.choice([-np.inf, np.inf, 0, 1], shape)):
        for got, want in run(kernel, name, x.astype(np.float32)):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["bf16", "f16"])
def test_floats_of_16_bits_are_found_as_they_are(dtype):
    kernel = compiled("rounds", dtype)
    x = np.random.default_rng(1).standard_normal((129, 37)).astype(kernel["inputs"][0]["dtype"] if dtype == "f16" else compiler.dtype("bfloat16"))
    for got, want in run(kernel, "rounds", x):
        np.testing.assert_array_equal(np.asarray(got, want.dtype), want)


def test_a_nan_is_left_out_of_long_rows_and_the_remark_says_so():
    kernel = compiled("largest")
    x = np.random.default_rng(2).standard_normal((130, 77)).astype(np.float32)
    with_nan = x.copy()
    with_nan[:, 70] = np.nan
    x[:, 70] = -np.inf
    for got, want in zip(reference.run_nisa(kernel, [with_nan]), reference.run_nisa(kernel, [x]), strict=True):
        np.testing.assert_array_equal(got, want)
    said = [r["text"] for s in kernel["stages"] for r in s.get("remarks", []) if r.get("rule") == "topk"]
    assert said and "a NaN in a row is left out" in said[0]


@pytest.mark.parametrize("expression", [
    "np.argsort(p, axis=1)", "p.argsort(axis=0)[::-1]", "np.argsort(p)[:, -5:]", "np.argsort(p, 1, None)", "p.argsort(1, kind='stable')",
    "np.argsort(p.astype(np.int32), axis=1)", "np.take_along_axis(x, np.argsort(p, axis=1), axis=1)",
])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_an_argsort_that_leaves_the_places_of_equal_elements_open_is_compared_with_a_stable_one(expression, dtype):
    text = HEAD + f"@trace(input_specs=[((30, 64), {dtype!r})])\ndef k(x):\n    p = np.floor(x * 3)\n    return {expression}\n"
    compiler.assert_equal_at_every_stage(text, 1)


def test_numpy_sorts_as_ever_after_a_check():
    """The method of ndarray that the check replaces is back: it is NumPy's own."""
    text = HEAD + """before = np.ndarray.argsort
@trace(input_specs=[((4, 64), "f32")])
def k(x):
    if isinstance(x, np.ndarray):
        assert np.ndarray.argsort is not before
    return np.argsort(np.floor(x))
@trace(input_specs=[((4, 64), "f32")])
def after(x):
    assert isinstance(x, np.ndarray) or np.ndarray.argsort is before
    return x + 1
"""
    compiler.assert_equal_at_every_stage(text, 2)
