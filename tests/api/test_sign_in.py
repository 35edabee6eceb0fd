"""Sign-in: who asks is whom a trusted proxy names, or the owner of a token; what they may do; links for some people only."""
import base64
import json
import subprocess
import tempfile

import pytest

from support.clients import in_thread, nkx
from support.paths import NKX
from support.server import ADD_ONE, FLOAT_INPUT, JOB, OURS, Server
from support.wait import wait_until

PROXY = ["--trusted-proxies", "127.0.0.1", "--user-header", "X-Forwarded-User", "--email-header", "X-Forwarded-Email",
         "--groups-header", "X-Forwarded-Groups", "--operator-groups", "sre, root", "--client-links", "0", "--client-links-day", "0"]
LINK = {"source": ADD_ONE, "inputs": FLOAT_INPUT}


def person(name, email=None, groups=None):
    headers = {"X-Forwarded-User": name}
    if email:
        headers["X-Forwarded-Email"] = email
    if groups:
        headers["X-Forwarded-Groups"] = groups
    return headers


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def me(server, headers):
    return server.request("GET", "/api/v1/me", headers=headers).json


def store_link(server, who, **fields):
    return server.request("POST", "/api/v1/snippets", {**LINK, **fields}, {**OURS, **who})


def open_link(server, made, who, path="/api/v1/snippets/{}"):
    return server.request("GET", path.format(made["id"]), headers=who).status


def token_command(server, *args, store=None):
    store = store or f"sqlite:{server.data}/nkx.sqlite"
    return subprocess.run([NKX, "token", *args, "--server", server.url, "--store", store], capture_output=True, text=True, timeout=60)


def make_token(server, name, *args, store=None):
    r = token_command(server, "create", name, *args, store=store)
    assert r.returncode == 0, r.stderr
    return r.stdout.strip()


@pytest.fixture(scope="module")
def proxied():
    with Server(*PROXY) as s:
        yield s


# ---- who asks


def test_without_a_proxy_nobody_is_known_and_everything_is_as_it_was(server):
    got = me(server, person("ada", groups="sre"))
    assert got == {"name": None, "groups": [], "kind": "anonymous", "role": "author", "has_sign_in": False}


def test_a_proxys_headers_name_a_person_and_their_groups(proxied):
    got = me(proxied, person("ada", "ada@example.org", "eng, sre ,"))
    assert got == {"name": "ada", "email": "ada@example.org", "groups": ["eng", "sre"], "kind": "person", "role": "operator", "has_sign_in": True}
    assert me(proxied, person("bob", groups="eng,sre-team"))["role"] == "author"
    assert me(proxied, {})["kind"] == "anonymous"


def test_envoys_form_of_a_list_is_read(proxied):
    for names in (["eng"], ["kernels, fast", "sre"], [], ["ä"] * 40):
        text = base64.urlsafe_b64encode(json.dumps(names).encode()).decode().rstrip("=")
        if names:
            assert me(proxied, person("ada", groups=text))["groups"] == names
    assert me(proxied, person("ada", groups="Wyoming,West"))["groups"] == ["Wyoming", "West"]


def test_a_header_that_comes_twice_and_the_name_of_a_token_are_nobodys(proxied):
    c = proxied.connect()
    c.putrequest("GET", "/api/v1/me")
    for name, value in (("X-Forwarded-User", "ada"), ("X-Forwarded-Groups", "eng"), ("X-Forwarded-Groups", "sre")):
        c.putheader(name, value)
    c.endheaders()
    assert json.loads(c.getresponse().read())["role"] == "author"
    c.close()
    assert me(proxied, person("token:ci"))["kind"] == "anonymous"


def test_only_the_proxy_is_believed(proxied):
    c = proxied.connect(address="127.0.0.2")
    c.request("GET", "/api/v1/me", headers=person("ada", groups="sre"))
    assert json.loads(c.getresponse().read())["kind"] == "anonymous"
    c.close()


# ---- roles


def compiled(server, who):
    return server.request("POST", "/api/v1/compile", JOB, {**OURS, **who}).status


