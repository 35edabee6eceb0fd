"""Runs as root inside of the machine of machine.py: what systemd and the kernel do for the service.  Prints a line for each check."""
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

PUBLIC, OPS = 10240, 10241
GROUP = pathlib.Path("/sys/fs/cgroup/system.slice/nkx.service")
KERNEL = "import numpy as np\n\n\ndef k(x):\n    return np.exp(x) + 1\n"
INPUTS = [{"name": "x", "shape": [4, 8], "dtype": "float32"}]
SLOW = 300  # seconds: the machine's processor is a program


def ask(method, path, body=None, port=PUBLIC):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=SLOW)
    try:
        c.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json", "X-Nkx-Request": "1", "Cache-Control": "no-store"})
        r = c.getresponse()
        text = r.read()
        return r.status, json.loads(text) if "json" in r.headers.get("Content-Type", "") else text
    finally:
        c.close()


def compiled(source):
    status, result = ask("POST", "/api/v1/compile", {"source": source, "inputs": INPUTS})
    assert status == 200, (status, result)
    return result


def codes(result):
    return [d["code"] for d in result["diagnostics"]]


def systemctl(*args):
    return subprocess.run(["systemctl", *args], capture_output=True, text=True, timeout=SLOW).stdout.strip()


def shown(name):
    return systemctl("show", "nkx.service", "--value", "-p", name)


def wait_until(what, is_so, seconds=SLOW):
    end = time.monotonic() + seconds
    while not (got := is_so()):
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.2)
    return got


def is_ready():
    try:
        status, about = ask("GET", "/readyz", port=OPS)
    except OSError:
        return None
    return about if status == 200 else None


# ---- the checks, in this order


def the_service_starts_and_is_never_root():
    wait_until("the service to be active", lambda: systemctl("is-active", "nkx.service") == "active")
    wait_until("readiness", is_ready)
    for group in GROUP.rglob("cgroup.procs"):
        for p in group.read_text().split():
            uids = re.search(r"^Uid:\s+(.*)$", pathlib.Path(f"/proc/{p}/status").read_text(), re.M)[1].split()
            assert "0" not in uids, (p, uids)


def the_jail_has_level_a():
    about = is_ready()
    assert about["level"] == "A", about
    return about["level"]


def the_page_is_served():
    status, page = ask("GET", "/")
    assert status == 200 and b"<script" in page, (status, page)


def a_kernel_compiles_and_a_link_is_kept():
    assert compiled(KERNEL)["status"] == "ok"
    status, made = ask("POST", "/api/v1/snippets", {"source": KERNEL, "inputs": INPUTS})
    assert status == 201, made
    global link
    link = made["url"]
    link_is_there()


def link_is_there():
    status, page = ask("GET", link)
    assert status == 200, (link, status, str(page)[:300])


def each_job_has_a_group_with_limits():
    jobs = [d for d in GROUP.rglob("job-*") if d.is_dir()]
    assert jobs, list(GROUP.rglob("*"))
    for d in jobs:
        limits = {name: (d / name).read_text().strip() for name in ("memory.max", "memory.swap.max", "pids.max", "cpu.weight") if (d / name).exists()}
        assert limits["memory.max"] != "max" and limits["pids.max"] != "max", limits
    return f"{len(jobs)} groups, {limits}"


def the_kernel_ends_a_job_for_its_memory_and_nothing_else():
    before, pid = killed(), shown("MainPID")
    result = compiled("x = []\nwhile True:\n    x.append(bytearray(10 ** 8))\n")
    assert codes(result) == ["memory-limit"], result["diagnostics"]
    assert killed() > before, f"the control group did not: {before}, {killed()}"
    assert shown("MainPID") == pid and compiled(KERNEL)["status"] == "ok"
    return result["diagnostics"][0]["message"]


def killed():
    return int(re.search(r"^oom_kill (\d+)$", (GROUP / "memory.events").read_text(), re.M)[1])


def while_it_is(act, what):
    """Compiles one after the other meanwhile: none is refused, and none fails."""
    results, over = [], threading.Event()

    def client():
        while not over.is_set():
            try:
                results.append(compiled(KERNEL)["status"])
            except (OSError, AssertionError, http.client.HTTPException) as e:
                results.append(repr(e))
    threads = [threading.Thread(target=client) for _ in range(2)]
    for t in threads:
        t.start()
    wait_until("some compiles", lambda: len(results) > 2)
    act()
    n = len(results)
    wait_until("some more", lambda: len(results) > n + 2)
    over.set()
    for t in threads:
        t.join()
    assert set(results) == {"ok"}, (what, [r for r in results if r != "ok"])
    return f"{len(results)} compiles"


def reload_():
    pid = shown("MainPID")
    systemctl("reload", "nkx.service")
    wait_until("the new service", is_ready)
    assert shown("NRestarts") == "0" and systemctl("is-active", "nkx.service") == "active"
    return pid


def a_reload_refuses_nobody():
    return while_it_is(reload_, "reload")


def a_restart_keeps_the_sockets_and_the_link():
    pid = shown("MainPID")
    stop = threading.Thread(target=systemctl, args=("restart", "nkx.service"))
    stop.start()
    wait_until("another process", lambda: shown("MainPID") not in (pid, "0"))
    stop.join()
    assert compiled(KERNEL)["status"] == "ok"  # a client waits in the socket's queue, and is not refused
    link_is_there()


def systemd_starts_anew_what_is_killed():
    n, pid = int(shown("NRestarts")), shown("MainPID")
    os.kill(int(pid), signal.SIGKILL)
    wait_until("a restart", lambda: int(shown("NRestarts")) > n)
    wait_until("readiness", is_ready)
    link_is_there()


def systemd_starts_anew_what_hangs():
    n, pid = int(shown("NRestarts")), shown("MainPID")
    began = time.monotonic()
    os.kill(int(pid), signal.SIGSTOP)
    wait_until("the watchdog", lambda: int(shown("NRestarts")) > n)
    took = time.monotonic() - began
    wait_until("readiness", is_ready)
    link_is_there()
    return f"after {took:.0f} s"


def a_stop_leaves_nothing():
    systemctl("stop", "nkx.socket", "nkx.service")
    assert systemctl("is-active", "nkx.service") == "inactive", systemctl("status", "nkx.service")
    assert shown("Result") == "success" and not GROUP.exists()


CHECKS = (the_service_starts_and_is_never_root, the_jail_has_level_a, the_page_is_served, a_kernel_compiles_and_a_link_is_kept, each_job_has_a_group_with_limits,
          the_kernel_ends_a_job_for_its_memory_and_nothing_else, a_reload_refuses_nobody, a_restart_keeps_the_sockets_and_the_link, systemd_starts_anew_what_is_killed,
          systemd_starts_anew_what_hangs, a_stop_leaves_nothing)


def main():
    for check in CHECKS:
        began = time.monotonic()
        try:
            said, verdict = check(), "ok"
        except Exception as e:  # noqa: BLE001  the next ones are told of all the same
            said, verdict = f"{type(e).__name__}: {e}", "FAILED"
        print(f"CHECK {verdict} {check.__name__.strip('_')} ({time.monotonic() - began:.0f} s) {said or ''}", flush=True)
        if verdict != "ok":
            print(subprocess.run(["journalctl", "-u", "nkx.service", "-n", "30", "--no-pager", "-o", "cat"], capture_output=True, text=True).stdout, flush=True)


if __name__ == "__main__":
    sys.exit(main())
