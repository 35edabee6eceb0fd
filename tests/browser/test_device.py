"""Runs on a Neuron host from the page: what is missing, the place in the queue, the log, and outputs beside NumPy's and the simulator's."""
import pytest
from playwright.sync_api import expect

from support.axe import violations
from support.page import compiled, lit_text, write
from support.runners import SOURCE, Host, Runner, begin, cancel, make_package, wait_connected
from support.server import Server
from support.vendor import Vendor

KERNEL = "import numpy as np\nfrom nkigen import trace\n\n\n@trace(input_specs=[((8, 16), 'f32')])\ndef add_one(x):\n    return x + 1\n"


@pytest.fixture(scope="module")
def own_server():
    with Server("--job-timeout-ms", "90000", "--job-cpu-s", "60") as s:
        yield s


@pytest.fixture
def dialog(new_page, own_server):
    page = new_page()
    page.goto(own_server.url)
    compiled(page)
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("add_one(")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-verdict b")).to_contain_text("µs")

    def opened():
        page.locator("#run-actions button", has_text="Neuron host").click()
        d = page.locator("dialog.device")
        expect(d).to_be_visible()
        return d
    opened.page = page
    return opened


def test_without_a_neuron_host_the_page_says_so(dialog):
    d = dialog()
    expect(d.locator(".device-hosts")).to_contain_text("No Neuron host is connected to this server")
    expect(d.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    assert not violations(dialog.page, "the dialog of Neuron hosts")


def test_a_run_shows_its_place_its_log_and_its_outputs_beside_numpys_and_the_simulators(dialog, own_server, tmp_path):
    host = Host(tmp_path, own_server, make_package(tmp_path))
    with Runner(host, "lab-1", gated=True, flags=("--instance-type", "trn2.48xlarge")) as runner:
        wait_connected(own_server, 1)
        first = begin(own_server, source=SOURCE)
        runner.wait_inside()
        d = dialog()
        expect(d.locator(".device-hosts li")).to_contain_text("lab-1 (NO DEVICE: a stand-in of the tests): trn2.48xlarge, 2 cores")
        expect(d.locator(".device-hosts li")).to_contain_text("busy")
        d.get_by_role("button", name="Run", exact=True).click()
        expect(d.get_by_role("status")).to_have_text("Waiting: place 1 in the queue.")
        cancel(own_server, first)
        expect(d.get_by_role("status")).to_have_text("Running on lab-1…")
        runner.let()
        expect(d.get_by_role("status")).to_have_text("Done on lab-1.")
        expect(d.get_by_role("region", name="Log of the host")).to_contain_text("INFO compiling")
        row = d.locator("tbody tr")
        expect(row.locator("th")).to_have_text("output0 float32[8×16]")
        expect(row.locator("td")).to_contain_text(["", "", "", "equal, largest error 0.0e+0", "equal, largest error 0.0e+0"])
        expect(d.locator(".device-result")).to_contain_text("simulated")
        expect(d.locator(".device-result")).to_contain_text("it says nothing about a Neuron device")
        assert not violations(dialog.page, "the dialog of Neuron hosts")
        with dialog.page.expect_download() as download:
            d.get_by_role("link", name="kernel.neff").click()
        assert open(download.value.path(), "rb").read() == host.package.read_bytes()


def test_a_run_is_cancelled_from_the_page(dialog, own_server, tmp_path):
    host = Host(tmp_path, own_server, make_package(tmp_path))
    with Runner(host, "lab-2", gated=True, token="second") as runner:
        wait_connected(own_server, 1)
        d = dialog()
        expect(d.locator(".device-hosts li")).to_contain_text("lab-2")
        d.get_by_role("button", name="Run", exact=True).click()
        runner.wait_inside()
        d.get_by_role("button", name="Cancel the run").click()
        expect(d.get_by_role("status")).to_have_text("Cancelled.")


def test_without_a_neuron_host_the_vendors_neff_comes_from_the_compiler_beside_the_server(new_page, watch, tmp_path):
    watch.expect("status of 400")  # of options that are not allowed
    v = Vendor(tmp_path)
    with v.server:
        wait_connected(v.server, 1)
        page = new_page()
        page.goto(v.server.url)
        compiled(page)
        write(page, KERNEL.replace("x + 1", "x * 2"))
        expect(page.locator("#signature")).to_contain_text("add_one(")
        page.locator("#download").click()
        page.get_by_role("menuitem", name="The vendor's NEFF").click()
        d = page.locator("dialog.device")
        expect(d.locator(".device-hosts li")).to_contain_text("this server: stand-in 1.0, cannot execute (it only compiles")
        expect(d.get_by_label("What to do on the host")).to_have_value("compile")
        expect(d.locator("option[value=execute]")).to_be_disabled()
        d.get_by_label("Options for the vendor's compiler").fill("--optlevel=2 --lnc 2")
        d.get_by_role("button", name="Run", exact=True).click()
        expect(d.get_by_role("status")).to_have_text("Done on this server.")
        expect(d.locator(".device-files")).to_contain_text("the vendor's NEFF: neuronx-cc made it, and a Neuron device executes it")
        with page.expect_download() as download:
            d.get_by_role("link", name="kernel.neff").click()
        assert b"\x1f\x8b" == open(download.value.path(), "rb").read()[1024:1026]
        d.get_by_label("What to do on the host").select_option("nki")
        d.get_by_role("button", name="Run", exact=True).click()
        expect(d.get_by_role("region", name="The kernel as NKI")).to_contain_text("def add_one():")
        assert not violations(page, "the dialog with the kernel as NKI")
        final = page.locator(".stage[data-shape=final]").get_attribute("data-key")
        d.get_by_role("button", name="vendor-nki").click()
        expect(d).not_to_be_visible()
        expect(page.locator(".stage[data-key=vendor-nki]")).to_have_attribute("aria-selected", "true")
        assert final == "engine-programs", "our last stage stays the last"
        page.locator("#ir-viewer .cm-line", has_text="nl.multiply()").click()
        expect(page.locator("#source-editor .lit-selected").first).to_be_visible()
        assert lit_text(page, "lit-selected") == "x * 2", "the line that names an instruction is linked with its expression"
        page.locator("#download").click()
        page.get_by_role("menuitem", name="The vendor's NEFF").click()
        expect(d).to_be_visible()
        d.get_by_label("Options for the vendor's compiler").fill("--run=sh")
        d.get_by_role("button", name="Run", exact=True).click()
        expect(d.get_by_role("status")).to_contain_text("not among the options")
        v.behave("internal")
        d.get_by_label("What to do on the host").select_option("compile")
        d.get_by_label("Options for the vendor's compiler").fill("--optlevel=1")
        d.get_by_role("button", name="Run", exact=True).click()
        expect(d.get_by_role("status")).to_contain_text("NCC_ITEN404")
        d.get_by_role("button", name="kernel.py 7:12").click()
        expect(d).not_to_be_visible()
        assert page.evaluate("getSelection().toString()") == "x * 2", "the expression of the instruction is selected"
