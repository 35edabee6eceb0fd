"""A SQLite store with damaged pages: the check says what is damaged and goes on, and salvage copies the rest."""
import random
import shutil
import sqlite3

import pytest

from support.clients import nkx, read, share
from support.server import ADD_ONE, Server

LINKS = 40
PAGE = 4096


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A file with links, as a server leaves it, and their ids with their titles."""
    data = tmp_path_factory.mktemp("salvage")
    noise = random.Random(3)
    with Server(data=data) as s:
        made = {}
        for n in range(LINKS):
            source = ADD_ONE + "".join(f"# {noise.getrandbits(256):064x}\n" for _ in range(60))
            answer = share(s, source=source, title=f"link {n}", options={"stop_after": "trace"})
            assert answer.status == 201
            made[answer.json["id"]] = f"link {n}"
    return data / "nkx.sqlite", made


def damage(path, pages, seed):
    """Overwrites whole pages with random bytes."""
    noise = random.Random(seed)
    with open(path, "r+b") as f:
        for page in pages:
            f.seek((page - 1) * PAGE)
            f.write(noise.randbytes(PAGE))


def roots(path):
    """The first page of each table and index: without a table's own, nothing of it is found."""
    db = sqlite3.connect(path)
    found = {r[0] for r in db.execute("SELECT rootpage FROM sqlite_master")}
    db.close()
    return found


def urls(*paths):
    return [f"sqlite:{p}" for p in paths]


@pytest.mark.parametrize("seed", range(4))
def test_what_can_be_read_is_salvaged_and_the_rest_is_said(store, tmp_path, seed):
    path, made = store
    hurt, saved = tmp_path / "hurt.sqlite", tmp_path / "saved.sqlite"
    shutil.copy(path, hurt)
    n = path.stat().st_size // PAGE
    others = sorted(set(range(2, n + 1)) - roots(path))
    damage(hurt, random.Random(seed).sample(others, 3), seed)
    checked = nkx("store", "check", "--store", *urls(hurt))
    assert checked.returncode == 1 and "damaged" in checked.stderr and checked.stdout.startswith("checked "), checked
    salvaged = nkx("store", "salvage", "--store", *urls(hurt), saved)
    assert salvaged.returncode in (0, 1) and salvaged.stdout.startswith("salvaged "), salvaged
    clean = nkx("store", "check", "--store", *urls(saved))
    assert clean.returncode == 0 and "; 0 damaged" in clean.stdout, clean
    kept = int(clean.stdout.split()[1])
    assert LINKS - 36 <= kept <= LINKS, "a page holds at most a dozen links"
    before, after = ({r.split("\t")[0] for r in nkx("store", "list", "--store", u).stdout.splitlines()[1:]} for u in urls(path, saved))
    assert len(after) == kept and after <= before


def test_a_server_serves_what_was_salvaged(store, tmp_path):
    path, made = store
    hurt, data = tmp_path / "hurt.sqlite", tmp_path / "data"
    data.mkdir()
    shutil.copy(path, hurt)
    n = path.stat().st_size // PAGE
    damage(hurt, [max(set(range(2, n - 20)) - roots(path))], 9)
    assert nkx("store", "backup", "--store", *urls(hurt), tmp_path / "backup.sqlite").returncode != 0
    nkx("store", "salvage", "--store", *urls(hurt), data / "nkx.sqlite")
    with Server(data=data) as s:
        there = {i: read(s, i) for i in made}
        assert all(a.status == 404 or a.json["title"] == made[i] for i, a in there.items())
        assert sum(a.status == 200 for a in there.values()) > LINKS // 2
        assert share(s, title="new").status == 201


def test_a_store_without_its_index_is_salvaged_whole(store, tmp_path):
    path, made = store
    hurt, saved = tmp_path / "hurt.sqlite", tmp_path / "saved.sqlite"
    shutil.copy(path, hurt)
    db = sqlite3.connect(path)
    indexes = [r[0] for r in db.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index' AND tbl_name IN ('blobs', 'snippets')")]
    db.close()
    damage(hurt, indexes, 4)
    assert nkx("store", "salvage", "--store", *urls(hurt), saved).returncode == 0
    assert nkx("store", "check", "--store", *urls(saved)).stdout.startswith(f"checked {LINKS} snippets")


def test_salvage_is_for_sqlite_and_an_empty_target(store, tmp_path):
    path, made = store
    wrong = nkx("store", "salvage", "--store", "postgresql:///x", tmp_path / "x.sqlite")
    assert wrong.returncode == 2 and "SQLite" in wrong.stderr
    assert nkx("store", "salvage", "--store", *urls(path), tmp_path / "x.sqlite").returncode == 0
    assert nkx("store", "salvage", "--store", *urls(path), tmp_path / "x.sqlite").returncode == 2
