"""Many connections, and crawlers: what takes too long for every run."""
import json
import resource
import socket
import sys
import time
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "api"))
from conftest import ADD_ONE, FLOAT_INPUT, Server, figure, is_sanitized, rss_kb  # noqa: E402


def test_10000_idle_and_half_open_connections():
    n = 10000
    resource.setrlimit(resource.RLIMIT_NOFILE, (n + 1000, n + 1000))
    s = Server("--connections", "12000", "--header-timeout-ms", "300000", "--idle-timeout-ms", "300000")
    open_ = []
    try:
        before = rss_kb(s.pid)
        for i in range(n):
            c = socket.create_connection(("127.0.0.1", s.port), timeout=30)
            if i % 2:
                c.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ")
            open_.append(c)
        took = []
        for _ in range(50):
            began = time.monotonic()
            assert s.get("/healthz").status == 200
            took.append(time.monotonic() - began)
        growth = rss_kb(s.pid) - before
        figure(f"{n} connections: {growth >> 10} MiB, a request takes {1000 * sorted(took)[25]:.1f} ms")
        assert is_sanitized() or growth <= 100 << 10
        assert sorted(took)[25] <= 0.05
    finally:
        for c in open_:
            c.close()
        assert s.stop() == 0


def test_2000_clients_that_dribble_headers():
    """N2 at its full size: a byte a second each, the deadline that is the default."""
    n, deadline_s = 2000, 10
    resource.setrlimit(resource.RLIMIT_NOFILE, (11000, 11000))
    s = Server("--client-connections", "0", "--connections", "4000")
    began, open_, closed, took = time.monotonic(), {}, [], []
    try:
        for _ in range(n):
            c = socket.create_connection(("127.0.0.1", s.port), timeout=30)
            c.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ")
            c.setblocking(False)
            open_[c] = time.monotonic()
        while open_ and time.monotonic() - began < 4 * deadline_s:
            for c in list(open_):
                try:
                    c.send(b"a")
                    ended = c.recv(100) is not None
                except BlockingIOError:
                    ended = False
                except OSError:
                    ended = True
                if ended:
                    closed.append(time.monotonic() - open_.pop(c))
                    c.close()
            asked = time.monotonic()
            assert s.get("/healthz").status == 200
            took.append(time.monotonic() - asked)
            time.sleep(max(0, 1 - (time.monotonic() - asked)))
        figure(f"{n} clients with a byte a second: closed after {min(closed):.1f} to {max(closed):.1f} s, a request meanwhile takes at most "
               f"{1000 * max(took):.0f} ms")
        assert not open_ and min(closed) >= deadline_s - 1
    finally:
        for c in open_:
            c.close()
        assert s.stop() == 0


def test_one_address_gets_no_more_connections_than_its_share():
    s = Server("--client-connections", "20")
    try:
        held = [socket.create_connection(("127.0.0.1", s.port), timeout=10) for _ in range(20)]
        time.sleep(0.5)
        with socket.create_connection(("127.0.0.1", s.port), timeout=10) as more:
            assert b" 429 " in more.recv(4096)
        with socket.socket() as other:
            other.bind(("127.0.0.2", 0))
            other.connect(("127.0.0.1", s.port))
            other.settimeout(10)
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert other.recv(100).startswith(b"HTTP/1.1 200")
        for c in held:
            c.close()
    finally:
        assert s.stop() == 0


def test_a_crawler_starts_no_compile():
    s = Server()
    try:
        made = s.request("POST", "/api/v1/snippets", json.dumps({"source": ADD_ONE, "inputs": FLOAT_INPUT}),
                         {"Content-Type": "application/json", "X-Nkx-Request": "1"}).json
        count = lambda: [x for x in s.get("/metrics").body.decode().splitlines() if x.startswith("nkx_jobs_total")]
        before = count()
        key = "/api/v1/results/" + made["key"]
        for path in ("/", made["url"], made["raw_url"], made["embed_url"], "/api/v1/snippets/" + made["id"], key, key + "/stages/0",
                     key + "/all.tar.gz", key + "/artifacts/source-map.json", "/api/v1/pipeline", "/api/v1/examples", "/healthz",
                     "/api/v1/compile", "/api/openapi.json", "/api/compilers", "/api/shortlinkinfo/" + made["id"]):
            for method in ("GET", "HEAD", "OPTIONS"):
                assert s.request(method, path).status < 500
        assert count() == before
    finally:
        assert s.stop() == 0
