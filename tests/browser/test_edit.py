"""Writing, and what comes back while and after it."""
import json
import re
import time

import pytest
from playwright.sync_api import expect

from support.compiler import pipeline
from support.page import compile_api, compiled, ir_lines, open_stage, source_of, write

KERNEL = """import numpy as np
from nkigen import trace

@trace(input_specs=[((64, 32), "f32"), ((64, 32), "f32")])
def mine(a, b):
    return np.tanh(a) * b
"""


def test_editing_recompiles_by_itself(page, server):
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("mine")
    compiled(page)
    open_stage(page, "trace")
    expect(page.locator("#ir-viewer .cm-content")).to_contain_text("tanh(")
    text = compile_api(server, KERNEL)["kernels"][0]["stages"][0]["text"]
    assert "\n".join(ir_lines(page)).strip() == text.strip()
    expect(page.locator("#example option:checked")).to_have_text("Your kernel")


def test_ctrl_enter_compiles_at_once_and_without_it_nothing_compiles_if_the_user_wants_so(new_page, server):
    page = new_page()
    page.clock.install()
    page.goto(server)
    compiled(page)
    asked = []
    page.on("request", lambda r: asked.append(r.url) if "/compile" in r.url else None)
    page.click("#settings-open")
    page.get_by_label("Compile while typing").uncheck()
    page.keyboard.press("Escape")
    write(page, KERNEL)
    expect(page.locator("#status")).to_contain_text("Ctrl+Enter")
    page.clock.run_for(10_000)
    assert asked == []
    expect(page.locator("#signature")).not_to_contain_text("mine")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#signature")).to_contain_text("mine")


def test_stages_fill_from_the_top_as_they_arrive(new_page, slow):
    page = new_page()
    page.goto(slow.url)
    compiled(page)
    total = page.locator("#stages .stage").count()
    slow.hold = True
    write(page, KERNEL)
    slow.let(6)  # start, kernel, the places of the sources, three stages
    fresh = page.locator("#stages .stage:not(.stale)")
    expect(fresh).to_have_count(3)
    # the rest is still the last answer's, dimmed and complete, and so is the text of the stage that is shown
    expect(page.locator("#stages .stage")).to_have_count(total)
    expect(page.locator("#ir-pane")).to_have_class("pane stale")
    assert len(ir_lines(page)) > 5
    expect(page.locator("#cancel")).to_be_visible()
    assert "waiting" in page.locator("body").get_attribute("class")
    slow.let(1)
    expect(fresh).to_have_count(4)
    slow.let(1000)
    compiled(page)
    expect(page.locator("#stages .stage.stale")).to_have_count(0)
    expect(page.locator("#cancel")).to_be_hidden()
    expect(page.locator("#live")).to_contain_text("Compiled")


def test_a_newer_text_cancels_the_compilation_under_way(new_page, slow):
    page = new_page()
    page.goto(slow.url)
    compiled(page)
    slow.hold = True
    write(page, KERNEL)
    slow.let(4)  # start, kernel, the places of the sources, a stage
    expect(page.locator("#stages .stage:not(.stale)")).to_have_count(1)
    page.keyboard.insert_text("# more\n")
    assert slow.aborted.wait(10), "the browser did not give up on the superseded answer"
    slow.hold = False
    slow.let(1000)
    compiled(page)
    assert source_of(page).rstrip().endswith("# more")


@pytest.mark.nightly
def test_cancel_keeps_what_arrived(new_page, slow):
    page = new_page()
    page.goto(slow.url)
    compiled(page)
    slow.hold = True
    write(page, KERNEL)
    slow.let(5)
    page.click("#cancel")
    expect(page.locator("#status")).to_have_text("cancelled")
    expect(page.locator("#stages .stage")).to_have_count(2)


def test_a_half_typed_word_does_not_empty_the_page(page):
    before = page.locator("#stages .stage").count()
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("def (")
    expect(page.locator("#status")).to_have_text("✕ 1 error")
    expect(page.locator("#stages .stage.stale")).to_have_count(before)
    assert len(ir_lines(page)) > 5
    expect(page.locator("#ir-message")).to_contain_text("last version that compiled")
    page.keyboard.press("Control+z")
    compiled(page)
    expect(page.locator("#stages .stage.stale")).to_have_count(0)
    expect(page.locator("#ir-message")).to_be_hidden()


def test_typing_is_followed_within_a_second(page):
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("mine")
    page.keyboard.press("Control+End")
    start = time.monotonic()
    page.keyboard.insert_text("\n# x")
    expect(page.locator("#status")).not_to_have_text("", timeout=1000)
    page.wait_for_function("() => document.querySelector('#live').textContent.startsWith('Compiled')")
    assert time.monotonic() - start < 5


