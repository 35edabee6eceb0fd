"""Each client has its share: compiles a minute, compiles at once, connections.  A newer compile of an editor replaces the
one before.  Clients are distinguished by what a trusted proxy says of them; here the test itself is that proxy."""
import base64
import http.client
import json
import random
import select
import socket
import subprocess

import pytest

from support.clients import metric, open_stream, read_until
from support.paths import NKX
from support.server import ADD_ONE, FLOAT_INPUT, JOB, JSON, OURS, Server


SLEEPER = "import time\ntime.sleep(60)\n"
EDITOR = "a-random-editor-name"
BEHIND_PROXY = ("--trusted-proxies", "127.0.0.0/8")


class Client:
    """One address, as a proxy would name it."""

    def __init__(self, server, address, header="X-Forwarded-For"):
        self.server, self.headers = server, {header: address, "Content-Type": "application/json", "Cache-Control": "no-store"}

    def post(self, source=ADD_ONE, **headers):
        body = json.dumps({"source": source, "inputs": FLOAT_INPUT})
        return self.server.request("POST", "/api/v1/compile", body, {**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}})

    def stream(self, source=SLEEPER, editor=None, accept="application/x-ndjson", **headers):
        named = {**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}, **({"X-Nkx-Editor": editor} if editor else {})}
        return open_stream(self.server, source, FLOAT_INPUT, accept, headers=named)


def answer_of(s):
    """Status and frames, or problem, of the answer on a socket."""
    r = http.client.HTTPResponse(s)
    r.begin()
    lines = [x.removeprefix(b"data: ") for x in r.read().splitlines() if x]
    return r.status, [json.loads(x) for x in lines]


@pytest.fixture(scope="module")
def shared():
    with Server(*BEHIND_PROXY, "--workers", "1", "--client-compiles", "6", "--client-jobs", "2", "--client-connections", "3",
                "--queue-timeout-ms", "3000", "--job-timeout-ms", "60000") as s:
        yield s


@pytest.fixture(scope="module")
def busy():
    """One worker, and no quotas."""
    with Server(*BEHIND_PROXY, "--workers", "1", "--queue", "4", "--client-compiles", "0", "--client-jobs", "0", "--queue-timeout-ms", "60000") as s:
        yield s


# ---- shares

def test_a_client_that_started_too_many_compiles_waits_and_others_do_not(shared):
    one, other = Client(shared, "198.51.100.1"), Client(shared, "198.51.100.2")
    for _ in range(6):
        assert one.post().status == 200
    refused = one.post()
    assert refused.status == 429 and refused.error["code"] == "too-many-compiles"
    assert 1 <= int(refused.headers["Retry-After"]) <= 10, "a sixth of a minute, and less as time passes"
    assert other.post().status == 200
    assert metric(shared, 'nkx_quota_refused_total{share="compiles"}') >= 1


def test_clients_of_compiler_explorer_have_the_same_share(shared):
    path, headers = "/api/compiler/nki-trn2/compile", {"X-Forwarded-For": "198.51.100.3", "Accept": "application/json", "Content-Type": "text/plain"}
    answers = [shared.request("POST", path, ADD_ONE + f"# {i}\n", headers) for i in range(7)]
    assert [a.status for a in answers] == [200] * 6 + [429]
    assert int(answers[-1].headers["Retry-After"]) >= 1


LINKS = {"snippets": ("/api/v1/snippets", {"X-Nkx-Request": "1"}, lambda source: {"source": source, "inputs": FLOAT_INPUT}),
         "shortener": ("/api/shortener", {}, lambda source: {"sessions": [{"id": 1, "language": "nkipy", "source": source, "compilers": []}]})}


