"""Answers that clients do not read take memory up to a ceiling, and of one client a quarter of it."""
import json
import socket

from support.clients import metric
from support.processes import status
from support.server import FLOAT_INPUT, Server

CHAIN = "import numpy as np\n\n\ndef k(x):\n    for i in range(120):\n        x = np.sin(x) + 1\n    return x\n"
BODY = json.dumps({"source": CHAIN, "inputs": FLOAT_INPUT}).encode()


def asks(server, address):
    """Asks for the result over a connection that reads nothing."""
    c = socket.create_connection(("127.0.0.1", server.port), source_address=(address, 0))
    c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    c.sendall(b"POST /api/v1/compile HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY)
    return c


def resident_mib(server):
    return int(status(server.pid, "VmRSS").split()[0]) >> 10


def test_a_client_that_reads_nothing_has_a_quarter_of_the_memory_and_others_the_rest():
    with Server("--answers-mib", "80", "--job-timeout-ms", "60000", "--job-cpu-s", "60") as s:
        first = s.request("POST", "/api/v1/compile", BODY, {"Content-Type": "application/json"})
        size = len(first.body)
        assert first.status == 200 and 3 << 20 < size < 20 << 20
        before = resident_mib(s)
        silent = [asks(s, "127.0.0.2") for _ in range(40)]
        s.wait_until(lambda: metric(s, "nkx_http_unsent_refused_total") >= 40 - (20 << 20) // size - 1, "most of them to be refused")
        assert metric(s, "nkx_http_unsent_bytes") <= 20 << 20
        refused = s.request("POST", "/api/v1/compile", BODY, {"Content-Type": "application/json"}, address="127.0.0.2")
        assert refused.status == 503 and refused.error["code"] == "too-many-answers" and int(refused.headers["Retry-After"]) >= 1
        again = s.request("POST", "/api/v1/compile", BODY, {"Content-Type": "application/json"}, address="127.0.0.3")
        assert again.status == 200 and len(again.body) > size / 2, "another client gets its answer"
        assert resident_mib(s) - before < 100
        for c in silent:
            c.close()
        s.wait_until(lambda: metric(s, "nkx_http_unsent_bytes") == 0, "all to be released")
        assert s.request("POST", "/api/v1/compile", BODY, {"Content-Type": "application/json"}, address="127.0.0.2").status == 200


def test_what_would_be_refused_is_not_made_first():
    """A client whose share is full: no compile, no look-up and no archive begins for it."""
    with Server("--answers-mib", "8", "--job-timeout-ms", "60000", "--job-cpu-s", "60") as s:
        first = s.request("POST", "/api/v1/compile", BODY, {"Content-Type": "application/json"})
        key = first.json["key"]
        assert len(first.body) > 2 << 20, "one answer is more than a client's share"
        silent = asks(s, "127.0.0.2")
        s.wait_until(lambda: metric(s, "nkx_http_unsent_bytes") > 2 << 20, "the answer to wait")

        def counts():
            return [metric(s, f'nkx_store_tasks_total{{lane="{lane}"}}') for lane in ("build", "read")] + [metric(s, 'nkx_results_total{from="compiled"}')]

        before = counts()
        other = json.dumps({"source": CHAIN + "# other\n", "inputs": FLOAT_INPUT})
        for method, path, body in ("GET", f"/api/v1/results/{key}/artifacts/all.tar.gz", None), ("GET", f"/api/v1/results/{key}", None), ("POST", "/api/v1/compile", other):
            answer = s.request(method, path, body, {"Content-Type": "application/json"}, address="127.0.0.2")
            assert answer.status == 503 and answer.error["code"] == "too-many-answers", path
        assert counts() == before
        assert s.request("GET", "/api/v1/pipeline", address="127.0.0.2").status == 200, "what is small is answered"
        silent.close()


def test_many_clients_together_stay_below_the_ceiling():
    with Server("--answers-mib", "40", "--job-timeout-ms", "60000", "--job-cpu-s", "60", "--queue-timeout-ms", "60000") as s:
        size = len(s.request("POST", "/api/v1/compile", BODY, {"Content-Type": "application/json"}).body)
        silent = [asks(s, f"127.0.1.{n}") for n in range(1, 40)]
        s.wait_until(lambda: metric(s, "nkx_http_unsent_refused_total") > 0, "some to be refused")
        assert (40 << 20) - 2 * size < metric(s, "nkx_http_unsent_bytes") <= 40 << 20
        assert s.get("/healthz").status == 200
        for c in silent:
            c.close()
