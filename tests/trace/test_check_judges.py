"""The check calls right kernels right and wrong ones wrong.

A wrong kernel is planted by asking for the type of an array: NumPy's run computes one thing, the trace another.
"""
import json
import subprocess
import textwrap

import pytest

from support.compiler import compile
from support.paths import NKX


def verdicts(body, shapes, stop=None):
    """The check of each stage of a kernel, and the result."""
    source = "import numpy as np\nimport ml_dtypes\n" + textwrap.dedent(body)
    inputs = [a for name, shape in shapes.items() for a in ("--input", f"{name}={shape}")]
    result = compile(source, *inputs, *(["--stop-after", stop] if stop else []), check=True)
    assert result["kernels"], result["diagnostics"]
    return [(s["name"], s["check"]) for s in result["kernels"][0]["stages"]], result


RIGHT = {
    "softmax of normed bfloat16 logits": ("""
        def f(x, w):
            m = x.mean(-1, keepdims=True)
            v = ((x - m) ** 2).mean(-1, keepdims=True)
            z = ((x - m) / np.sqrt(v + 1e-5)) @ w
            e = np.exp(z - z.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)
        """, {"x": "256x512:bf16", "w": "512x256:bf16"}),
    "a bfloat16 product read as float32": ("""
        def f(a, b):
            return (a @ b).astype(np.float32)
        """, {"a": "64x96:bf16", "b": "96x64:bf16"}),
    "bfloat16 that is widened and cancelled": ("""
        def f(x, y):
            s = x * y
            return s.astype(np.float32) - (x.astype(np.float32) * y.astype(np.float32))
        """, {"x": "64x64:bf16", "y": "64x64:bf16"}),
    "argmax of a bfloat16 product with ties": ("""
        def f(x, y):
            return np.argmax(x * y, axis=1)
        """, {"x": "64x256:bf16", "y": "64x256:bf16"}),
    "a comparison of rounded bfloat16": ("""
        def f(x, y):
            return (x + y) * 0.5 > x
        """, {"x": "128x128:bf16", "y": "128x128:bf16"}),
    "a choice by rounded bfloat16": ("""
        def f(x, y):
            return np.where(x + y > 0.5, x, y)
        """, {"x": "128x128:bf16", "y": "128x128:bf16"}),
    "bfloat16 quantised to int8": ("""
        def f(x):
            return np.rint(x * 127).astype(np.int8)
        """, {"x": "128x128:bf16"}),
    "a scaled fp8 product": ("""
        def f(a, b):
            p = a.astype(ml_dtypes.float8_e4m3) @ b.astype(ml_dtypes.float8_e4m3)
            return p.astype(ml_dtypes.bfloat16) * 0.5
        """, {"a": "64x64:bf16", "b": "64x64:bf16"}),
    "floor of a product": ("""
        def f(a, b):
            return np.floor((a @ b) * 1000).astype(np.int32)
        """, {"a": "128x256:f32", "b": "256x128:f32"}),
    "softmax quantised to uint8": ("""
        def f(x):
            e = np.exp(x - np.max(x, axis=-1, keepdims=True))
            return np.rint(e / np.sum(e, axis=-1, keepdims=True) * 255).astype(np.uint8)
        """, {"x": "1024x1024:f32"}),
    "a sum of integers that wraps around": ("""
        def f(x, y):
            return np.minimum(np.minimum(np.sum(x, axis=0, keepdims=True), 5) * y, np.prod(x[:2], axis=0))
        """, {"x": "5x4:i32", "y": "5x4:i32"}),
    "an assertion of the type": ("""
        def f(x):
            assert x.dtype == ml_dtypes.bfloat16
            return x + 1.0
        """, {"x": "32x32:bf16"}),
    "a pre-norm layer in bfloat16": ("""
        def norm(x, w):
            return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5) * w
        def f(x, w, q, k, v, up, gate, down):
            h = norm(x, w)
            s = (h @ q) @ (h @ k).T * 0.0625
            e = np.exp(s - np.max(s, axis=-1, keepdims=True))
            x = x + (e / np.sum(e, axis=-1, keepdims=True)) @ (h @ v)
            h = norm(x, w)
            g = h @ gate
            return x + (g / (1 + np.exp(-g)) * (h @ up)) @ down
        """, {"x": "8x256:bf16", "w": "256:bf16", "q": "256x256:bf16", "k": "256x256:bf16", "v": "256x256:bf16",
              "up": "256x128:bf16", "gate": "256x128:bf16", "down": "128x256:bf16"}),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_passes_at_every_stage(name):
    body, shapes = RIGHT[name]
    checks, result = verdicts(body, shapes)
    assert {c["status"] for _, c in checks} == {"pass"}, [(n, c) for n, c in checks if c["status"] != "pass"][:2]
    assert len(checks) > 40, result["diagnostics"]


WRONG = {
    "masked scores that are scaled": ("""
        def f(a, b):
            s = a @ b
            if not isinstance(a, np.ndarray):
                s = s * 1.5 + 3
            return np.where(np.tril(np.ones((64, 64), dtype=bool)), s, -1e9)
        """, {"a": "64x32:f32", "b": "32x64:f32"}),
    "floor and 7": ("""
        def f(x):
            y = np.floor(x * 10000)
            return y if isinstance(x, np.ndarray) else y + 7
        """, {"x": "128x128:f32"}),
    "a logarithm of what is negative around zero": ("""
        def f(x):
            y = np.log(x - 2)
            return y if isinstance(x, np.ndarray) else y * 3 + 1
        """, {"x": "64x64:f32"}),
    "a minimum of integers that small ones do not reach": ("""
        def f(a):
            return np.minimum(a, 100) if isinstance(a, np.ndarray) else np.abs(np.minimum(a, 3))
        """, {"a": "64x64:i32"}),
    "a clip at six": ("""
        def f(x):
            return np.clip(x, -6, 6) if isinstance(x, np.ndarray) else x * 1.0
        """, {"x": "64x64:f32"}),
    "results that are all small": ("""
        def f(x):
            y = x * 1e-7
            return y if isinstance(x, np.ndarray) else y * 1.5
        """, {"x": "64x64:f32"}),
    "a small row among large ones": ("""
        def f(x):
            y = x * np.array([[1e6], [1.0]], dtype=np.float32)
            return y if isinstance(x, np.ndarray) else y + np.array([[0.0], [0.5]], dtype=np.float32)
        """, {"x": "2x64:f32"}),
    "one element of many": ("""
        def f(x):
            y = np.rint(x * 100)
            return y if isinstance(x, np.ndarray) else y + np.eye(64, dtype=np.float32)[5]
        """, {"x": "64x64:f32"}),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_fails_at_the_trace(name):
    body, shapes = WRONG[name]
    checks, result = verdicts(body, shapes, stop="trace")
    assert checks[0][1]["status"] == "fail"
    (error,) = [d for d in result["diagnostics"] if d["code"] == "check-failed"]
    assert error["stage"] == "trace" and "first at [" in error["message"]


NOT_JUDGED = {
    "unseeded random numbers": ("""
        def f(x):
            kept = np.random.rand(64, 64).astype(np.float32) > 0.5
            return np.where(kept, x * 2, 0.0) if isinstance(x, np.ndarray) else x * 0 + 4
        """, {"x": "64x64:f32"}, "random numbers"),
    "NaN everywhere": ("""
        def f(x):
            y = np.log(-x * x - 1)
            return y if isinstance(x, np.ndarray) else y * 3 + 1
        """, {"x": "64x64:f32"}, "100 % of the results are NaN or infinite"),
}


@pytest.mark.parametrize("name", NOT_JUDGED)
def test_a_kernel_without_a_reference_is_not_judged_and_the_check_says_so(name):
    body, shapes, reason = NOT_JUDGED[name]
    checks, _ = verdicts(body, shapes, stop="hlo-to-linalg")
    assert {c["status"] for _, c in checks} == {"skipped"}
    assert all(reason in c["reason"] for _, c in checks)


def test_a_failure_names_the_first_wrong_element():
    body = """
        def f(x):
            y = x + 1.0
            return y if isinstance(x, np.ndarray) else np.concatenate([y[:3], y[3:] * 2], axis=0)
        """
    checks, _ = verdicts(body, {"x": "8x16:f32"}, stop="trace")
    first = checks[0][1]["first_wrong"]
    assert first["output"] == "output0" and first["index"] == [3, 0]
    assert first["got"] == pytest.approx(2 * first["expected"], rel=1e-5)


# right for the usual inputs, which are positive or not negative, and wrong for others
SUMS = {
    "that are infinite for a zero": ("np.cumsum(1 / x, axis=-1)", "np.cumsum(1 / np.abs(x), axis=-1)"),
    "that are not defined for a negative number": ("np.cumsum(np.log(x), axis=-1)", "np.cumsum(np.log(x) + (x > 9), axis=-1)"),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_running_sum_of_terms_is_judged_on_a_second_set_of_inputs(name):
    right, wrong = SUMS[name]
    checks, _ = verdicts(f"""
        def f(x):
            return {right}
        """, {"x": "16x32:f32"})
    assert {c["status"] for _, c in checks} == {"pass"} and not any("note" in c for _, c in checks)
    checks, result = verdicts(f"""
        def f(x):
            return {right} if isinstance(x, np.ndarray) else {wrong}
        """, {"x": "16x32:f32"}, stop="trace")
    assert checks[0][1]["status"] == "fail", result["diagnostics"]


def test_a_result_on_the_usual_inputs_only_says_so():
    checks, _ = verdicts("""
        def f(x):
            return np.exp(np.square(x) * 50)
        """, {"x": "16x32:f32"}, stop="hlo-to-linalg")
    assert {c["status"] for _, c in checks} == {"pass"}
    assert all("usual inputs only" in c["note"] for _, c in checks)


def test_the_largest_errors_are_those_of_all_elements():
    checks, _ = verdicts("""
        def f(x):
            y = np.abs(x) + 1.0
            return y if isinstance(x, np.ndarray) else y * np.float32(1 + 2.0**-16)
        """, {"x": "16x32:f32"}, stop="trace")
    assert checks[0][1]["status"] == "pass"
    assert checks[0][1]["max_rel_err"] == pytest.approx(2.0**-16, rel=0.02)
    assert 2.0**-16 < checks[0][1]["max_abs_err"] < 9 * 2.0**-16 * 1.02


def reproduce(path):
    return subprocess.run([NKX, "reproduce", str(path)], capture_output=True, text=True, timeout=60)


def test_a_failed_check_leaves_a_reproducer_that_fails_again(tmp_path):
    body, shapes = WRONG["floor and 7"]
    source = "import numpy as np\n" + textwrap.dedent(body)
    path = tmp_path / "r.json"
    inputs = [a for name, shape in shapes.items() for a in ("--input", f"{name}={shape}")]
    result = compile(source, *inputs, "--reproducer", str(path), "--stop-after", "trace")
    assert [a["name"] for a in result["artifacts"]] == ["f/reproducer.json"]
    assert json.loads(path.read_text())["pass"] == "trace"
    done = reproduce(path)
    assert done.returncode == 1 and done.stdout.startswith("after trace: fail (max abs 7"), done


def test_a_check_that_passes_writes_no_reproducer(tmp_path):
    path = tmp_path / "r.json"
    compile("def f(x):\n    return x + 1.0\n", "--input", "x=8x8:f32", "--reproducer", str(path), "--stop-after", "trace")
    assert not path.exists()


def test_a_file_that_is_no_reproducer_is_refused(tmp_path):
    path = tmp_path / "r.json"
    for text in ("", "{}", "[1]", '{"kernel": "f", "target": "trn2", "index": 99}', '{"kernel": "f", "target": "trn2", "index": 3}'):
        path.write_text(text)
        assert reproduce(path).returncode == 1


SHAPES_ONLY = {
    "zeros": "np.zeros((16, 32), np.float32)",
    "ones": "np.ones((16, 32), np.float32)",
    "an array that is not in C order": "np.full((32, 16), 2, np.float32).T",
}


@pytest.mark.parametrize("name", SHAPES_ONLY)
def test_an_array_of_one_value_tells_a_shape_and_values_are_drawn_for_it(name):
    checks, result = verdicts(f"""
        def f(x):
            y = x * 2
            return y if isinstance(x, np.ndarray) else np.where(x == np.mean(x), y, 3.0)
        f({SHAPES_ONLY[name]})
        """, {}, stop="trace")
    assert checks[0][1]["status"] == "fail", result["diagnostics"]


def test_other_arrays_of_a_call_are_the_inputs():
    checks, _ = verdicts("""
        def f(x, n):
            y = x * n
            return y if isinstance(x, np.ndarray) else np.where(x == 7, y + 1, y)
        f(np.arange(512, dtype=np.float32).reshape(16, 32), np.full((1,), 3, np.float32))
        """, {}, stop="trace")
    first = checks[0][1]["first_wrong"]
    assert first["index"] == [0, 7] and (first["expected"], first["got"]) == (21, 22)


def test_indices_of_one_value_are_taken_where_no_others_fit():
    checks, _ = verdicts("""
        def f(table, i):
            if isinstance(i, np.ndarray):
                assert i.max() < 2
            return np.take(table, i, axis=0)
        f(np.zeros((2, 32), np.float32), np.zeros((64,), np.int32))
        """, {}, stop="hlo-to-linalg")
    assert {c["status"] for _, c in checks} == {"pass"}