@pytest.mark.parametrize("route", LINKS)
def test_a_client_may_store_only_so_many_links(route):
    path, headers, body = LINKS[route]
    with Server(*BEHIND_PROXY, "--client-links", "3", "--client-links-day", "5") as s:
        def store(address, n):
            return s.request("POST", path, json.dumps(body(ADD_ONE + f"# {n}\n")), {"Content-Type": "application/json", "X-Forwarded-For": address, **headers})

        answers = [store("198.51.100.20", n) for n in range(4)]
        assert [a.status // 100 for a in answers] == [2, 2, 2, 4], [a.body[:200] for a in answers]
        refused = answers[-1]
        assert refused.status == 429 and b"too many links" in refused.body and 1 <= int(refused.headers["Retry-After"]) <= 20
        assert route != "snippets" or refused.error["code"] == "too-many-links"
        assert store("198.51.100.21", 9).status // 100 == 2, "another client has its own share"
        assert s.request("POST", "/api/v1/compile", json.dumps({"source": ADD_ONE, "inputs": FLOAT_INPUT}), {**JSON, "X-Forwarded-For": "198.51.100.20"}).status == 200
        assert metric(s, 'nkx_quota_refused_total{share="links"}') == 1


def test_notes_are_written_often_but_not_without_end():
    with Server(*BEHIND_PROXY, "--client-links", "5", "--client-links-day", "2") as s:
        def store(n, address="198.51.100.22"):
            return s.request("POST", "/api/v1/snippets", {"source": f"# {n}\n" + ADD_ONE, "inputs": FLOAT_INPUT}, {**OURS, "X-Forwarded-For": address})
        made = store(0).json

        def note(n, address="198.51.100.22"):
            return s.request("POST", f"/api/v1/snippets/{made['id']}/notes", {"notes": [n]}, {**OURS, "X-Forwarded-For": address, "X-Nkx-Edit-Token": made["edit_token"]})
        answers = [note(n) for n in range(60)]
        status = [a.status for a in answers]
        assert status[:20] == [200] * 20 and 429 in status[20:], status
        refused = answers[status.index(429)]
        assert refused.error["code"] == "too-many-links" and 1 <= int(refused.headers["Retry-After"]) <= 3
        assert note(0, "198.51.100.23").status == 200, "another client has its own share"
        assert [store(n).status for n in (1, 2)] == [201, 429], "notes take nothing of the share of links"


def test_the_links_of_a_day_have_a_share_of_their_own():
    path, headers, body = LINKS["snippets"]
    with Server(*BEHIND_PROXY, "--client-links", "0", "--client-links-day", "2") as s:
        answers = [s.request("POST", path, json.dumps(body(ADD_ONE + f"# {n}\n")), {**JSON, **headers, "X-Forwarded-For": "198.51.100.22"}) for n in range(3)]
        assert [a.status for a in answers] == [201, 201, 429] and int(answers[-1].headers["Retry-After"]) > 3600


def store_large(server, n, address="198.51.100.23"):
    """A link that takes some 64 KiB in the store, because nothing packs random bytes."""
    path, headers, body = LINKS["snippets"]
    noise = base64.b85encode(random.Random(n).randbytes(48 << 10)).decode()
    return server.request("POST", path, json.dumps({**body(ADD_ONE), "view": {"noise": noise}}), {**JSON, **headers, "X-Forwarded-For": address})


def test_links_of_a_day_may_take_only_so_many_bytes():
    with Server(*BEHIND_PROXY, "--client-links", "0", "--client-links-day", "0", "--client-links-mib", "1") as s:
        answers = [store_large(s, n) for n in range(30)]
        stored = [a.status for a in answers].index(429)
        assert 14 <= stored <= 22 and {a.status for a in answers[stored:]} == {429}, stored
        refused = answers[-1]
        assert refused.error["code"] == "too-many-link-bytes" and 1 <= int(refused.headers["Retry-After"]) <= 86400
        assert store_large(s, 99, "198.51.100.24").status == 201, "another client has its own share"
        assert metric(s, 'nkx_quota_refused_total{share="link-bytes"}') == 30 - stored
        assert s.compile(ADD_ONE + "# a compile\n")["status"] == "ok"


def test_a_store_at_its_ceiling_takes_no_link_and_says_so():
    """Compiles, reading and deleting go on; what is deleted makes room."""
    with Server(*BEHIND_PROXY, *(x for n in ("", "-day", "-mib") for x in (f"--client-links{n}", "0")), "--store-max-mib", "2", "--results-mib", "1") as s:
        assert s.get("/readyz").json["space"] == "ok"
        stored = []
        while (answer := store_large(s, len(stored))).status == 201:
            stored.append(answer.json)
        assert answer.status == 507 and answer.error["code"] == "full" and 15 <= len(stored) <= 45
        ready = s.get("/readyz")
        assert ready.status == 200 and ready.json["space"] == "full"
        assert metric(s, "nkx_store_bytes") >= metric(s, "nkx_store_max_bytes") == 2 << 20 and metric(s, "nkx_store_free_bytes") > 0
        s.wait_for_log("store_space", "nearly-full")
        s.wait_for_log("store_space", "space=full")
        assert s.compile(ADD_ONE + "# still\n")["status"] == "ok" and s.get(stored[0]["url"]).status == 200
        for link in stored[:6]:
            headers = {**JSON, "X-Nkx-Request": "1", "X-Nkx-Edit-Token": link["edit_token"]}
            assert s.request("DELETE", f"/api/v1/snippets/{link['id']}", headers=headers).status == 204
        s.wait_until(lambda: store_large(s, 1000).status == 201, "room for a link", 10)


def test_a_cached_result_costs_nothing_of_the_share(shared):
    client = Client(shared, "198.51.100.4")
    for _ in range(10):
        assert client.post(Cache_Control="max-age=60").status == 200


def test_a_network_of_64_bits_is_one_client(shared):
    for i in range(6):
        assert Client(shared, f"2001:db8:0:1:{i}::1").post().status == 200
    assert Client(shared, "2001:db8:0:1:ffff::1").post().status == 429
    assert Client(shared, "2001:db8:0:2::1").post().status == 200


def test_who_has_signed_in_at_the_proxy_is_the_client():
    """People behind one address have their own shares, and one person has one share from all addresses."""
    with Server("--trusted-proxies", "127.0.0.1", "--user-header", "X-Forwarded-User", "--client-compiles", "3") as s:
        def status(user, address="198.51.100.1", peer="127.0.0.1", **more):
            headers = [("X-Forwarded-For", address), ("Content-Type", "application/json"), ("Cache-Control", "no-store")]
            headers += [("X-Forwarded-User", u) for u in ([user] if isinstance(user, str) else user)]
            c = s.connect(address=peer)
            body = json.dumps({"source": ADD_ONE, "inputs": FLOAT_INPUT})
            c.putrequest("POST", "/api/v1/compile")
            for k, v in [*headers, ("Content-Length", str(len(body)))]:
                c.putheader(k, v)
            c.endheaders(body.encode())
            answer = c.getresponse()
            answer.read()
            c.close()
            return answer.status
        assert [status("ada@example.org", f"198.51.100.{i}") for i in range(4)] == [200, 200, 200, 429]
        assert [status("bob@example.org") for _ in range(3)] == [200] * 3, "behind the same address"
        assert [status((), "198.51.100.9") for _ in range(4)] == [200, 200, 200, 429], "who has not signed in is an address"
        assert status(["carol", "dave"], "198.51.100.9") == 429, "a name that comes twice is none"
        assert [status(f"user{i}", peer="127.0.0.2") for i in range(4)] == [200, 200, 200, 429], "only the proxy is believed"


def test_a_network_of_48_bits_has_the_shares_of_sixteen_clients():
    with Server(*BEHIND_PROXY, "--client-links", "1", "--client-links-day", "0") as s:
        def stored(address):
            path, headers, body = LINKS["snippets"]
            return s.request("POST", path, json.dumps(body(ADD_ONE)), {**JSON, **headers, "X-Forwarded-For": address}).status
        assert [stored(f"2001:db8:1:{256 * i + j:x}::1") for i in range(5) for j in range(5)] == [201, 201, 201, 201, 429] * 4 + [429] * 5
        assert stored("2001:db8:2::1") == 201


def test_a_client_may_have_only_so_many_compiles_waiting_or_running(shared):
    one, other = Client(shared, "198.51.100.5"), Client(shared, "198.51.100.6")
    streams = [one.stream()]
    read_until(streams[0], b'"frame":"start"')
    streams.append(one.stream(source=SLEEPER + "#"))
    read_until(streams[1], b'"frame":"queued"')
    refused = one.post()
    assert refused.status == 429 and refused.error["code"] == "too-many-jobs" and int(refused.headers["Retry-After"]) > 0
    with other.stream() as s:
        shared.wait_waiting(2)
        s.close()
    for s in streams:
        s.close()
    shared.wait_idle()
    shared.wait_until(lambda: one.post().status == 200, "room for its next one", 10)


def test_a_compile_that_never_ran_does_not_count(shared):
    client = Client(shared, "198.51.100.7")
    with client.stream() as running:
        shared.wait_running()
        for i in range(12):  # twice the share
            with client.stream(source=SLEEPER + "#" * i) as s:
                read_until(s, b'"frame":"queued"')
            shared.wait_waiting(0)
        running.close()
    shared.wait_idle()


def test_a_client_may_make_only_so_many_requests_at_once(shared):
    head = b"POST /api/v1/compile HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 198.51.100.8\r\nContent-Type: application/json\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    streams = [socket.create_connection(("127.0.0.1", shared.port), timeout=60) for _ in range(3)]
    for s in streams:
        s.sendall(head)  # and no body yet
        assert s.recv(100).startswith(b"HTTP/1.1 100 "), "it is read, and counted"

    def refused():
        answer = shared.request("GET", "/api/v1/targets", headers={"X-Forwarded-For": "198.51.100.8"})
        return answer.status == 429 and answer.error["code"] == "too-many-connections" and answer.headers["Retry-After"]
    shared.wait_until(refused, "a refusal", 10)
    assert shared.request("GET", "/api/v1/targets", headers={"X-Forwarded-For": "198.51.100.9"}).status == 200
    for s in streams:
        s.close()
    shared.wait_until(lambda: not refused(), "room again", 10)


# ---- what a client is

def test_only_trusted_proxies_are_believed(server):
    """Here nothing is trusted, so each claim is as good as none: without a scope the key is the address's."""
    keys = {key_at(server, claim) for claim in ({}, {"X-Forwarded-For": "198.51.100.1"}, {"Forwarded": "for=198.51.100.2"})}
    assert len(keys) == 1


def key_at(server, headers):
    return server.request("POST", "/api/v1/compile", JOB, {**JSON, **headers}).json["key"]


def test_a_trusted_proxy_is_believed_for_what_it_added_itself(busy):
    alone = key_at(busy, {"X-Forwarded-For": "198.51.100.1"})
    assert alone != key_at(busy, {"X-Forwarded-For": "198.51.100.2"}) != key_at(busy, {})
    assert alone == key_at(busy, {"X-Forwarded-For": "203.0.113.9, 198.51.100.1"}), "what the client wrote itself"
    assert alone == key_at(busy, {"X-Forwarded-For": "203.0.113.9, 198.51.100.1, 127.0.0.9"}), "another proxy of ours"
    assert key_at(busy, {}) == key_at(busy, {"Forwarded": "for=198.51.100.1"}), "the other header is a client's own"


def test_connections_are_counted_and_the_header_of_rfc_7239_is_read():
    with Server("--trusted-proxies", "127.0.0.2", "--proxy-header", "forwarded", "--client-connections", "20") as s:
        held = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(40)]
        s.wait_until(lambda: len(select.select(held, [], [], 0)[0]) >= 20, "refusals", 10)
        refused = select.select(held, [], [], 0)[0]
        assert len(refused) in (20, 21), "one of ours may not be closed yet"
        for c in refused:
            text = c.recv(4096)
            assert b" 429 " in text and b"Retry-After: " in text and b"too-many-connections" in text

        def key(**headers):  # as the proxy
            return s.request("POST", "/api/v1/compile", JOB, {**JSON, **headers}, address="127.0.0.2").json["key"]
        assert key(Forwarded='for="[2001:db8:0:1::7]:4711";proto=https') == key(Forwarded='for=192.0.2.1, for="[2001:db8:0:1:2::]"') != key()
        assert key(X_Forwarded_For="198.51.100.1") == key()
        for c in held:
            c.close()
        s.wait_until(lambda: s.get("/healthz").status == 200, "room again", 10)
        assert metric(s, 'nkx_quota_refused_total{share="connections"}') >= 20


