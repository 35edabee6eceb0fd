"""The diff between two stages: of one result, of two, of a snippet."""
import json

import pytest

from support.clients import share
from support.server import ADD_ONE, FLOAT_INPUT, JSON

TWICE = ADD_ONE.replace("x + 1", "x * 2 + 1")


@pytest.fixture(scope="module")
def results(server):
    return [server.compile(s, cache=None) for s in (ADD_ONE, TWICE)]


def diff(server, key, query, **headers):
    return server.get(f"/api/v1/results/{key}/diff?{query}", **headers)


def texts(result):
    return [s["text"] for s in result["kernels"][0]["stages"]]


def lines(text):
    return text.removesuffix("\n").split("\n")


def assert_covers(d, a, b):
    """Hunks are in order; between them both sides have as many lines; pairs are within their hunk."""
    a, b = lines(a), lines(b)
    assert (d["lines_from"], d["lines_to"]) == (len(a), len(b))
    at_from = at_to = 1
    for h in [*d["hunks"], {"from": {"line": len(a) + 1, "count": 0}, "to": {"line": len(b) + 1, "count": 0}, "pairs": []}]:
        f, t = h["from"], h["to"]
        assert f["line"] - at_from == t["line"] - at_to >= 0
        for p in h["pairs"]:
            assert f["line"] <= p["from"] < f["line"] + f["count"] and t["line"] <= p["to"] < t["line"] + t["count"]
            for side, text in (("words_from", a[p["from"] - 1]), ("words_to", b[p["to"] - 1])):
                assert all(1 <= s < e <= len(text) + 1 for s, e in p[side])
        at_from, at_to = f["line"] + f["count"], t["line"] + t["count"]
    assert sum(len(h["pairs"]) for h in d["hunks"]) == d["changed"]


def test_any_two_stages_are_compared(server, results):
    stages = texts(results[0])
    for a, b in ((0, 1), (3, 4), (len(stages) - 1, 5), (0, len(stages) - 1)):
        answer = diff(server, results[0]["key"], f"from={a}&to={b}")
        assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
        assert_covers(answer.json, stages[a], stages[b])
    assert diff(server, results[0]["key"], f"from=0&to={len(stages) - 1}").json["hunks"]


def test_a_stage_compared_with_itself_has_no_hunks(server, results):
    d = diff(server, results[0]["key"], "from=4&to=4").json
    assert d["hunks"] == [] and d["changed"] == d["removed"] == d["added"] == 0


def test_a_stage_is_named_by_its_number_its_name_or_its_place_among_those_of_the_name(server, results):
    key, stages = results[0]["key"], results[0]["kernels"][0]["stages"]
    names = [s["name"] for s in stages]
    twice = next(n for n in names if names.count(n) > 1)
    first, second = [i for i, n in enumerate(names) if n == twice][:2]
    by_number = diff(server, key, f"from={first}&to={second}").json
    assert by_number == diff(server, key, f"from={twice}&to={twice}:2").json
    assert by_number == diff(server, key, f"from={twice}:1&to={second}&kernel=0").json


def test_two_results_are_compared(server, results):
    one, two = results
    last = len(texts(one)) - 1
    d = diff(server, one["key"], f"from={last}&to={last}&with={two['key']}").json
    assert_covers(d, texts(one)[last], texts(two)[last])
    assert d["hunks"] and d != diff(server, two["key"], f"from={last}&to={last}&with={one['key']}").json
    assert diff(server, one["key"], f"from=1&to=2&with={one['key']}").json == diff(server, one["key"], "from=1&to=2").json


def test_a_kernel_is_chosen_by_its_number(server):
    two = server.compile(
        "import numpy as np\nfrom nkigen import trace\n\n"
        + "".join(f"@trace(input_specs=[((8, 4), 'f32')])\ndef k{i}(x):\n    return np.exp(x) * {i + 2}\n\n" for i in range(2)),
        inputs=[], cache=None)
    assert len(two["kernels"]) == 2
    for k in (0, 1):
        stages = [s["text"] for s in two["kernels"][k]["stages"]]
        assert_covers(diff(server, two["key"], f"from=0&to=9&kernel={k}").json, stages[0], stages[9])
    assert diff(server, two["key"], "from=0&to=9&kernel=2").status == 404


