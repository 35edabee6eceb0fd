"""NKI kernels on the page: pasted and followed, refused with a remedy, run, helped with while they are written."""
import re

import pytest
from playwright.sync_api import expect

from support.page import SCREENS, compile_api, compiled, ir_lines, open_stage, source_of, source_spot, write
from support.source_map import text_of

KERNEL = """import nki
import nki.isa as isa
import nki.language as ln

@nki.jit
def add_bias(a{0}, bias{1}):
    out = ln.ndarray(a.shape, a.dtype, buffer=ln.shared_hbm)
    row = ln.ndarray((128, a.shape[1]), a.dtype)
    isa.dma_copy(dst=row, src=bias.broadcast(0, 128))
    for i in ln.affine_range(a.shape[0] // 128):
        t = ln.load(a[ln.ds(i * 128, 128), :])
        isa.tensor_tensor(dst=t, data1=t, data2=row, op=ln.add)
        ln.store(out[ln.ds(i * 128, 128), :], t)
    return out
"""
SHAPED = KERNEL.format(": ln.tensor[256, 512]", ": ln.tensor[1, 512]")
SUM = "isa.tensor_tensor(dst=t, data1=t, data2=row, op=ln.add)"


def write_kernel(page, source=SHAPED):
    write(page, source)
    expect(page.locator("#signature")).to_contain_text("add_bias")
    compiled(page)


def test_a_pasted_kernel_is_followed_from_a_call_to_the_instructions_of_the_engines(page, server):
    write_kernel(page)
    stages = compile_api(server, SHAPED)["kernels"][0]["stages"]
    page.mouse.click(*source_spot(page, SUM, 6))
    expect(page.locator("#source-editor .lit-selected").first).to_be_visible()
    for stage, text in ((stages[1], "nisa.tensor_tensor(dst=t, data1=t, data2=row, op=nl.add)"), (stages[-1], "%sbuf")):
        open_stage(page, stage["name"])
        expect(page.locator("#ir-viewer .lit-best").first).to_contain_text(text)
    best = page.locator("#ir-viewer .lit-best").first
    expect(best).to_contain_text("+")
    assert best.text_content().startswith("V ")  # the Vector engine adds


def test_the_calls_of_the_first_stage_have_cards_and_one_form(page):
    write_kernel(page)
    open_stage(page, "nki-trace")
    expect(page.get_by_role("button", name="full text", exact=True)).to_be_hidden()
    page.locator("#ir-viewer .cm-line", has_text="nisa.tensor_tensor").first.click(position={"x": 70, "y": 6})
    page.keyboard.press("i")
    card = page.locator(".cm-tooltip .card")
    expect(card).to_contain_text("dst = data1 op data2")
    expect(card).to_contain_text("vector (here), gpsimd")
    expect(card).to_contain_text("read, in SBUF or PSUM")
    expect(card).to_contain_text("2N cycles")
    page.keyboard.press("Escape")
    page.locator("#ir-viewer .cm-line", has_text="def add_bias").click(position={"x": 70, "y": 6})
    page.keyboard.press("i")
    expect(card).to_contain_text("The kernel, with the shapes and types of its parameters")


def test_what_the_analysis_says_stands_beside_the_code(page, server):
    write_kernel(page)
    open_stage(page, "nki-ast")
    rows = ir_lines(page)
    row = next(r for r in rows if "isa.tensor_tensor" in r)
    assert row.index("  # instruction: Vector") == 46 and "…" in row
    page.locator("#ir-viewer .cm-content").focus()
    page.keyboard.press("r")
    expect(page.locator("#ir-viewer .cm-line", has_text=SUM)).to_have_count(1)
    page.keyboard.press("r")
    expect(page.locator("#ir-viewer .cm-line", has_text=SUM)).to_have_count(0)


def test_a_wrong_call_is_marked_at_its_expression_with_what_to_do_and_corrected(page, server):
    wrong = SHAPED.replace("isa.tensor_tensor(", "isa.tensor_tenser(")
    [diagnostic] = [d for d in compile_api(server, wrong)["diagnostics"] if d["severity"] == "error"]
    write(page, wrong)
    item = page.locator("#problems .problem-error")
    expect(item).to_have_attribute("data-code", "nki-unknown-api")
    expect(item).to_contain_text("did you mean tensor_tensor?")
    expect(page.locator("#source-editor .cm-lintRange-error").first).to_be_visible()
    marked = "".join(page.locator("#source-editor .cm-lintRange-error").all_text_contents())
    assert marked == text_of(wrong, diagnostic["range"]) and marked.startswith("isa.tensor_tenser")
    expect(page.locator('#stages .stage[data-key="nki-trace"]')).to_contain_text("✕")
    write(page, SHAPED)
    compiled(page)
    expect(item).to_have_count(0)


def test_shapes_come_from_the_form_if_the_source_has_none(page):
    write(page, KERNEL.format("", ""))
    form = page.locator("#inputs")
    expect(form).to_be_visible()
    expect(page.locator('#problems [data-code="no-shapes"]')).to_contain_text("nl.tensor[128, 512]")
    assert [form.get_by_label(f"Name of input {i}").input_value() for i in (1, 2)] == ["a", "bias"]
    form.get_by_label("Shape of input 1").fill("128, 64")
    form.get_by_label("Shape of input 2").fill("1, 64")
    form.get_by_role("button", name="Use these").click()
    compiled(page)
    expect(page.locator("#signature")).to_contain_text("a f32[128×64], bias f32[1×64]")
    expect(page.locator("#stages .stage")).to_have_count(7)