@pytest.mark.parametrize("flags, named", [(["--trusted-proxies", "10.0.0.0/33"], "--trusted-proxies"), (["--trusted-proxies", "proxy.local"], "proxy.local"),
                                          (["--proxy-header", "via"], "--proxy-header"), (["--client-jobs", "-1"], "--client-jobs")])
def test_a_wrong_setting_is_named(flags, named):
    r = subprocess.run([NKX, "serve", "--port", "0", *flags], capture_output=True, text=True, timeout=30)
    assert r.returncode == 2 and named in r.stderr


# ---- the queue

def positions(text):
    return [json.loads(line)["position"] for line in text.decode(errors="replace").replace("data: ", "").splitlines() if '"queued"' in line]


def test_a_client_that_sends_many_compiles_delays_only_its_own(busy):
    """The first compile of each client comes before the second of any."""
    many, few, other = (Client(busy, f"198.51.100.{i}") for i in (11, 12, 13))
    streams = [many.stream()]
    read_until(streams[0], b'"frame":"start"')
    for i in range(1, 3):
        streams.append(many.stream(source=SLEEPER + "#" * i))
        read_until(streams[i], b'"position":%d}' % i)
    streams.append(few.stream(source=ADD_ONE))
    read_until(streams[3], b'"position":1}')
    streams.append(other.stream(source=ADD_ONE + "#"))
    read_until(streams[4], b'"position":2}')
    read_until(streams[1], b'"position":3}')
    streams[0].close()
    for s in streams[3:]:
        assert b'"status":"ok"' in read_until(s, b'"frame":"end"')
    for s in streams:
        s.close()
    busy.wait_idle()


