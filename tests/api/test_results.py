"""Stored results: found by their key, whole, in parts or packed; equal requests share one run, scopes keep results apart."""
import gzip
import io
import json
import random
import subprocess
import tarfile

import pytest

from support.clients import in_thread, metric, open_stream, read, read_until, share
from support.server import ADD_ONE, FLOAT_INPUT, Server

KEPT = {"inputs": FLOAT_INPUT, "cache": None}
SLEEPS = "import time\ntime.sleep(1.0)\n" + ADD_ONE


def cached(server, source=ADD_ONE, **fields):
    return server.compile(source, **{**KEPT, **fields})


def packed(server, path, encoding, **headers):
    return server.get(path, Accept_Encoding=encoding, **headers)


def unzstd(data):
    return subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def result(server):
    return cached(server, options={"artifacts": True})


def test_a_result_is_found_by_its_key(server, result):
    answer = server.get(f"/api/v1/results/{result['key']}")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    assert answer.json == result


def test_an_equal_request_gets_the_same_run(server):
    first, again = cached(server, ADD_ONE + "# same\n"), cached(server, ADD_ONE + "# same\n")
    assert first == again and first["time_us"] == again["time_us"]  # to the microsecond: it did not run twice


def test_a_stream_of_a_cached_result_has_the_same_frames(server):
    body = {"source": ADD_ONE + "# stream\n", "inputs": FLOAT_INPUT}
    one, two = (server.post(body, accept="application/x-ndjson", cache=None).body for _ in range(2))
    assert one == two
    frames = [json.loads(x) for x in one.decode().splitlines()]
    assert frames[0]["frame"] == "start" and frames[-1] == {**frames[-1], "frame": "end", "status": "ok"}


@pytest.mark.parametrize("cache, is_kept", [("no-cache", True), ("no-store", False)])
def test_a_request_may_ask_to_be_compiled_anew(server, cache, is_kept):
    source = ADD_ONE + f"# {cache}\n"
    first = cached(server, source)
    anew = cached(server, source, cache=cache)
    assert first["key"] == anew["key"] and first["time_us"] != anew["time_us"]
    assert (server.get(f"/api/v1/results/{first['key']}").json == anew) == is_kept


def test_a_single_stage_can_be_fetched(server, result):
    stages = result["kernels"][0]["stages"]
    for n in (0, len(stages) - 1):
        answer = server.get(f"/api/v1/results/{result['key']}/stages/{n}?kernel=0")
        assert answer.status == 200 and answer.json == stages[n]


def test_single_files_are_attachments(server, result):
    base = f"/api/v1/results/{result['key']}/artifacts"
    stages = result["kernels"][0]["stages"]
    name = f"add_one/{len(stages) - 1:02d}-{stages[-1]['name']}.mlir"
    answer = server.get(f"{base}/{name}")
    assert answer.status == 200 and answer.body.decode() == stages[-1]["text"]
    assert answer.headers["Content-Type"].startswith("text/plain") and "attachment" in answer.headers["Content-Disposition"]
    hlo = next(a for a in result["artifacts"] if a["name"].endswith("hlo.pb"))
    assert len(server.get(f"{base}/{hlo['name']}").body) == hlo["size"]
    maps = server.get(f"{base}/source-map.json").json
    assert [s["lines"] for s in maps["kernels"][0]["stages"]] == [s["lines"] for s in stages]


def test_all_files_come_as_one_tar(server, result):
    answer = server.get(f"/api/v1/results/{result['key']}/all.tar.gz")
    assert answer.headers["Content-Type"] == "application/gzip" and "Content-Encoding" not in answer.headers
    with tarfile.open(fileobj=io.BytesIO(answer.body), mode="r:gz") as tar:
        files = {m.name: tar.extractfile(m).read() for m in tar.getmembers()}
        assert all(m.isfile() and m.uid == 0 and m.mtime == 0 for m in tar.getmembers())
    assert json.loads(files["result.json"]) == result
    stages = result["kernels"][0]["stages"]
    assert [files[n].decode() for n in sorted(files) if n.startswith("add_one/") and n[8].isdigit()] == \
           [s["text"] for s in stages]
    assert len(files) == len(stages) + 2 + len(result["artifacts"])
    assert server.get(f"/api/v1/results/{result['key']}/artifacts/all.tar.gz").body == answer.body


def test_results_are_compressed_and_tagged(server, result):
    path = f"/api/v1/results/{result['key']}"
    plain, gz, zs = server.get(path), packed(server, path, "gzip"), packed(server, path, "gzip, zstd")
    assert gz.headers["Content-Encoding"] == "gzip" and gzip.decompress(gz.body) == plain.body
    assert zs.headers["Content-Encoding"] == "zstd" and unzstd(zs.body) == plain.body
    assert len(zs.body) < len(plain.body) / 3
    assert len({a.headers["ETag"] for a in (plain, gz, zs)}) == 3
    assert all("Accept-Encoding" in a.headers["Vary"] for a in (plain, gz, zs))
    for answer, encoding in ((plain, ""), (gz, "gzip"), (zs, "zstd")):
        again = packed(server, path, encoding, If_None_Match=answer.headers["ETag"])
        assert again.status == 304 and again.body == b"" and again.headers["ETag"] == answer.headers["ETag"]
    assert packed(server, path, "", If_None_Match='"other"').status == 200
    assert packed(server, path, "zstd;q=0, gzip;q=0").headers.get("Content-Encoding") is None


