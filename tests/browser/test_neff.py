"""What a NEFF holds, on the page: dropped, opened, or of the kernel that is shown."""
import re

from playwright.sync_api import expect

from support.axe import violations
from support.neff import neff, small
from support.page import SCREENS, compiled, source_of, write
from support.paths import ROOT


def choose(page, name, data):
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="open…").click()
    chooser.value.set_files({"name": name, "mimeType": "application/octet-stream", "buffer": data})


def cells(page, table):
    return [[c.text_content() for c in row.locator("th, td").all()] for row in page.get_by_role("table", name=table).locator("tbody tr").all()]


def test_a_file_that_is_opened_shows_its_parts_and_leaves_the_kernel(page):
    compiled(page)
    before = source_of(page)
    choose(page, "k.neff", neff(small()))
    dialog = page.get_by_role("dialog", name="k.neff")
    expect(dialog.get_by_role("status")).to_contain_text("A NEFF of the vendor's compiler")
    assert cells(page, "Tensors") == [["x", "input", "?", "?", "64"], ["y", "output", "?", "?", "64"]]
    assert ["q0", "data", "Tensor (pe)", "2", "1", "1", "64"] in cells(page, "DMA queues")
    assert any(row[0] == "Tensor (pe)" and row[2] == "48" for row in cells(page, "Engines"))
    dialog.get_by_text("Files (5)").focus()
    page.keyboard.press("Enter")  # a folded part opens by the keyboard
    assert ["sg00/PE0.bin", "48"] in cells(page, "Files")
    page.screenshot(path=SCREENS / "neff.png")
    assert violations(page, "neff") == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert source_of(page) == before


def test_a_damaged_file_is_an_error_with_its_code(page):
    choose(page, "cut.bin", neff(small())[:-40])  # found by its header
    expect(page.get_by_role("dialog", name="cut.bin").get_by_role("status")).to_contain_text("(neff-file)")


def test_a_long_table_begins_with_its_first_rows(page):
    choose(page, "many.neff", neff({**small(), **{f"f{i}": b"" for i in range(300)}}))
    dialog = page.get_by_role("dialog", name="many.neff")
    dialog.get_by_text("Files (305)").click()
    assert len(cells(page, "Files")) == 200
    dialog.get_by_role("button", name="Show all 305").click()
    assert len(cells(page, "Files")) == 305


def test_a_file_that_is_too_large_is_not_sent(page):
    choose(page, "large.neff", bytes((8 << 20) + 1))
    expect(page.get_by_role("dialog", name="large.neff").get_by_role("status")).to_contain_text("nkx neff info reads larger ones. (too-large)")


def test_an_output_in_place_of_an_input_says_so(page):
    write(page, (ROOT / "explorer/examples/11_kv_cache.py").read_text())
    compiled(page)
    page.locator("#download").click()
    page.get_by_role("menuitem", name=re.compile("^What the simulation package holds")).click()
    expect(page.get_by_role("dialog").get_by_role("status")).to_contain_text("No device executes it")
    assert [row[1] for row in cells(page, "Tensors")] == ["input"] * 5 + ["output, in place of k_cache", "output, in place of v_cache"]


def test_the_simulation_package_of_the_kernel_is_saved_and_looked_into(page):
    compiled(page)
    page.locator("#download").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name=re.compile("^The simulation package")).click()
    assert download.value.suggested_filename.endswith(".sim.neff")
    with open(download.value.path(), "rb") as f:
        assert f.read(1) == b"\x02"
    page.locator("#download").click()
    page.get_by_role("menuitem", name=re.compile("^What the simulation package holds")).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("status")).to_contain_text("No device executes it")
    expect(dialog.get_by_text("bit 63: no device executes it")).to_be_visible()
    expect(dialog.locator("dt", has_text="simulated time")).to_be_visible()
    expect(dialog.get_by_text(re.compile(r"^[1-9]\d*\.\d\d µs$"))).to_be_visible()
