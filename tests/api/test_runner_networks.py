"""Runners in network namespaces of their own, whose cable is cut; and over TLS, whose certificate is verified.

NKX_CUT_S: how long the cable is cut (make nightly: 30 s).
"""
import os
import socket
import ssl
import subprocess
import threading

import pytest

from support.runners import Host, Runner, begin, follow, is_right, look, make_package, wait_connected
from support.server import Server
from support.wait import stays, wait_until

CUT_S = float(os.environ.get("NKX_CUT_S", "3"))
LEASE_MS = 2000


def ip(*args, check=True):
    return subprocess.run(["ip", *map(str, args)], check=check, capture_output=True, text=True)


def why_not():
    if os.getuid() != 0:
        return "network namespaces need root"
    made = ip("netns", "add", "nkx-probe", check=False)
    ip("netns", "del", "nkx-probe", check=False)
    return None if made.returncode == 0 else f"no network namespaces here: {made.stderr.strip()}"


class Net:
    """A bridge at 10.78.N.1, where the server listens, and namespaces at 10.78.N.2 and .3."""

    def __init__(self):
        self.n = os.getpid() % 250 + 1
        self.bridge, self.address = f"nkxb{self.n}", f"10.78.{self.n}.1"
        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"{self.address}/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")
        for i in (1, 2):
            ns, here = self.name(i), self.cable(i)
            ip("netns", "add", ns)
            ip("link", "add", here, "type", "veth", "peer", "name", "eth0", "netns", ns)
            ip("link", "set", here, "master", self.bridge, "up")
            for args in (("addr", "add", f"10.78.{self.n}.{i + 1}/24", "dev", "eth0"), ("link", "set", "eth0", "up"), ("link", "set", "lo", "up")):
                ip("-n", ns, *args)

    def name(self, i):
        return f"nkx{self.n}n{i}"

    def cable(self, i):
        return f"nkx{self.n}v{i}"

    def close(self):
        for i in (1, 2):
            ip("netns", "del", self.name(i), check=False)
            ip("link", "del", self.cable(i), check=False)
        ip("link", "del", self.bridge, check=False)


@pytest.mark.nightly
def test_runners_in_namespaces_of_their_own_lose_nothing_when_a_cable_is_cut(tmp_path):
    if reason := why_not():
        pytest.skip(reason)
    net = Net()
    try:
        with Server("--host", "0.0.0.0", "--run-lease-ms", str(LEASE_MS)) as server:
            host = Host(tmp_path, server, make_package(tmp_path))
            url = f"http://{net.address}:{server.port}"

            def runner(i, **kw):
                return Runner(host, f"host{i}", url=url, flags=("--allow-http",), prefix=("ip", "netns", "exec", net.name(i)), **kw)
            with runner(1, gated=True) as one:
                wait_connected(server, 1)
                run = begin(server)
                one.wait_inside()
                ip("link", "set", net.cable(1), "down")
                wait_until(lambda: look(server, run)["state"] == "waiting", "the end of the lease", 30)
                stays(lambda: look(server, run)["state"] == "waiting", "the run moved", CUT_S, poll_s=0.2)
                with runner(2) as two:
                    last = follow(server, run)[-1]
                    assert is_right(last) and last["runner"]["name"] == "host2" and last["attempt"] == 2
                    one.let()
                    ip("link", "set", net.cable(1), "up")
                    wait_until(lambda: any("lease-lost" in line for line in one.log), "the refusal", 90)
                    assert look(server, run) == last
                    two.kill()
                    again = begin(server)  # for the one that was away
                    assert is_right(follow(server, again)[-1])
    finally:
        net.close()


class Tls:
    """Takes TLS connections with a certificate of its own and hands on what is in them."""

    def __init__(self, directory, port):
        self.cert, key = directory / "cert.pem", directory / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", self.cert,
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.cert, key)
        self.to, self.listener = port, socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(raw,), daemon=True).start()

    def _serve(self, raw):
        try:
            a = self.context.wrap_socket(raw, server_side=True)
        except (ssl.SSLError, OSError):
            raw.close()
            return
        b = socket.create_connection(("127.0.0.1", self.to))
        threading.Thread(target=self._pump, args=(b, a), daemon=True).start()
        self._pump(a, b)

    @staticmethod
    def _pump(x, y):
        try:
            while data := x.recv(65536):
                y.sendall(data)
        except OSError:
            pass
        finally:
            for s in (x, y):
                s.close()


def test_over_tls_a_certificate_that_is_not_trusted_or_of_another_name_ends_the_connection(tmp_path):
    with Server() as server:
        host = Host(tmp_path, server, make_package(tmp_path))
        tls = Tls(tmp_path, server.port)
        with Runner(host, "trusting", url=f"https://localhost:{tls.port}", flags=("--ca-file", tls.cert)):
            wait_connected(server, 1)
            assert is_right(follow(server, begin(server))[-1])
        wait_connected(server, 0)
        for name, url, flags in (("unknown", f"https://localhost:{tls.port}", ()), ("other", f"https://127.0.0.1:{tls.port}", ("--ca-file", tls.cert))):
            with Runner(host, name, url=url, flags=flags) as r:
                wait_until(lambda: any("SSL" in line or "certificate" in line for line in list(r.log)), "the refusal", 30)
            assert server.get("/api/v1/runners").json["connected"] == 0
        tls.listener.close()
