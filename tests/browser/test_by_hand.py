"""The pipeline is changed on the page: a pass is left out, another put in, options given; a link keeps it; it is taken back."""
from playwright.sync_api import expect

from support.axe import violations
from support.page import SCREENS, compiled


def row(page, name):
    return page.get_by_role("option", name=name).first


def opened(page, stage):
    row(page, stage).click()
    page.get_by_role("button", name="Change the pipeline").click()
    dialog = page.get_by_role("dialog", name="The pipeline by hand")
    expect(dialog).to_be_visible()
    return dialog


def test_passes_are_left_out_put_in_and_taken_back(page, new_page):
    dialog = opened(page, "17 cse")
    box = dialog.get_by_label("leave this pass out")
    box.press("Space")
    expect(dialog.locator("li")).to_have_count(1)
    expect(box).to_be_checked()
    expect(box).to_be_focused()  # also after the dialog was drawn anew
    dialog.get_by_label("The pass", exact=True).select_option("loop-invariant-code-motion")
    dialog.get_by_role("button", name="Put in").click()
    expect(dialog.locator("li")).to_have_count(2)
    expect(row(page, "18 loop-invariant-code-motion").locator(".by-hand-mark")).to_have_text("put in", timeout=20_000)
    expect(row(page, "17 cse").locator(".by-hand-mark")).to_have_text("left out")
    page.screenshot(path=SCREENS / "by-hand.png")
    assert violations(page, "by-hand") == []
    dialog.get_by_role("button", name="Close").click()
    expect(row(page, "54 engine-programs")).to_have_class("stage stage-final")
    dialog = opened(page, "16 canonicalize")
    dialog.get_by_label("Options of this pass").fill("max-iterations=1")
    dialog.get_by_role("button", name="Set").click()
    expect(row(page, "16 canonicalize").locator(".by-hand-mark")).to_have_text("options", timeout=20_000)
    expect(dialog.locator("li code").last).to_have_text("with canonicalize{max-iterations=1}")
    page.wait_for_function("location.hash.includes('hand=')")
    other = new_page()
    other.goto(page.url)
    compiled(other)
    expect(row(other, "18 loop-invariant-code-motion")).to_be_visible()
    dialog.get_by_role("button", name="Take all back").click()
    expect(row(page, "53 engine-programs")).to_be_visible(timeout=20_000)
    expect(page.locator(".by-hand-mark")).to_have_count(0)


def test_what_cannot_work_is_refused_at_the_pass_that_cannot(page, watch):
    watch.expect("400")
    dialog = opened(page, "33 one-shot-bufferize")
    dialog.get_by_label("leave this pass out").check()
    dialog.get_by_role("button", name="Close").click()
    expect(page.locator("#problems")).to_contain_text("eliminate-uninitialized-copies works on buffers, and the program has tensors here", timeout=20_000)
    expect(row(page, "35 eliminate-uninitialized-copies")).to_be_visible()
    dialog = opened(page, "16 canonicalize")
    dialog.get_by_label("Options of this pass").fill("max=1")
    dialog.get_by_role("button", name="Set").click()
    expect(dialog.get_by_role("alert")).to_contain_text("canonicalize has no option max")
