"""nkx run on the command line: kernels and NISA text on the simulated machine."""
import json
import re
import subprocess

import ml_dtypes
import numpy as np
import pytest

from support import warm
from support.paths import NKX, ROOT

SOFTMAX = """import numpy as np
from nkigen import trace

@trace(input_specs=[((64, 96), "f32")])
def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)
"""

# NISA in the form in which another compiler prints it: dynamic strides, none_, indices of type index.
TARGET = "module attributes {nisa.target = #nisa.target<trn2>} {\n"


def dram(rows, columns, element="f32"):
    return f"memref<{rows}x{columns}x{element}, strided<[?, ?], offset: ?>, #nisa.mem<shared_hbm>>"


def on_chip(rows, columns, memory="sbuf", element="f32"):
    return f"memref<{rows}x{columns}x{element}, #nisa.mem<{memory}>>"


def tile(name, rows, columns, memref, at):
    return f"{name}<{rows}| {columns}>={memref} {at}"


OUT = "memref<128x64xf32, #nisa.mem<shared_hbm>>"
DMA = "dge_mode=no_dge, oob_is_err=true) engine=dma\n"

# dst[M, N] = stationary[K, M]^T moving[K, N], K in two steps
PRODUCT = TARGET + f"""
  func.func @product(%arg0: {dram(256, 128)}, %arg1: {dram(256, 64)}) -> {OUT} attributes {{nki.output_names = ["output"]}} {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c128 = arith.constant 128 : index
    %out = nisa.alloc alignment=64 : {OUT}
    %ps = nisa.alloc alignment=64 : {on_chip(128, 64, "psum")}
    %s = nisa.alloc alignment=64 : {on_chip(128, 64)}
    scf.for %k = %c0 to %c2 step %c1 {{
      %0 = arith.muli %k, %c128 : index
      %a = nisa.alloc alignment=64 : {on_chip(128, 128)}
      %b = nisa.alloc alignment=64 : {on_chip(128, 64)}
      nisa.dma_copy({tile("dst", 128, 128, on_chip(128, 128), "%a[d0, d1]")}, {tile("src", 128, 128, dram(256, 128), "%arg0[%0 + d0, d1]")}, {DMA}
      nisa.dma_copy({tile("dst", 128, 64, on_chip(128, 64), "%b[d0, d1]")}, {tile("src", 128, 64, dram(256, 64), "%arg1[%0 + d0, d1]")}, {DMA}
      nisa.matmul({tile("dst", 128, 64, on_chip(128, 64, "psum"), "%ps[d0, d1]")}, {tile("stationary", 128, 128, on_chip(128, 128), "%a[d0, d1]")}, {tile("moving", 128, 64, on_chip(128, 64), "%b[d0, d1]")}, row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
      nisa.release %a : {on_chip(128, 128)}
      nisa.release %b : {on_chip(128, 64)}
    }}
    nisa.tensor_copy({tile("dst", 128, 64, on_chip(128, 64), "%s[d0, d1]")}, {tile("src", 128, 64, on_chip(128, 64, "psum"), "%ps[d0, d1]")}) engine=vector
    nisa.release %ps : {on_chip(128, 64, "psum")}
    nisa.dma_copy({tile("dst", 128, 64, OUT, "%out[d0, d1]")}, {tile("src", 128, 64, on_chip(128, 64), "%s[d0, d1]")}, {DMA}
    nisa.release %s : {on_chip(128, 64)}
    return %out : {OUT}
  }}
}}
"""

