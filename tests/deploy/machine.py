"""The systemd units on a machine of their own: a Debian with systemd and all controllers of control groups, in QEMU.

debootstrap makes its disk, with Debian's kernel, the packages of docker/packages-run.apt, what dev/release.py packs, and docker/nkx.service and
docker/nkx.socket as docs/operating.md says.  machine_checks.py runs in it: level A of the jail, limits, reload, restart, watchdog.  QEMU translates the
machine's instructions where it must, so a compile takes seconds there.  Run as root, after `make build`:

    PYTHONPATH=tests python3 tests/deploy/machine.py [--root DIRECTORY]     a root that an earlier run has left there, or that this one leaves

The last line says how many checks passed; exit status 1 if one failed.  SKIP, with the reason and exit status 0, where that cannot be tried.
"""
import argparse
import contextlib
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from deploy import clean_root, machine_checks
from support.paths import BUILD, ROOT

SYSTEM = "systemd systemd-sysv dbus kmod initramfs-tools zstd linux-image-cloud-amd64 python3"
DISK_GIB, MEMORY_MIB, CORES = 4, 4096, 2
LIMIT_S = 3000
CHECKS_UNIT = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/usr/bin/python3 /root/machine_checks.py
ExecStopPost=/bin/systemctl poweroff --no-block
StandardOutput=file:/dev/ttyS0
StandardError=file:/dev/ttyS0
TimeoutStartSec=infinity
[Install]
WantedBy=multi-user.target
"""

# a start of the workers takes half a minute there, and a job seconds
SLOWNESS = """[Service]
Environment=NKX_QUEUE_TIMEOUT_MS=200000 NKX_JOB_TIMEOUT_MS=120000 NKX_JOB_CPU_S=60 NKX_DRAIN_TIMEOUT_MS=60000
TimeoutStopSec=120
"""


def install_debian(root):
    clean_root.debootstrap(root)
    wanted = " ".join(line for line in (ROOT / "docker/packages-run.apt").read_text().splitlines() if line and not line.startswith("#"))
    clean_root.Image(root).run(f"apt-get update -q && apt-get install -y -q --no-install-recommends {SYSTEM} {wanted} && apt-get clean")


def install_service(root):
    """As docs/operating.md says."""
    for old in ("usr/lib/nkx", "var/lib/nkx"):
        shutil.rmtree(root / old, ignore_errors=True)
    subprocess.run([sys.executable, ROOT / "dev/release.py", BUILD, root / "usr/lib/nkx", "--server"], check=True, stdout=subprocess.DEVNULL)
    if "nkx:" not in (root / "etc/passwd").read_text():
        subprocess.run(["chroot", root, "useradd", "--system", "--home-dir", "/var/lib/nkx", "--shell", "/usr/sbin/nologin", "nkx"], check=True)
    units = root / "etc/systemd/system"
    for name in ("nkx.service", "nkx.socket"):
        shutil.copy2(ROOT / "docker" / name, units / name)
    (units / "nkx.service.d").mkdir(exist_ok=True)
    (units / "nkx.service.d/slow.conf").write_text(SLOWNESS)
    (units / "checks.service").write_text(CHECKS_UNIT)
    shutil.copy2(machine_checks.__file__, root / "root/machine_checks.py")
    subprocess.run(["systemctl", f"--root={root}", "enable", "-q", "nkx.socket", "nkx.service", "checks.service"], check=True)


def run(root, directory):
    """What the machine wrote to its serial line until it was off."""
    disk, console = directory / "disk", directory / "console"
    with open(disk, "wb") as f:
        f.truncate(DISK_GIB << 30)
    subprocess.run(["mkfs.ext4", "-q", "-d", root, disk], check=True)
    kernel, initrd = (next((root / "boot").glob(p)) for p in ("vmlinuz-*", "initrd.img-*"))
    qemu = ["qemu-system-x86_64", "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(CORES), "-m", str(MEMORY_MIB), "-drive", f"file={disk},if=virtio,format=raw",
            "-kernel", kernel, "-initrd", initrd, "-append", "root=/dev/vda rw console=ttyS0 quiet", "-nic", "none", "-display", "none", "-serial", f"file:{console}", "-no-reboot"]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(qemu, check=True, timeout=LIMIT_S)
    return console.read_text(errors="replace").replace("\r", "")


def reason_to_skip():
    for program in ("qemu-system-x86_64", "mkfs.ext4"):
        if not shutil.which(program):
            return f"{program} is not installed"
    return clean_root.reason_to_skip()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--root", type=pathlib.Path)
    o = p.parse_args()
    reason = reason_to_skip()
    if reason:
        print(f"SKIP machine: {reason}")
        return 0
    with tempfile.TemporaryDirectory(prefix="nkx-machine-") as scratch:
        directory = pathlib.Path(scratch)
        root = o.root or directory / "root"
        if not root.exists():
            root.mkdir(parents=True)
            install_debian(root)
        install_service(root)
        said = run(root, directory)
    verdicts = re.findall(r"\bCHECK (\w+) (\w+)", said)
    passed = sum(v == "ok" for v, _ in verdicts)
    print(said[said.find("CHECK "):] if verdicts else said[-5000:])
    print(f"machine: {passed} of {len(machine_checks.CHECKS)} checks passed")
    return passed != len(machine_checks.CHECKS)


if __name__ == "__main__":
    sys.exit(main())
