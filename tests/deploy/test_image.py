"""The image's second stage: the packages that it names are enough to run, and no compiler is among them.

Its root is laid from the files of these packages, and of those that they depend on, as this machine has them; its other steps are done
as the Dockerfile says.  tests/deploy/clean_root.py (nightly) does both stages with Debian's own.
"""
import os
import re
import shutil
import subprocess

import pytest

from support.paths import BUILD, ROOT
from deploy import clean_root

LARGE = 1 << 20
BASE = ("passwd", "mount")  # of a minimal Debian, though not essential
PACKAGES = ROOT / "docker/packages-run.apt"
DOCKERFILE = ROOT / "docker/Dockerfile"


def installed():
    """name -> (names that it needs, is essential), and which package stands for a virtual name."""
    form = "${Package}\t${Essential}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
    needs, stands = {}, {}
    for line in subprocess.run(["dpkg-query", "-W", "-f", form], check=True, capture_output=True, text=True).stdout.splitlines():
        name, essential, depends, provides = line.split("\t")
        needs[name] = ([[re.split(r"[ :(]", o.strip())[0] for o in group.split("|")] for group in depends.split(",") if group.strip()], essential == "yes")
        stands.update((re.split(r"[ (]", p.strip())[0], name) for p in provides.split(",") if p.strip())
    return needs, stands


def closure(names):
    needs, stands = installed()
    have, todo = set(), [*names, *(n for n, (_, essential) in needs.items() if essential), *BASE]
    while todo:
        name = todo.pop()
        if name in have:
            continue
        assert name in needs, f"{name} is not installed here"
        have.add(name)
        for group in needs[name][0]:
            todo += [next(n if n in needs else stands[n] for n in group if n in needs or n in stands)]
    return have


def run_packages():
    return [line for line in PACKAGES.read_text().splitlines() if not line.startswith("#")]


def lay(root, names):
    """What the packages' files are here, in a root of their own; /usr is merged, as in Debian 12."""
    listed = subprocess.run(["dpkg-query", "-L", *sorted(names)], check=True, capture_output=True, text=True).stdout.splitlines()
    files = sorted({f for f in listed if f.startswith("/") and (os.path.islink(f) or os.path.isfile(f)) and not f.startswith("/usr/share/doc/")})
    for top in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / top).mkdir(parents=True)
        (root / top).symlink_to(f"usr/{top}")
    files = sorted({re.sub(r"^/(bin|sbin|lib|lib64)/", r"/usr/\1/", f) for f in files} - {"/bin", "/sbin", "/lib", "/lib64"})
    for f in files:
        to = root / f.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        if os.path.islink(f):
            to.symlink_to(os.readlink(f))
        elif f.startswith("/usr/lib/") and os.path.getsize(f) > LARGE and os.stat(f).st_dev == root.stat().st_dev:
            os.link(f, to)  # nobody writes to a library
        else:
            shutil.copy2(f, to)
    for name in ("proc", "sys", "dev", "tmp", "root"):
        (root / name).mkdir(exist_ok=True)
    shutil.copy("/usr/share/base-passwd/passwd.master", root / "etc/passwd")
    shutil.copy("/usr/share/base-passwd/group.master", root / "etc/group")
    subprocess.run(["ldconfig", "-r", root], check=True)


def test_the_second_stage_names_no_compiler_and_all_that_is_loaded():
    needed = closure(run_packages())
    assert not {n for n in needed if re.search(r"^(gcc(-\d+)?|g\+\+(-\d+)?|clang|make|nodejs|llvm-\d+-dev|python3-pip|git)$|-dev$", n)}
    loaded = set()
    for program in ("bin/nkx", "bin/nkx-worker", "bin/nkx-runner"):
        loaded |= set(re.findall(r"=> (/\S+)", subprocess.run(["ldd", BUILD / program], check=True, capture_output=True, text=True).stdout))
    real = {os.path.realpath(path) for path in loaded}
    owners = subprocess.run(["dpkg-query", "-S", *real, *[r.removeprefix("/usr") for r in real]], capture_output=True, text=True).stdout
    owned = {f"/usr{path}" if path.startswith("/lib") else path: name.split(":")[0] for name, path in (line.split(": ") for line in owners.splitlines())}
    assert {r for r in real if owned.get(r) not in needed} == set()


@pytest.mark.skipif(clean_root.reason_to_skip() is not None, reason=str(clean_root.reason_to_skip()))
def test_the_second_stage_runs_compiles_and_keeps(tmp_path):
    os.chmod(tmp_path, 0o755)
    (_, first), (_, second) = clean_root.stages(DOCKERFILE)
    packing = first[-1][1].replace("/image", str(tmp_path / "built/image"))
    (tmp_path / "built").mkdir()
    subprocess.run(packing.replace("build/venv/bin/python3", str(ROOT / "build/venv/bin/python3")), shell=True, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    root = tmp_path / "root"
    root.mkdir()
    lay(root, closure(run_packages()))
    image = clean_root.Image(root, {"build": clean_root.Image(tmp_path / "built")})
    for name, rest in second:
        if not (name == "RUN" and "apt-get" in rest):
            image.do(name, rest)
    assert not (root / "usr/bin/gcc").exists() and not (root / "usr/bin/make").exists()
    clean_root.try_service(image)
