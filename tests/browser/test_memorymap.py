"""The buffers of SBUF and PSUM over time: what the pictures say is what the profile says."""
import re

import pytest
from playwright.sync_api import expect

from browser.test_run import MLP, profile_of
from support.marks import few
from support.page import compiled, write

LABELS = 90  # pixels on the left in which no buffer is drawn, without the numbers of the scale


@pytest.fixture
def run(new_page, server):
    page = new_page()
    page.goto(server)
    compiled(page)
    write(page, MLP)
    expect(page.locator("#signature")).to_contain_text("mlp(")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-verdict b")).to_contain_text("µs, bound by")
    return page


@pytest.mark.parametrize("name", few(["SBUF", "PSUM"], 1))
def test_the_arrow_keys_name_each_buffer_with_its_place_and_time(run, server, name):
    memory = profile_of(server, MLP)["memory"][name.lower()]
    canvas = run.locator(f".memory-map[aria-label*={name}]")
    canvas.focus()
    for number, start, end, byte in memory["lives"][:6]:
        run.keyboard.press("ArrowRight")
        b = memory["buffers"][number]
        expect(run.locator("#run-chosen b")).to_contain_text(f"partitions {b['first_partition']}–{b['first_partition'] + b['partitions'] - 1}, ")
        expect(run.locator("#run-chosen b")).to_contain_text(f"bytes {byte:,}–{byte + b['bytes'] - 1:,} · {start:.3f}–{end:.3f} µs")
        assert re.match(r"%\w+: ", run.locator("#run-chosen b").inner_text())
    expect(canvas).to_be_focused()
    expect(run.locator("#source-editor .lit-range, #source-editor .lit-selected").first).to_be_visible()


def test_the_pointer_says_what_is_alive(run, server):
    p = profile_of(server, MLP)
    memory = p["memory"]["sbuf"]
    canvas = run.locator(".memory-map[aria-label*=SBUF]")
    box = canvas.bounding_box()
    x = 104 + round((box["width"] - 104) * 0.4)
    canvas.hover(position={"x": x, "y": 12})
    said = run.locator("#run-chosen").inner_text()
    now = (x - 104) / (box["width"] - 104) * p["total_us"]
    alive = [memory["buffers"][n]["bytes"] for n, start, end, _ in memory["lives"] if start <= now < end]
    assert f"{len(alive)} buffer" in said and re.search(r"%sbuf\w*", said)
    run.mouse.move(5, 5)
    expect(run.locator("#run-chosen")).to_have_text("")


def test_a_click_on_a_buffer_selects_its_allocation(run):
    canvas = run.locator(".memory-map[aria-label*=SBUF]")
    box = canvas.bounding_box()
    for y in range(20, int(box["height"]) - 8, 6):
        canvas.click(position={"x": box["width"] / 2, "y": y})
        if run.locator("#run-chosen b").count() > 0:
            break
    name = re.match(r"(%\w+): ", run.locator("#run-chosen b").inner_text())[1]
    run.get_by_role("button", name="Read", exact=True).click()
    run.locator('#stages .stage[data-key="engine-programs"]').click()
    run.keyboard.press("r")
    expect(run.locator("#ir-viewer .lit-best")).to_contain_text(f"{name} = nisa.alloc")


@pytest.mark.nightly
def test_the_buffers_have_tables_and_their_pictures_are_saved(run, server):
    memory = profile_of(server, MLP)["memory"]
    for name in ("SBUF", "PSUM"):
        figure = run.locator("figure.memory", has=run.locator(f"[aria-label*={name}]"))
        button = figure.get_by_role("button", name="PNG")
        own = button.bounding_box()
        assert own["x"] + own["width"] < figure.bounding_box()["x"] + LABELS, "the button covers buffers"
        with run.expect_download() as saved:
            button.click()
        assert saved.value.suggested_filename == f"{name.lower()}.png"
    run.get_by_role("button", name="tables").click()
    for name in ("SBUF", "PSUM"):
        table = run.locator("#run-tables table", has=run.locator(f"caption:text('Buffers in {name}')"))
        expect(table.locator("tbody tr")).to_have_count(len(memory[name.lower()]["buffers"]))
        lives = sum(int(n) for n in table.locator("tbody tr td:nth-child(5)").all_text_contents())
        assert lives == memory[name.lower()]["n_lives"]
