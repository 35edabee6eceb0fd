"""What each memory trick of the worker gains (explorer/worker/memory/memory.h), as ratios in one run.

One server has all tricks on, one has all off, and for each trick one has all but that one.  Each gets the same work in
turn, so that all meet the same load of the machine: first a small kernel, one request after another (p50 and p99), then the
same kernel from four clients at once for two seconds (processor time of all its processes for each compile, and compiles a
second).  Memory is the proportional set size of all processes of a server at rest.  A ratio is the server's figure over that
of "all on", the median over the rounds except for p99 and memory: a p50 of 1.10 or a rate of 0.90 means that the trick gains
a tenth.

    python3 tests/bench/memory.py [--rounds N] [--bursts N] [--json FILE]
"""
import argparse
import http.client
import json
import os
import pathlib
import re
import statistics
import time

from support.figures import percentile
from support.h2load import h2load
from support.paths import ROOT
from support.processes import children, program
from support.server import JOB, JSON, Server
from support.wait import wait_until

TRICKS = re.findall(r'TRICK\(MEMORY_\w+, "(\w+)"\)', (ROOT / "explorer/worker/memory/memory.h").read_text())
HEADERS = JSON | {"Cache-Control": "no-store"}
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
COLUMNS = (("p50", "ms"), ("p99", "ms"), ("processor", "ms"), ("rate", "/s"), ("memory", "MiB"))


class Service(Server):
    def __init__(self, tricks):
        super().__init__("--worker-memory", tricks, "--zygote-jobs", "1000000")
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.times, self.rates, self.costs = [], [], []

    def wait_until_calm(self):
        """Until both zygotes are ready and the stock of children is full."""
        def is_calm():
            zygotes = [p for p in children(self.process.pid) if program(p) == "nkx-worker"]
            idle = json.loads(self.request("GET", "/healthz")[1])["idle"]
            return len(zygotes) == 2 and idle == sum(len(children(z)) for z in zygotes) > 0

        wait_until(is_calm, "full stocks of children", poll_s=0.1)

    def compile(self):
        began = time.perf_counter()
        self.connection.request("POST", "/api/v1/compile", json.dumps(JOB), HEADERS)
        answer = self.connection.getresponse().read()
        assert b'"status":"ok"' in answer, answer[:500]
        self.times.append((time.perf_counter() - began) * 1e3)

    def pids(self):
        pids = [self.process.pid]
        for p in pids:
            pids += children(p)
        return pids

    def processor_ms(self):
        """Of the processes that are there, and of those that they have reaped."""
        fields = (pathlib.Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split() for p in self.pids())
        return sum(int(x) for f in fields for x in f[11:15]) * TICK_MS

    def burst(self):
        self.wait_until_calm()
        before = self.processor_ms()
        r = h2load(self.port, "/api/v1/compile", body=JOB, headers=HEADERS, seconds=2, clients=4)
        assert r["ok"] and not r["refused"] and not r["errors"], r
        self.wait_until_calm()
        self.rates.append(r["rate"])
        self.costs.append((self.processor_ms() - before) / r["ok"])

    def memory_mib(self):
        rollups = [pathlib.Path(f"/proc/{p}/smaps_rollup").read_text() for p in self.pids()]
        return sum(int(re.search(r"^Pss:\s+(\d+)", text, re.M)[1]) for text in rollups) / 1024

    def figures(self, base):
        """{column: (value, ratio to the base)}"""
        def ratio(mine, its):
            return statistics.median(a / b for a, b in zip(mine, its))
        p99, base_p99 = percentile(self.times, 0.99), percentile(base.times, 0.99)
        return {"p50": (statistics.median(self.times), ratio(self.times, base.times)), "p99": (p99, p99 / base_p99),
                "processor": (statistics.median(self.costs), ratio(self.costs, base.costs)),
                "rate": (statistics.median(self.rates), ratio(self.rates, base.rates)),
                "memory": (self.memory_mib(), self.memory_mib() / base.memory_mib())}


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--rounds", type=int, default=300)
    args.add_argument("--bursts", type=int, default=7)
    args.add_argument("--json")
    args = args.parse_args()
    servers = {"all on": Service("on"), "all off": Service("off")}
    servers |= {f"without {t}": Service(",".join(x for x in TRICKS if x != t) or "off") for t in TRICKS}
    for s in servers.values():
        s.wait_until_calm()
    for i in range(args.rounds):
        for s in servers.values():
            s.compile()
    for i in range(args.bursts):
        for s in servers.values():
            s.burst()
    for s in servers.values():
        s.wait_until_calm()
    out = {n: s.figures(servers["all on"]) for n, s in servers.items()}
    print(" " * 17 + "".join(f"{f'{column}, {unit}':>14s}  ratio" for column, unit in COLUMNS))
    for n, row in out.items():
        print(f"{n:17s}" + "".join(f"{row[c][0]:14.1f}  {row[c][1]:5.2f}" for c, _ in COLUMNS))
    for s in servers.values():
        s.end()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
