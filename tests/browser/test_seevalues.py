"""The drawer below the stage's text: what a value holds is what the API says, and it follows the selection."""
import json
import re

import pytest
import requests
from playwright.sync_api import expect

from support.page import compiled, open_stage, write

SMALL = """import numpy as np
from nkigen import trace

@trace(input_specs=[((6, 8), "bf16"), ((300,), "f32"), ((3, 4, 96, 80), "f32")])
def small(a, b, c):
    m = a > 0
    d = np.exp(c)
    return np.where(m, a, 0.0) * 2.0, np.sum(b), m, d
"""
TILED = """import numpy as np
from nkigen import trace, knob

@trace(input_specs=[((1024, 512), "f32"), ((512, 1024), "f32")])
def tiled(x, w):
    p = np.matmul(x, w)
    knob.knob(p).tile_op(tile_size=[128, 512])
    return np.maximum(p, 0.0)
"""
PRODUCTS = 8 * 2 * 4  # tiles of rows, of columns, of what is summed
FACTS = """() => Object.fromEntries([...document.querySelectorAll('.value-facts dt')].map((n) => [n.textContent, n.nextElementSibling.textContent]))"""


def value_of(server, source, stage, **query):
    """The value as the API says it, of the only kernel."""
    job = {"source": source, "options": {"value": {"stage": stage, **query}}}
    return requests.post(f"{server}/api/v1/compile", json=job, timeout=60).json()["kernels"][0]["value"]


@pytest.fixture
def opened(page):
    """Opens a kernel at a stage."""
    def open_at(source, stage):
        write(page, source)
        expect(page.locator("#signature")).to_contain_text(re.search(r"def (\w+)\(", source)[1] + "(")
        compiled(page)
        open_stage(page, stage)
        return page

    return open_at


def line(page, text):
    return page.locator("#ir-viewer .cm-line", has_text=text).first


def look_at(page, text):
    """Clicks a line left of its names, and opens the drawer."""
    line(page, text).click(position={"x": 4, "y": 6})
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("v")
    expect(page.locator("#inspect .inspect-title")).not_to_be_empty()


def picked(page):
    return page.locator(".value-pick[aria-pressed=true]")


def facts(page, name):
    return page.locator(f".value-facts dt:text-is('{name}') + dd")


def cells(page):
    return page.locator(".elements .grid tbody tr").evaluate_all("(rows) => rows.map((r) => [...r.querySelectorAll('td')].map((c) => c.textContent))")


def test_it_shows_what_the_api_says_of_a_value(opened, server):
    page = opened(SMALL, "trace")
    look_at(page, "select(")
    name = picked(page).inner_text()
    v = value_of(server, SMALL, "0", name=name)
    expect(facts(page, "shape")).to_have_text("6 × 8")
    expect(facts(page, "type")).to_have_text("bfloat16")
    expect(facts(page, "zero")).to_contain_text(f"{v['zero']} (")
    assert float(facts(page, "max").inner_text()) == pytest.approx(v["max"], rel=1e-4)
    expect(page.locator(".heat-map")).to_be_visible()
    expect(page.locator(".value-bars svg .bar")).to_have_count(sum(n > 0 for n in v["histogram"]["counts"]))
    shown = cells(page)
    assert len(shown) == 6 and [float(x) for row in shown for x in row] == pytest.approx(v["slice"]["data"], rel=1e-4)


@pytest.mark.nightly
def test_scalars_booleans_and_long_rows_are_shown(opened):
    page = opened(SMALL, "trace")
    look_at(page, "reduce(")
    expect(facts(page, "shape")).to_have_text("scalar")
    expect(page.locator(".elements .grid td")).to_have_count(1)
    expect(page.locator(".heat-map")).to_be_hidden()
    page.locator(".value-pick", has_text="%b").click()
    expect(facts(page, "shape")).to_have_text("300")
    expect(page.locator(".elements .grid tbody th")).to_have_text([str(8 * i) for i in range(8)])
    line(page, "compare(").click(position={"x": 4, "y": 6})
    expect(facts(page, "shape")).to_have_text("6 × 8")
    expect(page.locator(".elements .grid td:text-is('1')").first).to_be_visible()


