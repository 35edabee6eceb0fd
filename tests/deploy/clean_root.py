"""docker/Dockerfile without a Docker daemon: its steps, read from the file itself, run in a new Debian root.

debootstrap makes what `FROM debian:12.…` is, for each stage; RUN, COPY, WORKDIR and USER are then done as docker build does them, and CMD
of the last stage is started as the user that the image would have and under docker/seccomp.json, until HEALTHCHECK says yes and a kernel was
compiled, checked by NumPy, and shared.  Takes as long as an installation and a build do.  Run as root:

    PYTHONPATH=tests python3 tests/deploy/clean_root.py [--keep] [DIRECTORY]

SKIP, with the reason and exit status 0, where that cannot be tried.
"""
import argparse
import contextlib
import glob
import http.client
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from support import processes, seccomp
from support.paths import ROOT, TESTS
from support.server import free_port
from support.wait import wait_until

SUITES = "bookworm bookworm-updates bookworm-security"
PORT = "10240"
# a root of its own, not a chroot: the kernel makes no user namespace in one
ENTER = ('set -e; d=$1; shift; mount --rbind "$d" "$d"; mount -t proc proc "$d/proc"; mount --rbind /dev "$d/dev"; '
         'mount --rbind /sys "$d/sys"; cd "$d"; pivot_root . .; umount -l .; cd /; exec "$@"')


def instructions(path):
    """(NAME, rest) of each instruction, continued lines joined."""
    text = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.M))
    for line in text.splitlines():
        if line.strip():
            name, rest = line.split(None, 1)
            yield name, rest.strip()


