"""The ten most important journeys in Debian's Firefox: to open, write, click, step, follow, compare, run, share, save, and do all
by keyboard."""
import re

import pytest
import requests

from support.compiler import pipeline
from support.firefox import Firefox
from support.own_kernel import SOURCE
from support.page import KERNEL, SPOT
from browser.test_follow import IN_SIGHT

RESULT = "(name) => { const s = document.querySelector('#status'); return s.getAttribute('aria-busy') === 'false' && /^✓ \\d+ stages/.test(s.textContent) && document.querySelector('#signature').textContent.startsWith(name ?? '') }"
TITLE = "() => document.querySelector('#ir-title').textContent"


@pytest.fixture(scope="module")
def firefox():
    with Firefox() as fox:
        yield fox


@pytest.fixture
def fox(firefox, server):
    """Firefox with the first example, compiled; nothing is kept from another test."""
    firefox.begin()
    firefox.open(server)
    firefox.wait(RESULT)
    yield firefox
    assert firefox.complaints() == []


def write(fox, source, name):
    fox.js("() => document.querySelector('#source-editor .cm-content').focus()")
    fox.press("Control+a")
    fox.js("(text) => { document.execCommand('insertText', false, text); }", source)
    fox.wait(RESULT, name)


def click_source(fox, text, offset):
    fox.click_at(*fox.js(f"(text, offset) => ({SPOT})([text, offset])", text, offset))
    fox.wait("() => document.querySelector('#source-editor .lit-selected') !== null")


def leave(fox):
    fox.js("() => document.querySelector('#stages').focus()")


def test_it_opens_on_an_example_that_is_compiled(fox):
    assert fox.js("() => document.querySelectorAll('#stages .stage').length") == len(pipeline())
    assert fox.js("() => document.querySelectorAll('#ir-viewer .cm-line').length") > 10
    assert fox.js("() => document.documentElement.scrollWidth <= innerWidth")


def test_typing_compiles(fox):
    write(fox, KERNEL, "mine")
    fox.press("Control+End")
    fox.type("# one more line")
    fox.wait("() => document.querySelector('#source-editor').textContent.includes('# one more line')")
    fox.wait(RESULT, "mine")
    # a mistake is underlined, and its correction takes that away
    fox.type("\nx = nowhere")
    fox.wait("() => document.querySelector('#problems .message') !== null")
    fox.press("Shift+Home", "Backspace")
    fox.wait(RESULT, "mine")
    fox.wait("() => document.querySelector('#problems .message') === null")


def test_a_click_on_an_expression_shows_the_instruction(fox):
    write(fox, SOURCE, "block")
    leave(fox)
    fox.press("End")
    click_source(fox, "g @ w2", 2)
    assert fox.wait(IN_SIGHT)
    assert " @ " in fox.js("() => document.querySelector('#ir-viewer .lit-best').textContent")


@pytest.mark.nightly
def test_the_stages_are_stepped_through_and_the_best_partner_stays_in_sight(fox):
    write(fox, SOURCE, "block")
    leave(fox)
    fox.press("End")
    click_source(fox, "g @ w2", 2)
    leave(fox)
    for _ in range(12):
        before = fox.js(TITLE)
        fox.press("k")
        fox.wait("(before) => document.querySelector('#ir-title').textContent !== before", before)
        assert fox.wait(IN_SIGHT), fox.js(TITLE)


@pytest.mark.nightly
def test_a_chip_leads_to_its_stage(fox):
    write(fox, SOURCE, "block")
    click_source(fox, "g @ w2", 2)
    number = re.match(r"\d+", fox.js("() => document.querySelectorAll('#history .chip .no')[1].textContent"))[0]
    fox.click("#history .chip:nth-of-type(2)")
    fox.wait("(n) => document.querySelector('#ir-title').textContent.startsWith(n)", number)
    assert fox.wait(IN_SIGHT)


@pytest.mark.nightly
def test_two_results_are_compared(fox):
    write(fox, KERNEL, "mine")
    leave(fox)
    fox.press("p")
    write(fox, KERNEL.replace("np.tanh", "np.exp"), "mine")
    leave(fox)
    fox.press("c")
    assert fox.wait("() => document.querySelector('#compare-verdict b')?.textContent.match(/of 46 stages differ/)?.[0]")
    fox.wait("() => document.querySelector('#compare-columns .diff-minus') !== null")


@pytest.mark.nightly
def test_the_run_is_drawn(fox):
    leave(fox)
    fox.press("R")
    fox.wait("() => / bound by /.test(document.querySelector('#run-verdict b')?.textContent ?? '')")
    # the picture has more colours than its ground
    assert fox.wait("""() => { const c = document.querySelector('#run-lanes canvas'); if (!c?.width) return 0;
        const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height); const seen = new Set();
        for (let i = 0; i < data.length; i += 4) seen.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
        return seen.size > 5; }""")


def test_a_link_is_stored_opened_and_deleted(fox, server):
    write(fox, KERNEL, "mine")
    fox.click("#share")
    fox.click("#share-dialog .dialog-end button[type=submit]")
    link = fox.wait("() => document.querySelector('.share-done ~ * input')?.value")
    assert re.fullmatch(re.escape(server) + r"/z/[\w-]{22}", link), link
    fox.open(link)
    fox.wait(RESULT, "mine")
    assert "np.tanh(a) * 2.0" in fox.js("() => document.querySelector('#source-editor .cm-content').textContent")
    fox.click("#share")
    fox.click(".my-links-box summary")
    fox.click('.my-links button[aria-label^="Delete"]')
    fox.click('.my-links button[aria-label^="Delete"]')
    fox.wait("() => document.querySelector('#live').textContent.includes('Deleted')")
    assert requests.get(link).status_code == 404


@pytest.mark.nightly
def test_a_stage_is_saved(fox):
    leave(fox)
    fox.press("Home")
    text = fox.wait("() => [...document.querySelectorAll('#ir-viewer .cm-line')].map((l) => l.textContent)[2]")
    fox.click("[aria-label^='Download this stage'], [title^='Download this stage']")
    done = fox.event("browsingContext.downloadEnd")
    assert done["status"] == "complete"
    with open(done["filepath"]) as f:
        assert text.strip() in f.read()


def test_the_theme_the_palette_and_the_panes_work_by_keyboard(fox):
    for theme in ("light", "dark"):
        fox.click("#theme")
        fox.wait("(theme) => document.documentElement.dataset.theme === theme", theme)
    leave(fox)
    fox.press("Control+k")
    fox.wait("() => document.activeElement.getAttribute('aria-label') === 'Find an action' || document.activeElement.closest('dialog.palette') !== null")
    fox.type("legalize-layout")
    fox.press("Enter")
    fox.wait("() => document.querySelector('#ir-title').textContent.includes('legalize-layout')")
    seen = []
    for _ in range(4):
        fox.press("F6")
        seen.append(fox.js("() => document.activeElement.id || document.activeElement.getAttribute('aria-label')"))
    assert len(set(seen)) >= 3, seen
