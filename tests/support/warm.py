"""Runs commands of the terminal in forks of a warm process (tests/warm/nkx_warm.c), one for each process of the tests.

A command computes the same as in a process of its own, where Python, NumPy and MLIR take longer to start than a small
kernel takes to compile.  Starting is tested where it matters, in tests/cli.  Where the compiler is newer than the warm
process's program, each command has a process of its own.
"""
import array
import functools
import os
import signal
import socket
import struct
import subprocess
import threading

from support.paths import BUILD, NKX

MOST = 1 << 20  # bytes of a request
PROGRAM, COMPILER = BUILD / "test/nkx-warm", BUILD / "lib/libnkxcompiler.a"


class _Forks:
    def __init__(self):
        self.socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen([PROGRAM, str(theirs.fileno())], pass_fds=[theirs.fileno()])
        self.lock = threading.Lock()
        self.owner = os.getpid()

    def _read(self):
        data = self.socket.recv(4, socket.MSG_WAITALL)
        assert len(data) == 4, f"nkx-warm has ended: {self.process.wait()}"
        return struct.unpack("i", data)[0]

    def run(self, request, files, timeout):
        """The status as wait() gives it."""
        with self.lock:
            fds = array.array("i", [f.fileno() for f in files])
            self.socket.sendmsg([struct.pack("I", len(request))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
            self.socket.sendall(request)
            pid = self._read()
            late = []
            timer = threading.Timer(timeout, lambda: (late.append(True), os.kill(pid, signal.SIGKILL)))
            timer.start()
            status = self._read()
            timer.cancel()
            if late:
                raise subprocess.TimeoutExpired(request.replace(b"\0", b" "), timeout)
            return status


_forks = None


@functools.cache
def _is_there():
    return PROGRAM.exists() and PROGRAM.stat().st_mtime >= COMPILER.stat().st_mtime


def run(*arguments, input=b"", timeout=120, cwd=None, env=None):
    """`nkx` with these arguments, as subprocess.run gives it: returncode, stdout and stderr, in bytes.  env: variables
    besides those of the tests."""
    global _forks
    env = env or {}
    if not _is_there():
        return subprocess.run([NKX, *map(str, arguments)], input=input, capture_output=True, timeout=timeout, cwd=cwd, env=os.environ | env)
    if _forks is None or _forks.owner != os.getpid():
        _forks = _Forks()
    request = b"".join(os.fsencode(a) + b"\0" for a in (cwd or os.getcwd(), *(f"{k}={v}" for k, v in env.items()), *map(str, arguments)))
    assert len(request) <= MOST
    with _memory(input) as given, _memory() as out, _memory() as err:
        status = _forks.run(request, (given, out, err), timeout)
        return subprocess.CompletedProcess(["nkx", *arguments], os.waitstatus_to_exitcode(status), _content(out), _content(err))


def text(*arguments, input="", timeout=120, cwd=None, env=None):
    """The same, with text as input, stdout and stderr."""
    done = run(*arguments, input=input.encode(), timeout=timeout, cwd=cwd, env=env)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def _memory(content=b""):
    f = os.fdopen(os.memfd_create("nkx"), "r+b")
    f.write(content)
    f.seek(0)
    return f


def _content(f):
    f.seek(0)
    return f.read()
