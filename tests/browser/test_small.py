"""Marks and ways in: checks in words, the last stage's mark, cached results, signs, versions, what NumPy itself makes."""
import re

import pytest
from playwright.sync_api import expect

from support.marks import few
from support.page import compiled, open_stage, write

ROTATING = """import numpy as np
from nkigen import trace

@trace(input_specs=[((1024, 512), "f32")])
def many(x):
    return np.exp(x) + 1.0
"""


def test_what_a_check_found_is_said_for_the_chosen_stage(page):
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#status")).to_contain_text("checked")
    open_stage(page, "trace")
    page.locator("#stages").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#ir-summary .check-words")).to_have_text(re.compile(r"^✓ computes what NumPy computes · max abs "))
    chosen = page.locator('#stages [aria-selected="true"]')
    expect(chosen).to_have_attribute("aria-label", re.compile("check pass: computes what NumPy computes"))


def test_the_last_stage_keeps_its_mark_while_the_list_is_stale(page):
    expect(page.locator("#stages .stage-final")).to_have_count(1)
    write(page, "def broken(:")
    expect(page.locator("#stages .stage.stale").first).to_be_visible()
    expect(page.locator("#stages .stage-final.stale")).to_have_count(1)


@pytest.mark.nightly
def test_a_result_that_the_server_had_already_is_marked(page):
    mine = f"import numpy as np\nfrom nkigen import trace\n@trace(input_specs=[((8, 8), 'f32')])\ndef first(x):\n    return np.tanh(x)\n"
    write(page, mine)
    expect(page.locator("#signature")).to_contain_text("first")
    compiled(page)
    expect(page.locator("#status")).not_to_contain_text("cached")
    write(page, mine.replace("tanh", "exp").replace("first", "second"))
    expect(page.locator("#signature")).to_contain_text("second")
    compiled(page)
    write(page, mine)
    expect(page.locator("#signature")).to_contain_text("first")
    expect(page.locator("#status")).to_contain_text("· cached")


def test_the_card_explains_the_signs_of_the_compact_form(page):
    write(page, ROTATING)
    expect(page.locator("#signature")).to_contain_text("many")
    compiled(page)
    open_stage(page, "engine-programs")
    row = page.locator("#ir-viewer .cm-line", has_text="↑").first
    expect(row).to_be_visible()
    row.hover()
    expect(page.locator(".sign", has_text="semaphore")).to_be_visible()


def test_versions_have_a_button(page):
    page.get_by_role("button", name="Versions", exact=True).click()
    expect(page.get_by_role("heading", name="Versions")).to_be_visible()


@pytest.mark.nightly
def test_completion_knows_what_numpy_itself_makes(page):
    page.locator("#source-editor .cm-content").focus()
    page.wait_for_function("() => performance.getEntriesByType('resource').some((e) => e.name.endsWith('/ops'))")
    write(page, "import numpy as np\n\ny = 1\n")
    page.keyboard.press("Control+End")
    page.keyboard.type("z = np.zer")
    offers = page.locator(".cm-tooltip-autocomplete")
    expect(offers).to_contain_text("zeros_like")
    expect(offers).to_contain_text("(shape, dtype=float64)")
    page.keyboard.press("Escape")
    page.keyboard.type("os(3, np.float1")
    expect(offers).to_contain_text("float16")


@pytest.mark.parametrize("width", few([820, 1280, 1024], 1))
def test_the_headers_pickers_are_whole_with_a_pinned_result(new_page, server, width):
    page = new_page(width, 720)
    page.goto(server)
    compiled(page)
    page.get_by_role("button", name="Check", exact=True).click()
    expect(page.locator("#status")).to_contain_text("checked")
    page.locator("body").press("p")
    expect(page.locator("#modes")).to_contain_text("A pinned")
    boxes = page.evaluate("""() => [...document.querySelectorAll('#top select, #top button')].filter((n) => n.offsetParent)
        .map((n) => { const b = n.getBoundingClientRect(); return [n.id || n.textContent, b.left, b.right, b.top, b.bottom]; })""")
    for name, left, right, top, bottom in boxes:
        assert left >= 0 and right <= width, f"{name} lies outside of the window"
        assert right - left >= 24, f"{name} is too narrow to hit"
        for other, left2, right2, top2, bottom2 in boxes:
            assert name == other or right <= left2 + 0.5 or right2 <= left + 0.5 or bottom <= top2 + 0.5 or bottom2 <= top + 0.5, f"{name} lies over {other}"
    widths = {name: right - left for name, left, right, *_ in boxes}
    # a select is whole if it is as wide as a copy of it with nothing around
    whole = page.evaluate("""() => Object.fromEntries(['language', 'target'].map((id) => {
        const copy = document.getElementById(id).cloneNode(true);
        copy.value = document.getElementById(id).value;
        copy.style.cssText = 'position:absolute;width:auto';
        document.getElementById('top').append(copy);
        const width = copy.getBoundingClientRect().width;
        copy.remove();
        return [id, width]; }))""")
    for name, wanted in whole.items():
        assert widths[name] >= min(wanted, 56), (name, widths[name], wanted)
