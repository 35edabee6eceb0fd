"""The drills of docs/runbook.md, carried out as they are written, against a server of the test's own."""
import os
import re
import signal
import subprocess

import pytest

from support.clients import read, share
from support.paths import NKX, ROOT
from support.server import ADD_ONE, Server

PAGE = 4096
DRILLS = {title: blocks for title, blocks in (
    (part.split("\n", 1)[0], re.findall(r"^```sh\n(.*?)^```", part, re.S | re.M)) for part in (ROOT / "docs/runbook.md").read_text().split("\n## ")[1:])
    if blocks}


class Site:
    """A server, its data directory, and a place for backups."""

    def __init__(self, tmp):
        self.data, self.backup = tmp / "data", tmp / "backup"
        self.backup.mkdir()
        self.server = None
        self.start()

    def start(self):
        self.server = Server(data=self.data)

    def stop(self):
        assert self.server.stop() == 0

    def reload(self):
        self.server.process.send_signal(signal.SIGHUP)
        self.server.wait_until(lambda: sum("serving" in line for line in list(self.server.log)) == 2, "the successor", 30)

    def carry_out(self, title, link=""):
        """Runs the drill; returns what its commands printed.  The lines about systemd are for the test itself."""
        printed = ""
        for line in "".join(DRILLS[title]).splitlines():
            if m := re.fullmatch(r"systemctl (stop|start|reload) nkx", line):
                getattr(self, m[1])()
                continue
            line = line.replace("/var/lib/nkx", str(self.data)).replace("/backup", str(self.backup))
            r = subprocess.run(["sh", "-e", "-c", line], capture_output=True, text=True, timeout=60,
                               env={**os.environ, "LINK": link, "PATH": f"{NKX.parent}:{os.environ['PATH']}"})
            assert r.returncode == 0, (line, r.stdout, r.stderr)
            printed += r.stdout
        return printed


@pytest.fixture
def site(tmp_path):
    s = Site(tmp_path)
    yield s
    if s.server.process.poll() is None:
        s.stop()


def test_a_reported_link_is_taken_down(site):
    made = share(site.server, title="reported").json
    printed = site.carry_out("A link is reported", f"https://example.org{made['url']}")
    assert "reported" in printed and read(site.server, made).status == 404
    name = re.search(r"deleted (\w+)", printed)[1]
    assert any("audit" in line and f"link={name}" in line and "client=" in line for line in site.server.log)


def test_a_full_store_gets_room(site):
    made = [share(site.server, title=f"{n}").json for n in range(3)]
    printed = site.carry_out("The store is full", made[1]["id"])
    assert "expires" in printed
    site.server.wait_until(lambda: read(site.server, made[1]).status == 404, "its end", 10)
    assert read(site.server, made[0]).status == 200


def test_a_damaged_store_is_salvaged(site):
    made = [share(site.server, source=ADD_ONE + f"# {os.urandom(4000).hex()}\n", title=f"{n}").json for n in range(12)]
    site.stop()
    path = site.data / "nkx.sqlite"
    with open(path, "r+b") as f:  # a page behind those of the schema: a part of a text
        f.seek(path.stat().st_size // PAGE * 3 // 4 * PAGE)
        f.write(os.urandom(PAGE))
    site.start()
    site.carry_out("The store is damaged")
    answers = [read(site.server, m) for m in made]
    assert {a.status for a in answers} <= {200, 404} and sum(a.status == 200 for a in answers) >= 6
    assert share(site.server, title="after").status == 201


def test_a_backup_is_restored(site):
    made = [share(site.server, title=f"{n}").json for n in range(5)]
    site.carry_out("A backup is restored")
    assert [read(site.server, m).json["title"] for m in made] == ["0", "1", "2", "3", "4"]


def test_a_new_version_takes_over_with_a_backup_made(site):
    made = share(site.server, title="kept").json
    site.carry_out("A new version")
    assert read(site.server, made).json["title"] == "kept" and (site.backup / "before-upgrade.sqlite").exists()


def test_every_drill_is_carried_out():
    tested = (ROOT / "tests/docs/test_runbook.py").read_text()
    assert [title for title in DRILLS if f'carry_out("{title}"' not in tested] == []
