"""A session of three browsers on two servers, which share one PostgreSQL behind nginx as docker/nginx.conf configures it."""
import time

import pytest
from playwright.sync_api import expect

from browser.conftest import PATIENT, launch
from support.line import Line
from support.session_page import agree, bar, begin, do, has, join, shown, text_of, type_at_end_of
from support.site import Site
from support.wait import wait_until

ASKED_AGAIN_S = 2  # nginx asks a server that was away again after so long
BACK_S = 5  # by when a participant is connected again
NAMES = ("Ann", "Bob", "Cy")
HOMES = (0, 1, 1)  # the server of each
LINES = (5, 7, 8)  # where each writes: what is typed at one place is mixed

# What the bar says of the connection, as it changes: [milliseconds, text]
NOTE = """() => {
  window.said = [];
  const look = () => {
    const text = document.querySelector('#session-bar .session-status')?.textContent ?? '';
    if (text !== window.said.at(-1)?.[1]) window.said.push([performance.now(), text]);
  };
  look();
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


@pytest.fixture(scope="module")
def site(postgres):
    s = Site(postgres.new_database("site"), "--trusted-proxies", "127.0.0.0/8", *PATIENT)
    yield s
    s.end()


@pytest.fixture(scope="module")
def browsers(browser):
    more = [launch(browser.browser_type) for _ in NAMES[1:]]
    yield [browser, *more]
    for b in more:
        b.close()


@pytest.fixture
def three(site, browsers, watch):
    """Ann, who leads, Bob and Cy; each has .line to the proxy, and .said() tells what their bar has said."""
    for i, server in enumerate(site.servers):
        if server.process.poll() is not None:  # a test has failed
            site.restart(i)
    site.wait_both()
    pages, lines = [], []
    for b, address in zip(browsers, site.addresses_of(HOMES), strict=True):
        line = Line(site.proxy, address)
        lines.append(line)
        page = b.new_context(viewport={"width": 1300, "height": 850}, color_scheme="dark").new_page()
        watch.attach(page)
        page.line = line
        pages.append(page)
    address = begin(pages[0], lines[0].url)
    for page, name in zip(pages[1:], NAMES[1:]):
        join(page, page.line.url + address[address.index("/s/"):], name)
    for page in pages:
        page.evaluate(NOTE)
        expect(bar(page).locator(".chip-person:not(.away)")).to_have_count(len(NAMES))
    expect(bar(pages[0])).to_contain_text("2 of 2 follow you")
    assert [streams(s) for s in site.servers] == [HOMES.count(0), HOMES.count(1)]
    yield pages
    for page in pages:
        page.context.close()
        page.line.end()


def streams(server):
    text = server.get("/metrics").body.decode()
    return next(int(float(line.split()[1])) for line in text.splitlines() if line.startswith("nkx_session_streams "))


def said(page):
    return page.evaluate("window.said")


def back_after(page):
    """Waits until the page was away and is back; the seconds that this took, from what its bar said."""
    def gap():
        texts = said(page)
        away = next((t for t, text in texts if "reconnecting" in text), None)
        back = next((t for t, text in texts if away is not None and t > away and text == "connected"), None)
        return None if back is None else (back - away) / 1000
    return wait_until(gap, "the page to have been away and to be back", 60, poll_s=0.05)


def test_edits_of_one_place_at_one_time_are_all_kept(three):
    for page in three:
        type_at_end_of(page, 8, "")
    for keys in zip("12345", "67890", "abcde", strict=True):
        for page, key in zip(three, keys):
            page.keyboard.type(key)
    line = agree(*three).splitlines()[7]
    assert sorted(line.removeprefix("    return b * 2.0")) == sorted("1234567890abcde")
    for page, other in ((three[0], "Bob"), (three[1], "Ann"), (three[2], "Ann")):
        expect(page.locator("#source-editor .peer-tag", has_text=other)).to_be_visible()


def test_who_leads_is_followed_points_hands_over_and_locks(three):
    ann, bob, cy = three
    ann.locator("#stages").focus()
    ann.keyboard.press("Home")
    for page in (bob, cy):
        expect(page.locator("#ir-title")).to_have_text(shown(ann))
    bob.locator("#stages").focus()
    bob.keyboard.press("j")
    expect(bar(bob)).to_contain_text("You look around by yourself")
    expect(bar(ann)).to_contain_text("1 of 2 follow you")
    own = shown(bob)
    ann.keyboard.press("End")
    expect(cy.locator("#ir-title")).to_have_text(shown(ann))
    assert shown(bob) == own != shown(ann)
    bob.keyboard.press("l")
    expect(bob.locator("#ir-title")).to_have_text(shown(ann))

    do(ann, "Point")
    ann.locator("#source-editor .cm-line").nth(6).click()
    for page in (bob, cy):
        expect(page.locator("#source-editor .peer-pointed")).to_contain_text("np.tanh(a)")
        expect(page.locator("#source-editor .peer-tag", has_text="Ann points here")).to_be_visible()
    do(ann, "Stop pointing")
    for page in (bob, cy):
        expect(page.locator("#source-editor .peer-pointed")).to_have_count(0)

    do(ann, "Read-only")
    for page in (bob, cy):
        expect(bar(page)).to_contain_text("Only the leader may change the kernel")
        before = text_of(page)
        type_at_end_of(page, 7, "xyz")
        assert text_of(page) == before
    do(ann, "Hand over…")
    do(ann, "Bob")
    do(bob, "Take the lead")
    expect(bar(bob)).to_contain_text("You lead.")
    expect(bar(ann)).to_contain_text("You follow Bob")
    do(cy, "Follow")  # who has typed had gone their own way
    expect(bar(cy)).to_contain_text("You follow Bob")
    type_at_end_of(bob, 7, "  # who leads writes")
    for page in (ann, cy):
        has(page, "# who leads writes")
    assert "xyz" not in agree(*three)


def test_after_kill_9_of_either_server_its_people_go_on_at_the_other_one(three, site, watch):
    watch.expect("Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY")
    ann, bob, cy = three
    took = []
    for i, theirs, others in ((0, [ann], [bob, cy]), (1, [bob, cy], [ann])):
        for page in three:
            page.evaluate("window.said = window.said.slice(-1)")
        if i == 1:
            site.restart(0)
            wait_until(lambda: site.home_of(ann.line.address) is not None, "one home of Ann")
        site.kill(i)
        for page, word, line in zip(three, NAMES, LINES):  # at once: the pages may not know yet that the server is gone
            type_at_end_of(page, line, f"  # {word} {i}")
        took += [back_after(page) for page in theirs]
        for page, word in ((page, word) for page in three for word in NAMES):
            has(page, f"# {word} {i}")
    site.restart(1)
    text = agree(*three)
    assert all(f"# {word} {i}" in text for word in NAMES for i in (0, 1))
    print("back after", ", ".join(f"{s:.2f} s" for s in took))
    assert max(took) < BACK_S


@pytest.mark.nightly
def test_while_no_server_is_there_each_page_says_so_and_keeps_what_is_written(three, site, watch):
    watch.expect("Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY")
    for i in (0, 1):
        site.kill(i)
    for page, word, line in zip(three, NAMES, LINES):
        expect(bar(page)).to_contain_text("reconnecting: your changes are kept here")
        type_at_end_of(page, line, f"  # {word} meanwhile")
    for page, own in zip(three, NAMES):
        assert [word for word in NAMES if f"# {word} meanwhile" in text_of(page)] == [own]
    site.restart(1)
    began = time.monotonic()
    for page in three:
        expect(bar(page)).to_contain_text("connected", timeout=(BACK_S + ASKED_AGAIN_S) * 1000)
    print(f"back after {time.monotonic() - began:.2f} s")
    for page in three:
        for word in NAMES:
            has(page, f"# {word} meanwhile")
    agree(*three)
    site.restart(0)


def test_a_connection_that_breaks_or_falls_silent_is_made_anew(three, watch):
    watch.expect("Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY")
    ann, bob, cy = three
    bob.line.cut()
    cy.line.silence(True)
    type_at_end_of(ann, 7, "  # hers")
    assert back_after(bob) < BACK_S
    has(bob, "# hers")
    type_at_end_of(cy, 8, "  # Cy's")
    assert "# hers" not in text_of(cy)
    expect(bar(cy)).to_contain_text("reconnecting")
    cy.line.silence(False)
    for page in three:
        has(page, "# Cy's")
    assert "# hers" in agree(*three)
