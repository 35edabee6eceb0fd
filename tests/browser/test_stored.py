"""Stored links: made, opened as they were shared, forked, frozen, deleted, framed."""
import html
import http.server
import json
import re
import threading
import urllib.parse

import pytest
import requests
from playwright.sync_api import expect

from support.links import delete_links
from support.marks import few
from support.page import KERNEL, compiled, create, ir_lines, lit_text, open_dialog, open_stage, selected_stage, source_of, write
from support.paths import ROOT


def facts(server, link):
    return requests.get(f"{server}/api/v1/snippets/{link.split('/')[-1]}").json()


@pytest.fixture
def mine(page):
    """The page with a kernel of ours, compiled."""
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("mine")
    compiled(page)
    return page


def test_a_stored_link_opens_exactly_as_it_was_shared(mine, new_page, server):
    page = mine
    page.select_option("#target", "trn3")
    compiled(page)
    open_stage(page, "trace")
    line = next(i for i, text in enumerate(ir_lines(page)) if "tanh(" in text)
    page.locator("#ir-viewer .cm-line").nth(line).click(position={"x": 30, "y": 6})
    open_stage(page, "canonicalize:2")
    page.get_by_role("button", name="changed only").click()
    page.get_by_label("Filter stages").fill("a")
    page.locator("#split-source").focus()
    page.keyboard.press("ArrowRight")
    width = page.locator("#source-pane").bounding_box()["width"]
    page.locator("#stages").focus()
    page.keyboard.press("a")
    open_stage(page, "linalg-to-nisa")
    page.keyboard.press("u")
    expect(page.locator(".diff-facts ins")).to_be_visible()
    link = create(page, title="Tanh & <i>twice</i>")
    assert re.fullmatch(server + r"/z/[\w-]{22}", link)
    kept = facts(server, link)
    assert kept["title"] == "Tanh & <i>twice</i>" and kept["visibility"] == "unlisted" and kept["expires_ms"] is None
    assert "scope" not in kept["request"]

    other = new_page()
    compiles = []
    other.on("request", lambda r: r.url.endswith("/compile") and compiles.append(r.url))
    other.goto(link)
    compiled(other)
    assert source_of(other) == source_of(page)
    expect(other.locator("#target")).to_have_value("trn3")
    assert selected_stage(other) == "linalg-to-nisa"
    expect(other.locator("#diff-viewer")).to_be_visible()
    expect(other.get_by_label("Compare with", exact=True)).to_have_value("canonicalize:2")
    expect(other.get_by_role("button", name="unified")).to_have_attribute("aria-pressed", page.get_by_role("button", name="unified").get_attribute("aria-pressed"))
    expect(other.locator(".diff-facts")).to_have_text(page.locator(".diff-facts").text_content())
    expect(other.get_by_label("Filter stages")).to_have_value("a")
    expect(other.get_by_role("button", name="changed only")).to_have_attribute("aria-pressed", "true")
    assert lit_text(other, "lit-selected") == "np.tanh(a)"
    assert abs(other.locator("#source-pane").bounding_box()["width"] - width) < 2
    expect(other.locator("#shared-bar")).to_contain_text("Tanh & <i>twice</i>")
    expect(other.locator("#shared-bar")).to_contain_text("as its author's compile answered")
    assert "Tanh" in other.title()
    assert compiles == []  # what was kept is shown
    assert other.url == link  # the address is still the one that was opened


@pytest.mark.nightly
def test_the_widths_of_a_link_do_not_replace_the_readers_own(mine, new_page):
    mine.locator("#split-source").focus()
    mine.keyboard.press("Shift+ArrowRight")
    link = create(mine)
    other = new_page()
    other.goto(link)
    compiled(other)
    shared = other.locator("#source-pane").bounding_box()["width"]
    other.goto(link.split("/z/")[0])
    compiled(other)
    assert other.locator("#source-pane").bounding_box()["width"] < shared - 40


