"""Every route: what it answers, in which form, and how it refuses."""
import json
import re

import pytest

from support import compiler
from support.paths import BUILD
from support.rules import FORCED, TABLE, is_priced
from support.server import ADD_ONE, CSP, FLOAT_INPUT


def test_pipeline_describes_every_stage_in_order(server):
    answer = server.get("/api/v1/pipeline")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    stages = answer.json["stages"]
    assert [s["index"] for s in stages] == list(range(len(stages)))
    assert stages[0]["name"] == "trace"
    assert all(s["name"] and s["phase"] and s["dialect"] and s["pass"] and s["summary"] for s in stages)
    assert answer.json["version"]
    shared = [s for s, line in zip(stages, compiler.pipeline(), strict=True) if line.startswith("STAGE(")]
    assert answer.json["reference_stages"] == [s | {"index": i} for i, s in enumerate(shared)]


def test_the_reference_pipeline_is_chosen_by_an_option_and_has_a_key_of_its_own(server):
    both = [server.compile(ADD_ONE, inputs=FLOAT_INPUT, options=o) for o in ({}, {"pipeline": "default"}, {"pipeline": "reference"})]
    assert [r["status"] for r in both] == ["ok"] * 3
    assert [r["kernels"][0]["pipeline"] for r in both] == ["hlo", "hlo", "reference"]
    assert both[0]["key"] == both[1]["key"] != both[2]["key"]
    names = [s["name"] for s in both[2]["kernels"][0]["stages"]]
    assert names == compiler.stage_names("reference")


def test_the_reference_pipeline_has_no_stages_of_our_own(server):
    own = [line.split('"')[1] for line in compiler.pipeline() if line.startswith("STAGE_OWN(")]
    for name in own:
        answer = server.post({"source": ADD_ONE, "options": {"pipeline": "reference", "stop_after": f"{name}:{own.count(name)}"}})
        assert answer.status == 400 and name in str(answer.body)
    answer = server.post({"source": ADD_ONE, "options": {"pipeline": "other"}})
    assert answer.status == 400 and "options.pipeline" in str(answer.body)


def test_rules_are_those_of_the_table_and_remarks_name_them(server):
    rules = server.get("/api/v1/rules").json["rules"]
    assert [(r["name"], r["pass"]) for r in rules] == TABLE
    assert {r["name"]: r.get("forced", "") for r in rules} == FORCED
    pipelines = server.get("/api/v1/pipeline").json
    passes = {s["pass"] for s in pipelines["stages"] + pipelines["nki_stages"]}
    assert {r["pass"] for r in rules} <= passes
    result = server.compile(ADD_ONE, inputs=FLOAT_INPUT)
    remarks = [r for k in result["kernels"] for s in k["stages"] for r in s.get("remarks", [])]
    assert remarks and {(r["rule"], r["pass"]) for r in remarks} <= set(TABLE)
    assert all(is_priced(r) or "forced" in r or FORCED[r["rule"]] for r in remarks)


def test_examples_have_a_name_a_title_and_the_source_of_the_tree(server):
    examples = server.get("/api/v1/examples").json["examples"]
    numpy, nki = (sorted((BUILD / "examples" / folder).glob("*.py")) for folder in (".", "nki"))
    assert [e["source"] for e in examples] == [f.read_text() for f in [*numpy, *nki]] and len(numpy) >= 11 and len(nki) == 12
    assert [e["name"] for e in examples] == [prefix + re.sub(r"^\d+[-_]", "", f.stem) for prefix, files in (("", numpy), ("nki_", nki)) for f in files]
    assert [e["group"] for e in examples] == ["NumPy"] * len(numpy) + ["NKI"] * len(nki)
    assert all(e["title"] and e["title"] != e["name"] for e in examples)


def test_every_example_compiles(server):
    for e in server.get("/api/v1/examples").json["examples"]:
        result = server.compile(e["source"], inputs=[], filename=e["name"] + ".py")
        assert result["status"] == "ok", (e["name"], result["diagnostics"])
        assert all(k["stages"] for k in result["kernels"])


def test_targets_state_the_machines_memories(server):
    targets = {t["name"]: t for t in server.get("/api/v1/targets").json["targets"]}
    assert list(targets) == ["trn1", "trn2", "trn3"]
    assert [t["sbuf"]["bytes"] >> 20 for t in targets.values()] == [24, 28, 32]
    assert [t["sbuf"]["usable_partition_bytes"] for t in targets.values()] == [180224, 212984, 245752]
    for t in targets.values():
        assert t["psum"]["bytes"] == 2 << 20 and t["psum"]["banks"] * t["psum"]["bank_bytes"] == 16 << 10


