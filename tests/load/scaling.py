"""What five servers answer, and one, when each is held to a part of the machine: PostgreSQL, nginx with docker/nginx.conf, and clients at their own addresses.

    PYTHONPATH=tests python3 tests/load/scaling.py [--part P] [--seconds 20] [--rounds 3]

Forty clients compile as fast as they are answered, first by one server and then by five, in turn for several rounds.  Five answer at least four times what one
does.  The clients, nginx and the database run on the same machine, and take a good part of it for each compile, so five servers cannot have a fifth of it each.
They have a fifth each of what these leave: a short run with a tenth each measures who takes how much for a compile.  `--part` holds each server to another part of
all processors.  What each takes is counted and said; beside other work the servers and their surroundings have precedence.
The last line says the figures; exit status 1 if it is missed; SKIP where no quota can be set.
"""
import argparse
import contextlib
import http.client
import os
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
PILOT, PILOT_S, ROOM = 0.1, 10, 0.9  # ROOM: for the kernel and other work
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


class Machine:
    """The servers, each in a group of its own; the clients, nginx and the database in others, which are counted and not held."""

    def __init__(self):
        self.servers, self.quotas, self.around, self.proxies, self.database = [], [], {}, [], None
        try:
            self.around = {name: CpuQuota(name) for name in ("clients", "nginx", "PostgreSQL")}
            self.quotas = [CpuQuota(str(i)) for i in range(SERVERS)]
            self.database = Postgres()
            self.servers = [Server("--store", self.database.url, *FLAGS) for _ in range(SERVERS)]
            for server, quota in zip(self.servers, self.quotas):
                wait_until(lambda s=server: len(s.zygotes()) == 2, "both zygotes", 60)
                quota.hold(server.launcher)
            self.proxies = {1: ComposeProxy(self.servers[0]), SERVERS: ComposeProxy(*self.servers)}
            for proxy in self.proxies.values():
                self.around["nginx"].hold(proxy.process.pid)
            self.around["PostgreSQL"].hold(self.database.process.pid)
            self.around["clients"].hold_alone(os.getpid())
        except BaseException:
            self.end()
            raise

    def hold(self, part):
        for quota in self.quotas:
            quota.set(part)

    def used_s(self):
        return {"servers": sum(q.used_s() for q in self.quotas), **{name: q.used_s() for name, q in self.around.items()}}

    def end(self):
        if "clients" in self.around:
            self.around["clients"].let_go(os.getpid())
        for thing in [*dict(self.proxies).values(), *([self.database] if self.database else [])]:
            thing.end()
        for s in self.servers:
            s.stop()
        for q in [*self.quotas, *self.around.values()]:
            q.end()


def rate(machine, n, seconds):
    """Compiles a second by n servers, what failed, and what each part took of the machine's processors."""
    load = Load(machine.proxies[n])
    time.sleep(WARM_S)
    before, used, began = load.done, machine.used_s(), time.monotonic()
    time.sleep(seconds)
    done, took = load.done - before, time.monotonic() - began
    parts = {name: (s - used[name]) / took / os.cpu_count() for name, s in machine.used_s().items()}
    load.end()
    return done / took, load.bad, parts


def fair_part(machine):
    """The part that five servers can have each, beside what their clients, nginx and the database take for that many compiles."""
    machine.hold(PILOT)
    _, _, parts = rate(machine, SERVERS, PILOT_S)
    return ROOM * parts["servers"] / sum(parts.values()) / SERVERS


def say(parts):
    return ", ".join(f"{name} {100 * part:.0f} %" for name, part in parts.items())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--part", type=float)
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--rounds", type=int, default=3)
    o = p.parse_args()
    try:
        machine = Machine()
    except NoQuota as e:
        print(f"SKIP {e}")
        return 0
    try:
        part = o.part or fair_part(machine)
        machine.hold(part)
        rates, bad, parts = {1: [], SERVERS: []}, [], {}
        for _ in range(o.rounds):
            for n in 1, SERVERS:
                a_second, failed, parts[n] = rate(machine, n, o.seconds)
                rates[n].append(a_second)
                bad += failed
                print(f"{n} at {part:.3f}: {a_second:.1f} a second; of the machine: {say(parts[n])}", flush=True)
    finally:
        machine.end()
    ratios = [five / one for one, five in zip(rates[1], rates[SERVERS])]
    for what in bad[:5]:
        print("failed:", what)
    print(f"scaling: each held to {100 * part:.1f} % of the machine; one answers {statistics.median(rates[1]):.1f} compiles a second, {SERVERS} answer {statistics.median(rates[SERVERS]):.1f}: "
          f"{statistics.median(ratios):.2f} times ({', '.join(f'{r:.2f}' for r in ratios)}); of the machine: {say(parts[SERVERS])}; {len(bad)} failed")
    return not (statistics.median(ratios) >= LEAST and not bad)


if __name__ == "__main__":
    sys.exit(main())
