"""Links between the source and the stages, both ways, to the column.

What must be lit is worked out from the API's own answer, not from the page.
"""
import pytest
from playwright.sync_api import Page, expect

from support.marks import few
from support.page import compile_api, compiled, ir_lines, lit_text, open_stage, selected_stage, source_spot, write
from support.source_map import text_of

KERNEL = """import numpy as np
from nkigen import trace

def half(t):
    return t * 0.5

@trace(input_specs=[((8, 4), "f32"), ((8, 4), "f32")])
def pair(a, b):
    s = np.exp(a) + np.tanh(b)
    d = "ä𝛼", np.sqrt(np.abs(b))
    u = np.maximum(
        half(s),
        half(d[1]),
    )
    return u
"""


@pytest.fixture
def stages(server) -> list[dict]:
    result = compile_api(server, KERNEL, filename="kernel.py")
    assert result["status"] == "ok", result["diagnostics"]
    return result["kernels"][0]["stages"]


@pytest.fixture
def pair(page: Page) -> Page:
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("pair")
    compiled(page)
    open_stage(page, "trace")
    return page


def line_with(stage: dict, what: str) -> int:
    """Number (from 0) of the first line that holds `what`."""
    return next(i for i, text in enumerate(stage["text"].split("\n")) if what in text)


def innermost(stage: dict, line: int) -> list[dict]:
    return [r for r in stage["lines"][line].get("src", []) if r.get("depth", 0) == 0]


def hover_line(page: Page, line: int) -> None:
    page.locator("#ir-viewer .cm-line").nth(line).hover(position={"x": 30, "y": 6})


@pytest.mark.parametrize("op", few(["exponential(", "tanh(", " add(", "sqrt(", "abs(", "maximum("], 2))
def test_hovering_a_line_marks_its_exact_source(pair, stages, op):
    line = line_with(stages[0], op)
    ranges = innermost(stages[0], line)
    assert len(ranges) == 1, "the tracer gives one place"
    hover_line(pair, line)
    expect(pair.locator("#source-editor .lit-hover").first).to_be_visible()
    assert lit_text(pair, "lit-hover") == text_of(KERNEL, ranges[0])
    pair.mouse.move(2, 2)
    expect(pair.locator("#source-editor .lit-hover")).to_have_count(0)


@pytest.mark.parametrize(
    "needle,offset,op",
    [("np.exp(a)", 4, "exponential("), ("np.tanh(b)", 5, "tanh("), ("np.abs(b)", 4, "abs("), ("np.sqrt", 4, "sqrt(")],
)
def test_hovering_an_expression_lights_its_lines_and_no_others(pair, stages, needle, offset, op):
    pair.mouse.move(*source_spot(pair, needle, offset))
    expect(pair.locator("#ir-viewer .cm-line.lit-hover").first).to_be_visible()
    lit = ir_lines(pair, "lit-hover")
    wanted = innermost(stages[0], line_with(stages[0], op))[0]
    key = lambda r: (r["line"], r["col"], r["end_line"], r["end_col"])  # noqa: E731
    texts = stages[0]["text"].split("\n")
    assert lit == [
        texts[i] for i in range(len(stages[0]["lines"])) if key(wanted) in [key(r) for r in innermost(stages[0], i)]
    ]
    assert any(op in text for text in lit)


@pytest.mark.nightly
def test_columns_are_code_points_not_utf16_units(pair, stages):
    # a letter beyond the basic plane stands before sqrt on its line
    line = line_with(stages[0], "sqrt(")
    hover_line(pair, line)
    expect(pair.locator("#source-editor .lit-hover").first).to_be_visible()
    assert lit_text(pair, "lit-hover") == "np.sqrt(np.abs(b))"


def test_helper_functions_show_the_call_too(pair, stages):
    line = next(
        i
        for i, info in enumerate(stages[0]["lines"])
        if "multiply(" in stages[0]["text"].split("\n")[i] and len(info.get("src", [])) > 1
    )
    hover_line(pair, line)
    expect(pair.locator("#source-editor .lit-hover").first).to_be_visible()
    assert lit_text(pair, "lit-hover") == "t * 0.5"
    assert lit_text(pair, "lit-hover-caller") == "half(s)"
    # resting there, or choosing the line, spells the chain out
    pair.locator("#ir-viewer .cm-line").nth(line).click(position={"x": 30, "y": 6})
    expect(pair.locator(".history-places summary")).to_have_text("through 1 call")
    pair.locator(".history-places summary").click()
    expect(pair.locator(".history-places .places")).to_contain_text("called from")
    expect(pair.locator(".history-places .places")).to_contain_text("half(s)")


def test_a_click_on_a_line_keeps_the_choice_and_the_source_in_sight(pair, stages):
    line = line_with(stages[0], "tanh(")
    pair.locator("#ir-viewer .cm-line").nth(line).click(position={"x": 30, "y": 6})
    pair.mouse.move(2, 2)
    expect(pair.locator("#ir-viewer .cm-line.lit-selected")).to_have_count(1)
    assert lit_text(pair, "lit-selected") == "np.tanh(b)"
    expect(pair.locator("#history")).to_contain_text("np.tanh(b)")
    pair.keyboard.press("Escape")
    expect(pair.locator("#ir-viewer .cm-line.lit-selected")).to_have_count(0)