def test_health_names_the_walls_of_the_jail(server):
    jail = server.health["jail"]
    for layer in ("user", "mount", "pid", "net", "ipc", "uts", "seccomp", "rlimits", "no-capabilities"):
        assert jail[layer] is True


def test_compile_answers_with_the_whole_result(server):
    result = server.compile(ADD_ONE)
    assert result["version"] == 1 and result["status"] == "ok" and result["diagnostics"] == []
    assert result["language"] == "nkipy" and result["target"] == "trn2" and re.fullmatch("[0-9a-f]{64}", result["key"])
    (kernel,) = result["kernels"]
    assert kernel["name"] == "add_one" and kernel["inputs"][0]["shape"] == [8, 16]
    names = [s["name"] for s in server.get("/api/v1/pipeline").json["stages"]]
    assert [s["name"] for s in kernel["stages"]] == names
    assert "add" in kernel["stages"][0]["text"]


def run(frames):
    """The frames of the run itself; before them may come its place in the queue."""
    return [f for f in frames if f["frame"] != "queued"]


def test_frames_gather_to_the_same_result(server):
    body = {"source": ADD_ONE, "inputs": FLOAT_INPUT}
    whole = server.post(body).json
    answer = server.post(body, accept="application/x-ndjson")
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    frames = run([json.loads(line) for line in answer.body.decode().splitlines()])
    assert [f["frame"] for f in frames[:2]] == ["start", "kernel"] and frames[-1]["frame"] == "end"
    assert frames[0]["key"] == whole["key"] and frames[-1]["status"] == whole["status"] == "ok"
    stages = [f["stage"] for f in frames if f["frame"] == "stage"]
    assert [s["text"] for s in stages] == [s["text"] for s in whole["kernels"][0]["stages"]]


def test_server_sent_events_carry_the_same_frames(server):
    body = {"source": ADD_ONE, "inputs": FLOAT_INPUT}
    lines = server.post(body, accept="application/x-ndjson").body.decode().splitlines()
    answer = server.post(body, accept="text/event-stream")
    assert answer.headers["Content-Type"] == "text/event-stream"
    events = answer.body.decode().split("\n\n")
    assert events.pop() == ""
    assert all(e.startswith("data: ") and "\n" not in e for e in events)
    got, want = run([json.loads(e[6:]) for e in events]), run([json.loads(x) for x in lines])
    assert [f["frame"] for f in got] == [f["frame"] for f in want]
    assert [f["stage"]["text"] for f in got if f["frame"] == "stage"] == \
           [f["stage"]["text"] for f in want if f["frame"] == "stage"]


def test_a_kernel_that_fails_is_an_answer_not_an_http_error(server):
    result = server.compile("def k(x):\n    return x.nope()\n")
    assert result["status"] == "error" and result["diagnostics"][0]["severity"] == "error"


def test_stop_after_ends_the_stages_there(server):
    result = server.compile(ADD_ONE, options={"stop_after": "cse"})
    assert result["kernels"][0]["stages"][-1]["name"] == "cse"


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/v1/pipeline", "/api/v1/examples", "/api/v1/targets", "/nothing",
                                  "/api/v1/compile"])
