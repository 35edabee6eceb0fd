"""A kernel of several files: tabs, marks and diagnostics in the right one, links that hold all of them."""
import re

import pytest
from playwright.sync_api import expect

from support.axe import violations
from support.page import SCREENS, at_rest, compiled, create, ir_lines, lit_text, open_stage, source_of, write

MAIN = """import numpy as np
from nkigen import trace
from helper import gelu

@trace(input_specs=[((8, 4), "f32")])
def mine(a):
    return gelu(a) + 1.0
"""
HELPER = """import numpy as np

def gelu(x):
    return np.tanh(x) * 0.5
"""


def tab(page, name):
    return page.get_by_role("tab", name=name)


def add(page, name, text):
    page.get_by_role("button", name="+ file").click()
    field = page.get_by_role("textbox", name="Name of the file")
    expect(field).to_be_focused()
    field.fill(name)
    field.press("Enter")
    expect(tab(page, name)).to_have_attribute("aria-selected", "true")
    write(page, text)


def two_files(page, helper=HELPER):
    add(page, "helper.py", helper)
    tab(page, "kernel.py").click()
    write(page, MAIN)
    expect(page.locator("#signature")).to_contain_text("mine")
    compiled(page)


def test_a_file_is_added_named_and_imported(page):
    expect(page.get_by_role("tablist", name="Files")).to_be_hidden()
    two_files(page)
    expect(page.get_by_role("tab")).to_have_count(2)
    expect(page.locator("#problems")).to_be_hidden()
    open_stage(page, "trace")
    expect(page.locator("#ir-viewer .cm-content")).to_contain_text("tanh(")
    assert source_of(page) == MAIN.rstrip("\n") + "\n"
    tab(page, "helper.py").click()
    assert source_of(page) == HELPER
    at_rest(page)
    page.screenshot(path=SCREENS / "files.png")


@pytest.mark.nightly
def test_every_file_keeps_its_own_history_and_caret(page):
    two_files(page)
    tab(page, "helper.py").click()
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("# more")
    tab(page, "kernel.py").click()
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+z")
    assert "gelu(a)" not in source_of(page)
    page.keyboard.press("Control+y")
    assert source_of(page) == MAIN
    tab(page, "helper.py").click()
    assert source_of(page).endswith("# more")
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+z")
    assert source_of(page) == HELPER


def test_an_operation_opens_the_file_that_it_came_from_and_an_expression_lights_its_operations(page):
    two_files(page)
    open_stage(page, "trace")
    tanh = page.locator("#ir-viewer .cm-line", has_text="tanh(")
    tanh.hover()
    expect(tab(page, "helper.py")).to_have_class(re.compile("lit"))
    expect(tab(page, "helper.py")).to_have_attribute("aria-selected", "false")
    assert lit_text(page, "lit-hover-caller") == "gelu(a)"
    tanh.click()
    expect(tab(page, "helper.py")).to_have_attribute("aria-selected", "true")
    assert lit_text(page, "lit-selected") == "np.tanh(x)"
    expect(page.locator("#history")).to_contain_text("helper.py 4:12")
    page.locator("#ir-viewer .cm-line", has_text="ROOT").click()
    expect(tab(page, "kernel.py")).to_have_attribute("aria-selected", "true")
    tab(page, "helper.py").click()
    page.locator("#source-editor .cm-line", has_text="np.tanh").get_by_text("tanh").click()
    expect(page.locator("#ir-viewer .cm-line.lit-selected")).to_contain_text("tanh(")
    # each line of the two files has its own colour, which its operations share
    band = lambda loc: re.search(r"band-\d", loc.get_attribute("class"))[0]
    mul = page.locator("#ir-viewer .cm-line", has_text="ROOT")
    assert band(tanh) == band(page.locator("#source-editor .cm-line", has_text="np.tanh")) != band(mul)


