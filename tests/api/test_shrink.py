"""POST /api/v1/compile with options.shrink: smaller forms of a request, which the sender compiles in turn."""
import json
import re

from support.markdown import blocks
from support.paths import ROOT
from support.refused import REFUSED, REQUEST


def post_to(server):
    def post(request):
        answer = server.post(request)
        assert answer.status == 200, answer.body
        return answer.json
    return post


def fault(result):
    """The first error, as the pages of the documentation say."""
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    return (errors[0]["code"], errors[0].get("stage"), re.sub(r"[\d.]", "", errors[0]["message"])) if errors else None


def test_an_answer_has_smaller_requests_and_runs_nothing(server):
    result = server.post({**REQUEST, "options": {**REQUEST["options"], "shrink": {}}}).json
    assert result["status"] == "ok" and result["kernels"] == [] and result["diagnostics"] == []
    candidates = result["shrink"]["candidates"]
    assert candidates[0] == {"what": "without the pipeline's change 'without dce'", "request": candidates[0]["request"], "then": 0}
    assert candidates[0]["request"]["options"].get("by_hand", []) == []
    assert any(c["request"].get("files") == [] and "return t * 0.5" in c["request"]["source"] for c in candidates)
    more = server.post({**REQUEST, "options": {"shrink": {"from": result["shrink"]["next"]}}}).json["shrink"]["candidates"]
    assert more and more[0] not in candidates
    assert server.post({**REQUEST, "options": {"shrink": {"from": 1 << 30}}}).json["shrink"] == {"candidates": []}


def test_the_loop_of_the_documentation_finds_a_small_kernel_with_the_fault(server):
    (loop,) = [b.text for b in blocks((ROOT / "docs/http-api.md").read_text()) if b.language == "py" and "def shrink" in b.text]
    names = {}
    exec(loop, names)
    small = names["shrink"](post_to(server), REQUEST, fault)
    assert small["files"] == [] and "np.convolve(x, x)" in small["source"] and len(small["source"].splitlines()) <= 7
    assert fault(post_to(server)(small)) == fault(post_to(server)(REQUEST))


def test_what_it_does_not_go_with_is_refused(server):
    for options in ({"shrink": 1}, {"shrink": {"from": -1}}, {"shrink": {"from": "0"}}, {"shrink": {"until": 3}}, {"shrink": {}, "upgrade": True},
                    {"shrink": {}, "tune": {}}, {"shrink": {}, "resume": {"stage": "cse", "text": ""}}):
        answer = server.post({**REQUEST, "options": options})
        assert answer.status == 400 and b"options.shrink" in answer.body, options
    assert server.request("POST", "/api/v1/snippets", json.dumps({**REQUEST, "options": {"shrink": {}}}), {"Content-Type": "application/json", "X-Nkx-Request": "1"}).status == 400


