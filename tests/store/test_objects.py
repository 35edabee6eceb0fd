"""Results in an S3 store, which here is moto's server: moved there from the database, read from there, and deleted with what refers to them."""
import os
import signal
import sqlite3
import time

import pytest

from support.clients import metric, nkx, read, remove, share
from support.moto import Moto
from support.server import ADD_ONE, FLOAT_INPUT, Server

# nothing is kept in memory, so that each answer is read from the store
FLAGS = ["--workers", "1", "--cache-s", "0", "--client-links", "0"]


@pytest.fixture
def moto():
    with Moto() as m:
        yield m


def blobs(server, where="1"):
    """(hash, bytes in the database, object, its bytes) of the blobs."""
    with sqlite3.connect(f"file:{server.data}/nkx.sqlite?mode=ro", uri=True) as db:
        return db.execute(f"SELECT hex(hash), length(data), object, packed FROM blobs WHERE {where}").fetchall()


def gone(server):
    with sqlite3.connect(f"file:{server.data}/nkx.sqlite?mode=ro", uri=True) as db:
        return db.execute("SELECT name FROM objects_gone").fetchall()


def wait_moved(server, n=0):
    """n: how many there are at least; a result is stored after it was answered."""
    server.wait_until(lambda: len(blobs(server, "object IS NOT NULL")) >= n and not blobs(server, "send_ms > 0") and not gone(server), "all to be moved", 60)


def compile_cached(server, source):
    answer = server.post({"source": source, "inputs": FLOAT_INPUT}, cache=None)
    assert answer.status == 200, answer.body
    return answer.json


def from_store(server):
    return metric(server, 'nkx_results_total{from="store"}')


def texts(result):
    return [(s["name"], s["text"]) for s in result["kernels"][0]["stages"]]


def sources(n, what=""):
    return [ADD_ONE.replace("+ 1", f"+ {i + 2}") + f"# {what}\n" for i in range(n)]


def test_results_move_there_are_read_from_there_and_go_with_their_link(moto):
    with Server(*FLAGS, *moto.flags()) as s:
        link = share(s).json
        first = compile_cached(s, sources(1)[0])
        wait_moved(s, 2)
        there = moto.objects()
        moved = blobs(s, "object IS NOT NULL")
        assert len(there) == len(moved) == 2 and {f"nkx/{name}" for _, _, name, _ in moved} == set(there)
        assert all(here == 0 and len(there[f"nkx/{name}"]) == packed for _, here, name, packed in moved), "the database has none of their bytes"
        assert len(blobs(s, "object IS NULL")) == 1, "the link's document stays"
        before = from_store(s)
        assert texts(compile_cached(s, sources(1)[0])) == texts(first) and from_store(s) == before + 1
        assert metric(s, 'nkx_objects_requests_total{method="get",outcome="done"}') >= 1
        assert metric(s, "nkx_objects_bytes") == sum(len(data) for data in there.values())
        assert read(s, link).status == 200
        assert remove(s, link).status == 204
        s.wait_until(lambda: len(moto.objects()) == 1, "the link's object to be deleted", 10)
        assert read(s, link).status == 404 and not gone(s)
    with Server(*FLAGS, *moto.flags(), data=s.data) as again:
        before = metric(again, 'nkx_objects_requests_total{method="get",outcome="done"}')
        compile_cached(again, sources(1)[0])
        assert metric(again, 'nkx_objects_requests_total{method="get",outcome="done"}') == before + 1


def test_results_make_room_there_and_links_expire_there(moto, tmp_path):
    flags = [*FLAGS, "--results-mib", "1", "--store-max-mib", "8", *moto.flags()]
    large = "import numpy as np\n\n\ndef k(x):\n    for i in range(100):\n        x = np.sin(x) + {}\n    return x\n"  # some 220 KiB
    with Server(*flags, data=tmp_path) as s:
        link = share(s).json
        for i in range(6):
            compile_cached(s, large.format(i + 2))
        wait_moved(s, 7)
        before = sum(len(data) for data in moto.objects().values())
        assert nkx("store", "expire", "--store", f"sqlite:{tmp_path}/nkx.sqlite", "--after", "1", link["id"]).returncode == 0
    with Server(*flags, data=tmp_path) as s:  # its first save makes room
        compile_cached(s, sources(1)[0])
        s.wait_until(lambda: read(s, link).status == 404, "the link to expire", 10)
        s.wait_until(lambda: sum(packed for *_, packed in blobs(s)) <= 1 << 20, "room", 20)
        wait_moved(s)
        there = {name: len(data) for name, data in moto.objects().items()}
        assert there == {f"nkx/{name}": packed for _, _, name, packed in blobs(s, "object IS NOT NULL")}, "nothing else is there"
        assert 0 < sum(there.values()) <= 1 << 20 < before


