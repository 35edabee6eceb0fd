"""nkx compile and nkx opt on the command line."""
import json
import os
import resource
import subprocess
import unicodedata

from support import compiler, source_map
from support.paths import NKX, ROOT

ADD = '''from nkigen import trace

@trace(input_specs=[((4, 8), "f32"), ((4, 8), "f32")])
def add(a, b):
    return a + b
'''


def nkx(*arguments, stdin="", env=None, cpu_s=None):
    limit = cpu_s and (lambda: resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s)))
    return subprocess.run([NKX, *arguments], input=stdin, capture_output=True, text=True, timeout=300, env=env,
                          preexec_fn=limit)


def test_compile_prints_the_last_stage_and_a_table():
    done = nkx("compile", "-", stdin=ADD)
    assert done.returncode == 0, done.stderr
    assert "func.func @add" in done.stdout and "memref" in done.stdout
    for name in ("trace", "hlo-to-linalg", "one-shot-bufferize"):
        assert name in done.stderr


def test_stop_after_counts_stages_of_one_name():
    first = json.loads(nkx("compile", "-", "--stop-after", "canonicalize", "--json", "-", stdin=ADD).stdout)
    second = json.loads(nkx("compile", "-", "--stop-after", "canonicalize:2", "--json", "-", stdin=ADD).stdout)
    names = [s["name"] for s in first["kernels"][0]["stages"]]
    assert names[-1] == "canonicalize" and names.count("canonicalize") == 1
    assert [s["name"] for s in second["kernels"][0]["stages"]].count("canonicalize") == 2


def test_what_a_kernel_prints_is_shown_once_with_and_without_a_check():
    source = ADD.replace("return", "print('shape', a.shape)\n    return")
    for options in ([], ["--check"]):
        assert nkx("compile", "-", *options, stdin=source).stderr.count("shape (4, 8)") == 1


def test_a_kernel_has_attributes_like_a_function():
    source = ADD.replace("return a + b", "add.calls += 1\n    return a + add.calls * b") + "add.calls = 0\n"
    done = nkx("compile", "-", stdin=source)
    assert done.returncode == 0, done.stderr


def test_the_dump_directory_is_made_with_those_above_it(tmp_path):
    assert nkx("compile", "-", "--dump-dir", str(tmp_path / "a" / "b"), stdin=ADD).returncode == 0
    assert list((tmp_path / "a" / "b").rglob("hlo.txt"))


def test_a_file_that_cannot_be_written_is_the_callers_mistake(tmp_path):
    (tmp_path / "file").write_text("")
    for option, path in (("--dump-dir", tmp_path / "file" / "there"), ("--json", tmp_path / "none" / "r.json")):
        done = nkx("compile", "-", option, str(path), stdin=ADD)
        assert done.returncode == 1 and f"cannot write {path}" in done.stderr


SHORT = """func.func @f(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %e = tensor.empty() : tensor<256x256xf32>
  %y = linalg.exp ins(%x : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  nkipy.layout(%y : tensor<256x256xf32>) {mem_space = 3 : i32, partition_dim = 0 : ui32, tile_size = array<i64: 128, 128>} // nkipy.layout(%y
  nkipy.tile_op(%y : tensor<256x256xf32>)
    {loop_tile_size = array<i64: 128, 128>}
  %z = linalg.exp ins(%y : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  nkipy.fuse_op(%y, %z : tensor<256x256xf32>, tensor<256x256xf32>)
  return %z : tensor<256x256xf32>
}
"""


def test_annotations_may_have_the_short_form_of_nkigen():
    done = nkx("compile", "-", "--language", "mlir", "--stop-after", "canonicalize", stdin=SHORT)
    assert done.returncode == 0, done.stderr
    assert '"nkipy.tile_op"(%1) {loop_tile_size = array<i64: 128, 128>} : (tensor<256x256xf32>) -> ()' in done.stdout
    assert '"nkipy.layout"(%1)' in done.stdout and '"nkipy.fuse_op"(%1, %2)' in done.stdout
    same = nkx("opt", "--canonicalize", stdin=SHORT)
    assert same.returncode == 0, same.stderr


