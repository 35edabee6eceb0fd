"""Earlier versions of the user's kernels, kept in the browser."""
import json

import pytest
from playwright.sync_api import expect

from support.page import KERNEL, SCREENS, compiled, source_of, write

ROWS = "dialog .versions li"
OTHER = KERNEL.replace("np.tanh(a) * 2.0", "np.exp(a) * 3.0")
KEPT = "() => JSON.parse(localStorage.getItem('nkx.versions') ?? '[]')"


def wrote(page, source, shape_of="8×4"):
    write(page, source)
    expect(page.locator("#signature")).to_contain_text(shape_of)
    compiled(page)
    page.wait_for_function("(s) => JSON.parse(localStorage.getItem('nkx.versions') ?? '[]')[0]?.draft.source === s", arg=source)


def age(page, ms):
    """Makes all versions older."""
    page.evaluate("""(ms) => { const list = JSON.parse(localStorage.getItem('nkx.versions'));
      for (const v of list) { v.atMs -= ms; v.fromMs -= ms; }
      localStorage.setItem('nkx.versions', JSON.stringify(list)); }""", ms)


def opened(page):
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Find an action")).to_be_focused()
    page.keyboard.type("versions")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Versions")).to_be_visible()


@pytest.mark.nightly
def test_an_example_leaves_no_version(page):
    opened(page)
    expect(page.locator(ROWS)).to_contain_text("There are none yet")
    assert page.evaluate(KEPT) == []


def test_an_earlier_version_is_opened_and_the_present_one_stays(page):
    wrote(page, KERNEL)
    age(page, 300_000)
    wrote(page, OTHER)
    opened(page)
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(ROWS)).to_contain_text("5 min. ago")
    expect(page.locator(ROWS)).to_contain_text("1 line added since, 1 line removed since")
    page.screenshot(path=SCREENS / "versions.png")
    page.get_by_role("button", name="Open mine, 5 min. ago").click()
    expect(page.locator("#source-editor")).to_contain_text("np.tanh")
    compiled(page)
    assert source_of(page) == KERNEL
    opened(page)
    page.get_by_role("button", name="Open mine, just now").click()
    expect(page.locator("#source-editor")).to_contain_text("np.exp")


def test_an_earlier_version_is_compared_with_what_is_shown(page):
    wrote(page, KERNEL)
    age(page, 7_300_000)
    wrote(page, OTHER)
    opened(page)
    page.get_by_role("button", name="Compare mine, 2 hr. ago").click()
    expect(page.locator("#compare-pane")).to_be_visible()
    expect(page.locator("#compare-pane")).to_contain_text("mine, ")
    assert source_of(page) == OTHER


def test_edits_within_two_minutes_make_one_version_and_another_kernel_makes_its_own(page):
    wrote(page, KERNEL)
    wrote(page, OTHER)
    assert [v["draft"]["source"] for v in page.evaluate(KEPT)] == [OTHER]
    other = "import numpy as xp\nfrom nkigen import trace as t\n\n@t(input_specs=[((2, 3), 'f32')])\ndef second(q):\n    return xp.sqrt(q)\n"
    wrote(page, other, "2×3")
    assert [v["draft"]["source"] for v in page.evaluate(KEPT)] == [other, OTHER]


def test_the_versions_are_capped_in_number_and_size_and_can_be_forgotten(page):
    draft = {"filename": None, "files": [], "language": "nkipy", "target": "trn2", "inputs": None}
    for size, n, source in ((40_000, 25, KERNEL), (10, 40, OTHER)):
        kept = [{"atMs": 1, "fromMs": 1, "draft": {**draft, "source": f"# {i}" + "x" * size}} for i in range(60)]
        page.evaluate("(v) => localStorage.setItem('nkx.versions', v)", json.dumps(kept))
        wrote(page, source)
        assert len(page.evaluate(KEPT)) == n
        assert len(page.evaluate("() => localStorage.getItem('nkx.versions')")) <= 1_000_000
    opened(page)
    page.get_by_text("Forget all", exact=True).click()
    page.get_by_text("Forget all for good?").click()
    expect(page.locator(ROWS)).to_contain_text("There are none yet")
    assert page.evaluate(KEPT) == []


@pytest.mark.nightly
def test_damaged_versions_are_left_out(new_page, server):
    page = new_page()
    page.add_init_script("localStorage.getItem('nkx.versions') ?? localStorage.setItem('nkx.versions', '[1, {\"atMs\": 3}, {\"atMs\": 1, \"fromMs\": 1, \"draft\": {\"source\": \"<b>x</b>\"}}]')")
    page.goto(server)
    compiled(page)
    opened(page)
    expect(page.locator(ROWS)).to_have_count(1)
    expect(page.locator(f"{ROWS} b")).to_have_text("<b>x</b>")
