"""S1 to S5 and S8: what native code in a worker can do, tried from there."""
import errno
import os
import pathlib
import random
import string
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from support import golden, syscall_filter as jail_filter
from support.clients import open_stream, read_until, share
from support.paths import BUILD, TESTS
from support.prober import run_inside, tell, tell_all
from support.processes import status
from support.server import ADD_ONE, Server

LAST_CALL = 600
LEFT_OUT = {60, 231, 34, 15}  # exit, exit_group, pause, rt_sigreturn: end or stop the process though they are allowed
# The kernel serves these before it asks any filter, since its own probes use them; from elsewhere they only fail.
KERNELS_OWN = {335: {"killed"}, 336: {"killed", (-1, errno.ENXIO)}}
MINUS = (-1,) * 6


@pytest.fixture(scope="module")
def program(probed):
    probed.settle()
    try:
        return jail_filter.read_program(probed.kids()[0])
    except PermissionError as e:
        pytest.skip(f"the filter cannot be read back here: {e}")


# ---- S1

def test_every_system_call_ends_as_the_list_says(probed):
    """Called for real: all numbers to 600.  What the list does not name ends the worker, so that one job a number."""
    listed = jail_filter.rules()
    outcome = {}

    def walk(begin, end):
        while begin < end:
            told, was_killed = tell(probed, f"probe_calls({begin}, {end}, ctypes.c_long(0))")
            for nr, value, error in told:
                outcome[int(nr)] = (value, error)
            begin += len(told)
            if was_killed:
                outcome[begin] = "killed"
                begin += 1

    with ThreadPoolExecutor(4) as run:
        list(run.map(lambda i: walk(i, min(i + 25, LAST_CALL + 1)), range(0, LAST_CALL + 1, 25)))
    assert len(outcome) == LAST_CALL + 1
    wrong = []
    for nr, got in outcome.items():
        want = jail_filter.said_of(listed, nr, MINUS)
        if nr in KERNELS_OWN:
            good = got in KERNELS_OWN[nr]
        elif want == jail_filter.KILL:
            good = got == "killed"
        elif want == jail_filter.ALLOW:
            good = got != "killed"
        else:
            good = got == (-1, want & 0xFFFF)
        if not good:
            wrong.append((nr, got, hex(want)))
    assert not wrong


@pytest.mark.parametrize("call", ["probe_calls(39, 40, ctypes.c_long(0x40000000))", "probe_calls(0, 1, ctypes.c_long(0x40000000))",
                                  "probe_calls(520, 521, ctypes.c_long(0x40000000))", "probe_int80()",
                                  "probe_calls(601, 602, ctypes.c_long(0))", "probe_calls(1023, 1024, ctypes.c_long(0))"])
def test_other_ways_into_the_kernel_end_the_worker(probed, call):
    told, was_killed = tell(probed, call)
    assert was_killed and told == []


def test_the_installed_filter_is_the_list(program):
    """The bytes that the kernel runs, against syscalls.def: every number, each argument that a rule looks at."""
    listed = jail_filter.rules()
    values = (0, 1, 2, 5, -1, 1 << 32, *jail_filter.CONSTANTS.values())
    for nr in range(-1, 1200):
        looked_at = {c[0] for _, c in listed.get(nr, []) if c}
        for args in [MINUS] + [tuple(v if i == a else 0 for i in range(6)) for a in looked_at for v in values]:
            got = jail_filter.run_program(program, nr, args)
            assert got == jail_filter.said_of(listed, nr, args), (nr, args, hex(got))
        assert jail_filter.run_program(program, nr | 0x40000000) == jail_filter.KILL
        assert jail_filter.run_program(program, nr, arch=jail_filter.I386) == jail_filter.KILL


# ---- S2

