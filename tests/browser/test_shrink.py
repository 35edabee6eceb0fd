"""Shrink: a small kernel with the fault of the one on the page, which opens in a tab or takes the text's place."""
import pytest
from playwright.sync_api import expect

from support.page import compiled, write

KERNEL = """import numpy as np
from nkigen import trace


@trace(input_specs=[((128, 256), "f32"), ((128, 256), "f32")])
def f(x, y):
    a = np.exp(x) + y
    b = np.convolve(a, a)
    return b * 2.0
"""


@pytest.fixture
def found(new_page, server):
    """The page with the result of a search."""
    page = new_page()
    page.goto(server)
    compiled(page)
    write(page, KERNEL)
    problem = page.locator(".problem-error")
    expect(problem).to_contain_text("np.convolve")
    problem.get_by_role("button", name="shrink").click()
    dialog = page.locator("dialog.shrink")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Begin").click()
    expect(dialog.get_by_role("status")).to_contain_text("nothing smaller has the fault", timeout=60_000)
    return page, dialog


def test_the_small_kernel_takes_the_place_of_the_text_and_can_be_taken_back(found):
    page, dialog = found
    expect(dialog.get_by_role("status")).to_contain_text("The fault unsupported-op in ")
    assert "np.convolve(x, x)" in dialog.locator(".shrink-text").inner_text()
    assert dialog.locator(".shrink-steps li").count() >= 2
    dialog.get_by_role("button", name="Put in place").click()
    expect(dialog).not_to_be_visible()
    editor = page.locator("#source-editor .cm-content")
    expect(editor).to_contain_text("np.convolve(x, x)")
    expect(page.locator(".problem-error")).to_contain_text("np.convolve")
    editor.focus()
    page.keyboard.press("Control+z")
    expect(editor).to_contain_text("np.exp(x) + y")


def test_the_small_kernel_opens_in_a_tab_of_its_own(found):
    page, dialog = found
    with page.context.expect_page() as opened:
        dialog.get_by_role("button", name="Open in a new tab").click()
    other = opened.value
    expect(other.locator("#source-editor .cm-content")).to_contain_text("np.convolve(x, x)")
    expect(other.locator(".problem-error")).to_contain_text("unsupported-op")
    expect(page.locator("#source-editor .cm-content")).to_contain_text("np.exp(x) + y")


def test_a_search_stops_and_a_kernel_that_is_right_has_no_button(new_page, server):
    page = new_page()
    page.goto(server)
    compiled(page)
    expect(page.get_by_role("button", name="shrink")).to_have_count(0)
    write(page, KERNEL)
    page.locator(".problem-error").get_by_role("button", name="shrink").click()
    dialog = page.locator("dialog.shrink")
    dialog.get_by_role("button", name="Begin").click()
    expect(dialog.get_by_role("status")).to_contain_text("candidate")
    dialog.get_by_role("button", name="Stop here").click()
    expect(dialog.get_by_role("status")).to_contain_text("stopped: you ended it")
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
