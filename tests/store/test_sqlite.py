"""SQLite: what was acknowledged is there after kill -9, a full disk stores nothing by halves, a flipped bit is never
served, and a backup made while writing is whole.

NKX_STORE_KILLS: how often (make nightly sets more).
"""
import http.client
import os
import random
import shutil
import sqlite3
import subprocess

import pytest

from support.clients import in_thread, nkx, read, share
from support.paths import NKX
from support.server import ADD_ONE, Server

KILLS = int(os.environ.get("NKX_STORE_KILLS", "20"))


def check(data):
    return nkx("store", "check", "--store", f"sqlite:{data}/nkx.sqlite")


class Writers:
    """Threads that share snippets as fast as they can; .kept holds what the server acknowledged."""

    def __init__(self, server, n=3):
        self.server, self.kept, self.is_ending = server, [], False
        self.ended = [in_thread(self._run) for _ in range(n)]

    def _run(self):
        while not self.is_ending:
            title = f"{random.getrandbits(64):016x}"
            try:
                answer = share(self.server, title=title)
            except (OSError, http.client.HTTPException):  # the server was killed; half an answer is none
                return
            if answer.status == 201:
                self.kept.append((answer.json["id"], title))

    def end(self):
        self.is_ending = True
        for ended in self.ended:
            ended()


def test_nothing_acknowledged_is_lost_by_kill_9(tmp_path):
    kept = []
    for _ in range(KILLS):
        server = Server(data=tmp_path)
        writers = Writers(server)
        target = random.randint(1, 12)  # killed in the middle of whatever comes after so many
        server.wait_until(lambda: len(writers.kept) >= target, "writes")
        server.kill()
        writers.end()
        kept += writers.kept
    assert check(tmp_path).returncode == 0
    with Server(data=tmp_path) as server:
        lost = [i for i, title in kept if read(server, i).json.get("title") != title]
        assert not lost and len(kept) >= KILLS


def test_a_full_disk_is_reported_stores_nothing_by_halves_and_is_recovered_from(tmp_path):
    """The store is on a separate file system, which the test fills up."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.getuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("a file system cannot be mounted here")
    store = f"sqlite:{disk}/nkx.sqlite"
    try:
        with Server("--store", store) as server:
            kept, statuses = [], []
            noise = random.Random(1)
            while 507 not in statuses and len(statuses) < 400:
                title = f"{len(statuses)}"
                source = ADD_ONE + "".join(f"# {noise.getrandbits(256):064x}\n" for _ in range(200))
                answer = share(server, source=source, title=title, options={"stop_after": "trace"})
                statuses.append(answer.status)
                if answer.status == 201:
                    kept.append((answer.json, title))
            assert statuses[-1] == 507 and kept and set(statuses[:-1]) == {201}
            assert answer.error["code"] == "full"
            assert server.compile(ADD_ONE)["status"] == "ok"  # what needs no space goes on
            for made, title in kept:
                assert read(server, made).json["title"] == title
            assert subprocess.run(["mount", "-o", "remount,size=64m", disk]).returncode == 0
            assert share(server, title="after").status == 201
        r = nkx("store", "check", "--store", store)
        assert r.returncode == 0 and f"{len(kept) + 1} snippets" in r.stdout, r.stdout + r.stderr
    finally:
        subprocess.run(["umount", disk])


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A closed store with a few snippets, and how they read."""
    data = tmp_path_factory.mktemp("filled")
    with Server(data=data) as server:
        made = [share(server, title=f"snippet {i}", visibility=["unlisted", "public"][i % 2],
                      source=ADD_ONE + f"# {i}\n", options={"stop_after": "trace"}).json for i in range(12)]
        made.append(share(server, title="fork", parent=made[1]["id"], options={"stop_after": "trace"}).json)
        texts = {m["id"]: read(server, m).body for m in made}
    assert {p.name for p in data.iterdir()} == {"nkx.sqlite", "nkx.sqlite-lock"}  # no log is left
    return data, texts


