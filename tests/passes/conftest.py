"""Numeric tests of passes: what a module computes before a pass, it computes after it."""
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance")]

pytest.register_assert_rewrite("values")  # a failing assert in there shows the values, too
import values  # noqa: E402


@pytest.fixture
def rng(request):
    """A generator seeded by the test's name: every run draws the same numbers."""
    import zlib

    import numpy as np

    return np.random.default_rng(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture(scope="session", autouse=True)
def _built():
    assert values.NKX.exists(), f"{values.NKX} is not built"
