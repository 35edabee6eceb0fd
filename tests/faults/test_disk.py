"""D4: a disk that is slow, read-only or failing.  What the store cannot do is said; compiles go on; nothing queues without
bound.  The disk is made so by strace's fault injection into the server's own calls."""
import json
import subprocess
import threading
import time

import pytest
from api_conftest import ADD_ONE, FLOAT_INPUT, Server, figure

OURS = {"Content-Type": "application/json", "X-Nkx-Request": "1"}


def share(server, n):
    return server.request("POST", "/api/v1/snippets", json.dumps({"source": ADD_ONE + f"# {n}\n", "inputs": FLOAT_INPUT,
                                                                  "options": {"stop_after": "trace"}}), OURS)


class Injected:
    """A server under strace from its start on, which is how its threads are followed; inject: what strace is told."""

    def __init__(self, tmp_path, *inject):
        self.server = Server("--workers", "2", "--client-compiles", "0", "--client-jobs", "0", data=tmp_path)
        self.server.settle()
        self.strace = subprocess.Popen(["strace", "-f", "-qq", "-o", "/dev/null", "-P", tmp_path / "nkx.sqlite", "-P", tmp_path / "nkx.sqlite-wal",
                                        *inject, "-p", str(self.server.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        if self.strace.poll() is not None:
            said = self.strace.stderr.read()
            self.server.stop()
            pytest.skip(f"the server cannot be traced here: {said}")

    def heal(self):
        self.strace.terminate()
        self.strace.wait(30)

    def __enter__(self):
        return self.server

    def __exit__(self, *_):
        if self.strace.poll() is None:
            self.heal()
        if self.server.process.poll() is None:
            assert self.server.stop() == 0


def test_a_slow_disk_slows_only_what_writes(tmp_path):
    """Each write and sync takes 500 ms more."""
    with Injected(tmp_path, "-e", "trace=pwrite64,fdatasync,fsync", "-e", "inject=fdatasync,fsync:delay_enter=500000",
                  "-e", "inject=pwrite64:delay_enter=50000") as s:
        statuses, lock = [], threading.Lock()

        def write(n):
            status = share(s, n).status
            with lock:
                statuses.append(status)

        threads = [threading.Thread(target=write, args=(n,)) for n in range(12)]
        for t in threads:
            t.start()
        took = []
        for n in range(20):
            began = time.monotonic()
            assert s.compile(ADD_ONE + f"# meanwhile {n}\n")["status"] == "ok" and s.get("/healthz").status == 200
            took.append(time.monotonic() - began)
        for t in threads:
            t.join()
        figure(f"disk with 500 ms a sync: a compile meanwhile takes {1000 * sorted(took)[10]:.0f} ms, links {sorted(statuses)}")
        assert set(statuses) <= {201, 503} and 201 in statuses


@pytest.mark.parametrize("error, statuses", [("EIO", {500, 503, 507}), ("EROFS", {500, 503, 507})])
def test_a_disk_that_fails_is_said_and_compiles_go_on(tmp_path, error, statuses):
    injected = Injected(tmp_path, "-e", "trace=pwrite64,fdatasync,fsync", "-e", f"inject=pwrite64,fdatasync,fsync:error={error}")
    with injected as s:
        for n in range(5):
            answer = share(s, n)
            assert answer.status in statuses and answer.error["message"], answer.body
        assert s.compile(ADD_ONE)["status"] == "ok" and s.get("/healthz").status == 200
        s.wait_until(lambda: s.get("/readyz").status == 503, "it to say so", 11)
        injected.heal()
        s.wait_until(lambda: share(s, 9).status == 201, "recovery", 10)
        s.wait_until(lambda: s.get("/readyz").status == 200, "readiness", 10)
