"""Memref stages that another compiler printed, lowered by linalg-to-nisa and simulated, equal NumPy.

    NKX_DUMPS=DIRECTORY pytest tests/sim/test_dumps.py

The directory has a folder for each kernel below, with numbered stages; the one with the highest number is lowered.  The
files are not part of this repository."""
import os
import pathlib
import subprocess

import numpy as np
import pytest

from measured import dumps, floors
from support.oracles.nisa_eval import Module, parse_memref
from support.paths import WORKER
from support.simulator import Fault, Simulator

DUMPS = os.environ.get("NKX_DUMPS")


def softmax(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


KERNELS = {
    "batch_matmul_knobs": lambda a, b: a @ b,
    "exp_partition_dim_1": np.exp,
    "fuse_siblings": lambda a, b: (a + b, a - b),
    "matmul_add_knobs": lambda a, b, c: a @ b + c,
    "matmul_auto": lambda a, b: a @ b,
    "sigmoid_auto": lambda x: 1 / (1 + np.exp(-x)),
    "softmax_auto": softmax,
    "softmax_knobs": softmax,
    "transpose_3d_knobs": lambda x: np.transpose(x, (0, 2, 1)),
}


# This stage loads its result before anything has written it, and overwrites what it loaded.  The simulator refuses that.
LOADS_WHAT_NOTHING_WROTE = {"batch_matmul_knobs"}


def with_zeros(text):
    """The result in HBM, which is 2x256x256, is zero at the beginning."""
    alloc = next(line for line in text.split("\n") if "%hbm = nisa.alloc" in line)
    hbm, tile = alloc.split(" : ")[1], "memref<128x256xf32, #nisa.mem<sbuf>>"
    zeros = [f"%zeros = nisa.alloc : {tile}", "%zero = arith.constant 0.0 : f32",
             f"nisa.memset(dst<128| 256>={tile} %zeros[d0, d1], value=f32 %zero) engine=vector"]
    for k in range(4):
        zeros.append(f"nisa.dma_copy(dst<128| 256>={hbm} %hbm[{k // 2}, d0 + {k % 2 * 128}, d1], "
                     f"src<128| 256>={tile} %zeros[d0, d1]) engine=dma")
    return text.replace(alloc, "\n".join([alloc, *zeros, f"nisa.release %zeros : {tile}"]))


@pytest.mark.skipif(not DUMPS, reason="NKX_DUMPS names no directory of another compiler's stages")
@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("name", KERNELS)
def test_another_compilers_memref_stage_computes_on_nisa_what_numpy_computes(name, target, record_property):
    last = sorted((pathlib.Path(DUMPS) / name).glob("*.mlir"))[-1]
    done = subprocess.run([WORKER, "opt", f"--linalg-to-nisa=target={target}", "--print-nisa", last], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal(parse_memref(t)[0]).astype(np.float32) for _, t in Module(done.stdout).args]
    want = KERNELS[name](*inputs)
    text = done.stdout
    with Simulator() as s:
        if name in LOADS_WHAT_NOTHING_WROTE:
            with pytest.raises(Fault, match="unwritten-read"):
                s.run(text, inputs)
            text = with_zeros(text)
        got = s.run(text, inputs)
    for g, w in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-5, atol=2e-5)
    record_property("instructions", s.instrs)


@pytest.mark.skipif(not DUMPS, reason="NKX_DUMPS names no directory of another compiler's stages")
@pytest.mark.parametrize("name", KERNELS)
def test_with_the_same_knobs_our_code_is_never_slower(name):
    stages = dict(dumps.kernels(DUMPS))[name]
    theirs, ours = (dumps.figures(text)["us"] for text in (dumps.theirs(stages), dumps.ours(stages)))
    assert ours <= theirs * 1.0005, f"{ours:.2f} us, not {theirs:.2f}"


@pytest.mark.skipif(not DUMPS, reason="NKX_DUMPS names no directory of another compiler's stages")
@pytest.mark.parametrize("name", KERNELS)
def test_no_program_is_below_the_floor_of_its_kernel(name):
    stages = dict(dumps.kernels(DUMPS))[name]
    floor = floors.floor_us(name)
    for text in (dumps.theirs(stages), dumps.ours(stages), dumps.ours(stages, knobs=False)):
        assert dumps.figures(text)["us"] >= floor
