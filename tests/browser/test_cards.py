"""Cards: what an operation does, its fields, engine, limits and cost, by hovering and by a key."""
import base64
import json
import re
import subprocess

import pytest
import requests
from playwright.sync_api import expect

from support.page import SCREENS, open_stage, write
from support.paths import EXAMPLES, NKX, ROOT

TIP = ".cm-tooltip .card"


def row(page, text):
    return page.locator("#ir-viewer .cm-line", has_text=text)


def at(page, text):
    """Puts the caret on the row."""
    row(page, text).first.click(position={"x": 70, "y": 6})


def test_a_key_opens_the_card_of_the_carets_row_and_escape_closes_it(page):
    open_stage(page, "linalg-to-nisa")
    at(page, "%psum +=")
    page.keyboard.press("i")
    card = page.locator(TIP)
    expect(card).to_contain_text("nisa.matmul")
    expect(card).to_contain_text("sum over k of stationary(k, m) * moving(k, n)")
    expect(card).to_contain_text("tensor (here)")
    expect(card).to_contain_text("N at most 512 of moving; the result stays within one PSUM bank")
    expect(card).to_contain_text("max(N, min(64, M)) cycles")
    expect(card).to_contain_text("well founded; A2; TKF")
    page.screenshot(path=SCREENS / "card.png")
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)
    expect(row(page, "%psum +=")).to_have_class(re.compile("lit-selected"))  # the first Escape closes the card only
    page.keyboard.press("i")
    expect(card).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(card).to_have_count(0)


def test_the_fields_are_a_tree(page):
    open_stage(page, "linalg-to-nisa")
    at(page, "%psum +=")
    page.keyboard.press("i")
    field = page.locator(f"{TIP} details", has_text="stationary")
    expect(field.get_by_text("128 partitions, 128 free")).to_be_hidden()
    field.locator("summary").click()
    expect(field.get_by_text("128 partitions, 128 free")).to_be_visible()
    expect(field.get_by_text("d0, %j, %i, d1")).to_be_visible()
    expect(page.locator(TIP)).to_contain_text("psum_zero_region")


def test_hovering_opens_the_card_and_the_pointer_may_move_onto_it(page):
    open_stage(page, "linalg-to-nisa")
    row(page, "← max(").hover(position={"x": 80, "y": 6})
    card = page.locator(TIP)
    expect(card).to_contain_text("nisa.tensor_scalar_arith")
    card.hover()
    expect(card).to_be_visible()
    page.keyboard.press("Escape")
    expect(card).to_have_count(0)


@pytest.mark.parametrize("stage, line, name, sentence", [
    ("trace", "dot(", "dot", "A product of matrices"),
    ("hlo-to-linalg", "linalg.matmul", "linalg.matmul", "The product of two matrices, added to outs."),
    ("canonicalize-loop-step", "scf.for", "scf.for", "A loop that counts"),
    ("engine-programs", "‖ wait", "nisa.wait", "The stream goes on when the semaphore"),
])
def test_every_dialect_has_cards(page, stage, line, name, sentence):
    open_stage(page, stage)
    at(page, line)
    page.keyboard.press("i")
    expect(page.locator(TIP)).to_contain_text(sentence)
    expect(page.locator(f"{TIP} h3")).to_have_text(name)


def test_every_operation_of_the_examples_has_a_sentence(server):
    answer = requests.get(f"{server}/api/v1/instructions", timeout=30).json()
    known = {o["name"] for o in answer["instructions"] + answer["operations"]}
    assert all(o["what"].endswith((".", ")")) for o in answer["instructions"] + answer["operations"])
    missing = set()
    for example in EXAMPLES:
        done = subprocess.run([NKX, "compile", example, "--quiet", "--json", "-"], capture_output=True, timeout=120, check=True)
        for kernel in json.loads(done.stdout)["kernels"]:
            for stage in kernel["stages"]:
                prefix = "hlo." if stage["dialect"] == "hlo" else ""
                missing |= {prefix + op for op in stage["op_counts"]} - known
    assert missing == set()


