"""A site: five servers, a primary and a synchronous replica of PostgreSQL, and nginx with docker/nginx.conf, which sends each client to one server.

    PYTHONPATH=tests python3 tests/load/site.py       NKX_SITE_ROUNDS: how often each server is disturbed in each way (1)

1. One client's share over five servers is one share: compiles at once, and compiles a minute.
2. A newer compile of an editor calls off the older one, whichever two servers they are on.
3. While twelve clients compile, store and read, each server in turn is killed, stopped for three seconds, drained, and replaced by SIGHUP; then the
   primary is killed and the replica promoted.  Every link that was acknowledged can be read at the end with its source, from each server; fewer than one
   of a thousand compiles failed; compiles went on while there was no database.
The last line says the figures; exit status 1 if one is missed.
"""
import contextlib
import http.client
import itertools
import os
import random
import signal
import sys
import time

from support.clients import Clients, in_thread, in_threads
from support.figures import percentile
from support.nginx import ComposeProxy
from support.postgres import Postgres
from support.server import ADD_ONE, FLOAT_INPUT, JSON, OURS, Server
from support.wait import wait_until

SERVERS, CLIENTS, A_SECOND, STOPPED_S, AWAY_S = 5, 12, 1.5, 3, 5
MINUTES_SHARE, JOBS = 120, 4
SLEEPER = "import time\n\n\ndef sleeper(x):\n    time.sleep({})\n    return x\n"
FLAGS = ["--workers", "2", "--trusted-proxies", "127.0.0.0/8", "--client-compiles", str(MINUTES_SHARE), "--client-jobs", str(JOBS), "--client-links", "1000",
         "--client-links-day", "100000", "--job-timeout-ms", "15000"]
fresh = itertools.count(1)


def source():
    return ADD_ONE.replace("+ 1", f"+ {next(fresh)}")


class Site:
    def __init__(self):
        self.primary = Postgres()
        self.replica = Postgres(follows=self.primary)
        self.url = f"postgresql://nkx@/postgres?host={self.primary.dir},{self.replica.dir}&target_session_attrs=read-write"
        self.servers = [Server("--store", self.url, *FLAGS) for _ in range(SERVERS)]
        self.proxy = ComposeProxy(*self.servers)

    def start(self, i):
        """A server in place of one that has ended."""
        self.servers[i] = Server("--store", self.url, *FLAGS, "--port", str(self.servers[i].port))

    def end(self):
        self.proxy.end()
        for s in self.servers:
            if s.process.poll() is None:
                s.stop()
        self.replica.end()
        self.primary.end()


def ask(server, text, client, **headers):
    """Straight to a server, as the proxy would ask for this client."""
    return server.request("POST", "/api/v1/compile", {"source": text, "inputs": FLOAT_INPUT},
                          {**JSON, "Cache-Control": "no-store", "X-Forwarded-For": client, **headers})


def refused_everywhere(site, client, code):
    def all_refuse():
        answers = [ask(s, source(), client) for s in site.servers]
        return all(a.status == 429 and a.error["code"] == code for a in answers)
    wait_until(all_refuse, f"{code} by all", 12, poll_s=0.1)


def shares(site):
    """How many compiles at once, and in a minute, one client got of all servers together."""
    sleepers = [in_thread(ask, site.servers[i % SERVERS], SLEEPER.format(20 + i), "198.51.100.1") for i in range(JOBS)]
    for s in site.servers[:JOBS]:
        s.wait_running()
    refused_everywhere(site, "198.51.100.1", "too-many-jobs")
    assert ask(site.servers[0], source(), "198.51.100.2").status in (200, 503), "another client's share"
    got = sum(s().status == 200 for s in sleepers)
    began, taken = time.monotonic(), 0
    while True:
        statuses = [ask(s, source(), "198.51.100.3").status for s in site.servers]
        taken += statuses.count(200)
        if set(statuses) == {429}:
            break
    share = MINUTES_SHARE + (time.monotonic() - began) * MINUTES_SHARE / 60
    return got, taken, share


def superseding(site):
    """How many of the older compiles were called off, each by one on the next server."""
    off = 0
    for i, older in enumerate(site.servers):
        old = in_thread(lambda s=older: ask(s, SLEEPER.format(9), "198.51.100.4", **{"X-Nkx-Editor": "an-editor-of-the-site"}))
        older.wait_running()
        assert ask(site.servers[(i + 1) % SERVERS], source(), "198.51.100.4", **{"X-Nkx-Editor": "an-editor-of-the-site"}).status == 200
        off += old().status == 409
    return off


