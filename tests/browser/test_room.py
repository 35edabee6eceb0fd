"""Panes are maximised, hidden and resized, by the keyboard and by the pointer."""
import pytest
from playwright.sync_api import expect

from support.marks import few
from support.page import compiled


def width(page, pane):
    return page.evaluate("(p) => Math.round(document.getElementById(p + '-pane').getBoundingClientRect().width)", pane)


def test_a_pane_is_maximised_and_restored_by_its_button_and_by_a_key(page):
    before = {p: width(page, p) for p in ("source", "stages", "ir")}
    page.get_by_role("button", name="Maximise the source").click()
    button = page.get_by_role("button", name="Restore the source")
    expect(button).to_have_attribute("aria-pressed", "true")
    assert width(page, "source") == 1440
    expect(page.locator("#ir-pane")).to_be_hidden()
    button.click()
    expect(page.locator("#ir-pane")).to_be_visible()
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("m")
    expect(page.locator("#source-pane")).to_be_hidden()
    assert width(page, "ir") == 1440
    page.keyboard.press("k")  # the stages are stepped through as before
    expect(page.locator("#ir-title .no")).to_have_text(str(page.locator("#stages .stage").count() - 2))
    page.keyboard.press("m")
    expect(page.locator("#source-pane")).to_be_visible()
    assert {p: width(page, p) for p in before} == before


def test_a_hidden_pane_leaves_its_name_and_stays_hidden_after_a_reload(page):
    ir = width(page, "ir")
    page.locator("#stages").focus()
    page.keyboard.press("2")
    rail = page.get_by_role("button", name="Show the stages again")
    expect(rail).to_be_focused()
    expect(page.locator("#stages")).to_be_hidden()
    assert width(page, "stages") == 30 and width(page, "ir") > ir + 150
    page.reload()
    compiled(page)
    expect(rail).to_be_visible()
    rail.click()
    expect(page.locator("#stages")).to_be_focused()
    assert width(page, "ir") == ir
    page.reload()
    compiled(page)
    expect(page.locator("#stages")).to_be_visible()


@pytest.mark.nightly
def test_the_last_pane_cannot_be_hidden(page):
    page.locator("#stages").focus()
    page.keyboard.press("1")
    expect(page.locator("#panes")).to_have_attribute("data-hidden", "source")
    page.keyboard.press("2")  # the focus goes to the stage's text
    expect(page.locator("#panes")).to_have_attribute("data-hidden", "source stages")
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("3")
    expect(page.locator("#panes")).to_have_attribute("data-hidden", "source stages")
    expect(page.locator("#ir-viewer")).to_be_visible()
    page.get_by_role("button", name="Show the source again").click()
    page.get_by_role("button", name="Hide the stage's text").click()
    expect(page.locator("#ir-viewer")).to_be_hidden()
    assert width(page, "source") == 1440 - 2 * 30 - 2


def test_what_is_asked_for_comes_into_sight(page):
    page.get_by_role("button", name="Hide the stage list").click()
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Filter stages")).to_be_focused()
    page.get_by_role("button", name="Maximise the source").click()
    expect(page.locator("#ir-pane")).to_be_hidden()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-pane")).to_be_visible()


@pytest.mark.nightly
def test_widths_are_set_by_arrows_kept_and_reset_by_a_double_click(page):
    first = width(page, "source")
    bar = page.get_by_role("separator", name="Width of the source")
    bar.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(bar).to_have_attribute("aria-valuenow", "38")
    wide = width(page, "source")
    assert wide > first + 60
    page.reload()
    compiled(page)
    assert width(page, "source") == wide
    bar.dblclick()
    expect(bar).to_have_attribute("aria-valuenow", "32")
    assert width(page, "source") == first


def test_the_buttons_of_a_stage_are_whole_and_lose_their_labels_before_its_name_is_cut(page):
    label = page.locator("#ir-tools #ir-edit span")
    cut = "(ids) => ids.map((id) => document.getElementById(id)).filter((e) => e.scrollWidth > e.clientWidth).map((e) => e.id)"
    page.set_viewport_size({"width": 1600, "height": 700})
    compiled(page)
    expect(page.locator("#ir-edit")).to_be_visible()
    expect(label).to_be_hidden()
    assert page.evaluate(cut, ["ir-tools", "ir-title"]) == []
    page.get_by_role("button", name="Maximise the stage's text").click()
    expect(label).to_be_visible()
    page.get_by_role("button", name="Restore the stage's text").click()
    expect(label).to_be_hidden()
    page.set_viewport_size({"width": 1280, "height": 700})
    page.wait_for_function("() => ((e) => e.scrollWidth === e.clientWidth)(document.getElementById('ir-tools'))")


@pytest.mark.parametrize("width", few([1000, 820, 620], 1))
def test_what_has_no_room_above_a_stage_is_in_a_menu(new_page, server, width):
    page = new_page(width, 700)
    page.goto(f"{server}/#lesson=tracing")
    compiled(page)
    more = page.get_by_role("button", name="More tools of this pane")
    expect(more).to_be_visible()
    cut = "() => ['ir-tools', 'ir-pane .pane-head'].some((id) => ((e) => e.scrollWidth > e.clientWidth)(document.querySelector(`#${id}`)))"
    page.wait_for_function(f"() => !({cut})()")
    expect(page.locator("#ir-edit")).to_be_hidden()
    more.click()
    menu = page.get_by_role("menu", name="More tools")
    expect(menu.get_by_role("menuitem").first).to_be_focused()
    hidden = page.locator("#ir-tools .no-room").evaluate_all("(all) => all.map((b) => b.title)")
    assert menu.get_by_role("menuitem").all_text_contents() == hidden
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    more.click()
    menu.get_by_role("menuitem", name="Change this stage's text").click()
    expect(page.locator("#ir-editor .cm-content")).to_be_focused()
    page.set_viewport_size({"width": 1900, "height": 700})
    expect(page.locator("#ir-edit")).to_be_visible()
    expect(more).to_be_hidden()