def test_it_follows_the_selection_and_the_stage(opened):
    page = opened(SMALL, "trace")
    look_at(page, "exponential(")
    expect(facts(page, "shape")).to_have_text("3 × 4 × 96 × 80")
    line(page, "compare(").click(position={"x": 4, "y": 6})
    expect(facts(page, "shape")).to_have_text("6 × 8")
    before = page.locator(".inspect-title").inner_text()
    open_stage(page, "hlo-to-linalg")
    expect(page.locator(".inspect-title")).to_contain_text("hlo-to-linalg")
    assert page.locator(".inspect-title").inner_text() != before
    expect(facts(page, "shape")).to_have_text("6 × 8")


def test_a_name_at_the_caret_is_what_it_shows(opened):
    page = opened(SMALL, "trace")
    line(page, "exponential(").locator(".ir-value", has_text="%c").click()
    page.keyboard.press("v")
    expect(picked(page)).to_have_text("%c")
    expect(facts(page, "min")).to_contain_text("-")
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("v")
    expect(page.locator("#inspect")).to_be_hidden()


@pytest.mark.nightly
def test_of_a_line_that_returns_it_shows_what_is_returned(opened):
    page = opened(TILED, "engine-programs")
    look_at(page, "return %")
    expect(picked(page)).to_have_text(re.compile(r"^%\w+$"))
    expect(page.locator(".value-pick", has_text="what it writes")).to_have_count(0)
    expect(facts(page, "shape")).to_have_text("1,024 × 1,024")


def test_a_newer_request_replaces_the_older_one(opened):
    page = opened(SMALL, "trace")
    look_at(page, "exponential(")
    expect(facts(page, "shape")).to_have_text("3 × 4 × 96 × 80")
    held, failed = [], []
    page.on("requestfailed", lambda r: failed.append(r.failure))

    def hold(route):
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/api/v1/compile", hold)
    line(page, "compare(").click(position={"x": 4, "y": 6})
    expect(page.locator(".values .value-message:not([hidden])")).to_have_text("The value is being computed…")
    line(page, "reduce(").click(position={"x": 4, "y": 6})
    expect(facts(page, "shape")).to_have_text("scalar")
    expect(page.locator(".values .value-message")).to_be_hidden()
    assert failed and "ABORTED" in failed[0]
    page.unroute("**/api/v1/compile")


def test_it_says_why_there_is_no_value(opened, server):
    page = opened(SMALL, "trace")
    look_at(page, "ROOT %add_float32_result")
    reason = value_of(server, SMALL, "0", name=picked(page).inner_text())["reason"]
    expect(page.locator(".values .value-message:not([hidden])")).to_have_text(f"There is no value: {reason}.")
    expect(page.locator(".value-content")).to_be_hidden()


def test_the_pages_of_a_tensor_are_walked_in_every_dimension(opened, server):
    page = opened(SMALL, "trace")
    look_at(page, "exponential(")
    name = picked(page).inner_text()
    groups = page.locator(".elements [role=group]")
    expect(groups).to_have_count(4)
    page.get_by_role("textbox", name="First element of dimension 0").fill("2")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="On in dimension 1", exact=True).click()
    expect(page.get_by_role("textbox", name="First element of dimension 1")).to_have_value("1")
    page.get_by_role("button", name="On in dimension 2", exact=True).click()
    page.get_by_role("button", name="On in dimension 2", exact=True).click()
    page.get_by_role("button", name="On in dimension 3", exact=True).click()
    expect(page.locator(".elements .grid tbody th").first).to_have_text("64")
    expect(page.locator(".elements .grid thead th").first).to_have_text("32")
    expect(page.locator(".inspect-body[aria-busy]")).to_have_count(0)
    v = value_of(server, SMALL, "0", name=name, slice=[{"start": 2, "stop": 3}, {"start": 1, "stop": 2}, {"start": 64, "stop": 96}, {"start": 32, "stop": 64}])
    assert [float(x) for row in cells(page) for x in row] == pytest.approx(v["slice"]["data"], rel=1e-4)
    # the focus stays on the button that was pressed, for the keyboard
    expect(page.get_by_role("button", name="On in dimension 3", exact=True)).to_be_focused()


