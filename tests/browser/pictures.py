"""Takes pictures of every view, light and dark, for looking at; run by hand.

    BUILD=build PYTHONPATH=tests build/venv/bin/python3 tests/browser/pictures.py [--out DIR] [--size 1440x900]
"""
import argparse
import itertools
import pathlib

from playwright.sync_api import expect, sync_playwright

from support.links import Stored
from support.own_kernel import SOURCE
from support.page import at_rest, compiled, open_stage, source_spot, write
from support.paths import BUILD
from support.server import Server


def at_line(page, text, key):
    """Presses a key on the first line with this text."""
    page.locator("#ir-viewer .cm-line", has_text=text).first.click(position={"x": 4, "y": 6})
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press(key)


def stored_views(page, server, scheme):
    """What others see of a stored link."""
    links = Stored(server)
    made = links.make(SOURCE, title="Two helpers, twice")
    page.goto(server + made["url"])
    expect(page.locator("#signature")).to_contain_text("block")
    yield "link"
    page.goto(f"{server}{made['url']}?view=plain")
    yield "plain"
    page.goto(f"{server}/e/{made['id']}")
    yield "embed"
    page.goto(f"{server}{made['url']}/preview.png")
    yield "preview"
    page.goto(server + made["url"])
    expect(page.locator("#signature")).to_contain_text("block")
    page.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print", color_scheme=scheme)
    yield "print"
    page.emulate_media(media="screen", color_scheme=scheme)
    links.delete()


def views(page, server):
    """Brings the page into one view after the other; gives its name."""
    page.goto(server)
    compiled(page)
    yield "first"
    write(page, SOURCE)
    compiled(page)
    page.mouse.click(*source_spot(page, "g @ w2", 2))
    yield "followed"
    open_stage(page, "one-shot-bufferize")
    yield "mlir"
    page.keyboard.press("f")
    expect(page.locator('#picture[data-drawn="one-shot-bufferize"] .sheet .box').first).to_be_visible()
    yield "loops"
    open_stage(page, "trace")
    expect(page.locator('#picture[data-drawn="trace"] .sheet .box').first).to_be_visible()
    yield "graph"
    page.keyboard.press("f")
    open_stage(page, "infer-layout")
    page.locator("#stages").focus()
    page.keyboard.press("y")
    expect(page.locator("#ir-remarks .about-selection .why").first).to_be_visible()
    yield "why"
    page.keyboard.press("y")
    open_stage(page, "linalg-to-nisa")
    at_line(page, "+=", "i")
    expect(page.locator(".cm-tooltip .card")).to_be_visible()
    yield "card"
    page.keyboard.press("Escape")
    at_line(page, "+=", "v")
    expect(page.locator(".value-facts").first).to_be_visible()
    yield "values"
    page.keyboard.press("Escape")
    at_line(page, "+=", "o")
    expect(page.locator(".tile svg").first).to_be_visible()
    yield "tiles"
    page.keyboard.press("Escape")
    page.locator("#stages").focus()
    page.keyboard.press("?")
    yield "keys"
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+P")
    yield "presented"
    page.keyboard.press("Escape")
    open_stage(page, "one-shot-bufferize")
    page.locator("#stages").focus()
    page.keyboard.press("d")
    expect(page.locator(".diff-facts ins")).to_be_visible()
    yield "diff"
    page.keyboard.press("d")
    open_stage(page, "engine-programs")
    page.keyboard.press("Shift+Enter")
    expect(page.locator("#beside")).to_be_visible()
    yield "two stages"
    page.get_by_role("button", name="Read", exact=True).focus()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Shift+F")
    page.get_by_role("combobox", name="Search all stages").fill("matmul")
    expect(page.locator("#search-hits mark").first).to_be_visible()
    yield "search"
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    yield "palette"
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Share", exact=True).click()
    yield "share"
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Download", exact=True).click()
    yield "download"
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#status")).to_contain_text("checked")
    yield "checked"
    page.get_by_role("button", name="Check").click()
    compiled(page)
    page.get_by_role("button", name="Pin", exact=True).click()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-verdict b")).to_contain_text("bound by")
    yield "run"
    page.get_by_role("button", name="tables").click()
    yield "run as tables"
    write(page, SOURCE.replace("range(2)", "range(3)"))
    compiled(page)
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("#compare-verdict b")).to_contain_text("differ")
    yield "compare"
    page.get_by_role("button", name="Read", exact=True).click()
    write(page, SOURCE.replace("np.exp", "np.expp"))
    expect(page.locator("#problems .message").first).to_be_visible()
    yield "failed"


expect.set_options(timeout=60_000)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=BUILD / "test/pictures")
    parser.add_argument("--size", default="1440x900")
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    args.out.mkdir(parents=True, exist_ok=True)
    with Server() as server, sync_playwright() as p:
        server.wait_until(lambda: server.get("/readyz").status == 200, "a warm worker")
        browser = p.chromium.launch(executable_path="/usr/bin/chromium-headless-shell", args=["--no-sandbox", "--disable-gpu"])
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            for name in itertools.chain(views(page, server.url), stored_views(page, server.url, scheme)):
                page.mouse.move(2, 2)
                at_rest(page)
                page.screenshot(path=args.out / f"{name.replace(' ', '-')}-{scheme}-{width}.png")
                print(f"{name}, {scheme}", flush=True)
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
