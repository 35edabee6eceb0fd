"""Links: what is stored, how it is found and removed, and that nothing discloses an id or a token."""
import base64
import io
import json
import re
import sqlite3
import subprocess
import tarfile
import time

import pytest

from support.clients import open_stream, read, remove, share
from support.paths import NKX
from support.server import ADD_ONE, FLOAT_INPUT, OURS, Server

VIEW = {"stage": "cse", "lines": [3, 9], "panes": ["source", "diff"]}


@pytest.fixture(scope="module")
def links():
    """A server of its own: misses are counted per address."""
    with Server() as s:
        yield s


def without_date(answer):
    """Nor the request's number, which is drawn for each answer."""
    return answer.status, answer.body, sorted((k, v) for k, v in answer.headers.items() if k not in ("Date", "X-Request-Id"))


def test_a_snippet_comes_back_as_it_was_shared(links):
    answer = share(links, title="Añadir \U0001f642", view=VIEW, target="trn3", options={"stop_after": "cse"})
    assert answer.status == 201
    made = answer.json
    assert re.fullmatch("[A-Za-z0-9_-]{22}", made["id"]) and made["visibility"] == "unlisted"
    assert made["url"] == f"/z/{made['id']}" and made["embed_url"] == f"/e/{made['id']}" and made["expires_ms"] is None
    got = read(links, made).json
    assert got["title"] == "Añadir \U0001f642" and got["view"] == VIEW and got["ancestry"] == []
    assert got["request"]["source"] == ADD_ONE and got["request"]["target"] == "trn3"
    assert got["request"]["options"]["stop_after"] == "cse" and "scope" not in got["request"]
    assert got["request"]["inputs"] == FLOAT_INPUT and got["is_current"] is True
    assert got["result"]["status"] == "ok" and got["result"]["kernels"][0]["stages"][-1]["name"] == "cse"
    assert abs(got["created_ms"] / 1000 - time.time()) < 60
    assert "edit_token" not in got and made["edit_token"] not in json.dumps(got)


def test_the_request_of_a_snippet_compiles_to_its_result(links):
    got = read(links, share(links).json).json
    again = links.post(got["request"]).json
    assert [s["text"] for s in again["kernels"][0]["stages"]] == \
           [s["text"] for s in got["result"]["kernels"][0]["stages"]]


def test_the_result_is_the_servers_own_not_the_clients(links):
    answer = share(links, result={"status": "ok", "kernels": []})
    assert answer.status == 400 and "result" in answer.error["message"]


def test_a_kernel_that_is_refused_is_kept_with_its_diagnostics(links):
    got = read(links, share(links, source="def k(x):\n    return x.nope()\n").json).json
    assert got["result"]["status"] == "error" and got["result"]["diagnostics"]


def test_a_public_id_is_short(links):
    made = share(links, visibility="public").json
    assert re.fullmatch("[2-9A-HJ-NP-Za-km-z]{8}", made["id"])
    got = read(links, made).json
    assert got["visibility"] == "public" and got["id"] == made["id"]


def test_forks_name_their_public_ancestors_and_keep_unlisted_ones_secret(links):
    first = share(links, visibility="public", title="first").json
    second = share(links, parent=first["id"], title="second").json
    third = share(links, parent=second["id"]).json
    answer = read(links, third)
    assert [(a["visibility"], a.get("id"), a.get("title")) for a in answer.json["ancestry"]] == [
        ("unlisted", None, None), ("public", first["id"], "first")]
    assert second["id"].encode() not in answer.body
    assert remove(links, second).status == 204
    assert read(links, third).json["ancestry"] == []  # the chain ends where one is gone


def test_a_parent_must_exist(links):
    assert share(links, parent="A" * 22).status == 404
    assert share(links, parent="not an id").status == 404


def test_only_the_edit_token_removes_a_snippet(links):
    made, other = share(links).json, share(links).json
    assert remove(links, made, other["edit_token"]).status == 403
    assert remove(links, made, "").status == 403
    assert links.request("DELETE", f"/api/v1/snippets/{made['id']}", headers={"X-Nkx-Request": "1"}).status == 403
    assert read(links, made).status == 200
    assert remove(links, made).status == 204
    assert read(links, made).status == 404 and links.get(made["url"]).status == 404
    assert remove(links, made).status == 404
    assert read(links, other).status == 200  # which shared its texts with the removed one


def test_a_snippet_expires():
    with Server() as s:
        made, late = share(s, expires_in=60).json, share(s).json
        assert 59_000 <= made["expires_ms"] - made["created_ms"] <= 61_000
        assert read(s, made).json["expires_ms"] == made["expires_ms"]
        assert remove(s, late, query="?after=1").status == 204
        assert read(s, late).json["expires_ms"] is not None
        s.wait_until(lambda: read(s, late).status == 404, "its end", 5)
        assert remove(s, late).status == 404


