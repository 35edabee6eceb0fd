"""The kernels' own modules, the helpers of the conformance and pass tests, and counts at the end of a run."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance"), str(HERE.parent / "passes")]
from counts import pytest_runtest_logreport, pytest_unconfigure  # noqa: E402, F401
