"""Set-up of all suites: what they import (with pytest.ini), the servers that many tests ask, and the counts of long runs."""
import os
import pathlib
import sys
import zlib

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run beside each other; before NumPy is imported

pytest.register_assert_rewrite("support")  # a failing assert of a helper shows its values, too

from support.paths import BUILD, TESTS  # noqa: E402

sys.path.append(os.environ.get("NKX_PACKAGES", str(BUILD / "python")))  # the packages that kernels import, and the extension

from support import cases  # noqa: E402
from support.counts import pytest_runtest_logreport, pytest_unconfigure  # noqa: E402, F401


def pytest_configure(config):
    if "NKX_COSTS" in os.environ and not hasattr(config, "workerinput"):
        config.pluginmanager.register(cases.Costs(os.environ["NKX_COSTS"]))


def pytest_collection_modifyitems(config, items):
    """Leaves out the tests with the mark `nightly`, unless they are asked for, and of long tests all but a sample, if only
    that is asked for."""
    out = set(cases.left_out(items, TESTS)) if "NKX_SAMPLE" in os.environ else set()
    if "NKX_NIGHTLY" not in os.environ:
        out |= {i for i in items if i.get_closest_marker("nightly")}
    if out:
        config.hook.pytest_deselected(items=[i for i in items if i in out])
        items[:] = [i for i in items if i not in out]


@pytest.fixture
def rng(request):
    """A generator seeded by the test's name: every run draws the same numbers."""
    import numpy as np

    place = pathlib.Path(request.node.path).relative_to(TESTS)
    return np.random.default_rng(zlib.crc32(f"{place}::{request.node.name}".encode()))


# ---- servers: one of each for all tests of a process


@pytest.fixture(scope="session")
def server():
    yield from shared_server()


@pytest.fixture(scope="session")
def impatient():
    """Gives a job two seconds, so that hostile jobs end soon."""
    yield from shared_server("--job-timeout-ms", "2000")


def shared_server(*flags):
    from support.audit import stop_and_audit
    from support.server import Server

    s = Server(*flags)
    yield s
    if s.process.poll() is None:
        stop_and_audit(s)


@pytest.fixture(scope="session")
def postgres():
    from support.postgres import Postgres

    p = Postgres()
    yield p
    p.end()
