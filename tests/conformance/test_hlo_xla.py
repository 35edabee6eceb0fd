"""Our HLO text and HloModuleProto, read and run by XLA.

The modules come from the unit test program test_hlo_dump ($BUILD/test), which writes each as a proto, as text with and
without metadata, and what the HLO passes make of it.
"""
import math
import os
import re
import subprocess

import ml_dtypes  # noqa: F401  gives NumPy bfloat16
import numpy as np
import pytest

from support.oracles import xla
from support.paths import BUILD, ROOT

PROGRAM = BUILD / "test/test_hlo_dump"
NAMES = re.findall(r"\bM\((\w\w+)\)", (ROOT / "tests/unit/test_hlo_dump.c").read_text())


@pytest.fixture(scope="session")
def dump(tmp_path_factory):
    directory = tmp_path_factory.mktemp("hlo")
    subprocess.run([PROGRAM], check=True, env={**os.environ, "NKX_HLO_DUMP_DIR": str(directory)}, capture_output=True)
    return directory


def test_the_list_of_modules_is_the_whole_list(dump):
    assert len(NAMES) >= 40
    assert {p.name for p in dump.glob("*.plain.txt")} == {n + ".plain.txt" for n in NAMES}


@pytest.mark.parametrize("suffix", ["", ".opt"])
@pytest.mark.parametrize("name", NAMES)
def test_text_and_proto_are_the_same_module(dump, name, suffix):
    text = xla.read_text((dump / f"{name}{suffix}.txt").read_text())
    proto = xla.read_proto((dump / f"{name}{suffix}.pb").read_bytes())
    assert xla.canonical(text) == xla.canonical(proto)


@pytest.mark.parametrize("name", NAMES)
def test_text_without_metadata_is_the_same_module_otherwise(dump, name):
    plain = xla.read_text((dump / f"{name}.plain.txt").read_text())
    proto = xla.read_proto((dump / f"{name}.pb").read_bytes())
    assert re.sub(r"\n+", "\n", xla.canonical(plain, metadata=False)) == re.sub(
        r"\n+", "\n", without_stack_frames(xla.canonical(proto, metadata=False))
    )


