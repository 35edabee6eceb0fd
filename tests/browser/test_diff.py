"""Two stages compared."""
import json
import re

import pytest
import requests
from playwright.sync_api import expect

from support.page import compiled, open_stage, selected_stage, write

LONG = "import numpy as np\nfrom nkigen import trace\n\n@trace(input_specs=[((8, 4), 'f32')])\ndef long(a):\n" + "".join(
    f"    a = np.tanh(a) * {i}.5\n" for i in range(1, 30)) + "    return a\n"


def column(page, which):
    return page.locator("#diff-viewer .diff-column").nth(0 if which == "from" else 1)


def numbers(page, which, gutter=0):
    """Line numbers in sight, without the gutter's spacer."""
    cells = column(page, which).locator(".cm-diffno").nth(gutter).locator(".cm-gutterElement:not([style*='visibility: hidden'])")
    return cells.all_text_contents()


def open_diff(page, name="one-shot-bufferize"):
    open_stage(page, name)
    with page.expect_response(re.compile("/diff[?]")) as answer:
        page.keyboard.press("d")
    expect(page.locator("#diff-viewer")).to_be_visible()
    expect(page.locator(".diff-where")).to_have_text(re.compile(r"\d+ / \d+"))
    return answer.value.json()


@pytest.fixture
def wide(new_page, server):
    p = new_page(1900, 1000)
    p.goto(server)
    compiled(p)
    return p


def test_one_key_compares_with_the_stage_before(wide):
    page = wide
    d = open_diff(page)
    assert page.locator("#diff-viewer .diff-column:visible").count() == 2
    expect(page.locator(".diff-where")).to_have_text(f"1 / {len(d['hunks'])}")
    expect(page.locator(".diff-facts")).to_contain_text(f"~{d['changed']} changed+{d['added']}−{d['removed']}")
    at = int(page.locator('#stages [aria-selected="true"] .no').text_content())
    expect(page.locator("#stages .stage.compared .no")).to_have_text(str(at - 1))
    # the words that differ are those of the answer, in the lines of the answer
    pair = next(p for h in d["hunks"] for p in h["pairs"] if p["words_from"])
    for which in ("from", "to"):
        line = column(page, which).locator(".cm-line").filter(has=page.locator(".diff-word")).first
        text = line.text_content()
        marked = line.locator(".diff-word").all_text_contents()
        spans = [text[a - 1 : b - 1] for a, b in pair[f"words_{which}"]]
        assert "".join(marked) == "".join(spans) and marked  # a mark may be cut where the colours change
    page.keyboard.press("d")
    expect(page.locator("#diff-viewer")).to_be_hidden()
    expect(page.locator("#ir-viewer")).to_be_visible()


def test_the_lines_of_a_diff_stand_beside_each_other(wide):
    open_diff(wide)
    rows = list(zip(numbers(wide, "from"), numbers(wide, "to"), strict=True))
    kinds = wide.evaluate("""() => [0, 1].map((i) => [...document.querySelectorAll('.diff-column')[i].querySelectorAll('.cm-line')]
        .map((l) => [...l.classList].find((c) => c.startsWith('diff-'))))""")
    lefts, rights = ([k for k in kinds[i]] for i in (0, 1))
    for (a, b), left, right in zip(rows, lefts, rights):
        assert (a == "") == (left in ("diff-filler", "diff-gap")) and (b == "") == (right in ("diff-filler", "diff-gap"))
        assert (left == "diff-same") == (right == "diff-same")
    # the sign says what the colour says
    signs = column(wide, "to").locator(".cm-diffsign .diff-plus").all_text_contents()
    assert signs and set(signs) == {"+"}
    # both scroll as one
    column(wide, "from").locator(".cm-scroller").evaluate("(s) => s.scrollTo(40, 200)")
    wide.wait_for_function("() => { const [a, b] = document.querySelectorAll('.diff-column .cm-scroller'); return a.scrollTop === b.scrollTop && a.scrollLeft === b.scrollLeft && b.scrollTop > 100 }")


@pytest.mark.nightly
def test_in_one_column_removed_lines_stand_above_added_ones(wide):
    d = open_diff(wide)
    wide.keyboard.press("u")
    assert wide.locator("#diff-viewer .diff-column:visible").count() == 1
    expect(wide.get_by_role("button", name="unified")).to_have_attribute("aria-pressed", "true")
    lines = list(zip(numbers(wide, "from", 0), numbers(wide, "from", 1),
                     column(wide, "from").locator(".cm-diffsign .cm-gutterElement:not([style*='visibility: hidden'])").all_text_contents()))
    for a, b, sign in lines:
        assert {"−": a != "" and b == "", "+": a == "" and b != "", "": (a == "") == (b == "")}[sign]
    first = d["hunks"][0]
    shown = [x for x in lines if x[2]][: first["from"]["count"] + first["to"]["count"]]
    assert [x[0] for x in shown if x[2] == "−"][0] == str(first["from"]["line"])
    assert [x[1] for x in shown if x[2] == "+"][0] == str(first["to"]["line"])


