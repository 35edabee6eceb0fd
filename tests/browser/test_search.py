"""The search over all stages: every stage with its hits, by keyboard and pointer."""
import re

import pytest
from playwright.sync_api import expect

from support.page import SCREENS, selected_stage

HITS = "#search-hits [role=option]"


def search(page, text):
    page.keyboard.press("Control+Shift+F")
    page.get_by_role("combobox", name="Search all stages").fill(text)
    expect(page.locator(".search-pane > .note")).to_contain_text("line")


def test_every_stage_with_a_text_is_listed_with_its_lines(page):
    search(page, "matmul")
    stages = page.locator(".search-stage").all_text_contents()
    assert any("hlo-to-linalg" in s for s in stages) and any("linalg-to-nisa" in s for s in stages)
    assert any(re.match(r"^\d+–\d+", s) for s in stages), "stages of one text are one group"
    expect(page.locator(f"{HITS} mark").first).to_have_text("matmul")
    page.screenshot(path=SCREENS / "search.png")


def test_the_arrows_open_hit_after_hit_and_the_keyboard_stays(page):
    search(page, "linalg.matmul")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#ir-title")).to_contain_text("hlo-to-linalg")
    expect(page.locator("#ir-viewer .cm-line.lit-hover").first).to_contain_text("linalg.matmul")
    expect(page.locator("#ir-viewer .cm-line.lit-hover").first).to_be_in_viewport()
    first = selected_stage(page)
    while page.locator("#ir-title").text_content() and selected_stage(page) == first:
        page.keyboard.press("ArrowDown")
    expect(page.get_by_role("combobox", name="Search all stages")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".search-pane")).to_be_hidden()


def test_the_compact_form_is_found_and_its_line_opened(page):
    search(page, "%psum +=")
    page.locator(HITS).first.click()
    expect(page.locator("#ir-title")).to_contain_text("linalg-to-nisa")
    expect(page.locator("#ir-viewer .cm-line.lit-hover").first).to_contain_text("%psum +=")


@pytest.mark.nightly
def test_a_hit_in_a_folded_row_is_opened(page):
    search(page, "%sbuf_0 = nisa.alloc")
    page.locator(HITS).first.click()
    expect(page.locator("#ir-viewer .cm-line", has_text="%sbuf_0 in SBUF")).to_be_visible()


@pytest.mark.nightly
def test_nothing_found_says_so(page):
    search(page, "no such text")
    expect(page.locator(".search-pane > .note")).to_have_text("0 lines in 0 texts")
