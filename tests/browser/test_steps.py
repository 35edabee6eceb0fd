"""The steps of a stage: the drawer goes through the rewrites of its pass, and selects what each was tried on."""
import re

import requests
from playwright.sync_api import expect

from browser.test_seevalues import opened  # noqa: F401: a fixture
from support.page import open_stage
from support.paths import EXAMPLES

SOFTMAX = next(p for p in EXAMPLES if p.name.startswith("03_")).read_text()


def steps_of(url, stage):
    result = requests.post(f"{url}/api/v1/compile", json={"source": SOFTMAX, "options": {"steps": stage, "stop_after": stage}}, timeout=60).json()
    return result["kernels"][0]["steps"]


def test_it_goes_through_the_rewrites_and_selects_their_operations(opened, server):  # noqa: F811
    page = opened(SOFTMAX, "legalize-layout")
    steps = steps_of(server, "legalize-layout")["steps"]
    page.get_by_role("button", name="Steps of the stage").click()
    box = page.locator("#steps")
    expect(box.locator(".steps-where")).to_have_text(f"1 / {len(steps)}")
    expect(box.get_by_role("button", name="Previous step ([)")).to_be_disabled()
    for number, step in enumerate(steps):
        expect(box.locator(".steps-where")).to_have_text(f"{number + 1} / {len(steps)}")
        expect(box.locator(".steps-what b")).to_have_text(step["rule"])
        expect(box.locator(".step-line.removed")).to_have_count(sum(h["from"]["count"] for h in step["diff"]["hunks"]))
        expect(box.locator(".step-line.added")).to_have_count(sum(h["to"]["count"] for h in step["diff"]["hunks"]))
        if number + 1 < len(steps):
            page.keyboard.press("]")
    expect(box.get_by_role("button", name="Next step (])")).to_be_disabled()
    page.keyboard.press("[")
    expect(box.locator(".steps-where")).to_have_text(f"{len(steps) - 1} / {len(steps)}")
    # the source shows what the rule was tried on
    with_place = next(n for n, s in enumerate(steps) if "src" in s.get("op", {}))
    while int(box.locator(".steps-where").inner_text().split(" ")[0]) != with_place + 1:
        page.keyboard.press("[")
    expect(page.locator("#source-editor :is(.lit-selected, .lit-best)").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(box).to_be_hidden()


def test_it_follows_the_stage_and_says_how_steps_were_found(opened):  # noqa: F811
    page = opened(SOFTMAX, "hlo-to-linalg")
    page.get_by_role("button", name="Steps of the stage").click()
    expect(page.locator("#steps .steps-message")).to_contain_text("what it became")
    expect(page.locator("#steps .step-line.added").first).to_be_visible()
    open_stage(page, "recognize-scans")
    expect(page.locator("#steps .steps-message")).to_have_text("The pass changed nothing.")
    open_stage(page, "trace")
    expect(page.locator("#steps .steps-message")).to_have_text("There are no steps: it is the first stage.")


def test_a_server_that_fails_can_be_asked_again(opened, watch):  # noqa: F811
    watch.expect("Failed to load resource")
    page = opened(SOFTMAX, "canonicalize-loop-step")
    page.route("**/api/v1/compile", lambda route: route.abort())
    page.get_by_role("button", name="Steps of the stage").click()
    expect(page.locator("#steps .steps-message")).to_contain_text("The steps could not be made")
    page.unroute("**/api/v1/compile")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#steps .steps-what b")).to_have_text("count-from-zero")


def test_a_link_has_the_step(opened, new_page, server):  # noqa: F811
    page = opened(SOFTMAX, "legalize-layout")
    steps = steps_of(server, "legalize-layout")["steps"]
    page.get_by_role("button", name="Steps of the stage").click()
    where = page.locator("#steps .steps-where")
    expect(where).to_have_text(f"1 / {len(steps)}")
    page.locator("#steps").press("]")
    page.locator("#steps").press("]")
    expect(where).to_have_text(f"3 / {len(steps)}")
    page.wait_for_url("**step=3**")
    other = new_page()
    other.goto(page.url)
    expect(other.locator("#steps .steps-where")).to_have_text(f"3 / {len(steps)}", timeout=30_000)
    expect(other.locator("#steps .steps-what b")).to_have_text(steps[2]["rule"])
    # another stage begins at its first step; closing takes it out of the link
    open_stage(other, "canonicalize")
    expect(other.locator("#steps .steps-where")).to_have_text(f"1 / {len(steps_of(server, 'canonicalize')['steps'])}")
    other.locator("#steps").press("Escape")
    expect(other.locator("#steps")).to_be_hidden()
    expect(other).not_to_have_url(re.compile("step="))