@pytest.mark.nightly
def test_changes_are_gone_through_by_keyboard(wide):
    d = open_diff(wide)
    n = len(d["hunks"])
    assert n > 3
    where = wide.locator(".diff-where")
    for want in ("2", "3"):
        wide.keyboard.press("F7")
        expect(where).to_have_text(f"{want} / {n}")
    line = d["hunks"][2]["from"]["line"]
    assert str(line) in numbers(wide, "from") or str(d["hunks"][2]["to"]["line"]) in numbers(wide, "to")
    wide.keyboard.press("Shift+F7")
    expect(where).to_have_text(f"2 / {n}")
    wide.keyboard.press("Shift+F7")
    wide.keyboard.press("Shift+F7")
    expect(where).to_have_text(f"{n} / {n}")  # round
    # F6 comes by both columns
    wide.locator("#stages").focus()
    for which in ("from", "to"):
        wide.keyboard.press("F6")
        expect(column(wide, which).locator(".cm-content")).to_be_focused()


def test_the_stages_are_stepped_through_as_diffs(wide):
    open_diff(wide, "canonicalize:2")
    with wide.expect_response(re.compile("/diff[?]")) as answer:
        wide.keyboard.press("k")
    assert selected_stage(wide) == "one-shot-bufferize"
    asked = re.search(r"from=(\d+)&to=(\d+)", answer.value.url)
    assert int(asked[1]) + 1 == int(asked[2])
    # the first one has none before it
    wide.locator("#stages").focus()
    wide.keyboard.press("Home")
    expect(wide.locator(".diff-message")).to_be_visible()


def test_any_two_stages_are_compared_and_the_address_says_which(wide, new_page):
    open_stage(wide, "hlo-to-linalg")
    wide.keyboard.press("a")
    expect(wide.locator(".diff-facts")).to_have_text("The same text")
    last = wide.locator("#stages .stage .no").last.text_content()
    with wide.expect_response(re.compile(rf"/diff[?].*to={last}$")):
        wide.locator("#stages").press("End")
    expect(wide.get_by_label("Compare with", exact=True)).to_have_value("hlo-to-linalg")
    wide.keyboard.press("u")
    wide.wait_for_url(re.compile(r"diff=hlo-to-linalg&unified=1"))
    other = new_page(1900, 1000)
    other.goto(wide.url)
    compiled(other)
    expect(other.locator("#diff-viewer")).to_be_visible()
    expect(other.locator(".diff-facts")).to_have_text(wide.locator(".diff-facts").text_content())
    expect(other.get_by_role("button", name="unified")).to_have_attribute("aria-pressed", "true")
    # and the list of the bar chooses, too
    with other.expect_response(re.compile(r"/diff[?].*from=0&")):
        other.get_by_label("Compare with", exact=True).select_option("trace")
    expect(other.locator("#stages .stage.compared")).to_have_attribute("data-key", "trace")


@pytest.mark.nightly
def test_equal_lines_are_folded_until_they_are_wanted(new_page, server):
    page = new_page(1900, 700)
    page.goto(server)
    compiled(page)
    write(page, LONG)
    expect(page.locator("#signature")).to_contain_text("long")
    compiled(page)
    open_stage(page, "dce")
    page.keyboard.press("a")
    open_stage(page, "trace")
    page.route(re.compile("/diff[?]"), lambda r: r.fulfill(json={
        "lines_from": 60, "lines_to": 60, "changed": 1, "removed": 0, "added": 0,
        "hunks": [{"from": {"line": 40, "count": 1}, "to": {"line": 40, "count": 1},
                   "pairs": [{"from": 40, "to": 40, "words_from": [[1, 3]], "words_to": [[1, 4]]}]}]}))
    open_stage(page, "hlo-to-linalg")
    gaps = column(page, "from").locator(".diff-gap.cm-line")
    expect(gaps).to_have_count(2)
    expect(gaps.first).to_have_text("⋯ 35 equal lines")
    gaps.first.click()
    expect(gaps).to_have_count(1)
    expect(gaps.first).to_have_text("⋯ 16 equal lines")
    page.keyboard.press("Shift+E")
    expect(gaps).to_have_count(0)
    column(page, "from").locator(".cm-scroller").evaluate("(s) => s.scrollTo(0, 0)")
    expect(column(page, "from").locator(".cm-line").first).to_have_class(re.compile("diff-same"))
    assert numbers(page, "from")[0] == "1"