@pytest.mark.parametrize("fields, named", [
    ({"title": 5}, "title"), ({"title": "x" * 201}, "title"), ({"view": []}, "view"), ({"view": {"a": "x" * 70000}}, "view"),
    ({"visibility": "secret"}, "visibility"), ({"expires_in": 59}, "expires_in"), ({"expires_in": 1e9}, "expires_in"),
    ({"expires_in": "60"}, "expires_in"), ({"parent": 7}, "parent"), ({"target": "trn9"}, "target"),
    ({"colour": "red"}, "colour"), ({"scope": "short"}, "scope"), ({"scope": "has spaces in it here"}, "scope")])
def test_every_wrong_field_is_named(links, fields, named):
    answer = share(links, **fields)
    assert answer.status in (400, 413) and answer.error["field"] == named


def test_state_changes_need_our_header_and_json(links):
    made = share(links).json
    assert share(links, headers={"Content-Type": "application/json"}).status == 403
    assert share(links, headers={"X-Nkx-Request": "1", "Content-Type": "text/plain"}).status == 415
    assert share(links, headers={"X-Nkx-Request": "1"}).status == 415
    assert links.request("DELETE", f"/api/v1/snippets/{made['id']}",
                         headers={"X-Nkx-Edit-Token": made["edit_token"]}).status == 403
    for answer in (share(links, headers={**OURS, "Origin": "https://elsewhere.example"}), read(links, made),
                   links.request("OPTIONS", "/api/v1/snippets", headers={
                       "Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST",
                       "Access-Control-Request-Headers": "x-nkx-request"})):
        assert not [k for k in answer.headers if k.lower().startswith("access-control")]
    assert read(links, made).status == 200


def test_the_page_opens_on_a_link(links):
    made = share(links).json
    page, index = links.get(made["url"]), links.get("/")
    assert page.status == 200 and b"<main id=\"panes\">" in page.body and page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]


def test_only_the_embed_form_may_be_framed(links):
    made = share(links).json
    answer = links.get(made["embed_url"])
    csp = answer.headers["Content-Security-Policy"]
    assert answer.status == 200 and answer.body == links.get("/").body
    assert "frame-ancestors" not in csp and "require-trusted-types-for 'script'" in csp and "default-src 'none'" in csp
    assert answer.headers["Cross-Origin-Resource-Policy"] == "cross-origin"


INERT = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def test_the_raw_source_is_shown_as_text_and_never_sniffed(links):
    source = "# <script>alert(1)</script>\x01\n" + ADD_ONE
    made = share(links, source=source).json
    answer = links.get(made["raw_url"])
    assert answer.body.decode() == source
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["Content-Disposition"].startswith("inline")
    assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Content-Security-Policy"] == INERT


def test_the_text_of_each_stage_is_shown_as_text(links):
    made = share(links).json
    stages = read(links, made).json["result"]["kernels"][0]["stages"]
    for query, stage in [("stage=0", stages[0]), (f"stage={len(stages) - 1}&kernel=0", stages[-1]), ("stage=cse:2", [s for s in stages if s["name"] == "cse"][1])]:
        answer = links.get(f"{made['raw_url']}?{query}")
        assert answer.status == 200 and answer.body.decode() == stage["text"]
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8" and answer.headers["Content-Security-Policy"] == INERT
    for query in ("stage=99", "stage=none", "stage=0&kernel=1", "stage=0&kernel=x", "stage="):
        answer = links.get(f"{made['raw_url']}?{query}")
        assert answer.status == 404 and answer.error["field"] == "stage"


def test_the_archive_of_a_link_has_its_frozen_result(links):
    made = share(links).json
    answer = links.get(f"{made['url']}/all.tar.gz", Accept_Encoding="gzip")
    assert answer.headers["Content-Disposition"].startswith("attachment") and answer.headers["Content-Encoding"] is None
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        names = tar.getnames()
        result = json.load(tar.extractfile("result.json"))
        assert result == read(links, made).json["result"]
    assert "source-map.json" in names and len(names) == 2 + len(result["kernels"][0]["stages"])


def test_the_page_of_a_link_says_in_its_head_what_it_is_about(links):
    plain = links.get("/").body.decode()
    for fields, title in [({"title": "A \"<b>"}, "A &quot;&lt;b&gt;"), ({}, "add_one"), ({"language": "mlir", "source": "module {}", "inputs": []}, "A kernel")]:
        made = share(links, **fields).json
        for _ in range(2):  # the second time it comes from memory
            page = links.get(made["url"]).body.decode()
            assert f"<title>{title} · Neuron Kernel Explorer</title>" in page and f'<meta property="og:title" content="{title}">' in page
            assert 'property="og:description" content="A' in page and f'href="/z/{made["id"]}?view=plain"' in page
            rest = re.sub(r"<title>.*?</title>(\n<meta (property|name)=[^\n]*)*|<p class=\"noscript\">.*?</p>", "", page, flags=re.S)
            assert rest == re.sub(r"<title>.*?</title>|<p class=\"noscript\">.*?</p>", "", plain, flags=re.S)


