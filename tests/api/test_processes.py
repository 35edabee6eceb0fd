"""The processes: what is started, what is left, what happens when one of them dies."""
import ctypes
import mmap
import os
import pathlib
import re
import signal
import socket
import subprocess

import pytest

from support.clients import in_thread, open_stream, read_until
from support.marks import needs_reach
from support.paths import BUILD, NKX, ROOT, is_sanitized
from support.processes import alive, children, status
from support.server import ADD_ONE, FLOAT_INPUT, Server
from support.wait import wait_until


def test_children_that_wait_are_jailed(server):
    server.settle()
    zygote = server.zygote()
    for kid in server.kids():
        assert status(kid, "Uid").split()[0] != "0" or os.geteuid() != 0
        assert status(kid, "NoNewPrivs") == "1" and status(kid, "Seccomp") == "2" and status(kid, "Threads") == "1"
        assert int(status(kid, "CapEff"), 16) == int(status(kid, "CapBnd"), 16) == int(status(kid, "CapPrm"), 16) == 0
        for ns in ("user", "mnt", "pid", "ipc", "uts"):
            assert os.readlink(f"/proc/{kid}/ns/{ns}") != os.readlink(f"/proc/{zygote}/ns/{ns}"), ns
        assert os.readlink(f"/proc/{kid}/ns/net") != os.readlink("/proc/self/ns/net")
        held = sorted(os.listdir(f"/proc/{kid}/fd"))
        assert held == ["0", "1", "2", "3"]
        assert [os.readlink(f"/proc/{kid}/fd/{i}") for i in (0, 1, 2)] == ["/dev/null"] * 3


def test_the_zygote_has_one_thread_and_no_environment(server):
    zygote = server.zygote()
    assert status(zygote, "Threads") == "1"
    environment = pathlib.Path(f"/proc/{zygote}/environ").read_bytes()
    assert environment == b"" or b"PATH=" not in environment


def test_compiled_code_is_written_to_no_file(server):
    """MLIR's engine would keep a file for `perf`, open in the zygote."""
    maps = pathlib.Path(f"/proc/{server.zygote()}/maps").read_text()
    assert "libMLIR" in maps and ".dump" not in maps
    assert not [fd for fd in pathlib.Path(f"/proc/{server.zygote()}/fd").iterdir() if os.readlink(fd).endswith(".dump")]


def test_the_server_links_neither_python_nor_mlir():
    needed = subprocess.run(["ldd", NKX], capture_output=True, text=True, check=True).stdout
    assert "libsqlite3" in needed and "python" not in needed and "MLIR" not in needed and "LLVM" not in needed


@pytest.mark.skipif(is_sanitized(), reason="built without them")
@pytest.mark.parametrize("program", ["nkx", "nkx-worker"])
def test_programs_are_built_hardened(program):
    told = subprocess.run(["readelf", "-Wlhd", "--dyn-syms", BUILD / "bin" / program], capture_output=True, text=True, check=True).stdout
    assert "DYN (Position-Independent" in told and "GNU_RELRO" in told and "BIND_NOW" in told
    stack = next(line for line in told.splitlines() if line.strip().startswith("GNU_STACK"))
    assert " RW " in stack and "RWE" not in told
    assert "__stack_chk_fail" in told and "_chk@GLIBC" in told


def test_a_dead_zygote_is_replaced_and_waiting_jobs_are_done(impatient):
    impatient.settle()
    old = impatient.zygote()
    family = [old, *impatient.kids()]
    os.kill(old, signal.SIGKILL)
    impatient.wait_until(lambda: not [p for p in family if alive(p)], "its children to follow it", 5)
    assert impatient.compile(ADD_ONE)["status"] == "ok"
    assert impatient.zygote() != old
    impatient.settle()
    assert len(impatient.zygotes()) <= 2, "the one in use and the one that stands by"


def test_a_killed_child_fails_only_its_job(impatient):
    impatient.settle()
    idle = set(impatient.kids())
    with open_stream(impatient, "import time\ntime.sleep(100)\n") as s:
        read_until(s, b'"frame":"start"')
        for kid in idle:  # the one that has the job, and those that wait: they are replaced unnoticed
            os.kill(kid, signal.SIGKILL)
        text = read_until(s, b'"frame":"end"')
    assert b'"code":"worker-died"' in text and b'"status":"error"' in text
    assert impatient.compile(ADD_ONE)["status"] == "ok"
    impatient.settle()


def niceness(pid):
    try:
        return os.getpriority(os.PRIO_PROCESS, pid)
    except ProcessLookupError:
        return None