def test_a_line_of_a_diff_leads_to_its_source(wide):
    open_diff(wide)
    line = column(wide, "to").locator(".cm-line.diff-plus").filter(has_text="linalg.transpose").first
    line.click(position={"x": 60, "y": 8})
    expect(wide.locator("#source-editor .lit-selected").first).to_be_visible()
    expect(column(wide, "to").locator(".cm-line.lit-selected").first).to_be_visible()
    expect(wide.locator("#history .chip").first).to_be_visible()


@pytest.mark.nightly
def test_a_result_that_the_server_no_longer_has_is_compiled_again(wide, watch):
    watch.expect("404")
    wide.route(re.compile("/diff[?]"), lambda r: r.fulfill(status=404, json={"error": {"code": "not-found", "message": "no"}}))
    open_stage(wide, "one-shot-bufferize")
    wide.keyboard.press("d")
    expect(wide.locator("#diff-viewer .diff-message")).to_contain_text("does not have this result any more")
    wide.unroute(re.compile("/diff[?]"))
    wide.get_by_role("button", name="Compile again").click()
    expect(wide.locator(".diff-where")).to_have_text(re.compile(r"1 / \d+"))


@pytest.mark.nightly
def test_a_narrow_pane_begins_with_one_column(new_page, server):
    page = new_page(1280, 800)
    page.goto(server)
    compiled(page)
    open_diff(page)
    assert page.locator("#diff-viewer .diff-column:visible").count() == 1
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="split").click()
    assert page.locator("#diff-viewer .diff-column:visible").count() == 2


def test_the_diff_follows_typing(wide):
    open_diff(wide)
    asked = []
    wide.on("request", lambda r: "/diff?" in r.url and asked.append(r.url))
    wide.locator("#source-editor .cm-content").focus()
    wide.keyboard.press("Control+End")
    with wide.expect_response(re.compile("/diff[?]")) as answer:
        wide.keyboard.type("# more")
    assert answer.value.status == 200
    compiled(wide)
    assert len(asked) <= 2  # not once per stage as they come in
    expect(wide.locator(".diff-where")).to_have_text(re.compile(r"1 / \d+"))


def test_the_page_shows_what_the_server_found(server, wide):
    """Every hunk of a large diff, unfolded, against the API."""
    d = open_diff(wide)
    wide.keyboard.press("u")
    key = json.loads(wide.evaluate("() => JSON.stringify(performance.getEntriesByType('resource').map((e) => e.name).filter((n) => n.includes('/diff?')))"))[-1]
    assert requests.get(key).json() == d


@pytest.mark.nightly
def test_stages_of_nisa_are_compared_in_the_form_that_the_reader_has_chosen(wide):
    page = wide
    open_diff(page, "allocate-memory")
    changed = column(page, "to").locator(".cm-line.diff-plus").first
    expect(changed).to_contain_text("in SBUF at ")
    marked = "".join(column(page, "to").locator(".cm-line.diff-plus").first.locator(".diff-word").all_text_contents())
    assert "at" in marked and "memref" not in marked
    texts = column(page, "to").locator(".cm-line").all_text_contents()
    assert not any("nisa." in t or t.strip() == "}" for t in texts), texts
    line = numbers(page, "to")[[i for i, t in enumerate(texts) if "in SBUF at " in t][0]]
    page.keyboard.press("r")
    expect(column(page, "to").locator(".cm-line.diff-plus").first).to_contain_text("nisa.alloc")
    assert line in numbers(page, "to")
    expect(page.locator(".diff-where")).to_have_text(re.compile(r"^1 / "))
    page.keyboard.press("r")
    expect(changed).to_contain_text("in SBUF at ")
    # a click still finds the operation of the line
    column(page, "to").locator(".cm-line", has_text="←").first.click()
    expect(column(page, "to").locator(".cm-line.lit-selected").first).to_be_visible()


def test_a_stage_of_linalg_against_one_of_nisa_shows_each_in_its_own_form(wide):
    page = wide
    open_diff(page, "linalg-to-nisa")
    expect(column(page, "from").locator(".cm-line", has_text="memref.alloc").first).to_be_visible()
    expect(column(page, "to").locator(".cm-line", has_text="in SBUF").first).to_be_visible()


def test_the_first_stage_is_not_compared_with_itself(wide):
    page = wide
    open_stage(page, "trace")
    page.keyboard.press("d")
    expect(page.locator("#diff-viewer")).to_contain_text("trace is the first stage: none comes before it.")
    expect(page.locator("#stages .stage.compared")).to_have_count(0)
    # from a comparison, too, and another stage can be chosen
    page.keyboard.press("j")
    expect(page.locator("#diff-bar")).to_contain_text("The same text")
    page.keyboard.press("k")
    expect(page.locator(".diff-message")).to_be_visible()
    page.get_by_label("Compare with", exact=True).select_option(label="15 hlo-to-linalg")
    expect(page.locator(".diff-where")).to_have_text(re.compile(r"1 / \d+"))
    expect(page.locator(".diff-message")).to_be_hidden()
