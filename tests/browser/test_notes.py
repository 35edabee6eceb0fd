"""Notes on lines of the source and of stages: written, answered, kept by links, shown in exported pages."""
import base64
import json
import zlib

import pytest
import requests
from playwright.sync_api import expect

from support.axe import violations
from support.page import KERNEL, SCREENS, compiled, create, ir_lines, open_stage, write
from support.wait import wait_until


def pane(page):
    return page.get_by_role("region", name="Notes", exact=True)


def in_address(page):
    """The notes that the address holds."""
    packed = dict(part.split("=", 1) for part in page.evaluate("location.hash").removeprefix("#").split("&") if "=" in part).get("notes")
    return json.loads(zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))) if packed else []


def address_has(page, sayings):
    wait_until(lambda: [len(t["sayings"]) for t in in_address(page)] == sayings, "the notes in the address")


def note(page, text):
    pane(page).get_by_role("textbox", name="New note").fill(text)
    pane(page).get_by_role("button", name="Add note").click()


@pytest.fixture
def mine(page):
    """A kernel of ours with a note of Ada on its tanh and one on a line of linalg."""
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("mine")
    compiled(page)
    page.locator("#source-editor .cm-line", has_text="np.tanh").click()
    page.get_by_role("button", name="Notes on lines").click()
    pane(page).get_by_role("textbox", name="Name").fill("Ada")
    expect(pane(page)).to_contain_text("On line 7 of kernel.py")
    note(page, "Why not exp? See stage:hlo-to-linalg@2 and line:1. <img src=x onerror=alert(1)>")
    open_stage(page, "hlo-to-linalg")
    row = next(i for i, text in enumerate(ir_lines(page)) if "tanh" in text)
    page.locator("#ir-viewer .cm-line").nth(row).click()
    note(page, "One operation of linalg.")
    expect(pane(page).get_by_role("list", name="Threads").locator(".notes-thread")).to_have_count(2)
    return page


def test_notes_stand_at_their_lines_and_lead_to_others(mine):
    page = mine
    expect(page.locator("#source-editor .noted")).to_have_text("1 note")
    expect(page.locator("#ir-viewer .noted")).to_have_text("1 note")
    threads = pane(page).locator(".notes-thread")
    expect(threads.nth(0)).to_contain_text("line 7 of kernel.py")
    expect(threads.nth(0)).to_contain_text("<img src=x")
    assert page.locator("#notes-pane img").count() == 0
    threads.nth(0).get_by_role("textbox", name="Answer").fill("Because of its table.")
    threads.nth(0).get_by_role("textbox", name="Answer").press("Enter")
    expect(page.locator("#source-editor .noted")).to_have_text("2 notes")
    expect(threads.nth(0).get_by_role("textbox", name="Answer")).to_have_value("")
    page.screenshot(path=SCREENS / "notes.png")
    assert violations(page, "notes") == []
    open_stage(page, "trace")
    expect(page.locator("#ir-viewer .noted")).to_have_count(0)
    threads.nth(0).get_by_role("button", name="stage:hlo-to-linalg@2").click()
    expect(page.locator("#ir-title")).to_contain_text("hlo-to-linalg")
    expect(page.locator("#ir-viewer .line-marked")).to_have_count(1)
    page.locator("#source-editor .noted").click()
    expect(threads.nth(0).get_by_role("button", name="line 7 of kernel.py")).to_be_focused()
    threads.nth(1).get_by_role("button", name="Delete the note of Ada").click()
    expect(page.locator("#ir-viewer .noted")).to_have_count(0)
    expect(threads).to_have_count(1)


def test_notes_follow_their_line_and_say_when_it_is_gone(mine):
    page = mine
    write(page, "# one line more\n" + KERNEL)
    compiled(page)
    expect(pane(page)).to_contain_text("line 8 of kernel.py")
    write(page, KERNEL.replace("np.tanh(a) * 2.0", "np.exp(a)"))
    compiled(page)
    expect(pane(page)).to_contain_text("a line that is gone of kernel.py")
    expect(pane(page).locator(".gone").first).to_have_text("return np.tanh(a) * 2.0")


def test_links_keep_notes_their_owner_adds_to_them_and_forks_begin_with_them(mine, new_page, server):
    page = mine
    address_has(page, [1, 1])
    other = new_page()
    other.goto(page.url)
    expect(pane(other).locator(".notes-thread")).to_have_count(2)
    expect(other.locator("#source-editor .noted")).to_have_text("1 note")
    link = create(page, title="With notes")
    page.goto(link)
    compiled(page)
    expect(pane(page)).to_contain_text("They are kept in this link.")
    threads = pane(page).locator(".notes-thread")
    threads.nth(0).get_by_role("textbox", name="Answer").fill("Kept, too")
    threads.nth(0).get_by_role("textbox", name="Answer").press("Enter")
    address_has(page, [2, 1])  # not stored: the address has it
    pane(page).get_by_role("button", name="Keep in this link").click()
    expect(page.locator("#live")).to_contain_text("The link has these notes now")
    expect(pane(page)).to_contain_text("They are kept in this link.")
    other.goto(link)
    expect(pane(other)).to_contain_text("Kept, too")
    assert pane(other).get_by_role("button", name="Keep in this link").count() == 0
    write(other, KERNEL.replace("np.tanh", "np.exp"))
    expect(other.locator("#shared-bar")).to_contain_text("Fork of")
    expect(pane(other).locator(".notes-thread")).to_have_count(2)
    stored = requests.get(f"{server}/api/v1/snippets/{link.split('/')[-1]}").json()
    assert stored["revision"] == 1
    kept = stored["view"]["notes"]
    assert [[s["text"] for s in t["sayings"]][-1] for t in kept] == ["Kept, too", "One operation of linalg."]
    exported = new_page()
    exported.set_content(requests.get(f"{link}/page.html").text)
    expect(exported.locator("#source .said")).to_have_text(["Ada: Why not exp? See stage:hlo-to-linalg@2 and line:1. <img src=x onerror=alert(1)>", "Ada: Kept, too"])
    exported.get_by_role("button", name="hlo-to-linalg").click()
    expect(exported.locator("#text .said")).to_have_text("Ada: One operation of linalg.")


@pytest.mark.parametrize("notes", ["text", [{"stage": None}], [{"stage": None, "kernel": "", "file": "kernel.py", "first": 0, "last": 1, "text": "", "sayings": [{"by": "", "text": "x", "at": 1}]}]])
def test_damaged_notes_of_a_link_are_left_out_with_a_word(new_page, server, stored, notes):
    made = stored.make(KERNEL, view={"version": 1, "notes": notes})
    page = new_page()
    page.goto(server + made["url"])
    compiled(page)
    expect(page.locator("#live")).to_contain_text("comes from another version and was left out")
    assert page.locator("#notes-pane").count() == 0
