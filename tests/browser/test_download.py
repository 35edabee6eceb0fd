"""The menu of everything that can be saved."""
import io
import json
import re
import tarfile

import pytest
import requests
from playwright.sync_api import expect

from support.page import KERNEL, compiled, create, open_stage, write


def open_menu(page):
    page.get_by_role("button", name="Download", exact=True).click()
    expect(page.get_by_role("menu", name="Download")).to_be_visible()


def entry(page, name):
    return page.get_by_role("menuitem", name=re.compile("^" + re.escape(name)))


def save(page, name) -> tuple[str, bytes]:
    open_menu(page)
    with page.expect_download() as download:
        entry(page, name).click()
    expect(page.get_by_role("menu", name="Download")).to_be_hidden()
    return download.value.suggested_filename, download.value.path().read_bytes()


@pytest.fixture
def mine(page):
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("mine")
    compiled(page)
    return page


@pytest.fixture
def result(mine, server):
    """The result that the API gives for the page's kernel, by the key of the page's own result."""
    with mine.expect_request(re.compile(r"/api/v1/results/\w+$")) as asked:
        save(mine, "The result")
    return requests.get(asked.value.url).json()


def test_the_menu_saves_what_the_api_answers(mine, result, server):
    name, data = save(mine, "The result")
    assert name == "mine-trn2.json" and json.loads(data) == result

    open_stage(mine, "cse")
    name, data = save(mine, "This stage")
    stage = next(s for s in result["kernels"][0]["stages"] if s["name"] == "cse")
    assert name == f"{stage['index']:02}-cse.hlo" and data.decode() == stage["text"]

    name, data = save(mine, "The NISA program")
    assert name == "mine.nisa.mlir" and data.decode() == result["kernels"][0]["stages"][-1]["text"]

    name, data = save(mine, "All stages")
    assert name == "mine-trn2.tar.gz"
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        names = tar.getnames()
        assert json.load(tar.extractfile("result.json")) == result
        for s in result["kernels"][0]["stages"]:
            path = next(n for n in names if n.startswith(f"mine/{s['index']:02}-"))
            assert tar.extractfile(path).read().decode() == s["text"]


def test_files_of_the_run_and_the_module_are_those_of_the_compiler(mine, server):
    wanted = requests.post(f"{server}/api/v1/compile", json={"source": KERNEL, "options": {"artifacts": True, "simulate": True}}).json()
    for label, file, artifact in (
        ("The HLO module", "mine.hlo.pb", "hlo.pb"),
        ("The timeline of a simulated run", "mine.perfetto.json", "timeline.json"),
        ("What each instruction did in it", "mine.executions.json", "executions.json"),
    ):
        name, data = save(mine, label)
        assert name == file
        assert data == requests.get(f"{server}/api/v1/results/{wanted['key']}/artifacts/mine/{artifact}").content, label


def test_the_html_file_shows_the_stages_without_a_server(mine, new_page, tmp_path):
    name, data = save(mine, "One HTML file")
    assert name == "mine-trn2.html"
    (tmp_path / name).write_bytes(data)
    page = new_page()
    page.goto((tmp_path / name).as_uri())
    expect(page.get_by_text("np.tanh(a) * 2.0").first).to_be_visible()


def test_a_stored_link_gives_what_was_stored(mine, new_page, server):
    link = create(mine)
    page = new_page()
    page.goto(link)
    compiled(page)
    _, data = save(page, "All stages")
    assert data == requests.get(f"{link}/all.tar.gz").content
    _, data = save(page, "One HTML file")
    assert data == requests.get(f"{link}/page.html").content
    open_menu(page)
    assert server + entry(page, "Page without JavaScript").get_attribute("href") == f"{link}?view=plain"
    assert requests.get(server + entry(page, "Source as plain text").get_attribute("href")).text == KERNEL


@pytest.mark.nightly
def test_a_result_that_the_server_no_longer_keeps_is_compiled_again(mine, result, watch):
    watch.expect("404")
    gone = {"error": {"code": "not-found", "message": "There is no such result."}}
    mine.route(re.compile(r"/results/\w+/all"), lambda r: r.fulfill(status=404, json=gone, content_type="application/problem+json"), times=1)
    _, data = save(mine, "All stages")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        again = json.load(tar.extractfile("result.json"))
        assert [s["text"] for s in again["kernels"][0]["stages"]] == [s["text"] for s in result["kernels"][0]["stages"]]


@pytest.mark.nightly
def test_entries_that_cannot_be_had_say_why(page):
    write(page, "def broken(a:\n")
    expect(page.locator("#status")).to_contain_text("error")
    open_menu(page)
    for name, why in (("The vendor's NEFF", "not"), ("Inputs and outputs", "--save-outputs"), ("The timeline", "not")):
        expect(entry(page, name)).to_have_attribute("aria-disabled", "true")
        expect(entry(page, name)).to_contain_text(why)
    entry(page, "The vendor's NEFF").click(force=True)
    expect(page.get_by_role("menu", name="Download")).to_be_visible()
    expect(entry(page, "Source as plain text")).to_contain_text("needs a stored link")
    entry(page, "Source as plain text").click()
    expect(page.locator("#share-dialog")).to_be_visible()


@pytest.mark.nightly
def test_the_menu_is_walked_with_keys_and_closed_with_escape(page):
    button = page.get_by_role("button", name="Download", exact=True)
    button.focus()
    page.keyboard.press("Enter")
    expect(entry(page, "This stage")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(entry(page, "All stages")).to_be_focused()
    page.keyboard.press("End")
    expect(entry(page, "The kernel as NKI")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(entry(page, "This stage")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu", name="Download")).to_be_hidden()
    expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(entry(page, "This stage")).to_be_focused()
