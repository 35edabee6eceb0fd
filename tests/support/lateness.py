"""How late this machine wakes a process whose time has come: what a bound on a deadline must allow on a busy machine.

    with Lateness() as late:
        …
    assert took_ms <= limit_ms + slack_ms + late.ms
"""
import subprocess
import sys

WAKE_UPS = 8  # that a server's deadline may need: its own, the kernel's, the zygote's, and back

LOOP = """import select, sys, time
worst = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    began = time.monotonic()
    time.sleep(0.01)
    worst = max(worst, time.monotonic() - began - 0.01)
print(worst)
"""


class Lateness:
    """ms: of WAKE_UPS wake-ups in a row, each as late as the latest one in the block."""

    def __enter__(self):
        self._loop = subprocess.Popen([sys.executable, "-c", LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.ms = 1000 * WAKE_UPS * float(self._loop.communicate("\n")[0])