def shorten(server, who):
    """What pages of other sites may post, too."""
    return server.request("POST", "/api/shortener", {"sessions": [{"id": 1, "language": "python", "source": ADD_ONE, "compilers": []}]}, {**OURS, **who}).status


def test_what_people_may_do_follows_from_their_groups_and_what_others_may_is_the_operators_choice(proxied):
    assert compiled(proxied, {}) == 200 and store_link(proxied, {}).status == 201 and shorten(proxied, {}) == 200
    with Server(*PROXY, "--anonymous", "reader", "--author-groups", "eng") as s:
        reader, author = person("rita", groups="sales"), person("ada", groups="sales, eng")
        for who, status, code in (({}, 401, "sign-in"), (reader, 403, "role")):
            answer = store_link(s, who)
            assert compiled(s, who) == 200 and (answer.status, answer.error["code"]) == (status, code) and shorten(s, who) == status
        assert store_link(s, author).status == 201 and shorten(s, author) == 200


# ---- tokens


def test_a_token_is_known_until_it_is_revoked():
    with Server(*PROXY, "--anonymous", "none") as s:
        assert compiled(s, {}) == store_link(s, {}).status == s.get("/api/v1/pipeline").status == 401
        assert s.get("/").status == s.get("/healthz").status == s.get("/api/v1/me").status == 200
        token = make_token(s, "ci", "--role", "reader", "--groups", "eng,qa")
        assert token.startswith("nkx_") and len(token) == 26
        assert me(s, bearer(token)) == {"name": "token:ci", "groups": ["eng", "qa"], "kind": "token", "role": "reader", "has_sign_in": True}
        assert compiled(s, bearer(token)) == 200
        assert store_link(s, bearer(token)).status == 403
        assert store_link(s, bearer(make_token(s, "bot"))).status == 201
        assert token.encode() not in (s.data / "nkx.sqlite").read_bytes() and token[4:].encode() not in (s.data / "nkx.sqlite").read_bytes()
        again = token_command(s, "create", "ci")
        assert again.returncode == 1 and "name-taken" in again.stderr
        listed = token_command(s, "list").stdout
        assert "ci" in listed and "reader, groups eng,qa" in listed and "author" in listed
        assert token_command(s, "revoke", "ci").returncode == 0
        refused = s.request("GET", "/api/v1/me", headers=bearer(token))
        assert (refused.status, refused.error["code"]) == (401, "bad-token")
        assert token_command(s, "revoke", "ci").returncode == 1 and "revoked" in token_command(s, "list").stdout
        assert s.request("GET", "/api/v1/me", headers=bearer("nkx_" + "A" * 22)).status == 401
        assert s.request("GET", "/api/v1/me", headers={"Authorization": "Basic YTpi"}).status == 200, "somebody else's affair"
        audit = [line for line in s.log if "audit" in line and "token=ci" in line]
        assert len(audit) == 2 and not any(token[4:] in line for line in s.log)


def test_tokens_are_for_operators(proxied):
    path = "/api/v1/tokens"
    new = {"name": "x", "hash": "0" * 64, "role": "operator"}
    for who in ({}, person("ada", groups="eng")):
        assert proxied.request("GET", path, headers=who).status == 403
        assert proxied.request("POST", path, new, {**OURS, **who}).status == 403
        assert proxied.request("DELETE", path + "/x", headers={**OURS, **who}).status == 403
    sre = {**OURS, **person("eve", groups="sre")}
    assert proxied.request("POST", path, new, sre).status == 201
    for field, value in (("name", "a b"), ("role", "none"), ("role", None), ("hash", "00"), ("groups", "eng"), ("groups", ["a,b"])):
        answer = proxied.request("POST", path, {**new, "name": "y", "hash": "1" * 64, field: value}, sre)
        assert (answer.status, answer.error["field"]) == (400, field)
    assert [t["name"] for t in proxied.request("GET", path, headers=sre).json["tokens"]] == ["x"]
    assert proxied.request("DELETE", path + "/x", headers=sre).status == 204


