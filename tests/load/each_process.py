"""Each process of the server in turn is stopped (SIGSTOP: a hang) and killed, under load; a service manager starts anew what ends.

    PYTHONPATH=tests python3 tests/load/each_process.py [--rounds 200] [--seconds N] [NAME…]

A round is one fault: the service, the launcher, the launcher that stands by, the zygote, the zygote that stands by, or a worker, each stopped or killed.
Meanwhile four clients compile, store and read.  Compiles succeed again within two seconds (besides the longest time between two of them without a fault), also where the whole server is started anew; a
service that hangs is found by the manager's watchdog, whose time is added.  All this has precedence over other work on the machine, which may
stretch a start many times.  /healthz and /readyz are true to it: where they say that all is well a compile succeeds.  Every link that was acknowledged can be read
at the end with its source.  Each compile has an answer, and one that is not a result says what happened; only a server that was killed itself cuts connections.
A machine that stalls can make the launcher late, and the one that stands by takes over: then the server is started anew between two rounds, because
stopping the new launcher would be a second fault.  With --seconds no round begins later.
The last line says the figures; exit status 1 if one is missed.
"""
import argparse
import collections
import contextlib
import http.client
import itertools
import math
import os
import random
import signal
import sys
import time

from support.clients import Clients, read, share
from support.cpu_quota import precedence
from support.figures import percentile
from support.managed import WATCHDOG_S, Managed
from support.processes import children, is_asleep, program
from support.server import ADD_ONE, FLOAT_INPUT, JSON, codes
from support.wait import wait_until

VICTIMS = ("service", "launcher", "standby", "zygote", "spare", "worker")
SIGNALS = {"stopped": signal.SIGSTOP, "killed": signal.SIGKILL}
CLIENTS, A_SECOND, BACK_S, LOOK_S, ANSWER_S = 4, 4, 2, 4, 30
CUT = "cut:"
EXCHANGED_S = 30  # a launcher that stands by had taken over: the usual one has no zygotes for so long
DYING_S = 0.5  # until the death of the launcher has reached the service: what that said just before was true
ANEW = ("all", "started anew")
WHOLE = {("service", "stopped"), ("service", "killed"), ("launcher", "killed"), ANEW}  # faults after which all is started anew
FLAGS = ["--workers", "2", "--client-compiles", "0", "--client-jobs", "0", "--client-links", "0", "--client-links-day", "0", "--client-links-mib", "0"]


def find(server, victim):
    if victim == "service":
        return server.pid
    if victim == "launcher":
        return server.launcher
    if victim == "standby":
        return wait_until(server.standby, "the launcher that stands by", 30)
    if victim == "zygote":
        return wait_until(server.zygote, "a zygote", 30)
    if victim == "spare":
        return wait_until(lambda: next((p for p in server.zygotes() if p != server.zygote()), None), "the zygote that stands by", 60)
    return random.choice(wait_until(server.kids, "a worker", 30))


class Load(Clients):
    def __init__(self, server):
        self.server, self.fault = server, None
        self.began, self.good_at, self.links, self.cut, self.told, self.bad, self.n = time.monotonic(), [], {}, collections.Counter(), collections.Counter(), [], 0
        super().__init__(CLIENTS)

    def judge(self, answer, began, fault):
        """Under the lock: notes what was answered to a compile or to a link."""
        self.n += 1
        if answer is None:
            if {fault, self.fault} & WHOLE:
                self.cut[fault] += 1
            else:
                self.bad.append(f"{fault}: cut")
        elif answer.status in (200, 201):
            result = answer.json.get("result") or answer.json
            if result.get("status", "ok") == "ok":
                self.good_at.append(time.monotonic())
            elif codes(result) == ["worker-died"]:
                self.told["worker-died"] += 1
            else:
                self.bad.append(f"{fault}: {answer.body[:160]}")
        elif answer.status == 503 and answer.error["code"]:
            self.told[answer.error["code"]] += 1
        else:
            self.bad.append(f"{fault}: {answer.status} {answer.body[:160]}")
        if time.monotonic() - began > ANSWER_S:
            self.bad.append(f"{fault}: an answer after {time.monotonic() - began:.0f} s")

    def run(self, i):
        rng = random.Random(i)
        for k in itertools.count():
            if self.is_over.is_set():
                return
            text, fault, began = f"# {i} {k}\n" + ADD_ONE, self.fault, time.monotonic()
            stores = rng.random() < 0.2
            answer = None
            with contextlib.suppress(OSError, http.client.HTTPException):
                if stores:
                    answer = share(self.server, text)
                else:
                    answer = self.server.request("POST", "/api/v1/compile", {"source": text, "inputs": FLOAT_INPUT}, {**JSON, "Cache-Control": "no-store"})
            with self.lock:
                self.judge(answer, began, fault)
                if stores and answer is not None and answer.status == 201:
                    self.links[answer.json["id"]] = text
            time.sleep(rng.expovariate(A_SECOND))

    def longest_gap(self, since):
        with self.lock:
            times = [t for t in self.good_at if t >= since]
            self.good_at = times[-1:]
        times = [since, *times, time.monotonic()]
        return max(b - a for a, b in zip(times, times[1:]))


