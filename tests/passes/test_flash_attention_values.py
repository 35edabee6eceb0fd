"""flash-attention keeps what a kernel computes: masks, forms of the softmax, odd sizes, several batches, long rows.

The kernels are compiled to the stage before, and the values before and after the pass are compared on random inputs.
"""
import numpy as np
import pytest

from support import compiler, values, warm

HEAD = """import ml_dtypes
import numpy as np
from nkigen import knob, trace

bf16 = ml_dtypes.bfloat16


def softmax(s):
    e = np.exp(s - np.max(s, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


"""


def before(tmp_path, body, shapes, dtype="f32"):
    names = "qkvm"[:len(shapes)]
    specs = ", ".join(f"({tuple(s)}, '{dtype}')" for s in shapes)
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    path = tmp_path / "kernel.py"
    path.write_text(f"{HEAD}@trace(input_specs=[{specs}])\ndef kernel({', '.join(names)}):\n{lines}")
    done = warm.run("compile", str(path), *compiler.CONSTANTS, "--stop-after", "prepare-arithmetic")
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def after(tmp_path, rng, body, shapes, dtype="f32", tol=2e-4, inputs=None):
    text = before(tmp_path, body, shapes, dtype)
    if inputs is None:
        inputs = [rng.standard_normal(a.shape).astype(a.dtype) / 4 for a in values.random_inputs(text, rng)]
    return values.check(text, "flash-attention", rng, tol, inputs)


def qkv(queries, keys, features, width):
    return [(queries, features), (keys, features), (keys, width)]


SIZES = [(1, 3, 4, 5), (130, 517, 8, 16), (7, 1, 4, 4), (300, 70, 64, 80), (129, 600, 130, 3), (1030, 8, 4, 4)]


@pytest.mark.parametrize("queries, keys, features, width", SIZES)
def test_sizes_that_no_block_divides_keep_their_values(tmp_path, rng, queries, keys, features, width):
    text = after(tmp_path, rng, "return softmax(q @ k.T * np.float32(0.3)) @ v", qkv(queries, keys, features, width))
    assert ("nkipy.layout" in text) == (keys > 1)  # with one key there is nothing to reduce


SQUARE = qkv(40, 40, 8, 8)
FORMS = {
    "without a maximum": "e = np.exp(q @ k.T)\nreturn e / np.sum(e, axis=-1, keepdims=True) @ v",
    "divided at the end": "s = q @ k.T\ne = np.exp(s - s.max(-1, keepdims=True))\nreturn (e @ v) / e.sum(-1, keepdims=True)",
    "rows without keepdims": "s = q @ k.T\ne = np.exp(s - s.max(-1)[:, None])\nreturn (e / e.sum(-1)[:, None]) @ v",
    "a mask that is added": "return softmax(q @ k.T + m) @ v",
    "a mask that selects": "return softmax(np.where(m > 0, q @ k.T, np.float32(-1e9))) @ v",
    "a mask that selects with infinity": "return softmax(np.where(m > -1, q @ k.T, np.float32(-np.inf))) @ v",
    "a causal mask": "return softmax(np.where(np.tril(np.ones((40, 40), bool)), q @ k.T, np.float32(-np.inf))) @ v",
    "a mask computed from another": "return softmax(q @ k.T + (1 - m[:1]) * np.float32(-100)) @ v",
    "a temperature for each row": "return softmax(q @ k.T / (np.abs(m[:, :1]) + 1)) @ v",
    "a cap": "return softmax(np.tanh(q @ k.T / 5) * 5) @ v",
    "keys that are transposed": "return softmax(q @ k.reshape(8, 40)) @ v",
    "a sink": "s = q @ k.T\nx = np.maximum(s.max(-1, keepdims=True), m[:1, :1])\ne = np.exp(s - x)\n"
              "return (e / (e.sum(-1, keepdims=True) + np.exp(m[:1, :1] - x))) @ v",
    "two attentions, one after the other": "a = softmax(q @ k.T) @ v\nreturn softmax(a @ k.T) @ v",
    "a result that is scaled": "return (softmax(q @ k.T) @ v) * 2",
}


@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.replace(" ", "-"))
def test_forms_keep_their_values(tmp_path, rng, form):
    text = after(tmp_path, rng, FORMS[form], SQUARE + [(40, 40)] * ("m" in FORMS[form].replace("max", "").replace("sum", "")))
    assert "nkipy.layout" in text


