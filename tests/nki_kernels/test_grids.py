"""Launches of NKI kernels with a grid: what program_id gives, what instances share, what the result says of them, and what is
refused."""
import json

import jsonschema_rs
import numpy as np
import pytest

from support import compiler, nki_checks, warm
from support.nki_kernels import HEAD
from support.paths import ROOT
from support.runs import simulated

ADD = HEAD + """
@nki.jit
def add(a, b):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    rows = a.shape[0] // nl.num_programs()
    part = nl.ds(nl.program_id(0) * rows, rows)
    x, y = nl.load(a[part]), nl.load(b[part])
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
    nl.store(out[part], x)
    return out
"""

# every row is written by one instance, and each instance adds its number
NUMBERS = HEAD + """
@nki.jit
def numbers(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    assert nl.program_ndim() == 1 and nl.num_programs(axes=(0,)) == (nl.num_programs(0),)
    for row in range(nl.program_id(0), a.shape[0], nl.num_programs(0)):
        x = nl.load(a[row:row + 1])
        nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=float(100 * nl.program_id(0)))
        nl.store(out[row:row + 1], x)
    return out
"""

SAME = HEAD + """
@nki.jit
def same(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    nl.store(out, x)
    return out
"""


def launched(source, name, grid, shapes):
    arrays = ", ".join(f"np.ones({shape}, np.float32)" for shape in shapes)
    return f"{source}\n{name}[{grid}]({arrays})\n"


def errors(source):
    return [d for d in compiler.compile(source)["diagnostics"] if d["severity"] == "error"]


@pytest.mark.parametrize("source, name, shapes", [(ADD, "add", [(128, 64)] * 2), (NUMBERS, "numbers", [(6, 32)]), (SAME, "same", [(8, 8)])],
                         ids=["add", "numbers", "same"])
def test_every_stage_of_a_launch_computes_what_its_instances_compute(source, name, shapes):
    result = compiler.compile(launched(source, name, 2, shapes), check=True)
    assert result["status"] == "ok", result["diagnostics"]
    [kernel] = result["kernels"]
    assert nki_checks.all_pass(kernel)


def test_each_instance_has_its_number_and_all_write_one_result(rng):
    a, b = (rng.uniform(-1, 1, (128, 64)).astype(np.float32) for _ in range(2))
    got = simulated(launched(ADD, "add", 2, [(128, 64)] * 2), {"a": a, "b": b})[0]
    np.testing.assert_array_equal(got["out"], a + b)
    a = rng.uniform(-1, 1, (6, 32)).astype(np.float32)
    got = simulated(launched(NUMBERS, "numbers", 2, [(6, 32)]), {"a": a})[0]
    np.testing.assert_allclose(got["out"], a + 100 * (np.arange(6) % 2)[:, None], atol=1e-4)


def test_the_result_says_where_the_calls_of_each_instance_are():
    result = compiler.compile(launched(ADD, "add", 2, [(128, 64)] * 2))
    [kernel] = result["kernels"]
    trace = compiler.stage(kernel, "nki-trace")
    lines = trace["text"].splitlines()
    assert (trace["grid"]["shape"], trace["grid"]["cores"]) == ([2], 2)
    first, second = trace["grid"]["instances"]
    assert first["id"] == [0] and second["id"] == [1] and lines[first["lines"][1]].strip() == "# core 1" and second["lines"][0] == first["lines"][1] + 2
    assert "a[0:64]" in "\n".join(lines[first["lines"][0] - 1:first["lines"][1]])
    part = lines[second["lines"][0] - 1:second["lines"][1]]
    assert any("a[64:128]" in line for line in part) and not any("a[0:64]" in line for line in part)
    assert lines[second["lines"][1]].strip() == "return out"
    assert [s["name"] for s in kernel["stages"] if "grid" in s] == ["nki-trace", "nki-canonicalize"]
    assert "grid" not in compiler.stage(compiler.compile(launched(ADD, "add", 1, [(128, 64)] * 2))["kernels"][0], "nki-trace")