def test_a_client_that_returns_too_early_is_held_and_others_are_not(shared):
    one, other = Client(shared, "198.51.100.14"), Client(shared, "198.51.100.15")
    for _ in range(6):
        assert one.post().status == 200
    assert one.post().status == 429
    with one.stream(source=ADD_ONE) as early:
        early.settimeout(0.1)
        with pytest.raises(TimeoutError):
            early.recv(1)
        assert other.post().status == 200
        early.settimeout(60)
        assert answer_of(early)[0] == 429


def test_a_waiting_client_sees_its_place_in_the_queue_move_up(busy):
    first, second, third, fourth = (Client(busy, f"198.51.100.{i}") for i in range(1, 5))
    first = first.stream()
    read_until(first, b'"frame":"start"')
    second = second.stream(source=SLEEPER + "#")
    read_until(second, b'"position":1}')
    third = third.stream(source=ADD_ONE)
    text = read_until(third, b'"position":2}')
    fourth = fourth.stream(source=ADD_ONE + "#", accept="text/event-stream")
    events = read_until(fourth, b'data: {"frame":"queued","position":3}\n\n')
    second.close()  # leaves the queue
    text += read_until(third, b'"position":1}')
    events += read_until(fourth, b'"position":2}')
    first.close()
    text += read_until(third, b'"frame":"end"')
    events += read_until(fourth, b'"frame":"end"')
    assert positions(text) == [2, 1] and positions(events)[:2] == [3, 2]
    assert text.rindex(b'"queued"') < text.index(b'"start"')
    third.close()
    fourth.close()
    busy.settle()


