"""Frames arrive while the job still runs; a client that leaves takes its job with it."""
import socket
import threading
import time

from conftest import FLOAT_INPUT, Server, open_stream, read_until

# the first kernel's stages are there while the second is still being traced
SLOW = """import time
import numpy as np
from nkigen import trace

@trace(input_specs=[((8, 16), "float32")])
def first(x):
    return x + 1

@trace(input_specs=[((8, 16), "float32")])
def second(x):
    time.sleep(1)
    return x + 2
"""
SLEEPER = "import time\ntime.sleep(60)\n"


def test_stages_arrive_before_the_job_ends(server):
    with open_stream(server, SLOW) as s:
        seen, text = {}, b""
        while b'"frame":"end"' not in text:
            piece = s.recv(65536)
            assert piece
            text += piece
            for mark in (b'"frame":"start"', b'"frame":"stage"', b'"name":"second"', b'"frame":"end"'):
                if mark in text:
                    seen.setdefault(mark, time.monotonic())
    assert seen[b'"frame":"end"'] - seen[b'"frame":"start"'] > 0.9
    assert seen[b'"frame":"end"'] - seen[b'"frame":"stage"'] > 0.9


def test_the_first_frame_arrives_at_once(server):
    with open_stream(server, SLEEPER) as s:
        began = time.monotonic()
        read_until(s, b'"frame":"start"')
        assert time.monotonic() - began < 5
    server.settle()


def test_a_client_that_leaves_stops_its_job(server):
    for accept in ("application/x-ndjson", "application/json"):
        s = open_stream(server, SLEEPER, accept=accept)
        server.wait_until(lambda: server.health["running"] == 1, "the job to run")
        s.close()
        server.wait_until(lambda: server.health["running"] == 0, "the job to be stopped", 5)
    server.settle()


def test_a_full_queue_is_503_with_retry_after_and_clears():
    s = Server("--workers", "1", "--queue", "2")
    try:
        streams = [open_stream(s, SLEEPER)]
        s.wait_until(lambda: s.health["running"] == 1, "a running job")
        streams += [open_stream(s, SLEEPER), open_stream(s, SLEEPER)]
        s.wait_until(lambda: s.health["waiting"] == 2, "a full queue")
        answer = s.post({"source": "", "inputs": FLOAT_INPUT})
        assert answer.status == 503 and answer.error["code"] == "busy" and int(answer.headers["Retry-After"]) > 0
        for x in streams:
            x.close()
        s.settle()
        assert s.post({"source": "", "inputs": FLOAT_INPUT}).status == 200
    finally:
        assert s.stop() == 0


def test_a_slow_reader_gets_everything(server):
    source = "import numpy as np\ndef k(x):\n" + "    x = np.exp(x + 1)\n" * 60 + "    return x\n"
    with open_stream(server, source, FLOAT_INPUT) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 128 << 10)
        time.sleep(1)
        text = read_until(s, b"\r\n0\r\n\r\n")
    assert b'"frame":"end","status":"ok"' in text and len(text) > 200000


def test_headers_that_dribble_are_cut_off(server):
    def dribble(out):
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
        out.append(time.monotonic() - began)

    times = []
    threads = [threading.Thread(target=dribble, args=(times,)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(8 < t < 14 for t in times), times
