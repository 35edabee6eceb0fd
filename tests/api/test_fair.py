"""One client cannot hold the workers, and a process that hangs is replaced: others are served meanwhile."""
import os
import signal
import socket
import time

import pytest

from support.clients import in_thread, metric, open_stream, read_until
from support.server import ADD_ONE, FLOAT_INPUT, Server

SLEEPS = "import time\ntime.sleep(60)\n"
LOOPS = "while True:\n    pass\n"
OTHER = {"source": ADD_ONE, "inputs": FLOAT_INPUT}


@pytest.fixture
def two_workers():
    with Server("--workers", "2", "--job-timeout-ms", "60000", "--job-cpu-s", "60", "--queue-timeout-ms", "30000",
                "--drain-timeout-ms", "500") as s:
        s.settle()
        yield s


def compiles(server, address, n):
    """How long each of n small compiles of this client took."""
    took = []
    for k in range(n):
        began = time.monotonic()
        answer = server.request("POST", "/api/v1/compile", {**OTHER, "source": ADD_ONE + f"# {address} {k}\n"},
                                {"Content-Type": "application/json", "Cache-Control": "no-store"}, address=address)
        assert answer.status == 200 and answer.json["status"] == "ok", answer.body[:500]
        took.append(time.monotonic() - began)
    return took


@pytest.mark.parametrize("source", [SLEEPS, LOOPS], ids=["sleepers", "loops"])
def test_one_client_with_many_long_jobs_leaves_workers_to_others(two_workers, source):
    for k in range(4):
        in_thread(two_workers.request, "POST", "/api/v1/compile", {"source": source + f"# {k}\n"},
                  {"Content-Type": "application/json", "Cache-Control": "no-store"}, "127.0.0.2")
    two_workers.wait_until(lambda: metric(two_workers, "nkx_workers_running") == 2, "both workers to be taken")
    took = compiles(two_workers, "127.0.0.3", 8)
    assert sorted(took)[4] < 2 and max(took) < 5, took
    assert metric(two_workers, "nkx_queue_length") == 2, "what the client has beyond its share waits"


def test_a_job_that_only_waits_ends_when_others_wait():
    """With one worker there is no share to leave: the sleeper is stopped after two seconds, a job that computes is not."""
    with Server("--workers", "1", "--job-timeout-ms", "60000", "--queue-timeout-ms", "30000", "--drain-timeout-ms", "500") as s:
        s.settle()
        with open_stream(s, SLEEPS) as sleeper:
            read_until(sleeper, b'"frame":"start"')
            assert max(compiles(s, "127.0.0.3", 1)) < 8
            text = read_until(sleeper, b'"frame":"end"')
        assert b'"code":"time-limit"' in text and b"waited for 2 s instead of computing" in text
        busy = "import time\nuntil = time.monotonic() + 4\nwhile time.monotonic() < until:\n    pass\n" + ADD_ONE
        long = in_thread(s.post, {**OTHER, "source": busy})
        s.wait_running()
        assert max(compiles(s, "127.0.0.3", 1)) > 1, "it waited for the long job"
        assert long().json["status"] == "ok"


def test_a_sleeper_that_nobody_waits_for_goes_on():
    with Server("--workers", "1", "--job-timeout-ms", "60000") as s:
        assert s.post({**OTHER, "source": "import time\ntime.sleep(3)\n" + ADD_ONE}).json["status"] == "ok"


@pytest.fixture
def stopped():
    """A server, its active zygote, which was stopped, and the answer to a job of four seconds that a child of it has."""
    with Server("--workers", "2", "--job-timeout-ms", "60000") as s:
        s.settle()
        s.wait_until(lambda: len(s.zygotes()) == 2, "the one that stands by", 60)
        zygote = s.zygote()
        running = in_thread(s.post, {**OTHER, "source": "import time\ntime.sleep(4)\n" + ADD_ONE})
        s.wait_running()
        os.kill(zygote, signal.SIGSTOP)
        yield s, zygote, running