def test_rows_that_are_wholly_masked_are_nan(tmp_path, rng):
    mask = np.zeros((40, 40), np.float32)
    mask[3], mask[5, 1:] = -np.inf, -np.inf
    inputs = [rng.standard_normal(s).astype(np.float32) for s in SQUARE] + [mask]
    text = before(tmp_path, "return softmax(q @ k.T + m) @ v", SQUARE + [(40, 40)])
    (got,) = values.run(values.opt(text, "flash-attention"), inputs)
    (want,) = values.run(text, inputs)
    assert np.isnan(got[3]).all() and np.isnan(want[3]).all()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_large_scores_keep_their_values(tmp_path, rng):
    inputs = [(rng.standard_normal(s) * 100).astype(np.float32) for s in SQUARE]
    after(tmp_path, rng, "return softmax(q @ k.T) @ v", SQUARE, inputs=inputs)


BATCHES = {
    "three": ("return softmax(q @ k.transpose(0, 2, 1)) @ v", [(3, 40, 8)] * 3),
    "two batch dimensions": ("return softmax(q @ k.transpose(0, 1, 3, 2)) @ v", [(2, 3, 40, 8)] * 3),
    "a mask without a batch": ("return softmax(q @ k.transpose(0, 2, 1) + m) @ v", [(3, 40, 8)] * 3 + [(40, 40)]),
    "a mask of keys": ("return softmax(q @ k.transpose(0, 1, 3, 2) + m) @ v", [(2, 3, 40, 8)] * 3 + [(2, 1, 1, 40)]),
    "grouped heads": ("return softmax(q @ np.repeat(k, 2, axis=0).transpose(0, 2, 1)) @ np.repeat(v, 2, axis=0)",
                      [(4, 40, 8), (2, 40, 8), (2, 40, 8)]),
    "one head of keys": ("return softmax(q @ k.transpose(0, 1, 3, 2)) @ v", [(2, 3, 40, 8), (2, 1, 40, 8), (2, 1, 40, 8)]),
    "a mask without batches": ("return softmax(q @ k.transpose(0, 1, 3, 2) * np.float32(0.3) + m) @ v", [(2, 3, 40, 8)] * 3 + [(40, 40)]),
    "a mask that selects": ("return softmax(np.where(m > 0, (q * np.float32(0.3)) @ k.transpose(0, 1, 3, 2), np.float32(-1e9))) @ v",
                            [(2, 3, 40, 8)] * 3 + [(40, 40)]),
    "divided at the end": ("s = q @ k.transpose(0, 1, 3, 2)\ne = np.exp(s - s.max(-1, keepdims=True))\n"
                           "return (e @ v) / e.sum(-1, keepdims=True)", [(2, 3, 40, 8)] * 3),
    "einsum": ("w = softmax(np.einsum('bqhd,bkhd->bhqk', q, k))\nreturn np.einsum('bhqk,bkhd->bqhd', w, v)", [(2, 40, 3, 8)] * 3),
}


@pytest.mark.parametrize("batch", BATCHES, ids=lambda f: f.replace(" ", "-"))
def test_batches_keep_their_values(tmp_path, rng, batch):
    assert "nkipy.layout" in after(tmp_path, rng, *BATCHES[batch])


def test_conversions_between_the_products_keep_their_values(tmp_path, rng):
    text = after(tmp_path, rng, "return softmax((q @ k.T).astype(np.float32)).astype(bf16) @ v", SQUARE, "bf16", 0.03)
    assert "nkipy.layout" in text and "xbf16>, tensor<40x8xbf16>" in text


def test_heads_in_bf16_keep_their_values(tmp_path, rng):
    shapes = [(2, 3, 130, 16)] * 3
    text = after(tmp_path, rng, "return softmax(q @ k.transpose(0, 1, 3, 2) * 0.25) @ v", shapes, "bf16", 0.03)
    assert "batch_matmul" not in text and "tensor.insert_slice" in text
    assert "tensor<2x3x130x16xf32>" not in text  # the result is rounded in its tile


LONG = {
    "a softmax": ("return softmax(q @ k.T) @ v", qkv(3, 17000, 2, 2)),
    "a rest of the keys": ("return softmax(q @ k.T) @ v", qkv(130, 16700, 2, 2)),
    "a mask with infinities": ("return softmax(np.where(m > 1, q @ k.T, np.float32(-np.inf))) @ v", qkv(2, 17000, 2, 2) + [(2, 17000)]),
}


