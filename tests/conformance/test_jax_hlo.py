"""HLO that JAX wrote for ordinary functions (jax_functions.py) through our readers, our print, XLA and linalg.

jax_hlo/ has the modules as text, and expected.npz the inputs and the results that XLA gave for them.  The unit test
program test_hlo_read_mlir reads them (and the protos that XLA makes of them), prints them and runs them as linalg.
"""
import os
import re
import subprocess

import numpy as np
import pytest

from support import jax_functions
from support.oracles import xla
from support.paths import BUILD

pytestmark = pytest.mark.xdist_group("jax_hlo")  # the modules are read once
PROGRAM = BUILD / "test/test_hlo_read_mlir"
TEXTS = {p.stem: p.read_text() for p in sorted(jax_functions.DIRECTORY.glob("*.hlo"))}
NAMES = list(TEXTS)
LAPACK = [name for name, text in TEXTS.items() if "lapack_" in text]  # XLA's bindings crash on these calls
EXPANDED = [name for name, text in TEXTS.items()
            if re.search(r"lapack_|rng-bit-generator|reduce-precision|bitcast-convert|complex\(|fft\(|c64\[", text)]


@pytest.fixture(scope="session")
def expected():
    return jax_functions.load_expected()


@pytest.fixture(scope="session")
def ran(tmp_path_factory, expected):
    directory = tmp_path_factory.mktemp("jax_hlo")
    for name in NAMES:
        text = (jax_functions.DIRECTORY / f"{name}.hlo").read_text()
        (directory / f"{name}.hlo").write_text(text)
        (directory / f"{name}.pb").write_bytes(xla.read_text(text).as_serialized_hlo_module_proto())
        for k, x in enumerate(expected[name][0]):
            (directory / f"{name}.in{k}").write_bytes(x.tobytes())
    done = subprocess.run([PROGRAM], env={**os.environ, "NKX_JAX_HLO": str(directory)}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return directory


def test_there_are_eighty_modules_and_each_has_a_function():
    assert len(NAMES) >= 80 and set(NAMES) == set(jax_functions.FUNCTIONS)


def assert_close(got, want):
    assert got.shape == want.shape and got.dtype == want.dtype
    got, want = jax_functions.as_reals(got), jax_functions.as_reals(want)
    narrow = want.dtype.name == "bfloat16"
    if not narrow and not np.issubdtype(want.dtype, np.floating):
        np.testing.assert_array_equal(got, want)
        return
    tolerance = 2e-2 if narrow else 3e-5
    got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_allclose(got, want, tolerance, tolerance * max(1, np.nanmax(abs(want), initial=0)))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LAPACK])
def test_our_print_is_the_same_program_to_xla(ran, expected, name):
    inputs, want = expected[name]
    got = xla.run_text((ran / f"{name}.txt").read_text(), inputs)
    for g, w in zip(got, want, strict=True):
        assert_close(g, w)


@pytest.mark.parametrize("name", EXPANDED)
def test_what_op_expander_writes_out_is_the_same_program_to_xla(ran, expected, name):
    inputs, want = ([jax_functions.as_reals(a) for a in arrays] for arrays in expected[name])
    got = xla.run_text((ran / f"{name}.expanded.txt").read_text(), inputs)
    for g, w in zip(got, want, strict=True):
        assert_close(g, w)


@pytest.mark.parametrize("name", NAMES)
def test_linalg_after_all_passes_computes_the_same(ran, expected, name):
    for k, want in enumerate(expected[name][1]):
        got = np.frombuffer((ran / f"{name}.out{k}").read_bytes(), want.dtype).reshape(want.shape)
        assert_close(got, want)


@pytest.mark.parametrize("name", NAMES)
def test_the_proto_is_the_same_module_as_the_text(ran, name):
    """Names may differ: XLA keeps apart what text calls alike."""
    text, proto = [re.sub(r"%[\w.-]+", "%", (ran / f"{name}{s}.txt").read_text()) for s in ("", ".pb")]
    lines = lambda t: sorted(re.sub(r"(neff_input_names|HloModule).*", "", line) for line in t.splitlines())
    assert lines(text) == lines(proto)
