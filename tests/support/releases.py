"""Releases of the compiler as `make release` packs them; the earlier one lacks what a pass does today (tests/versions)."""
import subprocess
import sys

from support.paths import BUILD, ROOT, WORKER

EARLIER = BUILD / "test/nkx-worker-earlier"
EARLIER_PIPELINE = "0123456789ab"
PASS = "balance-engines"  # does nothing in the earlier release


def wait_for(server, version):
    """Until the workers of a version are warm: the first request for it starts them."""
    job = {"source": "import numpy as np\n\n\ndef f(x):\n    return -x\n", "inputs": [{"name": "x", "shape": [4], "dtype": "float32"}]}
    server.wait_until(lambda: server.post({**job, "version": version}).status == 200, "workers of the version", 120)


def pack(to, worker=WORKER):
    subprocess.run([sys.executable, ROOT / "dev/release.py", BUILD, to, "--worker", worker], check=True, capture_output=True)
    return to
