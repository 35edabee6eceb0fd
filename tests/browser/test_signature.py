"""The parameters of the call that is being written."""
import pytest
from playwright.sync_api import expect

from support.page import SCREENS, compiled, write

TIP = "#source-editor .signature"
KERNEL = """import numpy as np
from nkigen import trace, knob

@trace(input_specs=[((128, 256), "f32")])
def kernel(x):
    y = x + 1

    return y
"""


@pytest.fixture
def editor(page):
    """The kernel above, with the caret in its empty line."""
    page.locator("#source-editor .cm-content").focus()
    page.wait_for_function("() => performance.getEntriesByType('resource').some((e) => e.name.endsWith('/ops'))")
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("128×256")
    compiled(page)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    page.keyboard.type("    ")
    return page


def test_the_present_parameter_is_bold_by_position_and_by_name(editor):
    editor.keyboard.type("z = np.sum(")
    expect(editor.locator(TIP)).to_have_text("np.sum(a, axis=None, dtype=None, keepdims=…, initial=…)")
    expect(editor.locator(f"{TIP} b")).to_have_text("a")
    editor.keyboard.type("y, ")
    expect(editor.locator(f"{TIP} b")).to_have_text("axis=None")
    editor.keyboard.type("keepdims=")
    expect(editor.locator(f"{TIP} b")).to_have_text("keepdims=…")
    editor.screenshot(path=SCREENS / "signature.png")
    for _ in "y, keepdims=":
        editor.keyboard.press("ArrowLeft")
    expect(editor.locator(f"{TIP} b")).to_have_text("a")
    editor.keyboard.press("End")
    expect(editor.locator(TIP)).to_have_count(0)


def test_the_innermost_call_is_shown_and_methods_have_no_first_parameter(editor):
    editor.keyboard.type("z = np.maximum(y.sum(")
    expect(editor.locator(TIP)).to_contain_text("sum(axis=None")
    editor.keyboard.type("0), ")
    expect(editor.locator(TIP)).to_contain_text("np.maximum(x1, x2")
    expect(editor.locator(f"{TIP} b")).to_have_text("x2")


@pytest.mark.nightly
def test_knobs_have_signatures_too(editor):
    editor.keyboard.type("knob.knob(y).layout(")
    expect(editor.locator(TIP)).to_have_text("layout(*, partition_dim=None, mem_space=None, tile_size=None)")
    expect(editor.locator(f"{TIP} b")).to_have_count(0)
    editor.keyboard.type("mem_space=")
    expect(editor.locator(f"{TIP} b")).to_have_text("mem_space=None")


@pytest.mark.nightly
def test_escape_closes_it_for_this_call_and_a_key_opens_it(editor):
    editor.keyboard.type("z = np.sum(1")
    expect(editor.locator(TIP)).to_be_visible()
    editor.keyboard.press("Escape")
    expect(editor.locator(TIP)).to_have_count(0)
    editor.keyboard.type("2, 3")
    expect(editor.locator(TIP)).to_have_count(0)
    editor.keyboard.press("Control+Shift+Space")
    expect(editor.locator(f"{TIP} b")).to_have_text("axis=None")
    editor.keyboard.type("), np.exp(")
    expect(editor.locator(TIP)).to_contain_text("np.exp(x")
    editor.locator("#stages").focus()
    expect(editor.locator(TIP)).to_have_count(0)
