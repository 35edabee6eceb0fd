"""Sessions: people together in one kernel.  The server passes on what their pages send, and keeps it."""
import os
import signal
import socket
import sqlite3
import subprocess
import time

import pytest

from support.clients import remove, share
from support.paths import BUILD, ROOT
from support.server import OURS, Server
from support.sessions import REQUEST, ask_to_join, b64, begin, join, two_people
from support.wait import wait_until


@pytest.fixture
def pair(server):
    with two_people(server, server) as people:
        yield people


def test_updates_reach_everybody_in_one_order_and_survive_in_it(pair, server):
    ann, bob = pair
    assert bob.person == 2 and ann.state["you"] == 1 and bob.state["you"] == 2
    assert ann.update(b"one").json == {"seq": 1}
    assert bob.update(b"two", b"three").json == {"seq": 3}
    for person in pair:
        person.has(b"one", b"two", b"three")
        assert [p for p, _ in person.updates.values()] == [1, 2, 2]
    late = join(server, ann.session, "Cy")
    late.follow()
    late.has(b"one", b"two", b"three")
    late.close()


def test_a_stream_goes_on_after_the_last_event_that_its_reader_has(pair):
    ann, bob = pair
    ann.update(b"one")
    bob.has(b"one")
    bob.close()
    ann.update(b"two")
    bob.follow()
    bob.has(b"one", b"two")
    assert [e for e in bob.events if e[0] != "state"] == [("snapshot", "0"), ("update", "1"), ("update", "2")]
    bob.follow(last=99)  # of another session: it gets everything
    wait_until(lambda: bob.events[-3:] == [("snapshot", "0"), ("update", "1"), ("update", "2")], "all events")


def test_a_snapshot_replaces_the_updates_that_it_contains(pair, server):
    ann, bob = pair
    for text in (b"one", b"two", b"three"):
        ann.update(text)
    assert bob.compact(2, b"merged").error["code"] == "session-leader"
    assert ann.compact(2, b"merged").status == 200
    late = join(server, ann.session, "Cy")
    late.follow()
    late.has(b"three")
    assert late.snapshot == (2, b"merged")
    assert ann.compact(1, b"older").error["code"] == ann.compact(4, b"of the future").error["code"] == "session-snapshot"
    bob.has(b"one", b"two", b"three")  # who has them gets nothing again
    assert bob.update(b"four").json == {"seq": 4}
    late.has(b"three", b"four")
    late.close()


def test_nothing_that_was_acknowledged_is_lost_by_kill_9(tmp_path):
    with Server(data=tmp_path) as server:
        ann = begin(server, snapshot=b"start")
        bob = join(server, ann.session)
        ann.follow()
        bob.follow()
        bob.has()
        for i in range(20):
            assert (ann if i % 2 else bob).update(b"%d" % i).json == {"seq": i + 1}
        assert ann.compact(5, b"merged").status == 200
        assert ann.lead("read-only", on=True).status == 200
        os.kill(server.pid, signal.SIGKILL)
        server.kill()
    with Server(data=tmp_path) as server:
        ann.server = bob.server = server
        ann.follow()
        ann.has(*(b"%d" % i for i in range(20)))
        ann.sees(leader=1, read_only=True, seq=20)
        late = join(server, ann.session, "Cy")
        late.follow()
        late.has(*(b"%d" % i for i in range(5, 20)))
        assert late.snapshot == (5, b"merged")
        bob.follow()
        bob.sees(leader=1)
        for person in (ann, bob, late):
            person.close()


def test_presence_is_told_to_the_others_and_forgotten_with_the_person(pair):
    ann, bob = pair
    assert bob.show(stage="nisa", line=4, text="a\nb").status == 200
    wait_until(lambda: ann.presences.get(2) == {"stage": "nisa", "line": 4, "text": "a\nb"}, "Bob's presence")
    assert 2 not in bob.presences and 1 not in bob.presences
    bob.close()
    wait_until(lambda: ann.names() == ["Ann"] and ann.names(here=False) == ["Bob"], "Bob is away")
    bob.follow()
    wait_until(lambda: ann.names() == ["Ann", "Bob"], "Bob is back")


def test_presence_that_comes_in_quick_succession_is_told_as_it_is_at_last(pair):
    ann, bob = pair
    for i in range(30):
        assert bob.show(line=i).status == 200
    wait_until(lambda: ann.presences.get(2) == {"line": 29}, "the last presence")
    assert len([e for e in ann.events if e[0] == "presence"]) <= 30


