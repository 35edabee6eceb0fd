"""What goes wrong, whose fault it is, and what can be done."""
import json
import re

import pytest
import requests
from playwright.sync_api import expect

from support.own_kernel import SOURCE
from support.page import compile_api, compiled, write
from support.source_map import text_of

UNSUPPORTED = """import numpy as np
from nkigen import trace

@trace(input_specs=[((8, 8), "f32")])
def bad(a):
    x = np.exp(a)
    é = "𝛼"; y = np.linalg.svd(x)
    return y
"""

NO_SHAPES = """import numpy as np

def scaled(a, b):
    return a * 2.0 + b
"""

PRINTS = """import numpy as np
from nkigen import trace

@trace(input_specs=[((4, 4), "f32")])
def talk(a):
    print("shape is", a.shape)
    return a + 1.0
"""


def underlined(page) -> str:
    return "".join(page.locator("#source-editor .cm-lintRange-error").all_text_contents())


def test_an_error_is_underlined_at_its_range_and_listed(page, server):
    diagnostic = next(d for d in compile_api(server, UNSUPPORTED)["diagnostics"] if d["severity"] == "error")
    write(page, UNSUPPORTED)
    expect(page.locator("#source-editor .cm-lintRange-error").first).to_be_visible()
    assert underlined(page) == text_of(UNSUPPORTED, diagnostic["range"])
    assert "np.linalg.svd" in underlined(page)
    expect(page.locator("#source-editor .cm-lint-marker-error")).to_have_count(1)
    item = page.locator("#problems .problem-error")
    expect(item).to_have_count(1)
    expect(item).to_have_attribute("data-code", "unsupported-op")
    expect(item.locator(".message")).to_contain_text(diagnostic["message"])
    expect(page.locator("#status")).to_contain_text("1 error")
    expect(page.locator("#live")).to_contain_text("1 error")


def test_a_click_on_a_problem_selects_its_range(page, server):
    write(page, UNSUPPORTED)
    expect(page.locator("#problems .problem-error")).to_be_visible()
    page.locator("#problems .problem-error .message").click()
    expect(page.locator("#source-editor .cm-content")).to_be_focused()
    selected = page.evaluate("() => getSelection().toString()")
    diagnostic = next(d for d in compile_api(server, UNSUPPORTED)["diagnostics"] if d["severity"] == "error")
    assert selected == text_of(UNSUPPORTED, diagnostic["range"])


def test_a_corrected_error_disappears(page):
    write(page, UNSUPPORTED)
    expect(page.locator("#problems .problem-error")).to_be_visible()
    write(page, UNSUPPORTED.replace("np.linalg.svd", "np.tanh"))
    compiled(page)
    expect(page.locator("#problems .problem-error")).to_have_count(0)
    expect(page.locator("#source-editor .cm-lintRange-error")).to_have_count(0)


def test_a_syntax_error_is_shown_where_python_sees_it(page):
    write(page, "import numpy as np\n\ndef f(a:\n    return a\n")
    expect(page.locator("#problems .problem-error")).to_have_attribute("data-code", "python-syntax")
    expect(page.locator("#source-editor .cm-lintRange-error").first).to_be_visible()


def test_unknown_shapes_open_the_form_and_the_form_compiles(page):
    write(page, NO_SHAPES)
    form = page.locator("#inputs")
    expect(form).to_be_visible()
    expect(page.locator("#problems .problem-error")).to_have_attribute("data-code", "no-shapes")
    expect(page.locator("#problems").get_by_role("button", name="shrink")).to_have_count(0)  # nothing to find out
    names = [form.get_by_label(f"Name of input {i}").input_value() for i in (1, 2)]
    assert names == ["a", "b"]
    for i in (1, 2):
        form.get_by_label(f"Shape of input {i}").fill("16, 32")
    form.get_by_role("button", name="Use these").click()
    compiled(page)
    expect(page.locator("#signature")).to_contain_text("a f32[16×32], b f32[16×32]")
    expect(form.get_by_role("button", name="leave to the source")).to_be_visible()
    form.get_by_label("Data type of input 2").select_option("bfloat16")
    form.get_by_label("Data type of input 1").select_option("bfloat16")
    expect(page.locator("#signature")).to_contain_text("a bf16[16×32], b bf16[16×32]")


def rows_of(form) -> list[tuple[str, str]]:
    return [(r.locator("input.name").input_value(), r.locator("input.shape").input_value()) for r in form.locator(".input-row").all()]