@pytest.mark.nightly
def test_a_short_public_link_that_expires(mine, server):
    link = create(mine, kind="Short and public", expires="in a week")
    assert re.fullmatch(server + r"/z/[\w-]{8}", link)
    kept = facts(server, link)
    assert kept["visibility"] == "public" and "title" not in kept
    assert abs(kept["expires_ms"] - kept["created_ms"] - 7 * 86_400_000) < 2000


@pytest.mark.nightly
def test_looking_around_in_a_stored_link_stays_in_its_address(mine, new_page):
    link = create(mine)
    page = new_page()
    page.goto(link)
    compiled(page)
    open_stage(page, "cse")
    page.wait_for_url(re.compile(re.escape(link) + r"#stage=cse"))
    assert "code=" not in page.url
    other = new_page()
    other.goto(page.url)
    compiled(other)
    assert selected_stage(other) == "cse"


def test_an_edit_starts_a_fork_that_remembers_its_parent(mine, new_page, server):
    parent = create(mine, title="The first", kind="Short and public")
    page = new_page()
    page.goto(parent)
    compiled(page)
    write(page, KERNEL.replace("tanh", "exp"))
    expect(page.locator("#shared-bar")).to_contain_text("Fork of The first")
    compiled(page)
    page.wait_for_url(re.compile(r"/#.*from=" + parent.split("/")[-1]))
    # the address alone carries it on
    again = new_page()
    again.goto(page.url)
    compiled(again)
    child = create(again, title="The second")
    kept = facts(server, child)
    assert [a["id"] for a in kept["ancestry"]] == [parent.split("/")[-1]]
    third = new_page()
    third.goto(child)
    compiled(third)
    expect(third.locator("#shared-bar")).to_contain_text("fork of The first")
    third.get_by_role("link", name="The first").click()
    expect(third.locator("#shared-bar .shared-title")).to_have_text("The first")
    # and back from a fork to what it came from
    page.get_by_role("button", name="Back to the original").click()
    compiled(page)
    assert "tanh" in source_of(page) and page.url == parent


@pytest.mark.nightly
def test_frozen_stages_stay_and_can_be_compiled_anew(mine, new_page, server):
    link = create(mine)
    kept = facts(server, link)
    kept["is_current"] = False
    kept["pipeline"] = "an older one"
    stage = next(s for s in kept["result"]["kernels"][0]["stages"] if s["name"] == "canonicalize")
    stage["text"] = "// as it was printed then\n" + stage["text"]
    page = new_page()
    page.route("**/api/v1/snippets/*", lambda r: r.fulfill(json=kept))
    page.goto(link)
    compiled(page)
    open_stage(page, "canonicalize")
    assert ir_lines(page)[0] == "// as it was printed then"
    expect(page.locator("#shared-bar")).to_contain_text("The pipeline has changed since")
    page.get_by_role("button", name="Recompile").click()
    expect(page.locator("#shared-bar")).to_contain_text("compiled just now, with today's pipeline")
    compiled(page)
    expect(page.locator("#ir-viewer .cm-line").first).not_to_have_text("// as it was printed then")
    page.get_by_role("button", name="Show the stored stages").click()
    expect(page.locator("#shared-bar")).to_contain_text("The pipeline has changed since")
    compiled(page)
    open_stage(page, "canonicalize")
    expect(page.locator("#ir-viewer .cm-line").first).to_have_text("// as it was printed then")


def test_the_diff_of_a_stored_link_is_that_of_its_frozen_stages(mine, new_page):
    link = create(mine)
    page = new_page()
    page.goto(link)
    compiled(page)
    open_stage(page, "one-shot-bufferize")
    with page.expect_response(re.compile("/diff[?]")) as answer:
        page.keyboard.press("d")
    assert f"/snippets/{link.split('/')[-1]}/diff?" in answer.value.url and answer.value.status == 200
    expect(page.locator(".diff-where")).to_have_text(re.compile(r"1 / \d+"))