def test_every_answer_carries_the_security_headers(server, path):
    h = server.get(path).headers
    assert h["Content-Security-Policy"] == CSP
    assert h["X-Content-Type-Options"] == "nosniff" and h["Referrer-Policy"] == "no-referrer"
    assert h["Cross-Origin-Opener-Policy"] == h["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Permissions-Policy" in h and "Access-Control-Allow-Origin" not in h


def test_head_answers_like_get_without_a_body(server):
    get, head = server.get("/api/v1/targets"), server.request("HEAD", "/api/v1/targets")
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == get.headers["Content-Length"]


def test_a_connection_serves_many_requests(server):
    c = server.connect()
    for _ in range(5):
        c.request("POST", "/api/v1/compile", json.dumps({"source": ADD_ONE, "inputs": FLOAT_INPUT}),
                  {"Content-Type": "application/json"})
        r = c.getresponse()
        assert r.status == 200 and json.loads(r.read())["status"] == "ok" and not r.will_close
        c.request("GET", "/healthz")
        r = c.getresponse()
        assert r.read() and not r.will_close
    c.close()


# ---- the page's files


def test_the_page_is_served_with_its_type_and_revalidated(server):
    page = server.get("/")
    assert page.status == 200 and page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"<" in page.body and page.headers["Cache-Control"] == "no-cache"
    again = server.get("/", If_None_Match=page.headers["ETag"])
    assert again.status == 304 and again.body == b""
    assert server.get("/index.html").body == page.body


def test_hashed_files_are_cached_for_good_and_sent_compressed(server):
    page = server.get("/").body.decode()
    scripts = re.findall(r'"/?((?:main|chunk)-[A-Z0-9]{8}\.js)"', page)
    if not scripts:
        pytest.skip("the page is not built here")
    path, plain = max(((f"/{name}", server.get(f"/{name}")) for name in scripts), key=lambda s: len(s[1].body))
    assert plain.headers["Content-Type"].startswith("text/javascript") and "immutable" in plain.headers["Cache-Control"]
    assert plain.headers["Content-Encoding"] is None and plain.headers["Vary"] == "Accept-Encoding"
    import gzip
    packed = server.get(path, Accept_Encoding="gzip")
    assert packed.headers["Content-Encoding"] == "gzip" and gzip.decompress(packed.body) == plain.body
    assert packed.headers["ETag"] != plain.headers["ETag"]
    best = server.get(path, Accept_Encoding="gzip, br")
    assert best.headers["Content-Encoding"] == "br" and len(best.body) < len(plain.body)
    refused = server.get(path, Accept_Encoding="br;q=0, gzip;q=0")
    assert refused.headers["Content-Encoding"] is None


@pytest.mark.parametrize("path", ["/../bin/nkx", "/%2e%2e/bin/nkx", "/..%2fbin/nkx", "/./index.html", "//index.html",
                                  "/index.html/", "/.hidden.html", "/index", "/version", "/a b.html", "/index.html%00.js"])
def test_only_plain_names_of_page_files_are_served(server, path):
    out = server.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert out == b"" or out[9:12] in (b"404", b"400")


# ---- refusals


def test_unknown_addresses_are_404(server):
    for method in ("GET", "POST"):
        answer = server.request(method, "/api/v1/nothing", "{}", {"Content-Type": "application/json"})
        assert answer.status == 404 and answer.error["code"] == "not-found"
        assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("method, path, allow", [
    ("GET", "/api/v1/compile", "POST"), ("PUT", "/api/v1/compile", "POST"), ("DELETE", "/api/v1/compile", "POST"),
    ("POST", "/healthz", "GET, HEAD"), ("POST", "/api/v1/examples", "GET, HEAD"),
    ("OPTIONS", "/api/v1/compile", "POST")])
def test_wrong_methods_are_405_and_named(server, method, path, allow):
    answer = server.request(method, path)
    assert answer.status == 405 and answer.headers["Allow"] == allow and answer.error["code"] == "method-not-allowed"


@pytest.mark.parametrize("content_type", ["text/plain", "application/jsonx", "application/x-www-form-urlencoded", ""])
def test_other_content_types_are_415(server, content_type):
    answer = server.post({"source": ""}, content_type=content_type)
    assert answer.status == 415 and answer.error["code"] == "media-type"


def test_compressed_bodies_are_415(server):
    answer = server.request("POST", "/api/v1/compile", "{}",
                            {"Content-Type": "application/json", "Content-Encoding": "gzip"})
    assert answer.status == 415


@pytest.mark.parametrize("body, where", [
    ("", ""), ("{", "line 1"), ('{"source":"a"} x', "line 1"), ('{"source":\n "a",\n}', "line 3"),
    ('{"source":"a","source":"b"}', "line 1"), ('{"source":"\\ud800"}', "line 1"), (b'{"source":"\xff"}', "line 1"),
    ("[" * 100 + "]" * 100, "nested"), ("[" * 500000, "nested")])
def test_bad_json_is_400_and_says_where(server, body, where):
    answer = server.post(body)
    assert answer.status == 400 and answer.error["code"] == "bad-json" and where in answer.error["message"]


@pytest.mark.parametrize("body, field", [
    ({}, "source"), ({"source": 1}, "source"), ({"source": "", "colour": "red"}, "colour"),
    ({"source": "", "target": "trn9"}, "target"), ({"source": "", "options": {"check": 1}}, "options.check"),
    ({"source": "", "options": {"stop_after": "nope"}}, "options.stop_after"),
    ({"source": "", "inputs": [{"shape": [-1], "dtype": "float32"}]}, "inputs[0].shape[0]"),
    ({"source": "", "inputs": [{"shape": [1], "dtype": "float7"}]}, "inputs[0].dtype")])
def test_wrong_fields_are_400_and_named(server, body, field):
    answer = server.post(body)
    assert answer.status == 400 and answer.error["code"] == "bad-field" and answer.error["field"] == field
    assert field in answer.error["message"]


def test_sources_up_to_the_limit_are_taken_and_one_more_is_413(server):
    limit = 256 << 10
    comment = "#" * (limit - len(ADD_ONE) - 1) + "\n"
    assert server.compile(comment + ADD_ONE)["status"] == "ok"
    answer = server.post({"source": comment + "#" + ADD_ONE, "inputs": FLOAT_INPUT})
    assert answer.status == 413 and answer.error["field"] == "source"


def test_bodies_up_to_the_limit_are_read_and_one_more_is_413(server):
    body = json.dumps({"source": ADD_ONE, "inputs": FLOAT_INPUT}).encode()
    limit = 1 << 20
    assert server.post(body + b" " * (limit - len(body))).status == 200
    answer = server.post(body + b" " * (limit + 1 - len(body)))
    assert answer.status == 413 and answer.error["code"] == "too-large"


def test_huge_declared_bodies_are_413_at_once(server):
    head = b"POST /api/v1/compile HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    assert server.raw(head + b"Content-Length: 10737418240\r\n\r\n{")[9:12] == b"413"


def test_endless_chunks_are_cut_off(server):
    head = (b"POST /api/v1/compile HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    try:
        server.raw(head + chunk * 400)
    except (BrokenPipeError, ConnectionResetError):
        pass
    assert server.health["status"] == "ok"


POST = "POST /api/v1/compile HTTP/1.1\r\n"
TYPE = "Content-Type: application/json\r\n"


@pytest.mark.parametrize("request_text", [
    POST + TYPE + "Host: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    POST + TYPE + "Host: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    POST + TYPE + "Host: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    POST + TYPE + "Host: x\r\nHost: y\r\nContent-Length: 2\r\n\r\n{}",
    POST + TYPE + "Content-Length: 2\r\n\r\n{}",
    POST + TYPE + "Host: x\r\nContent-Length: +2\r\n\r\n{}",
    POST + TYPE + "Host: x\r\nContent-Length: 0x2\r\n\r\n{}",
    POST + TYPE + "Host: x\r\nTransfer-Encoding: gzip\r\n\r\n",
    POST + TYPE + "Host: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    POST + TYPE + TYPE + "Host: x\r\nContent-Length: 2\r\n\r\n{}",
    "GET /healthz HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\n\r\n",
    "GET /healthz HTTP/1.1\r\n\r\n",
    "GET /healthz HTTP/2.7\r\nHost: x\r\n\r\n",
])
def test_ambiguous_framing_is_refused_and_the_connection_closed(server, request_text):
    out = server.raw(request_text.encode())
    # nothing but refusals; the library repeats the head of those it makes itself
    assert re.findall(rb"HTTP/1\.1 (\d)", out) in ([b"4"], [b"4", b"4"], [b"5"]), out


def test_long_headers_and_urls_are_refused(server):
    out = server.raw(b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert out == b"" or out[9:10] == b"4"
    out = server.raw(b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 1000000 + b"\r\n\r\n")
    assert out == b"" or out[9:10] == b"4"
    assert server.health["status"] == "ok"


HLO = """HloModule double

ENTRY main {
  x = f32[4,8]{1,0} parameter(0)
  ROOT y = f32[4,8]{1,0} add(x, x)
}
"""


def test_hlo_as_text_and_as_bytes_and_mlir_are_languages(server):
    text = server.compile(HLO, inputs=[], language="hlo", filename="double.hlo")
    assert text["status"] == "ok" and text["language"] == "hlo" and text["kernels"][0]["name"] == "double"
    answer = server.post({"source": HLO, "language": "hlo", "options": {"artifacts": True}}, accept="application/x-ndjson")
    frames = [json.loads(line) for line in answer.body.decode().splitlines()]
    (proto,) = [f["data"] for f in frames if f["frame"] == "artifact" and f["artifact"]["name"].endswith("hlo.pb")]
    binary = server.post({"source_base64": proto, "language": "hlo"}).json
    assert [s["text"] for s in binary["kernels"][0]["stages"]] == [s["text"] for s in text["kernels"][0]["stages"]]
    linalg = next(s for s in text["kernels"][0]["stages"] if s["name"] == "hlo-to-linalg")
    mlir = server.compile(linalg["text"], inputs=[], language="mlir")
    assert mlir["kernels"][0]["stages"][0]["index"] == linalg["index"] and mlir["status"] == "ok"


@pytest.mark.parametrize("body, field", [
    ({"source_base64": "AAAA"}, "source_base64"),
    ({"source_base64": "A", "language": "hlo"}, "source_base64"),
    ({"source_base64": "????", "language": "hlo"}, "source_base64"),
    ({"source_base64": "AAAA", "source": "", "language": "hlo"}, "source"),
    ({"language": "hlo"}, "source"),
])  # fmt: skip
def test_a_wrong_source_is_refused_by_its_field(server, body, field):
    answer = server.post(body)
    assert answer.status == 400 and field in answer.body.decode()
