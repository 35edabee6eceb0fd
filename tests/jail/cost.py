"""S10: what a jail costs.  Speaks to a zygote as the server does (explorer/pool/wire.h): asks it for jailed children, hands
jobs to them.

    PYTHONPATH=tests python3 tests/jail/cost.py            prints the figures; exit status 1 if one misses its bound
"""
import array
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import time

from support import server
from support.figures import percentile
from support.paths import BUILD, ROOT, WORKER
from support.processes import children, is_asleep
from support.wait import wait_until

HELLO, SPAWN, CHILD, FAIL = 1, 2, 3, 9
MESSAGE = struct.Struct("<IIiiiIiiiii200s")
JOB = json.dumps(server.JOB).encode()
JAILED_P50_MS, JAILED_P99_MS, HEARD_P99_MS, RATE = 4, 15, 5, 250


class Zygote:
    def __init__(self):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fd = theirs.fileno()
        site = next((ROOT / "build/venv/lib").glob("python3*/site-packages"), pathlib.Path("/usr/lib/python3/dist-packages"))
        command = [str(WORKER), "--python-dir", str(BUILD / "python"), "--site-dir", str(site),
                   "--cpu-s", "10", "--memory-mib", "2048", "--resident-mib", "768"]
        self.process = subprocess.Popen(["sh", "-c", f'exec env -i "$@" 3<&{fd}', "sh", *command], pass_fds=[fd])
        theirs.close()
        hello, _ = self.next()
        assert hello[0] == HELLO, hello
        self.warm_ms, self.level = hello[2], "?CBA"[hello[8]]

    def next(self):
        """A message, and the descriptors that came with it."""
        data, control, _, _ = self.socket.recvmsg(MESSAGE.size, 64)
        fds = array.array("i")
        for _, _, raw in control:
            fds.frombytes(raw[:len(raw) // 4 * 4])
        assert len(data) == MESSAGE.size, "the zygote is gone"
        return MESSAGE.unpack(data), list(fds)

    def ask(self, n):
        self.socket.send(MESSAGE.pack(SPAWN, 0, n, 0, 0, 0, 0, 0, 0, 0, 0, b""))

    def children(self, n):
        """The next n that come, each with the ms from clone to its last wall; exits that come between are skipped."""
        out = []
        while len(out) < n:
            message, fds = self.next()
            assert message[0] != FAIL, message[11]
            if message[0] == CHILD:
                os.close(fds[1])
                out.append((socket.socket(fileno=fds[0]), message[7] / 1e3))
        return out

    def end(self):
        self.socket.close()
        self.process.wait(20)


def read_frame(s):
    n = struct.unpack("<I", s.recv(4, socket.MSG_WAITALL))[0]
    return json.loads(s.recv(n, socket.MSG_WAITALL))


def ms_since(began):
    return (time.perf_counter() - began) * 1e3


def main():
    z = Zygote()
    jailed, ready, heard, whole = [], [], [], []
    for round_ in range(310):
        began = time.perf_counter()
        z.ask(1)
        ((child, walls),) = z.children(1)
        took = ms_since(began)
        wait_until(lambda: all(map(is_asleep, children(z.process.pid))), "a child that has prefaulted its pages", poll_s=0.002)
        began = time.perf_counter()
        child.sendall(struct.pack("<I", len(JOB)) + JOB)
        frame = read_frame(child)
        first = ms_since(began)
        while frame["frame"] != "end":
            frame = read_frame(child)
        assert frame["status"] == "ok"
        if round_ >= 10:
            jailed.append(walls)
            ready.append(took)
            heard.append(first)
            whole.append(ms_since(began))
        child.close()
    began, n, in_flight = time.perf_counter(), 0, 8
    z.ask(in_flight)
    while n < 1000:
        ((child, _),) = z.children(1)
        child.close()  # which ends it
        n += 1
        z.ask(1)
    rate = n / (time.perf_counter() - began)
    z.end()
    met = (percentile(jailed, 0.5) <= JAILED_P50_MS and percentile(jailed, 0.99) <= JAILED_P99_MS
           and percentile(heard, 0.99) <= HEARD_P99_MS and rate >= RATE)
    print(f"S10: level {z.level}; clone to jailed p50 {percentile(jailed, 0.5):.2f} ms, p99 {percentile(jailed, 0.99):.1f} ms; asked for to handed over "
          f"p50 {percentile(ready, 0.5):.1f} ms; job to first frame p50 {percentile(heard, 0.5):.2f} ms, p99 {percentile(heard, 0.99):.1f} ms; small kernel p50 {percentile(whole, 0.5):.1f} ms; "
          f"{rate:.0f} jails/s")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