def test_the_lead_is_handed_over_once_it_is_accepted(pair):
    ann, bob = pair
    assert bob.lead("offer", to=1).error["code"] == bob.lead("read-only", on=True).error["code"] == bob.lead("end").error["code"] == "session-leader"
    assert bob.lead("accept").error["code"] == "session-offer" and ann.lead("offer", to=7).error["code"] == "session-person"
    assert ann.lead("offer", to=2).status == 200
    bob.sees(leader=1, offered=2)
    assert bob.lead("decline").status == 200
    ann.sees(leader=1, offered=0)
    ann.lead("offer", to=2)
    assert bob.lead("accept").status == 200
    ann.sees(leader=2, offered=0)
    assert ann.lead("read-only", on=True).error["code"] == "session-leader"


def test_who_is_here_keeps_the_lead_and_who_is_away_can_lose_it(pair):
    ann, bob = pair
    assert bob.lead("claim").error["code"] == "session-offer"
    ann.close()
    wait_until(lambda: bob.names() == ["Bob"], "Ann is away")
    assert bob.lead("claim").status == 200
    bob.sees(leader=2)


def test_in_a_read_only_session_only_the_leader_changes_the_text(pair):
    ann, bob = pair
    assert ann.lead("read-only", on=True).status == 200
    bob.sees(read_only=True)
    assert bob.update(b"x").error["code"] == "session-read-only" and ann.update(b"y").status == 200
    assert bob.show(line=1).status == 200
    ann.lead("read-only", on=False)
    bob.sees(read_only=False)
    assert bob.update(b"z").status == 200
    ann.has(b"y", b"z")


def test_an_ended_session_says_what_it_became(pair, server):
    ann, bob = pair
    ann.update(b"last")
    link = server.request("POST", "/api/v1/snippets", REQUEST, OURS).json["id"]
    assert ann.lead("end", snippet=link).status == 200
    bob.sees(ended=True, snippet=link)
    bob.has(b"last")
    wait_until(lambda: not bob.is_open, "the stream ends")
    for answer in (bob.update(b"x"), bob.show(line=1), ask_to_join(server, ann.session, "Cy"), ann.lead("read-only", on=True), ann.compact(1, b"x")):
        assert (answer.status, answer.error["code"]) == (410, "session-ended")
    known = server.get(f"/api/v1/sessions/{ann.session}").json
    assert known["ended"] and known["snippet"] == link and known["kernel"] == {"request": REQUEST}


def test_a_session_without_anyone_becomes_a_link_and_one_with_somebody_goes_on():
    with Server("--session-idle-s", "2") as server:
        server.wait_until(lambda: server.get("/readyz").status == 200, "a worker that is warm")
        ann, cy, away = begin(server), begin(server, "Cy"), begin(server, "Di")
        cy.follow()  # and is silent
        cy.sees(leader=1)
        ann.follow()
        ann.has()
        assert ann.update(b"one").status == 200
        edited = {**REQUEST, "source": REQUEST["source"] + "# edited\n"}
        assert ann.send("snapshot", {"seq": 1, "data": b64(b"x"), "request": edited, "view": {"stage": "nisa"}}).status == 200
        ann.close()

        def of(person):
            return server.get(f"/api/v1/sessions/{person.session}").json

        wait_until(lambda: of(ann)["ended"] and of(away)["ended"], "the ends", 40)
        link = server.get(f"/api/v1/snippets/{of(ann)['snippet']}").json
        assert (link["request"]["source"], link["view"], link["visibility"]) == (edited["source"], {"stage": "nisa"}, "unlisted")
        assert link["result"]["status"] == "ok" and len(link["result"]["kernels"][0]["stages"]) > 5
        assert server.get(f"/api/v1/snippets/{of(away)['snippet']}").json["request"]["source"] == REQUEST["source"]
        assert ann.update(b"late").error["code"] == "session-ended"
        assert not of(cy)["ended"] and cy.update(b"still here").status == 200
        cy.close()


def test_a_kernel_that_nothing_compiles_any_more_ends_without_a_link(tmp_path):
    with Server("--session-idle-s", "2", data=tmp_path) as server:
        ann = begin(server)
        server.stop()
        with sqlite3.connect(tmp_path / "nkx.sqlite") as db:
            db.execute("UPDATE sessions SET request = ?", ['{"request":{"source":"","target":"trn0"}}'])
    with Server("--session-idle-s", "2", data=tmp_path) as server:
        wait_until(lambda: server.get(f"/api/v1/sessions/{ann.session}").json["ended"], "the end", 40)
        assert "snippet" not in server.get(f"/api/v1/sessions/{ann.session}").json


LONG_AGO_MS = 8 * 24 * 3600 * 1000


