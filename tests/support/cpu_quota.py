"""Holds processes to a part of the machine's processors, and counts what they take, by a control group of either version, where this process may make one."""
import contextlib
import os
import pathlib
import time

V1, V1_USED, V2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup/cpuacct"), pathlib.Path("/sys/fs/cgroup")
PERIOD_US = 100000


class NoQuota(Exception):
    pass


def tree(pid):
    return [pid, *(p for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split() for p in tree(int(child)))]


class CpuQuota:
    """part: of all processors together; None: no quota.  Other work on the machine takes little of it, because its weight is ten times the usual one."""

    def __init__(self, name, part=None):
        is_v1 = (V1 / "cpu.cfs_quota_us").exists() or (V1 / "cpu.shares").exists()
        name = f"nkx-test-{os.getpid()}-{name}"
        self.dirs = list(dict.fromkeys(d.resolve() / name for d in ((V1, V1_USED) if is_v1 else (V2,))))
        self.is_v1 = is_v1
        try:
            for d in self.dirs:
                d.mkdir()
            if is_v1:
                (self.dirs[0] / "cpu.shares").write_text("10240")
            else:
                (self.dirs[0] / "cpu.weight").write_text("1000")
            self.set(part)
            self.used_s()
        except OSError as e:
            self._remove()
            raise NoQuota(f"no control group with a quota of processor time can be made here: {e}") from e

    def set(self, part):
        if self.is_v1:
            (self.dirs[0] / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.dirs[0] / "cpu.cfs_quota_us").write_text(str(int(part * os.cpu_count() * PERIOD_US) if part else -1))
        else:
            (self.dirs[0] / "cpu.max").write_text(f"{int(part * os.cpu_count() * PERIOD_US) if part else 'max'} {PERIOD_US}")

    def used_s(self):
        """Seconds of a processor that its processes have taken, those that have ended, too."""
        if self.is_v1:
            return int((self.dirs[-1] / "cpuacct.usage").read_text()) / 1e9
        return int((self.dirs[0] / "cpu.stat").read_text().split()[1]) / 1e6

    def hold(self, pid):
        """A process and its descendants, also those that they will start."""
        for _ in range(2):  # one may have started another meanwhile
            for p in tree(pid):
                self._move(p, self.dirs)

    def hold_alone(self, pid):
        """Without the descendants that it has now."""
        self._move(pid, self.dirs)

    def let_go(self, pid):
        self._move(pid, [d.parent for d in self.dirs])

    @staticmethod
    def _move(pid, dirs):
        for d in dirs:
            with contextlib.suppress(ProcessLookupError):
                (d / "cgroup.procs").write_text(str(pid))

    def _remove(self):
        gone = True
        for d in self.dirs:
            try:
                d.rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                gone = False
        return gone

    def end(self):
        """Once its processes have ended."""
        for _ in range(100):
            if self._remove():
                return
            time.sleep(0.05)


@contextlib.contextmanager
def precedence():
    """This process and what it starts get processor time before other work on the machine, where that can be had: what is measured is then the server and not
    who else works here.  Gives the group, or None."""
    try:
        group = CpuQuota("first")
    except NoQuota as e:
        print(f"beside other work: {e}")
        yield None
        return
    group.hold_alone(os.getpid())
    try:
        yield group
    finally:
        group.let_go(os.getpid())
        group.end()
