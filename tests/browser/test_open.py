"""What a visitor sees first."""
import re

import requests
from playwright.sync_api import expect

from support.page import compiled, ir_lines, source_of


def test_opens_on_an_example_that_is_compiled(page, server):
    first = requests.get(f"{server}/api/v1/examples").json()["examples"][0]
    assert source_of(page).rstrip() == first["source"].rstrip()
    expect(page.locator("#example")).to_have_value(first["name"])
    pipeline = requests.get(f"{server}/api/v1/pipeline").json()["stages"]
    rows = page.locator("#stages .stage")
    expect(rows).to_have_count(len(pipeline))
    assert [r.strip() for r in page.locator("#stages .stage .name").all_text_contents()] == [s["name"] for s in pipeline]
    assert len(ir_lines(page)) > 5
    assert pipeline[-1]["summary"] in page.locator("#ir-summary").text_content()


def test_every_example_compiles_in_the_page(page, server):
    for example in requests.get(f"{server}/api/v1/examples").json()["examples"]:
        page.select_option("#example", example["name"])
        expect(page.locator("#source-editor .cm-line").first).to_have_text(example["source"].split("\n")[0])
        compiled(page)
        expect(page.locator("#problems .problem-error")).to_have_count(0)


def test_the_list_groups_stages_by_phase_with_times(page, server):
    pipeline = requests.get(f"{server}/api/v1/pipeline").json()["stages"]
    phases = list(dict.fromkeys(s["phase"] for s in pipeline))
    heads = page.locator("#stages .phase")
    assert [h.locator("span").first.text_content() for h in heads.all()] == phases
    for head in heads.all():
        assert re.fullmatch(r"[\d.]+ ms", head.locator(".time").text_content())


def test_the_list_is_a_listbox_with_positions(page):
    stages = page.locator("#stages")
    assert stages.get_attribute("role") == "listbox"
    options = stages.get_by_role("option")
    n = options.count()
    for i, option in enumerate(options.all()):
        assert option.get_attribute("aria-setsize") == str(n)
        assert option.get_attribute("aria-posinset") == str(i + 1)
    chosen = stages.locator('[aria-selected="true"]')
    expect(chosen).to_have_count(1)
    assert stages.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    # the shape, not only the colour, says what a stage did
    shapes = {o.get_attribute("data-shape"): o.locator(".glyph").text_content() for o in options.all()}
    assert shapes["final"] == "◆" and shapes["changed"] == "●"


def test_the_first_view_is_small(new_page, server):
    page = new_page()
    sizes = []
    page.on("response", lambda r: sizes.append((r.url, r.request.sizes()["responseBodySize"])))
    page.goto(server)
    compiled(page)
    static = [size for url, size in sizes if "/api/" not in url]
    assert len(static) >= 3
    assert sum(static) <= 200_000, sizes


def test_the_policy_is_sent_and_enforces_trusted_types(page, server, watch):
    watch.expect("TrustedHTML")
    policy = requests.get(server).headers["Content-Security-Policy"]
    for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "require-trusted-types-for 'script'"):
        assert part in policy
    refused = page.evaluate(
        "() => { try { document.createElement('div').innerHTML = '<b>x</b>'; return false } catch { return true } }"
    )
    assert refused
