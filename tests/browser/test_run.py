"""The view of the simulated run: what it shows is what the API says, and its parts are one selection."""
import re

import pytest
import requests
from playwright.sync_api import expect

from support.page import compiled

MLP = """import numpy as np
from nkigen import trace

def norm(x, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)

@trace(input_specs=[((256, 128), 'f32'), ((128, 256), 'f32'), ((256, 128), 'f32')])
def mlp(x, w1, w2):
    h = norm(x, 1e-5) @ w1
    for i in range(2):
        h = np.tanh(h)
    return norm(h @ w2, 1e-5)
"""


def profile_of(server, source):
    answer = requests.post(f"{server}/api/v1/compile", json={"source": source, "simulate": True}, timeout=60).json()
    return answer["kernels"][0]["profile"]


@pytest.fixture
def run(new_page, server):
    page = new_page()
    page.goto(server)
    compiled(page)
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(MLP)
    expect(page.locator("#signature")).to_contain_text("mlp(")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-verdict b")).to_contain_text("µs, bound by")
    return page


def test_the_verdict_and_the_use_are_those_of_the_profile(run, server):
    p = profile_of(server, MLP)
    expect(run.locator("#run-verdict b")).to_contain_text(f"{p['total_us']:.1f} µs" if p["total_us"] < 100 else f"{p['total_us']:.0f} µs")
    expect(run.locator("#run-verdict")).to_contain_text("equals NumPy")
    assert run.locator(".use > span:first-child").all_text_contents() == [lane["name"] for lane in p["lanes"]]
    widths = run.locator(".use-bar").evaluate_all("(bars) => bars.map((b) => b.offsetWidth / b.parentElement.offsetWidth)")
    for width, lane in zip(widths, p["lanes"], strict=True):
        assert abs(width - lane["share"]) < 0.02
    assert run.locator(".reasons li").count() == min(len(p["advice"]), 8)


def test_the_lines_of_the_source_wear_their_share_of_the_critical_path(run, server):
    p = profile_of(server, MLP)
    want = [line["line"] for line in sorted(p["lines"], key=lambda x: x["line"]) if line["critical_us"] > 0]
    shown = run.evaluate("""() => [...document.querySelectorAll('#source-editor .cm-heat .cm-gutterElement')]
        .flatMap((cell) => { if (!cell.querySelector('.heat') || cell.style.visibility === 'hidden') return [];
            const y = cell.getBoundingClientRect().top;
            const number = [...document.querySelectorAll('#source-editor .cm-lineNumbers .cm-gutterElement')]
                .find((n) => n.style.visibility !== 'hidden' && Math.abs(n.getBoundingClientRect().top - y) < 3);
            return [Number(number.textContent)]; })""")
    assert shown == want


def test_the_critical_path_is_walked_by_keyboard_and_selects_the_source(run):
    run.locator("#run-lanes canvas").focus()
    said = []
    for _ in range(4):
        run.keyboard.press("]")
        expect(run.locator("#run-chosen b")).to_contain_text("on the critical path")
        said.append(run.locator("#run-chosen b").inner_text())
    starts = [float(re.search(r"([\d.]+)–", text)[1]) for text in said]
    assert starts == sorted(starts) and len(set(said)) == 4
    expect(run.locator("#source-editor .lit-range, #source-editor .lit-selected").first).to_be_visible()
    run.keyboard.press("[")
    assert run.locator("#run-chosen b").inner_text() == said[2]


def test_a_click_on_a_block_selects_what_it_was_made_from(run):
    box = run.locator("#run-lanes canvas").bounding_box()
    # a block is somewhere on the first row
    for x in range(110, int(box["width"]), 6):
        run.mouse.click(box["x"] + x, box["y"] + 22 + 13)
        if run.locator("#run-chosen b").count() > 0:
            break
    expect(run.locator("#run-chosen b")).to_contain_text("µs")
    expect(run.locator("#source-editor .lit-range, #source-editor .lit-selected").first).to_be_visible()


def test_every_picture_has_a_table(run, server):
    p = profile_of(server, MLP)
    run.get_by_role("button", name="tables").click()
    tables = run.locator("#run-tables table")
    expect(tables.locator("caption")).to_have_text(["Lines of the source", "Engines and queues", "The critical path", "SBUF at its peak", "PSUM at its peak", "Buffers in SBUF", "Buffers in PSUM"])
    assert tables.nth(0).locator("tbody tr").count() == len(p["lines"])
    assert tables.nth(3).locator("tbody tr").count() == len(p["memory"]["sbuf"]["alive"])


def test_the_run_follows_an_edit_and_a_link_opens_it(run, new_page):
    before = run.locator("#run-verdict b").inner_text()
    run.locator("#source-editor .cm-content").focus()
    run.keyboard.press("Control+a")
    run.keyboard.insert_text(MLP.replace("range(2)", "range(6)"))
    expect(run.locator("#run-verdict b")).not_to_have_text(before)
    expect(run.locator("#run-verdict b")).to_contain_text("µs, bound by")
    run.wait_for_url(re.compile("view=run"))
    other = new_page()
    other.goto(run.url)
    expect(other.locator("#run-verdict b")).to_contain_text("µs, bound by")


@pytest.mark.nightly
def test_a_kernel_that_does_not_compile_has_no_run(run):
    run.locator("#source-editor .cm-content").focus()
    run.keyboard.press("Control+a")
    run.keyboard.insert_text(MLP.replace("@ w1", "@ w3"))
    expect(run.locator("#status")).to_contain_text("error")
    expect(run.locator("#run-pane")).to_have_class(re.compile("stale"))