def test_a_stream_whose_wait_timed_out_says_so(shared):
    client = Client(shared, "198.51.100.21")
    with client.stream() as first:
        read_until(first, b'"frame":"start"')
        status, frames = answer_of(client.stream(source=SLEEPER + "#"))
        assert status == 200 and frames[0] == {"frame": "queued", "position": 1}
        assert [f["frame"] for f in frames] == ["queued", "start", "diagnostic", "end"]
        assert frames[2]["diagnostic"]["code"] == "busy" and frames[3]["status"] == "error"
        first.close()
    shared.wait_idle()


def test_a_compile_that_runs_at_once_reports_at_most_the_first_place(busy):
    status, frames = answer_of(Client(busy, "198.51.100.1").stream(source=ADD_ONE))
    assert status == 200 and frames[-1] == {**frames[-1], "frame": "end", "status": "ok"}
    assert [f["position"] for f in frames if f["frame"] == "queued"] in ([], [1]), "at most while its worker is made"


# ---- editors

def test_a_newer_compile_of_an_editor_ends_the_one_that_runs(busy):
    client = Client(busy, "198.51.100.1")
    before = metric(busy, "nkx_superseded_total")
    busy.settle()
    with client.stream(editor=EDITOR) as old:
        busy.wait_running()
        with client.stream(source=ADD_ONE, editor=EDITOR) as new:
            status, frames = answer_of(old)
            assert status == 200 and [f["frame"] for f in frames if f["frame"] != "queued"] == ["start", "diagnostic", "end"]
            assert frames[-2]["diagnostic"]["code"] == "superseded" and frames[-1]["status"] == "error"
            status, frames = answer_of(new)  # the only worker is free for it
            assert status == 200 and frames[-1]["status"] == "ok"
    assert metric(busy, "nkx_superseded_total") == before + 1
    busy.wait_idle()