def test_every_opcode_and_operation_of_the_front_end_has_a_sentence(server):
    answer = requests.get(f"{server}/api/v1/instructions", timeout=30).json()
    known = {o["name"] for o in answer["instructions"] + answer["operations"]}
    opcodes = re.findall(r'^HLO_OP\(\w+, "([^"]+)"', (ROOT / "compiler/hlo/opcodes.def").read_text(), re.M)
    assert {f"hlo.{o}" for o in opcodes} - known == set()
    for op in requests.get(f"{server}/api/v1/ops", timeout=30).json()["ops"]:
        assert {f"nisa.{n}" for n in op["nisa"]} | set(op["linalg"]) <= known, op["name"]


# As torch-xla and JAX write the call of an NKI kernel: the configuration is JSON in base64.
NATIVE = {"func_name": "scaled", "kernel_format": "bir", "klir_binary": {"binary": "/var/tmp/k.bir", "input_names": ["a", "b"], "aliases": []}, "has_collectives": False}


@pytest.mark.parametrize("stage, where", [("trace", "custom-call("), ("hlo-to-linalg", "func.func private")])
def test_the_configuration_of_a_called_nki_kernel_is_a_tree(page, stage, where):
    config = base64.b64encode(json.dumps(NATIVE).encode()).decode()
    write(page, f"""HloModule calls

ENTRY main {{
  a = f32[128,64]{{1,0}} parameter(0)
  b = f32[128,64]{{1,0}} parameter(1)
  ROOT k = f32[128,64]{{1,0}} custom-call(a, b), custom_call_target="AwsNeuronCustomNativeKernel", backend_config="{config}"
}}
""")
    expect(page.locator("#language")).to_have_value("hlo")
    open_stage(page, stage)
    expect(row(page, where)).to_have_count(1)
    at(page, where)
    page.keyboard.press("i")
    tree = page.locator(f"{TIP} .fields").first
    for label in ("attributes", "nkipy.custom_call", "backend_config", "klir_binary", "input_names"):
        if label != "nkipy.custom_call" or stage != "trace":
            tree.locator("summary", has_text=label).first.click()
    expect(tree.get_by_text('"scaled"')).to_be_visible()
    expect(tree.get_by_text('"/var/tmp/k.bir"')).to_be_visible()
    expect(tree.get_by_text('"b"', exact=True)).to_be_visible()


INSIDE = """import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def scaled(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x, y = nl.load(a), nl.load(b)
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
    nl.store(out, x)
    return out
"""


def test_a_called_nki_kernel_is_entered_if_a_file_defines_it(page):
    config = base64.b64encode(json.dumps(NATIVE).encode()).decode()
    write(page, f"""HloModule calls

ENTRY main {{
  a = f32[128,64]{{1,0}} parameter(0)
  b = f32[128,64]{{1,0}} parameter(1)
  ROOT k = f32[128,64]{{1,0}} custom-call(a, b), custom_call_target="AwsNeuronCustomNativeKernel", backend_config="{config}"
}}
""")
    expect(page.locator("#language")).to_have_value("hlo")
    open_stage(page, "trace")
    at(page, "custom-call(")
    page.keyboard.press("i")
    expect(page.locator(f"{TIP} .inside")).to_have_text("The NKI kernel scaled cannot be entered: HLO has only the path of its code, /var/tmp/k.bir, on the machine that made it. Add the Python file that defines it to the files, and it can.")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="+ file").click()
    write(page, INSIDE)
    expect(page.locator("#kernel option")).to_have_count(2)
    open_stage(page, "trace")
    at(page, "custom-call(")
    page.keyboard.press("i")
    page.locator(TIP).get_by_role("button", name="Enter scaled").click()
    expect(page.locator(".stage[data-key=nki-trace]")).to_be_visible()
    open_stage(page, "nki-trace")
    expect(row(page, "def scaled(")).to_have_count(1)
