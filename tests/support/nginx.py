"""nginx as a process of the test: before one server, before two as docker/ has it, or alone with files."""
import pathlib
import re
import socket
import subprocess
import tempfile

from support.paths import ROOT
from support.server import Beside, free_port
from support.wait import wait_until

NGINX = "/usr/sbin/nginx"

PROXY = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 256; }}
http {{
  log_format passed '$upstream_status';
  access_log {dir}/access.log passed;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
  scgi_temp_path {dir}/s;
  underscores_in_headers on; ignore_invalid_headers off;
  upstream nkx {{ server 127.0.0.1:{upstream}; keepalive 4; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://nkx; proxy_http_version 1.1; proxy_request_buffering off;
      proxy_ignore_client_abort on;
      proxy_set_header Connection ""; proxy_set_header Host $host;
    }}
  }}
}}
"""

# files from memory's cache, with as little log as nginx writes by default
FILES = """
daemon off; worker_processes 2; pid {dir}/pid; error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/f; uwsgi_temp_path {dir}/u;
  scgi_temp_path {dir}/s;
  types {{ application/json json; text/html html; }}
  server {{ listen 127.0.0.1:{port}; root {dir}; }}
}}
"""


class Nginx(Beside):
    """configure(dir, port) gives its configuration."""

    def __init__(self, configure, path=None):
        """Waits until it answers at `path`, or until it listens."""
        self.port = free_port()
        self._dir = tempfile.TemporaryDirectory(prefix="nkx-nginx-")
        self.dir = pathlib.Path(self._dir.name)
        self.dir.chmod(0o777)  # its workers are nobody
        (self.dir / "conf").write_text(configure(self.dir, self.port))
        self.process = subprocess.Popen([NGINX, "-e", "stderr", "-c", self.dir / "conf", "-p", self.dir], stderr=subprocess.DEVNULL)
        wait_until(lambda: self.answers(path) if path else self._listens(), "nginx", 30)

    def _listens(self):
        assert self.process.poll() is None, "nginx does not start"
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0


class LoggingProxy(Nginx):
    """Before one server; it logs what it passed on."""

    def __init__(self, server):
        super().__init__(lambda dir, port: PROXY.format(dir=dir, port=port, upstream=server.port))

    def passed(self):
        """Requests given to the server since the start."""
        return len([x for x in (self.dir / "access.log").read_text().splitlines() if re.search(r"\d", x)])


class ComposeProxy(Nginx):
    """docker/nginx.conf before any number of servers; only the names and ports that compose.yaml gives are replaced."""

    def __init__(self, *servers):
        def configure(dir, port):
            text = (ROOT / "docker/nginx.conf").read_text()
            if len(servers) == 1:
                text = re.sub(r" *server nkx2:10240.*\n", "", text)
            for i in range(3, len(servers) + 1):  # like the one before it
                text = re.sub(rf"( *server )nkx{i - 1}(:10240.*\n)", rf"\g<0>\g<1>nkx{i}\g<2>", text)
            for i, server in enumerate(servers, 1):
                text = re.sub(rf"nkx{i}:10240", f"127.0.0.1:{server.port}", text)
            return "daemon off;\n" + text.replace("listen 8080", f"listen 127.0.0.1:{port}").replace("/tmp/nginx", str(dir / "nginx"))
        super().__init__(configure, "/")


class FileServer(Nginx):
    """name -> bytes; serves each as /name."""

    def __init__(self, files):
        def configure(dir, port):
            for name, data in files.items():
                (dir / name).write_bytes(data)
            return FILES.format(dir=dir, port=port)
        super().__init__(configure, "/" + next(iter(files)))