@pytest.mark.nightly
def test_a_cell_of_the_heat_map_opens_its_elements(opened):
    page = opened(SMALL, "trace")
    look_at(page, "exponential(")
    expect(facts(page, "shape")).to_have_text("3 × 4 × 96 × 80")
    canvas = page.locator(".heat-map")
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] - 3, "y": 100})
    expect(page.locator(".elements .grid thead th").first).to_have_text("64")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".value-heat figcaption")).to_contain_text("[0, 0, ")
    assert re.search(r"\]: (mean )?-?[\d.e+-]+$", page.locator(".value-heat figcaption").inner_text())


def test_the_executions_of_a_loop_are_stepped_through(opened, server):
    page = opened(TILED, "engine-programs")
    page.locator("#ir-viewer .cm-line", has_text="+= ").first.click(position={"x": 4, "y": 6})
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("v")
    expect(page.locator(".values .value-rounds")).to_contain_text(f"of {PRODUCTS}")
    expect(page.get_by_role("textbox", name="Execution")).to_have_value(str(PRODUCTS))
    at = int(re.search(r"line (\d+)", page.locator(".inspect-title").inner_text())[1])
    page.get_by_role("button", name="Previous execution").click()
    expect(page.get_by_role("textbox", name="Execution")).to_have_value(str(PRODUCTS - 1))
    page.locator(".inspect-body.values").focus()
    page.keyboard.press("[")
    expect(page.get_by_role("textbox", name="Execution")).to_have_value(str(PRODUCTS - 2))
    stage = int(re.search(r"\d+", page.locator(".inspect-title").inner_text())[0])
    v = value_of(server, TILED, str(stage), line=at, execution=PRODUCTS - 2)
    assert float(facts(page, "max").inner_text()) == pytest.approx(v["max"], rel=1e-4)
    # an operand that the instruction reads, in a table of partitions
    page.locator(".value-pick", has_text="moving").click()
    expect(page.locator(".value-heat figcaption")).to_contain_text("dimension 0 down")


def test_the_first_element_that_parts_from_the_reference_is_marked(opened):
    page = opened(SMALL, "trace")

    def part(route):
        answer = route.fetch()
        body = answer.json()
        for k in body["kernels"]:
            if "reference" in k.get("value", {}):
                k["value"]["reference"].update({"pass": False, "differs": {"index": [0, 0, 70, 40], "got": 1.5, "want": 2}})
        route.fulfill(response=answer, body=json.dumps(body))

    page.route("**/api/v1/compile", part)
    look_at(page, "exponential(")
    expect(page.locator(".value-verdict.fail")).to_contain_text("first at [0, 0, 70, 40]: it is 1.5, it should be 2")
    page.get_by_role("button", name="[0, 0, 70, 40]").click()
    expect(page.locator(".elements .grid tbody th").first).to_have_text("64")
    expect(page.locator(".elements td.wrong")).to_have_count(1)
    page.locator(".value-verdict button", has_text="(line ").click()
    expect(page.locator("#ir-title")).to_contain_text("trace")


def test_an_output_equals_numpys(opened):
    page = opened(SMALL, "trace")
    look_at(page, "exponential(")
    expect(page.locator(".value-verdict.pass")).to_contain_text("equals NumPy's")


def test_the_pictures_have_tables_and_are_saved(opened):
    page = opened(SMALL, "trace")
    look_at(page, "exponential(")
    expect(page.locator(".value-bars svg")).to_be_visible()
    for label, ending in (("PNG", ".png"), ("SVG", ".svg"), ("CSV", ".csv")):
        with page.expect_download() as saved:
            page.get_by_role("button", name=label, exact=True).click()
        assert saved.value.suggested_filename.endswith(ending)
    page.locator(".inspect-body.values").focus()
    page.keyboard.press("t")
    expect(page.locator(".values .value-twin caption")).to_contain_text("Means of 6×5 elements")
    expect(page.locator(".value-bars tbody tr")).to_have_count(32)
    expect(page.locator(".heat-map")).to_be_hidden()


def test_inputs_that_the_user_gave_are_the_ones_it_computes_with(page):
    write(page, "import numpy as np\n\ndef given(a):\n    return np.exp(a)\n")
    expect(page.locator("#inputs input").first).to_be_visible()
    page.locator("#inputs input[aria-label*=hape], #inputs input").nth(1).fill("5, 7")
    page.keyboard.press("Enter")
    compiled(page)
    open_stage(page, "trace")
    look_at(page, "exponential(")
    expect(facts(page, "shape")).to_have_text("5 × 7")


