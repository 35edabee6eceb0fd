"""Many connections, and crawlers: what takes too long for every run."""
import json
import resource
import socket
import sys
import time
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "api"))
from conftest import ADD_ONE, FLOAT_INPUT, Server, is_sanitized, rss_kb  # noqa: E402


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
        print(f"{n} connections: {growth >> 10} MiB, a request takes {1000 * sorted(took)[25]:.1f} ms")
        assert is_sanitized() or growth <= 100 << 10
        assert sorted(took)[25] <= 0.05
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