def test_an_annotation_that_is_not_understood_is_refused_at_its_line():
    done = nkx("compile", "-", "--language", "mlir", stdin=SHORT.replace("(%y : tensor<256x256xf32>)\n", "(%y)\n"))
    assert done.returncode == 1 and "5:3: error: an annotation is written nkipy.layout(%value : type)" in done.stderr, done.stderr


def test_dump_dir_holds_every_stage_and_the_proto(tmp_path):
    done = nkx("compile", "-", "--dump-dir", str(tmp_path), stdin=ADD)
    assert done.returncode == 0, done.stderr
    files = sorted(p.name for p in (tmp_path / "kernel0").iterdir())
    assert len([f for f in files if f[:2].isdigit()]) == len(compiler.pipeline())
    assert {"hlo.pb", "hlo.txt"} <= set(files)
    assert b"NKIPy_Op" in (tmp_path / "kernel0/hlo.pb").read_bytes()


# a table of n numbers that no formula of the kernel gives again
TABLE = """import numpy as np
from nkigen import trace

T = np.random.default_rng(1).standard_normal({n}).astype(np.float32)


@trace(input_specs=[((4, {n}), "f32")])
def add(a):
    return a + T
"""


def test_long_constants_are_shortened_as_asked(tmp_path):
    """In every form: HLO, linalg and instructions; a text with all elements runs, one without says where they are missing."""
    last = {}
    for n, option, is_short in ((256, [], False), (257, [], True), (257, ["--constants", "257"], False), (300, ["--constants", "299"], True),
                                (5000, ["--constants", "0"], False)):
        done = nkx("compile", "-", "--json", "-", "--quiet", *option, stdin=TABLE.format(n=n))
        assert done.returncode == 0, done.stderr
        for stage in json.loads(done.stdout)["kernels"][0]["stages"]:
            assert ("{...}" in stage["text"] or "__elided__" in stage["text"]) == is_short, (n, option, stage["name"])
        last[is_short] = tmp_path / f"{is_short}.mlir"
        last[is_short].write_text(stage["text"])
    whole, short = nkx("run", last[False]), nkx("run", last[True])
    assert whole.returncode == 0 and "left out" not in whole.stderr
    assert "warning: the elements of this constant are left out" in short.stdout + short.stderr and "--constants 0" in short.stdout + short.stderr
    assert "memref.global" in next(x for x in (short.stdout + short.stderr).splitlines() if "__elided__" in x)
    for wrong in ("-1", "many", "1073741825"):
        assert nkx("compile", "-", "--constants", wrong, stdin=ADD).returncode == 2


def on_a_terminal(*arguments):
    """What a command writes to a terminal that is its standard output."""
    ours, theirs = os.openpty()
    process = subprocess.Popen([NKX, *arguments], stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return process.wait(), said.decode()


def test_a_text_cannot_command_the_terminal_and_reaches_a_file_as_it_is(tmp_path):
    """The first stage of an NKI kernel has the source's comments."""
    (tmp_path / "k.py").write_text("import nki\nimport nki.language as nl\nimport numpy as np\n\n@nki.jit\ndef k(x):\n"
                                   "    o = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)\n    t = nl.load(x)  # \x1b[32mgreen\x07 \u202e\n"
                                   "    nl.store(o, t)\n    return o\n\nif __name__ == '__main__':\n    k(np.ones((128, 64), np.float32))\n")
    status, said = on_a_terminal("compile", tmp_path / "k.py", "--stop-after", "nki-ast")
    assert status == 0 and "# \\x1b[32mgreen\\x07 \\u202e" in said and not set(said) & set("\x1b\x07\u202e")
    done = nkx("compile", tmp_path / "k.py", "--stop-after", "nki-ast")
    assert "# \x1b[32mgreen\x07 \u202e" in done.stdout


def test_a_caret_is_below_its_character():
    done = nkx("compile", "-", stdin=ADD.replace("    return a + b", "    名 = '日本 😀'; return a @ b"))
    line, caret = [x.split("| ", 1)[1] for x in done.stderr.splitlines() if "| " in x][:2]
    assert line.endswith("return a @ b") and caret.strip() == "^~~~~"
    columns = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line[:line.index("a @ b")])
    assert caret.index("^") == columns


