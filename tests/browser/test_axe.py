"""No violation that axe finds, in every view and state; text with contrast; nothing that the keyboard does not reach."""
import pytest
from playwright.sync_api import expect

from support.axe import looked_at
from support.marks import few
from support.own_kernel import SOURCE
from support.page import KERNEL, compiled, create, open_stage, source_spot, write
from browser.test_layouts import OUTSIDE


@pytest.mark.parametrize("scheme", few(["dark", "light"], 1))  # test_themes.py has the contrast of all themes
def test_axe_finds_nothing(new_page, server, watch, scheme):
    watch.expect("404")
    page = new_page(1500, 900, scheme)
    page.goto(server)
    compiled(page)
    look = lambda state: looked_at(page, scheme, state)
    bad = look("page")
    open_stage(page, "one-shot-bufferize")
    page.locator("#ir-viewer .cm-line.band").nth(3).click(position={"x": 30, "y": 6})
    bad += look("stage")
    page.keyboard.press("i")
    expect(page.locator(".cm-tooltip .card dd, .cm-tooltip .card p").first).not_to_have_text("…")
    bad += look("card")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Shift+F")
    page.get_by_role("combobox", name="Search all stages").fill("alloc")
    expect(page.locator("#search-hits mark").first).to_be_visible()
    page.keyboard.press("ArrowDown")
    bad += look("search")
    page.keyboard.press("Escape")
    open_stage(page, "engine-programs")
    page.locator("#ir-viewer .cm-line.folded").first.click()
    bad += look("compact form")
    page.keyboard.press("r")
    bad += look("full text")
    page.get_by_role("button", name="Download", exact=True).click()
    expect(page.get_by_role("menuitem").first).to_be_focused()
    bad += look("download menu")
    page.keyboard.press("Escape")
    open_stage(page, "one-shot-bufferize")
    page.keyboard.press("d")
    expect(page.locator(".diff-facts ins")).to_be_visible()
    for mode in ("split", "unified"):
        page.get_by_role("button", name=mode).click()
        bad += look(f"diff, {mode}")
    link = create(page, title="axe")
    page.get_by_role("button", name="Share").click()
    page.locator(".my-links-box summary").click()
    page.get_by_role("button", name="Create link").click()
    expect(page.locator(".share-done")).to_be_visible()
    bad += look("share dialog")
    page.goto(link)
    compiled(page)
    bad += look("stored link")
    page.set_viewport_size({"width": 800, "height": 480})
    page.goto(link.replace("/z/", "/e/"))
    expect(page.locator("#embed-bar")).to_contain_text("axe")
    bad += look("embed")
    page.goto(f"{server}/z/{'A' * 22}")
    expect(page.get_by_role("heading", name="This link leads nowhere.")).to_be_visible()
    bad += look("dead link")
    page.set_viewport_size({"width": 390, "height": 780})
    page.goto(link)
    expect(page.locator("#switcher")).to_be_visible()
    compiled(page)
    bad += look("phone")
    page.close()
    assert bad == [], "\n".join(bad)


@pytest.mark.parametrize("scheme", few(["dark", "light"], 1))  # test_themes.py has the contrast of all themes
def test_axe_and_the_contrast_walk_find_nothing_while_stale_failed_offline_or_checked(new_page, slow, watch, scheme):
    watch.expect("Failed to load resource|ERR_")
    page = new_page(1440, 900, scheme)
    page.goto(slow.url)
    compiled(page)
    bad = []

    def look(state):
        bad.extend(looked_at(page, scheme, state))

    look("first visit")
    page.get_by_role("button", name="Check").click()
    expect(page.locator("#status")).to_contain_text("all pass")
    look("checked")
    page.get_by_role("button", name="Check").click()
    write(page, SOURCE)
    expect(page.locator("#signature")).to_contain_text("block")
    page.wait_for_function("() => !document.body.classList.contains('compiling')")
    page.mouse.click(*source_spot(page, "g @ w2", 2))
    look("followed")
    page.locator("#ir-remarks-open").click()
    look("decisions")
    write(page, SOURCE.replace("np.exp", "np.expp"))
    expect(page.locator("#ir-message")).to_contain_text("last version")
    look("stale")
    page.locator('#stages .stage[data-key="trace"]').click()
    expect(page.locator("#ir-message")).to_contain_text("refused")
    look("failed")
    slow.cut = True
    write(page, SOURCE)
    expect(page.locator("#banner")).to_contain_text("Connection lost")
    look("offline")
    slow.cut = False
    page.close()
    assert bad == [], "\n".join(bad)


@pytest.mark.parametrize("scheme", few(["dark", "light"], 1))  # test_themes.py has the contrast of all themes
def test_axe_and_the_contrast_walk_find_nothing_with_hidden_panes_two_stages_and_while_presenting(new_page, server, scheme):
    page = new_page(1440, 900, scheme)
    page.goto(server)
    compiled(page)
    bad = []

    def look(state):
        bad.extend(looked_at(page, scheme, state))

    page.mouse.click(*source_spot(page, "np.matmul", 4))
    page.get_by_role("button", name="A second stage beside this one").click()
    expect(page.locator("#beside .lit-best")).to_be_visible()
    look("two stages")
    page.keyboard.press("f")
    expect(page.locator(".sheet .box").first).to_be_attached()
    look("loops")
    page.keyboard.press("t")
    look("loops as a table")
    page.keyboard.press("t")
    open_stage(page, "trace")
    expect(page.locator('#picture[data-drawn="trace"] .edge').first).to_be_attached()
    look("data flow")
    page.get_by_role("button", name="Close the picture").click()
    page.get_by_role("button", name="Hide the stage list").click()
    expect(page.get_by_role("button", name="Show the stages again")).to_be_visible()
    look("a hidden pane")
    page.keyboard.press("Shift+P")
    expect(page.locator("#share")).to_be_hidden()
    look("presenting")
    page.close()
    assert bad == [], "\n".join(bad)


