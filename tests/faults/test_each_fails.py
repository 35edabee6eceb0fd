"""R2: each allocation and each system call of the server fails once, place by place, while it does everything it can do.

Whatever fails, the request that meets it gets an answer or a closed connection, no process ends, the next request is served,
and at the end nothing is left over.  A place is a call with the callers above it (failing.c); the walk ends when a whole
round of requests meets no place that has not failed yet.

NKX_FAULT_SECONDS: of each kind of call.
"""
import http.client
import json
import mmap
import os
import pathlib
import signal
import struct
import subprocess
import tempfile
import time

import pytest

from support.audit import footprint
from support.figures import figure
from support.processes import alive, is_asleep
from support.server import ADD_ONE, FLOAT_INPUT, OURS, Server

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = float(os.environ.get("NKX_FAULT_SECONDS", "20"))
STUCK = -1
STARTING = ("fork", "socketpair", "mmap")
KINDS = {"allocations": 0, "open": 1, "read": 2, "write": 3, "fsync": 4, "fork": 5, "accept": 6, "mmap": 7, "socketpair": 8}
DEPTH = 6


class Control:
    """The struct of failing.c, shared with the server."""

    def __init__(self, path):
        self.path = path
        path.write_bytes(bytes(4096))
        with open(path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 4096)

    def arm(self, kind):
        self.map[0:4] = struct.pack("I", 1 << kind)

    def disarm(self):
        self.map[0:4] = bytes(4)

    armed = property(lambda self: struct.unpack_from("I", self.map, 0)[0])
    failed = property(lambda self: struct.unpack_from("I", self.map, 4)[0])
    overflow = property(lambda self: struct.unpack_from("I", self.map, 8)[0])
    last = property(lambda self: struct.unpack_from(f"{DEPTH}Q", self.map, 16))


def where(server, addresses):
    """The places of return addresses, as far as they lie in our program."""
    out = []
    for line in pathlib.Path(f"/proc/{server.pid}/maps").read_text().splitlines():
        if line.endswith("/bin/nkx") and " r-xp " in line:
            begin, end = (int(x, 16) for x in line.split()[0].split("-"))
            base = begin - int(line.split()[2], 16)
            inside = [hex(a - base - 1) for a in addresses if begin <= a < end]
            if inside:
                out = subprocess.run(["addr2line", "-fs", "-e", line.split()[-1], *inside], capture_output=True, text=True).stdout.split("\n")
    return " < ".join(f"{f} {at}" for f, at in zip(out[::2], out[1::2]))


@pytest.fixture(scope="module")
def library():
    with tempfile.TemporaryDirectory(prefix="nkx-test-") as place:
        path = pathlib.Path(place) / "failing.so"
        subprocess.run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path,
                        HERE / "failing.c", "-ldl"], check=True)
        yield path


class Scenario:
    """Requests of every kind, one at a time; each may be the one that fails."""

    def __init__(self, server):
        self.server, self.n = server, 0
        self.kept = self.ask("POST", "/api/v1/snippets", self.job(0))[1]
        self.key = self.kept["key"]

    def job(self, n):
        return {"source": ADD_ONE + f"# {n}\n", "inputs": FLOAT_INPUT}

    def ask(self, method, path, body=None, headers=OURS):
        """Status and body; 0 when the connection was closed."""
        c = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            c.request(method, path, json.dumps(body) if body is not None else None, headers)
            r = c.getresponse()
            data = r.read()
            return r.status, json.loads(data) if r.headers.get("Content-Type", "").startswith("application/json") and data else data
        except TimeoutError:
            return STUCK, None
        except (OSError, http.client.HTTPException, ValueError):
            return 0, None
        finally:
            c.close()

    def steps(self):
        self.n += 1
        key, kept = "/api/v1/results/" + self.key, self.kept
        yield "GET", "/healthz", None
        yield "GET", "/", None
        yield "POST", "/api/v1/compile", {**self.job(0)}  # from the cache
        yield "POST", "/api/v1/compile", {**self.job(self.n), "options": {"stop_after": "trace"}}
        yield "POST", "/api/v1/compile", {"source": "x = (\n"}
        yield "POST", "/api/v1/compile", {"source": 7}
        yield "GET", key, None
        yield "GET", key + "/stages/1", None
        yield "GET", key + "/diff?from=0&to=3", None
        yield "GET", key + "/all.tar.gz", None
        yield "GET", key + "/artifacts/source-map.json", None
        yield "GET", "/api/v1/results/" + "0" * 64, None
        yield "POST", "/api/v1/snippets", {**self.job(0), "title": "t", "view": {"version": 1}}
        yield "GET", kept["url"], None
        yield "GET", kept["raw_url"], None
        yield "GET", "/api/v1/snippets/" + kept["id"], None
        yield "GET", "/z/" + "A" * 22, None
        yield "GET", "/api/v1/pipeline", None
        yield "GET", "/api/v1/examples", None
        yield "GET", "/metrics", None
        yield "GET", "/readyz", None
        yield "GET", "/api/compilers", None
        yield "POST", "/api/compiler/nki/compile", {"source": ADD_ONE, "options": {"userArguments": "--input=f32[8,16]"}}
        yield "POST", "/api/shortener", {"sessions": [{"id": 1, "language": "nki", "source": ADD_ONE, "compilers": [{"id": "nki", "options": ""}]}]}


