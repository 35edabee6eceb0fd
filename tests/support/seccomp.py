"""Starts a program under docker/seccomp.json by libseccomp, as a container's runtime does:

    PYTHONPATH=tests python3 -m support.seccomp PROGRAM [ARGUMENT…]
"""
import ctypes
import json
import os
import pathlib
import sys

from support.paths import ROOT

LIBRARY = "libseccomp.so.2"
IS_INSTALLED = pathlib.Path("/usr/lib/x86_64-linux-gnu", LIBRARY).exists()
PROFILE = ROOT / "docker/seccomp.json"
ALLOW, EPERM = 0x7FFF0000, 0x00050001


def load():
    """For this process, which is about to become the program."""
    lib = ctypes.CDLL(LIBRARY, use_errno=True)
    lib.seccomp_init.restype = ctypes.c_void_p
    profile = json.loads(PROFILE.read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ALLOW"
    context = ctypes.c_void_p(lib.seccomp_init(ctypes.c_uint32(ALLOW)))
    for rule in profile["syscalls"]:
        assert rule["action"] == "SCMP_ACT_ERRNO" and rule["errnoRet"] == 1
        for name in rule["names"]:
            number = lib.seccomp_syscall_resolve_name(name.encode())
            if number >= 0:  # negative: not of this machine
                assert not lib.seccomp_rule_add(context, ctypes.c_uint32(EPERM), number, 0), name
    assert not lib.seccomp_load(context)


if __name__ == "__main__":
    load()
    os.execvp(sys.argv[1], sys.argv[1:])
