"""The texts of nki-ast and nki-trace are kernels: the check runs them, and one that is wrong fails."""
import json
import os
import subprocess
import sys

import pytest

from support import compiler
from support.nki_kernels import HEAD
from support.paths import BUILD, NKX

BETA_1 = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
"""

KERNELS = {
    "enumerations": HEAD + """
@nki.jit
def k(x: nl.tensor[nl.float32, (64, 20)]):
    out, t = nl.ndarray((64, 20), nl.float32, buffer=nl.shared_hbm), nl.load(x)
    r, total = nl.ndarray((64, 20), nl.float32, buffer=nl.sbuf), nl.ndarray((64, 1), nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar_cumulative(dst=r, src=t, op0=nl.multiply, op1=nl.add, imm0=0.5, imm1=3.0, reduce_cmd=nisa.reduce_cmd.load_reduce)
    nisa.activation(dst=t, op=nl.copy, data=r, reduce_op=nl.add, reduce_res=total, reduce_cmd=nisa.reduce_cmd.reset_reduce)
    nisa.dma_copy(dst=out, src=t, oob_mode=nisa.oob_mode.error, dge_mode=nisa.dge_mode.none)
    return out
""",
    "branches on the device, and loops without calls": HEAD + """
@nki.jit
def k(x: nl.tensor[nl.float32, (128, 8)], n: nl.tensor[nl.int32, (1, 1)]):
    out, t = nl.ndarray((128, 8), nl.float32, buffer=nl.shared_hbm), nl.load(x)
    r = nisa.register_alloc(n)
    for i in nl.dynamic_range(3):
        if i == r:
            nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    nl.fori_loop(0, r, lambda i: None)
    nl.store(out, t)
    return out
""",
    "block dimensions, and operators in place": BETA_1 + """
@nki.jit
def k(x: nt.tensor[256, 64]):
    out = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.zeros((2, nl.par_dim(128), 64), nl.float32)
    for i in nl.affine_range(2):
        t[i] = nl.load(x[i * 128:(i + 1) * 128, :])
        part = t[i] + 1.0
        part *= 2.0
        nl.store(out[i * 128:(i + 1) * 128, :], part)
    return out
""",
    "views of parameters, and rows that are repeated": BETA_1 + """
@nki.jit
def k(x: nt.tensor[64], y: nt.tensor[128, 64]):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    row = nl.load(x.reshape((1, 64))[nl.arange(1)[:, None], nl.arange(64)[None, :]])
    nl.store(out, nl.load(y) * row.broadcast_to((128, 64)))
    return out
""",
    "instances of a launch": BETA_1 + """
import numpy as np
@nki.jit
def k(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    rows, columns = nl.program_id(0) * 32 + nl.arange(32)[:, None], nl.arange(16)[None, :]
    nl.store(out[rows, columns], nl.load(x[rows, columns]) + nl.program_id(0))
    return out
k[4](np.zeros((128, 16), np.float32))
"""}


@pytest.mark.parametrize("name", KERNELS)
def test_both_texts_are_run_and_compute_what_the_kernel_computes(name):
    result = compiler.compile(KERNELS[name], "--stop-after", "nki-canonicalize", check=True)
    assert result["status"] == "ok", result["diagnostics"]
    assert [s["check"]["status"] for s in result["kernels"][0]["stages"]] == ["pass"] * 3, result["kernels"][0]["stages"][1]["text"]


def test_a_function_of_another_file_has_the_names_of_its_file(tmp_path):
    (tmp_path / "helper.py").write_text("import nki.isa as isa, nki.language as lang\nBY = 3.0\n"
                                        "def scaled(t):\n    isa.tensor_scalar(dst=t, data=t, op0=lang.multiply, operand0=BY)\n")
    (tmp_path / "main.py").write_text(HEAD + """
from helper import scaled
@nki.jit
def k(x: nl.tensor[nl.float32, (128, 64)]):
    out, t = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm), nl.load(x)
    scaled(t)
    nl.store(out, t)
    return out
""")
    done = subprocess.run([NKX, "compile", tmp_path / "main.py", "--check", "--quiet", "--json", "-"], capture_output=True, text=True, timeout=60)
    [kernel] = json.loads(done.stdout)["kernels"]
    assert [s["check"]["status"] for s in kernel["stages"]] == ["pass"] * 7, done.stderr


@pytest.mark.parametrize("text, error", [("def k(x):\n  return y\n", "NameError"), ("def k(x):\n  nl.store(x)\n", "TypeError"),
                                         ("def k(x):\n  for i in range(2):\n  return x\n", "IndentationError"),
                                         ("def k(x):\n  c = nl.shared_constant(<float32 array of the shape (2, 2)>)\n", "NkiUnsupported"),
                                         ("def k(x):\n  # core 1\n  return x\n", "NkiUnsupported")])
def test_only_what_a_text_does_not_show_is_a_reason_not_to_run_it(text, error):
    """NkiUnsupported skips the check of the stage; any other error fails it (compiler/driver/stage_check.c)."""
    code = ("import sys, numpy as np\nfrom nkx import nki_again\nx = np.zeros((2, 2), np.float32)\n"
            "try:\n    nki_again.evaluate(None, 2, False, sys.argv[1], (), {}, [x], 'trn2', None)\n"
            "except Exception as e:\n    print(type(e).__name__)\n")
    path = os.pathsep.join(map(str, (BUILD / "python", BUILD / "python/nkx/stubs")))
    done = subprocess.run([sys.executable, "-c", code, text], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == error, done.stderr
