"""Starts the real server and a real browser for the page's tests.

BUILD names the folder of the built product (default build).  NKX_URL tests a server that runs already.
Every page is watched: a console error, an uncaught exception or a violation of the Content-Security-Policy fails the
test in which it happened, unless the test has said which one it expects.
"""
import contextlib
import os
import re
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import requests
from playwright.sync_api import Page, expect, sync_playwright

from slow_proxy import SlowProxy

ROOT = Path(__file__).resolve().parents[2]
BUILD = (ROOT / os.environ.get("BUILD", "build")).resolve()
SCREENS = BUILD / "test" / "screens"
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()

expect.set_options(timeout=30_000)  # of a machine with other work; what passes does not wait


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until_ready(url: str, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server ended while starting"
        with contextlib.suppress(requests.ConnectionError):
            # a compile, because the server listens before its workers are warm
            if requests.post(f"{url}/api/v1/compile", json={"source": "x = 1\n"}, timeout=30).status_code != 503:
                return
        time.sleep(0.05)
    raise AssertionError("the server was not ready within 30 s")


@pytest.fixture(scope="session")
def server():
    """The address of a running server."""
    if "NKX_URL" in os.environ:
        yield os.environ["NKX_URL"].rstrip("/")
        return
    with tempfile.TemporaryDirectory(prefix="nkx-browser-") as scratch:
        port = free_port()
        log = open(Path(scratch) / "server.log", "w+")
        process = subprocess.Popen(
            [BUILD / "bin" / "nkx", "serve", "--port", str(port), "--data-dir", scratch], stdout=log, stderr=subprocess.STDOUT, cwd=ROOT
        )
        try:
            wait_until_ready(f"http://127.0.0.1:{port}", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            log.close()


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as p:
        b = p.chromium.launch(executable_path="/usr/bin/chromium-headless-shell", args=FLAGS)
        yield b
        b.close()


class Watch:
    """What went wrong in a page without anyone asking."""

    def __init__(self):
        self.seen: list[str] = []
        self.expected: list[str] = []

    def attach(self, page: Page) -> None:
        page.on("console", lambda m: m.type in ("error", "warning") and self.seen.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda e: self.seen.append(f"exception: {e}"))

    def expect(self, pattern: str) -> None:
        self.expected.append(pattern)

    def check(self) -> None:
        bad = [s for s in self.seen if not any(re.search(p, s) for p in self.expected)]
        assert not bad, "the page complained:\n" + "\n".join(bad)


@pytest.fixture
def watch():
    w = Watch()
    yield w
    w.check()


@pytest.fixture
def new_page(browser, watch):
    """Makes pages in contexts of their own: nothing is kept from another test."""
    contexts = []

    def make(width=1440, height=900, scheme="dark", **options) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        watch.attach(page)
        return page

    yield make
    for context in contexts:
        context.close()


@pytest.fixture
def page(new_page, server) -> Page:
    """The explorer, opened on its first example and compiled."""
    p = new_page()
    p.goto(server)
    compiled(p)
    return p


@pytest.fixture
def slow(server):
    """The same service with a pause before each frame of an answer."""
    proxy = SlowProxy(server)
    yield proxy
    proxy.close()


# ---- words that the tests share -----------------------------------------------------------------------------------


def compiled(page: Page) -> None:
    expect(page.locator("#status")).to_have_text(re.compile(r"^✓ \d+ stages · [\d.]+ ms"))


def write(page: Page, source: str) -> None:
    """Replaces the kernel, as a paste does."""
    page.locator("#source-editor .cm-content").focus()  # a click that meets a moving layout scrolls its target under the gutter
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)


def source_of(page: Page) -> str:
    return page.evaluate(
        "() => [...document.querySelectorAll('#source-editor .cm-line')].map((l) => l.textContent).join('\\n')"
    )


def compile_api(server: str, source: str, **fields) -> dict:
    answer = requests.post(f"{server}/api/v1/compile", json={"source": source, **fields}, timeout=60)
    answer.raise_for_status()
    return answer.json()


def text_of_range(source: str, r: dict) -> str:
    """The characters of an API range: columns count code points from 1, the end is exclusive."""
    lines = source.split("\n")
    if r["line"] == r["end_line"]:
        return lines[r["line"] - 1][r["col"] - 1 : r["end_col"] - 1]
    first = lines[r["line"] - 1][r["col"] - 1 :]
    last = lines[r["end_line"] - 1][: r["end_col"] - 1]
    return "\n".join([first, *lines[r["line"] : r["end_line"] - 1], last])


def lit_text(page: Page, cls: str) -> str:
    """The source text that is marked, line by line, in order."""
    return page.evaluate(
        """(cls) => [...document.querySelectorAll('#source-editor .cm-line')].map((line) => {
             const walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
             let out = '';
             while (walk.nextNode()) if (walk.currentNode.parentElement.closest('.' + cls)) out += walk.currentNode.data;
             return out; }).filter((s) => s !== '').join('\\n')""",
        cls,
    )


def ir_lines(page: Page, cls: str = "") -> list[str]:
    return page.locator(f"#ir-viewer .cm-line{'.' + cls if cls else ''}").all_text_contents()


def open_stage(page: Page, name: str) -> None:
    page.locator(f'#stages .stage[data-key="{name}"]').click()
    expect(page.locator("#ir-title")).to_contain_text(name.split(":")[0])


def selected_stage(page: Page) -> str:
    return page.locator('#stages [aria-selected="true"]').get_attribute("data-key")