class Image:
    """A stage: its root and what its instructions say."""

    def __init__(self, directory, earlier=None):
        """earlier: name -> Image, of the stages that it may copy from."""
        self.dir = pathlib.Path(directory)
        self.earlier = earlier or {}
        self.workdir, self.user, self.cmd, self.health = "/", "root", None, None

    def command(self, argv, user="root"):
        inner = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
                 "DEBIAN_FRONTEND=noninteractive", *network_environment()]
        if user != "root":
            inner += ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--bounding-set=-all", "--no-new-privs"]
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private", "sh", "-c", ENTER, "sh",
                self.dir, *inner, "sh", "-c", f"cd {shlex.quote(self.workdir)} && exec {argv}"]

    def run(self, script):
        subprocess.run(self.command("sh -c " + shlex.quote(script)), check=True)

    def copy_from(self, name, source, to):
        subprocess.run(["mkdir", "-p", self.dir / to.strip("/")], check=True)
        subprocess.run(["cp", "-a", f"{self.earlier[name].dir}{source}.", self.dir / to.strip("/")], check=True)

    def copy(self, rest):
        *sources, to = rest.split()
        if sources[0].startswith("--from="):
            assert len(sources) == 2 and sources[1].endswith("/") and to.endswith("/"), rest
            return self.copy_from(sources[0].removeprefix("--from="), sources[1], to)
        to = self.dir / (self.workdir + "/" + to).lstrip("/")
        for name in tracked_files():
            for source in sources:
                source = source.rstrip("/")
                if source == "." or name == source or name.startswith(source + "/"):
                    inside = name if source == "." else name[len(source) + 1:] or pathlib.Path(name).name
                    target = to / inside
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, target)

    def do(self, name, rest):
        print(f"== {name} {rest}", flush=True)
        if name == "RUN":
            self.run(rest)
        elif name == "COPY":
            self.copy(rest)
        elif name == "WORKDIR":
            self.workdir = rest
            (self.dir / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif name == "USER":
            self.user = rest
        elif name == "HEALTHCHECK":
            self.health = rest.split(" CMD ", 1)[1]
        elif name == "CMD":
            self.cmd = shlex.join(json.loads(rest))
        else:
            assert name in ("EXPOSE", "VOLUME"), f"this does not know {name}"

    def start(self):
        filtered = [sys.executable, "-m", "support.seccomp", *self.command(self.cmd, self.user)]
        return subprocess.Popen(filtered, start_new_session=True, env={**os.environ, "PYTHONPATH": str(TESTS)})


def stages(path):
    """(its name or None, its instructions after FROM) of each stage; all are of the same Debian."""
    found, base = [], None
    for name, rest in instructions(path):
        if name == "ARG":
            base = re.fullmatch(r"DEBIAN=(debian:12\.\d+)", rest)[1]
        elif name == "FROM":
            said = re.fullmatch(r"\$DEBIAN(?: AS (\w+))?", rest)
            assert said and base, rest
            found.append((said[1], []))
        else:
            found[-1][1].append((name, rest))
    return found


def build(path, directory):
    """The image of the last stage; each has a root of its own below the directory."""
    built = {}
    for i, (name, steps) in enumerate(stages(path)):
        image = Image(pathlib.Path(directory) / f"stage{i}", built)
        print(f"== FROM, stage {i}", flush=True)
        image.dir.mkdir()
        debootstrap(image.dir)
        for step in steps:
            image.do(*step)
        built[name] = image
    return image


def tracked_files():
    return subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")[:-1]


def network_environment():
    """What package managers are told on this machine about proxies and certificates."""
    return [f"{k}={v}" for k, v in os.environ.items()
            if re.fullmatch(r"(?i)(https?|no)_proxy|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|PIP_CERT|REQUESTS_CA_BUNDLE", k)]


def repositories():
    """suite -> address, of Debian's own suites as this machine's apt knows them."""
    listed = subprocess.run(["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)", "Created-By: Packages"],
                            check=True, capture_output=True, text=True).stdout
    return {suite: uri for suite, component, uri in (line.split() for line in listed.splitlines())
            if suite in SUITES.split() and component == "main"}


def debootstrap(directory):
    known = repositories()
    subprocess.run(["debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", directory, known["bookworm"]], check=True)
    sources = directory / "etc/apt/sources.list"
    sources.write_text("".join(f"deb {uri} {suite} main\n" for suite, uri in known.items()))
    shutil.copy("/etc/resolv.conf", directory / "etc/resolv.conf")
    for name in ["/etc/pip.conf", *glob.glob("/usr/local/share/ca-certificates/*.crt")]:
        if os.path.exists(name):
            shutil.copy(name, directory / name.lstrip("/"))
    subprocess.run(["chroot", directory, "update-ca-certificates"], check=True, stdout=subprocess.DEVNULL)


def request(port, method, path, body=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    c.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json", "X-Nkx-Request": "1"})
    r = c.getresponse()
    return r.status, r.read()


def try_service(image):
    """The image's command: healthy by its own check, in a jail, compiles, keeps.  On a port that is free here.  Returns the layers that its jail has."""
    port = free_port()
    image.cmd, image.health = image.cmd.replace(PORT, str(port)), image.health.replace(PORT, str(port))
    process = image.start()
    try:

        def is_healthy():
            assert process.poll() is None, "the service has ended"
            return not subprocess.run(["sh", "-c", image.health], capture_output=True).returncode
        wait_until(is_healthy, "a healthy service", 60, poll_s=0.5)
        job = {"source": (ROOT / "explorer/examples/02_add_bias.py").read_text(), "options": {"check": True}}
        status, body = request(port, "POST", "/api/v1/compile", job)
        assert status == 200 and json.loads(body)["status"] == "ok", body[:500]
        status, body = request(port, "POST", "/api/v1/snippets", job)
        assert status == 201, body
        status, body = request(port, "GET", json.loads(body)["url"])
        assert status == 200 and b"<script" in body, body[:200]
        assert processes.status(process.pid, "Seccomp") == "2"
        return [layer for layer, value in json.loads(request(port, "GET", "/healthz")[1])["jail"].items() if value]
    finally:
        with contextlib.suppress(ProcessLookupError):  # it has ended, and the assertion says so
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def size_mib(directory):
    return int(subprocess.run(["du", "-sxm", directory], check=True, capture_output=True, text=True).stdout.split()[0])


def reason_to_skip():
    if os.getuid() != 0:
        return "debootstrap needs root"
    for program in ("debootstrap", "unshare", "setpriv", "curl"):
        if not shutil.which(program):
            return f"{program} is not installed"
    if not seccomp.IS_INSTALLED:
        return f"{seccomp.LIBRARY} is not installed"
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
        return "no mount namespaces here"
    return None


def main():
    p = argparse.ArgumentParser()
    p.add_argument("directory", nargs="?")
    p.add_argument("--keep", action="store_true")
    args = p.parse_args()
    reason = reason_to_skip()
    if reason:
        print(f"SKIP clean root: {reason}")
        return
    directory = args.directory or tempfile.mkdtemp(prefix="nkx-root-")
    os.chmod(directory, 0o755)  # it is / for a user who is not root
    began = time.monotonic()
    try:
        image = build(ROOT / "docker/Dockerfile", directory)
        built = time.monotonic()
        layers = try_service(image)
        print(f"the Dockerfile's {sum(1 for _ in instructions(ROOT / 'docker/Dockerfile'))} instructions in a clean root: "
              f"built in {built - began:.0f} s, {size_mib(image.dir)} MiB, healthy, compiles, checks and keeps as user {image.user} "
              f"under the seccomp profile, in a jail of {', '.join(layers)}")
    finally:
        if not args.keep:
            shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
