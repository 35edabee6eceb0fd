"""Frames arrive while the job still runs; a client that leaves takes its job with it."""
import socket
import time

from support.clients import in_threads, open_stream, read_until
from support.processes import connections
from support.server import FLOAT_INPUT, Server

SLEEPER = "import time\ntime.sleep(60)\n"

# the first kernel's stages are there while the second is still being traced
SLOW = """import time
import numpy as np
from nkigen import trace

@trace(input_specs=[((8, 16), "float32")])
def first(x):
    return x + 1

@trace(input_specs=[((8, 16), "float32")])
def second(x):
    time.sleep(60)
    return x + 2
"""


def test_stages_arrive_while_the_job_runs(server):
    with open_stream(server, SLOW) as s:
        text = read_until(s, b'"frame":"stage"')
        assert text.index(b'"frame":"start"') < text.index(b'"frame":"stage"') and b'"name":"second"' not in text
        assert server.health["running"] == 1
    server.settle()


def test_the_first_frame_arrives_while_the_source_runs(server):
    with open_stream(server, SLEEPER) as s:
        read_until(s, b'"frame":"start"')
        assert server.health["running"] == 1
    server.settle()


def test_a_client_that_leaves_stops_its_job(server):
    for accept in ("application/x-ndjson", "application/json"):
        s = open_stream(server, SLEEPER, accept=accept)
        server.wait_running()
        s.close()
        server.wait_until(lambda: server.health["running"] == 0, "the job to be stopped", 5)
    server.settle()


def test_a_full_queue_is_503_with_retry_after_and_clears():
    with Server("--workers", "1", "--queue", "2") as s:
        streams = [open_stream(s, SLEEPER)]
        s.wait_running()
        streams += [open_stream(s, SLEEPER), open_stream(s, SLEEPER)]
        s.wait_waiting(2)
        answer = s.post({"source": "", "inputs": FLOAT_INPUT})
        assert answer.status == 503 and answer.error["code"] == "busy" and int(answer.headers["Retry-After"]) > 0
        for x in streams:
            x.close()
        s.settle()
        assert s.post({"source": "", "inputs": FLOAT_INPUT}).status == 200


def test_a_slow_reader_gets_everything(server):
    source = "import numpy as np\ndef k(x):\n" + "    x = np.exp(x + 1)\n" * 60 + "    return x\n"
    with open_stream(server, source, FLOAT_INPUT) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
        server.wait_until(lambda: any(n_bytes > 1 << 16 for n_bytes in connections(server.port)), "the reader to be behind")
        text = read_until(s, b"\r\n0\r\n\r\n")
    assert b'"frame":"end","status":"ok"' in text and len(text) > 200000


def test_headers_that_dribble_are_cut_off_after_ten_seconds(server):
    """By the default deadline; tests of slow clients are in test_http.py."""
    def dribble(_):
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", server.port)) as s:
            s.settimeout(0.5)
            try:
                for byte in b"GET /healthz HTTP/1.1\r\nX: " + b"a" * 100:
                    s.send(bytes([byte]))
                    try:
                        if s.recv(1) == b"":
                            break
                    except TimeoutError:
                        pass
            except OSError:
                pass
        return time.monotonic() - began

    times = in_threads(4, dribble)
    assert all(9 < t < 30 for t in times), times
