"""H-mix, L4 and N8: many clients for long, each with an address of its own.

    python3 tests/load/mix.py H-mix|L4|N8     NKX_LOAD_SECONDS: instead of the full time (for a first look)

H-mix: one hour, a fifth of the jobs are hostile (tests/hostile), drawn at random.  No zygote dies, no normal job is lost, and
       95 of 100 of them take at most twice as long as with normal jobs alone.
L4: 200 editors for 5 min, each compiles a second after its last keystroke, on average every five; now and then one types on
    while its compile runs.  95 of 100 answers within 300 ms; a superseded compile ends within 100 ms.
N8: for 2 min one address floods with compiles over 32 connections, as fast as it is answered; it is answered 429 with a time to
    wait, none of the others is refused, and 95 of 100 of their jobs take at most twice as long as without it.
The last line says the figures; exit status 1 if one is missed.
"""
import http.client
import json
import os
import pathlib
import random
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "bench"), str(HERE.parent / "hostile")]
import kernels  # noqa: E402
from loading import JSON, SMALL, Server, h2load, percentile  # noqa: E402

AT_ONCE, EDITORS = 4, 200
FREE = ["--client-compiles", "0", "--client-jobs", "0", "--client-connections", "0"]


def post(port, address, body, headers):
    """Milliseconds, status, and what was answered."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=120, source_address=(address, 0))
    began = time.perf_counter()
    try:
        c.request("POST", "/api/v1/compile", json.dumps(body), JSON | {"Cache-Control": "no-store"} | headers)
        r = c.getresponse()
        data = r.read()
        return (time.perf_counter() - began) * 1e3, r.status, json.loads(data)
    finally:
        c.close()


def in_threads(n, work):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


def normal_jobs(server, seconds, hostile, clients=AT_ONCE, a_second=4):
    """The milliseconds of normal jobs, and those that were lost."""
    took, lost, lock, end = [], [], threading.Lock(), time.monotonic() + seconds

    def run(i):
        rng = random.Random(i)
        while time.monotonic() < end:
            is_hostile = hostile and rng.random() < 0.2
            body = {"source": rng.choice(hostile), "inputs": SMALL["inputs"]} if is_hostile else SMALL
            ms, status, answer = post(server.port, f"127.0.1.{i + 1}", body, {})
            with lock:
                if not is_hostile and (status != 200 or answer["status"] != "ok"):
                    lost.append((status, json.dumps(answer)[:200]))
                elif not is_hostile:
                    took.append(ms)
            time.sleep(rng.expovariate(a_second))  # as people do, not as fast as it goes
    in_threads(clients, run)
    return took, lost


def h_mix(seconds):
    server = Server("--workers", "8", *FREE)
    try:
        hostile = [source for cases in kernels.CASES.values() for _, source, _ in cases]
        quiet, _ = normal_jobs(server, min(60, seconds), [])
        mixed, lost = normal_jobs(server, seconds, hostile)
        restarts = json.loads(server.request("GET", "/healthz")[1])["restarts"]
    finally:
        server.end()
    p = percentile(quiet, 0.95), percentile(mixed, 0.95)
    return (p[1] <= 2 * p[0] and not lost and not restarts,
            f"H-mix: {seconds} s, {len(mixed)} normal jobs, {len(lost)} lost, {restarts} restarts; p95 {p[1]:.0f} ms, alone {p[0]:.0f} ms {lost[:2] or ''}")


def l4(seconds):
    server = Server(*FREE)
    took, failed, ended, lock, end = [], [], [], threading.Lock(), time.monotonic() + seconds
    slow = {"source": "import time\ntime.sleep(3)\n", "inputs": []}

    def type_on(headers, address):
        """The editor's next compile, sent while this one runs, calls it off."""
        out = []
        first = threading.Thread(target=lambda: out.append((post(server.port, address, slow, headers), time.perf_counter())))
        first.start()
        time.sleep(0.2)
        sent = time.perf_counter()
        second = post(server.port, address, SMALL, headers)
        first.join()
        return (out[0][1] - sent) * 1e3, second

    def edit(i):
        rng, address = random.Random(i), f"127.0.{2 + i // 200}.{1 + i % 200}"
        headers = {"X-Nkx-Editor": f"editor-of-client-{i:04d}"}
        time.sleep(rng.uniform(0, 5))
        while time.monotonic() < end:
            if rng.random() < 0.02:
                called_off, (ms, status, answer) = type_on(headers, address)
                with lock:
                    ended.append(called_off)
            else:
                ms, status, answer = post(server.port, address, SMALL, headers)
            with lock:
                took.append(ms)
                if status != 200 or answer["status"] != "ok":
                    failed.append((status, json.dumps(answer)[:200]))
            time.sleep(1 + rng.expovariate(1 / 4))
    try:
        in_threads(EDITORS, edit)
    finally:
        server.end()
    p95, off95 = percentile(took, 0.95), percentile(ended, 0.95)
    return (p95 <= 300 and off95 <= 100 and not failed,
            f"L4: {EDITORS} editors for {seconds} s, {len(took) / seconds:.0f} compiles/s, p95 {p95:.0f} ms, {len(failed)} failed; {len(ended)} superseded, "
            f"ended within {off95:.0f} ms (p95) {failed[:2] or ''}")


def n8(seconds):
    """The limits of a server that stands behind a proxy, which here is the flood itself."""
    server = Server("--trusted-proxies", "127.0.0.1")
    clients, a_second = 8, 1.5  # below their share, which is 2 a second
    flood = {}

    def send():
        flood.update(h2load(server.port, "/api/v1/compile", seconds=61 + seconds, clients=32, body=SMALL,
                            headers=JSON | {"Cache-Control": "no-store", "X-Forwarded-For": "192.0.2.1"}))
    try:
        quiet, _ = normal_jobs(server, min(60, seconds), [], clients, a_second)
        flooding = threading.Thread(target=send)
        flooding.start()
        time.sleep(61)  # the others' minutes begin anew
        status, told = refused(server)
        busy, lost = normal_jobs(server, seconds, [], clients, a_second)
        flooding.join()
    finally:
        server.end()
    p = percentile(quiet, 0.95), percentile(busy, 0.95)
    return (p[1] <= 2 * p[0] and status == 429 and told > 0 and flood["refused"] > 0 and not lost,
            f"N8: of the flood {flood['ok']} compiled and {flood['refused']} refused, {flood['errors']} failed; others' p95 {p[1]:.0f} ms, "
            f"without it {p[0]:.0f} ms, {len(lost)} of {len(busy) + len(lost)} refused")


def refused(server):
    """What the flood is answered: the status, and when to try again."""
    c = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    try:
        for _ in range(20):  # now and then one gets through
            c.request("POST", "/api/v1/compile", json.dumps(SMALL), JSON | {"Cache-Control": "no-store", "X-Forwarded-For": "192.0.2.1"})
            r = c.getresponse()
            r.read()
            if r.status != 200:
                break
        return r.status, int(r.headers.get("Retry-After", 0))
    finally:
        c.close()


def main():
    run, full = {"H-mix": (h_mix, 3600), "L4": (l4, 300), "N8": (n8, 120)}[sys.argv[1]]
    met, figures = run(int(os.environ.get("NKX_LOAD_SECONDS", full)))
    print(figures)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
