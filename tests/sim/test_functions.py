"""The functions that the simulator computes itself (compiler/sim/function.c), over all magnitudes, against float64."""
import math
import subprocess

import numpy as np
import pytest

from support.nisa_programs import Program
from support.paths import NKX
from support.simulator import Simulator

# the largest error in units in the last place of the exact value, rounded to f32
ULPS = {"exp": 2, "log": 2, "tanh": 4, "erf": 8}
EXACT = {"exp": np.exp, "log": np.log, "tanh": np.tanh, "erf": np.vectorize(math.erf, otypes=[np.float64])}


def arguments(rng):
    """128 x 1024: every exponent and sign, dense where the functions bend, and the special values."""
    bits = rng.integers(0, 2**32, 128 * 512, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = np.concatenate([rng.uniform(-110, 100, 128 * 256), rng.uniform(-6, 6, 128 * 256)]).astype(np.float32)
    x = np.concatenate([bits, near])
    special = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 88.72283, 88.72284, -87.33654, -103.97, -104, 0.625, 1e-45, 1.1754944e-38])
    x[:special.size] = special
    return x.reshape(128, 1024)


@pytest.mark.parametrize("op", ULPS)
def test_a_function_is_close_to_the_exact_value_everywhere(op):
    p = Program(np.random.default_rng(5))
    x = arguments(p.rng)
    src, dst = p.buffer(x, "f32"), p.buffer(x, "f32")
    one, zero = p.constant(1, "f32"), p.constant(-0.0, "f32")
    p.instr("activation", [p.whole("dst", dst, x.shape, "f32", "sbuf"), p.whole("src", src, x.shape, "f32", "sbuf"),
                           f"bias=f32 {zero}", f"scale=f32 {one}"], "scalar", op=op)
    p.give(dst, x.shape, "f32")
    with Simulator() as s, np.errstate(all="ignore"):
        (got,) = s.run(p.text(), p.arrays)
        exact = EXACT[op](x.astype(np.float64))
        want = exact.astype(np.float32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(got[np.isinf(want)], want[np.isinf(want)])
    finite = np.isfinite(want)
    ulp = np.spacing(np.maximum(np.abs(want[finite]), np.float32(1.1754944e-38))).astype(np.float64)
    error = np.abs(got[finite].astype(np.float64) - exact[finite]) / ulp
    worst = error.argmax()
    assert error[worst] <= ULPS[op], (op, error[worst], x[finite][worst], got[finite][worst], want[finite][worst])
    assert (np.signbit(got) == np.signbit(want))[finite & (want == 0)].all()


def test_a_reciprocal_and_arctan2_keep_the_sign_of_zero(tmp_path):
    source = tmp_path / "kernel.py"
    source.write_text("import numpy as np\ndef f(x, y):\n    return np.arctan2(x, y), 1.0 / y\n")
    y = np.tile(np.array([np.inf, -np.inf, 2, -2], np.float32), (4, 8))
    x = np.repeat(np.array([[0], [-0.0], [1], [-1]], np.float32), y.shape[1], axis=1)
    np.savez(tmp_path / "in.npz", x=x, y=y)
    subprocess.run([NKX, "run", source, "--inputs", tmp_path / "in.npz", "--save-outputs", tmp_path / "out.npz"], check=True, capture_output=True)
    with np.load(tmp_path / "out.npz") as out:
        for name, want in [("output0", np.arctan2(x, y)), ("output1", 1 / y)]:
            assert np.array_equal(np.signbit(out[name]), np.signbit(want)), name
            np.testing.assert_allclose(out[name], want, rtol=1e-6)
