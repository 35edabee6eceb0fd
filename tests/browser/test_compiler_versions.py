"""Versions of the compiler side by side: the chooser, and a link of an older version."""
import pytest
from playwright.sync_api import expect

from support.paths import EXAMPLES
from support.links import Stored
from support.page import compiled
from support.releases import EARLIER, PASS, pack, wait_for
from support.server import Server

SOFTMAX = next(e for e in EXAMPLES if "softmax" in e.name).read_text()


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A server with today's version and an earlier one, called 6."""
    with Server("--worker-version", f"6={pack(tmp_path_factory.mktemp('releases') / '6', EARLIER)}") as s:
        wait_for(s, "6")
        yield s.url


def test_there_is_no_chooser_where_there_is_no_choice(page):
    expect(page.locator("#version-picker")).to_be_hidden()


def test_the_chosen_version_compiles_and_is_in_the_address(two, new_page):
    page = new_page()
    page.goto(two)
    compiled(page)
    chooser = page.get_by_label("Version of the compiler")
    expect(chooser.locator("option")).to_have_text(["today's", "version 6"])
    with page.expect_request("**/api/v1/compile") as asked:
        chooser.select_option(label="version 6")
    assert asked.value.post_data_json["version"] == "0123456789ab"
    compiled(page)
    page.wait_for_url("**version=0123456789ab*")
    other = new_page()
    other.goto(page.url)
    compiled(other)
    expect(other.get_by_label("Version of the compiler")).to_have_value("0123456789ab")


def test_a_link_of_an_older_version_says_so_and_is_compared_with_todays(two, new_page):
    stored = Stored(two)
    link = f"{two}/z/{stored.make(SOFTMAX, version='6')['id']}"
    page = new_page()
    page.goto(link)
    compiled(page)
    bar = page.locator("#shared-bar")
    expect(bar).to_contain_text("Made by version 6 of the compiler")
    expect(page.get_by_label("Version of the compiler")).to_have_value("0123456789ab")
    page.get_by_role("button", name="Compare with today's").click()
    expect(page.get_by_label("Version of the compiler")).to_have_value("")
    compiled(page)
    differs = page.locator("#compare-stages [data-key]", has_text=PASS)
    expect(differs).to_be_visible()
    expect(page.locator("#compare-names")).to_contain_text("version 6")
    page.goto(link)
    compiled(page)
    page.get_by_role("button", name="Compile with today's").click()
    expect(bar).to_contain_text("compiled just now, with today's pipeline")
    compiled(page)
    page.get_by_label("Version of the compiler").select_option(label="version 6")
    expect(bar).to_contain_text("compiled just now, with version 6")
    stored.delete()
