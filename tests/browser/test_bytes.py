"""How many bytes the page costs its users: all transfers, as they are on the wire."""
import pytest
from support.page import compiled

FIRST_VIEW_MAX = 300_000


class Wire:
    """Counts what a page receives."""

    def __init__(self, page):
        self.sizes = {}
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        urls = {}
        session.on("Network.requestWillBeSent", lambda e: urls.__setitem__(e["requestId"], e["request"]["url"]))
        session.on("Network.loadingFinished", lambda e: self.sizes.__setitem__(e["requestId"], (urls.get(e["requestId"], "?"), e["encodedDataLength"])))

    @property
    def total(self):
        return sum(n for _, n in self.sizes.values())


def test_everything_until_the_first_result_stands_fits_into_the_budget(new_page, server):
    page = new_page()
    wire = Wire(page)
    page.goto(server)
    compiled(page)
    page.wait_for_load_state("networkidle")
    assert any("/api/v1/compile" in url for url, _ in wire.sizes.values()), wire.sizes
    assert wire.total <= FIRST_VIEW_MAX, sorted(wire.sizes.values(), key=lambda s: -s[1])
