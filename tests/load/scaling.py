"""What five servers answer, and one, when each is held to a part of the machine: PostgreSQL, nginx with docker/nginx.conf, and clients at their own addresses.

    PYTHONPATH=tests python3 tests/load/scaling.py [--part 0.1] [--seconds 20] [--rounds 3]

Forty clients compile as fast as they are answered, first by one server and then by five, in turn for several rounds.  Five answer at least four times what one
does.  Each server is held to `--part` of all processors (a tenth: what is left is for the clients, nginx and the database, which run beside them).
The last line says the figures; exit status 1 if it is missed; SKIP where no quota can be set.
"""
import argparse
import contextlib
import http.client
import random
import statistics
import sys
import time

from support.clients import Clients
from support.cpu_quota import CpuQuota, NoQuota
from support.nginx import ComposeProxy
from support.postgres import Postgres
from support.server import ADD_ONE, FLOAT_INPUT, JSON, Server
from support.wait import wait_until

SERVERS, CLIENTS, LEAST, WARM_S = 5, 40, 4, 3
FLAGS = ["--workers", "2", "--trusted-proxies", "127.0.0.0/8", "--client-compiles", "0", "--client-jobs", "0", "--client-connections", "0", "--queue-timeout-ms", "60000"]


class Load(Clients):
    def __init__(self, proxy):
        self.proxy, self.done, self.bad = proxy, 0, []
        super().__init__(CLIENTS)

    def run(self, i):
        rng = random.Random()
        while not self.is_over.is_set():
            body = {"source": ADD_ONE.replace("+ 1", f"+ {rng.random()}"), "inputs": FLOAT_INPUT}
            answer = None
            with contextlib.suppress(OSError, http.client.HTTPException):
                answer = self.proxy.request("POST", "/api/v1/compile", body, {**JSON, "Cache-Control": "no-store"}, address=f"127.0.4.{i + 1}")
            with self.lock:
                if answer is not None and answer.status == 200 and answer.json["status"] == "ok":
                    self.done += 1
                else:
                    self.bad.append(answer and (answer.status, answer.body[:120]))


def rate(proxy, seconds):
    """Compiles a second, and what failed."""
    load = Load(proxy)
    time.sleep(WARM_S)
    before, began = load.done, time.monotonic()
    time.sleep(seconds)
    n, took = load.done - before, time.monotonic() - began
    load.end()
    return n / took, load.bad


def measure(servers, o):
    one, all_of_them = ComposeProxy(servers[0]), ComposeProxy(*servers)
    rates, bad = {1: [], SERVERS: []}, []
    try:
        for _ in range(o.rounds):
            for n, proxy in (1, one), (SERVERS, all_of_them):
                a_second, failed = rate(proxy, o.seconds)
                rates[n].append(a_second)
                bad += failed
    finally:
        one.end()
        all_of_them.end()
    return rates, bad


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--part", type=float, default=0.1)
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--rounds", type=int, default=3)
    o = p.parse_args()
    quotas, servers, database = [], [], Postgres()
    try:
        for i in range(SERVERS):
            quotas.append(CpuQuota(str(i), o.part))
        servers = [Server("--store", database.url, *FLAGS) for _ in range(SERVERS)]
        for server, quota in zip(servers, quotas):
            wait_until(lambda s=server: len(s.zygotes()) == 2, "both zygotes", 60)
            quota.hold(server.launcher)
        rates, bad = measure(servers, o)
    except NoQuota as e:
        print(f"SKIP {e}")
        return 0
    finally:
        for s in servers:
            s.stop()
        for q in quotas:
            q.end()
        database.end()
    ratios = [five / one for one, five in zip(rates[1], rates[SERVERS])]
    for what in bad[:5]:
        print("failed:", what)
    print(f"scaling: each held to {o.part:g} of the machine; one answers {statistics.median(rates[1]):.1f} compiles a second, {SERVERS} answer {statistics.median(rates[SERVERS]):.1f}: "
          f"{statistics.median(ratios):.2f} times ({', '.join(f'{r:.2f}' for r in ratios)}); {len(bad)} failed")
    return not (statistics.median(ratios) >= LEAST and not bad)


if __name__ == "__main__":
    sys.exit(main())
