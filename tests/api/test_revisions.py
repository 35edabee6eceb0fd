"""A link's owner can edit it: every revision stays as it was, and the link shows the newest."""
import sqlite3
import subprocess

import pytest
from support.clients import read, remove, share
from support.paths import BUILD
from support.server import ADD_ONE, FLOAT_INPUT, OURS, Server

SECOND = ADD_ONE.replace("+ 1", "+ 2")


@pytest.fixture(scope="module")
def links():
    with Server() as s:
        yield s


def revise(server, made, source=SECOND, token=None, headers=None, **fields):
    headers = {**OURS, "X-Nkx-Edit-Token": made["edit_token"] if token is None else token, **(headers or {})}
    return server.request("POST", f"/api/v1/snippets/{made['id']}", {"source": source, "inputs": FLOAT_INPUT, **fields}, headers)


def source_of(server, made, revision=""):
    answer = server.get(f"/api/v1/snippets/{made['id']}{revision}")
    assert answer.status == 200
    return answer.json["request"]["source"]


def test_a_link_shows_its_newest_revision_and_each_one_by_its_number(links):
    made = share(links, title="first").json
    assert source_of(links, made) == ADD_ONE and read(links, made).json["revision"] == 1
    answer = revise(links, made, title="second")
    assert answer.status == 201 and answer.json["revision"] == 2 and answer.json["url"] == f"{made['url']}?revision=2"
    assert "edit_token" not in answer.json
    now = read(links, made).json
    assert now["request"]["source"] == SECOND and now["title"] == "second" and now["revision"] == 2
    assert [r["revision"] for r in now["revisions"]] == [1, 2] and now["revisions"][0]["created_ms"] == made["created_ms"]
    assert source_of(links, made, "?revision=1") == ADD_ONE and source_of(links, made, "?revision=2") == SECOND
    assert links.get(f"/api/v1/snippets/{made['id']}?revision=3").status == 404
    for wrong in ("0", "x", "-1", ""):
        answer = links.get(f"/api/v1/snippets/{made['id']}?revision={wrong}")
        assert answer.status == 400 and answer.error["field"] == "revision"


def test_all_views_of_a_link_are_of_the_revision(links):
    made = share(links, title="<one>").json
    assert b"&lt;one&gt;" in links.get(made["url"]).body and links.get(made["raw_url"]).body.decode() == ADD_ONE
    assert revise(links, made, title="<two>").status == 201
    raw, page = made["raw_url"], made["url"]
    assert links.get(raw).body.decode() == SECOND and links.get(raw + "?revision=1").body.decode() == ADD_ONE
    stages = [links.get(f"{raw}?stage=0{query}").body for query in ("&revision=1", "&revision=2", "")]
    assert stages[0] != stages[1] == stages[2]
    for view in ("?", "?view=plain&"):
        assert b"&lt;two&gt;" in links.get(page + view).body and b"&lt;one&gt;" in links.get(f"{page}{view}revision=1").body
    assert links.get(f"{page}/page.html?revision=1").body != links.get(f"{page}/page.html").body
    one, two = (links.get(f"/api/v1/snippets/{made['id']}/diff?from=0&to=20&revision={n}") for n in (1, 2))
    assert one.status == two.status == 200


def test_only_the_owner_adds_a_revision(links):
    made, other = share(links).json, share(links).json
    assert revise(links, made, token=other["edit_token"]).status == 403
    assert revise(links, made, token="").status == 403
    assert revise(links, {**made, "id": "A" * 22}).status == 404
    assert links.request("POST", f"/api/v1/snippets/{made['id']}", {"source": SECOND}, {"Content-Type": "application/json"}).status == 403
    assert read(links, made).json["revision"] == 1


@pytest.mark.parametrize("fields", [{"visibility": "public"}, {"expires_in": 600}, {"parent": "A" * 22}], ids=lambda f: next(iter(f)))
def test_what_all_revisions_share_cannot_be_changed_by_one(links, fields):
    made = share(links).json
    answer = revise(links, made, **fields)
    assert answer.status == 400 and answer.error["field"] == next(iter(fields))


def test_a_link_that_is_deleted_takes_its_revisions_along(links):
    made = share(links, expires_in=3600, visibility="public").json
    assert revise(links, made).json["expires_ms"] == made["expires_ms"]
    assert read(links, made).json["visibility"] == "public" and read(links, made).json["expires_ms"] == made["expires_ms"]
    fork = share(links, parent=made["id"]).json
    assert len(read(links, fork).json["ancestry"]) == 1
    assert remove(links, made).status == 204
    for query in ("", "?revision=1", "?revision=2"):
        assert links.get(f"/api/v1/snippets/{made['id']}{query}").status == 404
    assert read(links, fork).json["ancestry"] == []


