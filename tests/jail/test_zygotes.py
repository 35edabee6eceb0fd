"""Zygotes are replaced, by plan or by accident, and no job is lost by it; processes killed at any moment do not hurt."""
import contextlib
import os
import random
import signal
import threading
import time

import pytest

from support.clients import in_thread, in_threads, read, share
from support.figures import figure
from support.server import ADD_ONE, JOB, Server, codes

SCALE = int(os.environ.get("NKX_KILLS", "20"))  # R1: 20 in make test, 200 in make nightly


def test_a_worn_zygote_is_replaced_and_no_job_is_dropped():
    with Server("--zygote-jobs", "20", "--workers", "2") as s:
        s.settle()
        first = s.zygote()
        slow = "import time\ntime.sleep(1)\n" + ADD_ONE

        def run(_):
            return [s.compile(slow if k % 5 == 4 else ADD_ONE)["status"] for k in range(15)]
        assert in_threads(4, run) == [["ok"] * 15] * 4
        s.wait_for_log("zygote_replaced")
        s.compile(ADD_ONE)
        s.settle()
        assert s.zygote() != first
        s.wait_until(lambda: first not in s.zygotes(), "the old one to end")
        assert s.health["restarts"] == 0, "a planned replacement is no accident"


def test_random_numbers_are_the_same_in_every_job():
    """The children of a zygote share its memory; the generators start from the job's seed, not from their state there."""
    with Server("--workers", "1") as s:
        code = "import random, numpy as np\nraise SystemError(repr((random.random(), np.random.rand(), np.random.rand())))\n"
        said = {s.compile(code)["diagnostics"][0]["message"] for _ in range(3)}
        s.settle()
        first = s.zygote()
        os.kill(first, signal.SIGKILL)
        s.wait_until(lambda: s.zygote() not in (None, first), "the next one")  # a job that began in a child of the first dies with it
        said.add(s.compile(code)["diagnostics"][0]["message"])
        assert len(said) == 1


@pytest.fixture(scope="module")
def killed():
    with Server("--workers", "2", "--job-timeout-ms", "5000") as s:
        s.settle()
        yield s


def under_kills(server, kill, is_fine):
    """Jobs run all the while that `kill` is called at random moments; every answer must be fine."""
    rng, stop, bad = random.Random(7), threading.Event(), []

    def run():
        while not stop.is_set():
            answer = server.post(JOB)
            if not is_fine(answer):
                bad.append((answer.status, answer.body[:300]))

    runs = [in_thread(run) for _ in range(2)]
    for _ in range(SCALE):
        time.sleep(rng.uniform(0, 0.1))  # a random moment
        kill(rng)
    stop.set()
    for ended in runs:
        ended()
    assert not bad, bad[:3]
    server.settle()
    assert server.compile(ADD_ONE)["status"] == "ok"


def test_workers_killed_at_random_moments_fail_only_their_own_job(killed):
    def kill(rng):
        kids = killed.kids()
        if kids:
            try:
                os.kill(rng.choice(kids), signal.SIGKILL)
            except ProcessLookupError:
                pass
    under_kills(killed, kill, lambda a: a.status == 200 and (a.json["status"] == "ok" or codes(a.json) == ["worker-died"]))


def test_zygotes_killed_at_random_moments_are_replaced(killed):
    def kill(_):
        killed.wait_until(lambda: killed.health["idle"] > 0, "a zygote at work")
        zygote = killed.zygote()
        if zygote:
            with contextlib.suppress(ProcessLookupError):  # the one before, reaped meanwhile
                os.kill(zygote, signal.SIGKILL)
    # without a spare, which a zygote killed at once after another has not yet, jobs may have to wait for too long
    under_kills(killed, kill, lambda a: a.status == 200 and (a.json["status"] == "ok" or codes(a.json) == ["worker-died"])
                or a.status == 503 and a.error["code"] == "starting" and int(a.headers["Retry-After"]) > 0)


def test_a_killed_server_comes_back_with_everything_it_acknowledged(tmp_path):
    """kill -9 at random moments while snippets are stored: what was answered 201 is there after the next start."""
    rng, kept, back = random.Random(11), [], []
    for round_ in range(max(2, SCALE // 10)):
        began = time.monotonic()
        with Server("--workers", "1", data=tmp_path) as s:
            back.append(time.monotonic() - began)
            end = time.monotonic() + rng.uniform(0.05, 0.5)
            while time.monotonic() < end:
                text = f"# {round_} {len(kept)}\n" + ADD_ONE
                a = share(s, text)
                if a.status == 201:
                    kept.append((a.json, text))
            s.kill()
    with Server("--workers", "1", data=tmp_path) as s:
        for made, text in kept:
            assert read(s, made).json["request"]["source"] == text
    figure(f"{len(back)} servers killed, {len(kept)} links kept; back after {max(back):.1f} s at most")
    assert kept
