"""Packs what a server needs of this version of the compiler to offer it beside a later one (`nkx serve --worker-version`).

    build/venv/bin/python3 dev/release.py BUILD DIR [--worker FILE] [--server]

DIR gets the programs, the packages that kernels import, NumPy and ml_dtypes in the versions that this build has, and release.json,
which the worker itself writes.  It must not exist; it appears at once, when it is whole.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parents[1]
SITE = "venv/lib/python3.11/site-packages"
PACKAGES = ("numpy", "numpy.libs", "ml_dtypes")  # what a jailed kernel may read (explorer/worker/jail_paths.c)


def pack(build, to, worker):
    (to / "bin").mkdir(parents=True)
    shutil.copy2(worker, to / "bin/nkx-worker")
    shutil.copy2(build / "bin/nkx", to / "bin/nkx")
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(build / "python", to / "python", ignore=skip)
    site = pathlib.Path(sysconfig.get_paths()["purelib"])
    for name in PACKAGES:
        shutil.copytree(site / name, to / SITE / name, ignore=skip)
    for info in (i for n in PACKAGES for i in site.glob(f"{n}-*.dist-info")):
        shutil.copytree(info, to / SITE / info.name)  # their licences
    shutil.copy2(ROOT / "LICENSE", to / "LICENSE")
    about = subprocess.run([to / "bin/nkx-worker", "about"], capture_output=True, text=True, check=True).stdout
    (to / "release.json").write_text(about)


def pack_server(build, to):
    """What else a server needs, for docker/Dockerfile."""
    shutil.copy2(build / "bin/nkx-runner", to / "bin/nkx-runner")
    shutil.copytree(build / "web", to / "web")
    shutil.copytree(build / "examples", to / "examples")
    if (build / "nkx.spdx.json").exists():
        shutil.copy2(build / "nkx.spdx.json", to / "nkx.spdx.json")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build", type=pathlib.Path)
    p.add_argument("dir", type=pathlib.Path)
    p.add_argument("--worker", type=pathlib.Path, help="instead of BUILD/bin/nkx-worker")
    p.add_argument("--server", action="store_true", help="with the page, the examples, and the runner")
    args = p.parse_args()
    if args.dir.exists():
        sys.exit(f"{args.dir} is there already")
    part = args.dir.with_name(args.dir.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    pack(args.build, part, args.worker or args.build / "bin/nkx-worker")
    if args.server:
        pack_server(args.build, part)
    part.rename(args.dir)
    print(args.dir)


main()