def test_a_newer_compile_of_an_editor_ends_the_one_that_waits(busy):
    client = Client(busy, "198.51.100.1")
    with client.stream() as first:
        busy.wait_running()
        with client.stream(source=SLEEPER + "#1", editor=EDITOR) as old, client.stream(source=SLEEPER + "#2", editor=EDITOR + "2") as other:
            read_until(old, b'"frame":"queued"')
            read_until(other, b'"frame":"queued"')
            with client.stream(source=SLEEPER + "#3", editor=EDITOR) as new:
                text = read_until(old, b"0\r\n\r\n")
                assert b'"code":"superseded"' in text and text.index(b'"start"') < text.index(b'"superseded"') < text.index(b'"frame":"end"')
                read_until(new, b'"frame":"queued"')
                assert busy.health["waiting"] == 2 and busy.health["running"] == 1
        first.close()
    busy.settle()


def test_a_superseded_compile_without_a_stream_is_a_conflict(busy):
    client = Client(busy, "198.51.100.1")
    with client.stream(editor=EDITOR, accept="application/json") as old:
        busy.wait_running()
        assert client.post(X_Nkx_Editor=EDITOR).status == 200
        status, problem = answer_of(old)
        assert status == 409 and problem[0]["error"]["code"] == "superseded"


def test_a_superseded_stream_ends_with_a_whole_line(busy):
    source = "import numpy as np\nfrom nkigen import trace\nimport time\n\n" \
             "@trace(input_specs=[((8, 16), 'float32')])\ndef first(x):\n    for _ in range(200):\n        x = np.exp(x + 1)\n    return x\n\n" \
             "@trace(input_specs=[((8, 16), 'float32')])\ndef second(x):\n    time.sleep(60)\n    return x\n"
    client = Client(busy, "198.51.100.1")
    with client.stream(source=source, editor=EDITOR) as old:
        read_until(old, b'"frame":"stage"')  # and then it stops reading for a while
        assert client.post(X_Nkx_Editor=EDITOR).status == 200
        lines = read_until(old, b"\r\n0\r\n\r\n")
        assert b'"code":"superseded"' in lines and lines.rstrip().endswith(b"0")
    busy.wait_idle()


