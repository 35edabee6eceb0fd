"""nginx in front of a server, as a process of the test; it logs what it passed on."""
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time

NGINX = """
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

def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Nginx:
    def __init__(self, upstream):
        program = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
        assert program, "nginx is not installed (docker/packages-test.apt)"
        self.port = _free_port()
        self._dir = tempfile.TemporaryDirectory(prefix="nkx-proxy-")
        where = pathlib.Path(self._dir.name)
        where.chmod(0o777)  # its worker is nobody
        (where / "conf").write_text(NGINX.format(dir=where, port=self.port, upstream=upstream))
        self._log = where / "access.log"
        self._process = subprocess.Popen([program, "-c", where / "conf", "-p", where], stderr=subprocess.PIPE)
        end = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                break
            except OSError:
                assert self._process.poll() is None and time.monotonic() < end, self._process.communicate()
                time.sleep(0.02)

    def passed(self):
        """Requests given to the server since the start."""
        return len([x for x in self._log.read_text().splitlines() if re.search(r"\d", x)])

    def stop(self):
        self._process.terminate()
        self._process.wait(timeout=10)
        self._dir.cleanup()
