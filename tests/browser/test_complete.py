"""Completion in the source editor."""
import re

import pytest
from playwright.sync_api import expect

from support.page import SCREENS, compiled, source_of, write

LIST = ".cm-tooltip-autocomplete"
KERNEL = """import numpy as npy
from nkigen import trace, knob

def scaled(value, factor):
    return value * factor

@trace(input_specs=[((128, 256), "f32"), ((128, 256), "f32")])
def kernel(left, right):
    total = left + right

    return total
"""


@pytest.fixture
def editor(page):
    """The kernel above, with the caret in its empty line."""
    page.locator("#source-editor .cm-content").focus()
    page.wait_for_function("() => performance.getEntriesByType('resource').some((e) => e.name.endsWith('/ops'))")
    write(page, KERNEL)
    compiled(page)
    expect(page.locator("#signature")).to_contain_text("left")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.type("    ")
    return page


def offers(page, *names, without=()) -> None:
    """Waits until the list has the names."""
    for name in names:
        expect(page.locator(f"{LIST} .cm-completionLabel", has_text=re.compile(f"^{name}$"))).to_be_visible()
    for name in without:
        expect(page.locator(f"{LIST} .cm-completionLabel", has_text=re.compile(f"^{name}$"))).to_have_count(0)


def first(page):
    return page.locator(f"{LIST} .cm-completionLabel").first


def last_line(page) -> str:
    return source_of(page).split("\n")[9]


def test_numpy_is_completed_under_the_name_that_the_file_gives_it(editor, server):
    editor.keyboard.type("big = npy.max")
    offers(editor, "max", "maximum")
    editor.screenshot(path=SCREENS / "complete.png")
    editor.keyboard.press("ArrowDown")
    expect(editor.locator(f"{LIST} [aria-selected]")).to_contain_text("maximum")
    editor.wait_for_timeout(100)  # the editor's own guard against a key meant for the text
    editor.keyboard.press("Tab")
    assert last_line(editor) == "    big = npy.maximum"
    editor.keyboard.type("(total, npy.linalg.")
    offers(editor, "norm", without=["maximum"])


def test_names_of_the_file_are_offered_where_they_are_visible_with_the_shapes_of_inputs(editor):
    editor.keyboard.type("x = t")
    offers(editor, "total", without=["factor"])
    editor.keyboard.press("Escape")
    editor.keyboard.press("Backspace")
    editor.keyboard.type("le")
    option = editor.locator(f"{LIST} li", has_text="left")
    expect(option).to_contain_text("input (128, 256) float32")


def test_knobs_and_their_keywords_are_offered(editor):
    editor.keyboard.type("knob.")
    offers(editor, "fuse", "knob", without=["layout"])
    editor.keyboard.type("knob(total).")
    offers(editor, "layout", "tile_op", without=["fuse", "sum"])
    editor.keyboard.type("layout(me")
    expect(first(editor)).to_have_text("mem_space=")
    editor.keyboard.press("Escape")
    editor.keyboard.type('m_space="Sbuf", t')
    expect(first(editor)).to_have_text("tile_size=")
    offers(editor, without=["mem_space="])


def test_a_call_offers_the_keywords_that_are_not_given(editor):
    editor.keyboard.type("npy.sum(total, axis=0, k")
    expect(first(editor)).to_have_text("keepdims=")
    editor.keyboard.press("Backspace")
    editor.keyboard.type("ax")
    expect(editor.locator(LIST)).to_have_count(0)


@pytest.mark.nightly
def test_enter_and_tab_are_the_editors_while_no_list_is_open(editor):
    editor.keyboard.type("y = total")
    expect(editor.locator(LIST)).to_have_count(0)  # there is nothing to add
    editor.keyboard.press("Enter")
    editor.keyboard.type("x = npy.max")
    offers(editor, "maximum")
    editor.keyboard.press("Enter")  # the name stands there in full
    editor.keyboard.type("z = tot")
    offers(editor, "total")
    editor.keyboard.press("Escape")
    editor.keyboard.press("Enter")
    assert source_of(editor).split("\n")[9:13] == ["    y = total", "    x = npy.max", "    z = tot", "    "]
    editor.keyboard.press("Tab")
    assert source_of(editor).split("\n")[12] == "        "


@pytest.mark.nightly
def test_nothing_is_offered_for_new_names_in_comments_strings_and_other_languages(editor):
    for text in ("# tot", "s = 'tot", "def tot"):
        editor.keyboard.type(text)
        expect(editor.locator(LIST)).to_have_count(0)
        editor.keyboard.press("Shift+Home")
        editor.keyboard.press("Backspace")
        editor.keyboard.type("    ")


@pytest.mark.nightly
def test_completion_is_loaded_with_the_first_focus(page):
    script = "() => performance.getEntriesByType('resource').filter((e) => /writing-|api.v1.ops/.test(e.name)).length"
    assert page.evaluate(script) == 0
    page.locator("#source-editor .cm-content").focus()
    page.wait_for_function("() => performance.getEntriesByType('resource').some((e) => e.name.includes('/writing-'))")
