"""Typing a line, with an answer after each character."""
import pytest
from playwright.sync_api import expect

from support.own_kernel import SOURCE
from support.page import compiled, source_spot, write

LINES = {
    "example": (None, "product + bias", " + np.tanh(product)"),
    "own": (SOURCE, "return norm(x, 1e-6)", " * np.exp(x)"),
}


def answered(page, n: int) -> None:
    page.wait_for_function("(n) => performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/compile')).length > n", arg=n)
    page.wait_for_function("() => !document.body.classList.contains('compiling')")


@pytest.mark.parametrize("which", LINES)
def test_typing_never_empties_the_list_and_never_speaks_of_wrong_values(page, which):
    source, after, typed = LINES[which]
    page.evaluate("() => performance.setResourceTimingBufferSize(5000)")
    if source:
        write(page, source)
        expect(page.locator("#signature")).to_contain_text("block")
        compiled(page)
    total = page.locator("#stages .stage").count()
    assert total > 40
    page.mouse.click(*source_spot(page, after, len(after) - 1))
    page.keyboard.press("End")
    refused = 0
    for char in typed:
        n = page.evaluate("() => performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/compile')).length")
        page.keyboard.type(char)
        answered(page, n)
        assert page.locator("#stages .stage").count() >= total
        assert page.locator("#ir-viewer .cm-line").count() > 5
        refused += page.locator("#status").get_attribute("data-kind") == "error"
        assert "NumPy" not in page.locator("#ir-message").text_content() + page.locator("#status").text_content()
    assert refused > 2
    compiled(page)