def test_a_long_job_lets_short_ones_go_first(server):
    with open_stream(server, "while True:\n    pass\n") as s:
        read_until(s, b'"frame":"start"')
        server.wait_until(lambda: 10 in map(niceness, server.kids()), "the loop to be a long job", 10)
        assert server.compile(ADD_ONE)["status"] == "ok"
    server.wait_idle()


def test_children_killed_while_they_wait_are_not_noticed_by_jobs(impatient):
    for _ in range(5):
        impatient.settle()
        kids = impatient.kids()
        for kid in kids:
            os.kill(kid, signal.SIGKILL)
        impatient.wait_until(lambda: not [k for k in kids if alive(k)], "them to die", 5)
        assert impatient.compile(ADD_ONE)["status"] == "ok"


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_server_finishes_its_job_and_leaves_no_process(sig):
    with Server() as s:
        s.settle()
        family = [s.zygote(), *s.kids()]
        answer = in_thread(s.post, {"source": "import time\ntime.sleep(0.7)\n" + ADD_ONE, "inputs": FLOAT_INPUT})
        s.wait_running()
        s.process.send_signal(sig)
        assert s.process.wait(timeout=12) == 0
        assert answer().json["status"] == "ok", "the running job was not finished"
        assert not [p for p in family if alive(p)]


def test_a_stopping_server_kills_jobs_that_do_not_end():
    with Server("--job-timeout-ms", "60000", "--drain-timeout-ms", "2000") as s:
        in_thread(s.post, {"source": "import time\ntime.sleep(50)\n"})
        s.wait_running()
        family = [s.zygote(), *s.kids()]
        s.process.send_signal(signal.SIGTERM)
        assert s.process.wait(timeout=11) == 0
        assert not [p for p in family if alive(p)]


@needs_reach
def test_the_service_has_given_up_its_privileges_and_says_so(server):
    for name, value in (("CapEff", "0000000000000000"), ("CapPrm", "0000000000000000"), ("NoNewPrivs", "1"), ("Seccomp", "2")):
        assert status(server.pid, name) == value, name
    assert not {"0", "65534"} & set(status(server.pid, "Uid").split())
    answer = server.get("/readyz").json["server"]
    assert answer == dict.fromkeys(("not-root", "no-capabilities", "no-new-privs", "landlock", "seccomp"), True)
    for task in pathlib.Path(f"/proc/{server.pid}/task").glob("*/status"):
        assert "Seccomp:\t2" in task.read_text(), "a thread began before the walls stood"


def test_the_launcher_has_no_socket_to_the_outside(server):
    assert status(server.launcher, "Threads") == "1"
    sockets = [os.readlink(f) for f in pathlib.Path(f"/proc/{server.launcher}/fd").iterdir() if os.path.islink(f)]
    assert sum(s.startswith("socket:") for s in sockets) == 2, "the one to the service, and the one that a successor would take over"


def test_a_server_that_gives_up_nothing_says_so():
    with Server("--confine", "no", healthy=False) as s:
        s.wait_until(lambda: s.get("/readyz").status == 200, "a ready server")
        assert not any(s.get("/readyz").json["server"].values())


def test_root_does_not_serve_what_only_root_can_reach(tmp_path):
    if os.getuid():
        pytest.skip("only root can be asked to")
    tmp_path.chmod(0o700)
    data = tmp_path / "data"
    r = subprocess.run([NKX, "serve", "--port", "0", "--confine", "yes", "--data-dir", data], capture_output=True, text=True, timeout=20)
    assert r.returncode == 2 and "cannot reach" in r.stderr and "--confine as-root" in r.stderr


@pytest.mark.parametrize("whom", ["launcher", "pid"])
def test_a_killed_server_leaves_no_process(whom):
    with Server() as s:
        s.settle()
        family = [s.pid, s.zygote(), *s.kids()]
        os.kill(getattr(s, whom), signal.SIGKILL)
        assert s.process.wait(timeout=10) == (-signal.SIGKILL if whom == "launcher" else 4)
        s.wait_until(lambda: not [p for p in family if alive(p)], "its processes to end", 5)


@pytest.mark.parametrize("flags, named", [
    (["--port", "99999"], "--port"), (["--port", "x"], "--port"), (["--workers", "0"], "--workers"),
    (["--queue", "-1"], "--queue"), (["--job-timeout-ms", "soon"], "--job-timeout-ms"), (["--host", "no.such.host.invalid"],
     "--host"), (["--web-dir", "/nowhere"], "--web-dir"), (["--examples-dir"], "--examples-dir"),
    (["--colour"], "--colour"), (["--worker", "/nowhere"], "--worker"), (["extra"], "extra")])
