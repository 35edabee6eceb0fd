"""Runners in network namespaces of their own, and what goes wrong between them and the server; and over TLS, whose certificate is verified.

NKX_CUT_S: how long the cable is cut (make nightly: 30 s).
"""
import ctypes
import http.client
import os
import socket
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from support.runners import Host, Liar, Runner, begin, follow, is_right, look, make_package, safetensors, wait_connected
from support.server import Peer, Server
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


@pytest.fixture
def net():
    if reason := why_not():
        pytest.skip(reason)
    made = Net()
    yield made
    made.close()


class Lab:
    """A server that listens at the bridge, and runners each in a namespace of its own."""

    FLAGS = ("--host", "0.0.0.0", "--run-lease-ms", str(LEASE_MS))

    def __init__(self, net, directory):
        self.net, self.dir, self.package = net, directory, make_package(directory)

    def server(self, *flags):
        return Server(*self.FLAGS, *flags, data=self.dir / "data")

    def runner(self, server, i, **kw):
        return Runner(Host(self.dir, server, self.package), f"host{i}", url=f"http://{self.net.address}:{server.port}", flags=("--allow-http",),
                      prefix=("ip", "netns", "exec", self.net.name(i)), **kw)

    def liar(self, server, i, token="lab"):
        """The runner's side of the protocol, spoken from a namespace as it likes."""
        return Liar(Inside(self.net, i, server.port), Host(self.dir, server, self.package).token(token))


class Inside(Peer):
    """A server as it is seen from a namespace."""

    CLONE_NEWNET = 0x40000000

    def __init__(self, net, i, port):
        self.net, self.i, self.port = net, i, port

    def request(self, method, path, body=None, headers=None, address=None):
        with ThreadPoolExecutor(1) as one:  # a thread that enters the namespace, and ends there
            return one.submit(self._request, method, path, body, headers).result()

    def _request(self, method, path, body, headers):
        with open(f"/run/netns/{self.net.name(self.i)}") as f:
            assert ctypes.CDLL(None, use_errno=True).setns(f.fileno(), self.CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
        return super().request(method, path, body, headers)

    def connect(self, timeout=300, address=None):
        return http.client.HTTPConnection(self.net.address, self.port, timeout=timeout)


@pytest.fixture
def lab(net, tmp_path):
    return Lab(net, tmp_path)


def ended_once(view, by, attempt):
    """The run is right, by this runner, and its end is in the log once."""
    return is_right(view) and view["runner"]["name"] == by and view["attempt"] == attempt and view["log"].splitlines().count("done") == 1


@pytest.mark.nightly
def test_a_cut_cable_loses_no_run(lab):
    with lab.server() as server, lab.runner(server, 1, gated=True) as one:
        wait_connected(server, 1)
        run = begin(server)
        one.wait_inside()
        ip("link", "set", lab.net.cable(1), "down")
        wait_until(lambda: look(server, run)["state"] == "waiting", "the end of the lease", 30)
        stays(lambda: look(server, run)["state"] == "waiting", "the run moved", CUT_S, poll_s=0.2)
        with lab.runner(server, 2) as two:
            last = follow(server, run)[-1]
            assert ended_once(last, "host2", 2)
            one.let()
            ip("link", "set", lab.net.cable(1), "up")
            wait_until(lambda: any("lease-lost" in line for line in one.log), "the refusal", 90)
            assert look(server, run) == last
            two.kill()
            assert is_right(follow(server, begin(server))[-1]), "the one that was away is back"


@pytest.mark.nightly
def test_a_runner_killed_in_mid_job_is_replaced(lab):
    with lab.server() as server, lab.runner(server, 1, gated=True) as one:
        wait_connected(server, 1)
        run = begin(server)
        one.wait_inside()
        one.kill()
        with lab.runner(server, 2):
            last = follow(server, run)[-1]
    assert ended_once(last, "host2", 2)


@pytest.mark.nightly
def test_a_killed_server_knows_its_runs_when_it_is_back(lab):
    with lab.server() as first, lab.runner(first, 1, gated=True) as one, lab.runner(first, 2, gated=True) as two:
        wait_connected(first, 2)
        runs = [begin(first) for _ in range(3)]  # the third one waits
        one.wait_inside()
        two.wait_inside()
        first.kill()
        one.let()
        two.let()
        with lab.server("--port", str(first.port)) as second:
            for run in runs:
                last = follow(second, run)[-1]
                assert is_right(last) and last["log"].splitlines().count("done") == 1 and last["attempt"] <= 2


@pytest.mark.nightly
def test_a_slow_runner_keeps_its_run(lab):
    with lab.server() as server, lab.runner(server, 1, gated=True) as slow:
        wait_connected(server, 1)
        run = begin(server)
        slow.wait_inside()
        with lab.runner(server, 2):
            wait_connected(server, 2)
            stays(lambda: look(server, run)["state"] == "running", "a slow run was given away", 2.5 * LEASE_MS / 1000, poll_s=0.1)
            slow.let()
            assert ended_once(follow(server, run)[-1], "host1", 1)


@pytest.mark.nightly
def test_a_revoked_token_gives_the_run_to_another(lab):
    with lab.server() as server, lab.runner(server, 1, gated=True, token="bad") as bad:
        wait_connected(server, 1)
        run = begin(server)
        bad.wait_inside()
        with lab.runner(server, 2, token="good"):
            wait_connected(server, 2)
            bad.host.token_command("revoke", "bad")
            assert ended_once(follow(server, run)[-1], "host2", 2)
            bad.let()
            assert bad.process.wait(30) == 1


LIES = {
    "wrong size": lambda liar: [liar.bring("outputs.safetensors", LIE).status, liar.end(LIE).status] == [200, 422],
    "huge output": lambda liar: [liar.bring("outputs.safetensors", bytes(9 << 20)).status, liar.end().status] == [413, 422],
    "wrong hash": lambda liar: [liar.bring("outputs.safetensors", LIE, sha256="0" * 64).status, liar.end().status] == [422, 422],
}
LIE = safetensors(("output0", np.ones((8, 17), np.float32)))


@pytest.mark.nightly
@pytest.mark.parametrize("lie", LIES)
def test_data_of_a_liar_are_refused(lab, lie):
    with lab.server() as server:
        liar = lab.liar(server, 1)
        liar.next()  # makes it known
        run = begin(server)
        assert liar.next().status == 200 and LIES[lie](liar)
        assert {f["name"] for f in look(server, run)["files"]}.isdisjoint({"outputs.safetensors", "kernel.neff"})
        with lab.runner(server, 2):
            assert ended_once(follow(server, run)[-1], "host2", 2)


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