def test_long_after_the_end_a_session_leads_to_its_link_and_keeps_nothing_else(tmp_path):
    def restart():
        with sqlite3.connect(tmp_path / "nkx.sqlite") as db:
            db.execute("UPDATE sessions SET ended_ms = ended_ms - ? WHERE ended_ms > 0", [LONG_AGO_MS])
        server.stop()
        again = Server("--session-idle-s", "2", data=tmp_path)
        again.wait_until(lambda: again.get("/readyz").status == 200, "a worker that is warm")
        return again

    def rows(what):
        with sqlite3.connect(tmp_path / "nkx.sqlite") as db:
            return db.execute(f"SELECT {what}").fetchone()[0]

    server = Server("--session-idle-s", "2", data=tmp_path)
    try:
        link = share(server, REQUEST["source"]).json
        ended, deserted, none = begin(server), begin(server, "Bob"), begin(server, "Cy")
        ended.update(b"one")
        assert ended.lead("end", snippet=link["id"]).status == none.lead("end").status == 200

        def of(person):
            return server.get(f"/api/v1/sessions/{person.session}")
        wait_until(lambda: of(deserted).json["ended"], "the end", 40)
        became = of(deserted).json["snippet"]
        server = restart()
        wait_until(lambda: of(none).status == 404, "the one without a link to be removed", 20)
        for person, snippet in ((ended, link["id"]), (deserted, became)):
            told = of(person).json
            assert (told["ended"], told["snippet"], told["people"], told["kernel"]) == (True, snippet, [], {"request": {"source": ""}})
        assert server.get(f"/api/v1/snippets/{became}").json["request"]["source"] == REQUEST["source"]
        assert rows("COUNT(*) FROM session_people") == rows("COUNT(*) FROM session_updates") == rows("SUM(length(snapshot)) FROM sessions") == 0
        assert remove(server, link).status == 204
        server = restart()
        wait_until(lambda: of(ended).status == 404, "the one whose link was deleted to be removed", 20)
        assert of(deserted).json["snippet"] == became
    finally:
        server.stop()


def test_while_the_leader_is_away_anyone_keeps_the_snapshot(pair, server):
    ann, bob = pair
    bob.update(b"one")
    assert bob.compact(1, b"merged").error["code"] == "session-leader"
    ann.close()
    wait_until(lambda: bob.names() == ["Bob"], "Ann is away")
    assert bob.compact(1, b"merged").status == 200
    ann.follow()
    ann.sees(leader=1)
    ann.lead("read-only", on=True)
    ann.close()
    wait_until(lambda: bob.names() == ["Bob"], "Ann is away")
    assert bob.compact(1, b"merged").error["code"] == "session-leader"


def test_the_kernel_is_as_the_leader_last_had_it(pair, server):
    ann, bob = pair
    other = {**REQUEST, "target": "trn1"}
    ann.update(b"one")
    assert ann.send("snapshot", {"seq": 1, "data": b64(b"x"), "request": other, "view": {"stage": "nisa"}}).status == 200
    assert server.get(f"/api/v1/sessions/{ann.session}").json["kernel"] == {"request": other, "view": {"stage": "nisa"}}


def test_a_person_with_a_token_comes_back_as_the_same(pair, server):
    ann, bob = pair
    again = bob.send("join", {"name": "someone else"})
    assert again.json == {"person": 2}
    assert [p["name"] for p in server.get(f"/api/v1/sessions/{ann.session}").json["people"]] == ["Ann", "Bob"]


def test_the_page_of_a_session_is_the_page(server):
    answer = server.get("/s/" + "A" * 22)
    assert answer.status == 200 and b"<html" in answer.body and answer.headers["X-Robots-Tag"]


# ---- what is refused


def test_only_who_has_joined_reads_and_writes(pair, server):
    ann, bob = pair
    other = begin(server, "Eve")
    eve = join(server, ann.session, "Cy")
    for token in (other.token, "A" * 22, "", "x"):
        eve.token = token
        assert eve.follow() == "session-token"
        for answer in (eve.update(b"x"), eve.show(line=1), eve.compact(0, b"x"), eve.lead("claim")):
            assert (answer.status, answer.error["code"]) == (401, "session-token")
    assert server.get(f"/api/v1/session/events/{ann.session}").error["code"] == "session-token"


def test_sessions_that_do_not_exist_are_not_found_and_counted_as_guesses():
    with Server() as server:
        assert ask_to_join(server, "A" * 22, "Eve").status == 404 and server.get("/api/v1/sessions/x").status == 404
        codes = [server.get("/api/v1/sessions/%022d" % i).error["code"] for i in range(32)]
        assert codes[0] == "not-found" and codes[-1] == "too-many-misses"


