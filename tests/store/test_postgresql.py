"""PostgreSQL: the same store, shared by several servers, and what happens when it goes away."""
import contextlib
import http.client
import os
import signal
import subprocess
import time

import pytest

from support.clients import in_thread, in_threads, nkx, read, remove, share
from support.paths import BUILD, NKX
from support.runners import Host, Runner, begin, connected, follow, is_right, look, make_package, wait_connected
from support.server import ADD_ONE, Server
from support.wait import stays

OUTAGE_S = float(os.environ.get("NKX_OUTAGE_S", "2"))


@pytest.fixture(scope="module")
def pair(postgres):
    url = postgres.new_database("pair")
    with Server("--store", url) as one, Server("--store", url) as two:
        yield one, two


def test_the_store_keeps_to_its_model(postgres):
    url = postgres.new_database("model")
    r = subprocess.run([BUILD / "test/test_explorer_store"], env={**os.environ, "NKX_TEST_STORE": url},
                       capture_output=True, text=True, timeout=300)
    assert r.returncode == 0, r.stdout + r.stderr
    assert "on PostgreSQL" in r.stdout
    assert int(postgres.run("SELECT COUNT(*) FROM migrations", "model")) > 0


def test_leases_of_runs_are_the_same_as_on_sqlite(postgres):
    r = subprocess.run([BUILD / "test/test_explorer_runs"], env={**os.environ, "NKX_TEST_STORE": postgres.new_database("leases")},
                       capture_output=True, text=True, timeout=300)
    assert r.returncode == 0 and "on PostgreSQL" in r.stdout, r.stdout + r.stderr


def test_servers_on_one_store_serve_each_others_links(pair):
    one, two = pair
    made = share(one, title="shared").json
    assert read(two, made).body == read(one, made).body
    fork = share(two, parent=made["id"], visibility="public").json
    assert read(one, fork).json["ancestry"][0]["visibility"] == "unlisted"
    assert remove(two, made).status == 204
    assert read(one, made).status == read(two, made).status == 404


SLEEPER = "import time\nimport numpy as np\n\n\ndef sleeper(x):\n    time.sleep(60)\n    return x\n"


def compile_in(server, editor, source):
    body = {"source": source, "inputs": [{"name": "x", "shape": [4], "dtype": "float32"}]}
    return server.request("POST", "/api/v1/compile", body, {"Content-Type": "application/json", "X-Nkx-Editor": editor})


def listeners(postgres, database="pair"):
    return int(postgres.run(f"SELECT COUNT(*) FROM pg_stat_activity WHERE datname = '{database}' AND query IN ('LISTEN nkx_peers', 'SELECT pg_notify(''nkx_peers'', $1)')"))


def test_the_newest_compile_of_an_editor_calls_off_those_of_other_servers(pair, postgres):
    one, two = pair
    editor = "an-editor-of-two-servers"
    one.wait_until(lambda: listeners(postgres) == 2, "both servers to listen")
    for older, newer in ((one, two), (two, one)):
        old = in_thread(compile_in, older, editor, SLEEPER)
        older.wait_running()
        assert compile_in(newer, editor, ADD_ONE).status == 200
        assert old().status == 409
        older.wait_running(0)
    old = in_thread(compile_in, one, editor, SLEEPER)
    one.wait_running()
    assert compile_in(two, editor + "-another", ADD_ONE).status == 200
    stays(lambda: one.health["running"] == 1, "it goes on", 0.5)
    assert compile_in(two, editor, ADD_ONE).status == 200
    assert old().error["code"] == "superseded"


def used_up(server, ask):
    """The refusal, once the client has used up its share there."""
    server.wait_until(lambda: ask(server).status == 429, "a refusal", 30)
    return ask(server).error["code"]


def test_a_clients_share_of_two_servers_is_one_share(postgres):
    url = postgres.new_database("shares")
    flags = ("--store", url, "--trusted-proxies", "127.0.0.1", "--client-compiles", "6", "--client-links", "4", "--cache-s", "1")
    with Server(*flags) as one, Server(*flags) as two:
        one.wait_until(lambda: listeners(postgres, "shares") == 2, "both servers to listen")
        count = iter(range(1000))

        def compile_anew(server, client="198.51.100.1"):
            body = {"source": f"{ADD_ONE}# {next(count)}\n", "inputs": [{"name": "x", "shape": [4], "dtype": "float32"}]}
            return server.request("POST", "/api/v1/compile", body, {"Content-Type": "application/json", "X-Forwarded-For": client})

        assert [compile_anew(s).status for s in (one, two, one, two, one, two)] == [200] * 6
        assert used_up(one, compile_anew) == used_up(two, compile_anew) == "too-many-compiles"
        assert compile_anew(two, "198.51.100.2").status == 200  # another client has its own

        def link(server):
            body = {"source": ADD_ONE, "inputs": [{"name": "x", "shape": [4], "dtype": "float32"}]}
            return server.request("POST", "/api/v1/snippets", body, {"Content-Type": "application/json", "X-Nkx-Request": "1", "X-Forwarded-For": "198.51.100.3"})

        assert [link(s).status for s in (one, two, one, two)] == [201] * 4
        assert used_up(one, link) == used_up(two, link) == "too-many-links"

        def guess(server):
            return server.request("GET", "/api/v1/snippets/" + "A" * 22, headers={"X-Forwarded-For": "198.51.100.4"})

        assert {guess((one, two)[i % 2]).status for i in range(20)} == {404}
        assert used_up(one, guess) == used_up(two, guess) == "too-many-misses"


