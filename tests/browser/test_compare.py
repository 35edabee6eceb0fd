"""Two results compared: a pinned one, A, against what the page shows, B."""
import re

import pytest
from playwright.sync_api import expect

from support.compiler import pipeline
from support.page import compiled, write

TILED = """import numpy as np
from nkigen import trace, knob

@trace(input_specs=[((256, 256), 'f32'), ((256, 512), 'f32')])
def up(x, w):
    u = x @ w
    knob.knob(u).tile_op(tile_size=[128, {}, 128])
    return u * np.tanh(u)
"""
BIAS = """import numpy as np
from nkigen import trace, knob

@trace(input_specs=[((256, 256), 'f32'), ((256, 256), 'f32'), ((256,), 'f32')])
def bias(x, w, b):
    u = x @ w
    knob.knob(u).tile_op(tile_size=[128, {}, 128])
    return u + b
"""
SOFTMAX = """import numpy as np
from nkigen import trace, knob

@trace(input_specs=[((256, 512), 'f32')])
def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    knob.knob(e).tile_op(tile_size=[128, {}])
    return e / np.sum(e, axis=-1, keepdims=True)
"""
VERSIONS = {
    "up": (TILED.format(128), TILED.format(256)),
    "bias": (BIAS.format(128), BIAS.format(256)),
    "softmax": (SOFTMAX.format(512), SOFTMAX.format(256)),
}


def verdict(page):
    return page.locator("#compare-verdict b")


def row(page, key):
    return page.locator(f'#compare-stages [data-key="{key}"]')


def show(page, server, source, name="up"):
    page.goto(server)
    compiled(page)
    write(page, source)
    expect(page.locator("#signature")).to_contain_text(f"{name}(")


def pin(page):
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("button", name="A pinned")).to_be_visible()


def compare(page):
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("#compare-pane")).to_be_visible()


def test_one_click_goes_to_the_first_difference(new_page, server):
    page = new_page()
    show(page, server, TILED.format(128))
    pin(page)
    write(page, TILED.format(256).replace("np.tanh(u)", "np.exp(u)"))
    compiled(page)
    compare(page)
    expect(row(page, "engine-programs")).to_have_class(re.compile("shown"))
    page.get_by_role("button", name="first difference").click()
    expect(row(page, "trace")).to_have_class(re.compile("shown"))
    expect(page.locator("#compare-columns .diff-minus", has_text="tanh")).to_be_in_viewport()
    expect(page.locator(".compare-where")).to_have_text(re.compile(r"^1 / \d+$"))
    page.get_by_role("button", name="Next change (F7)").click()
    page.get_by_role("button", name="first difference").click()
    expect(page.locator(".compare-where")).to_have_text(re.compile(r"^1 / \d+$"))


def test_another_tile_size_is_compared_stage_by_stage(new_page, server):
    page = new_page()
    show(page, server, TILED.format(128))
    pin(page)
    write(page, TILED.format(256))
    compiled(page)
    compare(page)
    expect(verdict(page)).to_have_text(re.compile(rf"^\d+ of {len(pipeline())} stages differ, from [\w-]+ on$"))
    assert int(re.match(r"\d+", verdict(page).inner_text())[0]) > 5
    # the last stage that differs is shown; its differences are those of the server
    expect(row(page, "engine-programs")).to_have_class(re.compile("shown"))
    expect(page.locator("#compare-columns .diff-minus").first).to_be_visible()
    expect(page.locator("#compare-columns .cm-line", has_text="nisa.alloc")).to_have_count(0)
    page.get_by_role("button", name="full text").last.click()
    expect(page.locator("#compare-columns .cm-line", has_text="nisa.alloc").first).to_be_visible()
    page.get_by_role("button", name="full text").last.click()
    expect(page.locator("#compare-columns .cm-line", has_text="nisa.alloc")).to_have_count(0)
    # stages before the knob has its effect are one row
    expect(page.locator("#compare-stages tr.same")).not_to_have_count(0)
    row(page, "source").get_by_role("button").click()
    marked = page.locator("#compare-columns .cm-line .diff-word")
    expect(marked).to_have_text(["128", "256"])


@pytest.mark.nightly
def test_the_same_kernel_for_two_targets_is_said_to_be_identical(new_page, server):
    page = new_page()
    show(page, server, TILED.format(128))
    pin(page)
    page.select_option("#target", "trn1")
    compare(page)
    expect(verdict(page)).to_have_text(f"Identical for trn2 and trn1: all {len(pipeline())} stages are the same")


def test_two_simulated_runs_are_compared_in_time(new_page, server):
    page = new_page()
    show(page, server, TILED.format(128))
    pin(page)
    write(page, TILED.format(256).replace("u * np.tanh(u)", "np.tanh(np.tanh(u)) * np.exp(u)"))
    compiled(page)
    compare(page)
    page.get_by_role("button", name="simulate both").click()
    expect(verdict(page)).to_have_text(re.compile(r"^B is \d+(\.\d+)?× (faster|slower): [\d.]+ [µm]s instead of [\d.]+ [µm]s$"))
    times = page.locator("#compare-figures tr", has_text=re.compile("^time")).locator(".num")
    expect(times).to_have_count(3)
    faster = "faster" in verdict(page).inner_text()
    assert times.nth(2).inner_text().startswith("−") == faster