@pytest.mark.parametrize("query, field", [
    ("", "from"), ("from=1", "to"), ("to=1", "from"), ("from=&to=1", "from"), ("from=1&to=:2", "to"), ("from=a:0&to=1", "from"),
    ("from=a:x&to=1", "from"), ("from=1&to=2&kernel=x", "kernel"), ("from=1&to=2&with=abc", "with"),
    ("from=1&to=2&with=" + "g" * 64, "with"), ("from=1&to=2&with=", "with")])
def test_a_wrong_query_is_refused_with_its_field(server, results, query, field):
    answer = diff(server, results[0]["key"], query)
    assert answer.status == 400 and answer.error["field"] == field and answer.error["code"] == "bad-field"


@pytest.mark.parametrize("query, field", [
    ("from=99&to=1", "from"), ("from=1&to=999", "to"), ("from=no-such-pass&to=1", "from"), ("from=1&to=cse:9", "to"),
    ("from=1&to=123456", "to"), ("from=1&to=2&kernel=7", "from")])
def test_a_stage_that_is_not_there_is_not_found(server, results, query, field):
    answer = diff(server, results[0]["key"], query)
    assert answer.status == 404 and answer.error["field"] == field


def test_a_result_that_is_not_there_is_not_found(server, results):
    unknown = "0" * 64
    assert diff(server, unknown, "from=1&to=2").status == 404
    assert diff(server, results[0]["key"], f"from=1&to=2&with={unknown}").status == 404
    assert server.get(f"/api/v1/results/{results[0]['key']}/diff/x?from=1&to=2").status == 404


def test_a_diff_is_tagged_and_packed_like_other_parts(server, results):
    # every other line differs, so that there are many hunks
    loop = "import numpy as np\n\ndef f(x):\n    for i in range(24):\n        x = np.exp(x * %s)\n    return x\n"
    key, other = (server.compile(loop % n, cache=None)["key"] for n in ("2.0", "x"))
    query = f"from=0&to=0&with={other}"
    plain = diff(server, key, query)
    packed = diff(server, key, query, Accept_Encoding="zstd")
    assert packed.headers["Content-Encoding"] == "zstd" and len(packed.body) < len(plain.body)
    again = diff(server, key, query, If_None_Match=plain.headers["ETag"])
    assert again.status == 304 and again.body == b""
    assert diff(server, key, "from=0&to=1", If_None_Match=plain.headers["ETag"]).status == 200


def test_a_snippets_frozen_stages_are_compared(server):
    made = share(server, TWICE).json
    frozen = server.get(f"/api/v1/snippets/{made['id']}").json["result"]
    answer = server.get(f"/api/v1/snippets/{made['id']}/diff?from=hlo-to-linalg&to=9")
    at = [s["name"] for s in frozen["kernels"][0]["stages"]].index("hlo-to-linalg")
    assert_covers(answer.json, texts(frozen)[at], texts(frozen)[9])
    assert answer.headers["Cache-Control"] == "no-store"
    assert server.get(f"/api/v1/snippets/{made['id']}/diff?from=1").error["field"] == "to"
    assert server.get(f"/api/v1/snippets/{made['id']}/diff?from=1&to=99").error["field"] == "to"
    gone = "/api/v1/snippets/" + "A" * 22 + "/diff?from=1&to=2"
    assert server.get(gone).status == 404 and "field" not in server.get(gone).error


def test_a_diff_of_a_run_that_goes_on_comes_at_its_end(server):
    c = server.connect()
    c.request("POST", "/api/v1/compile", json.dumps({"source": "import time\ntime.sleep(0.6)\n" + ADD_ONE + "# waits\n", "inputs": FLOAT_INPUT}),
              {**JSON, "Accept": "application/x-ndjson"})
    stream = c.getresponse()
    start = next(f for f in map(json.loads, stream) if f["frame"] == "start")
    assert server.health["running"] == 1
    assert diff(server, start["key"], "from=0&to=1").status == 200
    assert b'"frame":"end","status":"ok"' in stream.read()
    c.close()
