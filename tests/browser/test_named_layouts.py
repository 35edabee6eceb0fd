"""Arrangements of the panes under names: saved, chosen, renamed, deleted, kept in the browser."""
import pytest
from playwright.sync_api import expect

from support.page import compiled


def act(page, words):
    """Does what the palette lists first for these words."""
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find an action").fill(words)
    page.keyboard.press("Enter")


def save(page, name):
    act(page, "layouts save arrangement")
    page.get_by_role("textbox", name="Name of the layout").fill(name)
    page.keyboard.press("Enter")
    expect(page.locator(".layouts b", has_text=name)).to_be_visible()
    page.get_by_role("button", name="Close", exact=True).click()


def width(page, pane):
    return page.evaluate("(p) => Math.round(document.getElementById(p + '-pane').getBoundingClientRect().width)", pane)


def test_an_arrangement_is_saved_and_chosen_again(page):
    page.locator("#stages").focus()
    page.keyboard.press("2")
    bar = page.get_by_role("separator", name="Width of the source")
    bar.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Picture of the stage").click()
    expect(page.locator("#picture")).to_be_visible()
    wide = {p: width(page, p) for p in ("source", "stages", "ir")}
    save(page, "reading graphs")
    act(page, "layouts save arrangement")
    page.get_by_role("button", name="As at first").click()
    expect(page.locator("#stages")).to_be_visible()
    expect(page.locator("#picture")).to_be_hidden()
    assert width(page, "source") != wide["source"]
    page.reload()
    compiled(page)
    act(page, "reading graphs")
    expect(page.get_by_role("button", name="Show the stages again")).to_be_visible()
    expect(page.locator("#picture")).to_be_visible()
    assert {p: width(page, p) for p in wide} == wide


def test_a_maximised_pane_and_a_second_stage_are_part_of_a_layout(page):
    page.get_by_role("button", name="A second stage beside this one").click()
    expect(page.locator("#beside .cm-line").first).to_be_visible()
    page.get_by_role("button", name="Maximise the stage's text").click()
    save(page, "two stages")
    page.get_by_role("button", name="Restore the stage's text").click()
    page.get_by_role("button", name="Close the stage beside").click()
    act(page, "layouts save arrangement")
    page.get_by_role("button", name="Use two stages").click()
    expect(page.locator("#beside .cm-line").first).to_be_visible()
    expect(page.locator("#source-pane")).to_be_hidden()


@pytest.mark.nightly
def test_layouts_are_renamed_and_deleted(page):
    save(page, "one")
    save(page, "two")
    act(page, "layouts save arrangement")
    page.get_by_role("button", name="Rename two").click()
    field = page.get_by_role("textbox", name="New name of two")
    field.fill("one")
    page.keyboard.press("Enter")
    expect(page.locator("dialog .fault")).to_have_text("There is a layout one already.")
    field.fill("<b>three</b>")
    page.keyboard.press("Enter")
    expect(page.locator(".layouts li > b")).to_have_text(["one", "<b>three</b>"])
    page.get_by_role("button", name="Delete one").click()
    expect(page.locator(".layouts li > b")).to_have_text(["<b>three</b>"])
    page.get_by_role("textbox", name="Name of the layout").fill(" ")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("dialog .fault")).to_have_text("A layout needs a name.")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("button", name="Layouts…").click()
    page.get_by_role("button", name="Delete <b>three</b>").click()
    expect(page.locator(".layouts")).to_contain_text("There are none yet.")


@pytest.mark.nightly
def test_damaged_layouts_are_left_out(page):
    page.evaluate("""() => localStorage.setItem('nkx.layouts', JSON.stringify([null, {name: 'x'}, {name: 7, arrangement: {}},
        {name: 'kept', arrangement: {hidden: ['stages', 'nothing', 5], splits: {'split-source': 9}, maximised: 'no', beside: 1}}]))""")
    page.reload()
    compiled(page)
    act(page, "kept")
    expect(page.get_by_role("button", name="Show the stages again")).to_be_visible()
    expect(page.locator("#panes")).to_have_attribute("data-hidden", "stages")
