"""The launcher starts every other process with privileges.  One that hangs is known within two seconds, and another one takes its place."""
import os
import signal
import time

import pytest

from support.clients import metric
from support.processes import alive, children, program
from support.server import ADD_ONE, Server


@pytest.fixture
def own():
    """A server whose second launcher is there, and whose processes go on before it is stopped."""
    with Server("--workers", "1") as s:
        s.wait_until(s.standby, "the launcher that stands by", 20)
        s.wait_until(lambda: len(s.zygotes()) == 2, "the zygote that stands by", 60)
        s.settle()
        yield s
        for pid in (s.launcher, s.standby()):
            os.kill(pid, signal.SIGCONT)


def stop(pid):
    """SIGSTOP stands for a hang: a lock, a debugger, a page fault on a dead file system."""
    os.kill(pid, signal.SIGSTOP)
    return time.monotonic()


def test_a_launcher_that_hangs_is_replaced(own):
    standby = own.standby()
    began = stop(own.launcher)
    own.wait_for_log("launcher_replaced", seconds=2)
    assert time.monotonic() - began < 2 and own.compile(ADD_ONE)["status"] == "ok"
    for zygote in own.zygotes():  # the new one starts others
        os.kill(zygote, signal.SIGKILL)
    own.wait_until(lambda: [p for p in children(standby) if program(p) == "nkx-worker"], "a zygote of its own", 10)
    own.wait_until(lambda: own.get("/readyz").status == 200, "readiness", 20)
    assert own.compile(ADD_ONE + "# 2\n")["status"] == "ok"
    own.wait_until(lambda: [p for p in children(standby) if program(p) == "nkx-launcher"], "one that stands by for the new one", 10)


def test_readiness_says_within_two_seconds_that_no_launcher_answers(own):
    began = stop(own.launcher)
    stop(own.standby())
    own.wait_until(lambda: own.get("/healthz").status == 503, "it to be said", 2)
    assert time.monotonic() - began < 2.5
    answer = own.get("/readyz")
    assert answer.status == 503 and "does not answer" in answer.json["worker"] and metric(own, "nkx_pool_ready") == 0
    assert own.compile(ADD_ONE)["status"] == "ok", "what is there goes on"
    os.kill(own.launcher, signal.SIGCONT)
    own.wait_until(lambda: own.get("/healthz").status == 200 == own.get("/readyz").status, "readiness", 5)


def test_a_launcher_that_stands_by_and_dies_is_made_anew(own):
    first = own.standby()
    os.kill(first, signal.SIGKILL)
    own.wait_until(lambda: own.standby() not in (None, first), "another one", 15)
    assert own.get("/readyz").status == 200


def test_nothing_is_left_of_either_launcher():
    with Server("--workers", "1") as s:
        s.wait_until(s.standby, "the launcher that stands by", 20)
        standby = s.standby()
        os.kill(s.launcher, signal.SIGKILL)
        s.process.wait(timeout=10)
        s.wait_until(lambda: not alive(standby), "its end", 5)


def test_a_zygote_without_jobs_that_was_only_slow_is_not_killed(own):
    slow = own.zygote()
    own.settle()
    os.kill(slow, signal.SIGSTOP)
    for i in range(6):  # more than there are children that wait
        assert own.compile(ADD_ONE + f"# {i}\n")["status"] == "ok"
    own.wait_for_log("zygote_silent", f"pid={slow}")
    held = time.monotonic() + 2
    own.wait_until(lambda: time.monotonic() > held, "a while in which it has no job", 5)
    assert alive(slow)
    os.kill(slow, signal.SIGCONT)
    own.wait_until(lambda: not alive(slow), "it to retire", 10)
    assert not any("zygote_lost" in line for line in own.log), "it was asked to end, not killed"
