"""The system call filter of a living worker: read back from the kernel, run here, and what syscalls.def says it does."""
import ctypes
import errno
import os
import pathlib
import re
import struct

from support.paths import ROOT

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long
ATTACH, DETACH, GET_FILTER = 16, 17, 0x420C
X86_64, I386 = 0xC000003E, 0x40000003
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def read_program(pid):
    """[(code, jt, jf, k)] of the one filter that the process has; PermissionError where the kernel does not tell."""
    if LIBC.ptrace(ATTACH, pid, None, None):
        raise PermissionError(ctypes.get_errno(), "ptrace")
    try:
        os.waitpid(pid, 0x40000000)  # __WALL
        n = LIBC.ptrace(GET_FILTER, pid, ctypes.c_void_p(0), None)
        if n < 0:
            raise PermissionError(ctypes.get_errno(), "the kernel does not show filters")
        room = ctypes.create_string_buffer(8 * n)
        assert LIBC.ptrace(GET_FILTER, pid, ctypes.c_void_p(0), room) == n
        assert LIBC.ptrace(GET_FILTER, pid, ctypes.c_void_p(1), None) < 0, "more than one filter"
        return [struct.unpack_from("HBBI", room, 8 * i) for i in range(n)]
    finally:
        LIBC.ptrace(DETACH, pid, None, None)


def run_program(program, nr, args=(0,) * 6, arch=X86_64):
    data = struct.pack("<iIQ6Q", nr, arch, 0, *(a & 0xFFFFFFFFFFFFFFFF for a in args))
    acc, at = 0, 0
    while True:
        code, jt, jf, k = program[at]
        at += 1
        if code == 0x20:  # ld
            acc = struct.unpack_from("<I", data, k)[0]
        elif code == 0x06:  # ret
            return k
        elif code == 0x05:  # ja
            at += k
        elif code == 0x54:  # and
            acc &= k
        else:
            taken = {0x15: acc == k, 0x25: acc > k, 0x35: acc >= k, 0x45: bool(acc & k)}[code]
            at += jt if taken else jf


def numbers():
    text = pathlib.Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h").read_text()
    return {name: int(nr) for name, nr in re.findall(r"#define __NR_(\w+) (\d+)", text)}


CONSTANTS = {"MAP_SHARED": 1, "F_DUPFD": 0, "F_GETFD": 1, "F_SETFD": 2, "F_GETFL": 3, "F_SETFL": 4, "F_GETLK": 5, "F_SETLK": 6, "F_SETLKW": 7,
             "F_OFD_GETLK": 36, "F_OFD_SETLK": 37, "F_OFD_SETLKW": 38, "F_SETLEASE": 1024, "F_GETLEASE": 1025, "F_NOTIFY": 1026,
             "FUTEX_WAIT": 0, "FUTEX_WAKE": 1, "FUTEX_WAIT_PRIVATE": 128, "FUTEX_WAKE_PRIVATE": 129, "FUTEX_REQUEUE_PRIVATE": 131,
             "FUTEX_CMP_REQUEUE_PRIVATE": 132, "FUTEX_WAKE_OP_PRIVATE": 133, "FUTEX_WAIT_BITSET_PRIVATE": 137,
             "FUTEX_WAKE_BITSET_PRIVATE": 138, "FUTEX_WAIT_BITSET_PRIVATE_REALTIME": 393,
             "F_DUPFD_CLOEXEC": 1030, "F_SETPIPE_SZ": 1031, "F_GETPIPE_SZ": 1032, "F_ADD_SEALS": 1033, "F_GET_SEALS": 1034}


def rules():
    """{number: [(action, condition or None)]} as syscalls.def says; condition: (argument, "EQ", "NE", "BITS" or "CLEAR", value)."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "explorer/jail/syscalls.def").read_text(), flags=re.S)
    known, out = numbers(), {}
    for kind, inner in re.findall(r"(\w+)\(([^)]*)\)", text):
        words = [w.strip() for w in inner.split(",")]
        if words[0] not in known:
            continue
        act = ALLOW if kind.startswith("ALLOW") else ERRNO | getattr(errno, words[-1])
        condition = None
        if "_" in kind:
            value = CONSTANTS.get(words[2])
            condition = (int(words[1]), kind.partition("_")[2], int(words[2]) if value is None else value)
        out.setdefault(known[words[0]], []).append((act, condition))
    return out


HOLDS = {"EQ": lambda arg, value: arg == value, "NE": lambda arg, value: arg != value,
         "BITS": lambda arg, value: arg & value == value, "CLEAR": lambda arg, value: not arg & value}


def said_of(listed, nr, args):
    """What the list says of one call."""
    for act, condition in listed.get(nr, []):
        if condition is None or HOLDS[condition[1]](args[condition[0]], condition[2]):
            return act
    return KILL
