"""Every answer that is worth it is compressed for clients that accept it."""
import gzip
import json
import subprocess

import pytest
from support.clients import share
from support.paths import EXAMPLES
from support.server import JSON, JOB, Server

KERNEL = next(p for p in EXAMPLES if p.name.startswith("04_")).read_text()


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


@pytest.fixture(scope="module")
def paths(server):
    made = share(server, source=KERNEL, inputs=[]).json
    return {"snippet": f"/api/v1/snippets/{made['id']}", "source": made["raw_url"], "diff": f"/api/v1/snippets/{made['id']}/diff?from=28&to=42",
            "result": f"/api/v1/results/{made['key']}", "stage": f"/api/v1/results/{made['key']}/stages/44"}


def unpacked(answer):
    encoding = answer.headers["Content-Encoding"]
    assert encoding in ("gzip", "zstd") and "Accept-Encoding" in answer.headers.get_all("Vary")
    return gzip.decompress(answer.body) if encoding == "gzip" else subprocess.run(["zstd", "-dc"], input=answer.body, capture_output=True, check=True).stdout


@pytest.mark.parametrize("path", ["/api/v1/examples", "/api/v1/pipeline", "/api/v1/ops", "/api/v1/targets", "/api/openapi.json",
                                  "snippet", "diff", "result", "stage"])
def test_an_answer_is_the_same_in_each_encoding(server, paths, path):
    path = paths.get(path, path)
    plain = server.get(path)
    assert plain.status == 200 and plain.headers["Content-Encoding"] is None and len(plain.body) >= 1024
    for encoding in ("gzip", "zstd", "zstd, gzip, br"):
        packed = server.get(path, Accept_Encoding=encoding)
        assert unpacked(packed) == plain.body and len(packed.body) < len(plain.body)
    assert server.get(path, Accept_Encoding="gzip;q=0, br").body == plain.body


def test_a_whole_result_is_compressed(server):
    request = json.dumps(JOB)
    plain = server.request("POST", "/api/v1/compile", request, JSON)
    for encoding in ("gzip", "zstd"):
        packed = server.request("POST", "/api/v1/compile", request, {**JSON, "Accept-Encoding": encoding})
        assert unpacked(packed) == plain.body


def test_head_says_how_the_answer_would_be_packed(server):
    answer = server.request("HEAD", "/api/v1/examples", headers={"Accept-Encoding": "gzip"})
    assert answer.status == 200 and answer.headers["Content-Encoding"] == "gzip" and answer.body == b""


@pytest.mark.parametrize("path, status", [("/healthz", 200), ("/api/v1/nothing", 404)])
def test_a_small_answer_is_sent_as_it_is(server, path, status):
    answer = server.get(path, Accept_Encoding="gzip, zstd")
    assert answer.status == status and answer.headers["Content-Encoding"] is None and answer.json