def test_without_the_object_store_nothing_is_refused_and_nothing_is_lost(moto):
    with Server(*FLAGS, *moto.flags()) as s:
        old, known = share(s).json, compile_cached(s, sources(1)[0])
        wait_moved(s, 2)
        moto.process.send_signal(signal.SIGSTOP)
        took = []
        for i, text in enumerate([sources(1)[0], *sources(6, "while it is away")]):
            began = time.monotonic()
            result = compile_cached(s, text)
            took.append(time.monotonic() - began)
            assert result["status"] == "ok" and (i or texts(result) == texts(known)), "compiled anew, because the stored one cannot be read"
        assert max(took) < 2 + 4 and sorted(took)[3] < 2, took
        began = time.monotonic()
        assert read(s, old).status == 503 and time.monotonic() - began < 3.5
        new = share(s, ADD_ONE + "# new\n").json
        assert read(s, new).status == 200, "what could not be sent is in the database"
        assert s.get("/readyz").status == 200 and metric(s, "nkx_objects_up") == 0
        moto.process.send_signal(signal.SIGCONT)
        s.wait_until(lambda: read(s, old).status == 200, "the link of before", 20)
        wait_moved(s)
        assert read(s, new).status == 200 and metric(s, "nkx_objects_up") == 1
        assert len(moto.objects()) == len(blobs(s, "object IS NOT NULL")), "none is left of what was sent in vain"


def test_wrong_credentials_are_said_and_corrected_later(moto, tmp_path):
    wrong = moto.write_credentials("wrong", "a-secret-that-is-not-theirs")
    with Server(*FLAGS, *moto.flags(wrong), data=tmp_path) as s:
        link = share(s).json
        s.wait_for_log("objects", "state=away", "HTTP 403", "SignatureDoesNotMatch")
        assert read(s, link).status == 200 and compile_cached(s, sources(1)[0])["status"] == "ok"
        assert not moto.objects() and not any("a-secret-that" in line for line in s.log)
    with Server(*FLAGS, *moto.flags(), data=tmp_path) as s:
        wait_moved(s, 2)
        assert read(s, link).status == 200 and len(moto.objects()) == 2


def asked(server, method, outcome):
    return metric(server, f'nkx_objects_requests_total{{method="{method}",outcome="{outcome}"}}')


def says(server, *words):
    return sum(all(w in line for w in words) for line in list(server.log))


def test_a_key_that_may_not_delete_is_told_once_and_disturbs_nothing_else(moto, tmp_path):
    moto.permit("s3:GetObject", "s3:PutObject", "s3:ListBucket")
    with Server(*FLAGS, *moto.flags(), data=tmp_path) as s:
        links = [share(s, text).json for text in sources(4)]
        wait_moved(s, 4)
        assert remove(s, links[0]).status == 204
        s.wait_for_log("warn objects", "state=denied", "permission=DeleteObject", "HTTP 403 AccessDenied")
        assert metric(s, 'nkx_objects_denied{method="delete"}') == 1 and metric(s, "nkx_objects_up") == 1
        assert remove(s, links[1]).status == 204
        known, began = compile_cached(s, sources(3)[2]), time.monotonic()
        while time.monotonic() - began < 8:  # longer than the rest after a failure
            assert read(s, links[2]).status == 200 and texts(compile_cached(s, sources(3)[2])) == texts(known)
            time.sleep(0.1)
        assert compile_cached(s, sources(5)[4])["status"] == "ok"
        s.wait_until(lambda: len(blobs(s, "object IS NOT NULL")) == 3, "a new result to be moved", 20)
        assert read(s, links[0]).status == read(s, links[1]).status == 404 and len(moto.objects()) == 5
        assert 1 <= asked(s, "delete", "denied") <= 3, "each thread may have asked once"
        assert says(s, "state=denied") == 1 and not says(s, "state=away") and asked(s, "get", "failed") == asked(s, "get", "rested") == 0
    moto.permit("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket")
    with Server(*FLAGS, *moto.flags(), data=tmp_path) as s:
        s.wait_until(lambda: len(moto.objects()) == 3 and not gone(s), "what was deleted meanwhile to go", 20)
        assert metric(s, 'nkx_objects_denied{method="delete"}') == 0


