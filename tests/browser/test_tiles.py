"""The tiles of an instruction: computed from the stage's text as the simulator computes them, and drawn on the buffers."""
import base64
import json
import os
import pathlib
import re
import subprocess

import pytest
import requests
from playwright.sync_api import expect

from browser.test_seevalues import PRODUCTS, TILED, opened  # noqa: F401: a fixture
from support.marks import few
from support.paths import BUILD, EXAMPLES, ROOT
from support.server import Server


@pytest.fixture(scope="session")
def tiles(tmp_path_factory):
    """Runs tiles.ts on a result; what it prints."""
    folder = tmp_path_factory.mktemp("tiles")
    esbuild = ROOT / "web/node_modules/.bin/esbuild"
    subprocess.run([esbuild, ROOT / "tests/browser/tiles.ts", "--bundle", "--platform=node", "--format=esm", f"--outfile={folder}/tiles.mjs"], check=True, capture_output=True)
    node = pathlib.Path(os.environ.get("VENV", BUILD / "venv")) / "bin/node"

    def of(result):
        (folder / "result.json").write_text(json.dumps(result))
        done = subprocess.run([node if node.exists() else "node", folder / "tiles.mjs", folder / "result.json"], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return of


@pytest.fixture(scope="module")
def patient():
    """A server whose jobs may take as long as a busy machine needs for the largest example."""
    with Server("--job-timeout-ms", "100000", "--job-cpu-s", "90") as s:
        yield s.url


NKI = sorted((ROOT / "explorer/examples/nki").glob("*.py"))


@pytest.mark.parametrize("example", few(EXAMPLES + NKI, 5, lambda e: e.stem))
def test_tiles_stay_in_their_buffers_and_descriptors_are_the_simulators(patient, tiles, example):
    job = {"source": example.read_text(), "simulate": True, "options": {"artifacts": True}}
    result = requests.post(f"{patient}/api/v1/compile", json=job, timeout=120).json()
    found = tiles(result)
    assert found and [w for i in found for t in i["tiles"] for w in t["wrong"]] == []
    artifact = next(a for a in result["artifacts"] if a["name"].endswith("/executions.json"))  # of the first kernel, as what is found
    simulated = {i["line"]: i["descriptor_bytes"] for i in json.loads(base64.b64decode(artifact["data"]))["instructions"] if "descriptor_bytes" in i}
    assert simulated and {i["line"]: i["descriptor"] for i in found if i["line"] in simulated} == simulated
    # every operand of an instruction in a counted loop has a place in every round
    assert all(t["regions"] > 0 for i in found if i["isCounted"] and i["rounds"] > 0 for t in i["tiles"])


def tiled(opened, what):  # noqa: F811
    page = opened(TILED, "engine-programs")
    page.locator("#ir-viewer .cm-line", has_text=what).first.click(position={"x": 4, "y": 6})
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("o")
    expect(page.locator(".tile svg").first).to_be_visible()
    return page


def boxes(page, operand):
    """The rectangle of the present round, and the number of all, in the picture of an operand."""
    here = page.locator(f".tile:has(text:text-matches(' {operand} ')) .tile-here").get_attribute("d")
    every = page.locator(f".tile:has(text:text-matches(' {operand} ')) .tile-all").get_attribute("d")
    return here, every.count("Z")


def test_the_rounds_of_the_loops_are_stepped_through(opened):  # noqa: F811
    page = tiled(opened, "+= ")
    rounds = page.locator(".inspect-body.tiles .value-rounds")
    expect(rounds).to_contain_text(f"of {PRODUCTS}")
    expect(rounds.locator("b")).to_have_text("i = 0, j = 0, k = 0")
    first, n = boxes(page, "stationary")
    assert n == 4 and boxes(page, "moving")[1] == 8 and boxes(page, "dst")[1] == 1
    page.get_by_role("button", name="Next round").click()
    expect(rounds.locator("b")).to_have_text("i = 0, j = 0, k = 1")
    expect(page.get_by_role("button", name="Next round")).to_be_focused()
    assert boxes(page, "stationary")[0] != first
    page.locator(".inspect-body.tiles").focus()
    page.keyboard.press("]")
    expect(page.get_by_role("textbox", name="Round")).to_have_value("3")
    bank = page.locator(".tile figcaption", has_text="in PSUM")
    expect(bank).to_contain_text("copy 0 of 4")
    page.get_by_role("textbox", name="Round").fill("5")
    page.get_by_role("textbox", name="Round").press("Enter")
    expect(rounds.locator("b")).to_have_text("i = 0, j = 1, k = 0")
    expect(bank).to_contain_text("copy 1 of 4")


def test_a_transfer_tells_its_runs_and_descriptors(opened):  # noqa: F811
    page = tiled(opened, "transpose ")
    expect(page.locator(".inspect-body.tiles > div > .note")).to_have_text("Descriptors of 512 B.")
    expect(page.locator(".tile figcaption", has_text="in HBM")).to_contain_text("runs of 512 B · steps: d0 512 B, d1 2,048 B, d2 4 B")
    expect(page.locator(".tile-here.write")).to_have_count(1)
    expect(page.locator(".tile-here.read")).to_have_count(1)


def test_a_place_leads_to_the_allocation(opened):  # noqa: F811
    page = tiled(opened, "+= ")
    page.locator(".tile", has_text="in PSUM").get_by_role("button", name="bank 0").click()
    expect(page.locator(".inspect-title")).not_to_contain_text("line 22")
    expect(page.locator(".inspect-body.tiles .value-message")).to_contain_text("Select an instruction")


@pytest.mark.nightly
def test_the_pictures_have_a_table_and_are_saved(opened, tmp_path):  # noqa: F811
    page = tiled(opened, "+= ")
    with page.expect_download() as saved:
        page.get_by_role("button", name="SVG", exact=True).click()
    saved.value.save_as(tmp_path / "tiles.svg")
    text = (tmp_path / "tiles.svg").read_text()
    assert text.count("<svg") == 4 and "reads moving" in text and not re.search(r"style=", text)
    page.locator(".inspect-body.tiles").focus()
    page.keyboard.press("t")
    rows = page.locator(".inspect-body.tiles table tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(1)).to_contain_text("partitions 0–127, bytes 0–511")
    expect(page.locator(".tile svg").first).to_be_hidden()


@pytest.mark.nightly
def test_a_line_without_an_instruction_says_so(opened):  # noqa: F811
    page = opened(TILED, "trace")
    page.locator("#ir-viewer .cm-line", has_text="dot(").first.click(position={"x": 4, "y": 6})
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("o")
    expect(page.locator(".inspect-body.tiles .value-message")).to_contain_text("Select an instruction of a NISA stage")
