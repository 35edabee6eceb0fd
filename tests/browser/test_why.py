"""Why: the reasons of a decision, and the knob that one click writes into the source."""
import re
import subprocess

import pytest
from playwright.sync_api import expect

from browser.test_files import MAIN, tab, two_files
from support.axe import looked_at
from support.marks import few
from support.page import compiled, open_stage, source_of, write
from support.paths import NKX

HELPER = """import numpy as np
from nkigen import trace


def scaled(v):
    return np.exp(v * 0.5)


@trace(input_specs=[((256, 512), "f32"), ((256, 512), "f32")])
def twice(a, b):
    return scaled(a) + scaled(b)
"""
OTHER_NAMES = """import numpy as np
from nkipy import knob as place
from nkigen import trace


@trace(input_specs=[((256, 512), "f32")])
def f(x):
    y = np.exp(x)  # a note
    return np.tanh(y) + y
"""


def choose(page, text):
    """Selects the expression at the first place of this text."""
    at = page.evaluate(
        """async (text) => {
          const frame = () => new Promise(requestAnimationFrame);
          const find = () => { for (const line of document.querySelectorAll('#source-editor .cm-line')) {
              const i = line.textContent.indexOf(text);
              if (i < 0) continue;
              const walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
              let seen = 0;
              while (walk.nextNode()) {
                const n = walk.currentNode;
                if (i < seen + n.length) { const r = document.createRange(); r.setStart(n, i - seen); r.setEnd(n, i - seen + 1); return r.getBoundingClientRect(); }
                seen += n.length; } } };
          let last = find();
          for (let same = 0; same < 5; ) { await frame(); const now = find(); same = now && last && now.x === last.x && now.y === last.y ? same + 1 : 0; last = now; }
          return [last.x + 2, last.y + last.height / 2]; }""",
        text,
    )
    page.mouse.click(*at)
    expect(page.locator("#history-head, .history-head code.op")).to_be_visible()


def decisions(page):
    opened = page.locator("#ir-remarks-open")
    if opened.get_attribute("aria-pressed") != "true":
        opened.click()
    return page.locator("#ir-remarks .about-selection > li")


def why(page, about):
    """Opens the reasons of the decision of infer-layout about the selection with this text."""
    row = decisions(page).filter(has_text="infer-layout").filter(has_text=about).first
    toggle = row.locator(".why-open")
    if toggle.get_attribute("aria-expanded") == "false":
        toggle.click()
    expect(row.locator(".why")).to_be_visible()
    return row.locator(".why")


def test_a_decision_says_its_rule_its_limits_and_what_was_rejected(page):
    open_stage(page, "infer-layout")
    choose(page, "np.matmul")
    box = why(page, "TILE=[128,512,128]")
    expect(box.locator(".rule")).to_contain_text("tile-size A tile fills the partitions")
    meters = box.get_by_role("meter")
    expect(meters).to_have_count(2)
    expect(meters.nth(1)).to_have_attribute("aria-valuetext", "512 of 512 f32 columns of the product")
    used = meters.nth(1).locator(".used").bounding_box()["width"]
    assert used > 0.9 * meters.nth(1).bounding_box()["width"] - 2
    expect(box.locator(".chosen")).to_have_text("this: 4 tiles")
    expect(box.locator(".rejected li").first).to_contain_text("instead [128, 256, 128]: 8 tiles; a product would fill less of a PSUM bank")
    expect(box.get_by_role("button", name="Write .tile_op(tile_size=[128, 256, 128])")).to_be_visible()


def test_one_click_changes_the_knob_that_is_there_and_the_decision_follows(page):
    open_stage(page, "infer-layout")
    before = source_of(page)
    choose(page, "np.matmul")
    why(page, "TILE=[128,512,128]").get_by_role("button", name="Write .tile_op(tile_size=[128, 256, 128])").click()
    expect(decisions(page).filter(has_text="TILE=[128,256,128] (as given)").first).to_be_visible()
    compiled(page)
    assert source_of(page) == before.replace("knob.knob(product).tile_op(tile_size=[128, 512, 128])", "knob.knob(product).tile_op(tile_size=[128, 256, 128])")
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+z")
    assert source_of(page) == before


def test_a_new_knob_stands_after_the_assignment_with_its_import(page):
    write(page, HELPER.replace("return scaled(a) + scaled(b)", "s = a * 2.0  # twice\n    return s + b"))
    compiled(page)
    open_stage(page, "infer-layout")
    choose(page, "a * 2.0")
    why(page, "in SBUF").get_by_role("button", name='Write .layout(mem_space="Hbm")').click()
    expect(page.locator(".toast")).to_contain_text('knob.knob(s).layout(mem_space="Hbm")')
    expect(decisions(page).filter(has_text="in HBM (as given)").first).to_be_visible()
    text = source_of(page)
    assert "from nkigen import trace, knob\n" in text
    assert 's = a * 2.0  # twice\n    knob.knob(s).layout(mem_space="Hbm")\n    return s + b' in text


@pytest.mark.nightly
def test_an_expression_without_a_name_is_wrapped_and_all_calls_of_a_helper_are_named(page):
    write(page, HELPER)
    compiled(page)
    open_stage(page, "infer-layout")
    choose(page, "v * 0.5")
    why(page, "in SBUF").get_by_role("button", name='Write .layout(mem_space="Hbm")').click()
    expect(page.locator(".toast")).to_contain_text("computed in 2 calls of scaled")
    expect(decisions(page).filter(has_text="in HBM (as given)").first).to_be_visible()
    assert 'return np.exp(knob.knob(v * 0.5, mem_space="Hbm"))' in source_of(page)


