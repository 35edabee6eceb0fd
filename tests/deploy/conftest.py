"""What docker/compose.yaml describes, with processes: two servers, a PostgreSQL, and nginx with docker/nginx.conf."""
import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "store"))
spec = importlib.util.spec_from_file_location("api_conftest", HERE.parent / "api/conftest.py")
api = importlib.util.module_from_spec(spec)
sys.modules["api_conftest"] = api
spec.loader.exec_module(api)
from postgres import Postgres  # noqa: E402


class Proxy:
    """nginx with docker/nginx.conf; only the names and ports that compose.yaml gives are replaced."""

    request, get, post, compile, connect = (
        api.Server.request, api.Server.get, api.Server.post, api.Server.compile, api.Server.connect)

    def __init__(self, *ports):
        self.port = free_port()
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="nkx-nginx-"))
        text = (ROOT / "docker/nginx.conf").read_text()
        for i, port in enumerate(ports, 1):
            text = re.sub(rf"nkx{i}:10240", f"127.0.0.1:{port}", text)
        text = text.replace("listen 8080", f"listen 127.0.0.1:{self.port}").replace("/tmp/nginx", str(self.dir / "nginx"))
        (self.dir / "nginx.conf").write_text("daemon off;\n" + text)
        self.process = subprocess.Popen(["/usr/sbin/nginx", "-e", "stderr", "-c", self.dir / "nginx.conf"], stderr=subprocess.DEVNULL)
        api.Server.wait_until(self._answers, "nginx")

    def _answers(self):
        try:
            return self.get("/healthz").status == 200
        except OSError:
            assert self.process.poll() is None, "nginx does not start"
            return False

    def end(self):
        self.process.terminate()
        self.process.wait(10)
        shutil.rmtree(self.dir)


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="module")
def site():
    """.servers (two), .proxy, .postgres; .restart(i) replaces a server that is gone, on its old port."""
    postgres = Postgres()
    flags = ["--store", postgres.url, "--workers", "1"]
    s = types.SimpleNamespace(postgres=postgres, servers=[api.Server(*flags), api.Server(*flags)])
    s.proxy = Proxy(*(x.port for x in s.servers))

    def restart(i):
        s.servers[i] = api.Server(*flags, "--port", str(s.servers[i].port))
    s.restart = restart
    yield s
    s.proxy.end()
    for x in s.servers:
        if x.process.poll() is None:
            x.stop()
    postgres.end()