def metric(server, name):
    return float(next(line.split()[-1] for line in server.get("/metrics").body.decode().splitlines() if line.startswith(name + " ")))


def test_what_a_client_has_open_on_two_servers_is_one_share(postgres):
    """Compiles at once, and connections; what a server had open that is gone counts no more after some seconds."""
    url = postgres.new_database("open")
    flags = ("--store", url, "--trusted-proxies", "127.0.0.1", "--client-jobs", "3", "--client-connections", "16", "--workers", "4")
    with Server(*flags) as one, Server(*flags) as two:
        one.wait_until(lambda: listeners(postgres, "open") == 2, "both servers to listen")

        def ask(server, source, client):
            body = {"source": source, "inputs": [{"name": "x", "shape": [4], "dtype": "float32"}]}
            return server.request("POST", "/api/v1/compile", body, {"Content-Type": "application/json", "Cache-Control": "no-store", "X-Forwarded-For": client})

        def sleep(server, seconds):
            with contextlib.suppress(ConnectionError, http.client.HTTPException):  # its server is killed
                ask(server, SLEEPER.replace("60", str(seconds)), "198.51.100.1")
        sleeping = [in_thread(sleep, s, 60 + i) for i, s in enumerate((one, one, two))]
        one.wait_running(2)
        two.wait_running(1)
        for server in one, two:
            server.wait_until(lambda s=server: ask(s, ADD_ONE, "198.51.100.1").status == 429, "a refusal", 5)
            assert ask(server, ADD_ONE, "198.51.100.1").error["code"] == "too-many-jobs"
            assert ask(server, ADD_ONE, "198.51.100.2").status == 200
        assert metric(one, "nkx_peers_up") == 1 and 0 < metric(one, "nkx_peers_lag_seconds") < 5
        assert metric(one, 'nkx_peers_messages_total{what="heard"}') > 0
        one.kill()  # nobody says that its compiles have ended
        two.wait_until(lambda: ask(two, ADD_ONE, "198.51.100.1").status == 200, "the share of the server that is gone", 15)
        two.wait_running(1)  # its own compile still counts
        del sleeping


def test_servers_go_on_without_what_they_tell_each_other(postgres):
    with Server("--store", postgres.new_database("untold"), "--client-compiles", "1000") as one:
        one.wait_until(lambda: listeners(postgres, "untold") == 1, "it to listen")
        try:
            postgres.stop()
            for i in range(20):
                assert compile_in(one, f"an-editor-without-peers-{i}", ADD_ONE).status == 200
        finally:
            postgres.start()
        one.wait_until(lambda: listeners(postgres, "untold") == 1, "it to listen again", 30)


def test_what_others_write_on_the_channel_does_no_harm(pair, postgres):
    one, two = pair
    for text in ("", "editor", "editor zz 1", "editor " + "a" * 64 + " 99999999999999999999", "x" * 7999, "\n\n", "later 1 2 3", "used compile -1 ::1", "used bytes 9223372036854775807 ::1",
                 "used link 1 " + "x" * 200,
                 "open", "open 1", "open zz 1 1 ::1", "open 1 -1 99999999999 ::1", "open 1 1 1 " + "x" * 200, "open 1 1 1 ::/48"):
        postgres.run(f"SELECT pg_notify('nkx_peers', '{text}')", "pair")
    for server in pair:
        assert compile_in(server, "an-editor-that-goes-on", ADD_ONE).status == 200


def test_an_operator_lists_and_deletes_links_beside_the_servers(pair, postgres):
    one, two = pair
    made = share(one, title="reported", visibility="public").json
    assert read(two, made).status == 200
    url = f"postgresql://nkx@/pair?host={postgres.dir}"
    row = next(r.split("\t") for r in nkx("store", "list", "--store", url).stdout.splitlines() if made["id"] in r)
    assert nkx("store", "show", "--store", url, row[0]).stdout.count('"reported"') == 1
    assert nkx("store", "delete", "--store", url, row[0]).returncode == 0
    assert read(one, made).status == read(two, made).status == 404
    assert one.get("/readyz").json["space"] == "ok" and "nkx_store_bytes" in one.get("/metrics").body.decode()


