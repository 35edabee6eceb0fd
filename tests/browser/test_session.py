"""Sessions: people together in one kernel, each in a browser of their own."""
import os
import re
import signal
import time

import pytest
from playwright.sync_api import expect

from support.axe import violations
from support.page import SCREENS, compiled
from support.server import Server
from support.session_page import agree, bar, begin, do, has, join, shown, text_of, type_at_end_of
from support.wait import wait_until


@pytest.fixture(scope="module")
def own_server():
    """Its sessions and the links that they become are not those of other tests."""
    with Server("--job-timeout-ms", "90000", "--job-cpu-s", "60") as s:
        s.wait_until(lambda: s.get("/readyz").status == 200, "a worker that is warm")
        yield s.url


@pytest.fixture
def pair(new_page, own_server):
    ann, bob = new_page(), new_page()
    join(bob, begin(ann, own_server))
    expect(bar(ann)).to_contain_text("1 of 1 follow you")
    return ann, bob


def test_two_people_edit_one_kernel(pair):
    ann, bob = pair
    has(bob, "return b * 2.0")
    type_at_end_of(ann, 7, "  # hers")
    type_at_end_of(bob, 8, "  # his")
    text = agree(ann, bob)
    assert "b = np.tanh(a)  # hers\n" in text and "return b * 2.0  # his\n" in text
    compiled(ann)
    compiled(bob)


def test_edits_of_the_same_place_at_the_same_time_are_both_kept(pair):
    ann, bob = pair
    for page, word in ((ann, "aaa"), (bob, "bbb")):
        type_at_end_of(page, 8, "")
    for a, b in zip("12345", "67890", strict=True):
        ann.keyboard.type(a)
        bob.keyboard.type(b)
    text = agree(ann, bob)
    last = text.splitlines()[7]
    assert sorted(last.removeprefix("    return b * 2.0")) == sorted("1234567890")


def test_undo_takes_back_ones_own_change_only(pair):
    ann, bob = pair
    type_at_end_of(ann, 7, "  # hers")
    has(bob, "# hers")
    type_at_end_of(bob, 8, "  # his")
    has(ann, "# his")
    bob.keyboard.press("Control+z")
    wait_until(lambda: "# his" not in text_of(ann), "the undone change")
    assert "# hers" in agree(ann, bob)
    bob.keyboard.press("Control+z")
    assert "# hers" in agree(ann, bob)


def test_the_target_is_that_of_all(pair):
    ann, bob = pair
    bob.locator("#target").select_option("trn1")
    expect(ann.locator("#target")).to_have_value("trn1")
    compiled(ann)


def test_names_are_text(new_page, own_server):
    ann, eve = new_page(), new_page()
    address = begin(ann, own_server)
    join(eve, address, "<img src=x onerror=alert(1)>")
    expect(bar(ann).locator(".chip-person")).to_have_count(2)
    expect(bar(ann)).to_contain_text("<img src=x onerror=alert(1)>")
    type_at_end_of(eve, 7, " ")
    expect(ann.locator("#source-editor .peer-tag")).to_have_text("<img src=x onerror=alert(1)>")
    assert ann.locator("#session-bar img, .peer-tag img").count() == 0


# ---- leading and following


def test_who_follows_sees_what_the_leader_sees_until_they_move(pair):
    ann, bob = pair
    last = shown(bob)
    ann.locator("#stages").focus()
    ann.keyboard.press("k")
    ann.keyboard.press("k")
    expect(ann.locator("#ir-title")).not_to_have_text(last)
    expect(bob.locator("#ir-title")).to_have_text(shown(ann))
    bob.locator("#stages").focus()
    bob.keyboard.press("k")
    expect(bar(bob)).to_contain_text("You look around by yourself")
    expect(bar(ann)).to_contain_text("0 of 1 follow you")
    here = shown(bob)
    ann.keyboard.press("j")
    expect(ann.locator("#ir-title")).not_to_have_text(here)
    bob.wait_for_timeout(600)
    assert shown(bob) == here
    bob.keyboard.press("l")
    expect(bob.locator("#ir-title")).to_have_text(shown(ann))
    expect(bar(ann)).to_contain_text("1 of 1 follow you")


def test_the_selection_and_the_pane_are_followed(pair):
    ann, bob = pair
    ann.locator("#ir-viewer .cm-line", has_text="tanh").first.click()
    expect(ann.locator("#source-editor .cm-line .selected, #source-editor .chosen, #source-editor [class*=lit]").first).to_be_visible()
    expect(bob.locator("#history")).to_contain_text(re.compile(r"line 7:"))
    ann.keyboard.press("Escape")
    expect(bob.locator("#history")).not_to_contain_text(re.compile(r"line 7:"))


