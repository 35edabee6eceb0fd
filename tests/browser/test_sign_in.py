"""Where people sign in at a proxy, the page says who they are, and offers what they may do."""
import pytest
from playwright.sync_api import expect

from support.page import compiled
from support.server import Server


@pytest.fixture(scope="module")
def proxied():
    with Server("--job-timeout-ms", "90000", "--job-cpu-s", "60", "--trusted-proxies", "127.0.0.1", "--user-header", "X-Forwarded-User",
                "--groups-header", "X-Forwarded-Groups", "--anonymous", "reader") as s:
        s.wait_until(lambda: s.get("/readyz").status == 200, "a worker that is warm")
        yield s


@pytest.fixture
def page_of(browser, proxied, watch):
    """Opens a path as a person."""
    contexts = []

    def open_page(path="/", **headers):
        context = browser.new_context(extra_http_headers={k.replace("_", "-"): v for k, v in headers.items()}, reduced_motion="reduce")
        contexts.append(context)
        page = context.new_page()
        watch.attach(page)
        page.goto(proxied.url + path)
        return page
    yield open_page
    for c in contexts:
        c.close()


def open_share(page):
    page.get_by_role("button", name="Share", exact=True).click()
    dialog = page.get_by_role("dialog", name="Share what you see")
    expect(dialog).to_be_visible()
    return dialog


def test_a_private_link_is_made_and_opened_by_those_it_is_for(page_of, watch):
    page = page_of(X_Forwarded_User="ada", X_Forwarded_Groups="eng, kernels")
    compiled(page)
    dialog = open_share(page)
    expect(dialog).to_contain_text("Signed in as ada, of eng, kernels: may store links.")
    expect(dialog.locator("#share-people")).to_be_hidden()
    dialog.get_by_role("radio", name="Private").check()
    dialog.locator("#share-people").fill("bob, carol@example.org")
    dialog.locator("#share-groups").fill("kernels")
    dialog.get_by_role("button", name="Create link").click()
    link = dialog.get_by_role("textbox", name="Stored link", exact=True)
    expect(link).to_be_visible()
    path = "/z/" + link.input_value().rsplit("/", 1)[1]
    expect(dialog.locator(".my-links")).to_contain_text("private")
    for who in ({"X_Forwarded_User": "bob"}, {"X_Forwarded_User": "dan", "X_Forwarded_Groups": "kernels"}):
        other = page_of(path, **who)
        compiled(other)
        expect(other.locator("#shared-bar")).to_be_visible()
    watch.expect("404")
    stranger = page_of(path, X_Forwarded_User="mallory")
    expect(stranger.get_by_role("heading", name="This link leads nowhere.")).to_be_visible()


def test_who_may_open_a_link_is_changed_by_its_owner(page_of, watch):
    page = page_of(X_Forwarded_User="ada")
    compiled(page)
    dialog = open_share(page)
    dialog.get_by_role("button", name="Create link").click()
    link = dialog.get_by_role("textbox", name="Stored link", exact=True)
    expect(link).to_be_visible()
    path = "/z/" + link.input_value().rsplit("/", 1)[1]

    def change(at, place, people, said):
        form = place.get_by_role("form", name="Who may open it")
        form.get_by_role("checkbox").set_checked(people is not None)
        if people is not None:
            form.get_by_role("textbox", name="People").fill(people)
        form.get_by_role("button", name="Save").click()
        expect(at.get_by_role("status").filter(has_text=said).first).to_be_attached()
    dialog.locator(".my-links-box summary").click()
    dialog.get_by_role("button", name="Readers of").click()
    expect(dialog.get_by_role("form", name="Who may open it").get_by_role("checkbox")).not_to_be_checked()
    change(page, dialog, "bob", "others cannot open the link")
    expect(dialog.locator(".my-links")).to_contain_text("private")
    bob = page_of(path, X_Forwarded_User="bob")
    compiled(bob)
    readers = open_share(bob)
    expect(readers.get_by_role("region", name="Revisions of this link")).to_contain_text("Revision 1")
    expect(readers.get_by_role("form", name="Who may open it")).to_have_count(0)
    # ada again, in a browser that has no edit token: she owns it by her name
    other = page_of(path, X_Forwarded_User="ada")
    compiled(other)
    own = open_share(other).get_by_role("region", name="Revisions of this link")
    expect(own.get_by_role("textbox", name="People")).to_have_value("bob")
    change(other, own, None, "whoever has the link can open it")
    watch.expect("404")
    stranger = page_of(path, X_Forwarded_User="mallory")
    compiled(stranger)
    expect(stranger.locator("#shared-bar")).to_be_visible()


def test_who_may_not_store_is_told_so(page_of):
    page = page_of()
    compiled(page)
    page.get_by_role("button", name="Settings").click()
    expect(page.locator("#settings")).to_contain_text("Not signed in: may open links and compile, but not store links.")
    page.keyboard.press("Escape")
    dialog = open_share(page)
    expect(dialog).to_contain_text("Not signed in")
    expect(dialog.get_by_role("button", name="Create link")).to_have_count(0)


def test_where_nobody_signs_in_the_page_does_not_speak_of_it(page):
    page.get_by_role("button", name="Settings").click()
    expect(page.locator("#settings")).not_to_contain_text("igned in")
    page.keyboard.press("Escape")
    dialog = open_share(page)
    expect(dialog.get_by_role("radio", name="Unlisted")).to_be_visible()
    expect(dialog.get_by_role("radio", name="Private")).to_have_count(0)
