"""R3: the clock steps by an hour, forwards and backwards, while jobs run and clients dribble: no deadline is met early or
late, nothing is restarted.  The server's clock is libfaketime's, which leaves the monotonic one alone."""
import json
import pathlib
import threading
import time

import pytest
from api_conftest import ADD_ONE, FLOAT_INPUT, Server, codes, figure

LIBRARY = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
WALL_S, HEADER_S, LATE_S = 3, 2, 4
OURS = {"Content-Type": "application/json", "X-Nkx-Request": "1"}


@pytest.fixture
def stepped(tmp_path):
    assert LIBRARY, "Debian's package faketime is not installed (docker/packages-test.apt)"
    clock = tmp_path / "clock"
    clock.write_text("+0")
    server = Server("--workers", "4", "--job-timeout-ms", str(WALL_S * 1000), "--header-timeout-ms", str(HEADER_S * 1000),
                    env={"LD_PRELOAD": str(LIBRARY), "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_TIMESTAMP_FILE": str(clock),
                         "FAKETIME_FORCE_MONOTONIC_FIX": "0", "FAKETIME_NO_CACHE": "1"})
    server.step = lambda seconds: clock.write_text(f"{seconds:+d}")
    yield server
    if server.process.poll() is None:
        assert server.stop() == 0


def now_ms(server):
    made = server.request("POST", "/api/v1/snippets", json.dumps({"source": ADD_ONE, "inputs": FLOAT_INPUT}), OURS)
    assert made.status == 201, made.body
    return server.get(f"/api/v1/snippets/{made.json['id']}").json["created_ms"]


def in_thread(work, *args):
    out = []
    t = threading.Thread(target=lambda: out.append(work(*args)))
    t.start()
    return lambda: (t.join(), out[0])[1]


def timed(work):
    began = time.monotonic()
    return work(), time.monotonic() - began


@pytest.mark.parametrize("to", [3600, -3600])
def test_a_clock_that_steps_moves_no_deadline(stepped, to):
    s = stepped
    s.settle()
    sleep = lambda: s.compile("import time\ntime.sleep(60)\n")  # noqa: E731
    zygote, before = s.zygote(), now_ms(s)
    _, usual = timed(sleep)  # a little less than its limit, so that it can say where it was
    short = in_thread(s.compile, "import time\ntime.sleep(1.5)\n" + ADD_ONE)
    endless = in_thread(timed, sleep)
    busy = in_thread(timed, lambda: s.compile("while True:\n    pass\n"))
    dribbler = in_thread(timed, lambda: s.raw(b"GET /healthz HTTP/1.1\r\nX: ", timeout=30))
    time.sleep(0.7)
    s.step(to)
    assert abs(now_ms(s) - before - 1000 * to) < 60000, "the server's clock did not step"
    time.sleep(0.3)
    s.step(0)
    time.sleep(0.2)
    s.step(to)
    assert short()["status"] == "ok", "ended early"
    for verdict, took in (endless(), busy()):
        assert codes(verdict) == ["time-limit"] and usual - 0.3 <= took <= WALL_S + LATE_S, (usual, took)
    figure(f"clock {to:+d} s: a job that is given {WALL_S} s got {endless()[1]:.2f} s, {usual:.2f} s without a step")
    _, took = dribbler()
    assert HEADER_S - 1 <= took <= HEADER_S + LATE_S, took
    s.wait_until(lambda: s.get("/readyz").status == 200, "readiness", 10)
    assert s.zygote() == zygote and s.health["restarts"] == 0
    assert s.compile(ADD_ONE)["status"] == "ok"
