"""Kernels of NKI beta 1 are rewritten on the page: offered, shown as a difference, replaced, taken back."""
from playwright.sync_api import expect

from support.axe import violations
from support.page import SCREENS, source_of, write

KERNEL = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from neuronxcc.nki.typing import tensor

@nki.jit
def shifted(a: tensor[200, 96]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    ip, jf = nl.mgrid[0:128, 0:96]
    for i in nl.affine_range(2):
        rows = i * 128 + ip
        x = nl.load(a[rows, jf], mask=(rows < 200))
        nl.store(out[rows, jf], value=x + 1.0, mask=(rows < 200))
    return out
"""
HELPER = """import neuronxcc.nki.language as nl

def twice(t):
    return nl.add(t, t)
"""
REASON = "twice is no kernel, and no kernel here calls it in a way that is upgraded: what its parameters are is not known"


def test_an_upgrade_is_shown_before_it_replaces_the_text_and_is_taken_back(page):
    offer = page.locator("#source-tools").get_by_role("button", name="upgrade", exact=True)
    left = page.get_by_role("button", name="to be done by hand")
    expect(offer).to_be_hidden()  # an example of another kind
    write(page, KERNEL)
    expect(offer).to_be_visible()
    page.get_by_role("button", name="+ file").click()
    page.keyboard.press("Enter")
    write(page, HELPER)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Find an action")).to_be_focused()
    page.keyboard.type("upgrade nki")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Upgrade from NKI beta 1")
    expect(dialog.get_by_role("status")).to_have_text("1 place is left to be done by hand, below a comment.")
    expect(dialog.get_by_role("button", name="Replace the text")).to_be_focused()
    expect(dialog.locator(".diff-plus .diff-word, .cm-line.diff-plus").first).to_be_visible()
    page.screenshot(path=SCREENS / "upgrade.png")
    assert violations(page, "upgrade") == []
    dialog.get_by_role("combobox", name="File").select_option(label="helper.py")
    dialog.get_by_role("button", name=f"line 4: {REASON}").click()
    expect(dialog.locator(".cm-line", has_text=REASON)).to_be_visible()
    page.keyboard.press("Escape")
    assert source_of(page) == HELPER
    offer.click()
    dialog.get_by_role("button", name="Replace the text").click()
    expect(left).to_have_text("1 by hand")  # the caret is there, in the file that has it
    expect(offer).to_be_hidden()
    new_helper = source_of(page)
    assert new_helper == HELPER.replace("neuronxcc.", "").replace("    return", f"    # nkx: not upgraded: {REASON}\n    return")
    page.get_by_role("tab", name="kernel.py").click()
    expect(page.locator("#source-editor")).to_contain_text("import nki.isa as nisa")
    new = source_of(page)
    assert "neuronxcc" not in new and "mgrid" not in new and "nl.ds(i * 128, min(128, 200 - i * 128))" in new
    left.click()
    expect(page.locator("#source-editor")).to_contain_text(REASON)
    page.keyboard.press("Control+z")
    expect(offer).to_be_visible()
    assert source_of(page) == HELPER
    page.get_by_role("tab", name="kernel.py").click()
    page.locator("#source-editor .cm-content").focus()
    page.keyboard.press("Control+z")
    expect(page.locator("#source-editor")).to_contain_text("mgrid")
    assert source_of(page) == KERNEL
    # what is no Python is said, and changes nothing
    write(page, KERNEL + "def f(:\n")
    offer.click()
    expect(dialog.get_by_role("status")).to_contain_text("could not be rewritten. kernel.py, line 15")
    expect(dialog.get_by_role("button", name="Replace the text")).to_be_hidden()
    page.keyboard.press("Escape")
    assert source_of(page) == KERNEL + "def f(:\n"
