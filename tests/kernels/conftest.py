"""The kernels' own modules, and the helpers of the conformance and pass tests."""
import collections
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance"), str(HERE.parent / "passes")]

_totals = collections.Counter()


def pytest_runtest_logreport(report):
    if report.when == "call":
        _totals[report.outcome + " tests"] += 1
        for what, n in report.user_properties:
            _totals[what] += n


def pytest_unconfigure(config):
    """The matrix's counts as the very last line: what make nightly shows of it."""
    if "kernels" in _totals and not hasattr(config, "workerinput"):
        print(", ".join(f"{n} {what}" for what, n in sorted(_totals.items())))
