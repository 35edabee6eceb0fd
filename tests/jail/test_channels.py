"""S7: two jobs that run at the same time and work together cannot tell each other a bit; what they share is the processor.

NKX_CHANNEL_ROUNDS: how often each channel is tried with either bit (make nightly sets more).
"""
import os
import pathlib
import random
import statistics
import string
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.clients import open_stream, read_until
from support.figures import figure
from support.prober import build_library
from support.server import codes

ROUNDS = int(os.environ.get("NKX_CHANNEL_ROUNDS", "1"))
only_nightly = pytest.mark.skipif(ROUNDS == 1, reason="make nightly tries and measures this")
READABLE = "/usr/lib/python3.11/os.py"  # of what both can read in the jail, a file that is no longer needed once there
HOLD = "import time\nend = time.monotonic() + 20\nwhile time.monotonic() < end:\n    lib.channel_put({c}, {bit})\n    time.sleep(0.002)\n"


def new_tag(rng):
    return "nkx" + "".join(rng.choices(string.ascii_lowercase, k=12))


def setup(library, tag, file, pids):
    return (f"import ctypes\nlib = ctypes.CDLL({str(library)!r})\nlib.channel_name.restype = ctypes.c_char_p\n"
            f"lib.channel_setup({tag.encode()!r}, {file.encode()!r}, (ctypes.c_int * {len(pids)})(*{pids!r}), {len(pids)})\n")


@pytest.fixture(scope="module")
def library():
    with tempfile.TemporaryDirectory(prefix="nkx-test-", dir="/var/tmp") as place:
        os.chmod(place, 0o755)  # others read it, too
        yield build_library("channels", pathlib.Path(place))


@pytest.fixture(scope="module")
def names(library):
    code = setup(library, "x", "/", [1]) + "print([lib.channel_name(i).decode() for i in range(lib.channel_count())])"
    return eval(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


# ---- without a jail: what is tried does carry bits

NOBODY = ["setpriv", "--reuid", "64123", "--regid", "64123", "--clear-groups"] if os.geteuid() == 0 else []


def read_outside(library, c, bit, tag, file):
    base = NOBODY + ["/usr/bin/python3", "-c"]
    sender = subprocess.Popen(
        base + [setup(library, tag, file, []) +  # whom to signal is known only once the other runs
                f"print('held', flush=True)\npid = int(input())\nlib.channel_setup({tag.encode()!r}, {file.encode()!r}, (ctypes.c_int * 1)(pid), 1)\n"
                + HOLD.format(c=c, bit=bit)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None, text=True)
    try:
        assert sender.stdout.readline() == "held\n"
        receiver = subprocess.Popen(
            base + [setup(library, tag, file, [sender.pid]) + f"print('here', flush=True)\nimport time\ntime.sleep(0.1)\nprint(lib.channel_get({c}))"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert receiver.stdout.readline() == "here\n"
        print(receiver.pid, file=sender.stdin, flush=True)
        said = receiver.communicate(timeout=30)[0].strip()
        return int(said) if said else -1
    finally:
        sender.kill()
        sender.communicate()


@only_nightly
def test_without_a_jail_the_channels_carry_bits(library, names):
    def carries(c):
        rng, read = random.Random(c), []
        for bit in (0, 1):
            file = library.parent / new_tag(rng)
            file.write_bytes(bytes(3 * 4096))
            if NOBODY:
                os.chown(file, 64123, 64123)
            read.append(read_outside(library, c, bit, new_tag(rng), str(file)))
        return read[1] == 1 and read[0] != 1

    with ThreadPoolExecutor(4) as pool:
        carried = [name for name, does in zip(names, pool.map(carries, range(len(names)))) if does]
    figure(f"{len(carried)} of {len(names)} channels carry a bit without a jail")
    assert len(names) >= 25 and len(carried) >= 20, sorted(set(names) - set(carried))


# ---- inside


def read_inside(server, library, c, bit, tag):
    """What a job reads while another one, at the same time, holds the bit; None if trying ended the job."""
    idle = [int(k) for k in server.kids()]
    told = ("import json, os, struct\nb = json.dumps({'frame': 'diagnostic', 'diagnostic': {'code': 'said', 'message': 'held'}}).encode()\n"
            "os.write(3, struct.pack('<I', len(b)) + b)\n")
    with open_stream(server, setup(library, tag, READABLE, idle) + told + HOLD.format(c=c, bit=bit)) as s:
        read_until(s, b'"held"')
        result = server.compile(setup(library, tag, READABLE, idle) +
                                f"raise SystemError('said %d' % lib.channel_get({c}))\n", inputs=[])
    if codes(result) == ["worker-died"]:
        return None
    return int(result["diagnostics"][0]["message"].rsplit("said ", 1)[1])


def test_no_channel_carries_a_bit_between_jobs(probed, library, names):
    inside = build_library("channels", probed.prober.parent)

    def reads(c):
        rng = random.Random(c)
        return {bit: [read_inside(probed, inside, c, bit, new_tag(rng)) for _ in range(ROUNDS)] for bit in (0, 1)}

    with ThreadPoolExecutor(2) as pool:
        read = list(pool.map(reads, range(len(names))))
    through = [(name, r) for name, r in zip(names, read) if 1 in r[1] or not set(r[0]) & set(r[1])]
    figure(f"{len(through)} of {len(names)} carry one between jobs")
    assert through == []


@only_nightly
def test_how_well_a_job_sees_that_another_one_computes_is_measured(probed):
    """Measured, not prevented: how well one job sees whether another one computes, with as many jobs as processors."""
    inside = build_library("channels", probed.prober.parent)
    prepare = setup(inside, "x", READABLE, [1])
    counts = {0: [], 1: []}
    for round_ in range(6 * ROUNDS):
        bit = round_ % 2
        others = [open_stream(probed, "import time\ntime.sleep(9)\n" if not bit else "while True:\n    pass\n") for _ in range(os.cpu_count())]
        result = probed.compile(prepare + "raise SystemError('said %d' % lib.channel_spin(100))\n", inputs=[])
        counts[bit].append(int(result["diagnostics"][0]["message"].rsplit("said ", 1)[1]))
        for s in others:
            s.close()
        probed.settle()
    quiet, busy = statistics.median(counts[0]), statistics.median(counts[1])
    figure(f"by the processor: a job gets {busy / quiet:.2f} of the work done while {os.cpu_count()} others compute")
    assert quiet and busy