def test_a_key_that_may_not_write_leaves_results_in_the_database_and_reading_goes_on(moto):
    with Server(*FLAGS, *moto.flags()) as s:
        link = share(s).json
        wait_moved(s, 1)
        moto.permit("s3:GetObject", "s3:DeleteObject", "s3:ListBucket")
        new = share(s, sources(1)[0]).json
        s.wait_for_log("warn objects", "state=denied", "permission=PutObject", "HTTP 403 AccessDenied")
        began = time.monotonic()
        while time.monotonic() - began < 8:
            assert read(s, link).status == read(s, new).status == 200
            time.sleep(0.1)
        assert metric(s, 'nkx_objects_denied{method="put"}') == 1 and metric(s, "nkx_objects_up") == 1
        assert 1 <= asked(s, "put", "denied") <= 3 and says(s, "state=denied") == 1 and not says(s, "state=away")
        moto.permit("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket")
        s.wait_for_log("info objects", "state=granted", "permission=PutObject", seconds=90)  # it is tried once a minute
        wait_moved(s, 2)
        assert metric(s, 'nkx_objects_denied{method="put"}') == 0 and len(moto.objects()) == 2


def test_an_object_that_is_missing_or_damaged_is_compiled_anew_and_replaced(moto):
    with Server(*FLAGS, *moto.flags()) as s:
        kernels = sources(2)
        results = [compile_cached(s, text) for text in kernels]
        wait_moved(s, 2)
        names = sorted(moto.objects())
        moto.delete(names[0])
        data = moto.objects()[names[1]]
        moto.put(names[1], data[:-9] + bytes(9))
        for text, result in zip(kernels, results):
            assert texts(compile_cached(s, text)) == texts(result)
        s.wait_until(lambda: len(moto.objects()) == 2 and not set(moto.objects()) & set(names), "other objects in their place", 20)
        wait_moved(s)
        before = from_store(s)
        for text, result in zip(kernels, results):
            assert texts(compile_cached(s, text)) == texts(result)
        assert from_store(s) == before + 2


def test_a_store_of_before_is_moved_and_one_with_objects_needs_their_store(moto, tmp_path):
    with Server(*FLAGS, data=tmp_path) as s:
        link = share(s).json
    with Server(*FLAGS, *moto.flags(), data=tmp_path) as s:
        wait_moved(s)
        assert read(s, link).status == 200 and len(moto.objects()) == 1
    with pytest.raises(RuntimeError, match="in an object store: name it with --s3-url"):
        Server(*FLAGS, data=tmp_path)
    url = f"sqlite:{tmp_path}/nkx.sqlite"
    refused = nkx("store", "check", "--store", url)
    assert refused.returncode == 2 and "--s3-url" in refused.stderr
    checked = nkx("store", "check", "--store", url, *moto.flags())
    assert checked.returncode == 0 and "2 blobs; 0 damaged" in checked.stdout, checked
    env = {**os.environ, "NKX_S3_URL": moto.flags()[1], "NKX_S3_CREDENTIALS": str(moto.credentials)}
    assert nkx("store", "backup", "--store", url, tmp_path / "copy.sqlite", env=env).returncode == 0
    with Server(*FLAGS, "--store", f"sqlite:{tmp_path}/copy.sqlite") as s:
        assert read(s, link).status == 200, "a backup has everything"


@pytest.mark.parametrize("flags, named", [
    (["--s3-url", "https://127.0.0.1/b"], "--s3-credentials"),
    (["--s3-url", "http://objects.example.org/b", "--s3-credentials", "/dev/null"], "use https://"),
    (["--s3-url", "https://127.0.0.1/b", "--s3-credentials", "/dev/null"], "aws_access_key_id"),
    (["--s3-url", "https://127.0.0.1/b", "--s3-credentials", "/nowhere"], "/nowhere"),
    (["--s3-url", "https://127.0.0.1/b?x=1", "--s3-credentials", "/dev/null"], "expected https://"),
])
def test_a_wrong_setting_is_named(flags, named, tmp_path):
    with pytest.raises(RuntimeError, match=named):
        Server(*flags, data=tmp_path)