def without_stack_frames(text):
    return re.sub(r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n(\d+ .*\n)*", "", text, flags=re.M)


def test_xla_reads_the_metadata_and_the_stack_frames(dump):
    text = xla.read_proto((dump / "metadata.pb").read_bytes()).to_string()
    assert 'op_name="hlo__exponential"' in text
    assert "source_line=3 source_end_line=3 source_column=10 source_end_column=15 stack_frame_id=2" in text
    assert '2 "helper"' in text
    assert "2 {file_location_id=2 parent_frame_id=2}" in text  # the text form says parent + 1


def test_xla_reads_the_aliases(dump):
    text = xla.read_proto((dump / "alias_two.pb").read_bytes()).to_string()
    assert "input_output_alias={ {1}: (0, {}, must-alias), {2}: (1, {}, must-alias) }" in text
    assert 'frontend_attributes={neff_input_names="k.must_alias_input"}' in text
    assert 'frontend_attributes={neff_output_names="output0,k,v"}' in text
    text = xla.read_proto((dump / "alias_one.pb").read_bytes()).to_string()
    assert "input_output_alias={ {}: (0, {}, must-alias) }" in text


# --- values -----------------------------------------------------------------------------------------------------


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def reduces(x, p):
    return [x.sum(1), x.max((0, 2)), x.min(), x.prod(2), x, p.any(), p.all()]


def pads(x):
    a = np.pad(x, ((1, 2), (0, 0)), constant_values=0.5)
    b = np.full((5, 10), 0.5, x.dtype)
    b[::2, ::3] = x
    b = np.pad(b, ((0, 2), (3, 0)), constant_values=0.5)[1:, :-2]
    return [a, b]


def gather_windows(x, i):
    out = np.empty((3, 3, 2), x.dtype)
    for k in range(3):
        c, a = np.clip(i[0, k], 0, 3), np.clip(i[1, k], 0, 3)
        out[:, k, :] = x[a : a + 3, 0, c : c + 2]
    return out


def scatter_rows(x, i, u):
    x = x.copy()
    x[i[:, 0]] = u
    return x


def dynamic(x, u, i, j):
    y = x.copy()
    a, b = np.clip(i, 0, 4), np.clip(j, 0, 1)
    y[a : a + 2, b : b + 3] = u
    return [x[a : a + 2, b : b + 3], y]


def while_grows(x):
    while x < 1000:
        x = x + x * x + 1
    return x


def ordering(x):
    down = np.argsort(-x, 1, kind="stable").astype(np.int32)
    return [np.sort(x, 0), -np.sort(-x, 1), down, x[:, ::-1], -np.sort(-x, 1)[:, :3], down[:, :3]]


EXPECTED = {
    "ordering": ordering,
    "limits": lambda x, low, high: [np.clip(x, low, 1), np.clip(x, -1, high), x.view(np.int32)],
    "softmax": softmax,
    "reduces": reduces,
    "pads": pads,
    "gather_windows": gather_windows,
    "gather_rows": lambda x, i: x[i[:, 0]],
    "dynamic": dynamic,
    "call_twice": lambda x, y: (x - y) - (y - x),
    "while_sum": lambda x: [x.sum(0), np.int32(6)],
    "while_nested": lambda x: x + 12,
    "while_grows": while_grows,
    "choose_pred": lambda p, x: np.exp(x) if p else -x,
    "choose_index": lambda i, x: [-x, np.ceil(x), x + x][i if 0 <= i < 3 else 2],
    "tuples": lambda x, y: [y, x],
    "select_max": np.maximum,
    "compare_all": lambda x, y: [x == y, x != y, x >= y, x > y, x <= y, x < y],
    "dot_2d": np.matmul,
    "dot_batch": lambda x, y: np.einsum("abik,bajk->abij", x, y),
    "dot_widening": lambda x, y: x.astype(np.float32) @ y.astype(np.float32),
    "dot_vectors": np.dot,
    "dot_empty": np.matmul,
    "broadcasts": lambda x, s: [
        np.broadcast_to(x[:, None], (3, 4)),
        np.broadcast_to(x, (2, 4, 3)),
        np.full((2, 2), s),
        s,
    ],
    "reshapes": lambda x, one: [x.reshape(12), x.reshape(2, 1, 3, 2), one.reshape(())],
    "transposes": lambda x, s: [x.transpose(2, 0, 1), x.transpose(0, 2, 1), s],
    "slices": lambda x: [x[1:9:3], x[4:4, 2:5:2]],
    "concatenates": lambda x, y, z: np.concatenate([x, y, z, x], 1),
    "iotas": lambda: [
        np.tile(np.arange(3, dtype=np.int32)[:, None], 4),
        np.tile(np.arange(4, dtype=np.float32), (3, 1)),
        np.arange(7, dtype=np.uint8),
    ],
    "no_inputs": lambda: np.full((2, 3), 7, np.float32),
    "identity_0d": lambda x: x,
    "constants_empty": lambda: [np.zeros(0, np.float32), np.zeros((2, 0), np.int32), np.zeros((0, 2, 3), bool)],
    "bits_f16": lambda: np.arange(65536, dtype=np.uint16).view(np.float16).reshape(16, -1),
    "bits_bf16": lambda: np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16).reshape(16, -1),
    "bits_e5m2": lambda: np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e5m2).reshape(16, -1),
    "bits_e4m3fn": lambda: np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).reshape(16, -1),
    "elementwise_s32": lambda x, y: [
        abs(x), -x, np.sign(x), ~x, x, [[bin(v).count("1") for v in r] for r in x],
        [[32 - int(v).bit_length() for v in r] for r in x], x + y, x - y, x * y,
        np.where(y == 0, -1, x // np.where(y == 0, 1, y)), np.where(y == 0, x, x % np.where(y == 0, 1, y)),
        x**y, np.maximum(x, y), np.minimum(x, y), x & y, x | y, x ^ y, x << y, x >> y, x >> y,
    ],
    "elementwise_f32": lambda x, y: [
        abs(x), -x, np.exp(x), np.log(x), np.sqrt(x), np.sin(x), np.cos(x), np.tanh(x), np.ceil(x), np.floor(x),
        np.sign(x), x, 1 / np.sqrt(x), np.cbrt(x), np.tan(x), np.vectorize(math.erf)(x), 1 / (1 + np.exp(-x)),
        np.log1p(x), np.expm1(x), np.rint(x), np.copysign(np.floor(abs(x) + 0.5), x), x + y, x - y, x * y, x / y, np.fmod(x, y), x**y, np.maximum(x, y), np.minimum(x, y),
        np.arctan2(x, y),
    ],
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["", ".opt"])
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_xla_computes_what_numpy_computes(dump, name, suffix):
    data = (dump / f"{name}{suffix}.pb").read_bytes()
    inputs = xla.random_inputs(data)
    with np.errstate(all="ignore"):
        want = EXPECTED[name](*inputs)
    got = xla.run(data, inputs)
    want = want if isinstance(want, list) else [want]
    assert len(got) == len(want)
    for g, w in zip(got, want, strict=True):
        assert g.shape == np.shape(w)
        if name.startswith("bits_"):
            with np.errstate(invalid="ignore"):  # signalling NaNs
                g, w = g.astype(np.float64), w.astype(np.float64)
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-6)


def test_a_scatter_assigns_rows(dump):
    data = (dump / "scatter_rows.pb").read_bytes()
    x, _, u = xla.random_inputs(data)
    i = np.array([[4], [1]], np.int32)
    np.testing.assert_array_equal(xla.run(data, [x, i, u])[0], scatter_rows(x, i, u))


NARROW = {"float64": np.float32, "int64": np.int32, "uint64": np.uint32}


def narrowed(x):
    """As convert-legalization leaves 64-bit values: integers that do not fit saturate."""
    t = NARROW.get(x.dtype.name)
    if t is None:
        return x
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(t) if t == np.float32 else np.clip(x, np.iinfo(t).min, np.iinfo(t).max).astype(t)


# one device has no groups, and nobody to call
@pytest.mark.parametrize("name", sorted(set(NAMES) - {"collectives", "custom"}))
def test_passes_keep_every_value(dump, name):
    before, after = [(dump / f"{name}{s}.pb").read_bytes() for s in ("", ".opt")]
    inputs = xla.random_inputs(before, seed=1)
    legal = [x.astype(dtype) for x, (_, dtype) in zip(inputs, xla.parameters(after), strict=True)]
    for b, a in zip(xla.run(before, inputs), xla.run(after, legal), strict=True):
        with np.errstate(invalid="ignore"):  # signalling NaNs
            if a.dtype == b.dtype:
                np.testing.assert_array_equal(b.astype(np.float64), a.astype(np.float64))
                continue
            want = narrowed(b)
            assert a.dtype == want.dtype
            np.testing.assert_allclose(want.astype(np.float64), a.astype(np.float64), rtol=1e-5)
