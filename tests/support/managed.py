"""A server as a service manager runs it: the listening socket and the sign of life are the manager's, and what ends or hangs is started anew at once.

It stands for docker/nkx.service with docker/nkx.socket, where there is no systemd; WATCHDOG_S is that of the manager here.
"""
import contextlib
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time

from support.paths import NKX
from support.processes import children
from support.server import Server
from support.wait import wait_until

WATCHDOG_S, START_S = 12, 90  # a sign of life comes each half of WATCHDOG_S


def tree(pid):
    return [pid, *(p for child in children(pid) for p in tree(child))]


class Managed(Server):
    def __init__(self, *flags):
        self._dir = tempfile.TemporaryDirectory(prefix="nkx-managed-")
        self.data, self.log, self.flags = pathlib.Path(self._dir.name, "data"), [], flags
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self.listener.getsockname()[1]
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(f"{self._dir.name}/notify")
        self.notify.settimeout(0.05)
        self.starts, self.is_over, self.is_up = 0, threading.Event(), threading.Event()
        began = time.monotonic()
        self._start()
        self.keeper = threading.Thread(target=self._keep, daemon=True)
        self.keeper.start()
        wait_until(self.answers, "a healthy server", START_S)
        self.start_s = time.monotonic() - began

    def _start(self):
        fd = self.listener.fileno()
        self.process = subprocess.Popen(["sh", "-c", f'exec 3<&{fd}; LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"', NKX, "serve", "--data-dir", self.data, *self.flags],
                                        stderr=subprocess.PIPE, text=True, pass_fds=[fd],
                                        env={**os.environ, "NOTIFY_SOCKET": f"{self._dir.name}/notify", "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))})
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()
        self.starts += 1
        self.is_up.clear()
        self.alive_until = time.monotonic() + START_S

    def _read(self, process):
        for line in process.stderr:
            self.log.append(line)

    def _end(self):
        with contextlib.suppress(OSError):
            for pid in tree(self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def _keep(self):
        while not self.is_over.is_set():
            with contextlib.suppress(TimeoutError):
                said = self.notify.recv(1000).decode()
                if said == "READY=1":
                    self.is_up.set()
                if self.is_up.is_set():
                    self.alive_until = time.monotonic() + WATCHDOG_S
            if not self.is_over.is_set() and (self.process.poll() is not None or time.monotonic() > self.alive_until):
                self._end()
                self._start()

    def answers(self, path="/healthz"):
        with contextlib.suppress(OSError):
            return self.get(path).status == 200
        return False

    def end(self):
        """Its exit status."""
        self.is_over.set()
        self.keeper.join()
        status = self.stop()
        self.listener.close()
        self.notify.close()
        self._dir.cleanup()
        return status
