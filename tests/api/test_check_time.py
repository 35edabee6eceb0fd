"""A check that the job has no time for: all stages come, say that they were not run, and the result is not kept."""
import resource
import subprocess

import pytest

from support.paths import NKX
from support.server import Server, codes

# products, which take long to run and no time to compile; of numbers that keep their size
SOURCE = "def k(x):\n    for _ in range(4):\n        x = x @ x * 0.0625\n    return x\n"
JOB = {"source": SOURCE, "inputs": [{"name": "x", "shape": [512, 512], "dtype": "float32"}], "options": {"check": True}}


def checks(result):
    return [stage["check"] for stage in result["kernels"][0]["stages"]]


@pytest.fixture(scope="module")
def cpu_s():
    """How much processor time all of it takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([NKX, "compile", "-", "--check", "--quiet", "--input", "x=512x512:float32"], input=SOURCE, text=True,
                   stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.fixture(scope="module")
def hasty(cpu_s):
    with Server("--workers", "1", "--job-timeout-ms", "300000", "--job-cpu-s", str(max(1, round(cpu_s * 2 / 3)))) as s:
        yield s


def test_stages_for_which_no_time_is_left_are_made_and_not_checked(hasty):
    n_stages = len(hasty.get("/api/v1/pipeline").json["stages"])
    for _ in range(2):  # the second is compiled anew
        result = hasty.post(JOB, cache=None).json
        assert result["status"] == "ok" and codes(result) == ["check-incomplete"] and not result.get("cached")
        first, *_, last, nisa = checks(result)
        assert first["status"] == "pass" and last["status"] == "skipped" and "past the time" in last["reason"]
        assert len(checks(result)) == n_stages