def test_each_token_has_shares_of_its_own():
    with Server("--client-compiles", "2") as s:
        one, two = make_token(s, "one"), make_token(s, "two")

        def many(who):
            return [compiled(s, {"Cache-Control": "no-store", **who}) for _ in range(3)]
        assert many(bearer(one)) == many(bearer(two)) == many({}) == [200, 200, 429]


# ---- private links


WAYS = ["/api/v1/snippets/{}", "/z/{}", "/z/{}/raw", "/z/{}?view=plain", "/z/{}/page.html", "/z/{}/all.tar.gz", "/z/{}/preview.png",
        "/z/{}/raw?stage=cse", "/e/{}", "/api/shortlinkinfo/{}", "/api/v1/snippets/{}/diff?from=0&to=1"]


def check_private_links(server, readers=None):
    """readers: another server on the same store."""
    readers = readers or server
    ada = person("ada", "ada@example.org")
    answer = store_link(server, ada, visibility="private", title="ours",
                        access={"people": ["Bob@example.org", "carol"], "groups": ["kernels"]})
    assert answer.status == 201, answer.body
    made = answer.json
    assert made["visibility"] == "private" and len(made["id"]) == 22
    for who in (ada, person("x", "bob@EXAMPLE.org"), person("carol"), person("dan", groups="sales,kernels"), person("eve", groups="sre")):
        assert open_link(readers, made, who) == 200, who
    got = readers.request("GET", f"/api/v1/snippets/{made['id']}", headers=ada).json
    assert got["access"] == {"owner": "ada", "people": ["Bob@example.org", "carol"], "groups": ["kernels"]}
    assert got["visibility"] == "private" and got["title"] == "ours"
    for way in WAYS:
        assert open_link(readers, made, person("carol"), way) == 200, way
    others = ({}, person("bob"), person("mallory", "mallory@example.org", "kernels-fans"), person("kernels"))
    for who in others[:2]:
        for way in WAYS:
            assert open_link(readers, made, who, way) == 404, (way, who)
    for who in others:
        assert open_link(readers, made, who) == 404, who
    return made


def test_a_private_link_is_for_its_people_only(proxied):
    made = check_private_links(proxied)
    fork = store_link(proxied, person("mallory"), parent=made["id"])
    assert fork.status == 404, "not even that it exists"
    child = store_link(proxied, person("carol"), parent=made["id"]).json
    ancestry = proxied.request("GET", f"/api/v1/snippets/{child['id']}", headers=person("mallory")).json["ancestry"]
    assert [(a["visibility"], a.get("id"), a.get("title")) for a in ancestry] == [("private", None, None)]


def test_no_cache_before_the_server_keeps_anything_of_a_private_link(proxied):
    made = store_link(proxied, person("ada"), visibility="private").json
    for way in [*WAYS, "/z/{}/preview.png?revision=1", "/z/{}/page.html?revision=1", "/api/v1/snippets/{}?revision=1"]:
        got = proxied.request("GET", way.format(made["id"]), headers=person("ada"))
        assert got.status == 200 and got.headers["Cache-Control"] == "no-store" and not got.headers["ETag"], way
    public = store_link(proxied, person("ada"), visibility="public").json
    got = proxied.request("GET", f"/z/{public['id']}/preview.png?revision=1", headers=person("ada"))
    assert "public" in got.headers["Cache-Control"]


@pytest.mark.parametrize("method, path, body", [
    ("DELETE", "", None), ("DELETE", "?after=60", None), ("POST", "", LINK), ("POST", "/notes", {"notes": []}),
    ("POST", "/notes?revision=1", {"notes": []}), ("POST", "/access", {"visibility": "unlisted"})])
def test_to_others_a_private_link_is_not_there_for_changes_either(proxied, method, path, body):
    made = store_link(proxied, person("ada"), visibility="private", access={"people": ["carol"]}).json

    def change_it(id, who, token):
        edit = {"X-Nkx-Edit-Token": token} if token else {}
        got = proxied.request(method, f"/api/v1/snippets/{id}{path}", body, {**OURS, **who, **edit})
        return got.status, got.body
    for token in (None, "A" * 22):
        other = person(f"mallory-{method}{path}{token}")  # a person may miss only so many
        assert change_it(made["id"], other, token) == change_it("B" * 22, other, token)
        assert change_it(made["id"], other, token)[0] == 404
        assert change_it(made["id"], person("carol"), token)[0] == 403
    assert open_link(proxied, made, person("carol")) == 200
    assert change_it(made["id"], person("zoe"), made["edit_token"])[0] < 300, "who has the edit token has it"