@pytest.mark.parametrize("name", ["", " ", "a" * 65, "a\nb", "a\0b", "\x1b[31m", "x\u202ey", "\u2066x", 7, None])
def test_names_are_plain_and_short(pair, server, name):
    assert ask_to_join(server, pair[0].session, name).error == {"code": "bad-field", "field": "name",
                                                                "message": "name: expected at most 64 bytes of text without control characters"}


def test_a_name_with_markup_is_a_name(pair, server):
    eve = join(server, pair[0].session, "<b onclick=x>\u00e9\u4e2d")
    eve.follow()
    wait_until(lambda: "<b onclick=x>\u00e9\u4e2d" in pair[0].names(), "the name")
    eve.close()


@pytest.mark.parametrize("updates", [None, [], ["x"], ["AA=A"], ["AAAA"] * 65, [b64(b"x" * (256 << 10) + b"x" * 64)], [b64(b"x" * (200 << 10))] * 2, [7], "AAAA"])
def test_updates_are_bytes_within_limits(pair, updates):
    assert pair[1].send("updates", {"updates": updates}).error["code"] == "bad-field"


def test_a_presence_is_an_object_within_limits(pair):
    ann, bob = pair
    assert bob.send("presence", [1]).error["code"] == "bad-json"
    assert bob.show(x="y" * 5000).error["code"] == "too-large"
    assert bob.send("presence", '{"a":1,"a":2}').error["code"] == "bad-json"


def test_a_request_that_cannot_be_compiled_begins_no_session(server):
    for request, code in (({}, "bad-field"), ({"source": 7}, "bad-field"), (None, "bad-field"), ({"source": "", "target": "trn9"}, "bad-field")):
        answer = server.request("POST", "/api/v1/sessions", {"name": "Ann", "snapshot": "AAAA", "request": request}, OURS)
        assert answer.status == 400 and answer.error["code"] in (code, "bad-json"), answer.body
    assert server.request("POST", "/api/v1/sessions", {"name": "Ann", "snapshot": "AAAA", "request": REQUEST}, {"Content-Type": "application/json"}).error["code"] == "foreign"


def test_who_sends_too_much_must_wait(pair):
    ann, bob = pair
    codes = [bob.show(line=i) for i in range(150)]
    refused = [c for c in codes if c.status == 429]
    assert refused and all(c.error["code"] == "session-rate" and c.headers["Retry-After"] for c in refused)
    assert ann.show(line=1).status == 200


def test_a_session_takes_no_more_than_its_log_holds_until_it_is_merged(server):
    ann = begin(server)
    piece, codes = b"x" * (200 << 10), []
    for _ in range(8):
        answer = ann.update(piece)
        codes.append(answer.status if answer.status == 200 else answer.error["code"])
        if codes[-1] == "session-log":
            break
    assert codes == [200] * 5 + ["session-log"] or "session-rate" in codes, codes
    seq = server.get(f"/api/v1/sessions/{ann.session}").json["seq"]
    wait_until(lambda: ann.compact(seq, b"merged").status == 200, "the snapshot", 30)
    wait_until(lambda: ann.update(piece).status == 200, "room", 30)


def test_a_session_has_room_for_a_class_and_not_for_a_crowd():
    with Server("--client-connections", "0") as server:
        ann = begin(server)
        people = [join(server, ann.session, f"p{i}") for i in range(121)]
        try:
            for p in people[:120]:
                assert p.follow() is None
            assert people[120].follow() == "session-crowded" and ask_to_join(server, ann.session, "late").error["code"] == "session-crowded"
            ann.session = people[0].session
            assert people[3].update(b"hello").status == 200
            for p in people[:120]:
                p.has(b"hello")
            people[0].close()
            wait_until(lambda: len(people[1].names()) == 119, "one has left")
            assert people[120].follow() is None
        finally:
            for p in people:
                p.close()


def test_a_server_that_ends_ends_its_streams():
    with Server() as server:
        ann = begin(server)
        ann.follow()
        ann.sees(leader=1)
        assert server.stop() == 0
        wait_until(lambda: not ann.is_open, "the stream has ended")


