"""Results in an S3 store beside PostgreSQL: over TLS, for two servers, and with a store that is slow, fails, or is not there yet."""
import time

import pytest

from support.clients import metric, nkx, read, remove, share
from support.faulty import Faulty
from support.moto import Moto
from support.server import ADD_ONE, FLOAT_INPUT, Server

# nothing is kept in memory, so that each answer is read from the store
FLAGS = ["--workers", "1", "--cache-s", "0", "--client-links", "0"]


@pytest.fixture(scope="module")
def moto():
    with Moto() as m:
        yield m


def source(n, what=""):
    return ADD_ONE.replace("+ 1", f"+ {n + 2}") + f"# {what}\n"


def compile_cached(server, text):
    answer = server.post({"source": text, "inputs": FLOAT_INPUT}, cache=None)
    assert answer.status == 200 and answer.json["status"] == "ok", answer.body
    return [(s["name"], s["text"]) for s in answer.json["kernels"][0]["stages"]]


def count(postgres, database, what):
    return int(postgres.run(f"SELECT COUNT(*) FROM {what}", database))


def wait_moved(server, postgres, database, n):
    """n: how many objects there are at least."""
    server.wait_until(lambda: count(postgres, database, "blobs WHERE object IS NOT NULL") >= n and not count(postgres, database, "blobs WHERE send_ms > 0")
                      and not count(postgres, database, "objects_gone"), "all to be moved", 60)


def test_two_servers_share_them_over_tls(postgres, tmp_path):
    url = postgres.new_database("tls")
    with Moto(with_tls=True) as moto:
        with Server(*FLAGS, "--store", url, *moto.flags()) as one, Server(*FLAGS, "--store", url, *moto.flags(), data=tmp_path) as two:
            link, first = share(one).json, compile_cached(one, source(1))
            wait_moved(one, postgres, "tls", 2)
            assert len(moto.objects()) == 2 and count(postgres, "tls", "blobs WHERE object IS NOT NULL AND length(data) > 0") == 0
            before = metric(two, 'nkx_objects_requests_total{method="get",outcome="done"}')
            assert compile_cached(two, source(1)) == first and read(two, link).status == 200
            assert metric(two, 'nkx_objects_requests_total{method="get",outcome="done"}') == before + 2, "read from the object store, not compiled"
            assert remove(two, link).status == 204
            two.wait_until(lambda: len(moto.objects()) == 1, "the link's object to be deleted", 10)
            checked = nkx("store", "check", "--store", url, *moto.flags())
            assert checked.returncode == 0 and "0 damaged" in checked.stdout, checked
        ca = moto.flags().index("--s3-ca-file")
        with Server(*FLAGS, "--store", url, *moto.flags()[:ca]) as without:
            assert compile_cached(without, source(1)) == first, "compiled anew"
            without.wait_for_log("objects", "state=away", "certificate")
            assert metric(without, 'nkx_objects_requests_total{method="get",outcome="done"}') == 0, "no request went to a server that nobody vouches for"


@pytest.mark.parametrize("how", ["late", "500", "SlowDown", "cut", "dribbled", "closed"])
def test_a_store_that_is_slow_or_fails_delays_or_loses_nothing(how, postgres, moto):
    database = f"objects_{how.lower()}"
    url, before = postgres.new_database(database), len(moto.objects())
    with Faulty(moto.port) as faulty, Server(*FLAGS, "--store", url, *moto.flags(port=faulty.port)) as s:
        old, known = share(s, ADD_ONE + f"# {how}\n").json, compile_cached(s, source(1, how))
        wait_moved(s, postgres, database, 2)
        assert len(moto.objects()) == before + 2
        faulty.how = how
        took = []
        for i, text in enumerate([source(1, how), *(source(k, f"{how} now") for k in range(5))]):
            began = time.monotonic()
            stages = compile_cached(s, text)
            took.append(time.monotonic() - began)
            assert i or stages == known, "compiled anew, because the stored one cannot be read"
        assert max(took) < 2 + 4 and sorted(took)[2] < 2, took
        began = time.monotonic()
        assert read(s, old).status == 503 and time.monotonic() - began < 3.5
        new = share(s, ADD_ONE + f"# {how} new\n").json
        assert read(s, new).status in (200, 503) and s.get("/readyz").status == 200
        s.wait_until(lambda: faulty.met(how) >= {"GET", "PUT"}, "the store to have been asked for both", 20)
        faulty.how = "well"
        s.wait_until(lambda: read(s, old).status == 200, "the link of before", 20)
        wait_moved(s, postgres, database, 2 + 6)
        assert read(s, new).status == 200 and metric(s, "nkx_objects_up") == 1
        assert len(moto.objects()) == before + count(postgres, database, "blobs WHERE object IS NOT NULL"), "none is left of what was sent in vain"
        checked = nkx("store", "check", "--store", url, *moto.flags())
        assert checked.returncode == 0 and "0 damaged" in checked.stdout, checked


def test_a_bucket_that_is_not_there_is_said_and_used_once_it_is(postgres, moto):
    url = postgres.new_database("bucket")
    with Server(*FLAGS, "--store", url, *moto.flags(bucket="later")) as s:
        link = share(s, ADD_ONE + "# bucket\n").json
        compile_cached(s, source(1, "bucket"))
        s.wait_for_log("objects", "state=away", "NoSuchBucket")
        assert read(s, link).status == 200 and s.get("/readyz").status == 200 and metric(s, "nkx_objects_up") == 0
        moto.create_bucket("later")
        wait_moved(s, postgres, "bucket", 2)
        s.wait_for_log("objects", "state=back")
        assert len(moto.objects("later")) == 2 and read(s, link).status == 200
