"""h2load as the one client for all: HTTP at a rate, or as fast as it is answered."""
import json
import re
import subprocess
import tempfile


def h2load(port, path, *, seconds, clients, rps=None, body=None, headers=None, log=None, threads=1):
    """{"rate": answers per second, "ok", "refused", "errors"}; with `log`, a file of (start, status, time)."""
    command = ["h2load", "--h1", "-t", str(threads), "-c", str(clients), "-D", str(seconds), "--warm-up-time=1"]
    if rps:
        command.append(f"--rps={rps / clients:.6f}")
    if log:
        command.append(f"--log-file={log}")
    for k, v in (headers or {}).items():
        command += ["-H", f"{k}: {v}"]
    with tempfile.NamedTemporaryFile() as f:
        if body:
            f.write(json.dumps(body).encode() if isinstance(body, dict) else body)
            f.flush()
            command += ["-d", f.name]
        out = subprocess.run([*command, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True).stdout
    codes = [int(n) for n in re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", out).groups()]
    failed = int(re.search(r"(\d+) failed", out)[1])
    rate = float(re.search(r"finished in [^,]*, ([\d.]+) req/s", out)[1])
    return {"rate": rate, "ok": codes[0], "refused": codes[2] + codes[3], "errors": failed - codes[2] - codes[3]}
