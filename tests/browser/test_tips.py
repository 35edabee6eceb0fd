"""Tips: they leave free what they explain, close with Escape and a click, and are there for the keyboard."""
import pytest
from playwright.sync_api import expect

from support.own_kernel import SOURCE
from support.page import compiled, open_stage, source_spot, write

TIP = ".cm-tooltip"


@pytest.fixture
def own(page):
    write(page, SOURCE)
    expect(page.locator("#signature")).to_contain_text("block")
    page.wait_for_function("() => !document.body.classList.contains('compiling')")
    compiled(page)
    return page


def test_a_tip_over_the_source_leaves_free_what_it_explains(own):
    x, y = source_spot(own, "np.mean(x * x", 5)
    own.mouse.move(x, y)
    tip = own.locator(TIP)
    expect(tip).to_be_visible()
    box = tip.bounding_box()
    assert box["height"] <= 200 and box["width"] <= 420, box
    assert not (box["y"] <= y <= box["y"] + box["height"])
    own.mouse.click(x, y)
    expect(tip).to_have_count(0)
    expect(own.locator("#source-editor .lit-selected").first).to_be_visible()


@pytest.mark.nightly
def test_escape_closes_a_tip_and_nothing_else(own):
    own.mouse.click(*source_spot(own, "g @ w2", 2))
    expect(own.locator("#source-editor .lit-selected").first).to_be_visible()
    own.locator("#stages").focus()
    own.mouse.move(*source_spot(own, "np.mean(x * x", 5))
    expect(own.locator(TIP)).to_be_visible()
    own.keyboard.press("Escape")
    expect(own.locator(TIP)).to_have_count(0)
    expect(own.locator("#source-editor .lit-selected").first).to_be_visible()
    open_stage(own, "one-shot-bufferize")
    own.locator("#ir-viewer .cm-line.band", has_text="linalg").first.hover(position={"x": 120, "y": 6})
    expect(own.locator(TIP)).to_be_visible()
    own.locator("#stages").focus()
    own.keyboard.press("Escape")
    expect(own.locator(TIP)).to_have_count(0)
    own.keyboard.press("Escape")
    expect(own.locator("#source-editor .lit-selected")).to_have_count(0)


def test_the_keyboard_opens_the_tip_at_the_caret(own):
    own.mouse.click(*source_spot(own, "np.mean(x * x", 5))
    own.mouse.move(2, 2)
    expect(own.locator(TIP)).to_have_count(0)
    own.keyboard.press("Control+F8")
    expect(own.locator(TIP)).to_contain_text("np.mean")
    own.keyboard.press("Escape")
    expect(own.locator(TIP)).to_have_count(0)