def test_notes_leave_a_private_link_private(proxied):
    made = store_link(proxied, person("ada"), visibility="private", access={"people": ["carol"]}, title="t").json
    for query in ("", "?revision=1"):
        got = proxied.request("POST", f"/api/v1/snippets/{made['id']}/notes{query}", {"notes": [{"n": 1}]}, {**OURS, "X-Nkx-Edit-Token": made["edit_token"]})
        assert got.status == 200
        assert [open_link(proxied, made, who) for who in (person("ada"), person("carol"), person("mallory"), {})] == [200, 200, 404, 404]


def test_an_operator_sees_which_links_are_private(proxied):
    ada = person("ada", "ada@example.org")
    ids = {v: store_link(proxied, ada, visibility=v, title=v).json["id"] for v in ("private", "unlisted", "public")}
    url = f"sqlite:{proxied.data}/nkx.sqlite"
    shown = {v: nkx("store", "show", "--store", url, i).stdout.splitlines()[0].split("\t")[:2] for v, i in ids.items()}
    assert shown["private"][1] == "private" and shown["unlisted"][1] == "unlisted" and shown["public"][1] == ids["public"]
    rows = dict(line.split("\t")[:2] for line in nkx("store", "list", "--store", url).stdout.splitlines())
    assert {v: rows[name] for v, (name, _) in shown.items()} == {v: id for v, (_, id) in shown.items()}


def test_revisions_of_a_private_link_are_private(proxied):
    ada, token = person("ada"), {}
    made = store_link(proxied, ada, visibility="private").json
    token = {**OURS, **ada, "X-Nkx-Edit-Token": made["edit_token"]}
    second = proxied.request("POST", f"/api/v1/snippets/{made['id']}", {**LINK, "title": "again"}, token)
    assert second.status == 201
    for query in ("", "?revision=1", "?revision=2"):
        path = f"/api/v1/snippets/{{}}{query}"
        assert open_link(proxied, made, ada, path) == 200
        assert open_link(proxied, made, person("bob"), path) == open_link(proxied, made, {}, path) == 404
    wrong = proxied.request("POST", f"/api/v1/snippets/{made['id']}", {**LINK, "access": {}}, token)
    assert wrong.status == 400 and "access" in wrong.error["message"]


def change(server, made, who, token=True, path="/access", **fields):
    """Changes who may open a link; token: True: its own, None: none, or a text."""
    edit = {"X-Nkx-Edit-Token": made["edit_token"] if token is True else token} if token else {}
    return server.request("POST", f"/api/v1/snippets/{made['id']}{path}", fields, {**OURS, **who, **edit})


