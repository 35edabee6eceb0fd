"""Follow one expression: its best partner is in sight in every stage that has one.

What is best is worked out here, from the API's maps and a ranking of its own: what does the work comes before what moves its
data, that before what prepares and holds it together, then buffers, and constants last.

NKX_FOLLOW=all takes every expression; otherwise two of each kernel.
"""
import os
import re

import pytest
from playwright.sync_api import Page, expect

from support.marks import few
from support.own_kernel import SOURCE
from support.page import compile_api, compiled, lit_text, open_stage, selected_stage, source_spot, write
from support.paths import ROOT
from support.source_map import text_of

# the first expression that matches a line decides
ORDER = [
    r"\bdot\(|linalg\.(batch_)?matmul|nisa\.matmul",
    r" reduce\(|\"reduction\"|linalg\.reduce|nisa\.tensor_reduce",
    r"= \S+ (add|subtract|multiply|divide|exponential|maximum|minimum|negate|sqrt|rsqrt|tanh|compare|select|convert|power)\(",
    r"linalg\.(?!fill|yield|transpose|copy|broadcast)\w+|nisa\.(activation|reciprocal|\w+_arith|select\w*)",
    r" (copy|transpose|slice|concatenate|pad|gather)\(|dynamic-slice\(|dynamic-update-slice\(|memref\.copy|linalg\.(transpose|copy|broadcast)|materialize_in_destination|nisa\.(dma_copy|dma_transpose|tensor_copy)",
    r"nisa\.(memset|iota)|linalg\.fill",
    r"^(?!.*( parameter\(| constant\(|\.alloc|\.release|\.dealloc|tensor\.empty|arith\.constant|func\.|\.yield|builtin|module))",
    r"parameter\(|alloc|release|dealloc|tensor\.empty",
    r"",
]


def worth(line: str) -> int:
    return next(i for i, pattern in enumerate(ORDER) if re.search(pattern, line))


def place_of(r: dict) -> tuple:
    return r["line"], r["col"], r["end_line"], r["end_col"]


def best_lines(stage: dict, wanted: dict) -> list[int]:
    """The number of every line of the stage that is a best partner of the range."""
    texts = stage["text"].split("\n")
    for is_partner in (lambda depth: depth == 0, lambda depth: depth > 0):
        own = [i for i, entry in enumerate(stage["lines"])
               if "op" in entry and any(place_of(r) == place_of(wanted) and is_partner(r["depth"]) for r in entry.get("src", []))]
        if own:
            top = min(worth(texts[i]) for i in own)
            return [i + 1 for i in own if worth(texts[i]) == top]
    return []


def range_named(stages: list[dict], source: str, text: str) -> dict:
    """The range of the source with this text; the one on the first line that has it."""
    ranges = [r for s in stages for entry in s["lines"] for r in entry.get("src", []) if r["line"] > 0]
    return min((r for r in ranges if text_of(source, r) == text), key=place_of)


