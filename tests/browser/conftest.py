"""Starts the real server and a real browser for the page's tests.

NKX_URL tests a server that runs already.  Every page is watched: a console error, an uncaught exception or a violation of
the Content-Security-Policy fails the test in which it happened, unless the test has said which one it expects.
"""
import os
import re

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from support.links import Stored, links_in
from support.page import compiled
from support.server import Server
from support.slow_proxy import SlowProxy
from support.tabs import Tabs

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()

PATIENT = ("--job-timeout-ms", "90000", "--job-cpu-s", "60")  # a kernel's limits are no business of these tests
expect.set_options(timeout=30_000)  # of a machine with other work; what passes does not wait


@pytest.fixture(scope="session")
def server(request):
    """The address of a running server.  At the end no test may have left a link behind."""
    if "NKX_URL" in os.environ:
        yield os.environ["NKX_URL"].rstrip("/")
        return
    with Server(*PATIENT) as s:
        s.wait_until(lambda: s.get("/readyz").status == 200, "a worker that is warm")
        yield s.url
        assert request.session.testsfailed or links_in(s.data / "nkx.sqlite") == 0


@pytest.fixture(scope="session")
def browser():
    with sync_playwright() as p:
        b = launch(p.chromium)
        yield b
        b.close()


def launch(browser_type):
    """A browser, a process of its own."""
    return browser_type.launch(executable_path="/usr/bin/chromium-headless-shell", args=FLAGS)


class Watch:
    """What went wrong in a page without anyone asking."""

    def __init__(self):
        self.seen: list[str] = []
        self.expected: list[str] = []

    def console(self, message) -> None:
        if message.type in ("error", "warning"):
            self.seen.append(f"{message.type}: {message.text}")

    def error(self, error) -> None:
        self.seen.append(f"exception: {error}")

    def attach(self, page: Page) -> None:
        page.on("console", self.console)
        page.on("pageerror", self.error)

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


@pytest.fixture(scope="session")
def tabs(browser):
    return Tabs(browser)


@pytest.fixture
def new_page(tabs, watch):
    """Makes pages in contexts of their own: nothing is kept from another test, but the browser's cache unless it is `cold`.
    Links that they store are deleted."""
    taken = []

    def make(width=1440, height=900, scheme="dark", cold=False, **options) -> Page:
        options |= {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
        taken.append(tabs.take(options, cold))
        return taken[-1].begin(watch)

    yield make
    for tab in taken:
        tabs.give_back(tab)


@pytest.fixture
def page(new_page, server) -> Page:
    """The explorer, opened on its first example and compiled."""
    p = new_page()
    p.goto(server)
    compiled(p)
    return p


@pytest.fixture(scope="module")
def stored(server):
    """Stores links through the API, and deletes them when the module's tests have ended."""
    s = Stored(server)
    yield s
    s.delete()


@pytest.fixture
def slow(server):
    """The same service with a pause before each frame of an answer."""
    proxy = SlowProxy(server)
    yield proxy
    proxy.close()
