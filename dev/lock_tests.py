#!/usr/bin/env python3
"""Writes docker/requirements-test.txt: each package that docker/requirements-test.in needs, with its version and the hashes of
its files for x86-64 and for ARM.  With that list pip need not search for versions that fit together, which takes a minute and
a half, and installs nothing else.

    build/venv/bin/python3 dev/lock_tests.py

What docker/requirements.txt names keeps the version that stands there.  pip's resolver decides, for Debian's Python (3.11).
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

DOCKER = pathlib.Path(__file__).resolve().parents[1] / "docker"
HEAD = """\
# Oracles and test tools; never part of the product.  Made from requirements-test.in by dev/lock_tests.py, not by hand.
# pip installs only files with these hashes: those for x86-64, then those for ARM, or one for all machines.
"""
ARM = [f"--platform=manylinux{v}_aarch64" for v in ("_2_34", "_2_31", "_2_28", "_2_27", "_2_26", "_2_24", "_2_17", "2014")]


def chosen(*flags: str) -> dict[str, tuple[str, str]]:
    """What pip would install into an empty environment: {name: (version, sha256)}."""
    r = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", "--report=-", "--disable-pip-version-check", *flags],
        stdout=subprocess.PIPE, text=True, check=True)
    found = {}
    for item in json.loads(r.stdout)["install"]:
        name = re.sub(r"[-_.]+", "-", item["metadata"]["name"]).lower()
        found[name] = item["metadata"]["version"], item["download_info"]["archive_info"]["hashes"]["sha256"]
    return found


def main():
    with tempfile.TemporaryDirectory() as scratch:
        product = pathlib.Path(scratch, "product.txt")
        product.write_text("\n".join(re.findall(r"^\S+==\S+", (DOCKER / "requirements.txt").read_text(), re.M)))
        x86 = chosen(f"--requirement={DOCKER / 'requirements-test.in'}", f"--constraint={product}")
        same = pathlib.Path(scratch, "same.txt")
        same.write_text("\n".join(f"{name}=={version}" for name, (version, _) in x86.items()))
        arm = chosen("--no-deps", f"--requirement={same}", *ARM, f"--target={scratch}/arm")
    with open(DOCKER / "requirements-test.txt", "w", encoding="utf-8") as out:
        out.write(HEAD)
        for name, (version, digest) in sorted(x86.items()):
            hashes = dict.fromkeys([digest, arm.get(name, (version, digest))[1]])
            out.write(" \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{h}" for h in hashes)]) + "\n")


if __name__ == "__main__":
    main()
