"""Packs the Python package, and the program that compiles for it, as a wheel: wheel.py BUILD/python DIRECTORY

The wheel is for the interpreter that runs this and for machines that have LLVM 22's shared libraries where Debian puts
them (libmlir-22, libllvm22): with 160 MB these are left to the system.
"""
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

PACKAGES = ("nkx", "nkipy", "nkigen", "nkipy_kernelgen", "spike")
EXTENSIONS = ("_nkx", "_nkxc")
ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME, VERSION = "nkx", (ROOT / "VERSION").read_text().strip()


def pinned(package):
    """Its line in the list that the product is built with."""
    lines = (ROOT / "docker/requirements.txt").read_text().splitlines()
    return next(line for line in lines if line.startswith(package + "==")).split()[0].replace("==", ">=")


def metadata():
    return "\n".join([
        "Metadata-Version: 2.1", f"Name: {NAME}", f"Version: {VERSION}",
        "Summary: NKIPy's and nkigen's names: traces NumPy kernels for AWS Trainium, shows their stages, runs them",
        "License: Apache-2.0", "Requires-Python: ==3.11.*", f"Requires-Dist: {pinned('numpy')}",
        f"Requires-Dist: {pinned('ml_dtypes')}", "Requires-External: libmlir-22", "Requires-External: libjansson4",
        "Requires-External: libprotobuf-c1", "Requires-External: libpython3.11", "Requires-External: libseccomp2", "Requires-External: libarchive13", "Requires-External: libssl3", ""])


def wheel_file():
    tag = f"cp311-cp311-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    return f"Wheel-Version: 1.0\nGenerator: nkx\nRoot-Is-Purelib: false\nTag: {tag}\n"


def fill(tree, built):
    for p in PACKAGES:
        shutil.copytree(ROOT / "compiler/trace/python" / p, tree / p, ignore=shutil.ignore_patterns("__pycache__"))
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for e in EXTENSIONS:
        shutil.copy(built / f"{e}.so", tree / (e + suffix))
        subprocess.run(["strip", "--strip-debug", tree / (e + suffix)], check=True)
    # `%%nkx` compiles in a process of its own
    program = tree / "nkx" / "bin" / "nkx"
    program.parent.mkdir()
    shutil.copy(built.parent / "bin" / "nkx-worker", program)
    subprocess.run(["strip", "--strip-debug", program], check=True)
    # `import nki` and `import neuronxcc.nki` find ours, unless the vendor's package is installed: this path comes after it
    (tree / f"{NAME}.pth").write_text("nkx/stubs\n")
    info = tree / f"{NAME}-{VERSION}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata())
    (info / "WHEEL").write_text(wheel_file())
    (info / "entry_points.txt").write_text("[console_scripts]\nspike-run = spike.run:main\n")
    (info / "top_level.txt").write_text("\n".join(PACKAGES + EXTENSIONS) + "\n")
    shutil.copy(ROOT / "LICENSE", info)


def main(built, out):
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as d:
        tree = pathlib.Path(d) / f"{NAME}-{VERSION}"
        tree.mkdir()
        fill(tree, built)
        subprocess.run([sys.executable, "-m", "wheel", "pack", "-d", out, tree], check=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