def test_columns_of_mlir_count_characters():
    places = []
    for word in ("abcdef", "日本語日本語"):
        done = nkx("compile", "-", "--language", "mlir", stdin=f'func.func @f(%a: tensor<4xf32>) attributes {{x = "{word}", y = ]}} {{\n}}\n')
        assert done.returncode == 1 and "expected attribute value" in done.stderr
        places.append(done.stderr.split(" error:")[0])
    assert places[0] == places[1] and places[0].startswith("<stdin>:1:")


def test_a_check_leaves_nothing_behind(tmp_path):
    """MLIR's engine would write what it compiled there, for `perf`."""
    done = nkx("compile", "-", "--check", stdin=ADD, env={**os.environ, "JITDUMPDIR": str(tmp_path)})
    assert done.returncode == 0 and "pass (max abs" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_refusal_shows_a_caret_and_exits_1():
    done = nkx("compile", "-", stdin=ADD.replace("a + b", "a @ b"))
    assert done.returncode == 1
    assert "shape-mismatch" in done.stderr
    assert "    return a @ b\n" in done.stderr and "^~~~~" in done.stderr


HLO = """HloModule double

ENTRY main {
  x = f32[4,8]{1,0} parameter(0)
  ROOT y = f32[4,8]{1,0} add(x, x)
}
"""


def stages(done):
    assert done.returncode == 0, done.stderr
    (kernel,) = source_map.expanded(json.loads(done.stdout))["kernels"]
    return kernel["stages"]


def test_hlo_text_runs_through_every_stage_with_its_own_places():
    found = stages(nkx("compile", "-", "--check", "--json", "-", stdin=HLO))
    assert [s["index"] for s in found] == list(range(len(compiler.pipeline())))
    assert {s["check"]["status"] for s in found[:-1]} == {"pass"}
    (add,) = [line for line in found[0]["lines"] if line.get("op") is not None and line["src"][0]["line"] == 5]
    assert add["src"][0] == {"file": "<stdin>", "line": 5, "col": 3, "end_line": 5, "end_col": 35, "depth": 0}
    nisa = found[-1]
    assert any(line.get("src") and line["src"][0]["line"] == 5 for line in nisa["lines"])


def test_a_proto_and_a_linalg_text_enter_at_their_stage(tmp_path):
    nkx("compile", "-", "--dump-dir", str(tmp_path), stdin=HLO)
    proto = stages(nkx("compile", str(tmp_path / "kernel0/hlo.pb"), "--check", "--json", "-"))
    text = stages(nkx("compile", "-", "--json", "-", stdin=HLO))
    assert [s["text"] for s in proto] == [s["text"] for s in text]
    (linalg,) = (tmp_path / "kernel0").glob("*-hlo-to-linalg.mlir")
    mlir = stages(nkx("compile", str(linalg), "--check", "--json", "-"))
    assert mlir[0]["name"] == "hlo-to-linalg" and mlir[0]["text"] == linalg.read_text()
    assert [s["text"] for s in mlir] == [s["text"] for s in text if s["index"] >= mlir[0]["index"]]
    assert {s["check"]["status"] for s in mlir[:-1]} == {"pass"}


def test_places_in_mlir_are_the_first_lines_of_operations():
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32> // ä
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}"""
    found = stages(nkx("compile", "-", "--language", "mlir", "--json", "-", stdin=text))
    want = {"func.func": (1, 1, 49), "tensor.empty": (2, 3, 43), "arith.negf": (6, 5, 29), "return": (9, 3, 28)}
    for name, (line, col, end) in want.items():
        k = next(k for k, t in enumerate(found[0]["text"].split("\n")) if name in t)
        assert found[0]["lines"][k]["src"] == [{"file": "<stdin>", "line": line, "col": col, "end_line": line, "end_col": end, "depth": 0}]
    assert any(entry.get("src", [{}])[0].get("line") == 3 for entry in found[-1]["lines"])


def test_a_refusal_after_many_operations_is_reported_with_what_was_traced():
    source = """import numpy as np
def k(x):
    def f(n, x):
        return x if n == 0 else f(n - 1, x + 1) + f(n - 1, x + 2)
    return f(25, x)
