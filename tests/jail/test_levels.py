"""Which level of the jail is reached with what the kernel offers, and that below the least one no code is run."""
import json
import os
import pathlib
import re
import subprocess

import pytest

from support.paths import NKX
from support.server import ADD_ONE, FLOAT_INPUT, Server, codes

ROOT = os.geteuid() == 0
NAMESPACES = ("user", "pid", "net", "ipc", "uts", "mount")
ALWAYS = ("ids", "rlimits", "fds", "no-capabilities", "no-new-privs", "landlock", "seccomp")
UNIFIED = next((pathlib.Path(line.split()[4]) for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
                if " - cgroup2 " in line), None)


def start(*flags, env=None):
    return Server("--workers", "1", *flags, healthy=False, env=env)


def wait_for_verdict(server):
    server.wait_until(lambda: server.health["status"] != "starting", "a jail or a refusal", 240)
    return server.health


def assert_refuses(server):
    """No child waits for a job, and none gets one."""
    health = wait_for_verdict(server)
    assert health["status"] == "unavailable" and health["idle"] == 0
    refused = []

    def answers():
        refused.append(server.post({"source": "while True:\n    pass\n", "inputs": FLOAT_INPUT}))
        return refused[-1].error["code"] != "starting"  # a zygote that comes anew says so for a moment

    server.wait_until(answers, "a refusal that names the reason", 120)
    assert all(answer.status == 503 and int(answer.headers["Retry-After"]) > 0 for answer in refused)
    assert refused[-1].error["code"] == "unavailable"
    health = server.health  # children may be there that try to build their jail, but none that waits for a job
    assert health["running"] == 0 and health["idle"] == 0
    assert server.get("/api/v1/examples").status == 200, "what needs no worker goes on"


@pytest.mark.parametrize("layer", NAMESPACES)
@pytest.mark.skipif(not ROOT, reason="level C needs a second uid")
def test_without_a_namespace_the_level_is_c(layer):
    with start("--jail-without", layer) as s:
        health = wait_for_verdict(s)
        assert health["level"] == "C" and health["status"] == "ok"
        assert [n for n in ALWAYS if not health["jail"][n]] == [] and not health["jail"]["mount"]
        said = "import os\nraise SystemError(repr((os.getuid(), os.getgid(), os.getgroups())))\n"
        assert "(65534, 65534, [])" in s.compile(said)["diagnostics"][0]["message"]
        for code in ("open('/etc/passwd')", "open('/proc/self/environ')", "os.listdir('/')", "open('/tmp/x', 'w')", "os.fork()",
                     "os.kill(os.getppid(), 0)", "__import__('socket').socket()"):
            assert codes(s.compile(f"import os\n{code}\n")) == ["python-exception"], code
        assert s.compile(ADD_ONE)["status"] == "ok"
        s.wait_for_log("jail_level", "level=C")


@pytest.mark.parametrize("layer", ALWAYS)
def test_without_what_every_level_needs_nothing_is_run(layer):
    with start("--jail-without", layer) as s:
        assert_refuses(s)
        s.wait_for_log(layer, "error")


@pytest.mark.parametrize("layer", NAMESPACES + ALWAYS)
def test_a_step_that_fails_later_means_that_no_job_is_read(layer):
    with start("--jail-failing", layer) as s:
        assert_refuses(s)


def test_a_level_that_the_operator_asks_for_is_not_undercut():
    s = start("--jail-without", "mount", "--jail-min", "B", "--log-format", "json", env={"NKX_NO_SUCH_SETTING": "1"})
    assert_refuses(s)
    assert s.stop() == 0
    s.wait_for_log("stopping")
    assert [line for line in s.log if not line.startswith("{")] == [], "its lines are like the server's"
    assert "zygote" in {json.loads(line)["event"] for line in s.log}


def test_jobs_run_below_level_c_only_if_the_operator_says_so():
    with start("--jail-without", "mount,landlock", "--jail-min", "none") as s:
        health = wait_for_verdict(s)
        assert health["level"] == "none" and health["status"] == "ok"
        s.wait_for_log("jail_level", "warn", "level=none")
        assert s.compile(ADD_ONE)["status"] == "ok"