def test_a_diagnostic_leads_to_its_file(page):
    add(page, "helper.py", HELPER.replace("np.tanh(x)", "np.linalg.qr(x)"))
    tab(page, "kernel.py").click()
    write(page, MAIN)
    expect(page.locator("#problems .message")).to_contain_text("linalg.qr")
    expect(tab(page, "helper.py")).to_have_accessible_name("helper.py, has errors")
    expect(page.locator("#source-editor .cm-lintRange-error")).to_have_count(0)
    at_rest(page)
    page.screenshot(path=SCREENS / "files-error.png")
    page.get_by_role("button", name="go to line 4, column 12 of helper.py").click()
    expect(tab(page, "helper.py, has errors")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#source-editor .cm-lintRange-error")).to_have_text("np.linalg.qr(x)")
    page.get_by_role("button", name="called from line 7, column 12 of kernel.py").click()
    expect(tab(page, "kernel.py")).to_have_attribute("aria-selected", "true")
    # corrected, it compiles again
    tab(page, "helper.py, has errors").click()
    write(page, HELPER)
    compiled(page)
    expect(tab(page, "helper.py")).to_have_accessible_name("helper.py")


def test_a_file_is_renamed_and_removed(page):
    two_files(page)
    tab(page, "helper.py").dblclick()
    field = page.get_by_role("textbox", name="Name of the file")
    for bad in ("../up.py", "kernel.py", "a b.py", "x.txt"):
        field.fill(bad)
        field.press("Enter")
        expect(page.locator(".toast")).to_be_visible()
        expect(tab(page, "helper.py")).to_be_visible()
        page.get_by_role("button", name="Rename helper.py (F2)").click()
    field.fill("lib/act.py")
    field.press("Enter")
    expect(tab(page, "lib/act.py")).to_have_attribute("aria-selected", "true")
    tab(page, "kernel.py").click()
    write(page, MAIN.replace("from helper", "from lib.act"))
    compiled(page)
    page.get_by_role("button", name="Rename kernel.py (F2)").click()
    field.fill("main.py")
    field.press("Enter")
    compiled(page)
    expect(tab(page, "main.py, main file")).to_be_visible()
    tab(page, "lib/act.py").click()
    remove = page.get_by_role("button", name="Remove lib/act.py")
    remove.click()
    expect(remove).to_have_text("Remove?")
    remove.click()
    expect(page.get_by_role("tablist", name="Files")).to_be_hidden()
    expect(page.locator("#source-title")).to_have_text("main.py")
    expect(page.locator("#problems .message")).to_contain_text('the module "lib", imported at main.py:3')


def test_axe_finds_nothing_in_the_tabs(new_page, server):
    page = new_page(scheme="light")
    page.goto(server)
    compiled(page)
    two_files(page, HELPER.replace("np.tanh(x)", "np.tanh(x) + int(1.5)"))
    found = violations(page, "tabs")
    tab(page, "helper.py").click()
    found += violations(page, "tabs")
    page.keyboard.press("F2")
    expect(page.get_by_role("textbox", name="Name of the file")).to_be_focused()
    found += violations(page, "tabs")
    assert found == []


@pytest.mark.nightly
def test_the_tabs_work_from_the_keyboard(page):
    two_files(page)
    tab(page, "kernel.py").focus()
    page.keyboard.press("ArrowRight")
    expect(tab(page, "helper.py")).to_be_focused()
    assert source_of(page) == HELPER
    page.keyboard.press("F2")
    expect(page.get_by_role("textbox", name="Name of the file")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#source-editor .cm-content")).to_be_focused()


def test_the_address_holds_all_files(page, new_page, watch):
    code = "/code=[^&]*/.exec(location.hash)?.[0]"
    add(page, "helper.py", HELPER)
    page.wait_for_function("() => /code=/.test(location.hash) && /files=/.test(location.hash)")
    before = page.evaluate(code)
    tab(page, "kernel.py").click()
    write(page, MAIN)
    expect(page.locator("#signature")).to_contain_text("mine")
    page.wait_for_function(f"(before) => {code} !== before", arg=before)  # the address follows later
    tab(page, "helper.py").click()
    page.wait_for_function("() => /code=/.test(location.hash) && /files=/.test(location.hash) && /tab=helper.py/.test(location.hash)")
    other = new_page()
    other.goto(page.url)
    compiled(other)
    expect(tab(other, "helper.py")).to_have_attribute("aria-selected", "true")
    assert source_of(other) == HELPER
    tab(other, "kernel.py").click()
    assert source_of(other) == MAIN


def test_a_stored_link_restores_all_files(page, new_page):
    two_files(page)
    open_stage(page, "trace")
    page.locator("#ir-viewer .cm-line", has_text="tanh(").click()
    link = create(page, title="two files")
    other = new_page()
    other.goto(link)
    expect(other.locator("#shared-bar")).to_contain_text("two files")
    expect(tab(other, "helper.py")).to_have_attribute("aria-selected", "true")
    assert source_of(other) == HELPER and lit_text(other, "lit-selected") == "np.tanh(x)"
    assert any("tanh(" in line for line in ir_lines(other))
    # an edit of any file makes it a fork
    write(other, HELPER.replace("0.5", "0.25"))
    expect(other.locator("#shared-bar")).to_contain_text("Fork of two files")
    compiled(other)
    embed = new_page()
    embed.goto(link.replace("/z/", "/e/"))
    expect(tab(embed, "helper.py")).to_be_visible()
    expect(embed.get_by_role("button", name="Remove helper.py")).to_be_hidden()


@pytest.mark.nightly
def test_an_example_and_another_language_have_one_file(page):
    two_files(page)
    page.locator("#language").select_option("hlo")
    expect(page.get_by_role("tablist", name="Files")).to_be_hidden()
    page.locator("#language").select_option("nkipy")
    expect(page.get_by_role("tablist", name="Files")).to_be_visible()
    page.locator("#example").select_option(index=2)
    expect(page.get_by_role("tablist", name="Files")).to_be_hidden()
    compiled(page)


@pytest.mark.parametrize("width", [1440, 380])
def test_several_python_files_open_as_one_kernel(new_page, server, width):
    page = new_page(width=width)
    page.goto(server)
    compiled(page)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="open…").click()
    as_file = lambda name, text: {"name": name, "mimeType": "text/x-python", "buffer": text.encode()}
    chooser.value.set_files([as_file("helper.py", HELPER), as_file("main.py", MAIN), as_file("other.py", "x = 1\n")])
    compiled(page)
    expect(page.get_by_role("tab")).to_have_text(["main.pymain", "helper.py", "other.py"])
    assert source_of(page) == MAIN
    at_rest(page)
    page.screenshot(path=SCREENS / f"files-opened-{width}.png")