def test_a_result_too_small_to_compress_comes_plain(server):
    small = cached(server, "x = 1\n", inputs=[])
    for _ in range(2):
        answer = packed(server, f"/api/v1/results/{small['key']}", "zstd, gzip")
        assert answer.json == small and answer.headers.get("Content-Encoding") is None and len(answer.body) < 1024


@pytest.mark.parametrize("tail", ["/stages/999", "/stages/-1", "/stages/x", "/stages/", "/stages/0?kernel=1",
                                  "/stages/0?kernel=x", "/artifacts/", "/artifacts/../x", "/artifacts/nothing",
                                  "/artifacts/result.json/x", "/more", "x"])
def test_what_a_result_does_not_have_is_not_found(server, result, tail):
    assert server.get(f"/api/v1/results/{result['key']}{tail}").status == 404


@pytest.mark.parametrize("key", ["0" * 64, "A" * 64, "0" * 63, "", "0" * 65])
def test_an_unknown_key_is_not_found(server, key):
    assert server.get(f"/api/v1/results/{key}").status == 404


def test_a_scope_keeps_results_apart(server):
    source = ADD_ONE + "# scoped\n"
    mine = cached(server, source, scope="a-secret-of-my-own-1")
    theirs = cached(server, source, scope="another-ones-secret-2")
    nobodys = cached(server, source)
    assert len({r["key"] for r in (mine, theirs, nobodys)}) == 3
    assert len({r["time_us"] for r in (mine, theirs, nobodys)}) == 3  # each ran: none could see that another had
    assert cached(server, source, scope="a-secret-of-my-own-1") == mine
    assert "scope" not in json.dumps(mine)


def test_without_a_scope_a_key_cannot_be_computed_from_the_request(server):
    """Two servers with their own stores have different secrets, so the same request has different keys."""
    with Server() as other:
        assert cached(other)["key"] != cached(server)["key"]
        same = [cached(s, scope="0123456789abcdef")["key"] for s in (server, other)]
        assert same[0] == same[1]


def test_concurrent_requests_for_one_key_compile_once(server):
    server.settle()
    got = [in_thread(cached, server, SLEEPS + "# together\n") for _ in range(12)]
    most = 0
    while server.health["running"] or not most:
        most = max(most, server.health["running"])
    got = [value() for value in got]
    assert most == 1 and all(r == got[0] for r in got) and got[0]["status"] == "ok"


def test_a_run_goes_on_for_the_others_when_the_first_leaves(server):
    server.settle()
    source = SLEEPS + "# leaves\n"
    first = open_stream(server, source, FLOAT_INPUT, cache="max-age=60")
    read_until(first, b'"start"')
    joined = 'nkx_results_total{from="joined"}'
    before = metric(server, joined)
    second = in_thread(cached, server, source)
    server.wait_until(lambda: metric(server, joined) == before + 1, "the second to join the run")
    first.close()
    assert second()["status"] == "ok"


def test_a_result_that_ran_into_a_limit_is_not_stored(impatient):
    source = "import time\ntime.sleep(30)\n" + ADD_ONE
    result = cached(impatient, source)
    assert result["status"] == "error"
    assert impatient.get(f"/api/v1/results/{result['key']}").status == 404


def test_a_refused_kernel_is_kept_like_any_result(server):
    result = cached(server, "def k(x):\n    return x.nope()\n")
    assert server.get(f"/api/v1/results/{result['key']}").json == result


def test_results_outlive_the_server():
    with Server() as s:
        result = cached(s)
    with Server(data=s.data) as again:
        assert again.get(f"/api/v1/results/{result['key']}").json == result
        assert cached(again) == result


def test_the_cache_stays_within_its_limits_and_keeps_what_is_new():
    rng = random.Random(1)
    with Server("--cache-mib", "1", "--results-mib", "1") as s:
        keys = []
        for _ in range(140):  # of 20 KiB each: a name that cannot be packed
            source = ADD_ONE.replace("add_one", f"k{rng.getrandbits(80000):x}")
            keys.append(cached(s, source, options={"stop_after": "trace"})["key"])
        s.wait_until(lambda: s.get(f"/api/v1/results/{keys[-1]}").status == 200, "the last one")
        s.wait_until(lambda: s.get(f"/api/v1/results/{keys[19]}").status == 404, "older ones to make room", 20)  # stored, and removed, after the answer
        found = [s.get(f"/api/v1/results/{key}").status for key in keys]
        assert found[:20] == [404] * 20 and found[-20:] == [200] * 20
        assert (s.data / "nkx.sqlite").stat().st_size < 2 << 20


def test_links_that_were_read_take_half_as_much_memory():
    with Server("--cache-mib", "4", "--client-links", "0") as s:
        most = 0
        links = [share(s, ADD_ONE.replace("+ 1", f"+ {i}")).json for i in range(30)]
        for link in links + links[::-1]:
            answer = read(s, link)
            assert answer.status == 200 and answer.json["id"] == link["id"]
            now = metric(s, "nkx_links_memory_bytes")
            assert now <= 2 << 20
            most = max(most, now)
        assert most > 1 << 20, "otherwise this shows nothing"
