"""Small windows: nothing lies outside its pane, and a tap shows its partner."""
import pytest
from playwright.sync_api import expect

from support.marks import few
from support.own_kernel import SOURCE
from support.page import compiled, open_stage, source_spot, write

SIZES = {"desktop": (1440, 900, 1), "laptop": (1280, 720, 1), "laptop at 150 %": (853, 480, 1.5), "tablet": (768, 1024, 1), "phone": (390, 844, 2)}

# Visible buttons and fields of a pane that lie outside it, or outside the window.
OUTSIDE = """() => [...document.querySelectorAll('#top button, #top select, .pane button, .pane input, .pane select')].filter((e) => {
    if (!e.checkVisibility({ visibilityProperty: true }) || e.closest('.chips, .cm-scroller, .cm-tooltip, #history')) return false;
    const box = e.getBoundingClientRect(), pane = (e.closest('.pane') ?? document.body).getBoundingClientRect();
    return box.width > 0 && (box.left < pane.left - 1 || box.right > pane.right + 1 || box.right > innerWidth + 1);
  }).map((e) => e.id || e.getAttribute('aria-label') || e.textContent)"""


def own(new_page, server, size):
    width, height, ratio = SIZES[size]
    page = new_page(width, height, device_scale_factor=ratio)
    page.goto(server)
    compiled(page)
    write(page, SOURCE)
    page.wait_for_function("() => document.querySelector('#signature').textContent.includes('block') && !document.body.classList.contains('compiling')")
    compiled(page)
    return page


@pytest.mark.parametrize("size", few(SIZES, 3))
def test_no_tool_lies_outside_its_pane(new_page, server, size):
    page = own(new_page, server, size)
    page.mouse.click(*source_spot(page, "g @ w2", 2))
    assert page.evaluate(OUTSIDE) == []
    if size == "phone":
        for pane in ("Stages", "IR"):
            page.locator("#switcher button", has_text=pane).click()
            assert page.evaluate(OUTSIDE) == []
    else:
        page.keyboard.press("Escape")
        page.locator("#stages").focus()
        page.keyboard.press("d")
        expect(page.locator("#diff-bar")).to_be_visible()
        assert page.evaluate(OUTSIDE) == []
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_a_low_window_keeps_lines_of_the_stage(new_page, server):
    page = own(new_page, server, "laptop at 150 %")
    page.mouse.click(*source_spot(page, "g @ w2", 2))
    expect(page.locator("#history .part").first).to_be_visible()
    assert page.locator("#ir-viewer").bounding_box()["height"] > 9 * 19
    expect(page.locator("#ir-viewer .lit-best")).to_be_in_viewport()


def test_a_tablet_has_the_source_above_the_stage(new_page, server):
    page = own(new_page, server, "tablet")
    source, stages, ir = (page.locator(f"#{p}-pane").bounding_box() for p in ("source", "stages", "ir"))
    assert source["width"] > 760 and source["y"] + source["height"] <= ir["y"] + 2
    assert abs(stages["y"] - ir["y"]) < 2 and stages["x"] + stages["width"] <= ir["x"] + 2
    page.mouse.click(*source_spot(page, "g @ w2", 2))
    expect(page.locator("#ir-viewer .lit-best")).to_be_in_viewport()


@pytest.mark.parametrize("width", [390, 320])
def test_on_a_phone_a_tap_shows_the_partner_and_leads_to_it(new_page, server, width):
    page = new_page(width, 844 if width == 390 else 640, has_touch=True)
    page.goto(server)
    compiled(page)
    write(page, SOURCE)
    page.wait_for_function("() => document.querySelector('#signature').textContent.includes('block') && !document.body.classList.contains('compiling')")
    assert page.locator("#example").bounding_box()["width"] >= 110
    # long lines wrap
    assert page.locator("#source-editor .cm-scroller").evaluate("(s) => s.scrollWidth <= s.clientWidth + 1")
    page.touchscreen.tap(*source_spot(page, "g @ w2", 2))
    partner = page.locator("#partner")
    expect(partner).to_contain_text("%psum")
    assert partner.bounding_box()["height"] >= 44
    partner.click()
    expect(page.locator("#ir-viewer .lit-best")).to_be_in_viewport()
    expect(page.locator("#ir-pane")).to_be_visible()


@pytest.mark.nightly
def test_a_phones_share_sheet_is_offered(new_page, server):
    page = new_page(390, 844)
    page.add_init_script("navigator.share = (what) => { window.shared = what.url; return Promise.resolve(); }")
    page.goto(server)
    compiled(page)
    page.get_by_role("button", name="Share").click()
    page.get_by_role("button", name="Send: Link").click()
    assert page.evaluate("() => window.shared").startswith(server)


def test_the_first_line_says_what_the_page_is_for_until_it_is_used(page, new_page):
    line = page.locator("#first-line")
    expect(line).to_contain_text("NumPy in, Trainium instructions out.")
    write(page, SOURCE)
    expect(line).to_be_hidden()
    page.reload()
    compiled(page)
    expect(line).to_be_hidden()


def test_the_title_names_the_kernel(page):
    expect(page).to_have_title("matmul_bias_relu · nkx")


@pytest.mark.nightly
def test_unchanged_neighbours_are_one_row_when_only_changes_are_listed(page):
    total = page.locator("#stages .stage").count()
    page.get_by_role("button", name="changed only").click()
    gaps = page.locator("#stages .gap")
    expect(gaps.first).to_contain_text("unchanged")
    hidden = sum(int(t.split()[0]) for t in gaps.all_text_contents())
    assert page.locator("#stages .stage").count() + hidden == total
    gaps.first.get_by_role("button").click()
    expect(page.locator("#stages .stage")).to_have_count(total)


@pytest.mark.nightly
def test_a_name_is_not_cut_by_its_numbers(page):
    open_stage(page, "trace")
    cut = page.locator("#stages .stage").evaluate_all("(rows) => rows.filter((r) => { const n = r.querySelector('.name'); return n.scrollWidth > n.clientWidth && n.clientWidth < 90; }).map((r) => r.dataset.key)")
    assert cut == []
