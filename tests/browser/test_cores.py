"""A launch on two cores on the page: the instance that nki-trace shows, the lanes and the memories of each core."""
from playwright.sync_api import expect

from support.page import compiled, open_stage, write

KERNEL = """import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

@nki.jit
def halves(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    own = nl.ds(nl.program_id(0) * 128, 128)
    x = nl.load(a[own])
    nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=2.0)
    nl.store(out[own], x)
    return out

halves[2](np.zeros((256, 64), np.float32))
"""


def write_kernel(page):
    write(page, KERNEL)
    expect(page.locator("#signature")).to_contain_text("halves")
    compiled(page)


def test_an_instance_is_chosen_in_the_trace(page):
    write_kernel(page)
    chooser = page.get_by_label("Instance of the launch")
    text = page.locator("#ir-viewer .cm-content")
    open_stage(page, "nki-to-nisa")
    expect(chooser).to_be_hidden()
    open_stage(page, "nki-trace")
    assert chooser.locator("option").all_text_contents() == ["all instances", "(0) on core 0", "(1) on core 1"]
    expect(text).to_contain_text("nl.load(a[0:128])")
    chooser.select_option("(1) on core 1")
    expect(text).to_contain_text("# instance (1) on core 1")
    expect(text).to_contain_text("nl.load(a[128:256])")
    expect(text).not_to_contain_text("nl.load(a[0:128])")
    expect(chooser).to_have_value("1")
    chooser.select_option("all instances")
    expect(text).to_contain_text("nl.load(a[0:128])")


def test_each_core_has_its_engines_and_memories(page):
    write_kernel(page)
    open_stage(page, "engine-programs")
    expect(page.locator("#ir-viewer .cm-content")).to_contain_text("Core 0")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-verdict b")).to_contain_text("µs, bound by")
    expect(page.locator("#run-side h4")).to_have_text(["core 0", "core 1"])
    names = page.locator("#run-side h4, #run-side .use > span:first-child").all_text_contents()
    first, second = names.index("core 0"), names.index("core 1")
    assert set(names[first + 1:second]) == set(names[second + 1:]) and {"vector", "qSyncIn"} <= set(names[second + 1:])
    for core in (0, 1):
        expect(page.locator(f".memory-map[aria-label^='Buffers in SBUF of core {core} ']")).to_be_visible()