@pytest.mark.nightly
def test_nothing_is_asked_of_a_kernel_that_does_not_compile(opened):
    page = opened(SMALL, "trace")
    look_at(page, "exponential(")
    expect(facts(page, "shape")).to_have_text("3 × 4 × 96 × 80")
    asked = []
    page.on("request", lambda r: asked.append(r) if '"value"' in (r.post_data or "") else None)
    write(page, SMALL.replace("np.exp", "np.expp"))
    expect(page.locator(".values .value-message:not([hidden])")).to_have_text("The kernel did not compile.")
    assert asked == []
    write(page, SMALL.replace("(3, 4, 96, 80)", "(3, 4, 96, 72)"))
    expect(facts(page, "shape")).to_have_text("3 × 4 × 96 × 72")


def test_it_opens_from_the_card_the_button_and_the_palette_and_closes_with_escape(opened):
    page = opened(SMALL, "trace")
    line(page, "exponential(").click(position={"x": 4, "y": 6})
    page.mouse.move(2, 2)
    page.keyboard.press("i")
    page.locator(".cm-tooltip .card-looks button", has_text="values").click()
    expect(facts(page, "shape")).to_have_text("3 × 4 × 96 × 80")
    page.locator(".inspect-body.values").focus()
    page.keyboard.press("Escape")
    expect(page.locator("#inspect")).to_be_hidden()
    expect(page.locator("#ir-viewer .cm-content")).to_be_focused()
    page.get_by_role("button", name="What the selected line computes or writes").click()
    expect(page.locator("#inspect")).to_be_visible()
    page.get_by_role("button", name="Close the drawer").click()
    expect(page.locator("#inspect")).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.locator("dialog.palette input")).to_be_focused()
    page.keyboard.type("values of what")
    page.keyboard.press("Enter")
    expect(page.locator("#inspect")).to_be_visible()


@pytest.mark.nightly
def test_the_drawer_is_resized_by_keyboard(opened):
    page = opened(SMALL, "trace")
    look_at(page, "exponential(")
    grip = page.get_by_role("separator", name="Height of the drawer")
    before = page.locator("#inspect").bounding_box()["height"]
    grip.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.locator("#inspect").bounding_box()["height"] > before


def choose_matmul(page):
    """Walks the critical path to the first matmul."""
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-verdict b")).to_contain_text("µs, bound by")
    page.locator("#run-lanes canvas").focus()
    chosen = page.locator("#run-chosen b")
    page.keyboard.press("]")
    while not (said := chosen.inner_text()).startswith("tensor: matmul"):
        page.keyboard.press("]")
        page.wait_for_function("(was) => document.querySelector('#run-chosen b').textContent !== was", arg=said)


def test_an_execution_of_the_timeline_opens_its_values_and_tiles(opened, server):
    page = opened(TILED, "engine-programs")
    choose_matmul(page)
    page.locator("#run-chosen").get_by_role("button", name="values").click()
    expect(page.locator("#ir-title")).to_contain_text("engine-programs")
    execution = page.get_by_role("textbox", name="Execution")
    expect(execution).to_be_visible()
    n = int(execution.input_value())
    at = int(re.search(r"line (\d+)", page.locator(".inspect-title").inner_text())[1])
    stage = re.search(r"\d+", page.locator(".inspect-title").inner_text())[0]
    v = value_of(server, TILED, stage, line=at, execution=n)
    assert v["op"] == "nisa.matmul" and v["executions"] == PRODUCTS and n < PRODUCTS
    assert float(facts(page, "max").inner_text()) == pytest.approx(v["max"], rel=1e-4)
    choose_matmul(page)
    page.locator("#run-chosen").get_by_role("button", name="tiles").click()
    expect(page.get_by_role("textbox", name="Round")).to_have_value(str(n))


def test_a_value_is_that_of_the_pipeline_that_is_shown(opened, page):
    opened(SMALL, "trace")
    page.locator("#pipeline").select_option("reference")
    compiled(page)
    open_stage(page, "one-shot-bufferize")
    with page.expect_request(lambda r: "/compile" in r.url and '"value"' in (r.post_data or "")) as asked:
        look_at(page, "linalg.generic")
    options = json.loads(asked.value.post_data)["options"]
    assert options["pipeline"] == "reference" and "check" not in options
    expect(page.locator(".value-facts")).to_be_visible()