def test_a_link_of_mine_is_listed_and_deleted_here_only(mine, new_page, server, watch):
    watch.expect("404")
    link = create(mine, title="Mine to delete")
    other = new_page()
    other.goto(server)
    compiled(other)
    open_dialog(other)
    expect(other.locator(".my-links-box")).to_be_hidden()
    open_dialog(mine)
    mine.locator(".my-links-box summary").click()
    mine.get_by_role("button", name="Delete Mine to delete").click()
    assert requests.get(link).status_code == 200  # asked once more first
    mine.get_by_text("Delete for everyone?").click()
    expect(mine.locator("#live")).to_contain_text("Deleted")
    expect(mine.locator(".my-links-box")).to_be_hidden()
    assert requests.get(link).status_code == 404
    assert json.loads(mine.evaluate("() => localStorage.getItem('nkx.links')")) == []
    gone = new_page()
    gone.goto(link)
    expect(gone.get_by_role("heading", name="This link leads nowhere.")).to_be_visible()


def test_the_largest_example_is_stored_and_deleted_by_its_owner(page, new_page, watch):
    watch.expect("404")
    write(page, (ROOT / "explorer/examples/12_decoder_layer.py").read_text())
    expect(page.locator("#signature")).to_contain_text("decoder_layer")
    compiled(page)
    link = create(page, title="The largest")
    other = new_page()
    other.goto(link)
    compiled(other)
    expect(other.locator("#signature")).to_contain_text("decoder_layer")
    delete_links(page.context, link.split("/z/")[0])
    assert requests.get(link).status_code == 404


@pytest.mark.parametrize("path", few(["/z/AAAAAAAAAAAAAAAAAAAAAA", "/z/x", "/e/AAAAAAAAAAAAAAAAAAAAAA", "/z/%3Cscript%3E"], 2))
def test_a_link_that_leads_nowhere_says_so(new_page, server, watch, path):
    watch.expect("404")
    page = new_page()
    page.goto(server + path)
    expect(page.get_by_role("heading", name="This link leads nowhere.")).to_be_visible()
    expect(page.locator("#live")).to_contain_text("deleted, has expired")
    assert page.locator("#panes").is_hidden()
    if path.startswith("/z/"):
        page.get_by_role("link", name="Start with an example").click()
        compiled(page)


def test_a_kernel_too_large_for_its_link_is_stored_instead(page):
    noise = "".join(f"# {(i * 7919 * 104729) % 1000003:x}{(i * 611953) % 999983:x}\n" for i in range(400))
    write(page, KERNEL + noise)
    expect(page.locator("#signature")).to_contain_text("mine")
    compiled(page)
    page.locator("#stages").focus()
    page.keyboard.press("Control+s")  # would copy; explains instead
    expect(page.locator("#share-dialog .note.long")).to_contain_text("too large for a link that holds everything")
    expect(page.get_by_label("Title")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".share-done")).to_be_visible()
    assert len(page.get_by_role("textbox", name="Stored link", exact=True).input_value()) < 60


def test_a_failure_to_store_says_why_and_keeps_the_dialog(mine, watch):
    watch.expect("507")
    mine.route("**/api/v1/snippets", lambda r: r.fulfill(status=507, json={"error": {"code": "full", "message": "The store has no space left. Nothing was stored."}}))
    open_dialog(mine)
    mine.get_by_role("button", name="Create link").click()
    expect(mine.locator(".share-failed")).to_have_text("It was not stored: The store has no space left. Nothing was stored.")
    mine.unroute("**/api/v1/snippets")
    mine.get_by_role("button", name="Create link").click()
    expect(mine.locator(".share-done")).to_be_visible()