def paths(server):
    """Some 400 names of what a job has no business with, and of what it has."""
    build, data = str(BUILD), str(server.data)
    proc = [f"/proc/{who}/{what}" for who in ("self", "thread-self", "1", "2", str(server.pid), str(server.zygote()), str(os.getpid()))
            for what in ("environ", "cmdline", "maps", "mem", "status", "stat", "root", "cwd", "exe", "fd/0", "fd/3", "fd/4", "ns/user",
                         "ns/mnt", "task", "auxv", "cgroup", "mountinfo", "pagemap", "attr/current", "oom_score_adj", "syscall")]
    proc += [f"/proc/{x}" for x in ("", "cpuinfo", "meminfo", "kallsyms", "kcore", "kmsg", "keys", "version", "cmdline", "mounts",
             "net/tcp", "net/unix", "sys/kernel/core_pattern", "sys/kernel/hostname", "sys/user/max_user_namespaces", "sysrq-trigger",
             "sys/kernel/random/boot_id", "interrupts", "partitions", "modules", "locks", "sys/vm/drop_caches", "acpi", "scsi/scsi")]
    sys_ = [f"/sys/{x}" for x in ("", "kernel", "kernel/security", "kernel/debug", "kernel/tracing", "fs/cgroup", "fs/cgroup/cgroup.procs",
            "fs/cgroup/release_agent", "fs/bpf", "class/net", "devices", "firmware", "power/state", "kernel/uevent_helper", "module",
            "block", "bus", "kernel/vmcoreinfo", "kernel/mm/transparent_hugepage/enabled", "fs/selinux")]
    dev = [f"/dev/{x}" for x in ("", "zero", "full", "random", "urandom", "mem", "kmem", "port", "kvm", "shm", "shm/x", "mqueue", "pts",
           "ptmx", "tty", "tty0", "console", "sda", "vda", "vda1", "loop0", "loop-control", "fuse", "net/tun", "vhost-net", "kmsg", "fd",
           "stdin", "stdout", "input", "dri", "nvidia0", "neuron0", "hugepages", "userfaultfd", "vsock", "uinput", "cpu/0/msr", "log")]
    etc = [f"/etc/{x}" for x in ("", "passwd", "shadow", "group", "sudoers", "hosts", "resolv.conf", "hostname", "fstab", "machine-id",
           "ssh/ssh_host_rsa_key", "ssl/private", "ssl/certs", "ld.so.cache", "ld.so.preload", "ld.so.conf", "localtime", "environment",
           "crontab", "alternatives", "nsswitch.conf", "os-release", "profile", "mtab", "docker", "kubernetes", "postgresql", "nginx")]
    home = [f"{h}{x}" for h in ("/root", "/home", "/home/user", os.path.expanduser("~")) for x in ("", "/.ssh", "/.ssh/id_rsa", "/.bashrc",
            "/.netrc", "/.config", "/.aws/credentials", "/.kube/config", "/.docker/config.json", "/.pgpass", "/.git-credentials", "/.cache")]
    run = [f"{r}/{x}" for r in ("/run", "/var/run") for x in ("", "docker.sock", "dbus/system_bus_socket", "systemd", "secrets", "lock",
           "user/0", "postgresql", "containerd", "utmp", "sshd.pid", "secrets/kubernetes.io/serviceaccount/token")]
    var = [f"/var/{x}" for x in ("", "log", "log/syslog", "lib", "lib/postgresql", "lib/dpkg", "cache", "tmp", "spool/cron", "lib/docker",
           "mail", "backups")]
    ours = [build, f"{build}/bin", f"{build}/bin/nkx", f"{build}/bin/nkx-worker", f"{build}/web", f"{build}/examples", data,
            f"{data}/nkx.sqlite", f"{data}/nkx.sqlite-wal", f"{data}/nkx.sqlite-shm", f"{data}/x", str(BUILD.parent / "Makefile"),
            str(BUILD.parent / ".git/config"), str(BUILD.parent / "docker/Dockerfile"), str(BUILD.parent / "explorer/main.c")]
    rest = ["/", "/.", "/..", "/x", "/tmp", "/tmp/x", "/tmp/.X11-unix", "/opt", "/srv", "/mnt", "/media", "/boot", "/boot/vmlinuz", "/bin",
            "/bin/sh", "/bin/busybox", "/sbin/init", "/lib", "/lib64", "/lib64/ld-linux-x86-64.so.2", "/usr", "/usr/bin", "/usr/bin/python3",
            "/usr/bin/env", "/usr/sbin", "/usr/share", "/usr/share/zoneinfo/UTC", "/usr/include/stdio.h", "/usr/local", "/usr/local/bin",
            "/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/locale", "/usr/lib/llvm-22",
            "/usr/lib/llvm-22/bin/clang", "/.dockerenv", "/swapfile", "/etc/../etc/passwd", "//etc/passwd", "/proc/../etc/passwd", ".", ".."]
    lib = os.path.dirname(os.__file__).replace(sys.prefix, "/usr")
    good = [f"/usr/lib/python3.11/{x}" for x in ("", "os.py", "json", "json/__init__.py", "re", "ctypes/__init__.py", "typing.py", "enum.py")]
    good += [str(server.prober.parent), str(server.prober), "/dev/null", lib]
    escapes = ["/usr/lib/python3.11/../../../etc/passwd", "/usr/lib/python3.11/../..", f"{server.prober.parent}/../", "/dev/null/x",
               "/usr/lib/python3.11/__new__", "/usr/lib/python3.11/../x86_64-linux-gnu", f"{server.prober.parent}/new", "/dev/new"]
    return proc + sys_ + dev + etc + home + run + var + ours + rest + good + escapes


def test_what_can_be_read_is_the_library_and_nothing_can_be_written(probed):
    """The golden list is the trees that worker_jail grants: the standard library, NumPy's packages, ours, /dev/null."""
    tried = paths(probed)
    assert len(tried) >= 400
    seen = run_inside(probed, f"said = [prober.probe_path(p.encode()) for p in {tried!r}]")
    trees = ("/usr/lib/python3.11", str(probed.prober.parent))
    readable = [p for p, can in zip(tried, seen) if can & 1]
    writable = [p for p, can in zip(tried, seen) if can & 2]
    assert writable == []
    outside = [p for p in readable if not os.path.normpath(p).startswith(trees) and p != "/dev/null"]
    assert outside == []
    assert {"/usr/lib/python3.11/os.py", str(probed.prober), "/dev/null"} <= set(readable)


