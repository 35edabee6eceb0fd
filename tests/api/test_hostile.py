"""Malicious kernels: each ends with a clear verdict, and nothing of it is left."""
import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.audit import assert_nothing_is_left, footprint
from support.paths import BUILD, NKX
from support.server import ADD_ONE, codes

# what it does, source, the verdicts that are right
KERNELS = {
    "endless loop": ("while True:\n    pass\n", {"time-limit"}),
    "endless loop in a kernel": ("def k(x):\n    while True:\n        x = x\n", {"time-limit"}),
    "sleep": ("import time\ntime.sleep(100)\n", {"time-limit"}),
    "big power": ("x = 7 ** (10 ** 9)\n", {"time-limit", "memory-limit"}),
    "regex": ("import re\nre.match('(a+)+$', 'a' * 40 + 'b')\n", {"time-limit"}),
    "ignored signals": ("import signal\nfor s in range(1, 65):\n    try:\n        signal.signal(s, signal.SIG_IGN)\n"
                        "    except (OSError, ValueError):\n        pass\nwhile True:\n    pass\n", {"time-limit"}),
    "caught exceptions": ("while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n"
                          "        pass\n", {"time-limit"}),
    "10 GB at once": ("x = bytearray(10 ** 10)\n", {"memory-limit"}),
    "list growth": ("x = [0]\nwhile True:\n    x = x + x\n", {"memory-limit", "time-limit"}),
    "array growth": ("import numpy as np\nx = []\nwhile True:\n    x.append(np.ones(10 ** 7))\n",
                     {"memory-limit", "time-limit"}),
    "swallowed memory errors": ("x = []\nwhile True:\n    try:\n        x.append(bytearray(10 ** 8))\n"
                                "    except MemoryError:\n        pass\n", {"time-limit", "memory-limit"}),
    "exit": ("import ctypes\nctypes.CDLL(None)._exit(0)\n", {"worker-died"}),
    "exit as if out of memory": ("import ctypes\nctypes.CDLL(None)._exit(86)\n", {"memory-limit"}),
    "null write": ("import ctypes\nctypes.memset(0, 0, 8)\n", {"worker-died"}),
    "abort": ("import ctypes\nctypes.CDLL(None).abort()\n", {"worker-died"}),
    "unlisted system call": ("import ctypes\nctypes.CDLL(None).syscall(169, 0, 0, 0, 0)\n", {"worker-died"}),
    "32-bit system call number": ("import ctypes\nctypes.CDLL(None).syscall(0x40000000 + 39)\n", {"worker-died"}),
    "fork": ("import os\nos.fork()\n", {"python-exception"}),
    "fork bomb": ("import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n", {"time-limit"}),
    "thread": ("import threading\nthreading.Thread(target=print).start()\n", {"python-exception"}),
    "exec": ("import os\nos.execv('/bin/sh', ['sh'])\n", {"python-exception"}),
    "subprocess": ("import subprocess\nsubprocess.run(['/bin/true'])\n", {"python-exception"}),
    "tcp": ("import socket\nsocket.create_connection(('127.0.0.1', 22))\n", {"python-exception"}),
    "unix socket": ("import socket\nsocket.socket(socket.AF_UNIX).connect('/run/x')\n", {"python-exception"}),
    "password file": ("open('/etc/passwd').read()\n", {"python-exception"}),
    "proc": ("open('/proc/self/environ').read()\n", {"python-exception"}),
    "list the root": ("import os\nraise SystemError(sorted(os.listdir('/home')))\n", {"python-exception"}),
    "write a file": ("open('/tmp/x', 'w')\n", {"python-exception"}),
    "write beside the library": ("import os\nopen(os.path.dirname(os.__file__) + '/x', 'w')\n", {"python-exception"}),
    "kill everybody": ("import os\nos.kill(-1, 9)\n", {"python-exception"}),
    "raise a limit": ("import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))\n",
                      {"python-exception", "python-import"}),
    "many descriptors": ("import os\nx = [open('/dev/null') for _ in range(100)]\n", {"python-exception"}),
    "deep recursion": ("import sys\nsys.setrecursionlimit(10 ** 9)\ndef f():\n    f()\nf()\n",
                       {"worker-died", "memory-limit", "python-exception", "time-limit"}),
    "deep nesting": ("(" * 5000 + ")" * 5000, {"nesting-too-deep", "python-syntax"}),
    "endless print": ("while True:\n    print('x' * 1000)\n", {"output-limit", "time-limit"}),
    "endless frames": ("import os\nwhile True:\n    os.write(3, b'\\x02\\0\\0\\0{}')\n", {"worker-died"}),
    "frame too large": ("import os\nos.write(3, b'\\xff\\xff\\xff\\xff')\nwhile True:\n    pass\n", {"output-limit"}),
    "frame too small": ("import os\nos.write(3, b'\\x10\\0\\0\\0{')\nimport ctypes\nctypes.CDLL(None)._exit(0)\n", {"worker-died"}),
    "frame that is no JSON": ("import os\nos.write(3, b'\\x03\\0\\0\\0}{}')\nimport ctypes\nctypes.CDLL(None)._exit(0)\n", {"worker-died"}),
    "frame with deep JSON": ("import os, struct\nb = b'[' * 3000000\nos.write(3, struct.pack('<I', len(b)) + b)\n",
                             {"worker-died"}),
    "frame with a newline": ("import os, struct\nb = b'{\"frame\":\"end\",\\n\"status\":\"ok\"}'\n"
                             "os.write(3, struct.pack('<I', len(b)) + b)\nimport ctypes\nctypes.CDLL(None)._exit(0)\n", {"worker-died"}),
    "second start": ("import os, struct\nb = b'{\"frame\":\"start\",\"version\":1,\"key\":\"\",\"language\":\"\","
                     "\"target\":\"\",\"pipeline\":\"\"}'\nos.write(3, struct.pack('<I', len(b)) + b)\nimport ctypes\nctypes.CDLL(None)._exit(0)\n",
                     {"worker-died"}),
    "half a frame, then silence": ("import os, time\nos.write(3, b'\\x10\\0\\0\\0{')\ntime.sleep(100)\n",
                                   {"time-limit", "worker-died"}),  # whichever is seen first: the end, or what follows the half
}


