"""A stage's text is changed on the page: later stages follow it, errors are at its lines, and it is taken back."""
from playwright.sync_api import expect

from support.axe import violations
from support.page import SCREENS


def change(page, old, new):
    """Replaces the first `old` in the text as one does who types."""
    page.locator("#ir-editor .cm-content").click()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Control+f")
    field = page.locator("#ir-editor input[name=search]")
    expect(field).to_be_focused()
    page.keyboard.type(old)
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.keyboard.type(new)


def row(page, name):
    return page.get_by_role("option", name=name).first


def test_later_stages_follow_a_changed_text_until_it_is_discarded(page):
    row(page, "15 hlo-to-linalg").click()
    page.get_by_role("button", name="Change this stage's text and compile on from it").click()
    text = page.get_by_role("textbox", name="Text of the stage, which you can change")
    expect(text).to_be_focused()
    expect(page.locator("#ir-edited")).to_contain_text("You can change this text.")
    change(page, "arith.maximumf", "arith.minimumf")
    expect(row(page, "15 hlo-to-linalg").locator(".edited")).to_be_visible(timeout=20_000)
    page.screenshot(path=SCREENS / "edit-stage.png")
    assert violations(page, "edit-stage") == []
    row(page, "53 engine-programs").click()
    expect(page.locator("#ir-edited")).to_contain_text("This comes from your change of 15 hlo-to-linalg.")
    expect(page.locator("#ir-viewer")).to_contain_text("min(")
    page.locator("#ir-edited").get_by_role("button", name="Show it").click()
    expect(text).to_be_visible()
    page.locator("#ir-edited").get_by_role("button", name="Discard the change").click()
    expect(text).to_be_hidden()
    row(page, "53 engine-programs").click()
    expect(page.locator("#ir-viewer")).to_contain_text("max(", timeout=20_000)
    expect(page.locator("#ir-edited")).to_be_hidden()


def test_an_error_is_at_its_line_and_the_later_stages_stay(page):
    row(page, "15 hlo-to-linalg").click()
    page.get_by_role("button", name="Change this stage's text and compile on from it").click()
    change(page, "arith.maximumf", "arith.maximum")
    place = page.locator("#problems").get_by_role("button", name="go to line 23")
    expect(place).to_be_visible(timeout=20_000)
    expect(page.locator("#ir-editor .cm-lint-marker-error").first).to_be_visible()
    expect(row(page, "53 engine-programs")).to_have_class("stage stage-final stale")
    row(page, "14 dce").click()
    place.click()
    expect(page.get_by_role("textbox", name="Text of the stage, which you can change")).to_be_focused()
