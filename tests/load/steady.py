"""L1, L2 and L3: rates held for long.  Pages are asked for by one client program (h2load); compiles come at random moments,
as from many people (a Poisson process), and each one's time counts from the moment it was due.

    PYTHONPATH=tests python3 tests/load/steady.py L1|L2|L3        NKX_LOAD_SECONDS: instead of the full time (for a first look)

L1: pages and stored snippets, 2,000 a second for 60 s; 99 of 100 within 20 ms.
L2: 40 small compiles a second for 30 min; half within 80 ms, 95 of 100 within 250 ms, none fails.
L3: 160 a second for 10 min; as much is answered as at L2 less a tenth, the rest is refused within 50 ms (95 of 100), and
    5 s later L2's rate is met again.
The last line says the figures; exit status 1 if one is missed.
"""
import http.client
import json
import os
import pathlib
import random
import sys
import tempfile
import threading
import time

from support.clients import in_threads, share
from support.figures import percentile
from support.h2load import h2load
from support.server import JOB, OURS, Server

FRESH = {**OURS, "Cache-Control": "no-store"}
# the client is one address, and these are about the service, not about its share for one
UNLIMITED = ["--client-connections", "0", "--client-compiles", "0", "--client-jobs", "0"]
RATE, FLOOD = 40, 160


def held(port, path, seconds, rps, clients, **more):
    """The milliseconds of what was answered and of what was refused, and how many of the requests failed."""
    with tempfile.NamedTemporaryFile() as log:
        counts = h2load(port, path, seconds=seconds, clients=clients, rps=rps, log=log.name, **more)
        rows = [line.split("\t") for line in pathlib.Path(log.name).read_text().splitlines()]
    ok = [int(us) / 1e3 for _, status, us in rows if status.startswith("2")]
    refused = [int(us) / 1e3 for _, status, us in rows if status in ("429", "503")]
    return ok, refused, len(rows) - len(ok) - len(refused) + counts["errors"]


def l1(server, seconds):
    link = share(server).json
    worst, figures = True, []
    for name, path in (("page", "/"), ("link", link["url"]), ("snippet", f"/api/v1/snippets/{link['id']}")):
        ok, refused, failed = held(server.port, path, seconds, 2000, 16, headers={"Accept-Encoding": "gzip"})
        p99 = percentile(ok, 0.99)
        worst &= len(ok) >= 0.99 * 2000 * seconds and p99 <= 20 and not refused and not failed
        figures.append(f"{name} {len(ok) / seconds:.0f}/s p99 {p99:.1f} ms")
    return worst, ", ".join(figures)


def arrivals(seconds, rps):
    rng, t = random.Random(rps), 0.0
    while (t := t + rng.expovariate(rps)) < seconds:
        yield t


def compiles(server, seconds, rps):
    """The same as `held`, of compiles at random moments, rps a second."""
    due, lock, began = arrivals(seconds, rps), threading.Lock(), time.perf_counter()
    ok, refused, failed, body = [], [], [], json.dumps(JOB)

    def client(_):
        c = server.connect(timeout=60)
        while True:
            with lock:
                at = next(due, None)
            if at is None:
                return c.close()
            time.sleep(max(0, began + at - time.perf_counter()))
            try:
                c.request("POST", "/api/v1/compile", body, FRESH)
                answer = c.getresponse()
                answer.read()
                status = answer.status
            except (OSError, http.client.HTTPException):
                status = 0
                c.close()
            into = ok if status == 200 else refused if status in (429, 503) else failed
            into.append((time.perf_counter() - began - at) * 1e3)

    in_threads(2 * rps, client)
    return ok, refused, len(failed)


def l2(server, seconds):
    ok, refused, failed = compiles(server, seconds, RATE)
    p50, p95 = percentile(ok, 0.5), percentile(ok, 0.95)
    met = len(ok) >= 0.98 * RATE * seconds and p50 <= 80 and p95 <= 250 and not refused and not failed
    return met, (f"{len(ok) / seconds:.1f}/s for {seconds} s, p50 {p50:.0f} ms, p95 {p95:.0f} ms, "
                 f"{len(refused)} refused, {failed} failed")


def l3(server, seconds):
    ok, refused, failed = compiles(server, seconds, FLOOD)
    quick = percentile(refused, 0.95) if refused else 0
    compiles(server, 5, RATE)
    after, after_refused, after_failed = compiles(server, 10, RATE)
    p95 = percentile(after, 0.95)
    met = (len(ok) >= 0.9 * RATE * seconds and quick <= 50 and not failed and not after_refused and not after_failed
           and len(after) >= 0.9 * RATE * 10 and p95 <= 250)
    return met, (f"{len(ok) / seconds:.1f}/s answered and {len(refused) / seconds:.1f}/s refused (p95 {quick:.0f} ms) of {FLOOD}/s "
                 f"for {seconds} s, {failed} failed; 5 s later {len(after) / 10:.1f}/s with p95 {p95:.0f} ms")


def main():
    run, full = {"L1": (l1, 60), "L2": (l2, 1800), "L3": (l3, 600)}[sys.argv[1]]
    seconds = int(os.environ.get("NKX_LOAD_SECONDS", full))
    with Server(*UNLIMITED) as server:
        met, figures = run(server, seconds)
    print(f"{sys.argv[1]}: {figures}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