class Walk:
    """Rounds of requests, each with one call that fails; a server that ended is noted and started anew."""

    def __init__(self, library, control, name):
        self.library, self.control, self.name = library, control, name
        self.wrong, self.places, self.rounds = [], 0, 0
        self.start()

    def start(self):
        self.server = Server("--workers", "2", "--client-compiles", "0", "--client-jobs", "0", env={"LD_PRELOAD": str(self.library), "NKX_FAULTS": str(self.control.path)})
        self.service = self.server.pid
        self.scenario = Scenario(self.server)

    def step(self, kind, method, path, body):
        before = self.control.failed
        self.control.arm(kind)
        status, _ = self.scenario.ask(method, path, body)
        # until the server rests: what it does after the answer may be what fails
        self.server.wait_until(lambda: is_asleep(self.service) or not alive(self.service), "the server to rest", 30, poll_s=0.001)
        self.control.disarm()
        hit = self.control.failed - before
        if self.server.process.poll() is not None:
            self.wrong.append(f"the server ended in {method} {path}: {self.server.process.returncode} {self.server.log[-2:]}")
            return -1
        if status == STUCK:
            self.wrong.append(f"no answer to {method} {path} after {where(self.server, self.control.last)}")
        return hit

    def run(self, kind):
        end, quiet = time.monotonic() + SECONDS, 0
        while quiet < 2 and time.monotonic() < end and len(self.wrong) < 5:
            self.rounds += 1
            failed = 0
            if self.name in STARTING:  # what a zygote's start calls
                before = self.control.failed
                self.control.arm(kind)
                os.kill(self.server.zygote(), signal.SIGKILL)
                self.server.wait_until(lambda: self.server.health["idle"] > 0, "children of another zygote", 60)
                self.control.disarm()
                failed += self.control.failed - before
            for request in self.scenario.steps():
                hit = self.step(kind, *request)
                if hit < 0:
                    self.start()
                    break
                failed += hit
            self.places += failed
            quiet = 0 if failed else quiet + 1
        return quiet >= 2


@pytest.mark.parametrize("name", KINDS)
def test_a_call_that_fails_once_at_any_place_harms_nothing_else(library, tmp_path, name):
    control = Control(tmp_path / "control")
    walk = Walk(library, control, name)
    server = walk.server
    try:
        server.settle()
        before = footprint(server)
        is_whole = walk.run(KINDS[name])
        figure(f"{name}: {walk.places} places failed in {walk.rounds} rounds" + ("" if is_whole else ", not yet all"))
        assert walk.wrong == [] and not control.overflow
        server.wait_until(lambda: server.get("/readyz").status == 200, "readiness", 30)
        assert server.compile(ADD_ONE)["status"] == "ok"
        after = footprint(server)
        for f in (before, after):  # each place's error path costs no descriptor; a replaced zygote is no leak
            f.pop("zygote"), f.pop("zygote fds")
        own, now = before.pop("resident KiB"), after.pop("resident KiB")
        assert after == before
        assert now[0] < own[0] + (8 << 10), "memory is lost on error paths"
        assert server.stop() == 0
    finally:
        walk.server.kill()
