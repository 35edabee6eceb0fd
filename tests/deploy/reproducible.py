"""The same sources give the same bytes: two clean builds in folders of different names and at different times are compared, file by file.

    PYTHONPATH=tests python3 tests/deploy/reproducible.py [DIRECTORY]

Each builds what git knows of this checkout without a compiler's cache, and with another order of its jobs.  Takes twice as long as a build.
"""
import filecmp
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from support.paths import ROOT

WHAT = ["bin/nkx", "bin/nkx-worker", "bin/nkx-runner", "python/_nkx.so", "python/_nkxc.so", "lib/libnkxcompiler.a"]


def copy_sources(to):
    for name in subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")[:-1]:
        if (ROOT / name).exists():  # or it was deleted and not committed
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)
            shutil.copymode(ROOT / name, to / name)


def build(to, jobs, umask):
    """A clean build with the Python environment of this checkout, which is a part of neither."""
    (to / "build").mkdir()
    (to / "build/venv").symlink_to((ROOT / "build/venv").resolve())
    path = ":".join(p for p in os.environ["PATH"].split(":") if "ccache" not in p)
    env = {**os.environ, "PATH": path, "CCACHE_DISABLE": "1", "TZ": f"UTC+{jobs}"}
    subprocess.run(["make", "-s", f"-j{jobs}", "binaries", "python"], cwd=to, env=env, check=True, stdout=subprocess.DEVNULL, umask=umask)


def main():
    top = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="nkx-same-"))
    one, two = top / "a", top / "somewhere-else" / "deeper"
    began = time.monotonic()
    try:
        for to in one, two:  # both before the first build, during which somebody may edit
            to.mkdir(parents=True)
            copy_sources(to)
        build(one, 2, 0o022)
        build(two, 1, 0o077)
        other = [name for name in WHAT if not filecmp.cmp(one / "build" / name, two / "build" / name, shallow=False)]
        told = [name for name in WHAT if str(top).encode() in (two / "build" / name).read_bytes()]
        print(f"two clean builds in {time.monotonic() - began:.0f} s: {len(WHAT) - len(other)} of {len(WHAT)} files have the same bytes"
              + "".join(f"; {name} differs" for name in other) + "".join(f"; {name} names its folder" for name in told))
        return 1 if other or told else 0
    finally:
        if len(sys.argv) < 2:
            shutil.rmtree(top)


if __name__ == "__main__":
    sys.exit(main())
