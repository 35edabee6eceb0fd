"""Counts over all tests of a run: what tests note with record_property, added up, as the very last line, which is what
`make nightly` shows of a set.  For a conftest:  from counts import pytest_runtest_logreport, pytest_unconfigure
"""
import collections

_totals = collections.Counter()
_seen = set()  # several conftests may hand on the same report


def pytest_runtest_logreport(report):
    if report.when == "call" and report.nodeid not in _seen:
        _seen.add(report.nodeid)
        _totals[report.outcome + " tests"] += 1
        for what, n in report.user_properties:
            _totals[what] += n


def pytest_unconfigure(config):
    if {"kernels", "faults"} & _totals.keys() and not hasattr(config, "workerinput"):
        print(", ".join(f"{n} {what}" for what, n in sorted(_totals.items())))
        _totals.clear()