def test_no_other_session_is_reached_by_a_token_of_ones_own(pair, server):
    """Every route that takes a token, with that of another session, and with another session's id."""
    ann, bob = pair
    eve = begin(server, "Eve", snapshot=b"hers")
    before = server.get(f"/api/v1/sessions/{ann.session}").json
    routes = {"updates": {"updates": [b64(b"x")]}, "presence": {"x": 1}, "snapshot": {"seq": 0, "data": b64(b"x"), "request": REQUEST},
              "lead": {"act": "end"}, "join": {"name": "Eve"}}
    for what, body in routes.items():
        answer = server.request("POST", f"/api/v1/session/{what}/{ann.session}", body, {**OURS, "X-Nkx-Session-Token": eve.token})
        assert (answer.status, answer.error["code"]) == (401, "session-token"), what
        for odd in (ann.session[:-1], ann.session + "A", ann.session + "/", "../" + ann.session, ann.session + "%00", f"{eve.session}/../{ann.session}"):
            answer = server.request("POST", f"/api/v1/session/{what}/{odd}", body, {**OURS, "X-Nkx-Session-Token": eve.token})
            assert answer.status in (400, 401, 404, 405), (what, odd, answer.status)
    assert server.get(f"/api/v1/sessions/{ann.session}").json == before
    stranger = bob.token
    bob.token = ann.token  # who has somebody's token is that person, and only in that session
    bob.session = eve.session
    assert bob.update(b"x").error["code"] == "session-token"
    bob.session, bob.token = ann.session, stranger


def test_forged_bytes_are_passed_on_as_they_are_and_harm_nothing(pair, server):
    ann, bob = pair
    forged = [b"\0", b"\xff" * 300, b"data: x\n\nevent: state\ndata: {}\n\n", b"\"}\n\n", bytes(range(256)) * 64]
    for piece in forged:
        assert bob.update(piece).status == 200
    ann.has(*forged)
    assert bob.show(text="\n\nevent: state\ndata: {}\n\n", more="\r\u2028</script><img src=x>").status == 200
    wait_until(lambda: ann.presences.get(2), "the presence")
    assert ann.presences[2] == {"text": "\n\nevent: state\ndata: {}\n\n", "more": "\r\u2028</script><img src=x>"}
    assert {kind for kind, _ in ann.events} <= {"state", "snapshot", "update", "presence"} and ann.state["leader"] == 1


def test_a_thousand_names_fill_one_session_and_no_other():
    with Server("--client-connections", "0") as server:
        ann, other = begin(server), begin(server, "Cy")
        codes = [ask_to_join(server, ann.session, f"name {i}") for i in range(520)]
        assert [c.status for c in codes[:499]] == [200] * 499
        assert {c.error["code"] for c in codes[499:]} == {"session-crowded"}
        assert len({c.json["person"] for c in codes[:499]}) == 499
        assert ask_to_join(server, other.session, "Di").status == 200
        ann.follow()
        ann.sees(leader=1)
        assert ann.update(b"still works").status == 200
        ann.has(b"still works")
        ann.close()


def test_a_reader_that_takes_nothing_is_dropped_and_gets_the_rest_when_it_is_back():
    """Its stream ends once it takes nothing for a while, 5 s at least; meanwhile the others notice nothing."""
    with Server("--answer-timeout-ms", "100") as server:
        ann = begin(server)
        bob, cy = join(server, ann.session), join(server, ann.session, "Cy")
        ann.follow()
        cy.follow()
        slow = socket.create_connection(("127.0.0.1", server.port))
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(f"GET /api/v1/session/events/{ann.session} HTTP/1.1\r\nHost: x\r\nX-Nkx-Session-Token: {bob.token}\r\n\r\n".encode())
        wait_until(lambda: len(ann.names()) == 3, "all are here")
        pieces, seq = [], 0
        while "Bob" in ann.names():
            pieces.append(bytes([len(pieces) % 256]) * 60000)
            answer = ann.update(pieces[-1])
            if answer.status != 200:
                assert answer.error["code"] in ("session-rate", "session-log"), answer.body
                pieces.pop()
                if answer.error["code"] == "session-log":
                    ann.compact(seq, b"merged")
                time.sleep(0.2)
                continue
            seq = answer.json["seq"]
            assert len(pieces) < 2000
        cy.has(*pieces)
        bob.follow()
        bob.sees(leader=1, seq=seq)
        wait_until(lambda: bob.last == seq, "what it had missed")
        slow.close()
        for p in (ann, bob, cy):
            p.close()


def test_random_edits_over_bad_connections_end_in_one_text():
    """NKX_SESSION_RUNS: how often; the nightly set takes 500."""
    runs = int(os.environ.get("NKX_SESSION_RUNS", "3"))
    with Server("--client-links", "0", "--client-links-day", "0") as server:
        r = subprocess.run([BUILD / "venv/bin/node", ROOT / "tests/api/convergence.mjs", server.url, str(runs), "1"], capture_output=True, text=True, timeout=60 + 20 * runs)
        assert r.returncode == 0 and f"{runs} runs" in r.stdout, r.stderr[-3000:]
        print(r.stdout)
