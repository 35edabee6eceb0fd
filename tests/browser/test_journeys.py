"""Journeys at five sizes of the window: what users do with kernels that have helpers, loops and stages of thousands of lines.

One page for each size goes through a table of journeys with each kernel.  After each one, nothing lies outside its pane.
NKX_JOURNEYS=all takes every size; otherwise the largest one and a phone's.
"""
import os
import re

import pytest
from playwright.sync_api import Page, expect

from support.own_kernel import SOURCE
from support.page import at_rest, compile_api, compiled, lit_text, open_stage, source_spot, write
from browser.test_follow import IN_SIGHT, best_in_sight, best_lines, example, range_named, shows_stage, spot_in
from browser.test_layouts import OUTSIDE

SIZES = {"desktop": (1440, 900, 1), "1280×720 at 150 %": (1280, 720, 1.5), "853×480 at 150 %": (853, 480, 1.5),
         "768×1024": (768, 1024, 1), "390×844": (390, 844, 2)}

# The line with this text, scrolled to the middle.
SHOW_SOURCE = """async (text) => {
  const scroller = document.querySelector('#source-editor .cm-scroller');
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  scroller.scrollTop = 0;
  await frame();
  for (;;) {
    const line = [...document.querySelectorAll('#source-editor .cm-line')].find((l) => l.textContent.includes(text));
    const view = scroller.getBoundingClientRect();
    const box = line?.getBoundingClientRect();
    if (box && box.top > view.top + 20 && box.bottom < view.bottom - 20) return;
    const before = scroller.scrollTop;
    scroller.scrollTop += view.height / 3;
    if (scroller.scrollTop === before) { if (box) return; throw new Error(text + ' is not in the source'); }
    await frame();
  }
}"""


# On a phone long lines wrap, and one may be higher than its pane: its beginning is in sight.
HEAD_IN_SIGHT = IN_SIGHT.replace("box.bottom > view.bottom", "box.top + 24 > view.bottom")
assert HEAD_IN_SIGHT != IN_SIGHT

# A place on an operation of the stage that is in sight.
A_LINE_IN_SIGHT = """() => {
  const view = document.querySelector('#ir-viewer .cm-scroller').getBoundingClientRect();
  const left = document.querySelector('#ir-viewer .cm-gutters').getBoundingClientRect().right;
  const box = [...document.querySelectorAll('#ir-viewer .cm-line.band')].map((l) => l.getBoundingClientRect())
    .find((b) => b.top > view.top + 8 && b.bottom < view.bottom - 8);
  return [left + 50, (box.top + box.bottom) / 2];
}"""


CODE = "() => /code=[^&]*/.exec(location.hash)?.[0]"  # the kernel in the address


class Walk:
    """A page with a kernel, and what the API says about it."""

    def __init__(self, page: Page, server: str, source: str, text: str):
        self.page = page
        self.text = text
        self.is_phone = page.locator("#switcher").is_visible()
        self.pane("Source")
        kernel = compile_api(server, source, filename="kernel.py")["kernels"][0]
        before = page.evaluate(CODE)
        write(page, source)
        page.wait_for_function("(name) => document.querySelector('#signature').textContent.startsWith(name)", arg=kernel["name"])
        compiled(page)
        page.wait_for_function(f"(before) => ({CODE})() !== before", arg=before)  # the address follows later
        self.stages = kernel["stages"]
        self.keys = [s["name"] for s in self.stages]
        self.wanted = range_named(self.stages, source, text)

    def pane(self, name: str) -> None:
        """On a phone, where one pane is shown at a time."""
        if self.is_phone:
            self.page.locator("#switcher button", has_text=name).click()

    def stage(self, index: int) -> dict:
        stage = self.stages[index]
        self.pane("Stages")
        key = self.page.locator("#stages .stage").nth(index % len(self.stages)).get_attribute("data-key")
        open_stage(self.page, key)
        shows_stage(self.page, stage)
        self.pane("IR")
        return stage

    def select(self) -> None:
        self.pane("Source")
        self.page.evaluate(SHOW_SOURCE, self.text)
        self.page.mouse.click(*source_spot(self.page, self.text, spot_in(self.text)))
        expect(self.page.locator("#source-editor .lit-selected").first).to_be_visible()
        assert lit_text(self.page, "lit-selected").replace("\n", "") == self.text
        self.pane("IR")

    def sees_best(self, stage: dict) -> None:
        shows_stage(self.page, stage)
        best = best_lines(stage, self.wanted)
        if best:
            best_in_sight(self.page, best, HEAD_IN_SIGHT if self.is_phone else IN_SIGHT)

    def leave(self) -> None:
        """The keyboard belongs to the page, not to an editor."""
        self.page.evaluate("() => document.activeElement?.blur()")


def a_click_reveals_the_best_partner(w: Walk) -> None:
    stage = w.stage(-1)
    w.select()
    w.sees_best(stage)
    assert best_lines(stage, w.wanted), "the expression has a partner in the last stage"


def it_stays_in_sight_while_one_steps_back(w: Walk) -> None:
    w.leave()
    for by in range(2, 8):
        w.page.keyboard.press("k")
        w.sees_best(w.stages[-by])


def a_chip_leads_to_it(w: Walk) -> None:
    chip = w.page.locator("#history .chip").first
    chip.click()
    index = int(re.match(r"\d+", chip.locator(".no").text_content())[0])
    w.sees_best(w.stages[index])


