"""Runners on stand-ins: a compiler that writes a simulation package, and a libnrt that simulates it (tests/neuron)."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time

from support.paths import BUILD, NKX, ROOT
from support.server import FLOAT_INPUT, OURS
from support.wait import wait_until

SOURCE = "import numpy as np\n\n\ndef add_one(x):\n    return x + 1\n"
STAND_IN = BUILD / "test/neuron/libnrt.so.1"
COMPILER = ROOT / "tests/neuron/neuronx_cc.py"


def make_package(directory):
    """What the stand-in compiler makes of SOURCE."""
    kernel, package = directory / "k.py", directory / "k.sim.neff"
    kernel.write_text(SOURCE)
    subprocess.run([NKX, "neff", "pack", kernel, "--input", "x=8x16:f32", "-o", package], check=True, capture_output=True)
    return package


class Host:
    """What the runners of a test share: a directory, the stand-in compiler, tokens."""

    def __init__(self, directory, server, package):
        self.dir, self.server, self.package = pathlib.Path(directory), server, package

    def token_command(self, *args, status=0):
        store = next((a for f, a in zip(self.server.process.args, self.server.process.args[1:]) if f == "--store"),
                     f"sqlite:{self.server.data}/nkx.sqlite")
        run = subprocess.run([NKX, "runner", "token", *args, "--server", self.server.url, "--store", store], capture_output=True, text=True)
        assert run.returncode == status, run.stdout + run.stderr
        return run.stdout + run.stderr

    def token(self, name):
        path = self.dir / f"{name}.token"
        if not path.exists():
            self.token_command("create", name, "-o", path)
        return path

    def compiler(self, name, behaviour=None, gate=None):
        """A program that is called as neuronx-cc is.  gate: it waits until this file is there, and has made gate.seen."""
        path = self.dir / f"neuronx-cc-{name}"
        wait = f"touch '{gate}.seen'\nwhile [ ! -e '{gate}' ]; do sleep 0.05; done\n" if gate else ""
        path.write_text(f"#!/bin/sh\n[ \"$1\" = --version ] && {{ echo 'stand-in 1.0'; exit; }}\n{wait}"
                        f"exec {sys.executable} -I -S {COMPILER} '{behaviour or f'package:{self.package}'}' '{self.dir}/{name}.record' \"$@\"\n")
        path.chmod(0o755)
        return path


class Runner:
    """`nkx runner` as a process.  .gate: with gated=True its compiler waits until let() was called."""

    def __init__(self, host, name, url=None, gated=False, behaviour=None, token="lab", flags=(), env=None, prefix=()):
        self.host, self.name = host, name
        self.gate = host.dir / f"{name}.gate" if gated else None
        self.log = []
        command = [*prefix, NKX, "runner", "--server", url or host.server.url, "--token-file", host.token(token), "--name", name,
                   "--neuronx-cc", host.compiler(name, behaviour, self.gate), "--libnrt", STAND_IN, "--repeat", "2", *flags]
        environment = {**os.environ, "TMPDIR": str(host.dir), **(env or {})}
        self.process = subprocess.Popen([str(c) for c in command], stderr=subprocess.PIPE, text=True, env=environment)
        self.thread = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.let()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                raise
        self.thread.join(5)

    def let(self):
        if self.gate:
            self.gate.touch()

    def wait_inside(self):
        """Waits until its compiler has begun."""
        wait_until(pathlib.Path(f"{self.gate}.seen").exists, "the compiler of the runner", 60)

    def kill(self):
        self.process.kill()
        self.process.wait()


def connected(server):
    return server.get("/api/v1/runners").json["connected"]


def wait_connected(server, n):
    wait_until(lambda: connected(server) == n, f"{n} runners", 60, poll_s=0.05)


def ask(server, source=SOURCE, **fields):
    return server.request("POST", "/api/v1/runs", {"source": source, "inputs": FLOAT_INPUT, **fields}, OURS)


BEGUN = []  # (server, run): what a test has begun


def begin(server, **fields):
    answer = ask(server, **fields)
    assert answer.status == 201, answer.body
    BEGUN.append((server, answer.json["id"]))
    return answer.json["id"]


def cancel(server, run):
    assert server.request("DELETE", f"/api/v1/runs/{run}", headers=OURS).status == 204


def cancel_all():
    while BEGUN:
        server, run = BEGUN.pop()
        if server.process.poll() is None:
            cancel(server, run)


def look(server, run):
    return server.get(f"/api/v1/runs/{run}").json


def follow(server, run, seconds=60):
    """All that a reader sees of a run until it has ended."""
    seen, end = [look(server, run)], time.monotonic() + seconds
    while seen[-1]["state"] in ("waiting", "running"):
        assert time.monotonic() < end, seen[-1]
        seen.append(server.get(f"/api/v1/runs/{run}?after={seen[-1]['mark']}").json)
    return seen


def is_right(view):
    output, = view["outcome"]["device"]["outputs"]
    return (view["state"] == "done" and view["outcome"]["status"] == "ok" and output["reference"] == {
        "of": "numpy", "pass": True, "max_abs_err": 0, "max_rel_err": 0} and output["simulator"]["pass"])


class Cable:
    """Hands on bytes between runners and a server, until it is cut: then it takes connections and says nothing."""

    def __init__(self, port):
        self.to, self.is_cut, self.pairs = port, False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                a, _ = self.listener.accept()
            except OSError:
                return
            if self.is_cut:
                self.pairs.append((a, a))
                continue
            try:
                b = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                a.close()
                continue
            self.pairs.append((a, b))
            for x, y in ((a, b), (b, a)):
                threading.Thread(target=self._pump, args=(x, y), daemon=True).start()

    def _pump(self, x, y):
        try:
            while data := x.recv(65536):
                if self.is_cut:
                    return
                y.sendall(data)
        except OSError:
            pass
        finally:
            if not self.is_cut:
                for s in (x, y):
                    try:
                        s.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass

    def cut(self):
        self.is_cut = True

    def mend(self):
        self.is_cut = False
        for pair in self.pairs:
            for s in pair:
                s.close()
        self.pairs = []

    def close(self):
        self.listener.close()
        self.mend()


class Liar:
    """Speaks the runner's side of the protocol as it likes."""

    ABOUT = {"name": "liar", "can": ["compile", "execute", "profile"], "cores": 2}

    def __init__(self, server, token_file, runner="L" * 22):
        self.server, self.token, self.runner = server, token_file.read_text().strip(), runner
        self.taken = None

    def send(self, method, path, body=None, **headers):
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
        if self.taken and "X-Nkx-Fence" not in headers:
            headers["X-Nkx-Fence"] = self.taken["fence"]
        return self.server.request(method, path, body, headers)

    def next(self, wait_ms=0, **about):
        answer = self.send("POST", "/api/v1/runner/next", {"runner": self.runner, "about": {**self.ABOUT, **about}, "wait_ms": wait_ms})
        self.taken = answer.json if answer.status == 200 else None
        return answer

    def bring(self, name, data, sha256=None, **headers):
        import hashlib
        return self.send("POST", f"/api/v1/runner/files/{self.taken['run']}/{name}", data, Content_Type="application/octet-stream",
                         X_Nkx_Sha256=sha256 or hashlib.sha256(data).hexdigest(), **headers)

    def beat(self, log="", **headers):
        return self.send("POST", f"/api/v1/runner/beat/{self.taken['run']}", {"log": log}, **headers)

    def end(self, outputs=None, **fields):
        import hashlib
        body = {"status": "ok", "device": {"library": "x", "version": "1"}, "measured": {"executions": 1, "first_us": 5.0},
                "outputs_sha256": hashlib.sha256(outputs or b"").hexdigest(), **fields}
        return self.send("POST", f"/api/v1/runner/end/{self.taken['run']}", body)


def safetensors(*tensors):
    """A file of (name, NumPy array)."""
    import struct
    header, data = {}, b""
    for name, x in tensors:
        header[name] = {"dtype": {"float32": "F32", "float64": "F64", "int32": "I32"}[x.dtype.name], "shape": list(x.shape),
                        "data_offsets": [len(data), len(data) + x.nbytes]}
        data += x.tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def read_safetensors(data):
    import struct

    import numpy as np
    n, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    header.pop("__metadata__", None)
    return {k: np.frombuffer(data[8 + n :][slice(*v["data_offsets"])], {"F32": "f4"}[v["dtype"]]).reshape(v["shape"]) for k, v in header.items()}
