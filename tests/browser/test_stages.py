"""Going through the stages."""
import re

import pytest
import requests
from playwright.sync_api import expect

from support.page import ir_lines, open_stage, selected_stage


@pytest.fixture
def keys(server):
    """The rows' names in order, as they are written in links."""
    seen: dict[str, int] = {}
    out = []
    for stage in requests.get(f"{server}/api/v1/pipeline").json()["stages"]:
        seen[stage["name"]] = seen.get(stage["name"], 0) + 1
        out.append(stage["name"] if seen[stage["name"]] == 1 else f"{stage['name']}:{seen[stage['name']]}")
    return out


def at(page, key):
    expect(page.locator('#stages [aria-selected="true"]')).to_have_attribute("data-key", key)


def test_j_and_k_step_wherever_the_focus_is(page, keys):
    page.locator("body").press("Home")
    at(page, keys[0])
    page.keyboard.press("j")
    at(page, keys[1])
    page.keyboard.press("ArrowDown")
    at(page, keys[2])
    page.locator("#share").focus()
    page.keyboard.press("k")
    at(page, keys[1])
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("j")
    at(page, keys[2])
    page.keyboard.press("End")  # in the text this moves the caret
    at(page, keys[2])
    page.locator("#stages").focus()
    page.keyboard.press("End")
    at(page, keys[-1])
    page.keyboard.press("j")
    at(page, keys[-1])


def test_letters_typed_into_the_editor_are_text(page, keys):
    open_stage(page, keys[1])
    page.locator("#source-editor .cm-line").first.click()
    page.keyboard.type("jkn")
    at(page, keys[1])
    expect(page.locator("#source-editor .cm-line").first).to_contain_text("jkn")


@pytest.mark.nightly
def test_n_and_b_step_by_phase(page, server):
    stages = requests.get(f"{server}/api/v1/pipeline").json()["stages"]
    starts = [i for i, s in enumerate(stages) if i == 0 or stages[i - 1]["phase"] != s["phase"]]
    page.locator("body").press("Home")
    for i in starts[1:]:
        page.keyboard.press("n")
        expect(page.locator('#stages [aria-selected="true"]')).to_have_attribute("id", f"stage-{i}")
    page.keyboard.press("b")
    expect(page.locator('#stages [aria-selected="true"]')).to_have_attribute("id", f"stage-{starts[-2]}")


def test_slash_filters_and_enter_takes_the_first(page, keys):
    page.locator("body").press("/")
    page.keyboard.type("bufferize")
    expect(page.locator("#stages .stage")).to_have_count(1)
    page.keyboard.press("Enter")
    at(page, "one-shot-bufferize")
    expect(page.locator("#stages")).to_be_focused()
    page.keyboard.press("/")
    page.keyboard.press("Escape")
    expect(page.locator("#stages .stage")).to_have_count(len(keys))


def test_unchanged_stages_can_be_hidden(page):
    page.locator("body").press("Home")
    unchanged = page.locator('#stages .stage[data-shape="same"]')
    n, all_rows = unchanged.count(), page.locator("#stages .stage").count()
    assert n > 0, "no stage of the first example leaves it unchanged"
    page.get_by_role("button", name="changed only").click()
    expect(page.locator("#stages .stage")).to_have_count(all_rows - n)
    page.get_by_role("button", name="changed only").click()
    expect(page.locator("#stages .stage")).to_have_count(all_rows)


@pytest.mark.nightly
def test_letter_keys_can_be_switched_off(page, keys):
    open_stage(page, keys[0])
    page.click("#settings-open")
    page.get_by_label("Single-letter shortcuts").uncheck()
    page.keyboard.press("Escape")
    page.locator("#stages").focus()
    page.keyboard.press("j")
    at(page, keys[0])
    page.keyboard.press("ArrowDown")
    at(page, keys[1])


def test_counts_and_deltas_are_those_of_the_api(page, server):
    source = requests.get(f"{server}/api/v1/examples").json()["examples"][0]["source"]
    stages = requests.post(f"{server}/api/v1/compile", json={"source": source}).json()["kernels"][0]["stages"]
    for i, stage in enumerate(stages):
        row = page.locator(f"#stage-{i}")
        assert row.locator(".ops").text_content() == str(sum(stage["op_counts"].values()))
        before = stages[i - 1] if i and stages[i - 1]["dialect"] == stage["dialect"] else None
        names = set(stage["op_counts"]) | set(before["op_counts"]) if before else set()
        change = [stage["op_counts"].get(n, 0) - before["op_counts"].get(n, 0) for n in names]
        added, removed = sum(c for c in change if c > 0), -sum(c for c in change if c < 0)
        wanted = (f"+{added}" if added else "") + (f"−{removed}" if removed else "")
        assert row.locator(".delta").text_content() == wanted, stage["name"]


def test_wrap_copy_and_download_a_stage(page, server):
    open_stage(page, "trace")
    page.locator("#stages").focus()
    page.keyboard.press("w")
    expect(page.locator("#ir-viewer .cm-content")).to_have_class(re.compile("cm-lineWrapping"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Download this stage").click()
    assert download.value.suggested_filename == "00-trace.hlo"
    text = download.value.path().read_text()
    assert text.strip() == "\n".join(ir_lines(page)).strip()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy this stage").click()
    assert page.evaluate("() => navigator.clipboard.readText()") == text


def test_find_works_in_a_stage(page):
    open_stage(page, "trace")
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("Control+f")
    page.keyboard.type("parameter")
    expect(page.locator("#ir-viewer .cm-searchMatch").first).to_be_visible()
    assert selected_stage(page) == "trace"
