"""Vim's keys in the source editor, for those who switch them on; the page's own keys keep their meaning."""
import re

import pytest
from playwright.sync_api import expect

from support.marks import few
from support.page import KERNEL, compiled, source_of, source_spot, write

EDITOR = "#source-editor .cm-content"


@pytest.fixture
def vim(page):
    write(page, KERNEL)
    compiled(page)
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("checkbox", name="Vim keys in the source").check()
    page.keyboard.press("Escape")
    page.locator(EDITOR).focus()
    expect(page.locator(".cm-vim-panel")).to_contain_text("NORMAL")
    return page


def mode(page, name):
    expect(page.locator(".cm-vim-panel")).to_contain_text(name)


def test_they_are_loaded_only_when_switched_on(page):
    loaded = lambda: page.evaluate("() => performance.getEntriesByType('resource').some((r) => r.name.includes('/vim-'))")  # noqa: E731
    assert not loaded()
    page.locator(EDITOR).focus()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find an action").fill("vim keys")
    page.keyboard.press("Enter")
    mode(page, "NORMAL")
    assert loaded()


def test_modes_motions_and_the_command_line(vim):
    page = vim
    page.keyboard.press("g")
    page.keyboard.press("g")
    page.keyboard.type("dd")
    assert source_of(page).startswith("from nkigen import trace")
    page.keyboard.press("u")
    assert source_of(page).startswith("import numpy as np")
    page.keyboard.press("o")
    mode(page, "INSERT")
    page.keyboard.type("scale = 3.0")
    page.keyboard.press("Escape")
    mode(page, "NORMAL")
    assert source_of(page).split("\n")[1] == "scale = 3.0"
    page.keyboard.type("/tanh")
    page.keyboard.press("Enter")
    page.keyboard.type("cwexp")
    page.keyboard.press("Escape")
    assert "np.exp(a) * 2.0" in source_of(page)
    with page.expect_request("**/api/v1/compile"):
        page.keyboard.type(":w")
        page.keyboard.press("Enter")
    compiled(page)


def test_letters_write_commands_and_the_pages_keys_work_outside_the_editor(vim):
    page = vim
    row = page.locator('#stages [aria-selected="true"] .no')
    before = row.text_content()
    page.keyboard.type("jjkd")  # motions, and an operator that waits
    page.keyboard.press("Escape")
    expect(row).to_have_text(before)
    page.locator("#stages").focus()
    page.keyboard.press("k")
    expect(row).not_to_have_text(before)


@pytest.mark.parametrize("inserting", few([True, False], 1))
def test_the_pages_chords_keep_their_meaning(vim, inserting):
    page = vim
    if inserting:
        page.keyboard.press("i")
        mode(page, "INSERT")
    with page.expect_request("**/api/v1/compile"):
        page.keyboard.press("Control+Enter")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Find an action")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Shift+F")
    expect(page.get_by_role("combobox", name="Search all stages")).to_be_focused()
    page.keyboard.press("Escape")
    page.locator(EDITOR).focus()
    page.keyboard.press("F6")
    expect(page.locator("#stages")).to_be_focused()
    assert source_of(page).rstrip("\n") == KERNEL.rstrip("\n")


@pytest.mark.nightly
def test_escape_leaves_the_mode_before_it_clears_the_selection(vim):
    page = vim
    page.mouse.click(*source_spot(page, "np.tanh", 4))
    expect(page.locator("#source-editor .lit-selected").first).to_be_visible()
    page.keyboard.press("i")
    mode(page, "INSERT")
    page.keyboard.press("Escape")
    mode(page, "NORMAL")
    expect(page.locator("#source-editor .lit-selected").first).to_be_visible()


@pytest.mark.nightly
def test_they_stay_after_a_reload_and_are_switched_off(vim):
    page = vim
    page.reload()
    compiled(page)
    mode(page, "NORMAL")
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("checkbox", name="Vim keys in the source").uncheck()
    page.keyboard.press("Escape")
    expect(page.locator(".cm-vim-panel")).to_have_count(0)
    page.locator(EDITOR).focus()
    page.keyboard.press("Control+Home")
    page.keyboard.type("x")
    assert re.match("ximport numpy", source_of(page))
