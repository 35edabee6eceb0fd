"""The whole path without a pointer."""
import pytest
from playwright.sync_api import expect

from support.page import compiled, ir_lines, lit_text, selected_stage

KERNEL = """import numpy as np
from nkigen import trace

@trace(input_specs=[((8, 4), "f32")])
def mine(a):
    return np.tanh(a) * 2.0
"""


def test_from_opening_to_a_shared_link_by_keyboard_alone(page):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("F6")
    expect(page.locator("#source-editor .cm-content")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(KERNEL)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#signature")).to_contain_text("mine")
    compiled(page)

    # the caret in the source lights the stage, and the key keeps it lit
    page.keyboard.press("Escape")
    page.keyboard.press("F6")
    expect(page.locator("#stages")).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+F6")
    page.keyboard.press("Control+End")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("End")
    for _ in range(len(" * 2.0") + 4):
        page.keyboard.press("ArrowLeft")
    expect(page.locator("#ir-viewer .cm-line.lit-hover")).to_have_count(1)
    assert "tanh(" in ir_lines(page, "lit-hover")[0]
    page.keyboard.press("Control+F10")
    assert lit_text(page, "lit-selected") == "np.tanh(a)"

    # on to the stage's text; the caret there lights the source
    page.keyboard.press("F6")
    page.keyboard.press("Enter")
    expect(page.locator("#ir-viewer .cm-content")).to_be_focused()
    page.keyboard.press("Control+Home")
    for _ in range(60):
        page.keyboard.press("ArrowDown")
        if any("multiply(" in line for line in ir_lines(page, "lit-hover")):
            break
    assert lit_text(page, "lit-hover") == "np.tanh(a) * 2.0"
    page.keyboard.press("g")
    page.keyboard.press("l")
    assert lit_text(page, "lit-selected") == "np.tanh(a) * 2.0"

    # stages from within the text, then the history's chips
    page.keyboard.press("j")
    assert selected_stage(page) == "op-expander"
    page.keyboard.press("h")
    focused = page.evaluate("() => document.activeElement.className")
    assert focused.startswith("chip")
    page.keyboard.press("Control+s")
    expect(page.locator("#live")).to_contain_text("Link copied")
    page.keyboard.press("Escape")
    expect(page.locator("#ir-viewer .cm-line.lit-selected")).to_have_count(0)


def test_the_key_sheet_opens_and_closes(page):
    page.locator("body").press("?")
    expect(page.locator("#help")).to_be_visible()
    expect(page.locator("#help-title")).to_be_in_viewport()
    page.keyboard.press("j")  # nothing below the sheet moves
    page.keyboard.press("Escape")
    expect(page.locator("#help")).to_be_hidden()


def test_tab_order_is_the_visual_order_and_focus_is_seen(page):
    page.keyboard.press("Tab")
    seen = []
    for _ in range(40):
        info = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e), b = e.getBoundingClientRect();
                 const ring = s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0;
                 const own = e.closest('.cm-content, .splitter') !== null;
                 return { tag: e.tagName, id: e.id || e.getAttribute('data-pane') || e.textContent.slice(0, 12), ring: ring || own,
                          x: b.left, pane: e.closest('section, header, footer')?.id ?? '' } }"""
        )
        if info["tag"] == "BODY":
            break  # once round
        assert info["ring"], f"no focus ring on {info}"
        seen.append(info)
        if info["id"] == "source":
            page.keyboard.press("Escape")  # Tab indents in the editor; after Escape it leaves
        page.keyboard.press("Tab")
    panes = [s["pane"] for s in seen if s["pane"]]
    order = list(dict.fromkeys(panes))
    assert order[:4] == ["top", "source-pane", "stages-pane", "ir-pane"], order


@pytest.mark.nightly
def test_editors_have_names(page):
    assert page.locator("#source-editor .cm-content").get_attribute("aria-label") == "Kernel source"
    assert page.locator("#ir-viewer .cm-content").get_attribute("aria-label").startswith("IR after stage")


@pytest.mark.nightly
def test_the_arrow_from_the_filter_leads_to_a_stage_that_it_shows(page):
    page.locator("body").press("/")
    page.keyboard.type("driven-tiling")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert selected_stage(page) == "knob-driven-tiling"
    expect(page.locator("#ir-title")).to_contain_text("knob-driven-tiling")
    expect(page.locator("#ir-viewer .cm-content")).to_be_focused()


def test_the_diff_takes_the_focus_and_gives_it_back(page):
    page.locator("#stages").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#ir-viewer .cm-content")).to_be_focused()
    page.keyboard.press("d")
    expect(page.locator("#diff-viewer .cm-content").first).to_be_focused()
    page.keyboard.press("d")
    expect(page.locator("#ir-viewer .cm-content")).to_be_focused()
