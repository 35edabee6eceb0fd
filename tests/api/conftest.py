"""A real server on a free port, and the few helpers that the API's tests share."""
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
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")

ADD_ONE = "import numpy as np\n\n\ndef add_one(x):\n    return x + 1\n"
FLOAT_INPUT = [{"name": "x", "shape": [8, 16], "dtype": "float32"}]


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


class Server:
    """`nkx serve` as a child of the test; everything it logs is in .log.  .process is the launcher, .pid the service."""

    def __init__(self, *flags, data=None, healthy=True, env=None):
        self.log = []
        self._own_data = None if data else tempfile.TemporaryDirectory(prefix="nkx-test-")
        self.data = pathlib.Path(data or self._own_data.name)
        self.process = subprocess.Popen(
            [BUILD / "bin/nkx", "serve", "--port", "0", "--data-dir", self.data, *flags], stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(env or {})})
        self.port = self._wait_for_log(r"""serving.*url\W+http://[^:]+:(\d+)""")
        threading.Thread(target=self._read_log, daemon=True).start()
        if healthy:
            self.wait_until(lambda: self.get("/healthz").status == 200, "a healthy server", 120)

    def _wait_for_log(self, pattern):
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(pattern, line)
            if found:
                return int(found[1])
        raise RuntimeError("the server did not start:\n" + "".join(self.log))

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line)

    @staticmethod
    def wait_until(condition, what, seconds=120):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"waited {seconds} s for {what}"
            time.sleep(0.01)

    # ---- requests

    def connect(self, timeout=300):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None):
        c = self.connect()
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return Answer(r, r.read())
        finally:
            c.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def post(self, body, accept="application/json", content_type="application/json", cache="no-store"):
        """Compiles; unless told otherwise really, since what most tests are about is the run."""
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
        """Sends bytes as they are; whatever came back until the server closed or fell silent."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as s:
            s.sendall(data)
            out = b""
            try:
                while True:
                    piece = s.recv(65536)
                    if not piece:
                        break
                    out += piece
            except (TimeoutError, ConnectionResetError):
                pass
            return out

    # ---- processes

    @property
    def launcher(self):
        return self.process.pid

    @property
    def pid(self):
        """The service: the launcher's child that is no zygote."""
        return next(p for p in children(self.launcher) if program(p) != "nkx-worker")

    def zygotes(self):
        return [p for p in children(self.launcher) if program(p) == "nkx-worker"]

    @property
    def health(self):
        return self.get("/healthz").json

    def zygote(self):
        """The process that makes the children; another one may stand by, which has none."""
        pids = self.zygotes()
        return max(pids, key=lambda p: len(children(p))) if pids else None

    def kids(self):
        zygote = self.zygote()
        return children(zygote) if zygote else []

    def settle(self):
        """Waits until nothing runs and the stock of children is full and steady."""
        def calm():
            h = self.health
            return h["running"] == 0 and h["waiting"] == 0 and len(self.kids()) == h["idle"] > 0
        self.wait_until(calm, "an idle server")
        time.sleep(0.1)
        self.wait_until(calm, "an idle server")

    def footprint(self):
        """What it holds when it is at rest, with the zygote that stands by there: before that is, its socket is missing."""
        self.wait_until(lambda: len(self.zygotes()) == 2, "the zygote that stands by")
        self.settle()
        time.sleep(1)  # it gives back memory half a second after its last job
        zygote = self.zygote()
        return {"fds": fds(self.pid), "zygote fds": fds(zygote), "threads": len(os.listdir(f"/proc/{self.pid}/task")),
                "children": len(self.kids()), "zygotes": len(self.zygotes()), "zygote": zygote,
                "resident KiB": (rss_kb(self.pid), rss_kb(zygote))}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


