"""Zygotes are replaced, by plan or by accident, and no job is lost by it; processes killed at any moment do not hurt."""
import contextlib
import os
import random
import signal
import threading
import time

import pytest
from api_conftest import ADD_ONE, FLOAT_INPUT, Server, children, codes, figure

SCALE = int(os.environ.get("NKX_KILLS", "20"))  # R1: 20 in make test, 200 in make nightly


def test_a_worn_zygote_is_replaced_and_no_job_is_dropped():
    s = Server("--zygote-jobs", "20", "--workers", "2")
    s.settle()
    first, bad, lock = s.zygote(), [], threading.Lock()
    slow = "import time\ntime.sleep(1)\n" + ADD_ONE

    def run(i):
        for k in range(15):
            r = s.compile(slow if k % 5 == 4 else ADD_ONE)
            if r["status"] != "ok":
                with lock:
                    bad.append(r)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad
    s.wait_until(lambda: any("zygote_replaced" in line for line in s.log), "a replacement")
    s.compile(ADD_ONE)
    s.settle()
    assert s.zygote() != first
    s.wait_until(lambda: first not in s.zygotes(), "the old one to end")
    assert s.health["restarts"] == 0, "a planned replacement is no accident"
    assert s.stop() == 0


def test_random_numbers_are_the_same_in_every_job():
    """The children of a zygote share its memory; the generators start from the job's seed, not from whatever they had."""
    s = Server("--workers", "1")
    code = "import random, numpy as np\nraise SystemError(repr((random.random(), np.random.rand(), np.random.rand())))\n"
    said = {s.compile(code)["diagnostics"][0]["message"] for _ in range(3)}
    s.settle()
    first = s.zygote()
    os.kill(first, signal.SIGKILL)
    s.wait_until(lambda: s.zygote() not in (None, first), "the next one")  # a job that began in a child of the first dies with it
    said.add(s.compile(code)["diagnostics"][0]["message"])
    assert len(said) == 1
    assert s.stop() == 0


@pytest.fixture(scope="module")
def killed():
    s = Server("--workers", "2", "--job-timeout-ms", "5000")
    s.settle()
    yield s
    assert s.stop() == 0


def under_kills(server, kill, is_fine):
    """Jobs run all the while that `kill` is called at random moments; every answer must be fine."""
    rng, stop, bad = random.Random(7), threading.Event(), []

    def run():
        while not stop.is_set():
            answer = server.post({"source": ADD_ONE, "inputs": FLOAT_INPUT})
            if not is_fine(answer):
                bad.append((answer.status, answer.body[:300]))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for t in threads:
        t.start()
    for _ in range(SCALE):
        time.sleep(rng.uniform(0, 0.1))
        kill(rng)
    stop.set()
    for t in threads:
        t.join()
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


def test_a_killed_server_comes_back_with_everything_it_acknowledged():
    """kill -9 at random moments while snippets are stored: what was answered 201 is there after the next start."""
    import json
    import tempfile
    rng, kept, back = random.Random(11), [], []
    with tempfile.TemporaryDirectory(prefix="nkx-test-") as data:
        for round_ in range(max(2, SCALE // 10)):
            began = time.monotonic()
            s = Server("--workers", "1", data=data)
            back.append(time.monotonic() - began)
            end = time.monotonic() + rng.uniform(0.05, 0.5)
            while time.monotonic() < end:
                text = f"# {round_} {len(kept)}\n" + ADD_ONE
                a = s.request("POST", "/api/v1/snippets", json.dumps({"source": text, "inputs": FLOAT_INPUT}),
                              {"Content-Type": "application/json", "X-Nkx-Request": "1"})
                if a.status == 201:
                    kept.append((a.json["id"], text))
            s.process.kill()
            s.process.wait()
        s = Server("--workers", "1", data=data)
        for snippet_id, text in kept:
            assert s.get(f"/api/v1/snippets/{snippet_id}").json["request"]["source"] == text
        figure(f"{len(back)} servers killed, {len(kept)} links kept; back after {max(back):.1f} s at most")
        assert kept
        assert s.stop() == 0
