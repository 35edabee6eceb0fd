"""Kernels that are not Python, kernels from files, and what the page tells of NumPy's functions."""
import base64
import re

import pytest
import requests
from playwright.sync_api import expect

from support.page import compile_api, compiled, ir_lines, open_stage, source_of, write

HLO = """HloModule scale

ENTRY main {
  x = f32[4,8]{1,0} parameter(0)
  e = f32[4,8]{1,0} exponential(x)
  ROOT r = f32[4,8]{1,0} multiply(e, x)
}
"""
MLIR = """func.func @halve(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %half = arith.constant dense<0.5> : tensor<4x8xf32>
  %out = tensor.empty() : tensor<4x8xf32>
  %r = linalg.mul ins(%x, %half : tensor<4x8xf32>, tensor<4x8xf32>) outs(%out : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
"""


@pytest.mark.parametrize("source, language, file, stage", [(HLO, "hlo", "kernel.hlo", "trace"), (MLIR, "mlir", "kernel.mlir", "canonicalize")])
def test_the_language_of_a_pasted_text_is_recognized(page, source, language, file, stage):
    write(page, source)
    expect(page.locator("#language")).to_have_value(language)
    expect(page.locator("#source-title")).to_have_text(file)
    compiled(page)
    open_stage(page, stage)
    assert page.locator("#source-editor .ir-type").count() > 2, "the source is coloured as what it is"
    write(page, "import numpy as np\ndef f(x):\n    return np.exp(x)\n")
    expect(page.locator("#language")).to_have_value("nkipy")
    expect(page.locator("#source-editor .py-keyword").first).to_have_text("import")


@pytest.mark.parametrize("source, name, line, becomes", [(HLO, "scale", "exponential", "← exp("), (MLIR, "halve", "linalg.mul", " * ")])
def test_lines_are_tied_to_the_stages(page, source, name, line, becomes):
    write(page, source)
    expect(page.locator("#signature")).to_contain_text(name)
    compiled(page)
    open_stage(page, "linalg-to-nisa")
    page.locator("#source-editor .cm-line", has_text=line).click(position={"x": 60, "y": 8})
    expect(page.locator("#ir-viewer .lit-selected").first).to_be_visible()
    assert any(becomes in line for line in ir_lines(page, "lit-selected"))


def test_a_link_keeps_the_language(new_page, server, page):
    write(page, MLIR)
    expect(page.locator("#language")).to_have_value("mlir")
    compiled(page)
    expect(page).to_have_url(re.compile("code="))
    other = new_page()
    other.goto(page.url)
    compiled(other)
    expect(other.locator("#language")).to_have_value("mlir")
    assert source_of(other).strip() == MLIR.strip()


@pytest.mark.nightly
def test_a_serialized_module_is_opened_as_text(page, server):
    artifacts = compile_api(server, "import numpy as np\ndef f(x):\n    return np.exp(x)\n",
                            inputs=[{"name": "x", "shape": [4, 8], "dtype": "float32"}], options={"artifacts": True})["artifacts"]
    proto = next(a for a in artifacts if a["name"].endswith(".pb"))
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="open…").click()
    chooser.value.set_files({"name": "model.pb", "mimeType": "application/octet-stream", "buffer": base64.b64decode(proto["data"])})
    expect(page.locator("#language")).to_have_value("hlo")
    compiled(page)
    assert "exponential(" in source_of(page)


@pytest.mark.nightly
def test_a_file_that_is_not_a_kernel_is_not_opened(page):
    before = source_of(page)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="open…").click()
    chooser.value.set_files({"name": "cat.pb", "mimeType": "application/octet-stream", "buffer": b"\x89PNG\xff\xff\x00\x01"})
    expect(page.locator(".toast")).to_contain_text("cat.pb cannot be opened")
    assert source_of(page) == before


@pytest.mark.parametrize("text, name, becomes", [
    ("np.matmul", "np.matmul", ["dot", "linalg.matmul", "matmul"]), ("np.maximum", "np.maximum", ["maximum", "linalg.max"]),
])
def test_hovering_a_call_shows_what_it_becomes(page, server, text, name, becomes):
    # the editor colours words, each in an element of its own, a moment after it shows them
    box = page.wait_for_function(
        """(text) => { const walk = document.createTreeWalker(document.querySelector('#source-editor .cm-content'), NodeFilter.SHOW_TEXT);
             const word = text.split('.')[1];
             while (walk.nextNode()) { if (walk.currentNode.data !== word) continue;
               const r = document.createRange(); r.setStart(walk.currentNode, 1); r.setEnd(walk.currentNode, 2);
               const b = r.getBoundingClientRect(); return {x: b.x + b.width / 2, y: b.y + b.height / 2}; } }""", arg=text).json_value()
    page.mouse.move(box["x"], box["y"] + 1)
    page.mouse.move(box["x"], box["y"])
    tip = page.locator(".operation-tip")
    expect(tip).to_contain_text(name)
    ops = {n: o for o in requests.get(f"{server}/api/v1/ops").json()["ops"] for n in o["numpy"]}
    for word in becomes:
        assert word in ops[name]["hlo"] + ops[name]["linalg"] + ops[name]["nisa"]
        expect(tip).to_contain_text(word)