def test_the_form_follows_the_parameters(page):
    """Of the function that the compiler means, which is not the first here."""
    form = page.locator("#inputs")
    source = "import numpy as np\ndef double(v):\n    return v + v\n\ndef f({0}):\n    return {1}\n"
    write(page, source.format("a, b", "double(a) + b"))
    expect(form.locator(".input-row")).to_have_count(2)
    for i in (1, 2):
        form.get_by_label(f"Shape of input {i}").fill("3, 5")
    write(page, source.format("a, gain, b", "double(a) * gain + b"))
    expect(form.locator(".input-row")).to_have_count(3)
    assert rows_of(form) == [("a", "3, 5"), ("gain", "128, 512"), ("b", "3, 5")]
    form.get_by_label("Shape of input 2").fill("5")
    form.get_by_role("button", name="Use these").click()
    compiled(page)
    expect(page.locator("#signature")).to_contain_text("a f32[3×5], gain f32[5], b f32[3×5]")
    write(page, source.format("a, scale", "double(a) * scale"))
    expect(form.locator(".input-row")).to_have_count(2)
    assert rows_of(form) == [("a", "3, 5"), ("scale", "5")]
    form.get_by_role("button", name="Compile").click()
    compiled(page)
    expect(page.locator("#signature")).to_contain_text("a f32[3×5], scale f32[5]")


@pytest.mark.nightly
def test_what_the_kernel_prints_is_shown(page):
    write(page, PRINTS)
    compiled(page)
    expect(page.locator("#problems .printed")).to_contain_text("shape is (4, 4)")
    expect(page.locator("#problems .problem")).to_have_count(0)


def answer_with(page, code: str, message: str) -> None:
    """Lets the next compile end in a fault that cannot be brought about at will."""
    frames = [
        {"frame": "start", "version": 1, "key": "0", "language": "nkipy", "target": "trn2", "pipeline": "1"},
        {"frame": "diagnostic", "diagnostic": {"severity": "error", "code": code, "message": message}},
        {"frame": "end", "status": "error", "time_us": 1},
    ]
    body = "".join(json.dumps(f) + "\n" for f in frames)
    page.route("**/api/v1/compile", lambda r: r.fulfill(content_type="application/x-ndjson", body=body))
    page.locator("body").press("Control+Enter")


def test_a_limit_is_not_called_the_readers_error(page):
    answer_with(page, "time-limit", "The job took more than 10 s of processor time and was stopped.")
    expect(page.locator("#problems .problem")).to_have_class(re.compile("blame-limit"))
    expect(page.locator("#problems .problem")).to_contain_text("10 s of processor time")
    expect(page.locator("#status")).to_contain_text("time limit")
    expect(page.locator("#status")).not_to_contain_text("error")


@pytest.mark.nightly
def test_a_fault_of_the_server_is_called_so(page):
    answer_with(page, "worker-died", "The process that compiled the kernel died.")
    expect(page.locator("#problems .problem")).to_contain_text("a fault in nkx, not in your kernel")
    expect(page.locator("#status")).to_contain_text("a fault of ours")


def test_a_lost_connection_is_reported_and_restored(new_page, slow, watch):
    page = new_page()
    page.goto(slow.url)
    compiled(page)
    watch.expect("Failed to load resource|ERR_")
    slow.cut = True
    write(page, PRINTS)
    expect(page.locator("#banner")).to_contain_text("Connection lost")
    expect(page.locator("#banner")).to_have_attribute("role", "alert")
    slow.cut = False
    page.locator("#banner").get_by_role("button", name="Compile again").or_(page.locator("#banner").get_by_text("Retry")).first.click()
    compiled(page)
    expect(page.locator("#banner")).to_be_empty()
    expect(page.locator("#signature")).to_contain_text("talk")


@pytest.mark.nightly
def test_the_place_in_the_queue_is_shown(page, server):
    def post():
        body = {"source": "import time\ntime.sleep(60)\n"}
        headers = {"accept": "application/x-ndjson", "cache-control": "no-store"}
        return requests.post(f"{server}/api/v1/compile", json=body, headers=headers, stream=True, timeout=60)

    held = []
    while requests.get(f"{server}/healthz", timeout=10).json()["waiting"] == 0:
        assert len(held) < 64
        held.append(post())  # returns with its first frame: it runs, or it waits
    write(page, PRINTS)
    expect(page.locator("#status")).to_have_text("waiting · 2nd in the queue")
    held.pop().close()
    expect(page.locator("#status")).to_have_text("waiting · 1st in the queue")
    for answer in held:
        answer.close()
    compiled(page)
    expect(page.locator("#signature")).to_contain_text("talk")


def test_a_refused_request_is_explained(page, watch):
    watch.expect("Failed to load resource")
    page.route("**/api/v1/compile", lambda route: route.fulfill(
        status=503, content_type="application/problem+json",
        body='{"error":{"code":"busy","message":"Too many jobs are waiting. Try again in a moment."}}',
    ))
    page.locator("body").press("Control+Enter")
    expect(page.locator("#banner")).to_contain_text(re.compile("limit of the service.*Too many jobs are waiting"))
    page.unroute("**/api/v1/compile")
    page.locator("#banner").get_by_text("Retry").click()
    compiled(page)


