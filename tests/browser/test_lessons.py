"""Lessons: walked to their ends by keyboard, kept in the browser, opened by link, written in the page, printed."""
import json
import re

import pytest
from playwright.sync_api import expect

from support.axe import looked_at
from support.paths import ROOT

NAMES = [p.stem.split("_", 1)[1] for p in sorted((ROOT / "explorer/lessons").glob("*.md"))]
IN_SHORT = ("tracing", "miscompile")  # between them they have tasks of every kind
OWN = """# My own lesson

About <b>nothing</b> much.

## One

Text with `code`, **bold** and [a stage](stage:dce).

- first
- second

```python kernel
import numpy as np
from nkigen import trace


@trace(input_specs=[((8, 4), "f32")])
def f(x):
    return np.tanh(x)
```

## Two

More.
"""


def opened(page, server, name, step):
    page.goto(f"{server}/#lesson={name}&step={step}")
    expect(page.locator("#lesson-title")).not_to_be_empty()
    ready(page)


def ready(page):
    expect(page.locator("#status:not([aria-busy=true])")).to_have_text(re.compile(r"\d+ stages?|error"))


def pane_with(page, selector):
    """Goes from pane to pane until the focus is there."""
    for _ in range(12):
        if page.evaluate("(s) => document.activeElement.closest(s) !== null", selector):
            return
        page.keyboard.press("F6")
    raise AssertionError(f"F6 does not reach {selector}")


def tab_to(page, name):
    """Moves the focus to a button of the lesson as a user without a mouse does."""
    pane_with(page, "#source-editor")
    pane_with(page, ".lesson-body")
    for _ in range(40):
        if page.evaluate("() => document.activeElement.textContent") == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {name}")


def go_to_stage(page, key):
    """By the keys of the stage list."""
    pane_with(page, "#stages")
    page.keyboard.press("Home")
    for _ in range(80):
        if page.locator('#stages [aria-selected="true"]').get_attribute("data-key") == key:
            return
        page.keyboard.press("j")
    raise AssertionError(f"there is no stage {key}")


def go_to_line(page, text):
    pane_with(page, "#ir-viewer")
    page.keyboard.press("Control+Home")
    lines = page.evaluate("() => [...document.querySelectorAll('#ir-viewer .cm-line')].map((l) => l.textContent)")
    at = next(i for i, line in enumerate(lines) if text.removeprefix("nisa.") in line)
    for _ in range(at):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+F10")


def solve(page, task, view):
    done = page.locator(".task-box.done")
    expect(done).to_have_count(0)
    if task["kind"] == "choose":
        wrong = (task["answer"] + 1) % len(task["choices"])
        tab_to(page, task["choices"][wrong])
        page.keyboard.press("Enter")
        expect(page.locator(".task-verdict")).to_contain_text("Not that")
        tab_to(page, task["choices"][task["answer"]])
        page.keyboard.press("Enter")
    elif task["kind"] == "change":
        expect(page.locator(".task-goals li:not(.holds)").first).to_be_visible()
        pane_with(page, "#source-editor")
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(task["solution"])
    else:
        if "diff" in view:  # a line is selected in the stage's own text
            pane_with(page, "#stages")
            page.keyboard.press("d")
            expect(page.locator("#diff-bar")).to_be_hidden()
        go_to_stage(page, task["stage"])
        if "line" in task:
            go_to_line(page, task["line"])
        tab_to(page, f"It is the selected line of {task['stage']}" if "line" in task else f"It is the stage that is open: {task['stage']}")
        page.keyboard.press("Enter")
    expect(done).to_be_visible()


@pytest.mark.parametrize("name", [n if n in IN_SHORT else pytest.param(n, marks=pytest.mark.nightly) for n in NAMES])
def test_each_lesson_is_walked_to_its_end_by_keyboard_with_its_tasks(new_page, server, name, watch):
    page = new_page()
    lesson = page.request.get(f"{server}/api/v1/lessons/{name}").json()
    opened(page, server, name, 1)
    for i, step in enumerate(lesson["steps"]):
        expect(page.locator(".lesson-body h3")).to_have_text(f"{i + 1}. {step['title']}")
        expect(page.locator('.lesson-steps [aria-current="step"]')).to_have_attribute("aria-label", re.compile(f"Step {i + 1}: "))
        ready(page)
        if "stage" in step["view"] and step["view"]["mode"] == "read" and step["view"]["stage"] != "last":
            expect(page.locator('#stages [aria-selected="true"]')).to_have_attribute("data-key", step["view"]["stage"])
        if "selected" in step["view"] or "line" in step["view"]:
            expect(page.locator("#ir-viewer .cm-line.sel, #ir-viewer .cm-line.best, #ir-viewer .cm-line[class*=lit], #ir-viewer .cm-line[class*=sel]").first).to_be_visible()
        if "diff" in step["view"]:
            expect(page.locator("#diff-bar")).to_be_visible()
        if "task" in step:
            solve(page, step["task"], step["view"])
        tab_to(page, "Done" if i == len(lesson["steps"]) - 1 else "Next ›")
        page.keyboard.press("Enter")
    last = name == NAMES[-1]
    if not last:  # the next lesson follows
        title = page.request.get(f"{server}/api/v1/lessons/{NAMES[NAMES.index(name) + 1]}").json()["title"]
        expect(page.locator("#lesson-title")).to_have_text(title)
    done = json.loads(page.evaluate("() => localStorage.getItem('nkx.lessons')"))[name]["done"]
    assert sorted(done) == list(range(len(lesson["steps"])))


