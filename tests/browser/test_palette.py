"""The palette: every action by its name."""
import re

import pytest
from playwright.sync_api import expect

from support.axe import ONLY_CONTRAST, violations
from support.marks import few
from support.page import SCREENS, compiled, selected_stage, source_of

ROW = "#palette-list [role=option]"


def opened(page):
    expect(page.locator("dialog[open]")).to_have_count(0)  # one that is closing takes the key
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Find an action")
    expect(box).to_be_focused()
    return box


def chosen(page):
    return page.locator(f"{ROW}[aria-selected=true]")


def test_it_opens_with_a_key_and_escape_gives_the_focus_back(page):
    page.locator("#source-editor .cm-content").focus()
    opened(page)
    assert page.locator(ROW).count() > 60
    page.screenshot(path=SCREENS / "palette.png")
    page.keyboard.type("zzqq")
    expect(page.locator("#palette-list")).to_have_text("Nothing has that name.")
    page.keyboard.press("Escape")
    expect(page.locator("dialog.palette")).to_be_hidden()
    expect(page.locator("#source-editor .cm-content")).to_be_focused()


def test_parts_of_words_find_an_action_which_enter_does_and_its_key_does_too(page):
    opened(page)
    page.keyboard.type("wr lo")
    expect(chosen(page)).to_contain_text("Wrap long lines")
    expect(chosen(page).locator("kbd")).to_have_text("w")
    page.keyboard.press("Enter")
    expect(page.locator("dialog.palette")).to_be_hidden()
    wrap = page.locator("#ir-tools .wrap-tool")
    expect(wrap).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("w")
    expect(wrap).to_have_attribute("aria-pressed", "false")


def test_stages_examples_and_targets_are_reached_by_name(page, server):
    opened(page)
    page.keyboard.type("legalize-layout")
    page.keyboard.press("Enter")
    assert selected_stage(page) == "legalize-layout"
    opened(page)
    page.keyboard.type("softmax ex")
    page.keyboard.press("Enter")
    expect(page.locator("#source-editor .cm-line").first).to_contain_text("Softmax")
    compiled(page)
    opened(page)
    page.keyboard.type("trn1")
    expect(chosen(page)).to_contain_text("Target")
    page.keyboard.press("Enter")
    expect(page.locator("#target")).to_have_value("trn1")
    compiled(page)


@pytest.mark.nightly
def test_arrows_walk_the_list_around_its_end(page):
    opened(page)
    rows = page.locator(ROW)
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(rows.last).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("combobox", name="Find an action")).to_have_attribute("aria-activedescendant", rows.last.get_attribute("id"))


@pytest.mark.parametrize("scheme", few(["light", "dark"], 1))
def test_axe_finds_nothing_in_it(new_page, server, scheme):
    page = new_page(scheme=scheme)
    page.goto(server)
    compiled(page)
    opened(page)
    page.keyboard.type("stage")
    assert violations(page, "palette", None if scheme == "light" else ONLY_CONTRAST) == []


def test_every_key_of_the_help_that_does_something_everywhere_is_in_it(page):
    page.keyboard.press("?")
    expect(page.locator("#help .help-grid")).to_be_visible()
    known = set(page.locator("#help .help-grid section", has=page.get_by_role("heading", name=re.compile("^(Stages|Diff|Page)$"))).locator("dt").all_text_contents())
    page.keyboard.press("Escape")
    opened(page)
    listed = {"".join(k.split()) for k in page.locator(f"{ROW} .key").all_text_contents()}
    for keys in ("n", "b", "d", "a", "w", "?", "j", "k", "/", "Ctrl+Shift+F", "F6", "Shift+F6", "Home", "End"):
        assert any(keys in k for k in known), keys
        assert keys in listed


@pytest.mark.nightly
def test_it_changes_nothing_of_the_source(page):
    page.locator("#source-editor .cm-content").focus()
    before = source_of(page)
    opened(page)
    page.keyboard.type("next ph")
    page.keyboard.press("Enter")
    assert source_of(page) == before