def test_no_compile_of_another_editor_is_superseded(busy):
    mine, other = Client(busy, "198.51.100.1"), Client(busy, "198.51.100.2")
    running = mine.stream(editor=EDITOR)
    with running:
        read_until(running, b'"frame":"start"')  # or the second might come first
        second = mine.stream(source=SLEEPER + "#2", editor=EDITOR + "-second")
        with second, other.stream(source=SLEEPER + "#3", editor=EDITOR) as s:  # the same name from another address
            read_until(s, b'"frame":"queued"')
            busy.wait_waiting(2)
            running.settimeout(0.5)
            with pytest.raises(TimeoutError):
                running.recv(1)
            assert busy.health["running"] == 1
        second.close()
    busy.settle()


def test_a_compile_that_others_wait_for_goes_on_for_them(busy):
    mine, other = Client(busy, "198.51.100.1"), Client(busy, "198.51.100.2")
    body = {"source": "import time\ntime.sleep(2)\n" + ADD_ONE, "inputs": FLOAT_INPUT, "scope": "a-scope-that-both-know"}

    def ask(client, **more):
        c = busy.connect()
        c.request("POST", "/api/v1/compile", json.dumps(body), {**client.headers, "Cache-Control": "max-age=60", **more})
        return c

    def joined():
        return metric(busy, 'nkx_results_total{from="joined"}')
    running = ask(mine, **{"X-Nkx-Editor": EDITOR, "Accept": "application/x-ndjson"})
    busy.wait_running()
    before = joined()
    waiting = ask(other)
    busy.wait_until(lambda: joined() == before + 1, "the other to join it")
    with mine.stream(source=ADD_ONE + "# newer", editor=EDITOR) as new:
        assert answer_of(running.sock)[1][-2]["diagnostic"]["code"] == "superseded"
        assert answer_of(new)[1][-1]["status"] == "ok"
    assert json.loads(waiting.getresponse().read())["status"] == "ok", "the other's compile was called off"
    running.close()
    waiting.close()


def test_the_same_text_again_is_the_same_run(busy):
    """What an editor asks for twice is not started twice: the second request reads the run of the first."""
    client = Client(busy, "198.51.100.1")
    slow = "import time\ntime.sleep(1.5)\n" + ADD_ONE + "# the same\n"
    with client.stream(source=slow, editor=EDITOR, Cache_Control="max-age=60") as old:
        busy.wait_running()
        compiled = metric(busy, 'nkx_results_total{from="compiled"}')
        with client.stream(source=slow, editor=EDITOR, Cache_Control="max-age=60") as new:
            assert answer_of(old)[1][-2]["diagnostic"]["code"] == "superseded"
            assert answer_of(new)[1][-1]["status"] == "ok"
        assert metric(busy, 'nkx_results_total{from="compiled"}') == compiled


def test_an_editor_is_never_refused_because_of_its_own_earlier_compiles(shared):
    """Two jobs at once are this client's share, and each newer one takes the place of the one before."""
    client = Client(shared, "198.51.100.20")
    shared.settle()  # what is counted as running is this test's
    old = client.stream(editor=EDITOR)
    shared.wait_running()
    for i in range(4):
        new = client.stream(source=SLEEPER + "#" * i, editor=EDITOR)
        status, frames = answer_of(old)
        assert status == 200 and frames[-2]["diagnostic"]["code"] == "superseded"
        old = new
    old.close()
    shared.wait_idle()


@pytest.mark.parametrize("name", ["short", "x" * 65, "with spaces in its name", "quote\"in-the-name-of-it"])
def test_an_editors_name_is_one_that_cannot_be_guessed(server, name):
    answer = server.request("POST", "/api/v1/compile", json.dumps({"source": ADD_ONE}), {"Content-Type": "application/json", "X-Nkx-Editor": name})
    assert answer.status == 400 and answer.error["field"] == "X-Nkx-Editor"