"""
    done = nkx("compile", "-", "--input", "x=4x4:f32", "--json", "-", stdin=source)
    result = json.loads(done.stdout)
    assert done.returncode in (1, 3) and [d["code"] for d in result["diagnostics"]] == ["too-many-operations"]
    (stage,) = result["kernels"][0]["stages"]
    assert stage["partial"] and len(stage["lines"]) > 10000


def test_wrong_hlo_and_mlir_show_a_caret():
    done = nkx("compile", "-", stdin=HLO.replace("add(x, x)", "add(x, z)"))
    assert done.returncode == 1 and "<stdin>:5:33" in done.stderr and "hlo-invalid" in done.stderr
    assert "^" in done.stderr
    done = nkx("compile", "-", "--language", "mlir", stdin="func.func @f() {\n  nothing.at_all\n}\n")
    assert done.returncode == 1 and "<stdin>:2" in done.stderr and "ir-invalid" in done.stderr
    done = nkx("compile", "-", "--language", "mlir", stdin="func.func private @f()\n")
    assert done.returncode == 1 and "no-kernel" in done.stderr


def test_wrong_usage_exits_2():
    for arguments in (["compile"], ["compile", "-", "--stop-after", "nothing"], ["compile", "-", "--target", "trn9"], ["compile", "-", "--language", "fortran"],
                      ["compile", "/no/such/file.py"], ["compile", "-", "--input", "x=axb:f32"], ["frobnicate"]):
        assert nkx(*arguments).returncode == 2, arguments


def test_a_plain_function_takes_its_inputs_from_the_command_line():
    source = "import numpy as np\ndef f(x, scale):\n    return np.exp(x) * scale\n"
    done = nkx("compile", "-", "--input", "x=130x517:f32", "--input", "scale=:f32", "--check", "--json", "-", stdin=source)
    result = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert result["kernels"][0]["inputs"][0] == {"name": "x", "shape": [130, 517], "dtype": "float32"}
    assert all(s["check"]["status"] == "pass" for s in result["kernels"][0]["stages"] if s["dialect"] != "nisa")


def test_inputs_from_an_npz_file_are_what_is_checked(tmp_path):
    import numpy as np

    np.savez(tmp_path / "in.npz", a=np.full((4, 8), np.inf, np.float32), b=np.full((4, 8), -np.inf, np.float32))
    done = nkx("compile", "-", "--inputs", str(tmp_path / "in.npz"), "--check", "--json", "-", stdin=ADD)
    assert done.returncode == 0, done.stderr  # inf - inf is NaN in NumPy and in every stage


def test_an_npz_file_gives_shapes_and_dtypes_too(tmp_path):
    import ml_dtypes
    import numpy as np

    source = "def f(x):\n    return x + x\n"

    def inputs(*more, **arrays):
        np.savez(tmp_path / "in.npz", **arrays)
        done = nkx("compile", "-", "--inputs", str(tmp_path / "in.npz"), "--check", "--json", "-", *more, stdin=source)
        result = json.loads(done.stdout)
        if done.returncode:
            return [(d["code"], d["hint"]) for d in result["diagnostics"]]
        assert all(s["check"]["status"] == "pass" for s in result["kernels"][0]["stages"] if s["dialect"] != "nisa")
        return result["kernels"][0]["inputs"]

    assert inputs(x=np.ones((2, 3), np.float32)) == [{"name": "x", "shape": [2, 3], "dtype": "float32"}]
    assert inputs(x=np.ones(3, ml_dtypes.bfloat16)) == [{"name": "x", "shape": [3], "dtype": "bfloat16"}]
    [(code, hint)] = inputs(x=np.ones(3, ml_dtypes.float8_e4m3))
    assert code == "unsupported-dtype" and "--input" in hint
    assert inputs("--input", "x=3:f8e4m3", x=np.ones(3, ml_dtypes.float8_e4m3))[0]["dtype"] == "float8_e4m3"
    assert inputs(y=np.ones(3))[0][0] == "no-shapes"
    assert [code for code, _ in inputs("--input", "z=3:f32", y=np.ones(3))] == ["bad-inputs"]
    codes = inputs("--input", "x=3:f8e4m3fn", x=np.ones(3, ml_dtypes.float8_e4m3fn))
    assert set(codes) == {("unsupported-dtype", "compile for trn3, or use float8_e4m3")}


def test_opt_runs_single_passes_on_ir_text(tmp_path):
    text = json.loads(nkx("compile", "-", "--stop-after", "hlo-to-linalg", "--json", "-", stdin=ADD).stdout)
    ir = text["kernels"][0]["stages"][-1]["text"]
    path = tmp_path / "in.mlir"
    path.write_text(ir)
    done = nkx("opt", "--canonicalize", "--one-shot-bufferize=bufferize-function-boundaries", str(path))
    assert done.returncode == 0, done.stderr
    assert "memref.alloc" in done.stdout
    bad = nkx("opt", "--no-such-pass", str(path))
    assert bad.returncode == 2 and "no-such-pass" in bad.stderr
    broken = nkx("opt", "--canonicalize", stdin="func.func @f( {")
    assert broken.returncode == 1 and "ir-invalid" in broken.stderr


def test_remarks_are_printed_below_their_stages():
    matmul = ADD.replace("(4, 8)", "(256, 256)").replace("a + b", "a @ b")
    lines = nkx("compile", "-", "--remarks", stdin=matmul).stderr.splitlines()
    at = next(i for i, line in enumerate(lines) if " infer-layout " in line)
    assert [line.strip() for line in lines[at + 1 : at + 4]] == [
        "<stdin>:5:12: TILE=[128,256,128]", "<stdin>:5:12: in shared HBM: a returned value",
        "<stdin>:5:12: dimension 0 across the partitions"]
    assert any("promoted 2 inputs to SBUF" in line for line in lines)
    assert not any("TILE=" in line for line in nkx("compile", "-", stdin=matmul).stderr.splitlines())


def test_reasons_of_remarks_are_printed_in_words():
    matmul = ADD.replace("(4, 8)", "(256, 256)").replace("return a + b", "c = a @ b; return c + c")
    text = nkx("compile", "-", "--remarks=why", stdin=matmul).stderr
    for line in ("rule tile-size: A tile fills the partitions", "limit: PSUM bank: 256 of 512 f32 columns of the product",
                 "instead [128, 128, 128]: 8 tiles; a product would fill less of a PSUM bank; its buffers would be smaller; "
                 "tile_op(tile_size=[128,128,128]) takes it",
                 "No knob: the tensor engine cannot do otherwise."):
        assert line in text, line
    assert nkx("compile", "-", "--remarks=what", stdin=matmul).returncode == 2


def test_opt_writes_remarks_as_text_and_as_json(tmp_path):
    ir = (ROOT / "tests/lit/eliminate-same-memspace-copy/self.mlir").read_text()
    text = nkx("opt", "--eliminate-same-memspace-copy", "--remarks", stdin=ir)
    assert text.returncode == 0 and text.stderr.count("remark: memref.copy: removed a copy of a part of SBUF to itself") == 2
    done = nkx("opt", "--eliminate-same-memspace-copy", f"--remarks={tmp_path}/r.json", stdin=ir)
    assert done.returncode == 0 and done.stderr == "" and done.stdout == text.stdout
    remarks = json.loads((tmp_path / "r.json").read_text())
    assert [r["range"]["line"] for r in remarks] == [
        int(line.split(":")[1]) for line in text.stderr.splitlines()]
    assert {(r["pass"], r["operation"]) for r in remarks} == {("eliminate-same-memspace-copy", "memref.copy")}
    assert nkx("opt", "--eliminate-same-memspace-copy", "--remarks=/no/such/dir/r.json", stdin=ir).returncode == 2


REFUSED = """import numpy as np
from nkigen import trace
from nkigen.apis import fori_loop
def helper(a, depth):
    return helper(a, depth - 1) if depth else np.linalg.svd(a)
