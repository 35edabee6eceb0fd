"""What each memory trick of the worker gains (explorer/worker/memory/memory.h), as ratios in one run.

One server has all tricks on, one has all off, and for each trick one has all but that one.  A small kernel is compiled on
each in turn, so that all meet the same load of the machine.  A ratio is "without the trick" over "all on": 1.10 means that
the trick saves a tenth; that of p50 is the median of the rounds' ratios.  Processor time is that of the zygote and its children for a job; memory is the proportional set
size of all processes of a server at rest.

    python3 tests/bench/memory.py [--rounds N] [--example NAME] [--json FILE]
"""
import argparse
import http.client
import json
import os
import pathlib
import re
import statistics
import time

from loading import ROOT, Server

TRICKS = re.findall(r'TRICK\(MEMORY_\w+, "(\w+)"\)', (ROOT / "explorer/worker/memory/memory.h").read_text())
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


def children(pid):
    return [int(x) for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for x in task.read_text().split()]


def name(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


class Service(Server):
    def __init__(self, tricks):
        super().__init__("--worker-memory", tricks)
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.times = []

    def zygotes(self):
        return [p for p in children(self.process.pid) if name(p) == "nkx-worker"]

    def wait_until_calm(self):
        """Until both zygotes are ready and the stock of children is full."""
        while True:
            self.connection.request("GET", "/healthz")
            health = json.loads(self.connection.getresponse().read())
            kids = sum(len(children(z)) for z in self.zygotes())
            if len(self.zygotes()) == 2 and health["idle"] == kids > 0:
                return
            time.sleep(0.1)

    def compile(self, body):
        began = time.perf_counter()
        self.connection.request("POST", "/api/v1/compile", body,
                                {"Content-Type": "application/json", "Cache-Control": "no-store"})
        answer = self.connection.getresponse().read()
        assert b'"status":"ok"' in answer, answer[:500]
        return (time.perf_counter() - began) * 1e3

    def processor_ms(self):
        """Of the zygotes and the children that they have reaped."""
        total = 0
        for z in self.zygotes():
            fields = pathlib.Path(f"/proc/{z}/stat").read_text().rsplit(")", 1)[1].split()
            total += sum(int(x) for x in fields[11:15])
        return total * TICK_MS

    def memory_mib(self):
        pids = [self.process.pid]
        for p in pids:
            pids += children(p)
        rollups = [pathlib.Path(f"/proc/{p}/smaps_rollup").read_text() for p in pids]
        return sum(int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1]) for text in rollups) / 1024


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--rounds", type=int, default=300)
    args.add_argument("--example", default="01_matmul_bias_relu")
    args.add_argument("--json")
    args = args.parse_args()
    source = (ROOT / f"explorer/examples/{args.example}.py").read_text()
    servers = {"all on": Service("on"), "all off": Service("off")}
    servers |= {f"without {t}": Service(",".join(x for x in TRICKS if x != t)) for t in TRICKS}
    for s in servers.values():
        s.wait_until_calm()
    for i in range(args.rounds + 5):
        if i == 5:  # the first ones warm up the caches of the machine
            before = {n: s.processor_ms() for n, s in servers.items()}
            for s in servers.values():
                s.times.clear()
        for s in servers.values():
            s.times.append(s.compile(json.dumps({"source": f"# {i}\n{source}"})))
    out = {}
    for n, s in servers.items():
        s.wait_until_calm()
        times = sorted(s.times)
        out[n] = {"p50": statistics.median(times), "p99": times[int(len(times) * 0.99) - 1],
                  "processor": (s.processor_ms() - before[n]) / args.rounds, "memory": s.memory_mib()}
    base = out["all on"]
    print(f"{'':18s} {'p50':>9s} {'ratio':>6s} {'p99':>9s} {'ratio':>6s} {'processor':>11s} {'ratio':>6s} {'memory':>10s} {'ratio':>6s}")
    for n, row in out.items():
        row["ratio"] = {k: row[k] / base[k] for k in row}
        row["ratio"]["p50"] = statistics.median(a / b for a, b in zip(servers[n].times, servers["all on"].times))
        cells = (f"{row[k]:7.1f} {unit} {row['ratio'][k]:6.2f}" for k, unit in
                 (("p50", "ms"), ("p99", "ms"), ("processor", "ms"), ("memory", "MiB")))
        print(f"{n:18s} " + "  ".join(cells))
    for s in servers.values():
        s.end()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
