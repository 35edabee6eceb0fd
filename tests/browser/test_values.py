"""Values in a stage's text: the one at the caret is lit with its uses, and the keys lead to its definition; regions fold."""
import re

import pytest
from playwright.sync_api import expect

from support.page import open_stage


def row(page, text):
    return page.locator("#ir-viewer .cm-line", has_text=text)


def on(page, line, name):
    """A click on a name within a row."""
    line.locator(".ir-value", has_text=re.compile(f"^{re.escape(name)}$")).first.click()


def has_caret(page, text):
    """Waits until the row with the caret has this text."""
    page.wait_for_function(
        """(text) => { const top = document.querySelector('#ir-viewer .cm-cursor-primary')?.getBoundingClientRect().top;
          return [...document.querySelectorAll('#ir-viewer .cm-line')].some((l) => { const r = l.getBoundingClientRect();
            return r.top - 2 <= top && top <= r.bottom && l.textContent.includes(text); }); }""",
        arg=text,
    )


@pytest.fixture
def instructions(page):
    open_stage(page, "linalg-to-nisa")
    return page


def test_the_value_at_the_caret_is_lit_with_its_uses(instructions):
    page = instructions
    on(page, row(page, "← max("), "%sbuf")
    expect(page.locator("#ir-viewer .value-use").first).to_be_visible()
    names = page.locator("#ir-viewer .value-use, #ir-viewer .value-def").all_text_contents()
    assert set(names) == {"%sbuf"} and len(names) >= 3
    page.keyboard.press("r")
    on(page, row(page, "op0=max"), "%sbuf")
    expect(page.locator("#ir-viewer .value-def")).to_have_text("%sbuf")


@pytest.mark.nightly
def test_a_loops_counter_is_lit_within_its_loop_only(instructions):
    page = instructions
    loops = row(page, re.compile(r"^ +for i in"))
    assert loops.count() > 2
    on(page, loops.nth(1), "i")
    expect(page.locator("#ir-viewer .value-def")).to_have_count(1)
    lit = page.locator("#ir-viewer .cm-line:has(.value-use)").all_text_contents()
    assert lit == [line for line in lit if "arg1[128·i.." in line] and len(lit) == 1


@pytest.mark.parametrize("keys", [["F12"], ["g", "d"]])
def test_a_key_goes_to_the_definition_and_on_to_the_uses(instructions, keys):
    page = instructions
    on(page, row(page, "%hbm[128·i..] ←"), "%sbuf_4")
    for key in keys:
        page.keyboard.press(key)
    expect(page.locator("#ir-viewer .value-def")).to_have_text("%sbuf_4")
    has_caret(page, "%sbuf_4 in SBUF")
    for key in keys:
        page.keyboard.press(key)
    has_caret(page, "%sbuf_4 ← max(")


@pytest.mark.nightly
def test_a_definition_in_a_folded_row_is_opened(instructions):
    page = instructions
    on(page, row(page, "← max("), "%sbuf")
    page.keyboard.press("F12")
    expect(row(page, "%sbuf in SBUF")).to_be_visible()
    has_caret(page, "%sbuf in SBUF")


def test_ctrl_click_goes_to_the_definition_in_hlo(page):
    open_stage(page, "trace")
    line = row(page, "ROOT")
    names = line.locator(".ir-value")
    name = names.nth(1).text_content()
    names.nth(1).click(modifiers=["Control"])
    expect(page.locator("#ir-viewer .value-def")).to_have_text(name)
    has_caret(page, f"{name} = ")


def test_regions_fold_and_unfold_by_key(instructions):
    page = instructions
    row(page, re.compile(r"^ +for i in")).first.click(position={"x": 60, "y": 6})
    page.keyboard.press("Control+Shift+BracketLeft")
    expect(page.locator("#ir-viewer .cm-foldPlaceholder")).to_have_count(1)
    expect(row(page, "← transpose %arg0")).to_have_count(0)
    page.keyboard.press("Control+Shift+BracketRight")
    expect(row(page, "← transpose %arg0")).to_have_count(1)
