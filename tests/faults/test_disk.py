"""D4: a disk that is slow, read-only or failing.  What the store cannot do is said; compiles go on; nothing queues without
bound.  The disk is made so by strace's fault injection into the server's own calls."""
import contextlib
import time

import pytest

from support.clients import in_thread, share
from support.figures import figure
from support.server import ADD_ONE, Server
from support.strace import Strace

def share_new(server, n):
    return share(server, ADD_ONE + f"# {n}\n", options={"stop_after": "trace"})


@contextlib.contextmanager
def injected(tmp_path, *inject):
    """A server and a strace that changes its calls on the store as `inject` says; the strace's end() heals the disk."""
    with Server("--workers", "2", "--client-compiles", "0", "--client-jobs", "0", data=tmp_path) as server:
        server.settle()
        strace = Strace(server.pid, "-P", tmp_path / "nkx.sqlite", "-P", tmp_path / "nkx.sqlite-wal", *inject)
        try:
            yield server, strace
        finally:
            strace.end()


def test_a_slow_disk_slows_only_what_writes(tmp_path):
    """Each write and sync takes 500 ms more."""
    with injected(tmp_path, "-e", "trace=pwrite64,fdatasync,fsync", "-e", "inject=fdatasync,fsync:delay_enter=500000",
                  "-e", "inject=pwrite64:delay_enter=50000") as (s, _):
        writes = [in_thread(share_new, s, n) for n in range(12)]
        took = []
        for n in range(20):
            began = time.monotonic()
            assert s.compile(ADD_ONE + f"# meanwhile {n}\n")["status"] == "ok" and s.get("/healthz").status == 200
            took.append(time.monotonic() - began)
        statuses = [write().status for write in writes]
        figure(f"disk with 500 ms a sync: a compile meanwhile takes {1000 * sorted(took)[10]:.0f} ms, links {sorted(statuses)}")
        assert set(statuses) <= {201, 503} and 201 in statuses


@pytest.mark.parametrize("error, statuses", [("EIO", {500, 503, 507}), ("EROFS", {500, 503, 507})])
def test_a_disk_that_fails_is_reported_and_compiles_go_on(tmp_path, error, statuses):
    with injected(tmp_path, "-e", "trace=pwrite64,fdatasync,fsync", "-e", f"inject=pwrite64,fdatasync,fsync:error={error}") as (s, strace):
        for n in range(5):
            answer = share_new(s, n)
            assert answer.status in statuses and answer.error["message"], answer.body
        assert s.compile(ADD_ONE)["status"] == "ok" and s.get("/healthz").status == 200
        s.wait_until(lambda: s.get("/readyz").status == 503, "it to say so", 11)
        strace.end()
        s.wait_until(lambda: share_new(s, 9).status == 201, "recovery", 10)
        s.wait_until(lambda: s.get("/readyz").status == 200, "readiness", 10)