def test_long_notes_hinder_nobody_who_follows(pair):
    ann, bob = pair
    written = 0
    for page, count in ((ann, 3), (bob, 1)):  # more than a presence may have, and one
        for i in range(count):
            write_note(page, f"{page} {i} " + "x" * 1900)
            written += 1
            expect(notes(page).get_by_role("button", name="Delete the note")).to_have_count(written)
    expect(bar(bob)).to_contain_text("You follow Ann")  # notes of others open the pane, and move nobody
    ann.locator("#stages").focus()
    ann.keyboard.press("Home")
    expect(ann.locator("#ir-title")).to_contain_text("trace")
    expect(bob.locator("#ir-title")).to_contain_text("trace")
    for page in pair:
        expect(notes(page).get_by_role("button", name="Delete the note")).to_have_count(4)


def test_a_wheel_detaches_and_a_button_follows_again(pair):
    ann, bob = pair
    bob.locator("#ir-viewer").hover()
    bob.mouse.wheel(0, 100)
    expect(bar(bob)).to_contain_text("You look around by yourself")
    do(bob, "Follow")
    expect(bar(bob)).to_contain_text("You follow Ann")


def test_the_leader_points_at_a_line_in_everyones_view(pair):
    ann, bob = pair
    do(ann, "Point")
    ann.locator("#source-editor .cm-line").nth(6).click()
    expect(bob.locator("#source-editor .peer-pointed")).to_contain_text("np.tanh(a)")
    expect(bob.locator("#source-editor .peer-pointed .peer-tag", has_text="Ann points here")).to_be_visible()
    do(ann, "Stop pointing")
    expect(bob.locator("#source-editor .peer-pointed")).to_have_count(0)


def test_the_lead_is_handed_over_once_it_is_taken(pair):
    ann, bob = pair
    do(ann, "Hand over…")
    do(ann, "Bob")
    expect(bar(ann)).to_contain_text("lead until they take it")
    do(bob, "Take the lead")
    expect(bar(bob)).to_contain_text("You lead.")
    expect(bar(ann)).to_contain_text("You follow Bob")
    bob.locator("#stages").focus()
    bob.keyboard.press("k")
    expect(ann.locator("#ir-title")).to_have_text(shown(bob))


def test_in_a_read_only_session_others_cannot_type(pair):
    ann, bob = pair
    do(ann, "Read-only")
    expect(bar(bob)).to_contain_text("Only the leader may change the kernel")
    before = text_of(bob)
    type_at_end_of(bob, 7, "xyz")
    assert text_of(bob) == before
    type_at_end_of(ann, 7, "  # hers")
    has(bob, "# hers")
    do(ann, "Read-only")
    expect(bar(bob)).not_to_contain_text("Only the leader may change the kernel")
    type_at_end_of(bob, 8, "  # his")
    has(ann, "# his")


def notes(page):
    return page.get_by_role("region", name="Notes", exact=True)


def write_note(page, text):
    if not notes(page).is_visible():
        page.get_by_role("button", name="Notes on lines").click()
    notes(page).get_by_role("textbox", name="New note").fill(text)
    notes(page).get_by_role("button", name="Add note").click()


def test_notes_are_those_of_everybody_also_if_they_are_written_at_the_same_time(pair, watch):
    watch.expect("status of 410")
    ann, bob = pair
    for page in pair:
        page.locator("#source-editor .cm-line", has_text="np.tanh").click()
    for page, text in ((ann, "why <b>tanh</b>?"), (bob, "because of stage:trace")):
        page.get_by_role("button", name="Notes on lines").click()
        notes(page).get_by_role("textbox", name="New note").fill(text)
    for page in pair:
        notes(page).get_by_role("button", name="Add note").click()
    for page in pair:
        expect(notes(page).locator(".notes-thread")).to_have_count(1)
        expect(notes(page).locator(".notes-thread")).to_contain_text("why <b>tanh</b>?")
        expect(notes(page).locator(".notes-thread")).to_contain_text("because of stage:trace")
        expect(page.locator("#source-editor .noted")).to_have_text("2 notes")
        expect(notes(page)).to_contain_text("Everyone in the session has them")
        assert violations(page, "session") == []
    ann.screenshot(path=SCREENS / "session-notes.png")
    notes(ann).get_by_role("button", name=re.compile("Delete the note")).first.click()
    expect(bob.locator("#source-editor .noted")).to_have_text("1 note")
    do(ann, "Read-only")
    expect(bar(bob)).to_contain_text("Only the leader may change the kernel")
    write_note(bob, "against the rule")
    expect(bob.locator("#source-editor .noted")).to_have_text("1 note")
    do(ann, "End for all")
    bob.goto(bob.url.split("/s/")[0] + bar(bob).get_by_role("link").get_attribute("href"))
    expect(bob.locator("#source-editor .noted")).to_have_text("1 note")


