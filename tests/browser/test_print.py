"""What goes to paper."""
import re

import pytest
from playwright.sync_api import expect

from support.marks import few
from support.page import compiled, open_stage, source_of, write

LONG = "import numpy as np\n" + "".join(f"# line {i}\n" for i in range(300)) + 'def long(a: "f32[8,4]"):\n    return np.tanh(a)\n# <b>end</b>\n'


@pytest.mark.parametrize("scheme", few(["light", "dark"], 1))
def test_a_print_has_the_kernel_and_the_stage_in_black_on_white(new_page, server, scheme):
    page = new_page(scheme=scheme)
    page.goto(server)
    compiled(page)
    open_stage(page, "one-shot-bufferize")
    source = source_of(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download this stage's text").click()
    stage = download.value.path().read_text()
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    for chrome in ("#top", "#panes", "#bottom", "#switcher", "#first-line"):
        expect(page.locator(chrome)).to_be_hidden()
    expect(page.locator("#print h1")).to_have_text("matmul_bias_relu · trn2 · one-shot-bufferize")
    assert page.locator("#print pre").nth(0).text_content() == source
    assert page.locator("#print pre").nth(1).text_content() == stage
    expect(page.locator("#print")).to_have_css("color", "rgb(0, 0, 0)")
    expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
    expect(page.locator("html")).to_have_css("background-color", "rgb(255, 255, 255)")
    page.emulate_media(media="screen")
    page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    expect(page.locator("#print")).to_be_empty()
    expect(page.locator("#panes")).to_be_visible()


@pytest.mark.nightly
def test_a_print_goes_on_over_pages_and_its_text_is_no_markup(page):
    write(page, LONG)
    expect(page.locator("#status")).to_have_text(re.compile("stages|error"))
    pdf = page.pdf()
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 4  # 300 lines and a stage
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert "# <b>end</b>" in page.locator("#print pre").first.text_content()
    assert page.locator("#print b").count() == 0
