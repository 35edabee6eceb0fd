"""A real server on a free port, as a child of the test, and how it is asked.

    with Server("--workers", "1") as s:
        s.compile(ADD_ONE)["status"]

At the end of the block it is stopped and must have ended well; after a failure it is killed.
"""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading

from support.paths import NKX
from support.processes import children, program
from support.wait import wait_until, wait_until_steady

os.environ.setdefault("NKX_CONFINE", "as-root")  # pytest's directories, where the data often are, are root's alone

ADD_ONE = "import numpy as np\n\n\ndef add_one(x):\n    return x + 1\n"
FLOAT_INPUT = [{"name": "x", "shape": [8, 16], "dtype": "float32"}]
JOB = {"source": ADD_ONE, "inputs": FLOAT_INPUT}  # small, but through every stage: a dozen operations at the end
JSON = {"Content-Type": "application/json"}
OURS = {**JSON, "X-Nkx-Request": "1"}  # what a request that changes something must carry
CSP = ("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
       "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
       "require-trusted-types-for 'script'")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Answer:
    def __init__(self, response, body):
        self.status = response.status
        self.headers = response.headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]


class Peer:
    """Something that answers HTTP at 127.0.0.1:self.port: a server, or a proxy before servers."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def connect(self, timeout=300, address=None):
        """A connection; address: the client's own (127.x.y.z), where clients are distinguished by that."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout, source_address=address and (address, 0))

    def request(self, method, path, body=None, headers=None, address=None):
        """body: bytes, text, or what becomes JSON."""
        c = self.connect(address=address)
        try:
            c.request(method, path, json.dumps(body) if isinstance(body, (dict, list)) else body, headers or {})
            r = c.getresponse()
            return Answer(r, r.read())
        finally:
            c.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def post(self, body, accept="application/json", content_type="application/json", cache="no-store"):
        """Compiles; without the cache unless `cache` says otherwise, since most tests are about the run."""
        if not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        headers = {"Accept": accept, "Content-Type": content_type}
        if cache:
            headers["Cache-Control"] = cache
        return self.request("POST", "/api/v1/compile", body, headers)

    def compile(self, source, inputs=FLOAT_INPUT, cache="no-store", **fields):
        answer = self.post({"source": source, "inputs": inputs, **fields}, cache=cache)
        assert answer.status == 200, answer.body
        return answer.json

    def raw(self, data, timeout=10):
        """Sends bytes as they are; returns what came until the server closed or was silent for the timeout."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as s:
            s.sendall(data)
            out = b""
            try:
                while piece := s.recv(65536):
                    out += piece
            except (TimeoutError, ConnectionResetError):
                pass
            return out

    def answers(self, path="/healthz"):
        try:
            return self.get(path).status == 200
        except OSError:
            assert self.process.poll() is None, "it ended while starting"
            return False


class Beside(Peer):
    """A proxy as a process of the test, with files in ._dir; at the end of a `with` block it has ended."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.process.terminate()
        self.process.wait(30)
        self._dir.cleanup()


class Server(Peer):
    """`nkx serve`.  Everything that it logs is in .log; .process is the launcher, .pid the service."""

    wait_until = staticmethod(wait_until)

    def __init__(self, *flags, data=None, healthy=True, env=None):
        self.log = []
        self._own_data = None if data else tempfile.TemporaryDirectory(prefix="nkx-test-")
        self.data = pathlib.Path(data or self._own_data.name)
        self.process = subprocess.Popen([NKX, "serve", "--port", "0", "--data-dir", self.data, *flags], stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})})
        self.port = self._wait_for_port()
        threading.Thread(target=self._read_log, daemon=True).start()
        if healthy:
            wait_until(self.answers, "a healthy server", 120)

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if self.process.poll() is not None:
            return  # the test ended it
        if failure:
            self.kill()
        else:
            status = self.stop()
            assert status == 0, f"it ended with {status}:\n" + "".join(self.log[-40:])

    def _wait_for_port(self):
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"serving.*url\W+http://[^:]+:(\d+)", line):
                return int(found[1])
        raise RuntimeError("the server did not start:\n" + "".join(self.log))

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line)

    def stop(self):
        """Asks it to end, which finishes what runs; returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def wait_for_log(self, *words, seconds=30):
        """Waits for a line with all these words.  A line of the log may come a moment after the answer."""
        wait_until(lambda: any(all(w in line for w in words) for line in list(self.log)), f"{words} in the log", seconds)

    # ---- its processes

    @property
    def launcher(self):
        return self.process.pid

    @property
    def pid(self):
        """The service: the launcher's child that is no zygote."""
        return next(p for p in children(self.launcher) if program(p) == "nkx")

    def standby(self):
        """The launcher that stands by, a copy of the first; None until it is there."""
        return next((p for p in children(self.launcher) if program(p) == "nkx-launcher"), None)

    def zygotes(self):
        return [p for p in children(self.launcher) if program(p) == "nkx-worker"]

    def zygote(self):
        """The zygote that makes the children; a second one stands by and has none."""
        pids = self.zygotes()
        return max(pids, key=lambda p: len(children(p))) if pids else None

    def kids(self):
        zygote = self.zygote()
        return children(zygote) if zygote else []

    # ---- its state

    @property
    def health(self):
        return self.get("/healthz").json

    def wait_running(self, n=1):
        wait_until(lambda: self.health["running"] == n, f"{n} running jobs")

    def wait_waiting(self, n):
        wait_until(lambda: self.health["waiting"] == n, f"{n} waiting jobs")

    def wait_idle(self):
        """Nothing runs or waits; the stock of children may not be full yet."""
        def idle():
            h = self.health
            return h["running"] == h["waiting"] == 0
        wait_until(idle, "no running and no waiting job")

    def settle(self):
        """Waits until nothing runs and the stock of children is full and steady."""
        def calm():
            h, kids = self.health, self.kids()
            return tuple(kids) if h["running"] == h["waiting"] == 0 and len(kids) == h["idle"] > 0 else None

        wait_until(lambda: wait_until_steady(calm, "the stock of children", 0.1), "an idle server")


def codes(result):
    return [d["code"] for d in result["diagnostics"]]