# ---- S3, S4

def test_no_call_reaches_the_outside(probed):
    told = tell_all(probed, "probe_ways_out")
    assert len(told) >= 30
    assert [t for t in told if t[1] != "killed" and t[1] >= 0] == []
    probed.settle()
    kid_net = {os.readlink(f"/proc/{k}/ns/net") for k in probed.kids()}
    assert os.readlink("/proc/self/ns/net") not in kid_net, "the network namespace is the host's"


def test_a_worker_has_no_interface_to_send_on(probed):
    probed.settle()
    for kid in probed.kids():
        lines = pathlib.Path(f"/proc/{kid}/net/dev").read_text().splitlines()[2:]
        assert [line.split(":")[0].strip() for line in lines] == ["lo"]
        assert lines[0].split(":")[1].split() == ["0"] * 16, "packets were sent"


def test_no_recipe_for_an_escape_works(probed):
    told = tell_all(probed, "probe_recipes")
    assert len(told) >= 40
    assert [t for t in told if t[1] != "killed" and t[1] >= 0] == []


# ---- S5

def canary(rng):
    return rng.choice(string.ascii_letters) + "".join(rng.choice(string.ascii_letters + string.digits) for _ in range(24))


def test_no_secret_of_the_server_is_in_a_workers_memory(prober_dir, tmp_path, monkeypatch):
    rng = random.Random(os.urandom(8))
    planted = {}

    def plant(where):
        planted[where] = canary(rng)
        return planted[where]

    for name in ("SECRET_KEY", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "LC_CANARY", "PYTHONCANARY"):
        monkeypatch.setenv(name, plant(f"environment {name}"))
    data = tmp_path / plant("data directory")
    examples = tmp_path / plant("examples directory")
    examples.mkdir()
    with Server("--python-dir", str(prober_dir), "--workers", "2", "--examples-dir", str(examples), "--job-timeout-ms", "600000",
                "--job-cpu-s", "120", "--store", f"sqlite:{data}/{plant('store file')}.sqlite", data=data) as s:
        s.prober = prober_dir / "prober.so"
        s.compile(f"# {plant('source of an earlier job')}\n" + ADD_ONE)
        s.compile(f"{plant('name in an earlier job')} = '{plant('string in an earlier job')}'\n" + ADD_ONE)
        s.compile(ADD_ONE, filename=plant("file name of an earlier job") + ".py", scope=plant("scope of an earlier job"))
        s.get("/healthz", Authorization=plant("authorization"), Cookie=plant("cookie"), User_Agent=plant("user agent"))
        s.get("/healthz?" + plant("query"))
        made = share(s, f"# {plant('stored source')}\n" + ADD_ONE, title=plant("stored title")).json
        planted["unlisted id"] = made["id"]
        planted["edit token"] = made["edit_token"]
        with open_stream(s, f"mark = '{plant('another running job')}'\nimport time\ntime.sleep(600)\n") as other:
            read_until(other, b'"frame":"start"')
            assert len(planted) >= 20
            control = canary(rng)
            texts = [*planted.values(), control]
            mask = 0x5A
            hidden = bytes(b ^ mask for t in texts for b in t.encode())
            found = run_inside(s, (
                f"mine = '{control}'\nn = {len(texts)}\nlengths = (ctypes.c_int * n)(*{[len(t) for t in texts]!r})\n"
                f"found = (ctypes.c_int * n)()\nprober.probe_memory(bytes.fromhex('{hidden.hex()}'), lengths, n, {mask}, found)\n"
                "said = list(found)"))
        assert found[-1] > 0, "the prober does not find what is there"
        assert [where for where, n in zip(planted, found) if n] == []


# ---- S8

def test_capabilities_ids_and_namespaces_of_a_worker(probed):
    probed.settle()
    for kid in probed.kids():
        assert {status(kid, c) for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
        assert status(kid, "NoNewPrivs") == "1" and status(kid, "Seccomp") == "2" and status(kid, "Seccomp_filters") == "1"
        assert status(kid, "Threads") == "1" and status(kid, "Groups") == ""
        uid = {"65534"} if os.geteuid() == 0 else {str(os.geteuid())}
        assert set(status(kid, "Uid").split()) == uid
        for ns in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
            assert os.readlink(f"/proc/{kid}/ns/{ns}") != os.readlink(f"/proc/self/ns/{ns}"), ns


def test_the_actions_of_the_filter_are_those_of_the_golden_file(program):
    """Actions of the filter, number by number, as the golden file has them."""
    names = {nr: name for name, nr in jail_filter.numbers().items()}
    lines = []
    for nr in range(LAST_CALL + 1):
        actions = {hex(jail_filter.run_program(program, nr, args)) for args in (MINUS, (0,) * 6, (1,) * 6)}
        if actions != {hex(jail_filter.KILL)}:
            lines.append(f"{nr} {names.get(nr, '?')} {' '.join(sorted(actions))}\n")
    golden.check(TESTS / "jail/filter.golden", "".join(lines))
