"""What the tests of the page say: opened, written to, read."""
import re

import requests
from playwright.sync_api import Page, expect

from support import source_map
from support.paths import BUILD

SCREENS = BUILD / "test/screens"
KERNEL = """import numpy as np
from nkigen import trace

# ä, 𝛼 and "quotes" & other + signs
@trace(input_specs=[((8, 4), "f32")])
def mine(a):
    return np.tanh(a) * 2.0
"""


def compiled(page: Page) -> None:
    """Waits for the result of what is in the page now: until it comes, the message of the one before may stay."""
    expect(page.locator("#status:not([aria-busy=true])")).to_have_text(re.compile(r"^✓ \d+ stages · [\d.]+ ms"), timeout=90_000)


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
    return source_map.expanded(answer.json())


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


# The middle of a character of the source, on the screen, once the layout has been at rest for some frames.
SPOT = """async ([needle, offset]) => {
  const find = () => {
    for (const line of document.querySelectorAll('#source-editor .cm-line')) {
      let at = line.textContent.indexOf(needle);
      if (at < 0) continue;
      at += offset;
      const walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
      while (walk.nextNode()) {
        const n = walk.currentNode;
        if (at < n.data.length) {
          const range = document.createRange();
          range.setStart(n, at); range.setEnd(n, at + 1);
          const r = range.getBoundingClientRect();
          return [r.left + r.width / 2, r.top + r.height / 2];
        }
        at -= n.data.length;
      }
    }
    throw new Error(needle + ' is not in the source');
  };
  let spot = find();
  for (let same = 0; same < 4; ) {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const next = find();
    same = next[0] === spot[0] && next[1] === spot[1] ? same + 1 : 0;
    spot = next;
  }
  return spot;
}"""


def source_spot(page: Page, needle: str, offset: int = 0) -> tuple[float, float]:
    x, y = page.evaluate(SPOT, [needle, offset])
    return x, y


def ir_lines(page: Page, cls: str = "") -> list[str]:
    return page.locator(f"#ir-viewer .cm-line{'.' + cls if cls else ''}").all_text_contents()


def open_stage(page: Page, name: str) -> None:
    page.locator(f'#stages .stage[data-key="{name}"]').click()
    expect(page.locator("#ir-title")).to_contain_text(name.split(":")[0])


def selected_stage(page: Page) -> str:
    return page.locator('#stages [aria-selected="true"]').get_attribute("data-key")


def at_rest(page: Page) -> None:
    """Waits until no transition runs."""
    page.wait_for_function("() => !document.getAnimations().some((a) => a instanceof CSSTransition && a.playState !== 'finished')")


def open_dialog(page):
    page.get_by_role("button", name="Share").click()
    expect(page.locator("#share-dialog")).to_be_visible()


def create(page, title=None, kind=None, expires=None) -> str:
    """Makes a stored link through the dialog; its address."""
    open_dialog(page)
    if title is not None:
        page.get_by_label("Title").fill(title)
    if kind:
        page.get_by_role("radio", name=re.compile(kind)).check()
    if expires:
        page.get_by_label("Expires").select_option(label=expires)
    page.get_by_role("button", name="Create link").click()
    expect(page.locator(".share-done")).to_be_visible()
    link = page.get_by_role("textbox", name="Stored link", exact=True).input_value()
    page.get_by_role("button", name="Close", exact=True).click()
    return link
