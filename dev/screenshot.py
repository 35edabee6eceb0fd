"""Takes the picture of the page that README.md shows: docs/page.png.

    python3 dev/screenshot.py [--build build] [--out docs/page.png]

Starts the server on a free port, opens the first example in the headless browser that the tests use, selects the matmul,
and shows its history and its instructions.  Run it after a change to the page that the picture should show.
"""
import argparse
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
WIDTH, HEIGHT = 1280, 760


def take(out):
    from playwright.sync_api import expect, sync_playwright

    from support.page import at_rest, compiled, open_stage
    from support.server import Server

    with Server() as server, sync_playwright() as p:
        server.wait_until(lambda: server.get("/readyz").status == 200, "a worker that is warm")
        browser = p.chromium.launch(executable_path="/usr/bin/chromium-headless-shell", args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="dark")
        page.goto(server.url)
        compiled(page)
        open_stage(page, "linalg-to-nisa")
        page.locator("#source-editor .cm-line", has_text="product = np.matmul").click(position={"x": 150, "y": 8})
        page.mouse.move(WIDTH // 2, 20)  # the card of the expression would hide the stages
        page.locator("#stages").focus()
        page.keyboard.press("h")
        expect(page.get_by_text("History of")).to_be_visible()
        at_rest(page)
        page.screenshot(path=out, type="png")
        browser.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs/page.png")
    args = parser.parse_args()
    os.environ["BUILD"] = args.build  # read by support.paths
    sys.path.insert(0, str(ROOT / "tests"))
    take(args.out)
    print(f"{args.out}: {args.out.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
