"""The revisions of a link: added by its owner, listed, opened, compared."""
import re

import pytest
import requests
from playwright.sync_api import expect

from support.page import KERNEL, compiled, create, open_dialog, open_stage, source_of, write

EDITED = KERNEL.replace("np.tanh", "np.exp")


def delete(page, name):
    """Deletes a link through the page."""
    open_dialog(page)
    page.locator(".my-links-box summary").click()
    page.get_by_role("button", name=f"Delete {name}").click()
    page.get_by_text("Delete for everyone?").click()
    expect(page.locator("#live")).to_contain_text("Deleted")
    page.get_by_role("button", name="Close", exact=True).click()


@pytest.fixture
def owner(page):
    """The page of the owner, opened on a link of two revisions: KERNEL, EDITED."""
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("mine")
    compiled(page)
    link = create(page, title="Two of them")
    page.goto(link)
    compiled(page)
    write(page, EDITED)
    expect(page.locator("#shared-bar")).to_contain_text("Fork of")
    compiled(page)
    open_dialog(page)
    page.get_by_role("button", name="Add the present kernel").click()
    expect(page.locator("#live")).to_contain_text("Stored as revision 2")
    page.link = link
    yield page
    if not page.locator("#share-dialog").is_visible():
        open_dialog(page)
    page.get_by_role("button", name="Close", exact=True).click()
    delete(page, "Two of them")
    assert requests.get(link).status_code == 404


def test_the_owner_adds_the_present_kernel_as_a_revision(owner, server):
    section = owner.get_by_role("region", name="Revisions of this link")
    expect(section.get_by_role("link")).to_have_text(["Revision 2", "Revision 1"])
    expect(section.get_by_role("listitem").first).to_contain_text("the newest")
    api = owner.link.replace("/z/", "/api/v1/snippets/")
    kept = requests.get(api).json()
    assert kept["revision"] == 2 and kept["title"] == "Two of them" and kept["request"]["source"].rstrip() == EDITED.rstrip()
    assert requests.get(f"{api}?revision=1").json()["request"]["source"].rstrip() == KERNEL.rstrip()
    section.get_by_role("button", name="Add the present kernel").click()
    expect(section.get_by_role("alert")).to_have_text("The newest revision is this kernel already.")
    owner.get_by_role("button", name="Close", exact=True).click()
    expect(owner.locator("#shared-bar")).not_to_contain_text("Fork of")


def test_an_older_revision_opens_and_keeps_its_address(owner, new_page):
    page = new_page()
    page.goto(owner.link)
    compiled(page)
    assert source_of(page).rstrip() == EDITED.rstrip()
    open_dialog(page)
    expect(page.get_by_role("button", name="Add the present kernel")).to_have_count(0)  # not the owner's browser
    page.get_by_role("link", name="Revision 1").click()
    expect(page.locator("#source-editor")).to_contain_text("np.tanh")
    compiled(page)
    open_stage(page, "one-shot-bufferize")
    page.wait_for_url(re.compile(re.escape(owner.link) + r"\?revision=1#stage=one-shot-bufferize"))
    with page.expect_response(re.compile("/diff[?]")) as answer:
        page.keyboard.press("d")
    assert "revision=1" in answer.value.url and answer.value.status == 200
    page.reload()
    compiled(page)
    assert source_of(page).rstrip() == KERNEL.rstrip()


def test_a_revision_is_compared_with_the_present_kernel(owner):
    owner.get_by_role("button", name="Close", exact=True).click()
    open_dialog(owner)
    owner.locator(".my-links-box summary").click()
    more = owner.get_by_role("button", name="Revisions of Two of them")
    more.click()
    expect(more).to_have_attribute("aria-expanded", "true")
    owner.locator(".my-links-box").get_by_role("button", name="Compare with revision 1").click()
    expect(owner.locator("#share-dialog")).to_be_hidden()
    expect(owner.locator("#compare-names")).to_contain_text("Two of them, revision 1")
    expect(owner.locator("#compare-stages")).to_contain_text("source")
    expect(owner.locator("#compare-note")).to_contain_text(re.compile(r"[1-9]\d* differ"))


@pytest.mark.nightly
def test_a_refused_revision_says_why(owner, watch):
    watch.expect("413")
    owner.get_by_role("button", name="Close", exact=True).click()
    write(owner, EDITED + "# more\n")
    expect(owner.locator("#shared-bar")).to_contain_text("Fork of")
    compiled(owner)
    open_dialog(owner)
    owner.route("**/api/v1/snippets/*", lambda r: r.fulfill(status=413, json={"error": {"code": "too-large", "message": "It has 50 revisions."}}) if r.request.method == "POST" else r.continue_())
    owner.get_by_role("button", name="Add the present kernel").click()
    expect(owner.locator(".revisions .share-failed")).to_have_text("It was not stored: It has 50 revisions.")
    owner.unroute("**/api/v1/snippets/*")
