"""The compact form of the stages: the default for NISA, one key away from the full text, tied to the source like it."""
import re

import pytest
from playwright.sync_api import expect

from support.page import SCREENS, compiled, ir_lines, lit_text, open_stage

FOLD = "#ir-viewer .cm-line.folded"


def row(page, text):
    return page.locator("#ir-viewer .cm-line", has_text=text)


def choose(page, example):
    page.locator("#example").select_option(example)
    expect(page.locator("#signature")).to_contain_text(example)
    compiled(page)


@pytest.fixture
def instructions(page):
    """The first example's instructions, before the machine has a place for them."""
    open_stage(page, "linalg-to-nisa")
    return page


def test_nisa_is_compact_and_one_key_shows_the_full_text(instructions):
    page = instructions
    assert any(re.search(r"^T +%psum \+= %sbuf_1\[:, j, i\]ᵀ @ %sbuf_2\[:, j\] +\[128×512 f32\]$", line) for line in ir_lines(page))
    assert any(re.search(r"^V +%sbuf_4 ← max\(%sbuf\[:, i\], 0\)", line) for line in ir_lines(page))
    assert any(re.search(r"^ +for i in 0\.\.2 \(2 rounds\)$", line) for line in ir_lines(page))
    page.keyboard.press("r")
    expect(row(page, "nisa.matmul(dst<128| 512>=memref")).to_have_count(1)
    expect(page.get_by_role("button", name="full text")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("r")
    expect(row(page, "nisa.matmul(")).to_have_count(0)


@pytest.mark.nightly
def test_the_full_text_stays_chosen_after_a_reload(instructions):
    page = instructions
    page.keyboard.press("r")
    page.reload()
    compiled(page)
    open_stage(page, "linalg-to-nisa")
    expect(row(page, "nisa.matmul(")).to_have_count(1)


def test_both_forms_have_the_same_links(instructions):
    page = instructions
    compact = row(page, "← max(")
    compact.click(position={"x": 60, "y": 6})
    expect(compact).to_have_class(re.compile("lit-selected"))
    assert lit_text(page, "lit-selected") == "np.maximum(shifted, 0.0)"
    chosen = page.url.split("sel=")[-1].split("&")[0] if "sel=" in page.url else None
    page.keyboard.press("r")
    full = row(page, "op0=max")
    expect(full).to_have_class(re.compile("lit-selected"))
    expect(full).to_be_in_viewport()
    assert lit_text(page, "lit-selected") == "np.maximum(shifted, 0.0)"
    assert chosen is None or f"sel={chosen}" in page.url


@pytest.mark.nightly
def test_a_row_has_the_number_of_its_line(instructions):
    page = instructions
    numbered = """(text) => { const line = [...document.querySelectorAll('#ir-viewer .cm-line')].find((l) => l.textContent.includes(text));
      const top = line.getBoundingClientRect().top;
      return [...document.querySelectorAll('#ir-viewer .cm-lineNumbers .cm-gutterElement')]
        .find((n) => Math.abs(n.getBoundingClientRect().top - top) < 2).textContent; }"""
    compact = page.evaluate(numbered, "← max(")
    page.keyboard.press("r")
    row(page, "op0=max").click(position={"x": 60, "y": 6})
    assert page.evaluate(numbered, "op0=max") == compact


def test_constants_and_allocations_are_one_row_that_opens_by_click_and_key(instructions):
    page = instructions
    fold = page.locator(FOLD).first
    expect(fold).to_have_text(re.compile(r"▸ 4 allocations, 1\.3 MiB SBUF, 512 KiB HBM · 5 constants"))
    before = len(ir_lines(page))
    fold.click()
    expect(fold).to_contain_text("▾")
    expect(row(page, "%sbuf_0 in SBUF")).to_contain_text("[128×2×1×512 f32]")
    assert len(ir_lines(page)) > before
    fold.click()
    expect(row(page, "%sbuf_0 in SBUF")).to_have_count(0)
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("Control+Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(row(page, "%sbuf_0 in SBUF")).to_have_count(1)
    expect(page.locator("#ir-viewer .cm-content")).to_be_focused()


@pytest.mark.nightly
def test_a_choice_within_a_fold_lights_the_fold(instructions):
    page = instructions
    page.locator(FOLD).first.click()
    row(page, "%sbuf_0 in SBUF").locator(".ir-value").first.click()
    expect(row(page, "%sbuf_0 in SBUF")).to_have_class(re.compile("lit-selected"))
    page.locator(FOLD).first.click()
    expect(page.locator(FOLD).first).to_have_class(re.compile("lit-selected"))


def test_engine_programs_have_headings_waits_and_signals(page):
    open_stage(page, "engine-programs")
    lines = "\n".join(ir_lines(page))
    assert re.search(r"^T Tensor engine$", lines, re.M)
    assert re.search(r"‖ wait tensor ≥ \d+$", lines, re.M)
    assert re.search(r"^V .*\[128×512 f32\] ↑$", lines, re.M)
    assert re.search(r"▶ start qSyncIn$", lines, re.M)


@pytest.mark.nightly
def test_every_engine_has_its_letter_in_its_colour(new_page, server):
    for scheme in ("dark", "light"):
        page = new_page(scheme=scheme)
        page.goto(server)
        compiled(page)
        open_stage(page, "engine-programs")
        page.screenshot(path=SCREENS / f"compact-{scheme}.png")
        colours = {
            letter: page.locator(f"#ir-viewer .ir-engine-{letter}").first.evaluate("(e) => getComputedStyle(e).color")
            for letter in "TVGYD"
        }
        assert len(set(colours.values())) == 5, colours


@pytest.mark.nightly
def test_large_constants_and_attributes_are_hidden_and_shown(page):
    choose(page, "rope")
    open_stage(page, "trace")
    assert all(len(line) < 400 for line in ir_lines(page))
    page.keyboard.press("r")
    expect(row(page, "0.5403023").first).to_be_attached()
    page.keyboard.press("r")
    open_stage(page, "infer-layout")
    expect(row(page, "loop_tile_size").first).to_be_visible()
    page.keyboard.press("t")
    expect(row(page, "loop_tile_size")).to_have_count(0)
    assert any("nkipy.tile_op" in line for line in ir_lines(page))
    page.keyboard.press("t")
    expect(row(page, "loop_tile_size").first).to_be_visible()
