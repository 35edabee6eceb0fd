"""Presentation: nothing but the source and the stage, in large type, stepped through by a clicker."""
import re

import pytest
from playwright.sync_api import expect

from support.compiler import stage_names
from support.page import compiled, open_stage, source_spot

TYPE = "() => parseFloat(getComputedStyle(document.querySelector('#ir-viewer .cm-content')).fontSize)"
HIDDEN = ("#share", "#example", "#bottom", "#stages-pane", "#ir-tools", "#source-tools", "#history")


def begin(page):
    open_stage(page, "linalg-to-nisa")
    page.locator("#stages").focus()
    page.keyboard.press("Shift+P")
    expect(page.locator("#share")).to_be_hidden()


def test_only_the_source_and_the_stage_remain_and_escape_brings_the_rest_back(page):
    begin(page)
    for part in HIDDEN:
        expect(page.locator(part)).to_be_hidden()
    for part in ("#source-editor", "#ir-viewer", "#ir-title"):
        expect(page.locator(part)).to_be_visible()
    assert page.evaluate(TYPE) == 20
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("Escape")
    for part in HIDDEN:
        expect(page.locator(part)).to_be_visible()
    assert page.evaluate(TYPE) == 13


def test_a_clicker_steps_wherever_the_focus_is_and_the_best_partner_stays_in_sight(page):
    page.mouse.click(*source_spot(page, "np.matmul", 4))
    begin(page)
    number = page.locator("#ir-title .no")
    first = stage_names().index("linalg-to-nisa")
    expect(number).to_have_text(str(first))
    for at, focus in enumerate(("#source-editor .cm-content", "#ir-viewer .cm-content", "#ir-viewer .cm-content"), 1):
        page.locator(focus).focus()
        page.keyboard.press("PageUp")
        expect(number).to_have_text(str(first - at))
        expect(page.locator("#ir-viewer .lit-best")).to_be_in_viewport()
    page.keyboard.press("PageDown")
    expect(number).to_have_text(str(first - 2))
    page.keyboard.press("Escape")
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("PageDown")  # moves the caret again
    expect(number).to_have_text(str(first - 2))


@pytest.mark.nightly
def test_everything_takes_the_size_of_the_type_and_the_browser_keeps_it(page):
    begin(page)
    head = page.locator("#ir-pane .pane-head").bounding_box()["height"]
    for _ in range(3):
        page.keyboard.press("+")
    assert page.evaluate(TYPE) == 28
    assert page.locator("#ir-pane .pane-head").bounding_box()["height"] > head
    page.keyboard.press("-")
    assert page.evaluate(TYPE) == 24
    page.reload()
    compiled(page)
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Present", exact=True).click()
    expect(page.locator("#settings")).to_be_hidden()
    page.wait_for_function(f"() => ({TYPE})() === 24")


@pytest.mark.nightly
def test_the_second_stage_is_presented_too(page):
    begin(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="A second stage beside this one").click()
    expect(page.locator("#beside .cm-line").first).to_be_visible()
    page.keyboard.press("Shift+P")
    expect(page.locator("#share")).to_be_hidden()
    expect(page.locator("#beside .cm-line").first).to_be_visible()
    page.keyboard.press("PageUp")
    expect(page.locator("#ir-title .no")).to_have_text("42")
    expect(page.get_by_label("Stage beside", exact=True).locator("option:checked")).to_have_text(re.compile("engine-programs"))