def test_a_zygote_that_hangs_is_replaced_and_its_jobs_go_on(stopped):
    s, hung, running = stopped
    began = time.monotonic()
    took = compiles(s, "127.0.0.3", 12)  # more than there were children that waited
    assert max(took) < 4, took
    s.wait_for_log("zygote_silent", f"pid={hung}")
    assert s.get("/readyz").status == 200 and time.monotonic() - began < 12
    assert running().json["status"] == "ok", "a job of its child was lost"
    s.wait_until(lambda: hung not in s.zygotes(), "it to be killed once its last job has ended", 15)
    s.settle()
    assert metric(s, "nkx_zygote_restarts_total") >= 1


def test_a_zygote_that_was_only_slow_ends_by_itself(stopped):
    s, slow, running = stopped
    s.wait_for_log("zygote_silent", f"pid={slow}")
    os.kill(slow, signal.SIGCONT)
    assert running().json["status"] == "ok"
    s.wait_until(lambda: slow not in s.zygotes(), "it to retire", 20)
    assert not any("zygote_lost" in line for line in s.log), "it was asked to end, not killed"
    compiles(s, "127.0.0.3", 2)


def large_result(server):
    """The path of an archive that takes a while to build."""
    chain = "import numpy as np\n\n\ndef k(x):\n    for i in range(250):\n        x = np.sin(x) + 1\n    return x\n"
    made = server.request("POST", "/api/v1/compile", {"source": chain, "inputs": FLOAT_INPUT}, {"Content-Type": "application/json"})
    return f"/api/v1/results/{made.json['key']}/artifacts/all.tar.gz"


def test_archives_of_one_client_do_not_delay_the_compiles_of_others():
    with Server("--workers", "2", "--job-timeout-ms", "60000", "--job-cpu-s", "60") as s:
        archive = large_result(s)
        quiet = sorted(compiles(s, "127.0.0.3", 5))[2]
        stop = []

        def loop():
            while not stop:
                assert s.request("GET", archive, address="127.0.0.2").status == 200
            return True

        loops = [in_thread(loop) for _ in range(6)]
        s.wait_until(lambda: metric(s, 'nkx_store_waiting{lane="build"}') >= 3, "archives to wait")
        took = sorted(compiles(s, "127.0.0.3", 9))
        began = time.monotonic()
        assert s.request("GET", archive.replace("artifacts/all.tar.gz", "stages/3"), address="127.0.0.3").status == 200
        other = time.monotonic() - began
        stop.append(True)
        assert all(end() for end in loops)
        assert took[4] < 10 * quiet + 0.2 and other < 2, (quiet, took, other)


def test_archives_are_not_built_for_who_has_left_and_one_client_leaves_room_for_others():
    with Server("--workers", "2", "--job-timeout-ms", "60000", "--job-cpu-s", "60", "--answers-mib", "1024") as s:
        archive = large_result(s)
        began = time.monotonic()
        assert s.request("GET", archive, address="127.0.0.3").status == 200
        one = time.monotonic() - began
        asking = []
        for _ in range(150):
            c = socket.create_connection(("127.0.0.1", s.port), source_address=("127.0.0.2", 0))
            c.sendall(f"GET {archive} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            asking.append(c)
        s.wait_until(lambda: metric(s, 'nkx_store_refused_total{lane="build"}') >= 150 - 64 - 20, "the client to have its share of the queue")
        assert 0 < metric(s, 'nkx_store_waiting{lane="build"}') <= 64
        assert s.request("GET", archive, address="127.0.0.3").status == 200, "there is room for another client"
        waiting = metric(s, 'nkx_store_waiting{lane="build"}')
        assert waiting > 40, "otherwise this shows nothing"
        began = time.monotonic()
        for c in asking:
            c.close()
        s.wait_until(lambda: metric(s, 'nkx_store_waiting{lane="build"}') == 0, "the lane to be empty")
        assert time.monotonic() - began < waiting * one / 4, (waiting, one)
        assert s.request("GET", archive, address="127.0.0.2").status == 200
        assert metric(s, 'nkx_http_requests_total{route="/api/v1/results/",status="0"}') >= 40
