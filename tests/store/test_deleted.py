"""P7: what was deleted is gone: from the store's file, from the memory of the server that served it, from backups made after."""
import sqlite3

from support.clients import nkx, read, remove, share
from support.paths import EXAMPLES
from support.server import ADD_ONE, Server


LARGEST = next(p for p in EXAMPLES if p.name.startswith("12_")).read_text()


def blobs(path):
    db = sqlite3.connect(path)
    try:
        return {data for (data,) in db.execute("SELECT data FROM blobs")}
    finally:
        db.close()


def test_what_was_deleted_is_nowhere(tmp_path):
    store = tmp_path / "nkx.sqlite"

    def backup(name):
        assert nkx("store", "backup", "--store", f"sqlite:{store}", tmp_path / name).returncode == 0
        return (tmp_path / name).read_bytes()

    with Server("--cache-s", "1", data=tmp_path) as server:
        kept = share(server, title="kept").json
        before = blobs(store)
        made = share(server, source="# tell-tale\n" + ADD_ONE, title="tell-tale").json
        # texts are stored packed: a mark is the middle of one, which no other text has
        marks = [data[len(data) // 2:][:24] for data in blobs(store) - before if len(data) > 60]
        pages = [made["url"], made["raw_url"], made["embed_url"], f"/api/v1/snippets/{made['id']}", f"/api/v1/snippets/{made['id']}/diff?from=0&to=1"]
        assert [server.get(p).status for p in pages] == [200] * 5
        with_it = backup("before")
        assert marks and all(mark in with_it for mark in marks)
        result = f"/api/v1/results/{made['key']}"
        assert server.get(result).status == 200
        assert remove(server, made).status == 204
        assert [server.get(p).status for p in pages] == [404] * 5
        answer, unknown = read(server, made), read(server, "A" * 22)
        assert (answer.status, answer.body) == (unknown.status, unknown.body)
        # each look keeps the result for another second (--cache-s)
        server.wait_until(lambda: server.get(result).status == 404, "the result to leave the cache, in memory and in the store", 10, poll_s=1.1)
        results = blobs(store)
        without = backup("after")
        assert not [mark for mark in marks if mark in without and not any(mark in data for data in results)]
        assert len(results) < len(before) + len(marks), "none of its texts was removed"
        assert read(server, kept).status == 200
    # the server has ended: the log was merged into the file, over the pages that became free
    left = blobs(store)
    file = b"".join(p.read_bytes() for p in tmp_path.glob("nkx.sqlite*"))
    assert not [mark for mark in marks if mark in file and not any(mark in data for data in left)], "freed pages keep it"


def test_a_confined_server_deletes_a_link_of_the_largest_example(tmp_path):
    with Server(data=tmp_path) as server:
        assert server.get("/readyz").json["server"]["landlock"]
        made, late = share(server, source=LARGEST, inputs=[]).json, share(server, source=LARGEST, inputs=[], title="late").json
        assert remove(server, made).status == 204
        assert read(server, made).status == 404
        assert remove(server, late, query="?after=0").status == 204
        assert read(server, late).status == 404
        assert len(blobs(tmp_path / "nkx.sqlite")) > 1, "it is on the disk until it is purged"
    with Server(data=tmp_path) as server:  # which purges at its start
        server.wait_for_log("store_purge", "expired=1")
    assert not blobs(tmp_path / "nkx.sqlite")