def test_revisions_are_in_backups(links, tmp_path):
    from support.clients import nkx
    made = share(links).json
    assert revise(links, made).status == 201
    store = next(links.data.glob("*.sqlite"))
    assert nkx("store", "backup", "--store", f"sqlite:{store}", tmp_path / "copy.sqlite").returncode == 0
    (tmp_path / "copy.sqlite").rename(tmp_path / store.name)
    with Server(data=tmp_path) as again:
        assert source_of(again, made) == SECOND and source_of(again, made, "?revision=1") == ADD_ONE


# ---- notes


def note(server, made, notes, token=None, query="", body=None):
    headers = {**OURS, "X-Nkx-Edit-Token": made["edit_token"] if token is None else token}
    return server.request("POST", f"/api/v1/snippets/{made['id']}/notes{query}", {"notes": notes} if body is None else body, headers)


def notes_of(server, made, query=""):
    return server.get(f"/api/v1/snippets/{made['id']}{query}").json["view"]["notes"]


def test_notes_are_written_often_without_a_revision_and_change_nothing_else(links):
    made = share(links, title="noted", view={"stage": "nisa", "notes": []}).json
    before = read(links, made).json
    for n in range(60):  # more than there may be revisions
        assert note(links, made, [{"n": n}]).json == {"id": made["id"], "revision": 1}
    after = read(links, made).json
    assert after["view"] == {"stage": "nisa", "notes": [{"n": 59}]}
    assert {k: v for k, v in after.items() if k != "view"} == {k: v for k, v in before.items() if k != "view"}
    assert b'"n":59' in links.get(f"{made['url']}/page.html").body.replace(b" ", b"")


def test_notes_are_those_of_a_revision(links):
    made = share(links).json  # without a view
    assert revise(links, made, view={"notes": [{"n": 2}]}).status == 201
    assert note(links, made, [{"n": 1}], query="?revision=1").json["revision"] == 1
    assert note(links, made, [{"n": 3}]).json["revision"] == 2
    assert (notes_of(links, made, "?revision=1"), notes_of(links, made)) == ([{"n": 1}], [{"n": 3}])
    assert note(links, made, [], query="?revision=9").status == 404 and note(links, made, [], query="?revision=x").error["field"] == "revision"


def test_only_the_owner_writes_notes_within_limits(links):
    made, other = share(links).json, share(links).json
    for token in (other["edit_token"], ""):
        assert note(links, made, [], token=token).status == 403
    assert links.request("POST", f"/api/v1/snippets/{made['id']}/notes", {"notes": []}, {"X-Nkx-Edit-Token": made["edit_token"], "Content-Type": "application/json"}).error["code"] == "foreign"
    assert note(links, {"id": "A" * 22, "edit_token": "A" * 22}, []).status == 404
    for body in ({}, {"notes": {}}, {"notes": [], "view": {}}, []):
        assert note(links, made, None, body=body).status == 400
    assert note(links, made, ["x" * (256 << 10)]).status == 413
    assert note(links, made, ["x" * (255 << 10)]).status == 200
    assert note(links, made, ["\0<b>"]).status == 200 and notes_of(links, made) == ["\0<b>"]


def test_notes_and_a_recording_have_room_besides_the_view(links):
    big = {"notes": ["x" * (200 << 10)], "recording": "y" * (200 << 10), "filter": "z" * (60 << 10)}
    made = share(links, view=big).json
    assert read(links, made).json["view"] == big
    for view in ({"notes": ["x" * (256 << 10)]}, {"recording": "y" * (256 << 10)}, {"filter": "z" * (64 << 10)}):
        headers = {**OURS}
        assert links.request("POST", "/api/v1/snippets", {"source": ADD_ONE, "inputs": FLOAT_INPUT, "view": view}, headers).status == 413


def test_a_link_that_is_noted_passes_the_check_of_the_store(tmp_path):
    with Server(data=tmp_path) as server:
        made = share(server, view={"notes": [{"n": 0}]}).json
        assert revise(server, made, view={}).status == 201
        for n in range(3):
            assert note(server, made, [{"n": n}], query=f"?revision={1 + n % 2}").status == 200
        assert server.stop() == 0
    checked = subprocess.run([BUILD / "bin/nkx", "store", "check", "--store", f"sqlite:{tmp_path / 'nkx.sqlite'}"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with sqlite3.connect(tmp_path / "nkx.sqlite") as db:
        rows = db.execute("SELECT (SELECT COUNT(*) FROM blobs), (SELECT COUNT(*) FROM (SELECT doc FROM snippets UNION SELECT frames FROM snippets UNION SELECT frames FROM results))").fetchone()
    assert rows[0] == rows[1], "texts that nothing refers to"
