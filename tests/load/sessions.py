"""Sessions under load: people who type, and whether memory and descriptors are back afterwards.  sessions.py [class|many]"""
import re
import subprocess
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support.figures import figure  # noqa: E402
from support.paths import BUILD, ROOT  # noqa: E402
from support.server import Server  # noqa: E402
from support.wait import wait_until  # noqa: E402


def gauge(server, name):
    return float(re.search(rf"^{name} (\S+)$", server.get("/metrics").body.decode(), re.M)[1])


def main(modes):
    with Server("--client-links", "0", "--client-links-day", "0", "--client-connections", "0") as server:
        server.wait_until(lambda: server.get("/readyz").status == 200, "a worker that is warm")
        for mode in modes:
            before = gauge(server, "process_open_fds"), gauge(server, "process_resident_memory_bytes")
            cpu = gauge(server, "process_cpu_seconds_total")
            r = subprocess.run([BUILD / "venv/bin/node", ROOT / "tests/load/sessions.mjs", server.url, mode], capture_output=True, text=True, timeout=600)
            assert r.returncode == 0, r.stderr[-3000:]
            cpu = gauge(server, "process_cpu_seconds_total") - cpu
            wait_until(lambda: gauge(server, "nkx_session_streams") == 0, "all streams have ended", 60)
            wait_until(lambda: gauge(server, "process_open_fds") <= before[0] + 4, "descriptors are back", 60)
            wait_until(lambda: gauge(server, "nkx_sessions") == 0, "rooms are forgotten", 90)
            memory = (gauge(server, "process_resident_memory_bytes") - before[1]) / 2**20
            line = f"{r.stdout.strip()}; server {cpu:.1f} s of a processor, {memory:+.0f} MiB afterwards"
            figure(line)


if __name__ == "__main__":
    main(sys.argv[1:] or ["class", "many"])
