"""More hostile kernels, each kind made from a list of what it tries: other sockets, other files, other system calls, other frames.

    CASES: as kernels.CASES, and category 25: kernels of NKI
"""
from support.hostile.kernels import DIES, EXIT, RAISES, TIME

# what a call gives is told by an exception, so a call that succeeds ends in another verdict
CALL = "import ctypes\nr = ctypes.CDLL(None, use_errno=True).syscall({})\nif r == -1:\n    raise OSError(ctypes.get_errno())\n"

FAMILIES = {"unix": 1, "IPv4": 2, "IPv6": 10, "netlink": 16, "packet": 17, "crypto": 38, "virtual machines": 40, "bluetooth": 31, "CAN": 29, "XDP": 44}
TYPES = {"stream": 1, "datagrams": 2, "raw": 3, "sequenced": 5}

PATHS = """/etc/passwd /etc/shadow /etc/group /etc/hosts /etc/hostname /etc/resolv.conf /etc/machine-id /etc/ssl/openssl.cnf /etc/ld.so.cache
 /proc/self/maps /proc/self/environ /proc/self/mem /proc/self/exe /proc/self/fd/3 /proc/1/environ /proc/1/root/etc/passwd /proc/mounts /proc/net/tcp /proc/kallsyms
 /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/security/lsm /sys/fs/cgroup/cgroup.procs /sys/class/net/lo/address /dev/mem /dev/kmsg /dev/zero
 /dev/random /dev/tty /dev/shm/x /dev/fuse /dev/kvm /dev/ptmx /root/.ssh/id_rsa /root/.bash_history /home /var/run/docker.sock /run/systemd/private
 /var/lib/nkx/nkx.sqlite /tmp/x /boot/vmlinuz /usr/bin/python3 /bin/sh ../../../../etc/passwd //etc//passwd /./etc/./passwd""".split()

# x86-64's numbers, with arguments that would be right
CALLS = {
    "ptrace": "101, 0, 0, 0, 0", "process_vm_readv": "310, 1, 0, 0, 0, 0, 0", "process_vm_writev": "311, 1, 0, 0, 0, 0, 0", "keyctl": "250, 0, -3, 1", "add_key": "248, b'user', b'a', b'b', 1, -3",
    "request_key": "249, b'user', b'a', 0, 0", "bpf": "321, 0, 0, 0", "perf_event_open": "298, 0, 0, -1, -1, 0", "userfaultfd": "323, 0", "io_uring_setup": "425, 1, 0", "io_uring_enter": "426, 3, 1, 0, 0, 0, 0",
    "memfd_secret": "447, 0", "unshare of users": "272, 0x10000000", "unshare of mounts": "272, 0x20000", "setns": "308, 3, 0", "mount": "165, b'none', b'/', b'tmpfs', 0, 0", "umount": "166, b'/', 2",
    "pivot_root": "155, b'/', b'/'", "chroot": "161, b'/'", "open_tree": "428, -100, b'/', 1", "fsopen": "430, b'tmpfs', 0", "open_by_handle_at": "304, 3, 0, 0", "name_to_handle_at": "303, -100, b'/', 0, 0, 0",
    "inotify_init": "294, 0", "fanotify_init": "300, 0, 0", "shmget": "29, 1, 4096, 0o1777", "semget": "64, 1, 1, 0o1777", "msgget": "68, 1, 0o1777", "mq_open": "240, b'q', 0o102, 0o600, 0",
    "kexec_load": "246, 0, 0, 0, 0", "init_module": "175, 0, 0, b''", "finit_module": "313, 3, b'', 0", "reboot": "169, 0xfee1dead, 672274793, 0", "swapon": "167, b'/x', 0", "quotactl": "179, 0, 0, 0, 0",
    "acct": "163, 0", "settimeofday": "164, 0, 0", "clock_adjtime": "305, 0, 0", "sethostname": "170, b'x', 1", "iopl": "172, 3", "ioperm": "173, 0, 1, 1", "modify_ldt": "154, 0, 0, 0", "move_pages": "279, 1, 0, 0, 0, 0, 0",
    "migrate_pages": "256, 1, 1, 0, 0", "kcmp": "312, 1, 1, 0, 0, 0", "pidfd_open": "434, 1, 0", "pidfd_getfd": "438, 3, 0, 0", "clone3": "435, 0, 0", "vfork": "58", "execveat": "322, -100, b'/bin/sh', 0, 0, 0",
    "setuid": "105, 0", "setgroups": "116, 0, 0", "setfsuid": "122, 0", "capset": "126, 0, 0", "syslog": "103, 3, 0, 0", "vhangup": "153", "process_madvise": "440, 3, 0, 0, 0, 0", "splice": "275, 3, 0, 3, 0, 1, 0",
    "sendmsg on the job socket": "46, 3, 0, 0", "accept": "43, 3, 0, 0", "listen": "50, 3, 1", "connect": "42, 3, 0, 0", "bind": "49, 3, 0, 0", "linkat": "265, -100, b'/a', -100, b'/b', 0", "symlink": "88, b'/a', b'/b'",
    "mknod of a device": "133, b'/d', 0o020600, 259", "chmod": "90, b'/', 0o777", "chown": "92, b'/', 0, 0", "setxattr": "188, b'/', b'user.a', b'b', 1, 0", "rename": "82, b'/a', b'/b'",
}