def test_servers_on_one_store_serve_each_others_results(pair):
    one, two = pair
    result = one.compile(ADD_ONE + "# shared\n", cache=None)
    two.wait_until(lambda: two.get(f"/api/v1/results/{result['key']}").status == 200, "the result", 10)
    assert two.get(f"/api/v1/results/{result['key']}").json == result
    assert two.compile(ADD_ONE + "# shared\n", cache=None) == result  # to the microsecond: it ran once


def test_servers_that_start_at_once_agree_on_schema_and_secret(postgres):
    url = postgres.new_database("together")
    servers = in_threads(3, lambda _: Server("--store", url))
    assert len({s.compile(ADD_ONE, cache=None)["key"] for s in servers}) == 1
    assert [s.stop() for s in servers] == [0, 0, 0]


def test_a_run_asked_of_one_server_is_done_by_a_runner_of_the_other(pair, postgres, tmp_path):
    one, two = pair
    host = Host(tmp_path, two, make_package(tmp_path))
    with Runner(host, "first", gated=True) as first:
        wait_connected(one, 1)
        run = begin(one)
        first.wait_inside()
        assert [look(s, run)["state"] for s in pair] == ["running", "running"]
        host.server = one
        with Runner(host, "second"):  # of the other server
            wait_connected(two, 2)
            host.token_command("revoke", "lab")
            assert connected(one) == connected(two) == 0
            assert look(one, run)["state"] == "waiting" and "No Neuron host" in look(one, run)["missing"]
            with Runner(host, "third", token="new"):
                last = follow(two, run)[-1]
    assert is_right(last) and last["runner"]["name"] == "third" and look(one, run) == {**last, "mark": look(one, run)["mark"]}
    dump = postgres.dump("pair")
    assert host.token("lab").read_text().strip().encode() not in dump and run.encode() not in dump


def test_a_dump_holds_no_id_and_no_token(pair, postgres):
    made = share(pair[0]).json
    dump = postgres.dump("pair")
    assert made["id"].encode() not in dump and made["edit_token"].encode() not in dump
    assert b"snippets" in dump


@pytest.fixture
def own_postgres(postgres):
    """The database may be stopped: it runs again for the next test."""
    yield postgres
    postgres.start()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["stopped", "crashed"])
def test_without_its_database_the_server_compiles_and_recovers(how, own_postgres):
    pg = own_postgres
    with Server("--store", pg.new_database(how.name.lower())) as server:
        made = share(server, title="before").json
        unread = share(server, title="not read before").json
        pages = {path: server.get(path).body for path in (
            made["url"], made["embed_url"], made["raw_url"], f"/api/v1/snippets/{made['id']}")}
        result = server.compile(ADD_ONE, cache=None)
        pg.stop(how)
        answer = share(server)
        assert answer.status == 503 and answer.error["code"] == "store" and int(answer.headers["Retry-After"]) > 0
        assert server.compile(ADD_ONE + "# meanwhile\n", cache=None)["status"] == "ok"
        assert server.get(f"/api/v1/results/{result['key']}").json == result  # from memory

        def goes_on():  # what was read lately is served
            for path, body in pages.items():
                answer = server.get(path)
                assert answer.status == 200 and answer.body == body, path
            assert read(server, unread).status == 503 and share(server).status == 503
            return server.get("/healthz").status == 200
        stays(goes_on, "the server is not healthy", OUTAGE_S, poll_s=0.5)
        pg.start()
        server.wait_until(lambda: share(server).status == 201, "recovery", 10)
        assert read(server, made).json["title"] == "before"
        server.wait_until(lambda: read(server, unread).status == 200, "recovery of reads", 10)
        assert remove(server, made).status == 204
        assert all(server.get(path).status == 404 for path in pages)


def test_a_database_that_hangs_delays_no_other_request(postgres):
    with Server("--store", postgres.new_database("hangs")) as server:
        made = share(server).json
        backends = [int(x) for x in postgres.run("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'"
                                                 " AND datname = 'hangs'").split()]
        for pid in backends:
            os.kill(pid, signal.SIGSTOP)
        began = time.monotonic()
        slow = in_thread(read, server, made)
        for _ in range(20):
            assert server.get("/healthz").status == 200 and server.get("/").status == 200
        assert server.compile(ADD_ONE + "# looked up in vain\n", cache=None)["status"] == "ok"
        assert time.monotonic() - began < 6, "a look-up is given up after two seconds"
        for pid in backends:
            os.kill(pid, signal.SIGCONT)
        slow()
        assert read(server, made).status == 200


def test_a_store_that_cannot_be_reached_at_start_is_named(tmp_path):
    r = subprocess.run([NKX, "serve", "--port", "0", "--store", f"postgresql://nobody@/x?host={tmp_path}"],
                       capture_output=True, text=True, timeout=30)
    assert r.returncode == 4 and "PostgreSQL" in r.stderr