def test_a_knob_is_written_into_the_file_of_its_expression(page):
    two_files(page)
    tab(page, "helper.py").click()
    open_stage(page, "infer-layout")
    choose(page, "np.tanh")
    box = why(page, "in SBUF")
    tab(page, "kernel.py").click()
    box.get_by_role("button", name='Write .layout(mem_space="Hbm")').click()
    expect(tab(page, "helper.py")).to_have_attribute("aria-selected", "true")
    expect(decisions(page).filter(has_text="in HBM (as given)").first).to_be_visible()
    assert source_of(page) == 'import numpy as np\nfrom nkigen import knob\n\ndef gelu(x):\n    return knob.knob(np.tanh(x), mem_space="Hbm") * 0.5\n'
    tab(page, "kernel.py").click()
    assert source_of(page) == MAIN


@pytest.mark.nightly
def test_a_knob_function_under_another_name_is_used_as_it_is_imported(page):
    write(page, OTHER_NAMES)
    compiled(page)
    open_stage(page, "infer-layout")
    choose(page, "np.exp")
    why(page, "in SBUF").get_by_role("button", name='Write .layout(mem_space="Hbm")').click()
    expect(decisions(page).filter(has_text="in HBM (as given)").first).to_be_visible()
    assert 'y = np.exp(x)  # a note\n    place(y, mem_space="Hbm")\n' in source_of(page)


@pytest.mark.nightly
def test_a_later_decision_shows_the_knob_of_the_one_that_it_follows(page):
    open_stage(page, "annotate-memory-space")
    choose(page, "np.matmul")
    row = decisions(page).filter(has_text="annotate-memory-space").filter(has_text="lies in SBUF").first
    row.locator(".why-open").click()
    expect(row.locator(".why")).to_contain_text("Decided by infer-layout: in SBUF (as given)")
    row.get_by_role("button", name='Write .layout(mem_space="Hbm")').click()
    expect(page.locator(".toast")).to_contain_text("Written")
    expect(decisions(page).filter(has_text="in HBM (as given)").first).to_be_visible()


def test_the_key_opens_the_reasons_and_the_palette_writes_a_knob(page):
    open_stage(page, "infer-layout")
    choose(page, "np.matmul")
    page.locator("#stages").focus()
    page.keyboard.press("y")
    expect(page.locator("#ir-remarks .about-selection .why").first).to_be_visible()
    expect(page.locator("#ir-remarks .why-open:focus")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Control+k")
    expect(page.locator("dialog.palette input")).to_be_focused()
    page.keyboard.insert_text("write knob mem_space")
    expect(page.locator('.palette-row[aria-selected="true"]')).to_contain_text('layout(mem_space="Hbm"), not "Sbuf"')
    page.keyboard.press("Enter")
    expect(page.locator(".toast")).to_contain_text('.layout(mem_space="Hbm")')
    expect(page.locator("#source-editor")).to_contain_text('.layout(mem_space="Hbm")')


def test_a_text_that_has_changed_since_is_not_written_to(page):
    page.evaluate("() => localStorage.setItem('nkx.settings', JSON.stringify({autoCompile: false}))")
    page.reload()
    compiled(page)
    open_stage(page, "infer-layout")
    choose(page, "np.matmul")
    box = why(page, "TILE=[128,512,128]")
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+Home")
    page.keyboard.insert_text("# new\n")
    changed = source_of(page)
    box.get_by_role("button", name="Write .tile_op(tile_size=[128, 256, 128])").click()
    expect(page.locator(".toast")).to_contain_text("has changed since it was compiled")
    assert source_of(page) == changed


@pytest.mark.parametrize("scheme", few(["light", "dark"], 1))
def test_axe_and_the_contrast_walk_find_nothing_in_open_reasons(new_page, server, scheme):
    page = new_page(1440, 900, scheme)
    page.goto(server)
    compiled(page)
    open_stage(page, "infer-layout")
    choose(page, "np.matmul")
    expect(why(page, "TILE=[128,512,128]").locator(".because")).to_be_visible()
    why(page, "dimension 0")
    assert looked_at(page, scheme, "reasons") == []


@pytest.mark.parametrize("width,height,scheme", few([(390, 844, "light"), (1440, 900, "dark"), (1280, 720, "light")], 1))
def test_reasons_stay_inside_their_pane(new_page, server, width, height, scheme):
    page = new_page(width, height, scheme)
    page.goto(server)
    if width > 500:
        compiled(page)
        open_stage(page, "infer-layout")
        choose(page, "np.matmul")
        box = why(page, "TILE=[128,512,128]").bounding_box()
        pane = page.locator("#ir-remarks").bounding_box()
        assert box["x"] >= pane["x"] and box["x"] + box["width"] <= pane["x"] + pane["width"] + 1
    assert page.evaluate("() => document.scrollingElement.scrollWidth <= innerWidth")


def test_the_chain_of_decisions_is_one_text_and_that_of_the_terminal(page, tmp_path):
    open_stage(page, "linalg-to-nisa")
    choose(page, "np.matmul")
    page.get_by_role("button", name="why, as a text").click()
    dialog = page.locator("#why-text")
    expect(dialog.locator("pre")).to_contain_text("Rule psum-sum: ")
    said = dialog.locator("pre").text_content()
    (tmp_path / "kernel.py").write_text(source_of(page))
    line = re.match(r"line (\d+) of linalg-to-nisa: ", said)[1]
    assert said == subprocess.run([NKX, "why", "kernel.py", "linalg-to-nisa", line], capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    assert looked_at(page, "dark", "why") == []
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