def check_change_of_readers(server, readers=None):
    """readers: another server on the same store."""
    readers = readers or server
    ada, bob, carol, eve = person("ada"), person("bob"), person("carol"), person("eve", groups="sre")
    made = store_link(server, ada, visibility="private", title="a \"title\"", access={"people": ["bob"]}, view={"x": 0.1, "y": [1e300, "\u00e4"]}).json
    revised = server.request("POST", f"/api/v1/snippets/{made['id']}", LINK, {**OURS, **ada, "X-Nkx-Edit-Token": made["edit_token"]})
    assert revised.status == 201
    first = server.request("GET", f"/api/v1/snippets/{made['id']}?revision=1", headers=ada).json

    def who_opens():
        return [open_link(readers, made, who) for who in (ada, bob, carol, {})]
    assert who_opens() == [200, 200, 404, 404]
    # the owner, without the token; the token, without being the owner; an operator
    answer = change(server, made, ada, None, visibility="private", access={"people": ["carol"], "groups": ["qa"]})
    assert answer.status == 200 and answer.json == {"visibility": "private", "access": {"owner": "ada", "people": ["carol"], "groups": ["qa"]}}
    assert who_opens() == [200, 404, 200, 404]
    assert change(server, made, person("mallory"), visibility="private", access={"people": ["bob"]}).json["access"]["owner"] == "ada"
    assert who_opens() == [200, 200, 404, 404]
    assert change(server, made, eve, None, visibility="private").json["access"] == {"owner": "ada", "people": [], "groups": []}
    assert who_opens() == [200, 404, 404, 404]
    # nobody else
    assert change(server, made, ada, None, visibility="private", access={"people": ["bob"]}).status == 200
    assert [change(server, made, who, t, visibility="unlisted").status for who, t in ((bob, None), (bob, "A" * 22), (carol, None), ({}, None))] == [403, 403, 404, 404]
    assert change(server, {"id": "B" * 22}, ada, None, visibility="unlisted").status == 404
    assert who_opens() == [200, 200, 404, 404]
    # everybody, and back: it is then whose who makes it private
    assert change(server, made, ada, None, visibility="unlisted").json == {"visibility": "unlisted"}
    assert who_opens() == [200, 200, 200, 200]
    again = readers.request("GET", f"/api/v1/snippets/{made['id']}?revision=1").json
    assert again.pop("visibility") == "unlisted" and first.pop("visibility") == "private"
    assert first.pop("access")["owner"] == "ada" and again == first, "nothing else has changed"
    assert change(server, made, {}, visibility="private").status == 400, "nobody would own it"
    assert change(server, made, bob, visibility="private", access={"groups": ["qa"]}).json["access"]["owner"] == "bob"
    assert who_opens() == [404, 200, 404, 404]
    for query in ("", "?revision=1", "?revision=2"):
        got = readers.request("GET", f"/api/v1/snippets/{made['id']}{query}", headers=bob).json
        assert got["access"] == {"owner": "bob", "people": [], "groups": ["qa"]}, "all revisions say so"
    return made


def test_who_may_open_a_link_can_be_changed(proxied):
    made = check_change_of_readers(proxied)
    r = nkx("store", "check", "--store", f"sqlite:{proxied.data}/nkx.sqlite")
    assert r.returncode == 0, r.stdout
    lines = [line for line in proxied.log if "what=link-access" in line]
    assert any("outcome=ok" in line for line in lines) and any("outcome=denied" in line for line in lines)
    assert not any(made["id"] in line for line in proxied.log)


def test_who_may_open_a_link_on_postgresql(postgres):
    url = postgres.new_database("readers")
    with Server(*PROXY, "--store", url) as one, Server(*PROXY, "--store", url) as two:
        check_change_of_readers(one, two)
        assert nkx("store", "check", "--store", url).returncode == 0


def test_changes_and_revisions_that_meet_on_two_servers_are_all_kept(postgres):
    url = postgres.new_database("meeting")
    flags = [*PROXY, "--store", url]
    with Server(*flags) as one, Server(*flags) as two:
        ada = person("ada")
        made = store_link(one, ada, visibility="private").json
        token = {**OURS, **ada, "X-Nkx-Edit-Token": made["edit_token"]}

        def revise(n):
            return one.request("POST", f"/api/v1/snippets/{made['id']}", {**LINK, "title": str(n)}, token)

        def share_with(n):
            return change(two, made, ada, visibility="private", access={"people": [f"reader{n}"]})
        for n in range(3):
            # both have read the link's row before either writes it
            hold = in_thread(postgres.run, "BEGIN; LOCK TABLE snippets IN SHARE MODE; SELECT pg_sleep(1); COMMIT", "meeting")
            wait_until(lambda: postgres.run("SELECT count(*) FROM pg_locks WHERE mode = 'ShareLock' AND relation = 'snippets'::regclass", "meeting") == "1", "the lock")
            both = in_thread(revise, n), in_thread(share_with, n)
            assert [x().status for x in both] == [201, 200]
            hold()
            got = two.request("GET", f"/api/v1/snippets/{made['id']}", headers=ada).json
            assert got["revision"] == n + 2 and got["title"] == str(n) and got["access"]["people"] == [f"reader{n}"]
        assert nkx("store", "check", "--store", url).returncode == 0


