"""A server with shortened limits, so that what never ends by itself ends soon; the checks are those of the long ones."""
import importlib.util
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("api_conftest", HERE.parent / "api/conftest.py")
api = importlib.util.module_from_spec(spec)
sys.modules["api_conftest"] = api
spec.loader.exec_module(api)
sys.path.insert(0, str(HERE))

WALL_MS, CPU_S, AT_ONCE = 2000, 1, 6


@pytest.fixture
def patient():
    """Makes a server with the usual limits, for whom a busy machine kept from its verdict in the short ones."""
    started = []

    def start():
        started.append(api.Server("--workers", "1", "--job-timeout-ms", "120000", "--job-cpu-s", "10", "--job-resident-mib", "256"))
        return started[0]
    yield start
    for s in started:
        assert s.stop() == 0


@pytest.fixture(scope="session")
def short():
    s = api.Server("--cache-mib", "1", "--job-timeout-ms", str(WALL_MS), "--job-cpu-s", str(CPU_S), "--workers", str(AT_ONCE),
                   "--job-resident-mib", "256", "--zygote-jobs", "1000000")
    s.settle()
    yield s
    if s.process.poll() is None:
        api.stop_and_audit(s)