_frame = "import os, struct\ndef send(b):\n    os.write(3, struct.pack('<I', len(b)) + b)\n"
LENGTHS = {"of zero bytes, often": "b'\\0\\0\\0\\0' * 1000", "of one byte": "b'\\x01\\0\\0\\0{'", "of 16 MiB and one": "b'\\x01\\0\\0\\x01' + b'x' * 100", "that turns negative": "b'\\0\\0\\0\\x80' + b'x' * 100",
           "of the other byte order": "b'\\0\\0\\0\\x02{}'", "in half": "b'\\x02\\0'", "of random bytes": "bytes(i * 7919 % 251 for i in range(4000))"}
BODIES = {
    "a number": b"1", "a string": b'"end"', "a list": b"[]", "null": b"null", "an empty object": b"{}", "kind null": b'{"frame":null}', "kind a list": b'{"frame":["end"]}', "kind empty": b'{"frame":""}',
    "1e999": b'{"frame":"end","status":"ok","time_us":1e999}', "NaN": b'{"frame":"end","status":"ok","time_us":NaN}', "a time of 30 digits": b'{"frame":"end","status":"ok","time_us":' + b"9" * 30 + b"}",
    "a fraction": b'{"frame":"end","status":"ok","time_us":0.5}', "no status": b'{"frame":"end","time_us":1}', "a status that is a number": b'{"frame":"end","status":1,"time_us":1}', "a lone surrogate": b'{"frame":"end","status":"\\ud800","time_us":1}',
    "a byte order mark": b'\xef\xbb\xbf{"frame":"end","status":"ok","time_us":1}', "overlong UTF-8": b'{"frame":"\xc0\xaf"}', "text after the object": b'{"frame":"end","status":"ok","time_us":1}{}', "a comment": b'{/**/"frame":"end"}',
    "a trailing comma": b'{"frame":"end","status":"ok","time_us":1,}', "single quotes": b"{'frame':'end'}", "a key of a megabyte": b'{"' + b"k" * (1 << 20) + b'":1}', "__proto__": b'{"__proto__":{"frame":"end"}}',
}

_nki = "import neuronxcc.nki as nki\nimport neuronxcc.nki.language as nl\n@nki.jit\ndef k(x):\n"
NKI = {
    "endless loop at tracing": ("    while True:\n        pass\n", TIME | {"unsupported-syntax", "nki-syntax", "python-exception"}),
    "recursion": ("    return k(x)\n", None), "loop of 2^60": ("    for i in nl.affine_range(2 ** 60):\n        pass\n    return x\n", None),
    "negative range": ("    for i in nl.affine_range(-5):\n        pass\n    return x\n", None), "tensor of 2^62": ("    t = nl.ndarray((2 ** 62, 2), dtype=nl.float32, buffer=nl.sbuf)\n    return x\n", None),
    "negative tensor": ("    t = nl.ndarray((-1, 4), dtype=nl.float32, buffer=nl.sbuf)\n    return x\n", None), "tensor without a shape": ("    t = nl.ndarray((), dtype=nl.float32, buffer=nl.sbuf)\n    return x\n", None),
    "dtype of a lie": ("    t = nl.ndarray((4, 4), dtype='float0', buffer=nl.sbuf)\n    return x\n", None), "buffer of a lie": ("    t = nl.ndarray((4, 4), dtype=nl.float32, buffer=7)\n    return x\n", None),
    "index far outside": ("    return nl.load(x[10 ** 30])\n", None), "index of itself": ("    return nl.load(x[x])\n", None), "no such call": ("    return nl.no_such_call(x)\n", None),
    "attribute that is private": ("    return nl.__dict__\n", None), "eval": ("    return eval('1' * 100000)\n", None), "exec": ("    exec('import os')\n    return x\n", None),
    "import within": ("    import os\n    return os.getcwd()\n", None), "loops in loops": ("".join("    " * (i + 1) + f"for i{i} in nl.affine_range(1000):\n" for i in range(12)) + "    " * 13 + "pass\n    return x\n", None),
    "a name of 60000 letters": ("    " + "a" * 60000 + " = x\n    return x\n", None), "no return": ("    pass\n", None), "a lambda": ("    f = lambda: f()\n    return f()\n", None),
}

CASES = {
    "20 network": [(f"socket: {f}, {t}", CALL.format(f"41, {fn}, {tn}, 0"), RAISES | DIES) for f, fn in FAMILIES.items() for t, tn in TYPES.items()],
    "19 files of the host": [(f"read {path}", f"open({path!r}, 'rb').read(1)\n", RAISES) for path in PATHS],
    "21 native code and surgery": [(f"call {name}", CALL.format(args), RAISES | DIES) for name, args in CALLS.items()],
    "23 frames": [(f"a length {name}", f"import os\nos.write(3, {data})\n" + EXIT, DIES | {"output-limit"}) for name, data in LENGTHS.items()] +
                 [(f"a body: {name}", _frame + f"send({body!r})\n" + EXIT if len(body) < 1000 else _frame + "send(b'{\"' + b'k' * (1 << 20) + b'\":1}')\n" + EXIT, DIES) for name, body in BODIES.items()],
    # a refusal with a code, whichever; None: anything but a crash
    "25 kernels of NKI": [(name, _nki + body, verdicts) for name, (body, verdicts) in NKI.items()],
}
