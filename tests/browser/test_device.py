"""Runs on a Neuron host from the page: what is missing, the place in the queue, the log, and outputs beside NumPy's and the simulator's."""
import pytest
from playwright.sync_api import expect

from support.axe import violations
from support.page import compiled, write
from support.runners import SOURCE, Host, Runner, begin, cancel, make_package, wait_connected
from support.server import Server

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