# Changes of the stage list since it began: nodes that came or went outside of figures of time
NOTE_CHANGES = """() => {
  window.rows = [...document.querySelectorAll('#stages .stage')];
  window.changes = [];
  new MutationObserver((all) => all.forEach((m) => m.target.matches?.('.time') || window.changes.push(m.target.outerHTML)))
    .observe(document.querySelector('#stages'), { childList: true, subtree: true });
}"""
SAME_ROWS = "() => { const now = [...document.querySelectorAll('#stages .stage')]; return now.length === window.rows.length && now.every((r, i) => r === window.rows[i]); }"


def list_of(page):
    """The stage list as HTML, without its times and with sorted attributes."""
    html = page.evaluate("""() => {
      const copy = document.querySelector('#stages').cloneNode(true);
      for (const e of copy.querySelectorAll('*')) {
        const all = [...e.attributes].map((a) => [a.name, a.value]).sort();
        for (const [name] of all) e.removeAttribute(name);
        for (const [name, value] of all) if (name !== 'class' || value) e.setAttribute(name, value);
      }
      return copy.innerHTML;
    }""")
    return re.sub(r"[\d.]+ (ms|milliseconds)", "", html)


def test_a_key_that_changes_nothing_changes_no_row_of_the_list(page):
    page.evaluate(NOTE_CHANGES)
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("\n# x")
    page.wait_for_function("() => document.querySelector('#live').textContent.startsWith('Compiled')")
    compiled(page)
    assert page.evaluate("window.changes") == [] and page.evaluate(SAME_ROWS)
    page.keyboard.insert_text("y")  # the same as a delta of the last result
    page.wait_for_timeout(200)
    compiled(page)
    assert page.evaluate("window.changes") == [] and page.evaluate(SAME_ROWS)


def test_a_list_that_was_kept_is_that_of_a_new_page(new_page, server):
    """After another kernel, errors, a check, a filter and hidden rows: the rows that stayed say what new ones say."""
    page = new_page()
    page.goto(server)
    compiled(page)
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#status")).to_contain_text("all pass")
    page.get_by_role("button", name="Check").click()
    compiled(page)
    write(page, "import numpy as np\ndef (")
    expect(page.locator("#status")).to_have_text("✕ 1 error")
    page.get_by_role("button", name="changed only").click()
    expect(page.locator("#stages .gap").first).to_be_visible()
    page.get_by_label("Filter stages").fill("layout")
    expect(page.locator("#stages .gap")).to_have_count(0)
    page.get_by_label("Filter stages").fill("")
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("mine")
    compiled(page)
    kept_short = list_of(page)
    page.get_by_role("button", name="changed only").click()
    expect(page.locator("#stages .gap")).to_have_count(0)
    kept = list_of(page)
    other = new_page()
    other.goto(server)
    compiled(other)
    write(other, KERNEL)
    expect(other.locator("#signature")).to_contain_text("mine")
    compiled(other)
    other.reload()  # the draft is what the first result of this page is made of
    expect(other.locator("#signature")).to_contain_text("mine")
    compiled(other)
    assert kept == list_of(other)
    other.get_by_role("button", name="changed only").click()
    expect(other.locator("#stages .gap").first).to_be_visible()
    assert kept_short == list_of(other)


def test_checks_are_shown_per_stage(page):
    page.get_by_role("button", name="Check").click()
    total = page.locator("#stages .stage").count()
    expect(page.locator("#status")).to_contain_text(f"all {total} stages checked, all pass")
    expect(page.locator("#stages .check-pass").first).to_be_visible()
    expect(page.locator("#stages .check-fail")).to_have_count(0)


def test_a_check_that_ran_out_of_time_does_not_say_that_all_pass(page):
    def hasty(route):
        """The server's answer, as if it had not come to the stages from 20 on."""
        frames = [json.loads(line) for line in route.fetch().text().splitlines()]
        for frame in frames:
            if frame["frame"] == "stage" and frame["stage"]["index"] >= 20:
                frame["stage"]["check"] = {"status": "skipped", "reason": "no time"}
        frames.insert(-1, {"frame": "diagnostic", "diagnostic": {"severity": "warning", "code": "check-incomplete", "message": "no time"}})
        route.fulfill(content_type="application/x-ndjson", body="".join(json.dumps(f) + "\n" for f in frames))

    page.route("**/api/v1/compile", hasty)
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#status")).to_contain_text(f"20 of {len(pipeline())} stages checked, all pass")
    expect(page.locator("#status")).to_have_attribute("title", re.compile(rf"not checked: {len(pipeline()) - 20} stages \(no time\)"))
    expect(page.locator("#problems .message")).to_contain_text("no time")


@pytest.mark.nightly
def test_html_in_a_kernel_stays_text(page):
    evil = 'raise ValueError("<img src=x onerror=alert(1)>")\n'
    write(page, evil)
    expect(page.locator("#problems .message")).to_contain_text("<img src=x onerror=alert(1)>")
    expect(page.locator("#problems img")).to_have_count(0)