class Load(Clients):
    """Clients with addresses of their own, through the proxy."""

    def __init__(self, site):
        self.site = site
        self.compiled_ms, self.failed, self.links, self.refused_links = [], [], {}, 0
        self.phase = "quiet"
        super().__init__(CLIENTS)

    def request(self, address, method, path, body=None):
        """None: the connection was cut."""
        try:
            return self.site.proxy.request(method, path, body, {**OURS, "Cache-Control": "no-store"}, address=address)
        except (OSError, http.client.HTTPException):
            return None

    def compile(self, address):
        began = time.perf_counter()
        answer = self.request(address, "POST", "/api/v1/compile", {"source": source(), "inputs": FLOAT_INPUT})
        good = answer is not None and answer.status == 200 and answer.json["status"] == "ok"
        with self.lock:
            if good:
                self.compiled_ms.append((time.perf_counter() - began) * 1e3)
            else:
                self.failed.append((self.phase, answer and (answer.status, answer.body[:160])))

    def store(self, address):
        text = source()
        answer = self.request(address, "POST", "/api/v1/snippets", {"source": text, "inputs": FLOAT_INPUT})
        with self.lock:
            if answer is not None and answer.status == 201:
                self.links[answer.json["id"]] = text
            else:
                self.refused_links += 1

    def run(self, i):
        rng, address = random.Random(i), f"127.0.2.{i + 1}"
        while not self.is_over.is_set():
            (self.store if rng.random() < 0.2 else self.compile)(address)
            time.sleep(rng.expovariate(A_SECOND))


def is_reachable(server):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return server.get("/healthz").status == 200
    return False


def disturb(site, load, i):
    server = site.servers[i]
    load.phase = "kill"
    server.kill()
    site.start(i)
    server = site.servers[i]
    load.phase = "stop"
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    time.sleep(STOPPED_S)
    os.kill(pid, signal.SIGCONT)
    load.phase = "drain"
    assert server.stop() == 0
    site.start(i)
    load.phase = "roll"
    server = site.servers[i]
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: sum("msg=serving" in x or " serving " in x for x in server.log) >= 2, "the server anew", 60)
    wait_until(lambda: is_reachable(server), "a healthy server", 60)


def fail_over(site, load):
    """How many compiles were answered while there was no database."""
    load.phase = "fail-over"
    site.primary.kill()
    before = len(load.compiled_ms)
    time.sleep(AWAY_S)
    meanwhile = len(load.compiled_ms) - before
    site.replica.promote()
    stored = len(load.links)
    wait_until(lambda: len(load.links) > stored + 3, "links to be stored again", 60)
    return meanwhile


def lost(site, links):
    """Links that a server does not have as they were stored."""
    def of(i):
        bad = 0
        for id, text in links.items():
            answer = site.servers[i].request("GET", f"/api/v1/snippets/{id}", headers={"X-Forwarded-For": f"127.0.3.{i + 1}"})
            bad += answer.status != 200 or answer.json["request"]["source"] != text
        return bad
    return sum(in_threads(SERVERS, of))


def main():
    rounds, began = int(os.environ.get("NKX_SITE_ROUNDS", "1")), time.monotonic()
    site = Site()
    try:
        got, taken, share = shares(site)
        off = superseding(site)
        load = Load(site)
        for i in [i for _ in range(rounds) for i in range(SERVERS)]:
            disturb(site, load, i)
        meanwhile = fail_over(site, load)
        load.end()
        gone = lost(site, load.links)
    finally:
        site.end()
    n = len(load.compiled_ms) + len(load.failed)
    for phase, what in load.failed:
        print(f"failed during {phase}: {what}")
    print(f"site: {SERVERS} servers, {time.monotonic() - began:.0f} s; at once {got} of {JOBS}; in a minute {taken} of {share:.0f}; superseded {off} of {SERVERS}; "
          f"{n} compiles, {len(load.failed)} failed, p50 {percentile(load.compiled_ms, 0.5):.0f} ms, p95 {percentile(load.compiled_ms, 0.95):.0f} ms; {meanwhile} compiled without "
          f"a database; {len(load.links)} links acknowledged, {load.refused_links} refused, {gone} lost")
    return not (got <= JOBS and taken <= share + SERVERS and off == SERVERS and gone == 0 and len(load.failed) < n / 1000 and meanwhile > 0 and load.links)


if __name__ == "__main__":
    sys.exit(main())
