"""R3: the clock steps by an hour, forwards and backwards, while jobs run and a client sends slowly: no deadline is met early
or late, nothing is restarted.  The server's clock is libfaketime's, which leaves the monotonic one alone."""
import pathlib
import time

import pytest

from support.clients import in_thread, read, share
from support.figures import figure
from support.server import ADD_ONE, Server, codes

LIBRARY = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
WALL_S, HEADER_S, LATE_S = 3, 2, 4


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
    made = share(server)
    assert made.status == 201, made.body
    return read(server, made.json).json["created_ms"]


def timed(work):
    began = time.monotonic()
    return work(), time.monotonic() - began


@pytest.mark.parametrize("to", [3600, -3600])
def test_a_clock_that_steps_moves_no_deadline(stepped, to):
    s = stepped
    s.settle()

    def sleep():
        return s.compile("import time\ntime.sleep(60)\n")
    zygote, before = s.zygote(), now_ms(s)
    _, usual = timed(sleep)  # a little less than its limit, so that it can say where it was
    short = in_thread(s.compile, "import time\ntime.sleep(1.5)\n" + ADD_ONE)
    endless = in_thread(timed, sleep)
    busy = in_thread(timed, lambda: s.compile("while True:\n    pass\n"))
    dribbler = in_thread(timed, lambda: s.raw(b"GET /healthz HTTP/1.1\r\nX: ", timeout=30))
    s.wait_running(3)
    for step in (to, 0, to):
        s.step(step)
        assert abs(now_ms(s) - before - 1000 * step) < 60000, "the server's clock did not step"
    assert short()["status"] == "ok", "ended early"
    for verdict, took in (endless(), busy()):
        assert codes(verdict) == ["time-limit"] and usual - 0.3 <= took <= WALL_S + LATE_S, (usual, took)
    figure(f"clock {to:+d} s: a job that is given {WALL_S} s got {endless()[1]:.2f} s, {usual:.2f} s without a step")
    _, took = dribbler()
    assert HEADER_S - 1 <= took <= HEADER_S + LATE_S, took
    s.wait_until(lambda: s.get("/readyz").status == 200, "readiness", 10)
    assert s.zygote() == zygote and s.health["restarts"] == 0
    assert s.compile(ADD_ONE)["status"] == "ok"
