"""What the tests of sessions say of a page that is in one: joined, typed into, looked at."""
import re

from playwright.sync_api import expect

from support.page import compiled, write
from support.wait import wait_until

KERNEL = """import numpy as np
from nkigen import trace


@trace(input_specs=[((8, 4), "f32")])
def mine(a):
    b = np.tanh(a)
    return b * 2.0
"""


def begin(page, url, name="Ann", kernel=KERNEL):
    """Opens a kernel and begins a session with it; returns the session's address."""
    page.goto(url)
    compiled(page)
    if kernel:
        write(page, kernel)
        compiled(page)
    page.locator("#share").click()
    dialog = page.locator("#share-dialog")
    dialog.get_by_label("Your name").fill(name)
    dialog.get_by_role("button", name="Begin a session").click()
    expect(page.locator("#session-bar")).to_contain_text("connected")
    expect(dialog).to_be_hidden()
    expect(page).to_have_url(re.compile(r"/s/[\w-]{22}$"))
    return page.url


def join(page, address, name="Bob"):
    page.goto(address)
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Join").click()
    expect(page.locator("#session-bar")).to_contain_text("connected")
    compiled(page)


def bar(page):
    return page.locator("#session-bar")


def do(page, label):
    bar(page).get_by_role("button", name=label, exact=True).click()


def has(page, text):
    expect(page.locator("#source-editor .cm-content")).to_contain_text(text)


def type_at_end_of(page, line, text):
    """Types at the end of a line, counted from 1."""
    page.evaluate("""(n) => {
      const view = document.querySelector('#source-editor .cm-content').cmTile?.view ?? document.querySelector('#source-editor .cm-content').cmView.view;
      view.dispatch({selection: {anchor: view.state.doc.line(n).to}});
      view.focus();
    }""", line)
    page.keyboard.type(text)


def text_of(page):
    return page.evaluate("""() => {
      const c = document.querySelector('#source-editor .cm-content');
      return (c.cmTile?.view ?? c.cmView.view).state.doc.toString();
    }""")


def agree(*pages):
    wait_until(lambda: len({text_of(p) for p in pages}) == 1, "one text on all pages", 30)
    return text_of(pages[0])


def shown(page):
    """The title of the stage that is shown."""
    return page.locator("#ir-title").inner_text()
