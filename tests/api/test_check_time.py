"""A check that the job has no time for: all stages come, say that they were not run, and the result is not kept."""
import re

import pytest
from conftest import Server, codes

# products, which take long to run and no time to compile; of numbers that keep their size
SOURCE = "def k(x):\n    for _ in range(6):\n        x = x @ x * 0.03125\n    return x\n"
JOB = {"source": SOURCE, "inputs": [{"name": "x", "shape": [1024, 1024], "dtype": "float32"}], "options": {"check": True}}


def checks(result):
    return [stage["check"] for stage in result["kernels"][0]["stages"]]


@pytest.fixture(scope="module")
def patient():
    """(the result with all the time that it takes, how many seconds that is)"""
    s = Server("--workers", "1", "--job-timeout-ms", "300000", "--job-cpu-s", "300")
    result = s.post(JOB).json
    took = [int(found[1]) for found in (re.search(r"job_done .*wall_ms=(\d+)", line) for line in s.log) if found]
    assert s.stop() == 0
    return result, max(took) / 1000


@pytest.fixture(scope="module")
def hasty(patient):
    s = Server("--workers", "1", "--job-timeout-ms", "300000", "--job-cpu-s", str(max(1, int(patient[1] / 2))))
    yield s
    assert s.stop() == 0


def test_stages_that_there_is_no_time_for_are_made_and_not_run(patient, hasty):
    assert codes(patient[0]) == [] and {check["status"] for check in checks(patient[0])[:-1]} == {"pass"}
    for _ in range(2):  # the second is compiled anew
        result = hasty.post(JOB, cache=None).json
        assert result["status"] == "ok" and codes(result) == ["check-incomplete"] and not result.get("cached")
        first, *_, last, nisa = checks(result)
        assert first["status"] == "pass" and last["status"] == "skipped" and "past the time" in last["reason"]
        assert len(checks(result)) == len(checks(patient[0]))