def is_whole(server):
    """Each process has the one that stands by for it: a fault before that would be the second one."""
    with contextlib.suppress(OSError, StopIteration):
        zygotes = server.zygotes()
        return server.standby() and len(zygotes) == 2 and all(is_asleep(p) for p in zygotes) and server.kids() and server.answers("/readyz")
    return False


def has_other_launcher(server):
    """The one that stood by has taken over: it has the zygotes."""
    with contextlib.suppress(OSError, StopIteration):
        standby = server.standby()
        return standby and not server.zygotes() and any(program(p) == "nkx-worker" for p in children(standby))
    return False


def make_whole(server, load):
    """Returns how often the server had to be started anew."""
    n, began, since = 0, time.monotonic(), time.monotonic()
    while not is_whole(server):
        now = time.monotonic()
        assert now - began < 240 and n < 3, f"all its processes are not there; it was started anew {n} times"
        if not has_other_launcher(server):
            since = now
        elif now - since > EXCHANGED_S:
            load.fault, old, n = ANEW, server.process, n + 1
            old.send_signal(signal.SIGTERM)
            wait_until(lambda p=old: p.poll() is not None and server.process is not p, "the server anew", 90)
            load.fault, since = None, time.monotonic()
        time.sleep(0.1)
    return n


def compiles(server):
    """True, or what was answered instead; CUT if the connection was."""
    try:
        answer = server.post({"source": ADD_ONE, "inputs": FLOAT_INPUT})
        return answer.status == 200 or f"{answer.status} {answer.body[:160]}"
    except (OSError, http.client.HTTPException) as e:
        return f"{CUT} {e!r}"


def untruth(server):
    """What a compile was answered although health and readiness had said that it would succeed."""
    says = server.answers("/healthz") and server.answers("/readyz")
    answer = compiles(server) if says else True
    return None if answer is True else answer


def round_of(server, load, victim, how):
    """The longest time in which no compile succeeded, in seconds, and where health was not true."""
    pid = find(server, victim)
    load.fault = (victim, how)
    began = time.monotonic()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, SIGNALS[how])
    untrue = []
    while time.monotonic() - began < LOOK_S or (time.monotonic() - began < 60 and compiles(server) is not True):
        asked = time.monotonic() - began
        what = untruth(server)
        if what and not ((victim, how) in WHOLE and asked < DYING_S and what.startswith(CUT)):
            untrue.append(what)
        time.sleep(0.2)
    gap = load.longest_gap(began)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: server.answers("/readyz"), "readiness", 60)
    load.fault = None
    return gap, untrue


def lost(server, links):
    bad = 0
    for id, text in links.items():
        answer = read(server, id)
        bad += answer.status != 200 or answer.json["request"]["source"] != text
    return bad


def measure(o):
    faults = itertools.cycle((v, how) for how in SIGNALS for v in o.names or VICTIMS)
    began, gaps, missed, anew, rounds = time.monotonic(), {"part": [], "whole": [], "hung": []}, 0, 0, 0
    server = Managed(*FLAGS)
    server.settle()
    load = Load(server)
    time.sleep(10)
    usual = load.longest_gap(load.began)  # compiles come at random, and the machine may have other work
    for fault in itertools.islice(faults, o.rounds):
        if time.monotonic() - began > o.seconds:
            break
        anew += make_whole(server, load)
        n, rounds = len(server.log), rounds + 1
        gap, untrue = round_of(server, load, *fault)
        limit = usual + BACK_S + (fault == ("service", "stopped")) * WATCHDOG_S
        gaps["hung" if fault == ("service", "stopped") else "whole" if fault in WHOLE else "part"].append(gap)
        if gap > limit or untrue:
            missed += 1
            print(f"{fault}: {gap:.1f} s, limit {limit:.1f}", *untrue)
            print("".join(line for line in server.log[n:] if " job_done " not in line and " audit " not in line), end="", flush=True)
    load.end()
    gone = lost(server, load.links)
    status = server.end()
    for what in load.bad[:10]:
        print("failed:", what)
    figures = [f"{percentile(g, 0.5):.1f} s (median), {max(g):.1f} s (most) of {len(g)}" if g else "none" for g in gaps.values()]
    print(f"each process: {rounds} rounds in {time.monotonic() - began:.0f} s, without a compile for {figures[0]} ({usual:.1f} s without a fault); where all was started anew {figures[1]}, after the watchdog's {WATCHDOG_S} s {figures[2]}, first start "
          f"{server.start_s:.1f} s; {missed} late or not true; started anew {anew} times between rounds; {load.n} requests, {sum(load.told.values())} told {dict(load.told)}, {sum(load.cut.values())} cut with "
          f"their server, {len(load.bad)} without a clear answer; {len(load.links)} links, {gone} lost")
    return not (not missed and not load.bad and not gone and load.links and status == 0)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rounds", type=int, default=200)
    p.add_argument("--seconds", type=float, default=math.inf)
    p.add_argument("names", nargs="*")
    with precedence():
        return measure(p.parse_args())


if __name__ == "__main__":
    sys.exit(main())