@trace(input_specs=[((4, 4), "f32")])
def late(x):
    y = np.exp(x) @ x
    return helper(y, 9)
@trace(input_specs=[((4, 4), "f32")])
def looped(x):
    def body(i, acc):
        return np.linalg.svd(acc * x)
    return fori_loop(0, 3, body, np.exp(x))
@trace(input_specs=[((4, 4), "f32")])
def first(x):
    return np.linalg.svd(x)
@trace(input_specs=[((4, 4), "f32")])
def caught(x):
    try:
        fori_loop(0, 3, lambda i, acc: np.linalg.svd(acc * 3), x)
    except NotImplementedError:
        return x + 1
"""


def test_a_refusal_while_tracing_loses_nothing_that_was_traced():
    done = nkx("compile", "-", "--json", "-", stdin=REFUSED)
    assert done.returncode == 1
    result = source_map.expanded(json.loads(done.stdout))
    kernels_, ops = {k["name"]: k for k in result["kernels"]}, {}
    assert list(kernels_) == ["late", "looped", "caught"]
    for name in ("late", "looped"):
        (stage,) = kernels_[name]["stages"]
        assert stage["name"] == "trace" and stage["partial"] and kernels_[name]["outputs"] == []
        ops[name] = stage["op_counts"]
    assert ops["late"] == {"dot": 1, "exponential": 1, "parameter": 1}
    assert ops["looped"]["multiply"] == 1  # inside of the body that was not finished
    line = next(i for i in kernels_["late"]["stages"][0]["lines"] if i.get("src") and i["src"][0]["col"] == 9)
    assert line["src"][0]["line"] == 8
    assert [d.get("kernel") for d in result["diagnostics"] if d["severity"] == "error"] == [0, 1, None]
    whole = kernels_["caught"]["stages"]
    assert len(whole) > 10 and not whole[0].get("partial") and "multiply" not in whole[0]["text"]
    assert "partial: up to the refusal" in done.stderr


def test_a_long_chain_of_calls_shows_its_ends():
    done = nkx("compile", "-", "--kernel", "late", "--quiet", stdin=REFUSED)
    calls = [line.strip() for line in done.stderr.splitlines() if "called from" in line or "more calls" in line]
    assert calls == ["= called from <stdin>:5"] * 3 + ["= … 6 more calls", "= called from <stdin>:9"]


def test_a_source_with_more_kernels_than_a_result_holds_is_refused_at_the_first_that_is_left_out(tmp_path):
    head = "from nkigen import trace\n"
    kernels = [f'@trace(input_specs=[((4,), "f32")])\ndef k{i}(x):\n    return x + {i}.0\n' for i in range(66)]
    done = nkx("compile", "-", "--json=-", "--dump-dir", str(tmp_path), "--stop-after=trace", stdin=head + "".join(kernels))
    result = json.loads(done.stdout)
    assert [k["name"] for k in result["kernels"]] == [f"k{i}" for i in range(64)]
    (error,) = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert error["code"] == "too-many-kernels" and error["range"]["line"] == 1 + 64 * 3 + 2
    assert "66 kernels" in error["message"] and "--kernel" in error["hint"]


NKIPY = """import numpy as np
from nkipy.core.compile import trace
from nkipy.runtime import DeviceKernel, DeviceTensor, baremetal_jit, baremetal_run_traced_kernel, is_neuron_compatible

