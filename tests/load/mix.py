"""H-mix, L4 and N8: many clients for a long time, each with its own address.

    PYTHONPATH=tests python3 tests/load/mix.py H-mix|L4|N8     NKX_LOAD_SECONDS: instead of the full time (for a first look)

H-mix: one hour, a fifth of the jobs are hostile (support/hostile), drawn at random.  No zygote dies, no normal job is lost, and
       95 of 100 of them take at most twice as long as with normal jobs alone.
L4: 200 editors for 5 min, each compiles a second after its last keystroke, on average every five; now and then one types on
    while its compile runs.  95 of 100 answers within 300 ms; a superseded compile ends within 100 ms.
N8: for 2 min one address floods with compiles over 32 connections, as fast as it is answered; it is answered 429 with a time to
    wait, none of the others is refused, and 95 of 100 of their jobs take at most twice as long as without it.
The last line says the figures; exit status 1 if one is missed.
"""
import json
import os
import random
import sys
import threading
import time

from support.clients import in_thread, in_threads
from support.figures import percentile
from support.h2load import h2load
from support.hostile import kernels
from support.server import FLOAT_INPUT, JOB, OURS, Server
from support.wait import wait_until

AT_ONCE, EDITORS = 4, 200
FREE = ["--client-compiles", "0", "--client-jobs", "0", "--client-connections", "0"]


def post(server, address, body, headers):
    """Milliseconds, status, and what was answered."""
    began = time.perf_counter()
    answer = server.request("POST", "/api/v1/compile", body, {**OURS, "Cache-Control": "no-store", **headers}, address=address)
    return (time.perf_counter() - began) * 1e3, answer.status, answer.json


def normal_jobs(server, seconds, hostile, clients=AT_ONCE, a_second=4, network="127.0.1"):
    """The milliseconds of normal jobs, and those that were lost; each client has an address of the network."""
    took, lost, lock, end = [], [], threading.Lock(), time.monotonic() + seconds

    def run(i):
        rng = random.Random(i)
        while time.monotonic() < end:
            is_hostile = hostile and rng.random() < 0.2
            body = {"source": rng.choice(hostile), "inputs": FLOAT_INPUT} if is_hostile else JOB
            ms, status, answer = post(server, f"{network}.{i + 1}", body, {})
            with lock:
                if not is_hostile and (status != 200 or answer["status"] != "ok"):
                    lost.append((status, json.dumps(answer)[:200]))
                elif not is_hostile:
                    took.append(ms)
            time.sleep(rng.expovariate(a_second))  # as people do, not as fast as it goes
    in_threads(clients, run)
    return took, lost


def h_mix(seconds):
    with Server("--workers", "8", *FREE) as server:
        hostile = [source for cases in kernels.CASES.values() for _, source, _ in cases]
        quiet, _ = normal_jobs(server, min(60, seconds), [])
        mixed, lost = normal_jobs(server, seconds, hostile)
        restarts = server.health["restarts"]
    p = percentile(quiet, 0.95), percentile(mixed, 0.95)
    return (p[1] <= 2 * p[0] and not lost and not restarts,
            f"H-mix: {seconds} s, {len(mixed)} normal jobs, {len(lost)} lost, {restarts} restarts; p95 {p[1]:.0f} ms, alone {p[0]:.0f} ms {lost[:2] or ''}")


def l4(seconds):
    took, failed, ended, lock, end = [], [], [], threading.Lock(), time.monotonic() + seconds
    slow = {"source": "import time\ntime.sleep(3)\n", "inputs": []}

    def edit(i):
        rng, address = random.Random(i), f"127.0.{2 + i // 200}.{1 + i % 200}"
        headers = {"X-Nkx-Editor": f"editor-of-client-{i:04d}"}

        def type_on():
            """The editor's next compile, sent while this one runs, ends it: within how many ms, and the answer to the next."""
            first = in_thread(lambda: (post(server, address, slow, headers), time.perf_counter()))
            time.sleep(0.2)
            sent = time.perf_counter()
            second = post(server, address, JOB, headers)
            return (first()[1] - sent) * 1e3, second

        time.sleep(rng.uniform(0, 5))
        while time.monotonic() < end:
            if rng.random() < 0.02:
                ended_ms, (ms, status, answer) = type_on()
                with lock:
                    ended.append(ended_ms)
            else:
                ms, status, answer = post(server, address, JOB, headers)
            with lock:
                took.append(ms)
                if status != 200 or answer["status"] != "ok":
                    failed.append((status, json.dumps(answer)[:200]))
            time.sleep(1 + rng.expovariate(1 / 4))
    with Server(*FREE) as server:
        in_threads(EDITORS, edit)
    p95, off95 = percentile(took, 0.95), percentile(ended, 0.95)
    return (p95 <= 300 and (not ended or off95 <= 100) and not failed,
            f"L4: {EDITORS} editors for {seconds} s, {len(took) / seconds:.0f} compiles/s, p95 {p95:.0f} ms, {len(failed)} failed; {len(ended)} superseded, "
            f"ended within {off95:.0f} ms (p95) {failed[:2] or ''}")


FLOOD = {**OURS, "Cache-Control": "no-store", "X-Forwarded-For": "192.0.2.1"}


def n8(seconds):
    """The limits of a server after a proxy; the flood itself is the proxy."""
    clients, a_second = 8, 1.5  # below their share, which is 2 a second
    with Server("--trusted-proxies", "127.0.0.1") as server:
        quiet, _ = normal_jobs(server, min(60, seconds), [], clients, a_second)
        flooding = in_thread(lambda: h2load(server.port, "/api/v1/compile", seconds=10 + seconds, clients=32, body=JOB, headers=FLOOD))
        told = wait_until(lambda: refused(server), "the flood to have used up its share", 60)
        busy, lost = normal_jobs(server, seconds, [], clients, a_second, network="127.0.2")
        flood = flooding()
    p = percentile(quiet, 0.95), percentile(busy, 0.95)
    return (p[1] <= 2 * p[0] and told > 0 and flood["refused"] > 0 and not lost,
            f"N8: of the flood {flood['ok']} compiled and {flood['refused']} refused, {flood['errors']} failed; others' p95 {p[1]:.0f} ms, "
            f"without it {p[0]:.0f} ms, {len(lost)} of {len(busy) + len(lost)} refused")


def refused(server):
    """When to try again, if the flood is answered 429."""
    answer = server.request("POST", "/api/v1/compile", JOB, FLOOD)
    return answer.status == 429 and int(answer.headers["Retry-After"])


def main():
    run, full = {"H-mix": (h_mix, 3600), "L4": (l4, 300), "N8": (n8, 120)}[sys.argv[1]]
    met, figures = run(int(os.environ.get("NKX_LOAD_SECONDS", full)))
    print(figures)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