def test_what_a_change_of_readers_needs_is_said(proxied):
    ada = person("ada")
    made = store_link(proxied, ada, visibility="private").json
    for fields in ({}, {"visibility": "public"}, {"visibility": "unlisted", "access": {}}, {"visibility": "private", "access": {"people": [""]}},
                   {"visibility": "private", "title": "x"}, {"visibility": ["private"]}):
        assert change(proxied, made, ada, **fields).status == 400, fields
    public = store_link(proxied, ada, visibility="public").json
    answer = change(proxied, public, ada, visibility="private")
    assert answer.status == 400 and "stays public" in answer.error["message"]
    assert proxied.request("POST", f"/api/v1/snippets/{made['id']}/access", {"visibility": "private"}, {**ada, "Content-Type": "application/json"}).status == 403
    with Server(*PROXY[:-4], "--client-links", "3") as s:
        made = store_link(s, ada, visibility="private").json
        assert [change(s, made, ada, visibility="private").status for _ in range(3)] == [200, 200, 429], "each counts as a link"


def test_what_private_links_need_is_said(proxied, server):
    for fields, word in (({"visibility": "private"}, "signed in"), ({"access": {"people": ["a"]}}, "access")):
        answer = store_link(proxied, {}, **fields)
        assert answer.status == 400 and word in answer.error["message"]
    ada = person("ada")
    for access in ([], {"people": "bob"}, {"people": [""]}, {"groups": ["x" * 257]}, {"roles": ["a"]}, {"people": ["a"] * 65}):
        answer = store_link(proxied, ada, visibility="private", access=access)
        assert answer.status == 400 and answer.error["message"].startswith("access"), access
    assert store_link(server, ada, visibility="private").status == 400, "there is no proxy"


def test_a_token_opens_what_is_shared_with_it_or_its_groups(proxied):
    ci, qa, other = (bearer(make_token(proxied, *args)) for args in (("p-ci",), ("p-qa", "--groups", "qa"), ("p-other",)))
    made = store_link(proxied, person("ada"), visibility="private", access={"people": ["token:p-ci"], "groups": ["qa"]}).json
    assert [open_link(proxied, made, who) for who in (ci, qa, other)] == [200, 200, 404]
    own = store_link(proxied, ci, visibility="private").json
    assert [open_link(proxied, own, who) for who in (ci, qa, person("ada"))] == [200, 404, 404]


def test_an_operator_deletes_any_link_without_its_token(proxied):
    made = store_link(proxied, person("ada"), visibility="private").json
    path = f"/api/v1/snippets/{made['id']}"
    assert proxied.request("DELETE", path, headers={**OURS, **person("bob")}).status == 404
    assert proxied.request("DELETE", path, headers={**OURS, **person("eve", groups="root")}).status == 204
    assert open_link(proxied, made, person("ada")) == 404


def test_a_backup_keeps_tokens_and_who_may_open_links():
    with Server(*PROXY) as s, tempfile.TemporaryDirectory() as d:
        token = bearer(make_token(s, "kept", "--groups", "qa"))
        made = store_link(s, person("ada"), visibility="private", access={"groups": ["qa"]}).json
        copy = f"{d}/nkx.sqlite"
        r = subprocess.run([NKX, "store", "backup", "--store", f"sqlite:{s.data}/nkx.sqlite", copy], capture_output=True, text=True, timeout=60)
        assert r.returncode == 0, r.stderr
        with Server(*PROXY, data=d) as restored:
            assert open_link(restored, made, token) == 200 and open_link(restored, made, {}) == 404


def test_on_postgresql_it_is_the_same_for_all_servers(postgres):
    url = postgres.new_database("signin")
    with Server(*PROXY, "--store", url) as one, Server(*PROXY, "--store", url) as two:
        made = check_private_links(one, two)
        token = make_token(one, "ci", "--groups", "kernels", store=url)
        assert open_link(two, made, bearer(token)) == 200
        assert token_command(two, "revoke", "ci", store=url).returncode == 0
        assert open_link(one, made, bearer(token)) == open_link(two, made, bearer(token)) == 401