def test_what_was_traced_before_a_refusal_is_shown_and_long_chains_are_folded(page):
    calls = "def helper(a, depth):\n    return helper(a, depth - 1) if depth else np.linalg.svd(a)\n\n@trace"
    write(page, UNSUPPORTED.replace("@trace", calls).replace("np.linalg.svd(x)", "helper(x, 9)"))
    problem = page.locator("#problems .problem-error")
    expect(problem.locator("summary")).to_have_text("6 more calls")
    expect(problem.locator("> .problem-text > .call")).to_have_count(5)
    expect(page.locator("#ir-message")).to_contain_text("was refused in its trace")
    row = page.locator('#stages .stage[data-key="trace"]')
    expect(row).to_have_attribute("data-shape", "failed")
    expect(row).to_have_attribute("aria-label", re.compile("partial"))
    row.click()
    expect(page.locator("#ir-pane")).to_contain_text("exponential(%a)")


MLIR_TYPO = """func.func @f(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.expp ins(%a : tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
"""


@pytest.mark.nightly
def test_a_mistake_in_mlir_is_not_called_a_fault_of_ours(page):
    write(page, MLIR_TYPO)
    problem = page.locator("#problems .problem-error")
    expect(problem).to_have_attribute("data-code", "ir-invalid")
    expect(problem).to_have_class(re.compile("blame-kernel"))
    expect(page.locator("#status")).to_contain_text("1 error")


@pytest.mark.parametrize("source,advice", [
    ("import torch\n\ndef f(x):\n    return torch.relu(x)\n", "PyTorch"),
    ("import neuronxcc.nki as nki\n\n@nki.jit\ndef f(x):\n    return x\n", "NKI"),
    (NO_SHAPES, "the form above the source"),
])
def test_missing_shapes_are_explained_by_what_the_source_is(page, source, advice):
    write(page, source)
    expect(page.locator('#problems [data-code="no-shapes"]')).to_contain_text(advice)


def test_an_unreachable_server_is_not_the_kernels_fault(new_page, slow, watch):
    page = new_page()
    page.goto(slow.url)
    compiled(page)
    watch.expect("Failed to load resource|ERR_")
    slow.cut = True
    write(page, PRINTS)
    expect(page.locator("#ir-message")).to_contain_text("the server was not reached")
    slow.cut = False


@pytest.mark.nightly
def test_stages_of_another_kernel_are_named_and_lose_their_colours(page):
    write(page, UNSUPPORTED)
    message = page.locator("#ir-message")
    expect(message).to_contain_text("This is from matmul_bias_relu, the last kernel that compiled")
    page.locator('#stages .stage[data-key="linalg-to-nisa"]').click()
    colours = page.locator("#ir-viewer .cm-line.band").evaluate_all("(ls) => ls.map((l) => getComputedStyle(l).backgroundColor)")
    assert colours and set(colours) == {"rgba(0, 0, 0, 0)"}


def failing(page, at: int, name: str, error: dict) -> None:
    """Lets the next compile fail in the pass of that stage."""
    def answer(route):
        frames = [json.loads(line) for line in route.fetch().text().splitlines()]
        kept = [f for f in frames if f["frame"] not in ("stage", "end", "diagnostic") or f["frame"] == "stage" and f["stage"]["index"] < at]
        kept.append({"frame": "diagnostic", "diagnostic": {"severity": "error", "code": "pass-failed", "stage": name, "kernel": 0, **error}})
        kept.append({"frame": "end", "status": "error", "time_us": 1})
        route.fulfill(content_type="application/x-ndjson", body="".join(json.dumps(f) + "\n" for f in kept))

    page.route("**/api/v1/compile", answer)


def test_a_failed_pass_shows_the_operation_and_offers_a_reproducer(page, server):
    stages = compile_api(server, SOURCE, filename="kernel.py")["kernels"][0]["stages"]
    at = next(s["index"] for s in stages if s["name"] == "knob-driven-tiling")
    where = next(r for e in stages[0]["lines"] for r in e.get("src", []) if text_of(SOURCE, r) == "g @ w2")
    failing(page, at, "knob-driven-tiling", {"message": "no tile fits", "range": {k: where[k] for k in ("file", "line", "col", "end_line", "end_col")}})
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    write(page, SOURCE)
    expect(page.locator("#ir-message")).to_contain_text("knob-driven-tiling failed. no tile fits.")
    best = page.locator("#ir-viewer .lit-best")
    expect(best).to_contain_text("linalg.matmul")
    expect(best).to_be_in_viewport()
    page.get_by_role("button", name="copy reproducer").click()
    expect(page.locator("#live")).to_contain_text("Copied the IR before knob-driven-tiling")
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith("// knob-driven-tiling") and "no tile fits" in copied.split("\n")[0]
    assert copied.split("\n", 1)[1] == stages[at - 1]["text"]
