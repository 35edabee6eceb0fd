"""What benchmarks and long sets of load share: a server, nginx as a peer, and h2load as the one client for all."""
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
JSON = {"Content-Type": "application/json", "X-Nkx-Request": "1"}
# small, but through every stage: a dozen operations at the end
SMALL = {"source": "import numpy as np\n\n\ndef add_one(x):\n    return x + 1\n",
         "inputs": [{"name": "x", "shape": [8, 16], "dtype": "float32"}]}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Http:
    """Something that answers at self.port."""

    def request(self, method, path, body=None, headers=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            c.request(method, path, json.dumps(body) if isinstance(body, dict) else body, headers or {})
            r = c.getresponse()
            return r.status, r.read()
        finally:
            c.close()

    def wait(self, path, seconds=60):
        end = time.monotonic() + seconds
        while True:
            try:
                if self.request("GET", path)[0] == 200:
                    return
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"nothing answers at {path}")
            time.sleep(0.05)

    def end(self):
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.dir)


class Server(Http):
    def __init__(self, *flags):
        self.port = free_port()
        self.dir = tempfile.mkdtemp(prefix="nkx-load-")
        self.process = subprocess.Popen([BUILD / "bin/nkx", "serve", "--port", str(self.port), "--data-dir", self.dir, *flags],
                                        stderr=subprocess.DEVNULL)
        self.wait("/healthz")


class Nginx(Http):
    """Files from memory's cache, with as few words as nginx has by default."""

    def __init__(self, files):
        self.port = free_port()
        self.dir = tempfile.mkdtemp(prefix="nkx-nginx-")
        os.chmod(self.dir, 0o755)
        for name, data in files.items():
            pathlib.Path(self.dir, name).write_bytes(data)
        temp = "".join(f"{k}_temp_path {self.dir}/{k};" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        conf = pathlib.Path(self.dir, "nginx.conf")
        conf.write_text(f"daemon off; worker_processes 2; pid {self.dir}/pid; error_log stderr crit;\n"
                        "events { worker_connections 4096; }\n"
                        f"http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; {temp}\n"
                        "types { application/json json; text/html html; }\n"
                        f"server {{ listen 127.0.0.1:{self.port}; root {self.dir}; }} }}\n")
        self.process = subprocess.Popen(["/usr/sbin/nginx", "-e", "stderr", "-c", conf], stderr=subprocess.DEVNULL)
        self.wait("/" + next(iter(files)))


def h2load(port, path, *, seconds, clients, rps=None, body=None, headers=None, log=None, threads=1):
    """{"rate": answers per second, "ok", "refused", "errors", "bytes"}; with `log`, a file of (start, status, time)."""
    command = ["h2load", "--h1", "-t", str(threads), "-c", str(clients), "-D", str(seconds), "--warm-up-time=1"]
    if rps:
        command.append(f"--rps={rps / clients:.6f}")
    if log:
        command.append(f"--log-file={log}")
    for k, v in (headers or {}).items():
        command += ["-H", f"{k}: {v}"]
    with tempfile.NamedTemporaryFile() as f:
        if body:
            f.write(json.dumps(body).encode() if isinstance(body, dict) else body)
            f.flush()
            command += ["-d", f.name]
        out = subprocess.run([*command, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True).stdout
    codes = [int(n) for n in re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", out).groups()]
    failed = int(re.search(r"(\d+) failed", out)[1])
    rate = float(re.search(r"finished in [^,]*, ([\d.]+) req/s", out)[1])
    return {"rate": rate, "ok": codes[0], "refused": codes[2] + codes[3], "errors": failed - codes[2] - codes[3]}


def percentile(values, p):
    v = sorted(values)
    return v[min(len(v) - 1, int(len(v) * p))] if v else float("nan")
