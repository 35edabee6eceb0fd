"""A second stage beside the first: both follow the selection."""
import re

import pytest
from playwright.sync_api import expect

from support.compiler import stage_names
from support.page import compiled, lit_text, open_stage, selected_stage, source_spot

# The text of the best partner in a view, if its row is in sight there.
BEST = """(view) => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
    const box = document.querySelector(view + ' .cm-scroller').getBoundingClientRect();
    const line = document.querySelector(view + ' .cm-line.lit-best');
    const at = line?.getBoundingClientRect();
    done(at && at.top >= box.top - 1 && at.bottom <= box.bottom + 1 ? line.textContent : null);
  })))"""


def best(page, view, text):
    page.wait_for_function(f"async ([view, text]) => (await ({BEST})(view))?.includes(text)", arg=[view, text])


def row(page, name):
    return page.locator("#stages .stage", has=page.locator(".name", has_text=re.compile(f"^{name}$"))).first


@pytest.fixture
def paired(page):
    """linalg-to-nisa, and one-shot-bufferize beside it."""
    open_stage(page, "linalg-to-nisa")
    row(page, "one-shot-bufferize").click(modifiers=["Alt"])
    expect(page.locator("#beside .cm-line").first).to_be_visible()
    return page


def test_both_stages_scroll_to_the_best_partner_of_the_selection(paired):
    page = paired
    assert selected_stage(page) == "linalg-to-nisa"
    expect(page.get_by_label("Stage beside", exact=True).locator("option:checked")).to_have_text(re.compile("one-shot-bufferize"))
    page.mouse.click(*source_spot(page, "np.matmul", 4))
    best(page, "#ir-viewer", "@")
    best(page, "#beside", "linalg.matmul")
    page.locator("#stages").focus()
    page.keyboard.press("j")  # steps the first stage only
    best(page, "#beside", "linalg.matmul")
    best(page, "#ir-viewer", "@")
    names = stage_names()
    assert selected_stage(page) == names[names.index("linalg-to-nisa") + 1]


def test_an_operation_beside_is_followed_into_the_first_stage_and_the_source(paired):
    page = paired
    line = page.locator("#beside .cm-line", has_text="linalg.matmul").first
    page.mouse.click(*source_spot(page, "np.matmul", 4))
    best(page, "#beside", "linalg.matmul")
    page.mouse.move(2, 2)  # a tip of the resting pointer would take the key
    expect(page.locator(".cm-tooltip")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator(".lit-best")).to_have_count(0)
    expect(page.locator("#beside")).to_be_visible()
    line.hover()
    page.wait_for_function("() => [...document.querySelectorAll('#ir-viewer .cm-line.lit-hover')].some((l) => l.textContent.includes('@'))")
    assert lit_text(page, "lit-hover").startswith("np.matmul(x, w)")
    line.click()
    best(page, "#ir-viewer", "@")
    best(page, "#beside", "linalg.matmul")


def test_it_is_opened_stepped_and_closed_by_keys(page):
    page.locator("#stages").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+Enter")
    pick = page.get_by_label("Stage beside", exact=True).locator("option:checked")
    expect(pick).to_have_text(re.compile("^0 "))
    page.keyboard.press("j")
    expect(pick).to_have_text(re.compile("^0 "))
    text = page.locator("#beside .cm-content")
    text.focus()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(pick).to_have_text(re.compile("^2 "))
    expect(page.locator("#ir-title .no")).to_have_text("1")
    bar = page.get_by_role("separator", name="Width of the first of two stages")
    bar.focus()
    before = page.locator("#beside").bounding_box()["width"]
    page.keyboard.press("ArrowRight")
    assert page.locator("#beside").bounding_box()["width"] < before
    text.focus()
    page.keyboard.press("Escape")
    expect(page.locator("#beside")).to_be_hidden()
    expect(page.locator("#ir-viewer .cm-content")).to_be_focused()


@pytest.mark.nightly
def test_its_button_opens_the_other_end_and_the_link_keeps_it(page, new_page):
    button = page.get_by_role("button", name="A second stage beside this one")
    button.click()
    pick = page.get_by_label("Stage beside", exact=True).locator("option:checked")
    expect(pick).to_have_text(re.compile("^0 "))
    page.wait_for_function("() => location.hash.includes('beside=')")
    other = new_page()
    other.goto(page.url)
    compiled(other)
    expect(other.get_by_label("Stage beside", exact=True).locator("option:checked")).to_have_text(re.compile("^0 "))
    other.get_by_role("button", name="Close the stage beside").click()
    expect(other.locator("#beside")).to_be_hidden()
    button.click()
    expect(page.locator("#beside")).to_be_hidden()


@pytest.mark.nightly
def test_in_a_small_pane_it_is_below(new_page, server):
    page = new_page(1024, 768)
    page.goto(server)
    compiled(page)
    page.get_by_role("button", name="A second stage beside this one").click()
    expect(page.locator("#beside .cm-line").first).to_be_visible()
    first, second = page.locator("#ir-viewer").bounding_box(), page.locator("#beside").bounding_box()
    assert second["y"] >= first["y"] + first["height"] - 1 and first["height"] > 150
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("m")
    page.wait_for_function("() => document.querySelector('#beside').getBoundingClientRect().x > 500")
