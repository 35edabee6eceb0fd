"""Holds processes to a part of the machine's processors, by a control group of either version, where this process may make one."""
import contextlib
import os
import pathlib
import time

V1, V2 = pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup")
PERIOD_US = 100000


class NoQuota(Exception):
    pass


def tree(pid):
    return [pid, *(p for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split() for p in tree(int(child)))]


class CpuQuota:
    """part: of all processors together."""

    def __init__(self, name, part):
        quota = int(part * os.cpu_count() * PERIOD_US)
        is_v1 = (V1 / "cpu.cfs_quota_us").exists() or (V1 / "cpu.shares").exists()
        self.dir = (V1 if is_v1 else V2) / f"nkx-test-{os.getpid()}-{name}"
        try:
            self.dir.mkdir()
            if is_v1:
                (self.dir / "cpu.cfs_period_us").write_text(str(PERIOD_US))
                (self.dir / "cpu.cfs_quota_us").write_text(str(quota))
                (self.dir / "cpu.shares").write_text("10240")  # other work on the machine takes nothing of it
            else:
                (self.dir / "cpu.max").write_text(f"{quota} {PERIOD_US}")
                (self.dir / "cpu.weight").write_text("1000")
        except OSError as e:
            with contextlib.suppress(OSError):
                self.dir.rmdir()
            raise NoQuota(f"no control group with a quota of processor time can be made here: {e}") from e

    def hold(self, pid):
        """A process and its descendants, also those that they will start."""
        for _ in range(2):  # one may have started another meanwhile
            for p in tree(pid):
                with contextlib.suppress(ProcessLookupError):
                    (self.dir / "cgroup.procs").write_text(str(p))

    def end(self):
        """Once its processes have ended."""
        for _ in range(100):
            try:
                return self.dir.rmdir()
            except OSError:
                time.sleep(0.05)