@pytest.mark.nightly
def test_swapped_sides_change_places_with_their_sources(new_page, server):
    page = new_page()
    show(page, server, TILED.format(128))
    pin(page)
    write(page, TILED.format(256))
    compiled(page)
    compare(page)
    expect(verdict(page)).to_contain_text("stages differ")
    page.locator("#compare-stages").press("x")
    expect(page.locator("#source-editor .cm-content")).to_contain_text("[128, 128, 128]")
    row(page, "source").get_by_role("button").click()
    expect(page.locator("#compare-columns .cm-line .diff-word")).to_have_text(["256", "128"])
    page.get_by_role("button", name="keep A").click()
    expect(page.locator("#compare-pane")).to_be_hidden()
    expect(page.locator("#source-editor .cm-content")).to_contain_text("[128, 256, 128]")


def test_a_link_opens_the_same_comparison(new_page, server):
    page = new_page()
    show(page, server, TILED.format(128))
    pin(page)
    write(page, TILED.format(256))
    compiled(page)
    compare(page)
    expect(verdict(page)).to_contain_text("from hlo-to-linalg on")
    said = verdict(page).inner_text()
    page.wait_for_url(re.compile("view=compare.*pin="))
    other = new_page()
    other.goto(page.url)
    expect(verdict(other)).to_have_text(said)


@pytest.mark.nightly
def test_what_is_pinned_stays_when_another_link_is_opened(new_page, server):
    page = new_page()
    show(page, server, TILED.format(256))
    page.wait_for_url(re.compile("code="))
    link = page.url
    write(page, TILED.format(128))
    compiled(page)
    pin(page)
    page.wait_for_function("() => sessionStorage.getItem('nkx.pin') !== null")  # packing it takes a moment
    page.goto("about:blank")
    page.goto(link)
    compiled(page)
    expect(page.get_by_role("button", name="A pinned")).to_be_visible()
    compare(page)
    row(page, "source").get_by_role("button").click()
    expect(page.locator("#compare-columns .cm-line .diff-word")).to_have_text(["128", "256"])


def test_the_reference_stages_are_chosen_compared_and_kept_in_the_link(new_page, server):
    page = new_page()
    show(page, server, TILED.format(128))
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_role("button", name="other stages").click()
    expect(page.locator("#compare-names")).to_contain_text("with the reference's stages")
    expect(page.locator("#compare-names")).to_contain_text("with all stages")
    page.get_by_role("button", name="keep A").click()
    expect(page.locator("#pipeline")).to_have_value("reference")
    compiled(page)
    page.wait_for_function("() => location.hash.includes('pipeline=reference')")
    again = new_page()
    again.goto(page.url)
    compiled(again)
    expect(again.locator("#pipeline")).to_have_value("reference")


def test_the_first_values_that_differ_are_found_and_shown(new_page, server):
    page = new_page()
    show(page, server, TILED.format(128))
    pin(page)
    write(page, TILED.format(128).replace("np.tanh(u)", "np.tanh(u * 2.0)"))
    compiled(page)
    compare(page)
    page.get_by_role("button", name="values", exact=True).click()
    said = page.locator(".compare-values")
    expect(said).to_contain_text("The first values that differ: line", timeout=60_000)
    found = re.search(r"values that differ: line (\d+) of (\S+), at \[(\d+), (\d+)\] A has ([-\d.e]+), B has ([-\d.e]+)", said.inner_text())
    assert found[2] == "trace" and float(found[5]) != float(found[6])
    expect(page.locator("#compare-bar .compare-stage")).to_contain_text("trace")
    expect(page.locator("#compare-columns")).to_contain_text("tanh")
    said.get_by_role("button", name="close").click()
    expect(said).not_to_be_visible()


@pytest.mark.parametrize("kernel", ["up", "bias", "softmax"])
def test_another_tile_computes_the_same_values(new_page, server, kernel):
    """Also where the last stages are written out, with other parts in another order."""
    page = new_page()
    before, after = VERSIONS[kernel]
    show(page, server, before, kernel)
    pin(page)
    write(page, after)
    compiled(page)
    compare(page)
    page.get_by_role("button", name="values", exact=True).click()
    said = page.locator(".compare-values")
    expect(said).to_contain_text("Comparing values…")
    expect(said).to_contain_text(re.compile(r"^The results are the same[^.]*(\.\d[^.]*)?\. No values differ: \d+ pairs compared\."), timeout=90_000)


def test_results_that_differ_are_said_first(new_page, server):
    page = new_page()
    before, after = VERSIONS["up"]
    show(page, server, before)
    pin(page)
    write(page, after.replace("np.tanh(u)", "np.tanh(u * 1.5)"))
    compiled(page)
    compare(page)
    page.get_by_role("button", name="values", exact=True).click()
    said = page.locator(".compare-values")
    expect(said).to_contain_text("The results differ: output0 at [", timeout=90_000)
    expect(said).to_contain_text(re.compile(r"^The results differ.*The first values that differ: line \d+ of trace"))
    expect(said).to_contain_text("have no counterpart")
    expect(page.locator("#compare-bar .compare-stage")).to_contain_text("trace")
    # a simulated run of the same two changes nothing of that; another kernel does
    page.get_by_role("button", name="simulate both").click()
    expect(verdict(page)).to_have_text(re.compile("slower|faster|Equally"))
    expect(said).to_contain_text("The results differ")
    write(page, after)
    expect(said).not_to_be_visible()
