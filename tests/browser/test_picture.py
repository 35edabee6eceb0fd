"""A stage as a picture: the data flow of HLO as a graph, the loops of MLIR as nested boxes."""
import re
import xml.etree.ElementTree as ElementTree

import pytest
from playwright.sync_api import expect

from support.page import at_rest, compiled, lit_text, open_stage, source_spot, write
from support.paths import EXAMPLES

HELPER_TWICE = """import numpy as np
from nkigen import trace


def norm(x):
    return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + 1e-5)


@trace(input_specs=[((128, 256), "f32"), ((256, 256), "f32")])
def twice(a, w):
    return norm(norm(a) @ w)
"""


def source_of_example(prefix):
    return next(p for p in EXAMPLES if p.name.startswith(prefix)).read_text()


def compile_source(page, source, name):
    write(page, source)
    expect(page.locator("#signature")).to_contain_text(name)
    compiled(page)


def drawn(page, stage):
    expect(page.locator(f'#picture[data-drawn="{stage}"] .sheet .box').first).to_be_attached()


def open_picture(page, stage):
    open_stage(page, stage)
    page.get_by_role("button", name="Picture of the stage").click()
    drawn(page, stage)


def box(page, title, detail=""):
    """The boxes with this title, and this in their second line."""
    has = page.locator(".box-title", has_text=re.compile(f"^{re.escape(title)}$"))
    found = page.locator(".sheet .box", has=has)
    return found.filter(has=page.locator(".box-detail", has_text=detail)) if detail else found


def fold(page, title):
    """Opens a closed group, or closes an open one, by its sign."""
    box(page, title).first.locator("[data-fold]").click()


@pytest.fixture
def page(new_page, server):
    """A window so tall that a whole picture is in sight: what is not, is not in the document."""
    page = new_page(1500, 2200)
    page.goto(server)
    compiled(page)
    return page


@pytest.fixture
def twice(page):
    compile_source(page, HELPER_TWICE, "twice")
    open_picture(page, "trace")
    return page


def test_two_calls_of_a_helper_are_two_groups_which_open_and_close(twice):
    page = twice
    expect(box(page, "norm")).to_have_count(2)
    expect(box(page, "sqrt")).to_have_count(2)
    fold(page, "norm")
    expect(box(page, "sqrt")).to_have_count(1)
    closed = box(page, "norm", "operations")
    expect(closed).to_have_count(1)
    closed.locator("[data-fold]").click()
    expect(box(page, "sqrt")).to_have_count(2)
    box(page, "norm").first.locator(".box-title").dblclick()
    expect(box(page, "sqrt")).to_have_count(1)


def test_a_click_on_an_operation_selects_its_line_and_its_expression(twice):
    page = twice
    box(page, "sqrt").first.locator(".box-title").click()
    expect(page.locator("#ir-viewer .lit-best")).to_contain_text("sqrt(")
    assert lit_text(page, "lit-selected").startswith("np.sqrt(")
    expect(page.locator(".picture-now")).to_contain_text("sqrt")
    page.mouse.click(*source_spot(page, "@ w"))
    expect(box(page, "dot lhs 1 rhs 0")).to_have_class(re.compile("lit-best"))
    page.locator("#ir-viewer .cm-line", has_text="sqrt(").first.hover()
    expect(box(page, "sqrt").first).to_have_class(re.compile("lit-hover"))


def test_a_click_on_a_group_selects_the_call(twice):
    page = twice
    fold(page, "norm")
    box(page, "norm", "operations").locator(".box-title").click()
    expect(page.locator("#ir-viewer .lit-selected").first).to_be_visible()
    assert lit_text(page, "lit-selected").startswith("norm(")


@pytest.mark.nightly
def test_constants_stand_in_the_operations_that_use_them_unless_asked_for(twice):
    page = twice
    expect(box(page, "add(·, 1e-05)")).to_have_count(2)
    page.get_by_role("button", name="Show constants as operations of their own").click()
    expect(box(page, "constant 1e-05")).to_have_count(2)
    expect(box(page, "add")).to_have_count(2)


@pytest.mark.nightly
def test_parameters_and_the_result_are_marked(twice):
    expect(box(twice, "a", "parameter 0 · 128×256 f32")).to_have_class(re.compile("box-parameter"))
    expect(twice.locator(".box-result .box-detail")).to_contain_text("128×256 f32")


@pytest.mark.nightly
def test_an_edge_says_what_flows_along_it(twice):
    page = twice
    page.get_by_role("button", name="text", exact=True).click()
    line = page.locator(".edge").nth(1).locator(".edge-line")
    tip = page.locator(".picture-tip")
    for _ in range(20):  # the drawing is fitted once more when its pane has grown
        page.mouse.move(*line.evaluate(
            """(path) => { const at = path.getPointAtLength(path.getTotalLength() / 2); const to = path.getScreenCTM();
                 return [at.x * to.a + to.e, at.y * to.d + to.f]; }"""))
        at_rest(page)
        if tip.is_visible():
            break
    expect(tip).to_have_text(re.compile(r"^\w+ · [\d×]+ f32"))


