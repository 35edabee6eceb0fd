"""NKI kernels that HLO calls, as torch-xla and JAX write such calls: with the kernel's source the module is compiled as a whole, and the
kernel's own stages follow; without it the call stays, and a note says what is missing."""
import base64
import json
import subprocess
import textwrap

import numpy as np
import pytest

from support import nki_checks, warm
from support.paths import NKX

KERNELS = """import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def scaled(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x, y = nl.load(a), nl.load(b)
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.subtract)
    nl.store(out, x)
    return out


@nki.jit
def both(a, b):
    sums = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    products = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x, y = nl.load(a), nl.load(b)
    z = nl.add(x, y)
    nl.store(sums, z)
    nl.store(products, nl.multiply(x, y))
    return sums, products


@nki.jit
def added(a: nt.mutable_tensor, b):
    x, y = nl.load(a), nl.load(b)
    nl.store(a, nl.add(x, y))
    return a


@nki.jit
def split(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rows = a.shape[0] // nl.num_programs()
    part = nl.ds(nl.program_id(0) * rows, rows)
    x, y = nl.load(a[part]), nl.load(b[part])
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.subtract)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=float(nl.program_id(0)))
    nl.store(out[part], x)
    return out
""".replace("import nki\n", "import nki\nimport neuronxcc.nki.typing as nt\n", 1)
T = "f32[128,64]{1,0}"


def call(name, **more):
    config = {"func_name": name, "kernel_format": "bir", "kernel_version": 1, "grid": [], "has_collectives": False,
              "klir_binary": {"binary": "/var/tmp/k.bir", "input_names": ["a", "b"], "output_names": ["out"], "aliases": []}, **more}
    text = base64.b64encode(json.dumps(config).encode()).decode()
    return f'custom_call_target="AwsNeuronCustomNativeKernel", backend_config="{text}"'


def module(body):
    return f"HloModule calls\n\nENTRY main {{\n  a = {T} parameter(0)\n  b = {T} parameter(1)\n{body}}}\n"


def compiled(tmp_path, body, *options, files=True, status=0):
    (tmp_path / "k.hlo").write_text(module(body))
    (tmp_path / "kernels.py").write_text(KERNELS)
    run = warm.text("compile", tmp_path / "k.hlo", *([tmp_path / "kernels.py"] if files else []), "--json", tmp_path / "r.json", "--quiet", *options)
    assert run.returncode == status, run.stdout + run.stderr
    return json.loads((tmp_path / "r.json").read_text()), run.stderr


ONE = f"  s = {T} multiply(a, b)\n  k = {T} custom-call(a, s), {call('scaled')}\n  ROOT r = {T} add(k, a)\n"
TWO = f"""  k = ({T}, {T}) custom-call(a, b), {call('both')}
  x = {T} get-tuple-element(k), index=0
  y = {T} get-tuple-element(k), index=1
  z = {T} custom-call(x, y), {call('scaled')}
  w = {T} custom-call(z, b), {call('scaled')}
  ROOT r = {T} add(w, y)
"""
IN_PLACE = f"""  c = {T} add(a, b)
  k = {T} custom-call(c, b), {call('added')}, output_to_operand_aliasing={{{{}}: (0, {{}})}}
  ROOT r = {T} multiply(k, b)
"""
MEANS = {"one": (ONE, lambda a, b: a - a * b + a), "several": (TWO, lambda a, b: (a + b) - a * b - b + a * b), "in-place": (IN_PLACE, lambda a, b: (a + b + b) * b)}


@pytest.mark.parametrize("what", MEANS)
def test_with_its_source_the_module_computes_what_numpy_computes(what, tmp_path):
    body, means = MEANS[what]
    result, _ = compiled(tmp_path, body, "--check")
    outer, *inner = result["kernels"]
    assert [s["check"]["status"] for s in outer["stages"]] == ["pass"] * 54 and "nki." in outer["stages"][0]["text"]
    names = {"one": ["scaled"], "several": ["both", "scaled"], "in-place": ["added"]}[what]
    assert [k["name"] for k in inner] == names and all(k["pipeline"] == "nki" and len(k["stages"]) == 7 for k in inner)
    assert all(s["check"]["status"] == "pass" for k in inner for s in k["stages"]), "beside the kernel's own run"
    assert "tensor_tensor" in outer["stages"][48]["text"], "the kernel's instructions are in the module's"
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 128, 64)).astype(np.float32)
    np.savez(tmp_path / "in.npz", a=a, b=b)
    subprocess.run([NKX, "run", tmp_path / "k.hlo", tmp_path / "kernels.py", "--kernel", "calls", "--inputs", tmp_path / "in.npz", "--save-outputs", tmp_path / "out.npz"], capture_output=True, check=True)
    (got,) = np.load(tmp_path / "out.npz").values()
    np.testing.assert_allclose(got, means(a, b), rtol=1e-5, atol=1e-6)
    result, _ = compiled(tmp_path, body, "--kernel", names[0])
    assert [k["name"] for k in result["kernels"]] == names[:1], "the kernel alone"


HEAD, SCALED = KERNELS.partition("@nki.jit")[0], "@nki.jit\n" + KERNELS.split("@nki.jit\n")[1]
INDENTED = textwrap.indent(SCALED, "  ")