# The line number that the margin gives for the best partner, if the whole of its row is in sight.
IN_SIGHT = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
    const view = document.querySelector('#ir-viewer .cm-scroller').getBoundingClientRect();
    const line = document.querySelector('#ir-viewer .cm-line.lit-best');
    const box = line?.getBoundingClientRect();
    if (!box || box.top < view.top - 1 || box.bottom > view.bottom + 1) return done(null);
    const middle = (box.top + box.bottom) / 2;
    const number = [...document.querySelectorAll('#ir-viewer .cm-lineNumbers .cm-gutterElement')].find((e) => {
      const own = e.getBoundingClientRect();
      return own.height > 0 && own.top <= middle && middle <= own.bottom; });
    done(Number(number?.textContent)); })))"""


def best_in_sight(page: Page, best: list[int], in_sight: str = IN_SIGHT, looks: int = 20) -> None:
    """At once, or after the layout has come to rest.  A look takes two frames."""
    for _ in range(looks):
        shown = page.evaluate(in_sight)
        if shown in best:
            return
    raise AssertionError(f"in sight: {shown}, the best: {best[:8]}")


def shows_stage(page: Page, stage: dict) -> None:
    expect(page.locator("#ir-title")).to_have_text(f"{stage['index']}{stage['name']}")


def leave_editor(page: Page) -> None:
    page.locator("#stages").focus()


def opened(page: Page, server: str, source: str, name: str) -> list[dict]:
    write(page, source)
    expect(page.locator("#signature")).to_contain_text(name)
    compiled(page)
    page.locator("#stages").press("Home")
    result = compile_api(server, source, filename="kernel.py")
    assert result["status"] == "ok"
    return result["kernels"][0]["stages"]


def example(server: str, name: str) -> str:
    return (ROOT / f"explorer/examples/{name}.py").read_text()


OWN = ["norm(x, 1e-5) @ w1", "g @ w2", "x * x", "np.mean(x * x, axis=-1, keepdims=True)", "x / np.sqrt(ms + eps)", "np.exp(-u)", "x + g @ w2"]
KERNELS = {
    "block": (None, OWN),
    "decoder_layer": ("12_decoder_layer", ["x @ wq", "q @ k.transpose(0, 2, 1)", "softmax(scores) @ v", "np.exp(x - np.max(x, axis=-1, keepdims=True))", "first * cos", "x @ w_gate"]),
    "swiglu": ("07_swiglu", ["x @ w_gate_up", "silu(gate) * up", "hidden @ w_down", "np.exp(-x)"]),
    "attention_loop": ("13_attention_loop", ["q[i] @ kT[i]", "np.max(scores, axis=-1, keepdims=True)", "np.sum(e, axis=-1, keepdims=True)"]),
}
assert sum(len(texts) for _, texts in KERNELS.values()) == 20
SAMPLE = None if os.environ.get("NKX_FOLLOW") == "all" else 2


# where in an expression a click means it, and not a part of it
def spot_in(text: str) -> int:
    at = {"softmax(scores) @ v": " @ v", "q @ k.transpose(0, 2, 1)": " @ k", "norm(x, 1e-5) @ w1": " @ w1", "silu(gate) * up": " * up", "x + g @ w2": " + "}
    if text in at:
        return text.index(at[text]) + 1
    if text.startswith(("np.", "q[")):
        return text.index(" @ ") + 1 if text.startswith("q[") else 4
    return next(m.start() + 1 for m in re.finditer(r" [@*/+-] ", text))


def select(page: Page, text: str) -> None:
    page.mouse.click(*source_spot(page, text, spot_in(text)))
    page.mouse.move(2, 2)
    expect(page.locator("#source-editor .lit-selected").first).to_be_visible()
    assert lit_text(page, "lit-selected") == text


@pytest.mark.parametrize("name", few(KERNELS, 1))
def test_the_best_partner_is_in_sight_in_every_stage_by_step_by_chip_and_by_link(page, server, name):
    file, texts = KERNELS[name]
    source = SOURCE if file is None else example(server, file)
    stages = opened(page, server, source, name)
    for text in texts[:SAMPLE]:
        page.locator("#stages").press("Home")
        shows_stage(page, stages[0])
        select(page, text)
        wanted = range_named(stages, source, text)
        best = [best_lines(stage, wanted) for stage in stages]
        step_through(page, stages, best, text)
        by_chips(page, stages, best)
        by_links(page, stages, best, wanted)


def step_through(page: Page, stages: list[dict], best: list[list[int]], text: str) -> None:
    leave_editor(page)
    for stage, wanted in zip(stages, best):
        shows_stage(page, stage)
        if wanted:
            best_in_sight(page, wanted)
        page.keyboard.press("j")
    assert sum(map(bool, best)) > 30, f"{text}: {sum(map(bool, best))} stages have a partner"


def by_chips(page: Page, stages: list[dict], best: list[list[int]]) -> None:
    chips = page.locator("#history .chip")
    for i in range(chips.count()):
        chips.nth(i).click()
        index = int(page.locator("#ir-title .no").text_content())
        shows_stage(page, stages[index])
        best_in_sight(page, best[index])


def by_links(page: Page, stages: list[dict], best: list[list[int]], wanted: dict) -> None:
    """Opened in the same tab, one after the other."""
    selection = "{line}:{col}-{end_line}:{end_col}".format(**wanted)
    page.wait_for_function("(sel) => decodeURIComponent(location.hash).includes('sel=' + sel)", arg=selection)
    link = page.evaluate("() => location.hash")
    keys = page.locator("#stages .stage").evaluate_all("(rows) => rows.map((r) => r.dataset.key)")
    for index in (5, 20, 28, 36, 43, 45):
        page.evaluate("(link) => { location.hash = link; }", re.sub("stage=[^&]*", f"stage={keys[index]}", link))
        shows_stage(page, stages[index])
        if best[index]:
            best_in_sight(page, best[index], looks=1500)  # once the link's kernel is compiled


def test_an_opened_link_shows_the_best_partner(page, new_page, server):
    name = "block"
    file, texts = KERNELS[name]
    source = SOURCE if file is None else example(server, file)
    stages = opened(page, server, source, name)
    for text, at in zip(texts[:3], (10, 30, -1)):
        page.locator("#stages").press("Home")
        shows_stage(page, stages[0])
        select(page, text)
        key = page.locator("#stages .stage").nth(at % len(stages)).get_attribute("data-key")
        open_stage(page, key)
        page.wait_for_function("(key) => location.hash.includes('stage=' + key) && location.hash.includes('sel=')", arg=key)
        fresh = new_page()
        fresh.goto(page.url)
        compiled(fresh)
        expect(fresh.locator("#ir-viewer .lit-best").first).to_be_visible()
        best_in_sight(fresh, best_lines(stages[at], range_named(stages, source, text)))
        fresh.close()


def test_a_click_reveals_the_instruction_and_not_a_constant(page, server):
    stages = opened(page, server, SOURCE, "block")
    page.locator("#stages").press("End")
    select(page, "norm(x, 1e-5) @ w1")
    best_in_sight(page, best_lines(stages[-1], range_named(stages, SOURCE, "norm(x, 1e-5) @ w1")))
    assert " @ " in page.locator("#ir-viewer .lit-best").text_content()


def test_the_history_counts_the_operations_and_names_the_pass_of_each(page, server):
    stages = opened(page, server, SOURCE, "block")
    select(page, "g @ w2")
    open_stage(page, "linalg-to-nisa")
    stage = next(s for s in stages if s["name"] == "linalg-to-nisa")
    wanted = range_named(stages, SOURCE, "g @ w2")
    texts = stage["text"].split("\n")
    own = [texts[i] for i, e in enumerate(stage["lines"]) if any(place_of(r) == place_of(wanted) and r["depth"] == 0 for r in e.get("src", []))]
    parts = page.locator("#history .part")
    for op in ("matmul", "dma_copy", "tensor_copy"):
        part = parts.filter(has=page.locator(".op", has_text=re.compile(f"^{op}$")))
        count = sum(int(t) for t in part.locator("b").all_text_contents())
        assert count == sum(f"nisa.{op}(" in line for line in own) > 0, op
    # products, and transposes as products with the identity
    assert set(parts.filter(has_text="matmul").locator(".by").all_text_contents()) == {"from the source", f"linalg-to-nisa {stage['index']}"}
    # the pass is the one before whose stage the work was not there
    moved = parts.filter(has_text="dma_copy").locator(".by").text_content()
    pass_name, index = moved.rsplit(" ", 1)
    assert stages[int(index)]["name"] == pass_name
    moves = "bufferization.materialize_in_destination"
    assert moves in stages[int(index)]["text"] and moves not in stages[int(index) - 1]["text"]
    # a click walks the operations of that name, one after the other
    copies = parts.filter(has_text="dma_copy").first
    for _ in range(2):
        copies.click()
        expect(page.locator("#ir-viewer .lit-best")).to_contain_text("← copy")
    expect(copies).to_have_attribute("aria-pressed", "true")
    # the open chip closes and opens its counts
    page.locator('#history .chip[aria-current="step"]').click()
    expect(parts).to_have_count(0)
    page.locator('#history .chip[aria-current="step"]').click()
    expect(parts.first).to_be_visible()


def test_a_shared_constant_says_that_it_is_shared_and_by_what(page, server):
    stages = opened(page, server, SOURCE, "block")
    open_stage(page, "linalg-to-nisa")
    page.keyboard.press("r")  # the compact form folds constants
    stage = next(s for s in stages if s["name"] == "linalg-to-nisa")
    line = next(i for i, text in enumerate(stage["text"].split("\n")) if "%c4 = arith.constant" in text)
    places = {tuple(place_of(r)) for r in stage["lines"][line]["src"] if r["depth"] == 0}
    page.locator("#ir-viewer .cm-scroller").evaluate("(s, n) => { s.scrollTop = n * 19 - 60; }", line)
    page.locator("#ir-viewer .cm-line", has_text="%c4 = arith.constant").click(position={"x": 60, "y": 6})
    summary = page.locator("#history .history-places summary")
    expect(summary).to_contain_text("shared by")
    assert int(re.search(r"\d+", summary.text_content())[0]) >= len(places) > 1
    summary.click()
    expect(page.locator("#history .history-places .places")).to_contain_text("g @ w2")


@pytest.mark.nightly
def test_decisions_stay_open_while_one_steps_through_the_stages(page, server):
    stages = opened(page, server, SOURCE, "block")
    select(page, "g @ w2")
    page.locator("#ir-remarks-open").click()
    about = page.locator("#ir-remarks .about-selection")
    decided = {r["text"] for s in stages for r in s.get("remarks", []) if place_of(range_named(stages, SOURCE, "g @ w2")) in [place_of(p) for p in r.get("src", [])[:1]]}
    assert any(text.startswith("TILE=") for text in decided)
    for text in decided:
        expect(about).to_contain_text(text)
    leave_editor(page)
    for _ in range(3):
        page.keyboard.press("j")
        expect(about).to_be_visible()
    assert selected_stage(page) == stages[3]["name"]
