"""One client attacks with the default shares, in four ways and in all of them together; what others notice of it.

    PYTHONPATH=tests python3 tests/load/attacks.py [--seconds 1200] [NAME…]

unread    it asks for a large result over 60 connections and reads nothing
archives  it downloads the archive of a large result, over 8 connections
links     it stores links of a kernel that is known, as fast as it is answered, over 4 connections
sleepers  it has eight kernels that wait
mixture   all of that

Each attack lasts `--seconds`, in slices with quiet ones between them, in which four other clients go on: each compiles a small kernel about once a second.
95 of 100 of their compiles take at most twice as long as in the quiet slices; none of their requests is refused, or fails; the memory of the service stays below
what the settings allow.  The attacker is a process of its own, so that its threads do not slow the clocks of the others.  The server with the others, and the attacker, each have precedence over
other work on the machine, so that neither of the two is starved.
The last line says the figures; exit status 1 if one is missed.
"""
import argparse
import contextlib
import http.client
import random
import signal
import socket
import subprocess
import sys
import threading
import time

from support.clients import Clients
from support.cpu_quota import CpuQuota, precedence
from support.figures import percentile
from support.processes import rss_kb
from support.server import ADD_ONE, FLOAT_INPUT, JSON, OURS, Peer, Server
from support.wait import wait_until

ATTACKS = ("unread", "archives", "links", "sleepers", "mixture")
OTHERS, A_SECOND, SLICE_S, CALM_S = 4, 1.2, 60, 20
ATTACKER = "127.0.9.1"
LARGE = "import numpy as np\n\n\ndef k(x):\n    for i in range(120):\n        x = np.sin(x) + 1\n    return x\n"
# A proxy that nobody is: with one the default shares hold, and clients are told apart by their own addresses.
FLAGS = ["--workers", "2", "--trusted-proxies", "192.0.2.1", "--answers-mib", "256", "--cache-mib", "128"]
CEILING_KIB = (256 + 2 * 128 + 128) << 10  # answers, results with what is made of them, and the service itself


# ---- the attacker's process


class Attacker(Peer):
    def __init__(self, port):
        self.port = port
        self.n = 0

    def ask(self, method, path, body=None, headers=JSON):
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.request(method, path, body, headers, address=ATTACKER)
        return None

    def known(self, source):
        """The key of this source's result."""
        return wait_until(lambda: (a := self.ask("POST", "/api/v1/compile", {"source": source, "inputs": FLOAT_INPUT})) and a.status == 200 and a.json["key"], "a result", 120)

    def unread(self):
        body = b'{"source": "%s", "inputs": [{"name": "x", "shape": [8, 16], "dtype": "float32"}]}' % LARGE.replace("\n", "\\n").encode()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), source_address=(ATTACKER, 0)) as c:
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.sendall(b"POST /api/v1/compile HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            time.sleep(random.uniform(5, 10))

    def archives(self):
        self.ask("GET", f"/api/v1/results/{self.large}/artifacts/all.tar.gz")

    def links(self):
        self.ask("POST", "/api/v1/snippets", {"source": ADD_ONE, "inputs": FLOAT_INPUT}, OURS)

    def sleepers(self):
        self.n += 1
        self.ask("POST", "/api/v1/compile", {"source": f"import time\ntime.sleep(14)  # {self.n} {random.random()}\n", "inputs": []}, {**JSON, "Cache-Control": "no-store"})

    def run(self, name):
        self.large = self.known(LARGE)
        self.known(ADD_ONE)
        counts = {"unread": 60, "archives": 8, "links": 4, "sleepers": 8}

        def repeat(act):
            while True:
                act()
        threads = [threading.Thread(target=repeat, args=(getattr(self, kind),), daemon=True)
                   for kind, n in counts.items() if name in (kind, "mixture") for _ in range(n)]
        for t in threads:
            t.start()
        print("begun", flush=True)
        signal.pause()


@contextlib.contextmanager
def attack(server, name, group):
    """group: for the attacker's processor time; may be None."""
    p = subprocess.Popen([sys.executable, __file__, "--attacker", name, "--port", str(server.port)], stdout=subprocess.PIPE, text=True)
    if group:
        group.hold(p.pid)
    try:
        assert p.stdout.readline() == "begun\n", f"{name}: the attacker ended"
        yield
    finally:
        p.kill()
        p.wait()


# ---- the others


class Others(Clients):
    def __init__(self, server):
        self.server, self.phase, self.ms, self.bad = server, None, {"quiet": [], "attacked": []}, []
        super().__init__(OTHERS)

    def run(self, i):
        rng = random.Random(i)
        while not self.is_over.is_set():
            body = {"source": ADD_ONE.replace("+ 1", f"+ {rng.random()}"), "inputs": FLOAT_INPUT}
            phase, began = self.phase, time.perf_counter()
            try:
                answer = self.server.request("POST", "/api/v1/compile", body, {**JSON, "Cache-Control": "no-store"}, address=f"127.0.1.{i + 1}")
                good, what = answer.status == 200 and answer.json["status"] == "ok", f"{answer.status} {answer.body[:120]}"
            except (OSError, http.client.HTTPException) as e:
                good, what = False, repr(e)
            with self.lock:
                if not good:
                    self.bad.append(f"{phase}: {what}")
                elif phase and phase == self.phase:
                    self.ms[phase].append((time.perf_counter() - began) * 1e3)
            time.sleep(rng.expovariate(A_SECOND))

    def watch(self, phase, seconds):
        """Lets them go on for so long; returns the most memory that the service took, in KiB."""
        self.phase, most, end = phase, 0, time.monotonic() + seconds
        while time.monotonic() < end:
            most = max(most, rss_kb(self.server.pid))
            time.sleep(0.2)
        self.phase = None
        return most


def measure(name, seconds, group):
    """What one attack did, as text, and whether all was well."""
    n = max(2, round(seconds / SLICE_S))
    with Server(*FLAGS) as server:
        server.settle()
        others, most = Others(server), 0
        for _ in range(n):
            others.watch("quiet", min(CALM_S, seconds / n))
            with attack(server, name, group):
                most = max(most, others.watch("attacked", seconds / n))
            wait_until(lambda: server.health["running"] + server.health["waiting"] <= OTHERS, "the attack's jobs to end", 60)
        others.end()
    quiet, attacked = (percentile(others.ms[phase], 0.95) for phase in ("quiet", "attacked"))
    for what in others.bad[:10]:
        print(f"{name}: failed {what}", flush=True)
    text = (f"{name} p95 {attacked:.0f} ms of {len(others.ms['attacked'])}, quiet {quiet:.0f} ms of {len(others.ms['quiet'])}, {len(others.bad)} refused or failed, "
            f"{most >> 10} MiB at most")
    print(f"attacks: {text}", flush=True)
    return text, attacked <= 2 * quiet and not others.bad and most <= CEILING_KIB


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=1200)
    p.add_argument("--attacker", choices=ATTACKS)
    p.add_argument("--port", type=int)
    p.add_argument("names", nargs="*")
    o = p.parse_args()
    if o.attacker:
        return Attacker(o.port).run(o.attacker)
    with precedence() as own, contextlib.ExitStack() as stack:
        group = CpuQuota("attacker") if own else None
        if group:
            stack.callback(group.end)
        done = [measure(name, o.seconds, group) for name in o.names or ATTACKS]
    print(f"attacks: {o.seconds:.0f} s each; " + "; ".join(text for text, _ in done))
    return not all(good for _, good in done)


if __name__ == "__main__":
    sys.exit(main())