def test_a_lesson_opens_at_a_step_goes_both_ways_by_keys_and_is_found_again(new_page, server):
    page = new_page()
    opened(page, server, "hlo", 3)
    expect(page.locator(".lesson-body h3")).to_have_text(re.compile("^3. "))
    page.locator(".lesson-body").focus()
    page.keyboard.press("PageUp")
    expect(page.locator(".lesson-body h3")).to_have_text(re.compile("^2. "))
    page.keyboard.press("PageDown")
    page.keyboard.press("PageDown")
    expect(page.locator(".lesson-body h3")).to_have_text(re.compile("^4. "))
    page.wait_for_url("**/#lesson=hlo&step=4")
    page.goto("about:blank")
    page.goto(f"{server}/#lesson=hlo")
    expect(page.locator(".lesson-body h3")).to_have_text(re.compile("^4. "))
    ready(page)
    assert looked_at(page, "dark", "lesson") == []
    page.get_by_role("button", name="Close the lesson").click()
    expect(page.locator("#lesson-pane")).to_be_hidden()


def test_a_lesson_is_chosen_from_the_list_and_the_own_kernel_is_kept(page, server):
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+End")
    page.keyboard.insert_text("# mine\n")
    page.locator("#example").select_option(label="2. Reading HLO")
    expect(page.locator("#lesson-title")).to_have_text("Reading HLO")
    ready(page)
    page.locator("#example").select_option(label="Your kernel")
    expect(page.locator("#lesson-pane")).to_be_hidden()
    expect(page.locator("#source-editor")).to_contain_text("# mine")


def test_a_lesson_of_ones_own_is_written_shared_by_link_and_printed(new_page, server, watch):
    watch.expect("400")  # a text that is no lesson yet
    page = new_page()
    opened(page, server, "tracing", 1)
    page.get_by_role("button", name="Write", exact=True).click()
    text = page.get_by_role("textbox", name="Text of the lesson")
    text.fill("# Title\n\nno step\n")
    expect(page.locator("#lesson-fault")).to_contain_text("line 3: a lesson has a title")
    expect(page.get_by_role("button", name="Open it")).to_be_disabled()
    text.fill(OWN)
    expect(page.locator("#lesson-fault")).to_have_text("✓ My own lesson: 2 steps")
    assert looked_at(page, "dark", "writer") == []
    page.get_by_role("button", name="Open it").click()
    expect(page.locator("#lesson-title")).to_have_text("My own lesson")
    page.wait_for_url("**/#lesson-text=*&step=1")
    other = new_page()
    other.goto(page.url.replace("step=1", "step=2"))
    expect(other.locator(".lesson-body h3")).to_have_text("2. Two")
    other.get_by_role("button", name="Step 1: One").click()
    body = other.locator(".lesson-body")
    expect(body.locator(".lesson-summary")).to_have_text("About <b>nothing</b> much.")
    expect(body.locator("li")).to_have_text(["first", "second"])
    body.get_by_role("button", name="a stage").click()
    expect(other.locator("#ir-title")).to_contain_text("dce")
    other.emulate_media(media="print")
    other.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    expect(other.locator("#print")).to_contain_text("2. Two")
    expect(other.locator("#print pre").first).to_contain_text("np.tanh(x)")


def test_a_link_to_no_lesson_is_said_to_be_that(new_page, server, watch):
    watch.expect("404|400")
    page = new_page()
    page.goto(f"{server}/#lesson=nothing")
    expect(page.locator(".toast")).to_contain_text("There is no lesson “nothing”")
    page.goto(f"{server}/?x#lesson-text=AAAA")
    expect(page.locator(".toast")).to_contain_text("The link is damaged")
