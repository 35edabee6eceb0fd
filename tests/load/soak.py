"""A soak: the mixed load for two hours, with the server replaced by SIGHUP every ten minutes.

    PYTHONPATH=tests python3 tests/load/soak.py        NKX_LOAD_SECONDS: instead of the full time (for a first look)

Six clients with addresses of their own compile, store and read; a tenth of what they send is hostile.  The time is cut into twelve parts, of which each ends with a replacement.
Nothing grows.  Memory is measured after a quarter of each part and at its end: the second is at most 10 % more than the first, as the median of the
parts, and from part to part it grows by no more in all, as the line through the ends of the parts says; a single figure says little, because large
results that were on their way leave some MiB for a while.  Descriptors are at most 8 and threads not more than in the first part; 95 of 100 compiles
take at most twice as long as in the first part; no acknowledged link is lost; no request is refused or cut.
What the server keeps on purpose, results and links that were read, grows until it is full: its ceilings are small here, and they are full early in each
part, so that what is measured is the rest, and that what makes room is given back.  Each figure is the least of some seconds.
The server and its clients have precedence over other work on the machine.  The last line says the figures; exit status 1 if one is missed.
"""
import http.client
import os
import pathlib
import random
import signal
import statistics
import sys
import time

from support.clients import Clients, metric, read, share
from support.cpu_quota import precedence
from support.figures import percentile
from support.hostile import kernels
from support.server import ADD_ONE, FLOAT_INPUT, OURS, Server
from support.wait import wait_until

CLIENTS, PARTS, CACHE_MIB = 6, 12, 4  # links that were read take half as much
FULL = 0.8  # a ceiling that the next answer might exceed is full
LOOKS = 20
GROWTH = 0.1
FLAGS = ["--workers", "4", "--cache-mib", str(CACHE_MIB), "--client-compiles", "0", "--client-jobs", "0", "--client-connections", "0", "--client-links", "0", "--client-links-day", "0", "--client-links-mib", "0"]


class Load(Clients):
    def __init__(self, server):
        self.server = server
        self.ms, self.links, self.bad, self.n = [], {}, [], 0
        self.hostile = [source for cases in kernels.CASES.values() for _, source, _ in cases]
        super().__init__(CLIENTS)

    def compile(self, i, source):
        return self.server.request("POST", "/api/v1/compile", {"source": source, "inputs": FLOAT_INPUT}, {**OURS, "Cache-Control": "no-store"},
                                   address=f"127.0.1.{i + 1}")

    def one(self, rng, i):
        text, draw = ADD_ONE.replace("+ 1", f"+ {rng.random()}"), rng.random()
        if draw < 0.1:
            answer = self.compile(i, rng.choice(self.hostile))
            good = answer.status in (200, 400, 413)
        elif draw < 0.25:
            answer = share(self.server, text)
            good = answer.status == 201
            if good:
                with self.lock:
                    self.links[answer.json["id"]] = text
        elif draw < 0.4 and self.links:
            with self.lock:
                id, text = rng.choice(list(self.links.items()))
            answer = read(self.server, id)
            good = answer.status == 200 and answer.json["request"]["source"] == text
        else:
            began = time.perf_counter()
            answer = self.compile(i, text)
            good = answer.status == 200 and answer.json["status"] == "ok"
            with self.lock:
                self.ms.append((time.perf_counter() - began) * 1e3)
        return good, f"{answer.status} {answer.body[:120]}"

    def run(self, i):
        rng = random.Random(i)
        while not self.is_over.is_set():
            try:
                good, what = self.one(rng, i)
            except (OSError, http.client.HTTPException) as e:
                good, what = False, repr(e)
            with self.lock:
                self.n += 1
                if not good:
                    self.bad.append(what)
            time.sleep(rng.expovariate(1))

    def take_ms(self):
        with self.lock:
            ms, self.ms = self.ms, []
        return ms


def footprint(server):
    """KiB, descriptors and threads of the service."""
    proc = pathlib.Path(f"/proc/{server.pid}")
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]), len(os.listdir(proc / "fd")), int(status["Threads"])


def settled(server):
    """The least of each in some seconds: what stays, without the requests of a moment."""
    seen = []
    for _ in range(LOOKS):
        seen.append(footprint(server))
        time.sleep(0.2)
    return tuple(min(each) for each in zip(*seen))


def is_full(server):
    """Of results and of links, as far as they are kept."""
    return all(metric(server, name) >= FULL * size for name, size in (("nkx_results_memory_bytes", CACHE_MIB << 20), ("nkx_links_memory_bytes", CACHE_MIB << 19)))


def fill(server):
    """Stores and reads links until the server keeps as many as it may."""
    made = (share(server, ADD_ONE.replace("+ 1", f"- {i}")) for i in range(1000))
    while not is_full(server):
        answer = next(made)
        assert answer.status != 201 or read(server, answer.json["id"]).status == 200
        time.sleep(0.05)


def replace(server):
    """In place, with the same process id, so that clients wait and none is refused."""
    before = sum("serving" in line for line in server.log)
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: sum("serving" in line for line in server.log) > before, "the server anew", 60)


def main():
    seconds = int(os.environ.get("NKX_LOAD_SECONDS", "7200"))
    p95s, early, feet = [], [], []
    with Server(*FLAGS) as server:
        load = Load(server)
        for _ in range(PARTS):
            ends = time.monotonic() + seconds / PARTS
            fill(server)  # each life begins with nothing kept
            time.sleep(max(0, ends - seconds / PARTS * 3 / 4 - time.monotonic()))
            early.append(settled(server)[0])
            time.sleep(max(0, ends - time.monotonic()))
            feet.append(settled(server))
            p95s.append(percentile(load.take_ms(), 0.95))
            replace(server)
        load.end()
        lost = sum(read(server, id).status != 200 for id in load.links)
    first, most, ends = feet[0], [max(f[i] for f in feet) for i in range(3)], [f[0] for f in feet]
    in_a_part = statistics.median(end / begin - 1 for begin, end in zip(early, ends, strict=True))
    in_all = statistics.linear_regression(range(PARTS), ends).slope * (PARTS - 1) / statistics.mean(ends)
    for what in load.bad[:20]:
        print("failed:", what)
    print("KiB after a quarter of each part and at its end:", *(f"{x}-{y}" for x, y in zip(early, ends, strict=True)))
    print(f"soak: {seconds} s, {PARTS} replacements, {load.n} requests, {len(load.bad)} failed, {len(load.links)} links, {lost} lost; p95 {p95s[0]:.0f} ms at first, at most "
          f"{max(p95s):.0f}; memory {100 * in_a_part:+.1f} % in a part, {100 * in_all:+.1f} % in all, at most {most[0] / 1024:.1f} MiB; descriptors {first[1]} at first, at most {most[1]}, "
          f"threads {first[2]}, {most[2]}")
    return not (not load.bad and not lost and max(p95s) <= 2 * p95s[0] and in_a_part <= GROWTH and in_all <= GROWTH and most[1] <= first[1] + 8 and most[2] <= first[2])


if __name__ == "__main__":
    with precedence():
        status = main()
    sys.exit(status)
