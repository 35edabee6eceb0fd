"""A running server under strace: what it asks the kernel for, or calls that fail."""
import os
import pathlib
import subprocess

import pytest

from support.processes import status
from support.wait import wait_until


class Strace:
    """Follows the process and its threads from now on; the test is skipped where that is not allowed."""

    def __init__(self, pid, *arguments, output="/dev/null"):
        self.process = subprocess.Popen(["strace", "-f", "-qq", "-o", output, *arguments, "-p", str(pid)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

        def is_attached():
            if self.process.poll() is not None:
                pytest.skip(f"the server cannot be traced here: {self.process.stderr.read()}")
            return all(status(f"{pid}/task/{task}", "TracerPid") == str(self.process.pid) for task in os.listdir(f"/proc/{pid}/task"))
        wait_until(is_attached, "strace to follow every thread", 30)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


class FileTrace(Strace):
    """Every call that names a file."""

    def __init__(self, pid, path):
        self.path = pathlib.Path(path)
        super().__init__(pid, "-s", "4096", "-e", "trace=%file", output=path)

    def end(self):
        super().end()
        return self.path.read_text(errors="replace").splitlines()
