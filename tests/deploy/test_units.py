"""The systemd units: systemd's own tools accept them, their flags exist, and the server speaks the protocol that they rely on."""
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

from support.paths import NKX, ROOT
from support.server import ADD_ONE, Server

UNITS = ROOT / "docker"
EXPOSURE = 4.5  # of 10, as `systemd-analyze security` counts; the jail needs namespaces, mounts and control groups
TOOL = shutil.which("systemd-analyze")


@pytest.mark.skipif(not TOOL, reason="systemd-analyze is not installed")
def test_systemd_accepts_the_units(tmp_path):
    for unit in "nkx.service", "nkx.socket":
        text = (UNITS / unit).read_text().replace("/usr/lib/nkx/bin/nkx", str(NKX))
        (tmp_path / unit).write_text(text)
    r = subprocess.run([TOOL, "verify", "--man=no", tmp_path / "nkx.service", tmp_path / "nkx.socket"], capture_output=True, text=True, timeout=60,
                       env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"})
    assert r.returncode == 0 and not r.stderr.strip(), r.stderr


@pytest.mark.skipif(not TOOL, reason="systemd-analyze is not installed")
def test_the_unit_gives_away_little():
    r = subprocess.run([TOOL, "security", "--offline=yes", "--no-pager", UNITS / "nkx.service"], capture_output=True, text=True, timeout=60)
    level = float(re.search(r"exposure level for \S+: ([\d.]+)", r.stdout)[1])
    assert level <= EXPOSURE, r.stdout


def test_the_unit_never_runs_as_root_and_its_flags_exist():
    text = (UNITS / "nkx.service").read_text()
    assert "\nUser=nkx\n" in text and "\nDelegate=memory pids cpu\n" in text
    known = subprocess.run([NKX, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    flags = re.findall(r"--[a-z-]+", re.search(r"^ExecStart=(.*)$", text, re.M)[1])
    assert flags and [f for f in flags if f" {f} " not in known] == []


class Manager:
    """The socket on which a service manager is told."""

    def __init__(self, path):
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)

    def wait_for(self, text, seconds=20):
        self.socket.settimeout(seconds)
        while (said := self.socket.recv(1000).decode()) != text:
            pass
        return said

    def drain(self):
        self.socket.setblocking(False)
        try:
            while self.socket.recv(1000):
                pass
        except BlockingIOError:
            pass


@pytest.fixture
def manager(tmp_path):
    m = Manager(tmp_path / "notify")
    yield m
    m.socket.close()


def server_for(manager, **more):
    return Server(env={"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "1000000", **more})


def test_the_manager_is_told_when_the_server_is_ready_reloads_and_stops(manager):
    with server_for(manager) as s:
        manager.wait_for("READY=1")
        manager.wait_for("WATCHDOG=1")
        s.process.send_signal(signal.SIGHUP)
        manager.wait_for("RELOADING=1")
        manager.wait_for("READY=1")
        assert s.compile(ADD_ONE)["status"] == "ok"
        s.process.send_signal(signal.SIGTERM)
        manager.wait_for("STOPPING=1")
        assert s.process.wait(timeout=30) == 0


@pytest.mark.parametrize("whom", ["pid", "launcher"])
def test_a_server_of_which_a_part_hangs_gives_no_sign_of_life(manager, whom):
    with server_for(manager) as s:
        manager.wait_for("WATCHDOG=1")
        hung = getattr(s, whom)
        os.kill(hung, signal.SIGSTOP)
        try:
            manager.drain()
            manager.socket.settimeout(2)
            with pytest.raises(TimeoutError):
                while True:
                    manager.socket.recv(1000)
        finally:
            os.kill(hung, signal.SIGCONT)
        manager.wait_for("WATCHDOG=1")


def test_without_a_watchdog_only_the_start_is_told(manager):
    with server_for(manager, WATCHDOG_PID="1") as s:
        manager.wait_for("READY=1")
        manager.socket.settimeout(1.5)
        with pytest.raises(TimeoutError):
            manager.socket.recv(1000)
        assert s.get("/healthz").status == 200