def test_a_run_shows_the_engines_and_equals_the_calls(page):
    write_kernel(page)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-verdict b")).to_contain_text("µs, bound by")
    expect(page.locator("#run-verdict")).to_contain_text("equals NumPy")
    lanes = page.locator(".use > span:first-child").all_text_contents()
    assert "vector" in lanes and any(lane.startswith("q") for lane in lanes)
    page.screenshot(path=SCREENS / "nki-run.png")


@pytest.fixture
def editor(page):
    """The kernel, with the caret in an empty line of its loop."""
    page.locator("#source-editor .cm-content").focus()
    with page.expect_response("**/api/v1/nki"):
        write(page, SHAPED)
    compiled(page)
    expect(page.locator("#signature")).to_contain_text("add_bias")
    page.mouse.click(*source_spot(page, SUM, 3))
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    return page


def test_names_are_completed_under_the_aliases_of_the_imports_with_signatures_and_tips(editor):
    options = editor.locator(".cm-tooltip-autocomplete .cm-completionLabel")
    editor.keyboard.type("isa.tensor_s")
    expect(options.first).to_have_text("tensor_scalar")
    expect(editor.locator(".cm-completionInfo")).to_contain_text("dst = (data op0 operand0) op1 operand1")
    editor.screenshot(path=SCREENS / "nki-complete.png")
    editor.keyboard.type("calar(ds")
    signature = editor.locator(".signature")
    expect(signature).to_contain_text("nisa.tensor_scalar(dst, data, op0, operand0=None, reverse0=None")
    expect(signature.locator("b")).to_have_text("dst")
    editor.keyboard.type("t=t, da")
    expect(options.first).to_have_text("data=")
    editor.keyboard.type("ta=t, op0=ln.mu")
    expect(options.first).to_have_text("multiply")
    expect(signature.locator("b")).to_have_text("op0")
    editor.keyboard.type("ltiply, operand0=ln.tile_size.gemm_m")
    expect(options.first).to_have_text("gemm_moving_fmax")
    assert "isa.tensor_scalar(dst=t, data=t, op0=ln.multiply, operand0=ln.tile_size.gemm_m)" in source_of(editor)


@pytest.mark.nightly
def test_tensors_have_the_methods_of_nki(editor):
    options = editor.locator(".cm-tooltip-autocomplete .cm-completionLabel")
    editor.keyboard.type("u = t.p")
    expect(options.first).to_have_text("permute")
    editor.keyboard.type("ermute((0, 1")  # the parenthesis alone may come before the editor has read the name
    expect(editor.locator(".signature")).to_contain_text("tensor.permute(dims)")


@pytest.mark.nightly
def test_a_call_in_the_source_has_a_card(page):
    write_kernel(page)
    page.mouse.click(*source_spot(page, "isa.tensor_tensor", 6))
    page.mouse.move(2, 2)
    page.keyboard.press("Control+F8")
    tip = page.locator(".source-tip .card")
    expect(tip).to_contain_text("nisa.tensor_tensor")
    expect(tip).to_contain_text("at most 128 partitions")
    page.keyboard.press("Escape")
    page.mouse.click(*source_spot(page, "ln.load", 4))
    page.keyboard.press("Control+F8")
    expect(tip).to_contain_text("A copy in SBUF of a part of HBM.")


def test_the_examples_of_nki_have_a_group_of_their_own(page):
    groups = page.locator("#example optgroup")
    expect(groups).to_have_count(3)
    assert [g.get_attribute("label") for g in groups.all()] == ["NumPy", "NKI", "Lessons"]
    titles = groups.nth(1).locator("option").all_text_contents()
    assert len(titles) == 12 and re.match("Vector addition", titles[0]) and re.match("Flash attention", titles[-1])
    page.locator("#example").select_option(label=titles[-1])
    expect(page.locator("#signature")).to_contain_text("flash_attention(q_t bf16[64×256]")
    compiled(page)
    open_stage(page, "nki-canonicalize")
    assert any("nisa.nc_transpose" in line for line in ir_lines(page))


BETA = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt

@nki.jit
def doubled(a: nt.tensor[128, 512]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    nl.store(out, nl.multiply(t, 2.0))
    return out
"""


def test_a_kernel_of_beta_1_compiles_and_is_helped_with_its_own_signatures(page):
    page.locator("#source-editor .cm-content").focus()
    with page.expect_response("**/api/v1/nki"):
        write(page, BETA)
    expect(page.locator("#signature")).to_contain_text("doubled")
    compiled(page)
    page.mouse.click(*source_spot(page, "t = nl.load(a)", 3))
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.keyboard.type("u = nisa.tensor_tensor(t")
    expect(page.locator(".signature")).to_contain_text("nisa.tensor_tensor(data1, data2, op, *, dtype=None, mask=None")
    page.keyboard.type(", t, op=nl.par")
    expect(page.locator(".cm-tooltip-autocomplete .cm-completionLabel").first).to_have_text("par_dim")
