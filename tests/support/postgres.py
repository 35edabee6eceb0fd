"""A PostgreSQL of the test's own: a new cluster in a temporary directory, run as a user that is not root."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

from support.wait import wait_until

BIN = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), default=None)
USER = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"] if os.getuid() == 0 else []


class Postgres:
    def __init__(self, follows=None):
        """follows: a primary, of which this becomes the streaming replica; its commits then wait for this one."""
        assert BIN, "Debian's package postgresql is not installed (docker/packages-test.apt)"
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="nkx-pg-"))
        if USER:
            shutil.chown(self.dir, "nobody", "nogroup")
            self.dir.chmod(0o711)  # its socket is for others, too
        self.url = f"postgresql://nkx@/postgres?host={self.dir}"
        self.process = None
        make = ["pg_basebackup", "-h", follows.dir, "-U", "nkx", "-R", "-D"] if follows else ["initdb", "-A", "trust", "-U", "nkx", "-D"]
        subprocess.run([*USER, BIN / make[0], *make[1:], self.dir / "data", "--no-sync"], check=True, capture_output=True, cwd=self.dir)
        self.start()
        if follows:
            follows.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
            follows.run("SELECT pg_reload_conf()")
            wait_until(lambda: follows.run("SELECT sync_state FROM pg_stat_replication") == "sync", "a synchronous replica", 60)

    def promote(self):
        """A replica becomes a primary."""
        self.run("SELECT pg_promote()")

    def kill(self):
        """As if the machine went away: nothing is written any more.  Each process is one that this one started."""
        pids = [int(p) for p in subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True).stdout.split()]
        for pid in [self.process.pid, *pids]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(30)

    def start(self):
        if self.process and self.process.poll() is None:
            return
        self.process = subprocess.Popen(
            [*USER, BIN / "postgres", "-D", self.dir / "data", "-k", self.dir, "-c", "listen_addresses="],
            stderr=open(self.dir.with_suffix(".log"), "a"), cwd=self.dir)

        def answers():
            assert self.process.poll() is None, "PostgreSQL does not start"
            return not subprocess.run([BIN / "psql", "-h", self.dir, "-U", "nkx", "-c", "SELECT 1", "postgres"], capture_output=True).returncode
        wait_until(answers, "PostgreSQL", 30)

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)  # SIGINT: at once, in order; SIGQUIT: as if it crashed
        self.process.wait(30)

    def run(self, sql, database="postgres"):
        r = subprocess.run([BIN / "psql", "-h", self.dir, "-U", "nkx", "-XAtc", sql, database], capture_output=True, text=True)
        assert r.returncode == 0, r.stderr
        return r.stdout.strip()

    def new_database(self, name):
        self.run(f"CREATE DATABASE {name}")
        return f"postgresql://nkx@/{name}?host={self.dir}"

    def dump(self, database="postgres"):
        return subprocess.run([BIN / "pg_dump", "-h", self.dir, "-U", "nkx", database], check=True, capture_output=True).stdout

    def end(self):
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.dir)
        self.dir.with_suffix(".log").unlink(missing_ok=True)
