"""What passes decided: above the operations, after the expressions, and in the stage's list."""
import re

import pytest
import requests
from playwright.sync_api import expect

from support.page import compile_api, ir_lines, lit_text, open_stage, source_of
from support.source_map import text_of

TILING = "knob-driven-tiling"


@pytest.fixture
def source(server):
    return requests.get(f"{server}/api/v1/examples").json()["examples"][0]["source"]


@pytest.fixture
def stage(server, source):
    stages = compile_api(server, source)["kernels"][0]["stages"]
    return next(s for s in stages if s["name"] == TILING)


def note_above(page, text):
    """The notes that stand right above the line with this text."""
    return page.evaluate(
        """(text) => { const line = [...document.querySelectorAll('#ir-viewer .cm-line')].find((l) => l.textContent.includes(text));
             const above = line.previousElementSibling;
             return above?.classList.contains('note-above') ? [...above.children].map((c) => c.textContent) : []; }""",
        text,
    )


def note_behind(page, text):
    line = page.locator("#source-editor .cm-line", has_text=text).first
    return line.get_attribute("data-note")


def test_remarks_stand_above_their_operations(page, stage):
    open_stage(page, TILING)
    matmul = next(i for i, line in enumerate(stage["text"].split("\n")) if "linalg.matmul " in line)
    of_matmul = [r["text"] for r in stage["remarks"] if r.get("op") == stage["lines"][matmul]["op"]]
    assert of_matmul and of_matmul[0].startswith("TILE=[128,512,128]")
    shown = note_above(page, "linalg.matmul ")
    said = [text for row in shown for text in row.split(" · ")]
    assert said[:2] == of_matmul[:2] and len(shown) <= 3
    # short texts share a row
    assert all(len(row) <= 96 for row in shown)
    # the text of the stage is what it was
    lines = ir_lines(page)
    assert lines == stage["text"].split("\n")[: len(lines)]
    open_stage(page, "infer-layout")
    assert note_above(page, "linalg.matmul ") == ["TILE=[128,512,128] (as given) · in SBUF (as given) · dimension 0 across the partitions"]


def test_remarks_stand_after_the_expressions_without_becoming_source(page, source):
    open_stage(page, TILING)
    assert note_behind(page, "product = np.matmul(x, w)").startswith("TILE=[128,512,128]")
    assert note_behind(page, "import numpy") is None
    assert source_of(page).strip() == source.strip()
    open_stage(page, "trace")
    assert note_behind(page, "product = np.matmul(x, w)") is None


@pytest.mark.nightly
def test_notes_stay_with_their_lines_while_the_text_is_edited(page):
    page.evaluate("() => localStorage.setItem('nkx.settings', JSON.stringify({autoCompile: false}))")
    page.reload()
    open_stage(page, TILING)
    expect(page.locator("#source-editor .cm-line.noted").first).to_be_visible()
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+Home")
    page.keyboard.press("Enter")
    assert note_behind(page, "product = np.matmul(x, w)").startswith("TILE=[128,512,128]")


def test_the_list_leads_to_operations_and_expressions(page, source, stage):
    open_stage(page, TILING)
    button = page.locator("#ir-remarks-open")
    expect(button).to_have_text(f"Decisions{len(stage['remarks'])}")
    expect(page.locator("#ir-remarks")).to_be_hidden()
    button.click()
    entries = page.locator("#ir-remarks .remark")
    expect(entries).to_have_count(len(stage["remarks"]))
    for i, remark in enumerate(stage["remarks"]):
        expect(entries.nth(i)).to_contain_text(remark["text"])
        expect(entries.nth(i)).to_contain_text(text_of(source, remark["src"][0]))
    last = stage["remarks"][-1]
    entries.last.hover()
    expect(page.locator("#ir-viewer .cm-line.lit-hover")).to_have_count(1)
    entries.last.click()
    page.mouse.move(2, 2)
    text = stage["text"].split("\n")[next(i for i, e in enumerate(stage["lines"]) if e.get("op") == last["op"])]
    expect(page.locator("#ir-viewer .cm-line.lit-selected")).to_have_text(text)
    assert lit_text(page, "lit-selected") == text_of(source, last["src"][0])
    # open in the next stage, too, and away where there is nothing to list
    open_stage(page, "infer-layout")
    expect(page.locator("#ir-remarks")).to_be_visible()
    page.get_by_role("button", name="Clear the selection").click()
    open_stage(page, "trace")
    expect(page.locator("#ir-remarks")).to_be_hidden()
    expect(button).to_be_hidden()


def test_the_pointer_on_an_expression_shows_the_first_decisions_and_the_drawer_all(page):
    line = page.locator("#source-editor .cm-line", has_text="product = np.matmul(x, w)").first
    box = line.bounding_box()
    page.mouse.move(box["x"] + 160, box["y"] + box["height"] / 2)
    tip = page.locator(".source-tip")
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("infer-layout")
    expect(tip).to_contain_text("click, then Decisions")
    page.mouse.click(box["x"] + 160, box["y"] + box["height"] / 2)
    page.locator("#ir-remarks-open").click()
    about = page.locator("#ir-remarks .about-selection")
    for text in ("infer-layout", "TILE=[128,512,128] (as given)", "in SBUF (as given)", TILING, "promoted 2 inputs to SBUF", "legalize-layout"):
        expect(about).to_contain_text(text)


@pytest.mark.nightly
def test_the_explanation_of_the_pass_is_there(page, server):
    described = {s["name"]: s["summary"] for s in requests.get(f"{server}/api/v1/pipeline").json()["stages"]}
    open_stage(page, TILING)
    expect(page.locator("#ir-summary")).to_have_text(described[TILING])


def test_instructions_are_counted_at_the_end(page):
    open_stage(page, "linalg-to-nisa")
    page.locator("#ir-remarks-open").click()
    expect(page.locator("#ir-remarks")).to_contain_text(re.compile(r"\d+ instructions, loops counted once: 1 tensor"))
