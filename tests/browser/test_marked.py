"""Line numbers make links to lines, and the ticks at the edge lead to their lines."""
from playwright.sync_api import expect

from support.own_kernel import SOURCE
from support.page import compiled, open_stage, source_spot, write


def number(page, pane, n):
    return page.locator(f"#{pane} .cm-lineNumbers .cm-gutterElement").get_by_text(str(n), exact=True)


def marked(page, pane):
    return page.locator(f"#{pane} .cm-line.line-marked")


def test_a_line_number_makes_a_link_to_the_line_and_shift_to_a_range(page, new_page):
    open_stage(page, "one-shot-bufferize")
    number(page, "ir-viewer", 12).click()
    expect(marked(page, "ir-viewer")).to_have_count(1)
    number(page, "ir-viewer", 14).click(modifiers=["Shift"])
    expect(marked(page, "ir-viewer")).to_have_count(3)
    texts = marked(page, "ir-viewer").all_text_contents()
    page.wait_for_function("() => location.hash.includes('line=ir:12-14')")
    other = new_page()
    other.goto(page.url)
    compiled(other)
    assert marked(other, "ir-viewer").all_text_contents() == texts
    expect(marked(other, "ir-viewer").first).to_be_in_viewport()
    # it belongs to its stage
    other.locator("#stages").press("k")
    expect(marked(other, "ir-viewer")).to_have_count(0)
    # a second click takes the mark away
    number(page, "ir-viewer", 12).click()
    number(page, "ir-viewer", 12).click()
    expect(marked(page, "ir-viewer")).to_have_count(0)


def test_a_line_of_the_source_has_a_link_too(page, new_page):
    number(page, "source-editor", 15).click()
    expect(marked(page, "source-editor")).to_contain_text("shifted = product + bias")
    page.wait_for_function("() => location.hash.includes('line=src:15')")
    other = new_page()
    other.goto(page.url)
    expect(marked(other, "source-editor")).to_contain_text("shifted = product + bias")


def test_a_tick_leads_to_its_line(page):
    write(page, SOURCE)
    expect(page.locator("#signature")).to_contain_text("block")
    page.wait_for_function("() => !document.body.classList.contains('compiling')")
    open_stage(page, "one-shot-bufferize")
    page.mouse.click(*source_spot(page, "g @ w2", 2))
    expect(page.locator("#ir-viewer .lit-best")).to_be_in_viewport()
    ruler = page.locator("#ir-viewer .ruler")
    # the lowest tick, from the canvas itself
    y = ruler.evaluate(
        """(c) => { const g = c.getContext('2d'), k = c.height / c.clientHeight;
             const { data } = g.getImageData(0, 0, 1, c.height);
             for (let y = c.height - 1; y >= 0; y--) if (data[4 * y + 3] > 0) return y / k;
             return -1; }""")
    box = ruler.bounding_box()
    before = page.locator("#ir-viewer .cm-scroller").evaluate("(s) => s.scrollTop")
    page.mouse.click(box["x"] + 3, box["y"] + y - 1)
    page.wait_for_function("(before) => document.querySelector('#ir-viewer .cm-scroller').scrollTop > before + 100", arg=before)
    expect(page.locator("#ir-viewer .cm-line.lit-selected").last).to_be_in_viewport()