# rows of a table that arrive by their indices; one less than each, divided by its sum
FOUND = "memref<128x1x1x64xf32, strided<[1, 8192, 8192, 128]>, #nisa.mem<sbuf>>"
GATHER = TARGET + f"""
  func.func @gather(%arg0: {dram(512, 64)}, %arg1: {dram(128, 1, "i32")}) -> {OUT} {{
    %c0 = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    %out = nisa.alloc alignment=64 : {OUT}
    %rows = nisa.alloc alignment=64 : {on_chip(128, 1, element="index")}
    %found = nisa.alloc alignment=64 : {FOUND}
    %sums = nisa.alloc : {on_chip(128, 1)}
    nisa.dma_copy({tile("dst", 128, 1, on_chip(128, 1, element="index"), "%rows[d0, d1]")}, {tile("src", 128, 1, dram(128, 1, "i32"), "%arg1[%c0 + d0, %c0 + d1]")}, {DMA}
    nisa.dma_copy_indirect({tile("dst", 128, 64, FOUND, "%found[d0, 0, 0, d1]")}, {tile("src", 128, 64, dram(512, 64), "%arg0[%c0 + 0, %c0 + d1]")}, {tile("src_index", 128, 1, on_chip(128, 1, element="index"), "%rows[d0, d1]")}, src_indirect_max_index=512, unique_indices=true, oob_is_err=true) engine=dma
    nisa.tensor_reduce_arith({tile("dst", 128, 1, on_chip(128, 1), "%sums[d0, d1]")}, {tile("src", 128, 64, FOUND, "%found[d0, %c0 + 0, 0, d1]")}, op=add, negated=false, num_r_dim=1) engine=vector
    nisa.tensor_scalar_arith({tile("dst", 128, 64, FOUND, "%found[d0, 0, 0, d1]")}, {tile("src", 128, 64, FOUND, "%found[d0, 0, 0, d1]")}, operand0=f32 %one, op0=subtract, {tile("operand1", 128, 1, on_chip(128, 1), "%sums[d0, d1]")}, op1=multiply, reverse_operands=none_) engine=vector
    nisa.dma_copy({tile("dst", 128, 64, OUT, "%out[d0, d1]")}, {tile("src", 128, 64, FOUND, "%found[d0, 0, 0, d1]")}, {DMA}
    nisa.release %rows : {on_chip(128, 1, element="index")}
    nisa.release %found : {FOUND}
    nisa.release %sums : {on_chip(128, 1)}
    return %out : {OUT}
  }}
}}
"""


def run(source, *options, tmp_path, name="kernel.mlir"):
    path = tmp_path / name
    path.write_text(source)
    return warm.text("run", path, *options, timeout=300)


def simulation(source, *options, tmp_path, name="kernel.mlir"):
    result = tmp_path / "result.json"
    done = run(source, "--json", result, *options, tmp_path=tmp_path, name=name)
    return done, json.loads(result.read_text())["kernels"][0]["simulation"]


def outputs(source, arrays, tmp_path, name="kernel.mlir"):
    np.savez(tmp_path / "in.npz", **arrays) if isinstance(arrays, dict) else np.savez(tmp_path / "in.npz", *arrays)
    done = run(source, "--inputs", tmp_path / "in.npz", "--save-outputs", tmp_path / "out.npz", tmp_path=tmp_path,
               name=name)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out.npz") as z:
        return [z[n] for n in z.files]


def draw(*shape):
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


def test_a_kernel_equals_numpy_and_its_outputs_are_summarized(tmp_path):
    done, s = simulation(SOFTMAX, tmp_path=tmp_path, name="kernel.py")
    assert done.returncode == 0, done.stderr
    assert "softmax on trn2" in done.stdout and "pass" in done.stdout
    (out,) = s["outputs"]
    assert s["status"] == "ok" and s["reference"] == "numpy" and s["instructions"] > 0
    assert out["shape"] == [64, 96] and out["dtype"] == "float32" and out["pass"] and out["max_abs_err"] < 1e-6
    assert abs(out["mean"] - 1 / 96) < 1e-6 and 0 < out["min"] < out["max"] < 1 and out["nan"] == 0


def test_json_on_standard_output_is_alone_there(tmp_path):
    done = run(SOFTMAX, "--json", "-", tmp_path=tmp_path, name="kernel.py")
    assert json.loads(done.stdout)["kernels"][0]["simulation"]["status"] == "ok"


def test_the_seed_decides_the_inputs(tmp_path):
    a, b, c = (simulation(SOFTMAX, *seed, tmp_path=tmp_path, name="kernel.py")[1]["outputs"]
               for seed in ([], ["--seed", "42"], ["--seed", "7"]))
    assert a == b and a[0]["max"] != c[0]["max"]


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_every_target_computes_the_same(tmp_path, target):
    done, s = simulation(SOFTMAX, "--target", target, tmp_path=tmp_path, name="kernel.py")
    assert done.returncode == 0 and s["outputs"][0]["pass"], done.stderr


