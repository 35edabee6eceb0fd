"""A pane in a window of its own: it follows the selection and the results, and comes back when its window is closed."""
import re

import pytest
from playwright.sync_api import expect

from support.page import KERNEL, compiled, lit_text, open_stage, source_of, source_spot, write


def popped(page, watch, name):
    """Presses the button of a pane and returns its window."""
    with page.expect_popup() as opened:
        page.get_by_role("button", name=f"Open the {name} in a window of its own").click()
    other = opened.value
    watch.attach(other)
    expect(other.locator('#panes[data-ready=""]')).to_be_visible()
    return other


def test_the_stages_text_in_its_own_window_follows_and_leads(page, watch):
    open_stage(page, "one-shot-bufferize")
    other = popped(page, watch, "stage's text")
    expect(page.locator("#ir-viewer")).to_be_hidden()
    expect(other.locator("#ir-title")).to_contain_text("one-shot-bufferize")
    for part in ("#top", "#source-pane", "#stages-pane"):
        expect(other.locator(part)).to_be_hidden()
    assert other.evaluate("() => document.querySelector('#ir-pane').getBoundingClientRect().height === innerHeight")
    page.mouse.click(*source_spot(page, "np.matmul", 4))
    expect(other.locator("#ir-viewer .lit-best")).to_contain_text("linalg.matmul")
    open_stage(page, "trace")
    expect(other.locator("#ir-viewer .lit-best")).to_contain_text("dot(")
    other.locator("#ir-viewer .cm-line", has_text="maximum(").last.click()
    page.wait_for_function("() => document.querySelector('#source-editor .lit-selected')?.textContent.includes('np.maximum')")
    write(page, KERNEL)
    compiled(page)
    expect(other.locator("#ir-viewer .cm-line", has_text="tanh(")).to_have_count(1)
    other.locator("#ir-viewer .cm-content").focus()
    other.keyboard.press("j")
    expect(page.locator('#stages [aria-selected="true"] .name')).to_have_text("op-expander")


def test_closing_the_window_brings_the_pane_back(page, watch):
    other = popped(page, watch, "stage list")
    rail = page.get_by_role("button", name="Bring the stages back from its window")
    expect(rail).to_be_visible()
    other.locator('.stage[data-key="trace"]').click()
    expect(page.locator("#ir-title")).to_contain_text("trace")
    other.close()
    expect(page.locator("#stages")).to_be_visible()
    expect(rail).to_be_hidden()
    open_stage(page, "dce")  # nothing of the closed window is in the way
    other = popped(page, watch, "stage list")
    with other.expect_event("close"):
        rail.click()
    expect(page.locator("#stages")).to_be_visible()
    page.reload()
    compiled(page)
    expect(page.locator("#stages")).to_be_visible()


def test_the_source_is_edited_in_its_own_window(page, watch):
    other = popped(page, watch, "source")
    write(other, KERNEL)
    expect(page.locator("#signature")).to_contain_text("mine")
    compiled(page)
    page.locator("#ir-viewer .cm-line", has_text="tanh(").first.click()
    expect(other.locator("#source-editor .lit-selected, #source-editor .lit-selected-caller").first).to_be_visible()
    assert lit_text(other, "lit-selected") != ""
    write(other, KERNEL.replace("np.tanh", "np.tahn"))
    expect(other.locator("#problems")).to_contain_text("tahn")
    with other.expect_event("close"):
        page.get_by_role("button", name="Bring the source back from its window").click()
    assert "np.tahn" in source_of(page)


def test_the_keys_and_settings_of_the_page_count_in_its_windows(page, watch):
    page.locator("#ir-viewer .cm-content").focus()
    with page.expect_popup() as opened:
        page.keyboard.press("Shift+O")
    other = opened.value
    watch.attach(other)
    expect(other.locator("#ir-viewer .cm-line").first).to_be_visible()
    other.locator("#ir-viewer .cm-content").focus()
    other.keyboard.press("r")
    expect(other.locator("#ir-tools").get_by_role("button", name="full text")).to_have_attribute("aria-pressed", "true")
    page.locator("input[name=theme][value=dark]").dispatch_event("click")  # a page behind another window draws nothing
    expect(other.locator("html")).to_have_attribute("data-theme", "dark")
    other.keyboard.press("f")
    expect(other.locator(".sheet .box").first).to_be_attached()


@pytest.mark.nightly
def test_the_windows_close_with_their_page(page, watch):
    other = popped(page, watch, "stage's text")
    with other.expect_event("close"):
        page.goto("about:blank")


@pytest.mark.nightly
def test_a_windows_address_without_its_page_is_the_page(new_page, server):
    page = new_page()
    page.goto(f"{server}/?window=ir")
    compiled(page)
    expect(page.locator("#source-editor .cm-line").first).to_be_visible()
    expect(page.locator("#status")).to_have_text(re.compile("stages"))