def test_a_damaged_snippet_is_an_error_not_an_answer(filled, tmp_path):
    """tests/unit/test_explorer_store.c flips bits anywhere; here is what a client sees of it."""
    data, texts = filled
    shutil.copy(data / "nkx.sqlite", tmp_path)
    db = sqlite3.connect(tmp_path / "nkx.sqlite")
    frames = dict(db.execute("SELECT frames, data FROM snippets JOIN blobs ON hash = frames").fetchall())
    for name, packed in frames.items():
        broken = bytearray(packed)
        broken[len(broken) // 2] ^= 16
        db.execute("UPDATE blobs SET data = ? WHERE hash = ?", (bytes(broken), name))
    db.commit()
    db.close()
    with Server(data=tmp_path) as server:
        for i in texts:
            answer = read(server, i)
            assert answer.status == 500 and answer.error["code"] == "internal"
        assert share(server).status == 201


def test_check_names_a_damaged_blob(filled, tmp_path):
    data, _ = filled
    shutil.copy(data / "nkx.sqlite", tmp_path)
    db = sqlite3.connect(tmp_path / "nkx.sqlite")
    db.execute("UPDATE blobs SET data = substr(data, 1, length(data) - 1) WHERE hash = (SELECT frames FROM snippets LIMIT 1)")
    db.execute("UPDATE snippets SET expires_ms = 5 WHERE public_id IS NOT NULL")
    db.commit()
    db.close()
    r = check(tmp_path)
    assert r.returncode == 1 and "damaged: blob" in r.stderr and r.stderr.count("damaged: snippet") == 6
    assert check(data).returncode == 0


def test_a_backup_under_load_is_whole_and_restores(tmp_path):
    with Server(data=tmp_path / "a") as server:
        writers = Writers(server, 2)
        server.wait_until(lambda: len(writers.kept) >= 20, "writes")
        before = list(writers.kept)
        r = nkx("store", "backup", "--store", f"sqlite:{tmp_path}/a/nkx.sqlite", tmp_path / "backup.sqlite")
        assert r.returncode == 0 and "0 damaged" in r.stdout, r.stdout + r.stderr
        writers.end()
        (tmp_path / "b").mkdir()
        r = nkx("store", "restore", "--store", f"sqlite:{tmp_path}/b/nkx.sqlite", tmp_path / "backup.sqlite")
        assert r.returncode == 0, r.stderr
        with Server(data=tmp_path / "b") as again:
            assert [read(again, i).json["title"] for i, _ in before] == [title for _, title in before]
            i = before[0][0]
            assert read(again, i).body == read(server, i).body
            key = server.compile(ADD_ONE, cache=None)["key"]
            assert again.compile(ADD_ONE, cache=None)["key"] == key  # the secret came along


def test_a_backup_goes_from_one_database_into_the_other(filled, postgres, tmp_path):
    data, texts = filled
    url = postgres.new_database("moved")
    assert nkx("store", "backup", "--store", f"sqlite:{data}/nkx.sqlite", tmp_path / "1.sqlite").returncode == 0
    assert nkx("store", "restore", "--store", url, tmp_path / "1.sqlite").returncode == 0
    assert nkx("store", "restore", "--store", url, tmp_path / "1.sqlite").returncode == 2  # not empty any more
    assert nkx("store", "check", "--store", url).stdout == check(data).stdout
    r = nkx("store", "backup", "--store", url, tmp_path / "2.sqlite")
    assert r.returncode == 0, r.stderr
    rows = [sorted(sqlite3.connect(tmp_path / f"{n}.sqlite").execute(f"SELECT * FROM {t}").fetchall(), key=repr)
            for t in ("meta", "blobs", "snippets", "results") for n in (1, 2)]
    assert rows[0::2] == rows[1::2]
    with Server("--store", url) as server:
        assert {i: read(server, i).body for i in texts} == texts


@pytest.mark.parametrize("args", [[], ["check", "x"], ["backup"], ["restore"], ["burn", "x"], ["check", "--colour"],
                                  ["backup", "x", "y"]])
def test_wrong_usage_of_the_command_is_reported(args):
    r = nkx("store", *args)
    assert r.returncode == 2 and "usage" in r.stderr


def test_a_foreign_database_is_left_alone(tmp_path):
    db = sqlite3.connect(tmp_path / "nkx.sqlite")
    db.execute("CREATE TABLE theirs (x)")
    db.commit()
    db.close()
    before = (tmp_path / "nkx.sqlite").read_bytes()
    r = subprocess.run([NKX, "serve", "--port", "0", "--data-dir", tmp_path], capture_output=True, text=True,
                       timeout=20)
    assert r.returncode == 2 and "not a store" in r.stderr
    assert (tmp_path / "nkx.sqlite").read_bytes() == before