@baremetal_jit
def product(a, b):
    return np.exp(a @ b)

def step(x, n):
    x[0:2] = n
    return x * 2

def plain(a, b):
    return a - b

if is_neuron_compatible():
    a = np.ones((16, 8), np.float32)
    product(a, a.T)
    baremetal_run_traced_kernel(trace(step), np.ones((4, 4), np.float32), 3)
    k = DeviceKernel.compile_and_load(plain, a, b=a)
    out = DeviceTensor.allocate_uninitialized(a.shape, a.dtype)
    k(inputs={"a": DeviceTensor.from_numpy(a), "b": a * 2}, outputs={"output0": out})
    print("sum", out.numpy().sum())
    traced = trace(plain)
    traced.specialize(a, a)
    print(traced._code.operations[2].op_name, len(traced._code.to_proto()) > 100)
"""


def test_a_program_for_nkipys_runtime_is_compiled_as_it_is():
    done = nkx("compile", "-", "--stop-after", "hlo-to-linalg", "--check", "--json", "-", stdin=NKIPY)
    result = json.loads(done.stdout)
    assert done.returncode == 0 and [k["name"] for k in result["kernels"]] == ["product", "step", "plain", "plain"]
    assert all(s["check"]["status"] == "pass" for k in result["kernels"] for s in k["stages"])
    assert [d["message"] for d in result["diagnostics"]] == ["sum -128.0\nsubtract True\n"]


def test_a_programs_main_part_runs_when_nothing_else_says_shapes():
    body = "import numpy as np\nfrom nkipy.core.compile import trace\nfrom nkipy.runtime import baremetal_run_traced_kernel\n" \
           "def f(a, b):\n    return a @ b\ndef main():\n    a = np.ones((8, 8), np.float32)\n" \
           "    print(baremetal_run_traced_kernel(trace(f), a, a).sum())\nif __name__ == '__main__':\n    main()\n"
    result = json.loads(nkx("compile", "-", "--stop-after", "trace", "--json", "-", stdin=body).stdout)
    assert [k["name"] for k in result["kernels"]] == ["f"] and result["diagnostics"][0]["message"] == "512.0\n"
    shaped = body.replace("def f", "@trace(input_specs=[((4, 4), 'f32')] * 2)\ndef f").replace("main()\n", "1 / 0\n")
    done = nkx("compile", "-", "--stop-after", "trace", stdin=shaped.replace("def 1 / 0", "def main()"))
    assert done.returncode == 0 and "f32[4,4]" in done.stdout
    done = nkx("compile", "-", "--stop-after", "trace", stdin=body.replace("    main()", "    main(1)"))
    assert done.returncode == 1 and "<stdin>:10:5: error: TypeError" in done.stderr


def test_a_check_says_that_a_custom_op_is_for_the_hardware():
    source = "from nkigen import trace, CustomOp\nimport numpy as np\n" \
             "op = CustomOp('module {}', 'double', ['x'], ['y'], [(4, 8)], [(4, 8)], ['f32'], ['f32'], lambda x: x * 2)\n" \
             "@trace(input_specs=[((4, 8), 'f32')])\ndef k(x):\n    return op(x)\n"
    done = nkx("compile", "-", "--check", "--stop-after", "hlo-to-linalg", "--json", "-", stdin=source)
    stages = json.loads(done.stdout)["kernels"][0]["stages"]
    assert done.returncode == 0 and {s["check"]["status"] for s in stages} == {"skipped"}
    assert "it calls __custom_op__double" in stages[0]["check"]["reason"] and not done.stderr.count("JIT")
    assert "nkipy.custom_op_bodies" in stages[-1]["text"]


def test_all_stages_come_back_when_there_is_no_time_for_the_reference_run():
    source = ADD.replace("    return", "    while type(a) is np.ndarray:  # in NumPy it never ends\n        np.add(a, b)\n    return")
    source = "import numpy as np\n" + source
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert nkx("compile", "-", "--json", "-", stdin=source).returncode == 0
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    done = nkx("compile", "-", "--check", "--json", "-", stdin=source, cpu_s=int(took) + 3)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    checks = [s["check"] for s in result["kernels"][0]["stages"]]
    assert len(checks) == len(compiler.pipeline()) and {c["status"] for c in checks} == {"skipped"}
    assert "past the time" in checks[0]["reason"]
    assert [d["code"] for d in result["diagnostics"]] == ["check-incomplete"]


def test_a_check_without_time_for_all_stages_skips_some_and_ends_the_pipeline():
    source = ADD.replace("(4, 8)", "(1024, 1024)").replace("a + b", "a @ b")
    for cpu_s in range(1, 9):  # until it is enough to compile, and to run the first stage
        done = nkx("compile", "-", "--check", "--json", "-", stdin=source, cpu_s=cpu_s)
        result = json.loads(done.stdout) if done.returncode == 0 else {"status": "killed"}
        checks = [s["check"] for s in result["kernels"][0]["stages"]] if result["status"] == "ok" else []
        if checks and checks[0]["status"] == "pass":
            break
    assert len(checks) == len(compiler.pipeline()) and result["status"] == "ok", done.stderr
    assert [d["code"] for d in result["diagnostics"]] == ["check-incomplete"]
    assert checks[0]["status"] == "pass" and checks[-2]["status"] == "skipped" and "past the time" in checks[-2]["reason"]


def test_what_a_kernel_raises_and_its_lines_cannot_command_the_terminal():
    done = nkx("compile", "-", stdin="def k(x):\n    raise ValueError('a\\x1b[31mred\\x07')  # \x1b[32m\n", env={**os.environ, "TERM": "dumb"})
    assert "\x1b" not in done.stderr and "\x07" not in done.stderr
    kernel = "HloModule m\nENTRY main {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] \x1b[31madd(x, x)\n}\n"
    done = nkx("compile", "-", "--language", "hlo", stdin=kernel)
    assert done.returncode == 1 and "f32[4] \\x1b[31madd(x, x)" in done.stderr and "\x1b" not in done.stderr