def its_link_opens_it_again(w: Walk) -> None:
    w.stage(-1)
    w.page.wait_for_function("() => location.hash.includes('sel=') && location.hash.includes('stage=engine-programs')")
    link = w.page.evaluate("() => location.hash")
    w.stage(0)
    w.page.wait_for_function("(link) => location.hash !== link && location.hash.includes('sel=')", arg=link)
    w.page.evaluate("(link) => { location.hash = link; }", link)
    w.page.wait_for_function("(link) => location.hash === link", arg=link)
    compiled(w.page)
    w.sees_best(w.stages[-1])


def the_longest_stage_is_read_to_its_end(w: Walk) -> None:
    index = max((i for i, s in enumerate(w.stages) if s["dialect"] != "nisa"), key=lambda i: w.stages[i]["text"].count("\n"))
    text = w.stage(index)["text"]
    w.page.locator("#ir-viewer .cm-content").focus()
    w.page.keyboard.press("Control+End")
    count = len(text.rstrip("\n").split("\n"))
    number = w.page.locator("#ir-viewer .cm-lineNumbers .cm-gutterElement", has_text=re.compile(f"^{count}$"))
    expect(number).to_be_in_viewport()
    w.leave()


def the_stage_is_compared_with_the_one_before(w: Walk) -> None:
    w.stage(w.keys.index("one-shot-bufferize"))
    w.leave()
    w.page.keyboard.press("d")
    expect(w.page.locator(".diff-facts ins")).to_be_visible()
    fits(w.page)
    w.page.keyboard.press("d")
    expect(w.page.locator("#diff-bar")).to_be_hidden()


def a_word_is_searched_in_all_stages(w: Walk) -> None:
    w.page.keyboard.press("Control+Shift+F")
    w.page.get_by_role("combobox", name="Search all stages").fill("linalg.matmul")
    expect(w.page.locator(".search-pane > .note")).to_contain_text("line")
    w.page.keyboard.press("ArrowDown")
    fits(w.page)
    hit = w.page.locator("#ir-viewer .cm-line.lit-hover", has_text="linalg.matmul").first
    if not w.is_phone:  # where the list covers the text
        expect(hit).to_be_in_viewport()
    w.page.keyboard.press("Escape")
    expect(w.page.locator(".search-pane")).to_be_hidden()
    w.pane("IR")
    expect(w.page.locator("#ir-title")).to_contain_text("hlo-to-linalg")


def a_key_opens_the_card_of_an_operation(w: Walk) -> None:
    w.stage(w.keys.index("linalg-to-nisa"))
    w.page.mouse.click(*w.page.evaluate(A_LINE_IN_SIGHT))
    w.page.keyboard.press("i")
    card = w.page.locator(".cm-tooltip .card")
    expect(card).to_be_in_viewport()
    box = card.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= w.page.viewport_size["width"] + 1, box
    w.page.keyboard.press("Escape")
    expect(card).to_have_count(0)


def the_decisions_stay_open(w: Walk) -> None:
    w.select()
    w.page.locator("#ir-remarks-open").click()
    expect(w.page.locator("#ir-remarks .about-selection")).to_be_visible()
    w.leave()
    w.page.keyboard.press("j")
    expect(w.page.locator("#ir-remarks .about-selection")).to_be_visible()
    fits(w.page)
    w.page.get_by_role("button", name="History", exact=True).click()


def the_palette_opens_a_stage(w: Walk) -> None:
    w.page.keyboard.press("Control+k")
    expect(w.page.get_by_role("combobox", name="Find an action")).to_be_focused()
    w.page.keyboard.type("legalize-layout")
    fits(w.page)
    w.page.keyboard.press("Enter")
    w.pane("IR")
    expect(w.page.locator("#ir-title")).to_contain_text("legalize-layout")


FOLLOW = [a_click_reveals_the_best_partner, it_stays_in_sight_while_one_steps_back, a_chip_leads_to_it, its_link_opens_it_again,
          the_longest_stage_is_read_to_its_end]
READ = [the_stage_is_compared_with_the_one_before, a_word_is_searched_in_all_stages, a_key_opens_the_card_of_an_operation,
        the_decisions_stay_open, the_palette_opens_a_stage]
KERNELS = {"helpers": (None, "g @ w2", FOLLOW + READ), "a loop": ("13_attention_loop", "q[i] @ kT[i]", FOLLOW),
           "thousands of lines": ("12_decoder_layer", "x @ w_gate", FOLLOW)}
assert sum(len(journeys) for _, _, journeys in KERNELS.values()) * len(SIZES) >= 90


def fits(page: Page) -> None:
    at_rest(page)
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("size", SIZES if os.environ.get("NKX_JOURNEYS") == "all" else ["desktop", "390×844"])
def test_every_journey_ends_well(new_page, server, size):
    width, height, ratio = SIZES[size]
    page = new_page(width, height, device_scale_factor=ratio)
    page.goto(server)
    compiled(page)
    failed = []
    for kernel, (file, text, journeys) in KERNELS.items():
        walk = Walk(page, server, SOURCE if file is None else example(server, file), text)
        for journey in journeys:
            try:
                journey(walk)
                fits(page)
            except Exception as e:  # the others are walked, too
                failed.append(f"{kernel}: {journey.__name__}: {str(e)[:600]}")
                page.keyboard.press("Escape")
    assert failed == [], "\n\n".join(failed)
