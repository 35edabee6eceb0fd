"""Light and dark, both palettes, narrow and wide: readable everywhere.  Leaves screenshots in BUILD/test/screens."""
import pytest
from playwright.sync_api import expect

from support.axe import CONTRAST
from support.marks import few
from support.page import SCREENS, at_rest, compiled, open_stage


def prepare(page, server, theme: str, palette: str) -> None:
    page.goto(server)
    page.evaluate(
        "(s) => localStorage.setItem('nkx.settings', JSON.stringify(s))", {"theme": theme, "palette": palette}
    )
    page.reload()
    compiled(page)


@pytest.mark.parametrize("palette", few(["soft", "bluegold"], 1))
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_has_enough_contrast(new_page, server, theme, palette):
    page = new_page(scheme="dark" if theme == "light" else "light")  # the choice outweighs the system
    prepare(page, server, theme, palette)
    for example in ("softmax", "attention"):
        page.select_option("#example", example)
        compiled(page)
        for stage in ("trace", "hlo-to-linalg", "canonicalize:2"):
            open_stage(page, stage)
            page.locator("#ir-viewer .cm-line.band").first.click(position={"x": 30, "y": 6})
            page.locator("#ir-viewer .cm-line.band").last.hover(position={"x": 30, "y": 6})
            at_rest(page)
            found = page.evaluate(CONTRAST)
            assert found["seen"] > 100
            assert found["bad"] == [], f"{theme} {palette} {example} {stage}"
    assert page.evaluate("() => getComputedStyle(document.documentElement).colorScheme") == theme


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_system_theme_is_followed(new_page, server, scheme):
    page = new_page(scheme=scheme)
    page.goto(server)
    compiled(page)
    background = page.evaluate("() => getComputedStyle(document.querySelector('#top')).backgroundColor")
    level = sum(int(v) for v in background.strip("rgb()").split(",")) / 3
    assert (level > 200) == (scheme == "light")


def test_a_change_of_the_systems_theme_is_followed_unless_the_user_chose_one(page):
    html = page.locator("html")
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        expect(html).to_have_attribute("data-theme", scheme)
    page.locator("#theme").click()
    expect(html).to_have_attribute("data-theme", "light")
    page.emulate_media(color_scheme="dark")
    expect(html).to_have_attribute("data-theme", "light")


@pytest.mark.nightly
def test_the_theme_button_goes_round(page):
    button = page.locator("#theme")
    expect(button).to_have_attribute("aria-label", "Theme: system")
    for theme in ("light", "dark"):
        button.click()
        expect(button).to_have_attribute("aria-label", f"Theme: {theme}")
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width,height", few([(390, 780), (1680, 1020), (1024, 768)], 1))
def test_nothing_overflows_the_window(new_page, server, scheme, width, height):
    page = new_page(width, height, scheme)
    page.goto(server)
    compiled(page)
    if width < 800:
        page.locator("#switcher button").nth(1).click()
        open_stage(page, "hlo-to-linalg")
        expect(page.locator("#ir-pane")).to_be_visible()  # choosing a stage shows it
    else:
        open_stage(page, "hlo-to-linalg")
    page.locator("#ir-viewer .cm-line.band").nth(3).click(position={"x": 30, "y": 6})
    at_rest(page)
    SCREENS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENS / f"{width}-{scheme}.png")
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight")
    header = page.locator("#top > *:visible")
    for item in header.all():
        box = item.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width + 1


def test_a_narrow_window_shows_one_pane_at_a_time(new_page, server):
    page = new_page(390, 780)
    page.goto(server)
    compiled(page)
    for i, pane in enumerate(("source", "stages", "ir")):
        page.locator("#switcher button").nth(i).click()
        for other in ("source", "stages", "ir"):
            (expect(page.locator(f"#{other}-pane")).to_be_visible if other == pane else expect(page.locator(f"#{other}-pane")).to_be_hidden)()


@pytest.mark.nightly
def test_splitters_move_by_pointer_and_by_key(page):
    width = lambda: page.locator("#source-pane").bounding_box()["width"]  # noqa: E731
    before = width()
    bar = page.locator("#split-source")
    box = bar.bounding_box()
    page.mouse.move(box["x"] + 0.5, 400)
    page.mouse.down()
    page.mouse.move(box["x"] + 120, 400, steps=4)
    page.mouse.up()
    assert abs(width() - before - 120) < 5
    bar.focus()
    page.keyboard.press("ArrowLeft")
    assert width() < before + 110
    assert bar.get_attribute("role") == "separator"
    page.keyboard.press("Enter")
    assert abs(width() - before) < 2
