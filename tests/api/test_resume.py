"""POST /api/v1/compile with options.resume: the pipeline goes on from a stage's text that somebody changed."""
import pytest

from support.clients import read, share

SOURCE = """import numpy as np
from nkigen import trace

@trace(input_specs=[((4, 8), "f32"), ((4, 8), "f32")])
def kernel(x, y):
    return np.exp(x * y) + y
"""


def stages(server, **options):
    return server.compile(SOURCE, inputs=[], options=options)["kernels"][0]["stages"]


def test_later_stages_come_from_the_text_and_a_link_keeps_it(server):
    before = stages(server)
    at = next(s for s in before if s["name"] == "hlo-to-linalg")
    resume = {"stage": "hlo-to-linalg", "text": at["text"].replace("linalg.exp", "linalg.tanh")}
    after = stages(server, resume=resume)
    assert [s["text"] for s in after[: at["index"]]] == [s["text"] for s in before[: at["index"]]]
    assert after[at["index"]]["edit"] == "here" and after[-1]["edit"] == "earlier"
    assert "op=tanh" in after[-1]["text"] and "op=tanh" not in before[-1]["text"]
    made = share(server, SOURCE, inputs=[], options={"resume": resume})
    assert made.status == 201, made.body
    stored = read(server, made.json).json
    assert stored["request"]["options"]["resume"] == resume
    assert stored["result"]["kernels"][0]["stages"][-1]["text"] == after[-1]["text"]


def test_the_second_kernel_s_stage_is_changed_alone(server):
    two = SOURCE + SOURCE.split("\n\n")[1].replace("kernel", "other")
    first, second = server.compile(two, inputs=[])["kernels"]
    text = second["stages"][0]["text"].replace("exponential(", "tanh(")
    a, b = server.compile(two, inputs=[], options={"resume": {"stage": "0", "text": text, "kernel": 1}})["kernels"]
    assert a["stages"][-1]["text"] == first["stages"][-1]["text"] and "op=tanh" in b["stages"][-1]["text"]


def test_a_value_is_that_of_the_changed_program(server):
    text = stages(server)[0]["text"].replace("exponential(", "tanh(")
    line = next(i for i, row in enumerate(text.split("\n"), 1) if "tanh(" in row)
    value = {"stage": "trace", "line": line}

    def largest(**options):
        [kernel] = server.compile(SOURCE, inputs=[], options={"value": value, **options})["kernels"]
        return kernel["value"]["max"]

    assert largest() > 1 > largest(resume={"stage": "trace", "text": text})


@pytest.mark.parametrize("resume, field", [
    ([], "options.resume"), ({"text": ""}, "options.resume.stage"), ({"stage": "dce"}, "options.resume.text"), ({"stage": "none", "text": ""}, "options.resume.stage"),
    ({"stage": "99", "text": ""}, "options.resume.stage"), ({"stage": "dce", "text": 1}, "options.resume.text"), ({"stage": "dce", "text": "a\0b"}, "options.resume.text"),
    ({"stage": "dce", "text": "", "kernel": -1}, "options.resume.kernel"), ({"stage": "dce", "text": "", "line": 1}, "options.resume.line"),
    ({"stage": "dce", "text": "x" * (513 << 10)}, "options.resume.text"),
])
def test_what_is_no_changed_stage_is_refused_by_field(server, resume, field):
    answer = server.post({"source": SOURCE, "options": {"resume": resume}})
    assert answer.status in (400, 413) and answer.error["field"] == field


def test_a_search_for_knobs_does_not_go_with_it(server):
    answer = server.post({"source": SOURCE, "options": {"tune": {}, "resume": {"stage": "dce", "text": ""}}})
    assert answer.status == 400 and answer.error["field"] == "options.resume"


def test_a_device_does_not_get_a_changed_stage(server):
    result = server.compile(SOURCE, inputs=[], options={"simulate": True, "for_device": True, "resume": {"stage": "dce", "text": ""}})
    assert [d["code"] for d in result["diagnostics"] if d["severity"] == "error"] == ["cannot-resume"]