def open_stream(server, source, inputs=(), accept="application/x-ndjson"):
    body = json.dumps({"source": source, "inputs": list(inputs)})
    s = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    s.sendall((f"POST /api/v1/compile HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: {accept}\r\nCache-Control: no-store\r\n"
               f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
    return s


def read_until(s, mark):
    """What comes on the socket, up to and with `mark`."""
    text = b""
    while mark not in text:
        piece = s.recv(1 << 20)
        assert piece, f"the server closed before {mark}: …{text[-200:]}"
        text += piece
    return text


def program(pid):
    """The name of what it runs, "" if it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children(pid):
    out = []
    for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        out += [int(x) for x in task.read_text().split()]
    return out


def workers_of_this_build():
    """{pid: its parent} of every process that runs our nkx-worker, whosever it is, as the kernel counts them."""
    out = {}
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (place / "cmdline").read_bytes().split(b"\0")[0] == bytes(BUILD / "bin/nkx-worker"):
                out[int(place.name)] = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return out


def namespaces(pid, kinds=("pid", "mnt", "ipc", "uts", "user")):
    return tuple(os.readlink(f"/proc/{pid}/ns/{kind}") for kind in kinds)


def stop_and_audit(server):
    """R5: at a session's end the children and namespaces that the kernel counts are those the server says it has; once it
    has stopped there are none, nor any process in what was theirs."""
    server.settle()
    family = (1, server.launcher, server.pid)

    def kids():
        found = workers_of_this_build()
        return [p for p, parent in found.items() if found.get(parent) == server.launcher]

    server.wait_until(lambda: len(kids()) == server.health["idle"], "as many children as the server says it has")
    own = {kid: namespaces(kid) for kid in kids()}
    assert sorted(own) == sorted(server.kids())
    if server.health["level"] in ("A", "B"):
        for of_one_kind in zip(*own.values()):
            assert len(set(of_one_kind)) == len(own), "children share a namespace"
        # the network alone they may share: it is empty, and there is no system call with which to use it
        networks = {names for kid in own for names in namespaces(kid, ["net"])}
        assert networks and os.readlink("/proc/self/ns/net") not in networks
    assert server.stop() == 0

    def left():
        found = []
        for place in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(place / "ns/pid") in {names[0] for names in own.values()} - {os.readlink("/proc/self/ns/pid")}:
                    found.append(place.name)
            except OSError:  # it is gone, or not ours to look at
                pass
        parents = workers_of_this_build()
        return found + [p for p, parent in parents.items() if p in own or parent in family]
    server.wait_until(lambda: not left(), "no process of the server's to be left")


def fds(pid):
    """Open descriptors; the fewest of a while, since a connection just closed by us may still be open there."""
    counts = []
    for _ in range(20):
        counts.append(len(os.listdir(f"/proc/{pid}/fd")))
        time.sleep(0.01)
    return min(counts)


def rss_kb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def assert_nothing_is_left(before, after):
    """Two footprints: the same, in memory but for one per cent of what each of server and zygote uses."""
    own, common = before.pop("resident KiB"), after.pop("resident KiB")
    figure(f"resident, KiB, server and zygote: {own} before, {common} after")
    assert after == before
    assert is_sanitized() or all(b <= a + a // 100 for a, b in zip(own, common)), (own, common)


def figure(text):
    """For the table of results: `make nightly` collects what tests say here."""
    print(text)
    if "NKX_FIGURES" in os.environ:
        with open(os.environ["NKX_FIGURES"], "a") as f:
            f.write(text + "\n")


def is_sanitized():
    """AddressSanitizer keeps freed memory for a while, so memory figures mean nothing there."""
    return b"__asan_init" in (BUILD / "bin/nkx").read_bytes()


def codes(result):
    return [d["code"] for d in result["diagnostics"]]


@pytest.fixture(scope="session")
def server():
    s = Server()
    yield s
    if s.process.poll() is None:
        stop_and_audit(s)


@pytest.fixture(scope="session")
def impatient():
    """Gives a job two seconds, so that hostile jobs end soon."""
    s = Server("--job-timeout-ms", "2000")
    yield s
    if s.process.poll() is None:
        stop_and_audit(s)
