"""How many bytes the page costs its users: all transfers, as they are on the wire."""
import collections
import time

from playwright.sync_api import expect
from support.page import compile_api, compiled, open_stage, write
from support.paths import EXAMPLES

FIRST_VIEW_MAX = 300_000


class Wire:
    """Counts what a page receives: the URL and the bytes of each answer that has ended."""

    def __init__(self, page):
        self.page, self.sizes = page, {}
        self.session = page.context.new_cdp_session(page)
        self.session.send("Network.enable")
        urls, received = {}, collections.Counter()

        def end(e, size):
            self.sizes[e["requestId"]] = (urls.get(e["requestId"], "?"), size)

        self.session.on("Network.requestWillBeSent", lambda e: urls.update({e["requestId"]: e["request"]["url"]}))
        self.session.on("Network.dataReceived", lambda e: received.update({e["requestId"]: e["encodedDataLength"]}))
        self.session.on("Network.loadingFinished", lambda e: end(e, e["encodedDataLength"]))
        # a compressed body ends before the chunk that ends the answer; a busy browser then cancels the rest
        self.session.on("Network.loadingFailed", lambda e: end(e, received[e["requestId"]]))

    def after(self, path):
        """All bytes, once an answer of this path is complete."""
        deadline = time.monotonic() + 30
        while not any(url.endswith(path) for url, _ in self.sizes.values()):
            assert time.monotonic() < deadline, self.sizes
            self.page.wait_for_timeout(20)  # takes events meanwhile
        return sum(n for _, n in self.sizes.values())


def test_everything_until_the_first_result_stands_fits_into_the_budget(new_page, server):
    page = new_page()
    wire = Wire(page)
    page.goto(server)
    compiled(page)
    assert wire.after("/api/v1/compile") <= FIRST_VIEW_MAX, sorted(wire.sizes.values(), key=lambda s: -s[1])


def test_a_recompile_sends_what_has_changed(new_page, server):
    page = new_page()
    page.goto(server)
    compiled(page)
    source = next(p for p in EXAMPLES if p.name.startswith("12_")).read_text()
    wire = Wire(page)
    for text, limit in ((source, 700_000), (source.replace("1e-5", "2e-5"), 150_000), (source.replace("1e-5", "3e-5") + "# more\n", 150_000)):
        wire.sizes.clear()
        write(page, text)
        n = wire.after("/api/v1/compile")
        compiled(page)
        expect(page.locator("#signature")).to_contain_text("decoder_layer")
        assert 0 < n <= limit, wire.sizes.values()
        open_stage(page, "linalg-to-nisa")
        stage = next(s for s in compile_api(server, text)["kernels"][0]["stages"] if s["name"] == "linalg-to-nisa")
        with page.expect_download() as download:
            page.get_by_role("button", name="Download this stage's text").click()
        assert download.value.path().read_text() == stage["text"]