def test_a_kernel_whose_name_has_a_launch_is_launched_so():
    for line, shape in (("add = add[2]", [2]), ("other = add[2]", None)):
        (kernel,) = compiler.compile(f"{ADD}\n{line}\n", "--input", "a=128x64:f32", "--input", "b=128x64:f32")["kernels"]
        assert compiler.stage(kernel, "nki-trace").get("grid", {}).get("shape") == shape


def test_one_instance_is_shown_alone():
    """With its own calls, and the tensors that all share; the stages after it have all instances."""
    source = launched(ADD, "add", 2, [(128, 64)] * 2)
    [whole] = compiler.compile(source)["kernels"]
    [kernel] = compiler.compile(source, "--instance", "1")["kernels"]
    trace = compiler.stage(kernel, "nki-trace")
    lines = trace["text"].splitlines()
    assert lines[1].strip() == "# instance (1) on core 1" and "a[64:128]" in trace["text"] and "a[0:64]" not in trace["text"]
    assert "buffer=nl.shared_hbm" in trace["text"] and lines[-1].strip() == "return out"
    first, second = trace["grid"]["instances"]
    assert trace["grid"]["shown"] == 1 and "lines" not in first and second["lines"][1] == len(lines) - 1
    for name in ("nki-reroll", "nki-to-nisa", "engine-programs"):
        assert compiler.stage(kernel, name)["text"] == compiler.stage(whole, name)["text"]


def test_an_instance_of_beta_1_shows_a_shared_tensor_once():
    source = launched("""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

@nki.jit
def copied(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rest = nl.zeros((2, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    rows = slice(64 * nl.program_id(0), 64 * nl.program_id(0) + 64)
    nl.store(out[rows, :], nl.load(a[rows, :]))
    return out, rest
""", "copied", 2, [(128, 64)])
    for instance in ("0", "1"):
        [kernel] = compiler.compile(source, "--instance", instance)["kernels"]
        text = compiler.stage(kernel, "nki-trace")["text"]
        assert [text.count(name) for name in ("out = nl.ndarray(", "rest = nl.zeros(", "nl.store(")] == [1, 1, 1], text


def test_an_instance_that_equals_another_is_named_so():
    [kernel] = compiler.compile(launched(SAME, "same", 2, [(8, 8)]), "--instance", "1")["kernels"]
    text = compiler.stage(kernel, "nki-trace")["text"]
    assert "# instance (1) makes the calls of instance (0), which has made them" in text and text.count("nl.store") == 1


def test_an_instance_that_there_is_not_is_a_warning():
    result = compiler.compile(launched(ADD, "add", 2, [(128, 64)] * 2), "--instance", "2")
    [d] = result["diagnostics"]
    assert (d["severity"], d["code"]) == ("warning", "nki-grid") and "the launch has 2" in d["message"]
    assert "a[0:64]" in compiler.stage(result["kernels"][0], "nki-trace")["text"]
    done = warm.run("compile", "-", "--instance", "x", input=ADD.encode())
    assert done.returncode == 2 and "--instance x: expected a number from 0 to 4095" in done.stderr.decode()


def test_instances_with_equal_calls_run_once():
    [kernel] = compiler.compile(launched(SAME, "same", 2, [(8, 8)]))["kernels"]
    trace = compiler.stage(kernel, "nki-trace")
    assert trace["grid"]["instances"][1] == {"id": [1], "core": 1, "same_as": 0} and trace["text"].count("nl.store") == 1