def test_arrays_come_from_a_file_and_go_to_one(tmp_path):
    x = draw(64, 96) * 3
    np.savez(tmp_path / "in.npz", x=x)
    done = run(SOFTMAX, "--inputs", tmp_path / "in.npz", "--save-outputs", tmp_path / "out.npz", tmp_path=tmp_path,
               name="kernel.py")
    assert done.returncode == 0, done.stderr
    e = np.exp(x - x.max(-1, keepdims=True))
    with np.load(tmp_path / "out.npz") as z:
        np.testing.assert_allclose(z["output0"], e / e.sum(-1, keepdims=True), rtol=1e-5, atol=1e-7)


def test_narrow_floats_go_through_files_of_numpy(tmp_path):
    """Each is read without --input where the kernel names its type, and NumPy reads what is written: its bytes, which go back in."""
    names = ("float8_e4m3", "float8_e5m2", "float8_e4m3fn", "bfloat16", "float16")
    arrays = {n: (draw(8, 6) * 4).astype(getattr(ml_dtypes, n, n)) for n in names}
    source = ("import nki\nimport nki.language as nl\nimport nki.isa as nisa\n\n@nki.jit\ndef kernel(" + ", ".join(f"{n}: nl.tensor[nl.{n}, (8, 6)]" for n in names)
              + "):\n    file = nl.ndarray((8, 6), nl.float8_e5m2, buffer=nl.shared_hbm)\n    nisa.dma_copy(file, float8_e5m2)\n"
              + "".join(f"    {n}_out = nl.ndarray((8, 6), nl.{n}, buffer=nl.shared_hbm)\n    nisa.dma_copy({n}_out, {n})\n" for n in names)
              + "    return file, " + ", ".join(f"{n}_out" for n in names) + "\n")

    def copied(**inputs):
        np.savez(tmp_path / "in.npz", **inputs)
        done = run(source, "--inputs", tmp_path / "in.npz", "--save-outputs", tmp_path / "out.npz", "--target", "trn3", tmp_path=tmp_path, name="kernel.py")
        assert done.returncode == 0, done.stderr
        with np.load(tmp_path / "out.npz") as z:
            return {n: z[n] for n in z.files}

    written = copied(**arrays)
    for n, x in arrays.items():
        assert written[f"{n}_out"].dtype.itemsize == x.dtype.itemsize
        np.testing.assert_array_equal(written[f"{n}_out"].view(x.dtype), x)
    np.testing.assert_array_equal(written["file"].view("u1"), arrays["float8_e5m2"].view("u1"))
    again = copied(**{n: written[f"{n}_out"] for n in names})
    assert all(again[k].tobytes() == x.tobytes() for k, x in written.items())
    in_columns = copied(**{n: np.asfortranarray(x) for n, x in arrays.items()})
    assert all(in_columns[k].tobytes() == x.tobytes() for k, x in written.items())


def test_hlo_is_compared_with_its_first_stage(tmp_path):
    hlo = subprocess.run([NKX, "compile", "--dump-dir", str(tmp_path / "d"), "--stop-after", "trace", "-"],
                         input=SOFTMAX, capture_output=True, text=True)
    assert hlo.returncode == 0
    text = next((tmp_path / "d").rglob("hlo.txt")).read_text()
    done, s = simulation(text, tmp_path=tmp_path, name="kernel.hlo")
    assert done.returncode == 0 and s["reference"] == "first stage" and s["outputs"][0]["pass"], done.stderr


def test_a_product_in_nisa_text_equals_numpy(tmp_path):
    a, b = draw(256, 128), draw(256, 64)
    (got,) = outputs(PRODUCT, [a, b], tmp_path)
    np.testing.assert_allclose(got, a.T @ b, rtol=1e-4, atol=1e-4)