def test_unknown_links_have_no_view_and_count_as_misses(links):
    for tail in ("?view=plain", "/raw?stage=0", "/page.html", "/all.tar.gz"):
        assert links.get(f"/z/{'A' * 22}{tail}").status == 404


def test_nothing_about_a_link_is_kept_or_indexed(links):
    made = share(links).json
    for path in (f"/api/v1/snippets/{made['id']}", made["url"], made["embed_url"], made["raw_url"]):
        h = links.get(path).headers
        assert h["Cache-Control"] == "no-store" and h["Referrer-Policy"] == "no-referrer" and "noindex" in h["X-Robots-Tag"]
        assert "ETag" not in h


def test_an_id_and_a_token_appear_in_no_log_health_or_error(links):
    made = share(links).json
    bad = [links.request("POST", f"/z/{made['id']}", "{}", OURS), links.get(f"/z/{made['id']}/more"),
           links.request("PUT", f"/api/v1/snippets/{made['id']}", headers={"X-Nkx-Request": "1"}),
           remove(links, made, "A" * 22)]
    assert all(a.status >= 400 for a in bad)
    places = [a.body + str(a.headers).encode() for a in bad] + [links.get("/healthz").body, "".join(links.log).encode()]
    for secret in (made["id"], made["edit_token"]):
        assert not [p for p in places if secret.encode() in p]


def test_deleted_unknown_and_malformed_ids_answer_alike():
    with Server() as s:
        made = share(s).json
        remove(s, made)
        ids = [made["id"], "A" * 22, "zzzzzzzz", "x", made["id"] + "x", "..%2f..", "a/b", made["id"][:-1] + "!"]
        for form in ("/api/v1/snippets/{}", "/z/{}", "/e/{}"):
            assert len({repr(without_date(s.get(form.format(i)))) for i in ids}) == 1


def test_a_client_that_guesses_ids_is_stopped_after_thirty_misses():
    with Server() as s:
        made = share(s).json
        statuses = [s.get(f"/api/v1/snippets/{'A' * 20}{i:02d}").status for i in range(30)]
        assert statuses == [404] * 30
        for path in ("/api/v1/snippets/" + "B" * 22, "/z/" + "B" * 22, made["url"], f"/api/v1/snippets/{made['id']}"):
            answer = s.get(path)
            assert answer.status == 429 and int(answer.headers["Retry-After"]) > 0
        assert s.get("/healthz").status == 200 and s.get("/").status == 200


def test_a_link_opened_again_and_again_is_never_refused(links):
    made = share(links).json
    assert {links.get(made["url"]).status for _ in range(40)} == {200}


def test_a_dump_of_the_database_holds_no_id_and_no_token():
    with Server() as s:
        made = [share(s, title=f"t{i}").json for i in range(5)]
        made.append(share(s, parent=made[0]["id"]).json)
    whole = b"".join(p.read_bytes() for p in s.data.iterdir())
    dump = "\n".join(sqlite3.connect(s.data / "nkx.sqlite").iterdump())
    for snippet in made:
        for secret in (snippet["id"], snippet["edit_token"]):
            raw = base64.urlsafe_b64decode(secret + "==")
            assert secret.encode() not in whole and secret not in dump
            assert raw not in whole and raw.hex() not in dump.lower()
    assert dump.count('INSERT INTO "snippets"') + dump.count("INSERT INTO snippets") == 6


def test_links_outlive_the_server():
    with Server() as s:
        made = share(s).json
        before = read(s, made)
    with Server(data=s.data) as again:
        after = read(again, made)
        assert after.status == 200 and after.body == before.body


def test_a_second_server_on_one_sqlite_file_is_refused(links):
    r = subprocess.run([NKX, "serve", "--port", "0", "--data-dir", links.data], capture_output=True,
                       text=True, timeout=20)
    assert r.returncode != 0 and "in use" in r.stderr
    assert share(links).status == 201


@pytest.mark.parametrize("url", ["mysql://x", "sqlite:", "postgres", ""])
def test_an_address_that_names_no_store_is_refused(url):
    r = subprocess.run([NKX, "serve", "--port", "0", "--store", url], capture_output=True, text=True, timeout=20)
    assert r.returncode == 2 and "--store" in r.stderr


def test_a_client_that_leaves_while_its_snippet_is_made_harms_nobody(links):
    open_stream(links, ADD_ONE, FLOAT_INPUT).close()
    c = links.connect()
    c.request("POST", "/api/v1/snippets", json.dumps({"source": "import time\ntime.sleep(0.3)\n" + ADD_ONE, "inputs": FLOAT_INPUT}), OURS)
    c.close()
    assert share(links).status == 201
    links.settle()