ONE_AFTER_ANOTHER = ("--target", "trn1")  # whose cores run no kernel together
GOES_ON = {
    "its own constant": ("""
    i = nl.program_id(0)
    y = nl.load(nl.shared_constant(np.full((8, 16), float(i + 1), np.float32)))
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
    nl.store(out, x)""", lambda a: a + 2),
    "sums in memory": ("""
    if nl.program_id(0) == 0:
        nl.store(out, x)
    rows = nl.ndarray((8, 1), nl.int32)
    nisa.iota(rows, [[1, 1]], 0, 1)
    nisa.dma_compute(out.vector_select(0, rows), [out.vector_select(0, rows), x], nl.add)""", lambda a: 3 * a),
    "sums in memory, equal calls": ("""
    rows = nl.ndarray((8, 1), nl.int32)
    nisa.iota(rows, [[1, 1]], 0, 1)
    nisa.dma_compute(a.vector_select(0, rows), [a.vector_select(0, rows), nl.full((8, 16), 1.0, nl.float32)], nl.add)
    nl.store(out, nl.load(a))""", lambda a: a + 2),
    "random numbers": ("""
    bits = nl.ndarray((8, 16), nl.uint32)
    nisa.rng(dst=bits)
    nisa.tensor_scalar(dst=x, data=bits, op0=nl.multiply, operand0=1.0)
    nl.store(out, x)""", None),
}


@pytest.mark.parametrize("name", GOES_ON)
def test_an_instance_that_goes_on_from_the_one_before_runs(name, rng):
    body, want = GOES_ON[name]
    returns = "out, a" if "equal" in name else "out"
    source = HEAD + f"""
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a){body}
    return {returns}
"""
    source = launched(source, "kernel", 2, [(8, 16)])
    [kernel] = compiler.compile(source, *ONE_AFTER_ANOTHER)["kernels"]
    assert "same_as" not in compiler.stage(kernel, "nki-trace")["grid"]["instances"][1]
    a = rng.uniform(-1, 1, (8, 16)).astype(np.float32)
    got = simulated(source, {"a": a}, *ONE_AFTER_ANOTHER)[0]["out"]
    if want:
        np.testing.assert_allclose(got, want(a), atol=1e-6)


def test_equal_instances_that_add_to_what_they_have_written_run_each():
    source = HEAD + """
@nki.jit
def counts(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1.0)
    nl.store(a, x)
    nl.store(out, x)
    return out, a
"""
    [kernel] = compiler.compile(launched(source, "counts", 2, [(8, 8)]))["kernels"]
    assert all("same_as" not in x for x in compiler.stage(kernel, "nki-trace")["grid"]["instances"])


@pytest.mark.parametrize("source, name, shapes, arguments, message", [
    (ADD, "add", [(128, 64)] * 2, ONE_AFTER_ANOTHER, "those of trn1 run no kernel together"),
    (SAME, "same", [(8, 8)], (), "the instances on both cores make the same calls with the same results"),
], ids=["trn1", "same"])
def test_a_launch_on_two_cores_says_if_one_does_all(source, name, shapes, arguments, message):
    [d] = compiler.compile(launched(source, name, 2, shapes), *arguments)["diagnostics"]
    assert (d["severity"], d["code"]) == ("warning", "nki-one-core") and message in d["message"]


def test_a_call_with_arrays_and_a_grid_gives_the_values_of_all_instances():
    source = ADD + """
a = np.arange(128 * 8, dtype=np.float32).reshape(128, 8)
assert (add[2](a, a) == 2 * a).all() and (nki.simulate(add)(a, a) == 2 * a).all() and (add[1](a, a) == 2 * a).all()
"""
    result = compiler.compile(source)
    assert result["status"] == "ok", result["diagnostics"]


def test_a_numpy_kernel_launches_with_a_grid(rng):
    source = ADD + "\nfrom nkigen import trace\n\n@trace(input_specs=[((128, 64), 'f32')])\ndef model(a):\n    return add[2](a * 2, a) + 1\n"
    result = compiler.compile(source, check=True)
    assert {s["check"]["status"] for s in result["kernels"][0]["stages"]} == {"pass"}
    assert [d["code"] for d in result["diagnostics"]] == ["nki-one-core"]
    a = rng.uniform(-1, 1, (128, 64)).astype(np.float32)
    np.testing.assert_allclose(simulated(source, {"a": a})[0]["output0"], a * 3 + 1, atol=1e-5)


