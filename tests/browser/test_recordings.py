"""Recordings: what somebody writes and looks at, kept by a stored link and played again."""
import pytest
from playwright.sync_api import expect

from support.axe import violations
from support.page import KERNEL, SCREENS, compiled, create, open_dialog, open_stage, source_of, write

EDITED = KERNEL.replace("np.tanh", "np.exp")


def bar(page):
    return page.get_by_role("region", name="Recording", exact=True)


@pytest.fixture
def recorded(page):
    """A page that has recorded an edit and a look at two stages."""
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("mine")
    compiled(page)
    open_stage(page, "trace")
    open_dialog(page)
    page.get_by_role("button", name="Start recording").click()
    expect(bar(page)).to_contain_text("Recording")
    open_stage(page, "hlo-to-linalg")
    page.locator("#source-editor .cm-line", has_text="np.tanh").click()
    write(page, EDITED)
    compiled(page)
    open_stage(page, "linalg-to-nisa")
    expect(bar(page).locator(".recording-time")).not_to_have_text("0:00")
    bar(page).get_by_role("button", name="Stop").click()
    expect(bar(page).get_by_role("button", name="Play")).to_be_visible()
    return page


def stage_of(page):
    return page.locator("#ir-title").inner_text().lstrip("0123456789")


def test_a_link_plays_what_was_recorded_and_the_viewer_leaves_where_they_like(recorded, new_page):
    page = recorded
    page.screenshot(path=SCREENS / "recording.png")
    assert violations(page, "recording") == []
    link = create(page, title="A walk")
    other = new_page()
    other.goto(link)
    compiled(other)
    assert source_of(other) == EDITED
    seek = bar(other).get_by_role("slider", name="Time in the recording")
    seek.focus()
    other.keyboard.press("Home")
    expect(other.locator("#ir-title")).to_contain_text("trace")
    assert source_of(other) == KERNEL
    bar(other).get_by_role("combobox", name="Speed").select_option("8")
    bar(other).get_by_role("button", name="Play").click()
    expect(other.locator("#ir-title")).to_contain_text("linalg-to-nisa", timeout=60_000)
    expect(bar(other).get_by_role("button", name="Play")).to_be_visible(timeout=60_000)
    assert source_of(other) == EDITED
    compiled(other)
    # a viewer who does something has left it there
    bar(other).get_by_role("combobox", name="Speed").select_option("0.5")
    bar(other).get_by_role("button", name="Play").click()
    expect(bar(other).get_by_role("button", name="Pause")).to_be_visible()
    write(other, KERNEL + "# mine now\n")
    expect(bar(other).get_by_role("button", name="Play")).to_be_visible()
    assert source_of(other).endswith("# mine now\n")
    bar(other).get_by_role("button", name="Leave the recording").click()
    expect(bar(other)).to_be_hidden()
    compiled(other)


@pytest.mark.parametrize("recording", ["%", "AAAA", "eJyrVkrOz0vJLMnMz1OyUqoFAEdrBzs"])
def test_a_damaged_recording_is_left_out_with_a_word(new_page, server, stored, recording):
    made = stored.make(KERNEL, view={"version": 1, "recording": recording})
    page = new_page()
    page.goto(server + made["url"])
    compiled(page)
    expect(page.locator("#live")).to_contain_text("left out")
    expect(page.locator("#recording-bar:visible")).to_have_count(0)
