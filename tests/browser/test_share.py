"""The address holds what is seen."""
import re

import pytest
from playwright.sync_api import expect

from support.page import KERNEL, compiled, ir_lines, lit_text, open_stage, selected_stage, source_of, write


def share(page) -> str:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Share").click()
    expect(page.locator("#live")).to_contain_text("Link copied")
    page.get_by_role("button", name="Close", exact=True).click()
    return page.evaluate("() => navigator.clipboard.readText()")


def test_a_shared_link_opens_what_was_seen(page, new_page):
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("mine")
    page.select_option("#target", "trn3")
    compiled(page)
    open_stage(page, "trace")
    line = next(i for i, text in enumerate(ir_lines(page)) if "tanh(" in text)
    page.locator("#ir-viewer .cm-line").nth(line).click(position={"x": 30, "y": 6})
    open_stage(page, "canonicalize:2")
    page.get_by_role("button", name="changed only").click()
    url = share(page)
    assert url == page.url

    other = new_page()
    other.goto(url)
    compiled(other)
    assert source_of(other) == source_of(page)
    expect(other.locator("#target")).to_have_value("trn3")
    assert selected_stage(other) == "canonicalize:2"
    expect(other.locator("#ir-viewer .cm-line.lit-selected").first).to_be_visible()
    assert lit_text(other, "lit-selected") == "np.tanh(a)"
    expect(other.get_by_role("button", name="changed only")).to_have_attribute("aria-pressed", "true")


def test_the_address_follows_and_a_fresh_page_has_none(page, server, new_page):
    assert page.url.rstrip("/") == server
    open_stage(page, "cse")
    page.wait_for_url(re.compile(r"#.*stage=cse&"))
    other = new_page()
    other.goto(page.url)
    compiled(other)
    assert selected_stage(other) == "cse"
    assert source_of(other) == source_of(page)


def test_shapes_from_the_form_are_in_the_link(page, new_page):
    write(page, "def scaled(a):\n    return a * 2.0\n")
    expect(page.locator("#inputs")).to_be_visible()
    page.get_by_label("Shape of input 1").fill("6, 7")
    page.get_by_role("button", name="Use these").click()
    compiled(page)
    other = new_page()
    other.goto(share(page))
    compiled(other)
    expect(other.locator("#signature")).to_contain_text("a f32[6×7]")


def test_a_damaged_link_says_so_and_opens_the_example(new_page, server):
    page = new_page()
    page.goto(f"{server}/#stage=cse&code=eJwrTk0sBAB")
    expect(page.locator("#live")).to_contain_text(re.compile("damaged|Compiled"))
    expect(page.locator(".toast")).to_contain_text("damaged")
    compiled(page)


@pytest.mark.nightly
def test_a_new_fragment_in_the_same_tab_is_opened(page, new_page):
    other = new_page()
    other.goto(page.url)
    compiled(other)
    write(other, KERNEL)
    expect(other.locator("#signature")).to_contain_text("mine")
    compiled(other)
    url = share(other)
    page.evaluate("(hash) => { location.hash = hash }", url[url.index("#") :])
    expect(page.locator("#signature")).to_contain_text("mine")


@pytest.mark.nightly
def test_without_the_clipboard_the_link_is_offered_to_copy(page):
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')) }")
    page.keyboard.press("Control+s")
    expect(page.locator("#share-dialog")).to_be_visible()
    assert page.get_by_role("textbox", name="Link", exact=True).input_value() == page.url
