"""The kernels' own modules, and the helpers of the conformance and pass tests."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance"), str(HERE.parent / "passes")]