def test_a_click_on_an_expression_keeps_its_lines(pair):
    pair.mouse.click(*source_spot(pair, "np.exp(a)", 4))
    pair.mouse.move(2, 2)
    lit = ir_lines(pair, "lit-selected")
    assert any("exponential(" in line for line in lit)
    assert not any("tanh(" in line for line in lit)
    open_stage(pair, "hlo-to-linalg")
    assert any("exp" in line for line in ir_lines(pair, "lit-selected"))


def test_the_choice_follows_the_operation_through_all_stages(pair, stages):
    pair.keyboard.press("r")  # the full text, to compare with that of the API
    line = line_with(stages[0], "tanh(")
    pair.locator("#ir-viewer .cm-line").nth(line).click(position={"x": 30, "y": 6})
    # the operations that provenance leads to, from the API alone
    ops = {stages[0]["lines"][line]["op"]}
    for stage in stages[1:]:
        ops = {int(op) for op, came in stage["from"].items() if ops & set(came)}
        assert ops, f"provenance of tanh ends before {stage['name']}"
        pair.keyboard.press("j")
        expect(pair.locator("#ir-title")).to_contain_text(f"{stage['index']}{stage['name']}")
        texts = stage["text"].split("\n")
        wanted = [texts[i] for i, info in enumerate(stage["lines"]) if info.get("op") in ops]
        shown = ir_lines(pair, "lit-selected")
        assert shown and all(line in wanted for line in shown), stage["name"]
        assert any("tanh" in line for line in shown) or stage["dialect"] != "hlo"
        assert lit_text(pair, "lit-selected") == "np.tanh(b)"
        # and one of its lines is in sight: an operation's parts may lie further apart than the pane is high
        boxes = [line.bounding_box() for line in pair.locator("#ir-viewer .cm-line.lit-selected").all()]
        view = pair.locator("#ir-viewer").bounding_box()
        assert any(view["y"] <= box["y"] <= view["y"] + view["height"] for box in boxes)


def test_history_chips_lead_to_the_stages(pair, stages):
    line = line_with(stages[0], "tanh(")
    pair.locator("#ir-viewer .cm-line").nth(line).click(position={"x": 30, "y": 6})
    chips = pair.locator("#history .chip")
    assert chips.count() >= 3
    expect(chips.first).to_have_attribute("aria-current", "step")
    chips.last.click()
    assert selected_stage(pair) != "trace"
    expect(pair.locator("#history .chip").last).to_have_attribute("aria-current", "step")
    expect(pair.locator("#ir-viewer .cm-line.lit-selected").first).to_be_visible()


@pytest.mark.nightly
def test_one_colour_per_source_line_in_both_views(pair, stages):
    band = """(line) => [...line.classList].find((c) => /^band-\\d$/.test(c)) ?? null"""
    source = pair.locator("#source-editor .cm-line").evaluate_all(f"(ls) => ls.map({band})")
    ir = pair.locator("#ir-viewer .cm-line").evaluate_all(f"(ls) => ls.map({band})")
    linked = 0
    for i, info in enumerate(stages[0]["lines"]):
        if info.get("src"):
            assert ir[i] is not None and ir[i] == source[info["src"][0]["line"] - 1], stages[0]["text"].split("\n")[i]
            linked += 1
        else:
            assert ir[i] is None
    assert linked >= 6
    assert len({b for b in source if b}) >= 3


def test_the_choice_survives_an_edit_elsewhere(pair):
    pair.mouse.click(*source_spot(pair, "np.tanh(b)", 4))
    pair.locator("#source-editor .cm-content").press("Control+End")
    pair.keyboard.insert_text("# a remark\n")
    pair.wait_for_function("() => document.querySelectorAll('.stale').length === 0")
    compiled(pair)
    assert lit_text(pair, "lit-selected") == "np.tanh(b)"
    assert any("tanh(" in line for line in ir_lines(pair, "lit-selected"))


@pytest.mark.nightly
def test_marks_move_with_the_text_before_the_answer_comes(new_page, slow):
    page = new_page()
    page.goto(slow.url)
    compiled(page)
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("pair")
    compiled(page)
    open_stage(page, "trace")
    page.mouse.click(*source_spot(page, "np.tanh(b)", 4))
    slow.hold = True
    page.locator("#source-editor .cm-content").press("Control+Home")
    page.keyboard.insert_text("# one more line\n")
    assert lit_text(page, "lit-selected") == "np.tanh(b)"


def test_a_link_to_what_the_page_shows_is_opened_without_a_compile(pair):
    page = pair
    open_stage(page, "trace")
    page.wait_for_function("() => location.hash.includes('code=') && location.hash.includes('stage=trace')")
    link = page.evaluate("() => location.hash")
    open_stage(page, "one-shot-bufferize")
    page.wait_for_function("(link) => location.hash !== link", arg=link)
    compiles = []
    page.on("request", lambda r: r.url.endswith("/api/v1/compile") and compiles.append(r.url))
    page.evaluate("(link) => { location.hash = link; }", link)
    expect(page.locator("#ir-title")).to_contain_text("trace")
    page.evaluate("(link) => { location.hash = link; }", link.replace("stage=trace", "stage=engine-programs"))
    expect(page.locator("#ir-title")).to_contain_text("engine-programs")
    assert compiles == []