@pytest.mark.nightly
@pytest.mark.parametrize("form", LONG, ids=lambda f: f.replace(" ", "-"))
def test_rows_that_do_not_fit_run_over_blocks_of_keys(tmp_path, rng, form):
    body, shapes = LONG[form]
    inputs = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    if len(shapes) == 4:  # the first keys are masked, and one row as a whole
        inputs[3][0, :6000], inputs[3][1] = 0, 0
        inputs[3][0, 6000:] = 2
    text = before(tmp_path, body, shapes)
    got, want = (values.run(t, inputs)[0] for t in (values.opt(text, "flash-attention"), text))
    np.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-4)
    assert "arith.maximumf" in text and values.opt(text, "flash-attention").count("math.exp") == text.count("math.exp")
    assert "iter_args" in values.opt(text, "flash-attention")


ALONE = {
    "another axis": "s = q @ k.T\ne = np.exp(s - s.max(0, keepdims=True))\nreturn (e / e.sum(0, keepdims=True)) @ v",
    "scores that are returned": "s = q @ k.T\nreturn softmax(s) @ v, s",
    "weights that are returned": "w = softmax(q @ k.T)\nreturn w @ v, w",
    "a sum that is returned": "s = q @ k.T\nm = s.max(-1, keepdims=True)\ne = np.exp(s - m)\nl = e.sum(-1, keepdims=True)\n"
                              "return (e / l) @ v, m + np.log(l)",
}


def is_left_alone(text, why):
    """Checks that the pass changes nothing, and says why."""
    done, none = (warm.run("opt", "--remarks", f"--flash-attention{form}", "-", input=text.encode()) for form in ("", "=form=none"))
    assert why in done.stderr.decode()
    assert done.stdout.decode() == none.stdout.decode()


@pytest.mark.parametrize("form", ALONE, ids=lambda f: f.replace(" ", "-"))
def test_near_misses_are_left_alone_with_a_reason(tmp_path, form):
    is_left_alone(before(tmp_path, ALONE[form], SQUARE), "attention is not computed in blocks")


HEADS_ALONE = {
    "weights that are returned": ("w = softmax(q @ k.transpose(0, 1, 3, 2))\nreturn w @ v, w", 40),
    "few queries": ("return softmax(q @ k.transpose(0, 1, 3, 2)) @ v", 3),
    "a knob": ("s = q @ k.transpose(0, 1, 3, 2)\ne = np.exp(s)\nknob.fuse(e, never=True)\nreturn (e / e.sum(-1, keepdims=True)) @ v", 40),
}


@pytest.mark.parametrize("form", HEADS_ALONE, ids=lambda f: f.replace(" ", "-"))
def test_several_batch_dimensions_are_merged_again_where_attention_is_left_alone(tmp_path, form):
    body, queries = HEADS_ALONE[form]
    is_left_alone(before(tmp_path, body, [(2, 3, queries, 8), (2, 3, 40, 8), (2, 3, 40, 8)]), "attention is not computed in blocks")


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("size", [1, 17, 130, 517])
def test_lengths_of_one_head_keep_their_values(tmp_path, rng, size, dtype):
    after(tmp_path, rng, "return softmax(q @ k.T * np.float32(0.25)).astype(q.dtype) @ v", qkv(size, size, 16, 16), dtype, 2e-4 if dtype == "f32" else 0.03)


@pytest.mark.parametrize("body", ["return np.maximum(q @ k.T, 0) @ v", "return q @ k.T @ v", "return np.exp(q @ k.T) @ v"])
def test_other_chains_of_products_are_left_alone_without_a_word(tmp_path, body):
    text = before(tmp_path, body, SQUARE)
    done = warm.run("opt", "--remarks", "--flash-attention", "-", input=text.encode())
    assert "attention" not in done.stderr.decode() and "nkipy.layout" not in done.stdout.decode()


def test_the_option_leaves_every_attention_alone(tmp_path):
    text = before(tmp_path, "return softmax(q @ k.T) @ v", SQUARE)
    assert "nkipy.layout" not in values.opt(text, "flash-attention=form=none")
    with pytest.raises(values.Refused, match="the form of attention is blocks or none, not 'fast'"):
        values.opt(text, "flash-attention=form=fast")