@pytest.mark.parametrize("what", KERNELS)
def test_hostile_kernels_end_with_their_verdict(impatient, what):
    source, verdicts = KERNELS[what]
    result = impatient.compile(source)
    assert result["status"] == "error"
    assert set(codes(result)) & verdicts, result["diagnostics"]
    assert all(d["message"] for d in result["diagnostics"])
    assert impatient.compile(ADD_ONE)["status"] == "ok"


def test_a_forged_end_hurts_only_its_own_job(impatient):
    b = '{"frame":"end","status":"ok","time_us":1}'
    source = f"import os, struct\nb = b'{b}'\nos.write(3, struct.pack('<I', len(b)) + b)\nos.write(3, b'more')\n"
    assert impatient.compile(source)["kernels"] == []  # the compiler finds kernels after the source has run
    assert impatient.compile(ADD_ONE)["status"] == "ok"


def test_what_a_job_can_see_of_the_file_system(impatient):
    """Python's library, NumPy, our packages and /dev/null; directories above them cannot even be listed."""
    paths = ["/etc/passwd", "/etc", "/proc", "/proc/self/status", "/sys", "/root", "/home", "/tmp", "/run", "/var",
             "/bin/sh", "/usr/bin/python3", "/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib", "/dev/zero", "/dev/shm",
             "/dev/kvm", str(BUILD / "bin"), str(BUILD / "web"), str(NKX), str(BUILD.parent / "Makefile")]
    paths = [p for p in paths if not str(BUILD).startswith(p + "/")]  # a checkout may lie in any of them
    source = (f"import os, numpy\nseen = [p for p in {paths!r} if os.path.exists(p)]\n"
              "seen += [p for p in ('/', '/usr', '/dev') if os.access(p, os.W_OK)]\n"
              "for p in ('/', '/usr', '/usr/lib', '/dev'):\n    try:\n        seen += os.listdir(p)\n"
              "    except PermissionError:\n        pass\n"
              "ok = open(os.__file__).read() and open(numpy.__file__).read() and open('/dev/null').read() == ''\n"
              "raise SystemError(f'seen {seen} ok {ok}')\n")
    message = impatient.compile(source)["diagnostics"][0]["message"]
    assert "seen [] ok True" in message


def test_the_job_is_nobody_and_alone(impatient):
    source = "import os\nraise SystemError(repr((os.getuid(), os.getgid(), os.getpid(), os.getppid(), os.uname()[1])))\n"
    message = impatient.compile(source)["diagnostics"][0]["message"]
    assert "(65534, 65534, 1, 0, 'nkx')" in message


def test_jobs_do_not_see_each_other(impatient):
    impatient.compile("import numpy as np, builtins\nbuiltins.secret = 1\nnp.add = None\n")
    result = impatient.compile("import builtins\nraise SystemError(hasattr(builtins, 'secret'))\n")
    assert "False" in result["diagnostics"][0]["message"]
    assert impatient.compile(ADD_ONE)["status"] == "ok"


def test_200_compiles_eight_at_a_time_mixed_with_bad_ones_leave_nothing(impatient):
    bad = [KERNELS[k] for k in ("endless loop", "10 GB at once", "null write", "exit", "sleep", "endless frames",
                                "unlisted system call", "fork bomb")]
    rng = random.Random(1)
    jobs = [rng.choice(bad) if i % 10 == 3 else None for i in range(200)]
    lock, failures = threading.Lock(), []

    with ThreadPoolExecutor(8) as pool:  # as many at once as later: memory that is kept for the next time has been taken
        list(pool.map(lambda _: impatient.compile(ADD_ONE), range(32)))
    before = footprint(impatient)
    want = impatient.compile(ADD_ONE)["kernels"][0]["stages"][-1]["text"]

    def run():
        while True:
            with lock:
                if not jobs:
                    return
                job = jobs.pop()
            answer = impatient.post({"source": job[0] if job else ADD_ONE,
                                     "inputs": [{"name": "x", "shape": [8, 16], "dtype": "float32"}]})
            result = json.loads(answer.body)
            good = answer.status == 200 and (
                set(codes(result)) & job[1] if job else
                result["status"] == "ok" and result["kernels"][0]["stages"][-1]["text"] == want)
            if not good:
                with lock:
                    failures.append((job, answer.status, result))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures[:3]
    assert_nothing_is_left(before, footprint(impatient))