def test_every_wrong_flag_is_named(flags, named):
    r = subprocess.run([NKX, "serve", *flags], capture_output=True, text=True, timeout=20)
    assert r.returncode == 2 and named in r.stderr and r.stdout == ""


def test_a_port_in_use_is_named(server):
    r = subprocess.run([NKX, "serve", "--port", str(server.port)], capture_output=True, text=True, timeout=20)
    assert r.returncode == 2 and str(server.port) in r.stderr and "in use" in r.stderr


def test_doctor_finds_the_jail():
    r = subprocess.run([NKX, "doctor"], capture_output=True, text=True, timeout=20)
    assert r.returncode == 0 and "seccomp            yes" in r.stdout and "NO" not in r.stdout


def test_help_exits_with_0_and_no_command_with_2():
    assert subprocess.run([NKX], capture_output=True).returncode == 2
    assert subprocess.run([NKX, "--help"], capture_output=True).returncode == 0
    assert subprocess.run([NKX, "serve", "--help"], capture_output=True).returncode == 0


def test_the_version_is_that_of_the_release_and_of_the_sources():
    said = subprocess.run([NKX, "--version"], capture_output=True, text=True).stdout
    release = (ROOT / "VERSION").read_text().strip()
    sources = subprocess.run([ROOT / "compiler/driver/version.sh"], capture_output=True, text=True, check=True).stdout.strip()
    assert said == f"nkx {release}, pipeline {sources}\n"


def test_the_log_holds_no_source_of_users(server):
    server.compile("mark = 'tell-tale-7361'\n" + ADD_ONE)
    server.compile("raise ValueError('tell-tale-7361')\n")
    assert not [line for line in server.log if "tell-tale" in line]
    assert [line for line in server.log if "job_done" in line and "status=ok" in line and "wall_ms=" in line]


def can_collapse():
    """Whether this kernel makes a huge page of memory when it is asked to."""
    size, collapse = 2 << 20, 25
    memory = mmap.mmap(-1, 2 * size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(b"x" * (2 * size))
    libc = ctypes.CDLL(None, use_errno=True)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return libc.madvise(ctypes.c_void_p((start + size - 1) // size * size), ctypes.c_size_t(size), collapse) == 0


def test_code_that_every_job_runs_is_in_huge_pages_of_the_zygote():
    if not can_collapse():
        pytest.skip("this kernel has no huge pages to give")
    server = Server("--worker-memory", "hugetext")
    server.settle()
    kib = 0
    for part in re.split(r"(?m)^(?=[0-9a-f]+-)", pathlib.Path(f"/proc/{server.zygote()}/smaps").read_text()):
        if " r-xp " in part:
            kib += int(re.search(r"AnonHugePages: *(\d+)", part)[1])
    assert kib >= 4096 and kib % 2048 == 0
    assert server.compile(ADD_ONE)["status"] == "ok"
    assert server.stop() == 0


def test_what_is_stored_is_readable_for_its_owner_only(tmp_path):
    with Server(data=tmp_path) as s:
        s.compile(ADD_ONE)
        done = subprocess.run([NKX, "store", "backup", "--store", f"sqlite:{tmp_path}/nkx.sqlite", tmp_path / "backup.sqlite"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        files = [p for p in tmp_path.rglob("*") if p.is_file()]
        assert len(files) >= 2 and not [p for p in files if p.stat().st_mode & 0o077]


def test_too_few_descriptors_are_named(tmp_path):
    r = subprocess.run(["sh", "-c", 'ulimit -n 16; exec "$0" serve --port 0 --data-dir "$1"', NKX, tmp_path], capture_output=True, text=True, timeout=30)
    assert r.returncode == 2 and "descriptors" in r.stderr and "16" in r.stderr and not list(tmp_path.iterdir())


def test_a_server_without_standard_descriptors_listens_and_logs_nothing_into_a_socket(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = subprocess.Popen(["sh", "-c", f'exec "$0" serve --port {port} --data-dir "$1" <&- >&- 2>&-', NKX, tmp_path])
    try:
        def is_up():
            with socket.socket() as c:
                return c.connect_ex(("127.0.0.1", port)) == 0
        wait_until(is_up, "it to listen", 30)
        pids = [done.pid, *children(done.pid)]
        for pid in pids:
            assert [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (0, 1, 2)] == ["/dev/null"] * 3, pid
    finally:
        done.terminate()
        assert done.wait(30) == 0
