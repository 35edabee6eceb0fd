"""The operations listener: metrics, health, readiness and debugging are there, and not where the public is."""
import contextlib
import json
import re
import signal
import socket
import subprocess

import pytest

from support.clients import open_stream, read_until
from support.paths import NKX
from support.server import ADD_ONE, FLOAT_INPUT, JOB, Peer, Server

OPERATIONS = ["/metrics", "/healthz", "/readyz"]


class Operations(Peer):
    def __init__(self, port):
        self.port = port


@contextlib.contextmanager
def served(*flags):
    """A server with an operations listener, and that listener."""
    with Server("--ops-port", "0", *flags, healthy=False) as s:
        s.wait_for_log("operations", "url=http://127.0.0.1:")
        ops = Operations(int(re.search(r"operations.*:(\d+)", "".join(s.log))[1]))
        s.wait_until(lambda: ops.get("/readyz").status == 200, "a ready server", 60)
        yield s, ops


@pytest.fixture(scope="module")
def pair():
    with served() as p:
        yield p


@pytest.mark.parametrize("path", OPERATIONS)
def test_operations_are_only_on_their_listener(pair, path):
    s, ops = pair
    assert ops.get(path).status == 200
    for variant in (path, "/" + path, path + "/"):
        assert s.get(variant).status == 404, variant


def test_the_operations_listener_has_nothing_else(pair):
    s, ops = pair
    assert s.get("/").status == s.get("/api/v1/pipeline").status == 200
    for path in ("/", "/index.html", "/api/v1/pipeline", "/api/openapi.json", "/z/x"):
        assert ops.get(path).status == 404, path
    assert ops.request("POST", "/api/v1/compile", json.dumps(JOB), {"Content-Type": "application/json"}).status == 404
    assert s.compile(ADD_ONE)["status"] == "ok"


def test_metrics_are_those_of_the_public_listener(pair):
    s, ops = pair
    def accepted():
        return float(re.search(r"^nkx_http_connections_total (\d+)", ops.get("/metrics").body.decode(), re.M)[1])
    before = accepted()
    for _ in range(3):
        s.get("/api/v1/pipeline")
    assert accepted() == before + 3


def test_the_state_of_all_parts_is_for_the_operator_alone(pair, server):
    s, ops = pair
    state = ops.get("/debug/state").json
    assert state["pool"]["is_ready"] and set(state) == {"pool", "store", "results", "clients", "memory"}
    assert s.get("/debug/state").status == 404 and server.get("/debug/state").status == 404, "not even where there is one listener"


def test_readiness_is_still_answered_while_the_server_stops():
    with served() as (s, ops):
        with open_stream(s, "import time\ntime.sleep(3)\n", FLOAT_INPUT) as stream:
            read_until(stream, b'"frame":"start"')
            s.process.send_signal(signal.SIGTERM)
            s.wait_until(lambda: ops.get("/readyz").json["status"] == "stopping", "it to be said", 5)
            assert ops.get("/readyz").status == 503 and b"nkx_workers_running 1" in ops.get("/metrics").body
        assert s.process.wait(timeout=30) == 0


def test_a_successor_has_both_listeners():
    with served() as (s, ops):
        s.process.send_signal(signal.SIGHUP)
        s.wait_until(lambda: sum("serving" in line for line in list(s.log)) == 2, "the successor", 30)
        s.wait_until(lambda: ops.get("/readyz").status == 200, "it to be ready", 60)
        assert s.get("/api/v1/pipeline").status == 200 and s.get("/metrics").status == 404


def test_a_second_socket_without_the_setting_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        run = f"exec {NKX} serve --data-dir {tmp_path} 3<&{one.fileno()} 4<&{two.fileno()}"
        r = subprocess.run(["bash", "-c", f"LISTEN_FDS=2 LISTEN_PID=$$; export LISTEN_FDS LISTEN_PID; {run}"], pass_fds=[one.fileno(), two.fileno()],
                           capture_output=True, text=True, timeout=20)
    assert r.returncode == 2 and "--ops-port" in r.stderr
