"""The jail is tested from inside: kernels load the prober, a C library (support/prober.py)."""
import shutil

import pytest

from support.audit import stop_and_audit
from support.paths import BUILD
from support.prober import build_library
from support.server import Server


@pytest.fixture(scope="session")
def prober_dir(tmp_path_factory):
    """The kernels' packages with the prober beside them: what a job sees, it may load."""
    place = tmp_path_factory.mktemp("python")
    shutil.copytree(BUILD / "python", place, dirs_exist_ok=True)
    build_library("prober", place)
    return place


@pytest.fixture(scope="session")
def probed(prober_dir):
    """A server whose jobs can load the prober."""
    s = Server("--python-dir", str(prober_dir), "--workers", "4", "--job-timeout-ms", "10000")
    s.prober = prober_dir / "prober.so"
    s.settle()
    yield s
    if s.process.poll() is None:
        stop_and_audit(s)