@pytest.mark.nightly
def test_a_while_loop_has_its_body_and_its_condition(page):
    compile_source(page, source_of_example("13_"), "attention_loop")
    open_picture(page, "trace")
    for title in ("body", "condition"):
        expect(box(page, title)).to_have_count(1)
    expect(box(page, "dot lhs 1 rhs 0")).to_have_count(1)
    expect(page.locator(".box-group .box-title", has_text="while")).to_have_count(1)


def test_linalg_is_drawn_as_the_loops_that_it_stands_for(page):
    compile_source(page, source_of_example("03_"), "softmax")
    open_picture(page, "hlo-to-linalg")
    expect(box(page, "linalg.exp")).to_have_count(1)
    expect(page.locator(".box-loop", has_text="reduction")).to_have_count(2)
    sums = page.locator(".box-detail", has_text=re.compile(r"← max\(%\w+\[d0, 0\], %arg0\[d0, d1\]\)"))
    expect(sums).to_have_count(1)
    sums.click()
    expect(page.locator("#ir-viewer .lit-best")).to_contain_text("linalg.generic")
    assert lit_text(page, "lit-selected").startswith("np.max(")


def test_loops_say_their_range_their_rounds_and_whether_they_are_parallel(page):
    compile_source(page, source_of_example("13_"), "attention_loop")
    open_picture(page, "legalize-layout")
    heads = page.locator(".box-loop .box-detail")
    expect(heads.filter(has_text="0..8 · 8 rounds · parallel")).to_have_count(2)  # the zeros, and the heads
    product = page.locator(".box-detail", has_text=re.compile(r"\[d0, d1\] \+= .* × "))
    expect(product).to_have_count(1)
    transposed = page.locator(".box-detail", has_text="%arg0[arg2, d1, d0]")
    expect(transposed).to_have_count(1)
    open_stage(page, "linalg-to-nisa")
    drawn(page, "linalg-to-nisa")
    expect(page.locator(".box-title", has_text="T  matmul")).to_have_count(1)
    expect(page.locator(".box-loop .box-detail", has_text="8 rounds").first).to_be_attached()


def test_the_keyboard_walks_opens_selects_zooms_and_closes(twice):
    page = twice
    sheet = page.locator(".sheet")
    sheet.focus()
    page.keyboard.press("ArrowDown")
    first = page.locator(".box.at .box-title").text_content()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".box.at .box-title")).not_to_have_text(first)
    page.keyboard.press(" ")
    expect(page.locator(".box.at")).to_have_class(re.compile("lit-selected"))
    expect(page.locator("#ir-viewer .lit-best")).to_have_count(1)
    before = page.locator(".sheet-svg > g").get_attribute("transform")
    page.keyboard.press("+")
    expect(page.locator(".sheet-svg > g")).not_to_have_attribute("transform", before)
    page.keyboard.press("t")
    expect(page.get_by_role("region", name="The picture as a table")).to_be_focused()
    page.keyboard.press("t")
    expect(sheet).to_be_focused()
    page.keyboard.press("j")
    drawn(page, "op-expander")
    page.keyboard.press("Escape")  # the selection
    page.keyboard.press("Escape")
    expect(page.locator("#picture")).to_be_hidden()
    expect(page.locator("#ir-viewer .cm-content")).to_be_focused()
    page.keyboard.press("f")
    expect(sheet).to_be_focused()


@pytest.mark.nightly
def test_the_wheel_moves_and_with_control_zooms(twice):
    page = twice
    view = page.locator(".sheet-svg > g")
    numbers = lambda: [float(n) for n in re.findall(r"-?[\d.]+", view.get_attribute("transform"))]  # noqa: E731
    page.locator(".sheet").hover()
    x, y, scale = numbers()
    page.mouse.wheel(0, 60)
    expect(view).to_have_attribute("transform", re.compile(rf"translate\({x:.0f} {y - 60:.0f}\)"))
    page.keyboard.down("Control")
    page.mouse.wheel(0, -60)
    page.keyboard.up("Control")
    page.wait_for_function("(s) => Number(/scale\\(([\\d.]+)/.exec(document.querySelector('.sheet-svg > g').getAttribute('transform'))[1]) > s", arg=scale)
    x, y, _ = numbers()
    page.mouse.move(*page.locator(".sheet").evaluate("(s) => { const r = s.getBoundingClientRect(); return [r.left + 12, r.bottom - 12]; }"))
    page.mouse.down()
    at = page.locator(".sheet").bounding_box()
    page.mouse.move(at["x"] + 62, at["y"] + at["height"] - 40, steps=4)
    page.mouse.up()
    page.wait_for_function("(x) => Number(/translate\\((-?\\d+)/.exec(document.querySelector('.sheet-svg > g').getAttribute('transform'))[1]) >= x + 40", arg=x)