def test_a_session_is_recorded_with_who_did_what(pair, watch):
    watch.expect("status of 410")
    ann, bob = pair
    do(ann, "Record")
    expect(bar(bob)).to_contain_text("Ann records what happens here")
    type_at_end_of(bob, 8, "  # his")
    has(ann, "# his")
    ann.wait_for_timeout(400)  # moments are 150 ms apart
    type_at_end_of(ann, 7, "  # hers")
    ann.locator("#stages").focus()
    ann.keyboard.press("k")
    ann.wait_for_timeout(400)
    recording = ann.get_by_role("region", name="Recording", exact=True)
    recording.get_by_role("button", name="Stop").click()
    expect(recording).to_contain_text("that the session becomes when you end it")
    assert recording.get_by_role("button", name="Play").count() == 0  # it would change everybody's kernel
    expect(bar(bob)).not_to_contain_text("records what happens here")
    do(ann, "End for all")
    bob.goto(bob.url.split("/s/")[0] + bar(bob).get_by_role("link").get_attribute("href"))
    compiled(bob)
    played = bob.get_by_role("region", name="Recording", exact=True)
    seen = []
    bob.get_by_role("slider", name="Time in the recording").press("Home")
    assert "# his" not in text_of(bob)
    slider = played.get_by_role("slider", name="Time in the recording")
    length = int(slider.get_attribute("max"))
    for at in [*range(0, length, 100), length]:
        slider.evaluate("(n, at) => { n.value = at; n.dispatchEvent(new Event('input')); }", at)
        seen.append((played.locator(".recording-who").inner_text(), text_of(bob)))
    bob.screenshot(path=SCREENS / "session-recording.png")
    first_his = next(who for who, text in seen if "# his" in text)
    assert "Bob" in first_his, seen
    assert seen[-1] == ("Ann", text_of(bob)) and "# hers" in text_of(bob), seen


def test_the_end_makes_a_link_of_it(pair, watch):
    watch.expect("status of 410")  # the answer to what was on its way when the session ended
    ann, bob = pair
    type_at_end_of(ann, 7, "  # last")
    has(bob, "# last")
    do(ann, "End for all")
    expect(bar(bob)).to_contain_text("The session has ended")
    link = bar(bob).get_by_role("link")
    address = link.get_attribute("href")
    bob.goto(bob.url.split("/s/")[0] + address)
    has(bob, "# last")
    ann.reload()
    expect(ann).to_have_url(re.compile(r"/z/"))


def test_who_leaves_keeps_the_kernel_and_the_others_go_on(pair):
    ann, bob = pair
    do(bob, "Leave")
    expect(bar(bob)).to_contain_text("You have left the session")
    type_at_end_of(bob, 7, "  # alone")
    assert "# alone" in text_of(bob)
    ann.wait_for_timeout(300)
    assert "# alone" not in text_of(ann)


def test_a_page_that_is_loaded_again_is_the_same_person(pair):
    ann, bob = pair
    bob.reload()
    expect(bar(bob)).to_contain_text("connected")
    has(bob, "np.tanh")
    expect(bar(ann).locator(".chip-person")).to_have_count(2)


# ---- connections that break


def test_after_kill_9_of_the_server_everyone_is_back_and_nothing_is_lost(new_page, tmp_path, watch):
    watch.expect("Failed to load resource|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY")
    with Server("--job-timeout-ms", "90000", data=tmp_path) as s:
        ann, bob = new_page(), new_page()
        join(bob, begin(ann, s.url))
        type_at_end_of(ann, 7, "  # before")
        has(bob, "# before")
        os.kill(s.pid, signal.SIGKILL)
        s.kill()
        port = s.port
        expect(bar(bob)).to_contain_text("reconnecting")
        type_at_end_of(ann, 8, "  # meanwhile by Ann")
        type_at_end_of(bob, 5, "  # meanwhile by Bob")
    with Server("--job-timeout-ms", "90000", "--port", str(port), data=tmp_path):
        began = time.monotonic()
        for page in (ann, bob):
            expect(bar(page)).to_contain_text("connected")
        has(bob, "# meanwhile by Ann")
        has(ann, "# meanwhile by Bob")
        print(f"back after {time.monotonic() - began:.1f} s")
        text = agree(ann, bob)
        assert all(f"# {w}" in text for w in ("before", "meanwhile by Ann", "meanwhile by Bob"))
        for page in (ann, bob):
            do(page, "Leave")
