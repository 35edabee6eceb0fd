"""The tree and what was built of it; BUILD says where (default build, as for make)."""
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
BUILD = ROOT / os.environ.get("BUILD", "build")
NKX = BUILD / "bin/nkx"
WORKER = BUILD / "bin/nkx-worker"  # holds the compiler; started directly it saves a process
EXAMPLES = sorted((ROOT / "explorer/examples").glob("*.py"))


def is_sanitized():
    """AddressSanitizer keeps freed memory for a while, so that figures of memory mean nothing."""
    return b"__asan_init" in NKX.read_bytes()