@pytest.mark.nightly
def test_what_the_search_finds_is_lit_in_the_picture(twice):
    page = twice
    fold(page, "norm")
    page.locator(".sheet").focus()
    page.keyboard.press("Control+Shift+F")
    page.get_by_role("combobox", name="Search all stages").fill("dot(")
    expect(page.locator("#search-hits mark").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(box(page, "dot lhs 1 rhs 0")).to_have_class(re.compile("lit-hover"))


def test_the_table_has_every_operation_and_selects_too(twice):
    page = twice
    page.get_by_role("button", name="table", exact=True).click()
    table = page.get_by_role("region", name="The picture as a table")
    expect(table.locator("tbody th", has_text="sqrt")).to_have_count(2)
    row = table.locator("tbody tr", has_text="sqrt").first
    expect(row).to_contain_text("128×1 f32")
    row.get_by_role("button").click()
    expect(page.locator("#ir-viewer .lit-best")).to_contain_text("sqrt(")


def test_the_picture_is_saved_as_svg_and_png_with_all_boxes(twice):
    page = twice
    boxes = page.locator(".sheet .box").count()
    with page.expect_download() as download:
        page.get_by_role("button", name="SVG").click()
    assert download.value.suggested_filename == "twice-trace.svg"
    root = ElementTree.parse(download.value.path()).getroot()
    frames = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("class") == "frame"]
    assert len(frames) >= boxes and all(f.get("fill") for f in frames)
    assert "sqrt" in {t.text for t in root.iter("{http://www.w3.org/2000/svg}text")}
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    expect(page.locator(".sheet .box").first).to_be_visible()


def test_the_decoder_layer_is_an_overview_laid_out_by_a_worker(page):
    compile_source(page, source_of_example("12_"), "decoder_layer")
    open_picture(page, "trace")
    assert [w.url.rsplit("/", 1)[1].split("-")[0] for w in page.workers] == ["layout"]
    for helper, calls in (("rmsnorm", 2), ("attention", 1), ("feed_forward", 1)):
        expect(box(page, helper)).to_have_count(calls)
    fold(page, "attention")
    expect(box(page, "softmax")).to_have_count(1)
    page.get_by_role("button", name="Close the picture").click()
    page.wait_for_function("() => document.querySelector('#picture').hidden")
    assert page.workers == []


def test_two_thousand_operations_are_drawn_in_parts(page):
    lines = [f"  %op{i} = f32[128,128]{{1,0}} add(%{f'op{i - 1}' if i else 'x'}, %{f'op{i - 7}' if i > 6 else 'x'})" for i in range(2000)]
    lines[-1] = lines[-1].replace("  %", "  ROOT %")
    head = "HloModule many, entry_computation_layout={(f32[128,128]{1,0})->f32[128,128]{1,0}}\n\nENTRY %main (x: f32[128,128]) -> f32[128,128] {\n  %x = f32[128,128]{1,0} parameter(0)\n"
    page.get_by_label("Language").select_option(label="HLO")
    write(page, head + "\n".join(lines) + "\n}\n")
    expect(page.locator('#stages .stage[data-key="trace"] .ops')).to_have_text("2,001")
    open_picture(page, "trace")
    expect(page.locator(".picture-head .note")).to_contain_text("2001 operations")
    parts = page.locator(".box-group")
    assert 10 < parts.count() <= 60
    page.locator(".sheet").focus()
    page.keyboard.press("ArrowDown")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".box-group.open")).to_have_count(1)


def test_the_link_and_a_second_stage_know_of_the_picture(twice, new_page):
    page = twice
    page.wait_for_function("() => location.hash.includes('picture=1')")
    other = new_page()
    other.goto(page.url)
    compiled(other)
    drawn(other, "trace")
    page.get_by_role("button", name="A second stage beside this one").click()
    expect(page.locator("#beside .cm-line").first).to_be_visible()
    expect(page.locator("#picture")).to_be_hidden()
    page.get_by_role("button", name="Picture of the stage").click()
    drawn(page, "trace")
    expect(page.locator("#beside")).to_be_hidden()


@pytest.mark.nightly
def test_on_a_phone_the_picture_has_the_pane_and_nothing_leaves_it(new_page, server):
    page = new_page(390, 844)
    page.goto(server)
    compiled(page)
    page.locator("#switcher button", has_text="IR").click()
    page.keyboard.press("Home")
    page.get_by_role("button", name="Picture of the stage").click()
    drawn(page, "trace")
    expect(page.locator("#ir-viewer")).to_be_hidden()
    assert page.locator(".sheet").bounding_box()["height"] > 350
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth && document.querySelector('#picture').getBoundingClientRect().right <= innerWidth")
    page.get_by_role("button", name="fit", exact=True).click()
    box(page, "x").click()
    expect(box(page, "x")).to_have_class(re.compile("lit-selected"))