def test_a_gather_in_nisa_text_equals_numpy(tmp_path):
    table = draw(512, 64)
    rows = np.random.default_rng(1).permutation(512)[:128].astype(np.int32).reshape(128, 1)
    (got,) = outputs(GATHER, [table, rows], tmp_path)
    found = table[rows[:, 0]]
    np.testing.assert_allclose(got, (found - 1) * found.sum(-1, keepdims=True), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("stage", ["linalg-to-nisa", "allocate-memory", "engine-programs"])
def test_the_text_of_a_stage_of_nisa_goes_on_from_there_and_computes_the_same(tmp_path, stage):
    x = draw(64, 96)
    (want,) = outputs(SOFTMAX, {"x": x}, tmp_path, "kernel.py")
    time = json.loads(run(SOFTMAX, "--json", "-", tmp_path=tmp_path, name="kernel.py").stdout)["kernels"][0]["profile"]["total_us"]
    text = subprocess.run([NKX, "compile", "--stop-after", stage, str(tmp_path / "kernel.py")], capture_output=True,
                          text=True).stdout
    (got,) = outputs(text, {"any name": x}, tmp_path)
    assert got.tobytes() == want.tobytes()
    kernel = json.loads(run(text, "--json", "-", tmp_path=tmp_path).stdout)["kernels"][0]
    assert [s["name"] for s in kernel["stages"]][0] == stage and kernel["stages"][-1]["name"] == "engine-programs"
    assert kernel["profile"]["total_us"] == time


def test_nisa_text_has_no_reference_and_its_inputs_are_drawn(tmp_path):
    done, s = simulation(PRODUCT, tmp_path=tmp_path)
    assert done.returncode == 0 and "reference" not in s and "pass" not in s["outputs"][0], done.stderr


def test_a_fault_names_instruction_operand_and_place(tmp_path):
    lines = PRODUCT.split("\n")
    load = next(i for i, l in enumerate(lines) if "%arg1[" in l)
    at = next(i for i, l in enumerate(lines) if "nisa.matmul" in l)
    lines[load] = ""
    done, s = simulation("\n".join(lines), tmp_path=tmp_path)
    assert done.returncode == 1 and s["status"] == "fault"
    f = s["fault"]
    assert f["kind"] == "unwritten-read" and f["instruction"] == "matmul" and f["engine"] == "tensor"
    assert f["line"] == at + 1 and f["message"].startswith("moving: ") and f["range"]["line"] == at + 1
    assert f":{at + 1}:" in done.stderr and "unwritten-read: matmul: moving" in done.stderr


def test_watched_values_are_those_of_the_operand_at_that_execution(tmp_path):
    a, b = draw(256, 128), draw(256, 64)
    np.savez(tmp_path / "in.npz", a, b)
    at = next(i for i, l in enumerate(PRODUCT.split("\n"), 1) if "nisa.matmul" in l)
    done, s = simulation(PRODUCT, "--inputs", tmp_path / "in.npz", "--pipeline", "with schedule{parts=0}", "--watch", f"{at}:moving@1",
                         "--watch", at, "--watch", f"{at}:moving@9", "--watch", 1, tmp_path=tmp_path)
    assert done.returncode == 0, done.stderr
    moving, dst, never, nothing = s["values"]
    assert (moving["operand"], moving["nth"], moving["executions"]) == ("moving", 1, 2)
    assert np.allclose(moving["slice"], b[:8, :8], rtol=1e-6)
    assert moving["min"] == b[:128].min() and sum(moving["histogram"]["counts"]) == 128 * 64
    assert dst["operand"] == "dst" and np.allclose(dst["slice"], (a.T @ b)[:8, :8], rtol=1e-3, atol=1e-3)
    assert never["reason"] == "it was not executed so often" and "no instruction" in nothing["reason"]


def test_watched_lines_are_those_of_the_last_stage(tmp_path):
    (tmp_path / "kernel.py").write_text(SOFTMAX)
    r = json.loads(subprocess.run([NKX, "compile", "--json", "-", str(tmp_path / "kernel.py")], capture_output=True,
                                  text=True).stdout)
    text = r["kernels"][0]["stages"][-1]["text"].split("\n")
    at = next(i for i, l in enumerate(text, 1) if "op=exp" in l)
    _, s = simulation(SOFTMAX, "--watch", at, tmp_path=tmp_path, name="kernel.py")
    assert s["values"][0]["instruction"] == "activation" and 0 < s["values"][0]["max"] <= 1


def test_all_parts_of_a_program_that_is_written_out_are_watched(tmp_path):
    """x @ w becomes a copy out of PSUM for each half of the rows: either line shows both, and the source's line everything."""
    source = (ROOT / "explorer/examples/01_matmul_bias_relu.py").read_text()
    (tmp_path / "kernel.py").write_text(source)
    r = json.loads(subprocess.run([NKX, "compile", "--json", "-", str(tmp_path / "kernel.py")], capture_output=True, text=True).stdout)
    text = r["kernels"][0]["stages"][-1]["text"].split("\n")
    first, second = [i for i, l in enumerate(text, 1) if "nisa.tensor_copy" in l]
    at = next(i for i, l in enumerate(source.split("\n"), 1) if "np.matmul" in l)
    x, w, bias = draw(256, 256), draw(256, 512), draw(512)
    np.savez(tmp_path / "in.npz", x=x, w=w, bias=bias)
    done, s = simulation(source, "--inputs", tmp_path / "in.npz", "--watch", first, "--watch", second, "--watch", f"kernel.py:{at}",
                         "--watch", f"other.py:{at}", "--watch", f"kernel.py:{at}:no", tmp_path=tmp_path, name="kernel.py")
    assert done.returncode == 0, done.stderr
    a, b, of_source, elsewhere, nothing = s["values"]
    halves = {i: re.search(r"dst<128\| 512>=\S+ \S+ %\w+\[d0, (\d), 0, d1\]", text[i - 1])[1] for i in (first, second)}
    for own, other, v in ((first, second, a), (second, first, b)):
        assert (v["line"], v["at"], [p["at"] for p in v["parts"]]) == (own, own, [other]) and "of_source" not in v
        for i, shown in ((own, v), (other, v["parts"][0])):
            row = 128 * int(halves[i])
            assert re.fullmatch(rf"%\w+\[0:128, {halves[i]}, 0, 0:512\]", shown["part"])
            assert np.allclose(shown["slice"], (x @ w)[row:row + 8, :8], rtol=1e-3, atol=1e-3)
    assert of_source["of_source"] and of_source["file"] == "kernel.py" and of_source["line"] == at
    lines = [of_source["at"], *(p["at"] for p in of_source["parts"])]
    assert {first, second} < set(lines) and len(set(lines)) == len(lines)
    assert {p["instruction"] for p in of_source["parts"]} >= {"matmul", "tensor_copy", "dma_copy"}
    assert "no instruction" in elsewhere["reason"] and "no such operand" in nothing["reason"]


def test_a_line_without_an_instruction_is_that_of_the_source(tmp_path):
    at = next(i for i, l in enumerate(SOFTMAX.split("\n"), 1) if "np.exp" in l)
    _, s = simulation(SOFTMAX, "--watch", at, "--watch", 1, tmp_path=tmp_path, name="kernel.py")
    found, nothing = s["values"]
    assert found["of_source"] and {p["instruction"] for p in [found, *found["parts"]]} >= {"activation"}
    assert nothing == {"line": 1, "reason": "there is no instruction on this line"}
    shown = subprocess.run([NKX, "run", str(tmp_path / "kernel.py"), "--watch", str(at)], capture_output=True, text=True).stdout
    assert f"  source line {at}, line {found['at']} of the last stage: dst of {found['instruction']}, %" in shown
    assert all(f"  line {p['at']}: dst of {p['instruction']}, {p['part']} after execution" in shown for p in found["parts"])


def test_what_the_report_counts_is_singular_or_plural(tmp_path):
    for name, said in (("nki/02_engines", "the execution of tensor_tensor_arith on gpsimd"), ("nki/02_engines", "the DMA transfer moves 256 KiB\n"),
                       ("01_matmul_bias_relu", "the 2 DMA transfers move 256 KiB each")):
        shown = subprocess.run([NKX, "run", ROOT / f"explorer/examples/{name}.py"], capture_output=True, text=True).stdout
        assert said in shown and "the 1 " not in shown


def value(stage, what, *args, tmp_path, source=SOFTMAX):
    """What --stage and --value find, and what is printed."""
    (tmp_path / "kernel.py").write_text(source)
    command = [NKX, "run", str(tmp_path / "kernel.py"), "--stage", stage, "--value", what, *map(str, args)]
    shown = subprocess.run(command, capture_output=True, text=True)
    subprocess.run([*command, "--json", tmp_path / "o.json"], capture_output=True)
    return shown, json.loads((tmp_path / "o.json").read_text())["kernels"][0]["value"]


def test_a_value_of_any_stage_is_shown(tmp_path):
    x = draw(64, 96)
    np.savez(tmp_path / "in.npz", x=x)
    (tmp_path / "kernel.py").write_text(SOFTMAX)
    want = np.exp(x - x.max(axis=-1, keepdims=True))
    r = json.loads(subprocess.run([NKX, "compile", "--json", "-", tmp_path / "kernel.py"], capture_output=True, text=True).stdout)
    for stage, word in (("trace", " exponential("), ("cse:2", "linalg.exp"), ("engine-programs", "op=exp")):
        name, _, nth = stage.partition(":")
        text = [s["text"] for s in r["kernels"][0]["stages"] if s["name"] == name][int(nth or 1) - 1]
        at = next(i for i, l in enumerate(text.split("\n"), 1) if word in l)
        shown, v = value(stage, f"line:{at}@1", "--inputs", tmp_path / "in.npz", tmp_path=tmp_path)
        assert shown.returncode == 0 and f"line {at}" in shown.stdout and "histogram" in shown.stdout, shown.stdout
        assert np.isclose(v["max"], want.max()) and np.isclose(v["mean"], want.mean(), rtol=1e-4)
        assert ("pass beside" in shown.stdout) == (stage == "cse:2")


def test_a_value_that_is_not_there_says_why(tmp_path):
    shown, v = value("trace", "%nothing", tmp_path=tmp_path)
    assert "no value of this name" in v["reason"] and "no value" in shown.stdout


@pytest.mark.parametrize("text, what", [
    (PRODUCT.replace("%out[d0, d1]", "%out[d0, d1 + 1]"), "index 1 of dst goes from 1 to 64; the dimension has 64"),
    (PRODUCT.replace("%ps[d0, d1]", "view(%ps)", 1).replace(f"={on_chip(128, 64, 'psum')} view", "=view"),
     "a view(…) is not read"),
    (PRODUCT.replace("engine=tensor", "engine=scalar"), "nisa.matmul does not run on the scalar engine"),
    (PRODUCT.replace("nisa.tensor_copy", "nisa.tensor_move"), "there is no operation nisa.tensor_move"),
])
def test_text_that_the_machine_cannot_run_is_refused_at_its_line(tmp_path, text, what):
    done = run(text, tmp_path=tmp_path)
    assert done.returncode == 1 and what in done.stderr and "kernel.mlir:" in done.stderr, done.stderr


@pytest.mark.parametrize("options, what", [
    (["--watch", "x"], "expected LINE"), (["--watch", "3@0"], "expected LINE"), (["--watch", "0"], "expected LINE"),
    (["--watch", "3:"], "expected LINE"), (["--seed", "-1"], "expected a number"), (["--target", "trn9"], "trn1"),
    (["--nothing"], "nkx run --help"), (["--value", "%x"], "together"), (["--stage", "no", "--value", "%x"], "no stage"),
    (["--stage", "trace", "--value", "line:"], "expected %NAME"), (["--stage", "trace", "--value", "%x@0"], "expected %NAME"),
    (["--watch", "3"] * 17, "at most 16"),
])
def test_wrong_usage_is_said(tmp_path, options, what):
    done = run(SOFTMAX, *options, tmp_path=tmp_path, name="kernel.py")
    assert done.returncode == 2 and what in done.stderr


def test_arrays_that_do_not_fit_are_refused(tmp_path):
    np.savez(tmp_path / "in.npz", draw(256, 128), draw(256, 65))
    done = run(PRODUCT, "--inputs", tmp_path / "in.npz", tmp_path=tmp_path)
    assert "has shape (256, 65); the program takes (256, 64)" in done.stdout + done.stderr
    assert run(PRODUCT, "--inputs", tmp_path / "none.npz", tmp_path=tmp_path).returncode != 0


def test_the_time_is_shown_by_engine_and_written_as_a_trace(tmp_path):
    done, _ = simulation(SOFTMAX, "--profile", tmp_path / "t.json", tmp_path=tmp_path, name="kernel.py")
    assert "scalar" in done.stdout and "%" in done.stdout and "us" in done.stdout
    profile = json.loads((tmp_path / "result.json").read_text())["kernels"][0]["profile"]
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    end = max(e["ts"] + e["dur"] for e in events if e["ph"] == "X")
    assert end == pytest.approx(profile["total_us"], rel=1e-6)


def test_two_kernels_are_shown_side_by_side(tmp_path):
    (tmp_path / "b.py").write_text(SOFTMAX.replace("- np.max(x, axis=-1, keepdims=True)", ""))
    done = run(SOFTMAX, "--compare", tmp_path / "b.py", "--json", tmp_path / "c.json", tmp_path=tmp_path, name="kernel.py")
    (k,) = json.loads((tmp_path / "c.json").read_text())["kernels"]
    assert done.returncode == 0 and k["b_us"] < k["a_us"] and "softmax: a and b" in done.stdout, done.stderr
    assert k["outputs"][0]["a"]["mean"] == pytest.approx(k["outputs"][0]["b"]["mean"])
    same = run(SOFTMAX, "--compare-target", "trn2", "--json", "-", tmp_path=tmp_path, name="kernel.py")
    assert json.loads(same.stdout)["kernels"][0]["ratio"] == 1


def test_loops_on_data_are_timed_for_the_branches_that_the_run_took(tmp_path):
    """x is halved until it is below 1: 5 rounds for 16, 9 for 256."""
    one, index = "memref<1x1xf32, #nisa.mem<sbuf>>", "memref<1x1xi32, #nisa.mem<sbuf>>"
    text = f"""func.func @halve(%a: memref<1x1xf32, #nisa.mem<shared_hbm>>) -> memref<1x1xf32, #nisa.mem<shared_hbm>> {{
  %one = arith.constant 1.0 : f32
  %half = arith.constant 0.5 : f32
  %zero = arith.constant 0 : i32
  %r = nisa.alloc : memref<1x1xf32, #nisa.mem<shared_hbm>>
  %s = nisa.alloc : {one}
  %c = nisa.alloc : {index}
  nisa.dma_copy(dst<1| 1>={one} %s[d0, d1], src<1| 1>=memref<1x1xf32, #nisa.mem<shared_hbm>> %a[d0, d1]) engine=dma
  scf.while : () -> () {{
    nisa.tensor_scalar_arith(dst<1| 1>={index} %c[d0, d1], src<1| 1>={one} %s[d0, d1], operand0=f32 %one, op0=is_ge, reverse_operands=none) engine=vector
    %v = nisa.register_load(src<1| 1>={index} %c[d0, d1]) engine=sync : i32
    %more = arith.cmpi ne, %v, %zero : i32
    scf.condition(%more)
  }} do {{
    nisa.tensor_scalar_arith(dst<1| 1>={one} %s[d0, d1], src<1| 1>={one} %s[d0, d1], operand0=f32 %half, op0=multiply, reverse_operands=none) engine=vector
    scf.yield
  }}
  nisa.dma_copy(dst<1| 1>=memref<1x1xf32, #nisa.mem<shared_hbm>> %r[d0, d1], src<1| 1>={one} %s[d0, d1]) engine=dma
  nisa.release %s : {one}
  nisa.release %c : {index}
  return %r : memref<1x1xf32, #nisa.mem<shared_hbm>>
}}
"""
    totals = []
    for x in (16, 256):
        np.savez(tmp_path / "in.npz", np.full((1, 1), x, np.float32))
        done, s = simulation(text, "--inputs", tmp_path / "in.npz", tmp_path=tmp_path)
        profile = json.loads((tmp_path / "result.json").read_text())["kernels"][0]["profile"]
        assert done.returncode == 0 and s["outputs"][0]["max"] == 0.5 and profile["assumed_branches"] == 0, done.stderr
        totals.append(profile["total_us"])
    assert totals[1] > totals[0]


def test_every_example_runs():
    for path in sorted((ROOT / "explorer" / "examples").glob("*.py")):
        done = subprocess.run([NKX, "run", str(path)], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 and "FAIL" not in done.stdout, (path.name, done.stdout, done.stderr)


def test_values_of_an_nki_kernels_stages_are_found_by_the_stages_name(tmp_path):
    """The Nth stage of an NKI kernel is another one than that of a NumPy kernel."""
    source = (ROOT / "explorer/examples/nki/03_psum_accumulation.py").read_text()
    for stage, op in (("nki-to-nisa", "nisa.matmul"), ("engine-programs", "nisa.matmul")):
        text = run_stage(source, stage)
        line = 1 + next(i for i, t in enumerate(text.splitlines()) if op in t)
        shown, v = value(stage, f"line:{line}", tmp_path=tmp_path, source=source)
        assert (v["stage"], v["op"], v["shape"]) == (stage, op, [128, 512]) and "float32[128, 512]" in shown.stdout
    _, none = value("nki-trace", "line:5", tmp_path=tmp_path, source=source)
    assert none["reason"] == "values are known from nki-to-nisa on"
    _, other = value("cse", "line:5", tmp_path=tmp_path, source=source)
    assert other["reason"] == "the kernel has no such stage"


def run_stage(source, stage):
    done = subprocess.run([NKX, "compile", "-", "--stop-after", stage], input=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
