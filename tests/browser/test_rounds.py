"""Rounds of a Python loop are told apart: a chooser for each loop around the selection; everything follows the chosen round."""
import re

import pytest
from playwright.sync_api import Page, expect

from support.page import compiled, open_stage, source_spot, write

LOOP = """import numpy as np
from nkigen import trace


def scaled(x, w):
    for j in range(2):
        x = x * w[j]
    return x


@trace(input_specs=[((128, 64), "f32"), ((3, 128, 64), "f32")])
def looped(x, w):
    for i in range(3):
        x = np.exp(x * w[i])
    for i in range(2):
        x = scaled(np.tanh(x), w)
    return x
"""


@pytest.fixture
def looped(page: Page) -> Page:
    write(page, LOOP)
    expect(page.locator("#ir-title")).to_contain_text("engine-programs")
    compiled(page)
    open_stage(page, "trace")
    expect(page.locator("#ir-viewer .cm-content")).to_contain_text("exponential")
    return page


def choosers(page: Page):
    return page.locator(".round-chooser")


def choose(page: Page, needle: str, offset: int = 3) -> None:
    page.mouse.click(*source_spot(page, needle, offset))


def best(page: Page):
    return page.locator("#ir-viewer .cm-line.lit-best")


def test_a_click_offers_the_rounds_and_the_best_partner_is_of_the_chosen_one(looped):
    choose(looped, "np.exp(x")
    chooser = choosers(looped)
    expect(chooser.locator(".round")).to_have_text("3 rounds")
    expect(chooser).to_have_attribute("title", "for i in range(3) (line 13)")
    expect(looped.locator("#ir-viewer .cm-line.lit-selected")).to_have_count(3)
    names = []
    for n in (1, 2, 3):
        chooser.get_by_role("button", name="next round").click()
        expect(chooser.locator(".round")).to_have_text(f"round {n} of 3")
        expect(looped.locator("#ir-viewer .cm-line.lit-selected")).to_have_count(1)
        names.append(best(looped).text_content().split("=")[0].strip())
    assert len(set(names)) == 3
    chooser.get_by_role("button", name="all rounds").click()
    expect(chooser.locator(".round")).to_have_text("3 rounds")
    expect(looped.locator("#ir-viewer .cm-line.lit-selected")).to_have_count(3)


@pytest.mark.nightly
def test_the_chips_count_the_chosen_round(looped):
    choose(looped, "np.exp(x")
    first = looped.locator("#history .chip").first
    expect(first).to_contain_text("×3")
    choosers(looped).get_by_role("button", name="next round").click()
    expect(first).to_contain_text("exponential")
    expect(first).not_to_contain_text("×")


def test_the_chosen_round_is_kept_through_the_stages(looped):
    choose(looped, "np.exp(x")
    choosers(looped).get_by_role("button", name="next round").click()
    choosers(looped).get_by_role("button", name="next round").click()
    open_stage(looped, "linalg-to-nisa")
    expect(choosers(looped).locator(".round")).to_have_text("round 2 of 3")
    expect(best(looped)).to_contain_text(re.compile(r"sbuf_6\b.*exp"))
    looped.keyboard.press("Escape")
    expect(choosers(looped)).to_have_count(0)


@pytest.mark.nightly
def test_a_loop_in_a_helper_that_a_loop_calls_has_two_choosers(looped):
    choose(looped, "x * w[j]", 2)
    expect(choosers(looped)).to_have_count(2)
    expect(choosers(looped).nth(0)).to_have_attribute("title", re.compile("line 15"))
    expect(choosers(looped).nth(1)).to_have_attribute("title", re.compile("line 6"))
    expect(looped.locator("#ir-viewer .cm-line.lit-selected")).to_have_count(4)
    for i in (0, 1):
        choosers(looped).nth(i).get_by_role("button", name="previous round").click()
        expect(choosers(looped).nth(i).locator(".round")).to_have_text("round 2 of 2")
    expect(looped.locator("#ir-viewer .cm-line.lit-selected")).to_have_count(1)
    # of the call only the loop around it
    choose(looped, "scaled(np.tanh", 2)
    expect(choosers(looped)).to_have_count(1)
    expect(choosers(looped).locator(".round"), "the choice stays within the loop").to_have_text("round 2 of 2")


def test_a_click_in_the_stage_selects_the_round_that_it_belongs_to(looped):
    looped.locator("#ir-viewer .cm-line", has_text="exponential(").nth(1).click()
    expect(choosers(looped).locator(".round")).to_have_text("round 2 of 3")
    choosers(looped).get_by_role("button", name="next round").click()
    expect(choosers(looped).locator(".round")).to_have_text("round 3 of 3")
    expect(best(looped)).to_contain_text("exponential(")


@pytest.mark.nightly
def test_the_card_names_the_round(looped):
    looped.locator("#ir-viewer .cm-line", has_text="exponential(").nth(1).hover()
    expect(looped.locator(".place-round")).to_have_text("round 2 of 3")


def test_a_link_opens_on_the_chosen_round(looped, new_page):
    choose(looped, "np.exp(x")
    choosers(looped).get_by_role("button", name="next round").click()
    expect(looped).to_have_url(re.compile("sel=14:13-14:29~0"))
    other = new_page()
    other.goto(looped.url)
    expect(choosers(other).locator(".round")).to_have_text("round 1 of 3")


def test_the_choosers_work_by_keyboard(looped):
    choose(looped, "np.exp(x")
    choosers(looped).get_by_role("button", name="next round").focus()
    for n in (1, 2):
        looped.keyboard.press("Enter")
        expect(choosers(looped).locator(".round")).to_have_text(f"round {n} of 3")


def test_outside_of_loops_nothing_is_offered(page):
    choose(page, "np.matmul")
    expect(page.locator("#history .chip").first).to_be_visible()
    expect(choosers(page)).to_have_count(0)
