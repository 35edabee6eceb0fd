"""Tune: the search for knobs shows what it tries, and writes what it found into the source."""
import re

import pytest
from playwright.sync_api import expect

from support.page import compiled, write

# the knob makes tiles that are too small
KERNEL = """import numpy as np
from nkigen import knob, trace


@trace(input_specs=[((256, 256), "f32"), ((256, 512), "f32")])
def up(x, w):
    y = np.exp(x) @ w
    knob.knob(y).tile_op(tile_size=[32, 64, 32])
    return np.tanh(y) + 1.0
"""


@pytest.fixture
def tuned(new_page, server):
    """The page with the kernel's run and the result of a search."""
    page = new_page()
    page.goto(server)
    compiled(page)
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("up(")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-verdict b")).to_contain_text("µs, bound by")
    page.locator("#run-actions button", has_text="tune").click()
    dialog = page.locator("dialog.tune")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Seconds to search").select_option("30")
    dialog.get_by_role("button", name="Search").click()
    expect(dialog.get_by_role("status")).to_contain_text("times faster", timeout=60_000)
    return page, dialog


def microseconds(text):
    return float(re.search(r"([\d.]+) µs", text)[1])


def test_the_fastest_point_is_written_into_the_source_and_is_as_fast_as_it_says(tuned):
    page, dialog = tuned
    before = microseconds(page.locator("#run-verdict b").inner_text())
    rows = dialog.locator("tbody tr")
    promised = rows.first.locator("th").inner_text()
    assert microseconds(promised) < before
    tried = dialog.locator(".tune-tried li")
    assert tried.count() >= 3 and "as it is" in tried.last.inner_text()
    rows.first.get_by_role("button", name="Use").click()
    expect(dialog).not_to_be_visible()
    expect(page.locator("#run-verdict b")).to_contain_text(promised)
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+z")
    expect(page.locator("#source-editor .cm-content")).to_contain_text("tile_size=[32, 64, 32]")


def test_a_search_says_why_it_cannot_be(new_page, server):
    page = new_page()
    page.goto(server)
    compiled(page)
    write(page, KERNEL.replace("np.exp(x) @ w", "np.exp(x) @ nothing"))
    expect(page.locator("#status")).to_contain_text("error")
    page.keyboard.press("Control+k")
    expect(page.locator("dialog.palette")).to_be_visible()
    page.keyboard.type("Tune: search")
    expect(page.locator("#palette-list [role=option]").first).to_contain_text("Tune: search")
    page.keyboard.press("Enter")
    dialog = page.locator("dialog.tune")
    dialog.get_by_role("button", name="Search").click()
    expect(dialog.get_by_role("status")).to_contain_text("could not be tuned")
    expect(dialog.get_by_role("status")).to_contain_text("nothing")
    page.keyboard.press("Escape")
    expect(dialog).not_to_be_visible()