@pytest.mark.parametrize("source, expected", [
    (SCALED.replace("def scaled(a, b)", "def  scaled (\n    a, b)"), ["scaled"]), (f"if True:\n{INDENTED}", ["scaled"]),
    (SCALED.replace("scaled", "other") + "scaled = other\n", ["other"]), (f"class Kernels:\n{INDENTED}", []),
    (f"text = '''\n{SCALED}'''\n", [])])
def test_the_file_of_a_kernel_is_the_one_that_defines_it_in_any_legal_form(source, expected, tmp_path):
    (tmp_path / "k.hlo").write_text(module(ONE))
    (tmp_path / "text.py").write_text(f"text = '''\n{SCALED}'''\n")
    (tmp_path / "kernels.py").write_text(HEAD + source)
    warm.text("compile", tmp_path / "k.hlo", tmp_path / "text.py", tmp_path / "kernels.py", "--json", tmp_path / "r.json", "--quiet")
    _, *inner = json.loads((tmp_path / "r.json").read_text())["kernels"]
    assert [k["name"] for k in inner] == expected


def assert_places_exist(result):
    """No diagnostic is about a line that the kernel's file does not have: that of the call which is made for the record."""
    for d in result["diagnostics"]:
        places = [d.get("range"), *d.get("callers", [])]
        assert all(p is None or p["line"] <= KERNELS.count("\n") for p in places), d


@pytest.mark.parametrize("grid", [[2], 2, [1], []], ids=str)
def test_a_call_with_a_grid_is_a_launch(grid, tmp_path):
    """The second of two instances adds 1 to its rows."""
    n = 2 if grid in (2, [2]) else 1
    body = f"  k = {T} custom-call(a, b), {call('split', grid=grid)}\n  ROOT r = {T} multiply(k, b)\n"
    result, _ = compiled(tmp_path, body, "--check")
    outer, inner = result["kernels"]
    assert inner["name"] == "split" and nki_checks.all_pass(inner) and {s["check"]["status"] for s in outer["stages"]} == {"pass"}
    assert inner["stages"][1].get("grid", {}).get("shape") == ([2] if n == 2 else None)
    assert_places_exist(result)
    assert [d["code"] for d in result["diagnostics"]] == ["nki-one-core"] * (n - 1)
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 128, 64)).astype(np.float32)
    np.savez(tmp_path / "in.npz", a=a, b=b)
    subprocess.run([NKX, "run", tmp_path / "k.hlo", tmp_path / "kernels.py", "--kernel", "calls", "--inputs", tmp_path / "in.npz", "--save-outputs", tmp_path / "out.npz"], capture_output=True, check=True)
    (got,) = np.load(tmp_path / "out.npz").values()
    number = np.repeat(np.arange(n, dtype=np.float32), 128 // n)[:, None]
    np.testing.assert_allclose(got, (a - b + number) * b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("grid", [[0, 2], [-1, 1], ["x", 2], [[2], 2], [3000000000], 10**12], ids=str)
def test_a_grid_that_no_launch_has_is_refused_at_the_call(grid, tmp_path):
    result, _ = compiled(tmp_path, f"  ROOT k = {T} custom-call(a, b), {call('split', grid=grid)}\n", status=1)
    assert {d["code"] for d in result["diagnostics"] if d["severity"] == "error"} >= {"nki-grid"}, result["diagnostics"]
    assert_places_exist(result)


def test_without_its_source_the_call_stays_and_a_note_says_why(tmp_path):
    result, _ = compiled(tmp_path, ONE, files=False, status=1)
    (kernel,) = result["kernels"]
    (note,) = [d for d in result["diagnostics"] if d["code"] == "native-kernel"]
    assert note["severity"] == "note" and "k calls the NKI kernel scaled, of which HLO has only the path of its code: /var/tmp/k.bir" in note["message"]
    assert "AwsNeuronCustomNativeKernel" in kernel["stages"][0]["text"] and "add the Python file" in note["hint"]


def test_a_source_that_gives_something_else_is_not_taken(tmp_path):
    result, _ = compiled(tmp_path, f"  k = f32[64,64]{{1,0}} custom-call(a, b), {call('scaled')}\n  ROOT r = f32[64,64]{{1,0}} add(k, k)\n", status=1)
    (warning,) = [d for d in result["diagnostics"] if d["code"] == "native-kernel"]
    assert warning["severity"] == "warning" and "scaled of" in warning["message"] and "gives other results" in warning["message"]
    assert "AwsNeuronCustomNativeKernel" in result["kernels"][0]["stages"][0]["text"]


@pytest.mark.parametrize("config", ['backend_config="not base64"', 'backend_config="e30="', 'backend_config="W10="', ""])
def test_a_call_that_names_no_kernel_has_a_note(config, tmp_path):
    text = 'custom_call_target="AwsNeuronCustomNativeKernel"' + (f", {config}" if config else "")
    result, _ = compiled(tmp_path, f"  ROOT k = {T} custom-call(a, b), {text}\n", status=1)
    assert ["an NKI kernel without a name" in d["message"] for d in result["diagnostics"] if d["code"] == "native-kernel"] == [True]


def test_what_the_vendors_compiler_gets_is_the_call_as_it_was(tmp_path):
    compiled(tmp_path, ONE, "--dump-dir", tmp_path / "dump")
    assert "AwsNeuronCustomNativeKernel" in (tmp_path / "dump/kernel0/hlo.txt").read_text()