@pytest.mark.skipif(not ROOT, reason="needs to make a control group")
@pytest.mark.skipif(not UNIFIED, reason="control groups of version 2 are not mounted")
def test_children_are_born_in_their_own_control_group():
    place = UNIFIED / f"nkx-test-{os.getpid()}"
    place.mkdir()
    try:
        with start("--cgroup", str(place)) as s:
            s.settle()
            groups = set()
            for kid in s.kids():
                groups.add(re.search(r"0::(.*)", pathlib.Path(f"/proc/{kid}/cgroup").read_text())[1])
            assert len(groups) == len(s.kids()) and all(f"/{place.name}/nkx-jobs-{s.zygote()}/job-" in g for g in groups)
            for _ in range(5):
                assert s.compile(ADD_ONE)["status"] == "ok"
            assert codes(s.compile("import ctypes\nctypes.memset(0, 0, 8)\n")) == ["worker-died"]
            s.settle()
            jobs = [d for d in place.glob(f"nkx-jobs-{s.zygote()}/*") if d.is_dir()]
            assert len(jobs) == len(s.kids()), "a group was left over"
            zygote = s.zygote()
            os.kill(zygote, 9)
            s.wait_until(lambda: s.zygote() not in (zygote, None), "another zygote")
            s.settle()
            s.wait_until(lambda: len(s.zygotes()) == 2, "one to stand by, which removes what the dead one left")
            s.wait_until(lambda: not (place / f"nkx-jobs-{zygote}").exists(), "the dead one's groups to be removed")
        assert [d for d in place.iterdir() if d.is_dir()] == []
    finally:
        place.rmdir()


@pytest.mark.skipif(not UNIFIED or not {"memory", "pids", "cpu"} <= set((UNIFIED / "cgroup.controllers").read_text().split()),
                    reason="the controllers memory, pids and cpu are not free here")
def test_level_a_with_all_controllers():
    place = UNIFIED / f"nkx-test-{os.getpid()}"
    place.mkdir()
    try:
        with start("--cgroup", str(place), "--job-resident-mib", "100") as s:
            assert wait_for_verdict(s)["level"] == "A"
            assert codes(s.compile("x = []\nwhile True:\n    x.append(bytearray(10 ** 6))\n")) == ["memory-limit"]
    finally:
        place.rmdir()


def test_resident_memory_is_limited_by_watching_where_no_group_does_it():
    with start("--job-resident-mib", "100", "--job-memory-mib", "2048") as s:
        s.settle()
        if s.health["level"] == "A":
            pytest.skip("a control group limits it here")
        grow = "x = []\nfor i in range({}):\n    x.append(bytearray(10 ** 6))\nimport time\ntime.sleep(0.3)\n" + ADD_ONE
        result = s.compile(grow.format(1500))
        assert codes(result) == ["memory-limit"] and "100 MiB" in result["diagnostics"][0]["message"]
        assert s.compile(grow.format(50))["status"] == "ok"
        assert s.compile("import numpy as np\nx = np.empty(10 ** 8)\n" + ADD_ONE)["status"] == "ok", \
            "what is asked for but never touched is not used"


def test_doctor_names_the_level_and_the_way_to_a():
    r = subprocess.run([NKX, "doctor"], capture_output=True, text=True, timeout=60)
    assert r.returncode == 0 and re.search(r"^Level [ABC]: ", r.stdout, re.M)
    assert "Level A: " in r.stdout or ("For level A: " in r.stdout and "--cgroup" in r.stdout and "Delegate=yes" in r.stdout)


@pytest.mark.parametrize("flags, named", [(["--jail-min", "D"], "--jail-min"), (["--jail-without", "walls"], "--jail-without"),
                                          (["--jail-failing", "x"], "--jail-failing"), (["--cgroup", "/nowhere"], "--cgroup"),
                                          (["--job-cpu-s", "0"], "--job-cpu-s"), (["--zygote-jobs", "0"], "--zygote-jobs")])
def test_every_wrong_flag_is_named(flags, named):
    r = subprocess.run([NKX, "serve", *flags], capture_output=True, text=True, timeout=20)
    assert r.returncode == 2 and named in r.stderr