# What has the focus: a name for it, and whether its focus can be seen and it lies in the window.
FOCUS = """() => { const e = document.activeElement; if (!e || e === document.body) return null;
  const b = e.getBoundingClientRect(), style = getComputedStyle(e);
  const wide = e.closest('.cm-editor, .pane, dialog') ?? e;
  return { name: e.id || e.getAttribute('aria-label') || e.textContent.trim().slice(0, 30) || e.tagName,
    isSeen: b.bottom > 0 && b.top < innerHeight && b.right > 0 && b.left < innerWidth,
    isMarked: e.matches(':focus-visible') && (style.outlineStyle !== 'none' || style.boxShadow !== 'none' || getComputedStyle(wide).outlineStyle !== 'none'
      || getComputedStyle(wide).boxShadow !== 'none' || style.caretColor !== 'auto' || e.matches('.cm-content')) }; }"""


def walk_by_keyboard(page, where) -> list[str]:
    """Tab through the whole page: everything that takes the focus has a name, is in the window and shows it."""
    bad, seen = [], []
    page.evaluate("() => document.activeElement?.blur()")
    for _ in range(120):
        page.keyboard.press("Escape" if page.evaluate("() => document.activeElement?.closest('.cm-editor') !== null") else "Shift")  # Escape frees Tab in an editor
        page.keyboard.press("Tab")
        focus = page.evaluate(FOCUS)
        if focus is None or (len(seen) > 10 and focus["name"] == seen[0]):
            break
        seen.append(focus["name"])
        if not focus["isSeen"] or not focus["isMarked"]:
            bad.append(f"{where}: the focus is lost on {focus}")
    else:
        bad.append(f"{where}: the walk does not end: {seen[-8:]}")
    if len(set(seen)) < 12:
        bad.append(f"{where}: only {seen} takes the focus")
    return bad


@pytest.mark.parametrize("scheme", few(["dark", "light"], 1))  # test_themes.py has the contrast of all themes
def test_axe_contrast_and_the_keyboard_find_nothing_while_simulated_or_compared(new_page, server, scheme):
    page = new_page(853, 480, scheme, device_scale_factor=1.5)
    page.goto(server)
    compiled(page)
    bad = []

    def look(state, tabs=True):
        bad.extend(looked_at(page, scheme, state))
        bad.extend(f"{state}: {b} lies outside its pane" for b in page.evaluate(OUTSIDE))
        if tabs:
            bad.extend(walk_by_keyboard(page, state))

    write(page, KERNEL)
    compiled(page)
    page.get_by_role("button", name="Pin", exact=True).click()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-verdict b")).to_contain_text("bound by")
    look("simulated")
    page.get_by_role("button", name="tables").click()
    expect(page.locator("#run-tables table").first).to_be_visible()
    look("simulated, as tables", tabs=False)
    write(page, KERNEL.replace("np.tanh", "np.exp"))
    compiled(page)
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.locator("#compare-verdict b")).to_contain_text("differ")
    look("compared")
    page.get_by_role("button", name="Read", exact=True).click()
    look("read")
    page.close()
    assert bad == [], "\n".join(bad)


@pytest.mark.parametrize("scheme", few(["dark", "light"], 1))  # test_themes.py has the contrast of all themes
def test_axe_and_the_contrast_walk_find_nothing_in_values_tiles_and_memories(new_page, server, scheme):
    page = new_page(1440, 900, scheme)
    page.goto(server)
    compiled(page)
    bad = []

    def look(state):
        bad.extend(looked_at(page, scheme, state))

    open_stage(page, "engine-programs")
    page.locator("#ir-viewer .cm-line", has_text="+= ").first.click(position={"x": 4, "y": 6})
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("v")
    expect(page.locator(".value-bars svg")).to_be_visible()
    look("values")
    page.locator(".inspect-body.values").focus()
    page.keyboard.press("t")
    expect(page.locator(".values .value-twin table")).to_be_visible()
    look("values as tables")
    page.locator("#inspect").get_by_role("button", name="tiles").click()
    expect(page.locator(".tile svg").first).to_be_visible()
    look("tiles")
    page.locator(".inspect-body.tiles").focus()
    page.keyboard.press("t")
    look("tiles as a table")
    page.set_viewport_size({"width": 390, "height": 780})
    look("tiles on a phone")
    page.locator("#inspect").get_by_role("button", name="values").click()
    look("values on a phone")
    page.set_viewport_size({"width": 1440, "height": 900})
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-verdict b")).to_contain_text("µs, bound by")
    look("memories over time")
    page.get_by_role("button", name="tables").click()
    look("tables of the run")
    page.close()
    assert bad == [], "\n".join(bad)