@pytest.mark.parametrize("grid, message", [
    ("4", "asks for 4 cores, but a launch has at most 2"),
    ("0", "a grid has the size 0"),
    ("(2, 2)", "has 2 axes, but a launch takes one number"),
    ("'two'", "a grid has the entry 'two', which is not a number"),
])
def test_a_grid_that_no_launch_has_is_refused(grid, message):
    found = errors(launched(ADD, "add", grid, [(128, 64)] * 2))
    assert {d["code"] for d in found} == {"nki-grid"} and message in found[0]["message"]


@pytest.mark.parametrize("line, message", [
    ("nl.program_id(1)", "a launch has one axis, so program_id(1) has no value"),
    ("t = nl.ndarray((8, 8 + nl.program_id(0)), nl.float32, buffer=nl.shared_hbm)", "instance 1 makes tensor 1 in shared_hbm with another shape"),
    ("if nl.program_id(0) == 1: return out, out", "instance 1 returns other tensors than instance 0"),
    ("add[2](a, b)", "a kernel inside of a kernel is launched with the grid 2"),
])
def test_instances_that_do_not_fit_together_are_refused(line, message):
    [d] = errors(launched(ADD.replace("    nl.store(", f"    {line}\n    nl.store("), "add", 2, [(128, 64)] * 2))
    assert d["code"] == "nki-grid" and message in d["message"]  # once, though the file's call fails, too


def test_a_tensor_of_another_instance_is_refused():
    source = ADD.replace("@nki.jit", "kept = []\n\n@nki.jit")
    source = source.replace("    nl.store(out[part], x)", "    kept.append(x)\n    nl.store(out[part], kept[0])")
    found = errors(launched(source, "add", 2, [(128, 64)] * 2))
    assert found and all("a tensor of another kernel" in d["message"] for d in found)


def test_the_grid_has_the_form_that_the_api_describes():
    document = json.loads((ROOT / "explorer/api/openapi.json").read_text())
    stage_of = jsonschema_rs.validator_for({"$ref": "#/components/schemas/Stage", "components": document["components"]})
    source = launched(SAME, "same", 2, [(8, 8)])
    done = warm.run("compile", "-", "--quiet", "--json", "-", input=source.encode())
    [kernel] = json.loads(done.stdout)["kernels"]
    assert "grid" in compiler.stage(kernel, "nki-trace")
    for stage in kernel["stages"]:
        stage_of.validate(stage)


BETA_1 = """import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from nkigen import trace

@nki.jit
def add(a, b):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i, j = nl.program_id(0), nl.program_id(1)
    rows, columns = i * 32 + nl.arange(32)[:, None], j * 16 + nl.arange(16)[None, :]
    nl.store(out[rows, columns], nl.load(a[rows, columns]) + nl.load(b[rows, columns]))
    return out
"""


@pytest.mark.parametrize("grid, cores", [("2, 4", 1), ("nl.spmd_dim(1, nl.nc(2)), 4", 2)], ids=["plain", "spread"])
def test_beta_1_has_grids_of_several_axes(grid, cores):
    source = f"{BETA_1}\na = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)\nassert (add[{grid}](a, a) == 2 * a).all()\n"
    result = compiler.compile(source, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    trace = compiler.stage(result["kernels"][0], "nki-trace")
    assert (trace["grid"]["shape"], trace["grid"]["cores"]) == ([2, 4], cores)
    assert [x["id"] for x in trace["grid"]["instances"]] == [[i, j] for i in range(2) for j in range(4)]
    assert {s["check"]["status"] for s in result["kernels"][0]["stages"][-3:]} == {"pass"}


def test_a_numpy_kernel_calls_a_kernel_of_beta_1_with_a_grid():
    source = f"{BETA_1}\n@trace(input_specs=[((64, 64), 'f32')])\ndef model(a):\n    return add[2, 4](a @ a, a) * 2\n"
    result = compiler.compile(source, check=True)
    assert result["status"] == "ok" and {s["check"]["status"] for s in result["kernels"][0]["stages"]} == {"pass"}
