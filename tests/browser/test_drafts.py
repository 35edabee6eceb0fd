"""The user's own kernel is kept: over a reload, a closed tab, and a look at an example."""
import re

import pytest
from playwright.sync_api import expect

from support.page import KERNEL, compiled, source_of, write


def test_a_reload_right_after_a_keystroke_loses_nothing(page):
    write(page, KERNEL)
    page.keyboard.insert_text("# the last word")
    page.reload()
    expect(page.locator("#source-editor .cm-content")).to_contain_text("# the last word")
    compiled(page)
    # and once more, after the address has followed
    page.wait_for_function("() => location.hash.includes('code=')")
    page.locator("#source-editor .cm-content").press("Control+End")
    page.keyboard.insert_text(" of all")
    page.reload()
    expect(page.locator("#source-editor .cm-content")).to_contain_text("# the last word of all")


def test_a_closed_tab_comes_back(page, server):
    write(page, KERNEL)
    compiled(page)
    context = page.context
    page.close(run_before_unload=True)
    again = context.new_page()
    again.goto(server)
    compiled(again)
    assert source_of(again).strip() == KERNEL.strip()
    expect(again.locator("#signature")).to_contain_text("mine")


def test_an_example_does_not_lose_the_kernel(page):
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("mine")
    said = page.evaluate_handle("""() => {
      const said = [], live = document.getElementById('live');
      new MutationObserver(() => said.push(live.textContent)).observe(live, { childList: true, characterData: true, subtree: true });
      return said; }""")  # the next announcement takes the place of this one
    page.locator("#example").select_option(label="Softmax over the last axis")
    page.wait_for_function("(said) => said.some((text) => text.includes('Your kernel is kept'))", arg=said)
    expect(page.locator("#signature")).to_contain_text("softmax")
    page.locator("#example").select_option(label="Your kernel")
    expect(page.locator("#signature")).to_contain_text("mine")
    assert source_of(page).strip() == KERNEL.strip()


@pytest.mark.nightly
def test_a_link_that_was_only_looked_at_is_no_draft(page, new_page, server):
    write(page, KERNEL)
    page.wait_for_function("() => location.hash.includes('code=')")
    other = new_page()
    other.goto(page.url)
    compiled(other)
    expect(other.locator("#signature")).to_contain_text("mine")
    other.goto(server + "/?again")
    compiled(other)
    expect(other.locator("#signature")).not_to_contain_text("mine")
    expect(other.locator("#example option:checked")).not_to_have_text(re.compile("Your kernel"))
