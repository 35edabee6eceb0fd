"""Counts of random kernels at the end of a run."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from counts import pytest_runtest_logreport, pytest_unconfigure  # noqa: E402, F401