def test_the_embed_form_is_read_only_and_leads_to_the_whole(mine, new_page, server):
    open_stage(mine, "hlo-to-linalg")
    link = create(mine, title="Framed")
    page = new_page(800, 460)
    page.goto(link.replace("/z/", "/e/"))
    expect(page.locator("#embed-bar")).to_contain_text("Framed")
    expect(page.locator("#embed-bar")).to_contain_text("trn2")
    for hidden in ("#top", "#bottom", "#stages-pane", "#shared-bar", "#switcher"):
        expect(page.locator(hidden)).to_be_hidden()
    assert source_of(page).rstrip() == KERNEL.rstrip()
    expect(page.get_by_label("Stage", exact=True)).to_have_value("hlo-to-linalg")
    page.get_by_role("button", name="Click to explore").click()
    content = page.locator("#source-editor .cm-content")
    assert content.get_attribute("contenteditable") == "false" and content.get_attribute("aria-readonly") == "true"
    content.click(position={"x": 40, "y": 30})
    page.keyboard.type("zzz")
    assert "zzz" not in source_of(page)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="Next stage (j)").click()
    expect(page.get_by_label("Stage", exact=True)).to_have_value("canonicalize")
    whole = page.get_by_role("link", name="Open in nkx")
    assert whole.get_attribute("rel") == "noopener" and whole.get_attribute("target") == "_blank"
    full = new_page()
    full.goto(server + whole.get_attribute("href"))
    compiled(full)
    assert selected_stage(full) == "canonicalize" and source_of(full).rstrip() == KERNEL.rstrip()


@pytest.fixture
def other_site():
    """Another origin, with a page that frames the address given to it."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            framed = html.escape(urllib.parse.unquote(self.path.partition("?")[2]))
            self.wfile.write(f"""<!doctype html><title>slides</title><link rel="icon" href="data:,">
                <script>window.said = []; addEventListener('message', (e) => said.push(e.data))</script>
                <input id="i" autofocus><iframe id="f" src="{framed}" width="780" height="380"></iframe>""".encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield lambda framed: f"http://127.0.0.1:{server.server_port}/?{urllib.parse.quote(framed)}"
    server.shutdown()
    server.server_close()


def test_only_the_embed_form_may_be_framed_and_it_takes_no_focus(mine, new_page, watch, other_site):
    watch.expect("frame-ancestors")
    link = create(mine)
    page = new_page(1000, 700)
    page.goto(other_site(link.replace("/z/", "/e/")))
    frame = page.frame_locator("#f")
    expect(frame.locator("#embed-bar")).to_contain_text("Kernel")
    expect(frame.locator("#source-editor .cm-line").first).to_have_text("import numpy as np")
    page.wait_for_function("() => said.some((m) => m.type === 'nkx-height' && m.height > 215 && m.height < 600)")
    expect(page.locator("#i")).to_be_focused()
    with page.expect_console_message(lambda m: "frame-ancestors" in m.text):
        page.goto(other_site(link))
    expect(page.frame_locator("#f").locator("#source-editor")).to_have_count(0)


def test_an_embed_is_inert_until_a_click(mine, new_page, other_site):
    open_stage(mine, "hlo-to-linalg")
    link = create(mine)
    page = new_page(1000, 700)
    asked = []
    page.on("request", lambda r: asked.append((r.method, r.url)))
    page.goto(other_site(link.replace("/z/", "/e/")))
    frame = page.frame_locator("#f")
    picker, cover = frame.get_by_label("Stage", exact=True), frame.get_by_role("button", name="Click to explore")
    expect(picker).to_have_value("hlo-to-linalg")
    expect(cover).to_be_visible()
    # the wheel over the frame moves the page around it
    page.evaluate("() => { document.body.style.height = '3000px'; }")
    page.locator("#f").hover()
    page.mouse.wheel(0, 120)
    page.wait_for_function("() => scrollY > 0")
    page.evaluate("() => scrollTo(0, 0)")
    # so do its keys: the frame has no use for them even if it has the focus
    frame.locator("body").evaluate("(b) => b.ownerDocument.defaultView.focus()")
    page.keyboard.press("j")
    expect(picker).to_have_value("hlo-to-linalg")
    assert frame.locator("body").evaluate("() => document.querySelectorAll('.lit, .cm-tooltip').length") == 0
    assert not [a for a in asked if a[0] != "GET" or "/compile" in a[1]]
    cover.click()
    expect(cover).to_have_count(0)
    page.keyboard.press("j")
    expect(picker).to_have_value("canonicalize")
    assert not [a for a in asked if "/compile" in a[1]]
