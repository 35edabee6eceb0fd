"""What a kernel fixes is so in every stage up to engine-programs: places on chip and calls that wait, also where the kernel is a
part of a NumPy kernel, whose passes unite and move instructions.  Each kernel here would be changed by one of them."""
import re

import numpy as np
import pytest

from support import compiler
from support.nki_kernels import HEAD
from support.runs import simulated

MODEL = HEAD + """
from nkigen import trace

{kernel}

@trace(input_specs=[((128, 2048), 'f32')])
def model(a):
    return kernel(a * 2)
"""

# sixteen transposes through one tensor in PSUM: four would fill a bank (coalesce-transfers)
TURNED = """
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 16, 128), x.dtype, buffer=nl.shared_hbm)
    t, u = nl.ndarray((128, 16, 128), x.dtype), nl.ndarray((128, 16, 128), x.dtype)
    nisa.dma_copy(dst=t, src=x.reshape((128, 16, 128)))
    for i in range(16):
        p = nl.ndarray((128, 128), nl.float32, buffer=nl.psum{place})
        nisa.nc_transpose(dst=p, data=t[:, i, :], engine=nisa.engine.tensor)
        nisa.tensor_copy(dst=u[:, i, :], src=p, engine=nisa.engine.vector)
    nisa.dma_copy(dst=out, src=u)
    return out
"""

# two products that do not need each other: one would move to the Scalar engine, as an activation (balance-engines)
WAITING = """
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 2048), x.dtype, buffer=nl.shared_hbm)
    y, z, w = nl.ndarray((128, 2048), x.dtype), nl.ndarray((128, 2048), x.dtype), nl.ndarray((128, 2048), x.dtype)
    nisa.dma_copy(dst=y, src=x)
    def body(i):
        first = nisa.tensor_scalar(dst=z, data=y, op0=nl.multiply, operand0=2.0)
        nisa.tensor_scalar(dst=w, data=y, op0=nl.multiply, operand0=0.5){wait}
        nisa.tensor_tensor(dst=y, data1=w, data2=z, op=nl.add)
    nl.fori_loop(0, 8, body)
    nisa.dma_copy(dst=out, src=y)
    return out
"""


def turned(a):
    return 2 * a.reshape(128, 16, 128).transpose(2, 1, 0)


def compiled(kernel):
    """(the source, the kernel of the result, all of whose stages compute the same)"""
    source = MODEL.format(kernel=kernel)
    result = compiler.compile(source, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    [model] = result["kernels"]
    assert {s["name"]: s["check"] for s in model["stages"] if s["check"]["status"] != "pass"} == {}
    return source, model


def nisa_stages(model):
    names = [s["name"] for s in model["stages"]]
    return names[names.index("linalg-to-nisa"):]


def test_transposes_without_an_address_fill_a_bank():
    _, model = compiled(TURNED.format(place=""))
    assert "memref<128x4x128xf32, #nisa.mem<psum>>" in compiler.stage(model, "coalesce-transfers")["text"]


def test_a_tensor_with_an_address_is_there_in_every_stage_of_a_numpy_kernel(rng):
    source, model = compiled(TURNED.format(place=", address=(0, 3 * 2048)"))
    for name in nisa_stages(model):
        places = [line for line in compiler.stage(model, name)["text"].splitlines() if "nisa.alloc" in line and "mem<psum>" in line]
        assert len(places) == 1 and "address=[3, 0]" in places[0], (name, places)
    assert "address=[3, 0] at=[3, 0] copies=1" in places[0]
    a = rng.uniform(-1, 1, (128, 2048)).astype(np.float32)
    [out] = simulated(source, {"a": a})[0].values()
    assert (out == turned(a)).all()


def test_calls_without_an_order_are_given_to_other_engines():
    _, model = compiled(WAITING.format(wait=""))
    assert "nisa.activation(" in compiler.stage(model, "balance-engines")["text"]


def test_calls_that_wait_do_so_in_every_stage_of_a_numpy_kernel():
    _, model = compiled(WAITING.format(wait=".depends_on(first)"))
    for name in nisa_stages(model):
        text = compiler.stage(model, name)["text"]
        [label], [after] = re.findall(r'label="(.*?)"', text), re.findall(r'after="(.*?)"', text)
        assert label == after, name
        assert text.index("label=") < text.index("after="), name


# what the second loop stored is loaded by Sync, and so is b, which waits for nothing and would go first (engine-programs)
STORED = HEAD + """
@nki.jit
def kernel(a: nl.tensor[1024, 512], b: nl.tensor[128, 512]):
    scratch = nl.ndarray((1024, 512), nl.float32, buffer=nl.hbm)
    out = nl.ndarray((1024, 512), nl.float32, buffer=nl.shared_hbm)
    {block}
        for i in range(8):
            x = nl.ndarray((128, 512), nl.float32)
            nisa.dma_copy(dst=x, src=a[i * 128:i * 128 + 128])
            nisa.activation(dst=x, op=nl.exp, data=x)
            nisa.dma_copy(dst=scratch[i * 128:i * 128 + 128], src=x)
        for i in range(8):
            y = nl.ndarray((128, 512), nl.float32)
            nisa.dma_copy(dst=y, src=scratch[i * 128:i * 128 + 128])
            nisa.tensor_scalar(dst=y, data=y, op0=nl.multiply, operand0=2.0)
            nisa.dma_copy(dst=out[i * 128:i * 128 + 128], src=y)
        w = nl.ndarray((128, 512), nl.float32)
        nisa.dma_copy(dst=w, src=b)
        nisa.tensor_scalar(dst=w, data=w, op0=nl.multiply, operand0=3.0)
        nisa.dma_copy(dst=out[0:128], src=w)
    return out
"""

# an operand whose parts are read in another order than they are loaded (coalesce-transfers)
LOADED = """
@nki.jit
def kernel(x):
    out = nl.ndarray((2, 128, 512), x.dtype, buffer=nl.shared_hbm)
    t, l = nl.ndarray((128, 8, 2, 512), x.dtype), nl.ndarray((128, 128), x.dtype)
    nisa.memset(dst=l, value=1.0)
    y = x.reshape((128, 2, 1024))
    {block}
        for k in range(8):
            for n in range(2):
                nisa.dma_copy(dst=t[:, k, n, :], src=y[:, n, 64 * k:64 * k + 512])
    for n in range(2):
        p, r = nl.ndarray((128, 512), nl.float32, buffer=nl.psum), nl.ndarray((128, 512), x.dtype)
        for k in range(8):
            nisa.nc_matmul(dst=p, stationary=l, moving=t[:, k, n, :])
        nisa.tensor_copy(dst=r, src=p)
        nisa.dma_copy(dst=out[n], src=r)
    return out
"""
BLOCKS = {"no_reorder": "with nl.no_reorder():", "any order": "if True:"}


@pytest.mark.parametrize("block", BLOCKS)
def test_sync_starts_the_transfers_of_no_reorder_in_their_order(block, rng):
    source = STORED.format(block=BLOCKS[block])
    [kernel] = compiler.compile(source, check=True)["kernels"]
    assert all(s["check"]["status"] == "pass" for s in kernel["stages"][1:])
    sync = re.search(r"nisa\.program sync \{\n(.*?)\n    \}", compiler.stage(kernel, "engine-programs")["text"], re.S)[1]
    queues = re.findall(r"nisa\.dma_trigger (\w+)", sync)
    assert queues == (["qSyncIn", "qSyncBack", "qSyncIn"] if block == "no_reorder" else ["qSyncIn", "qSyncIn", "qSyncBack"])
    a, b = (rng.uniform(-1, 1, (n, 512)).astype(np.float32) for n in (1024, 128))
    [out] = simulated(source, {"a": a, "b": b})[0].values()
    np.testing.assert_allclose(out, np.concatenate([3 * b, 2 * np.exp(a[128:])]), rtol=1e-5)


@pytest.mark.parametrize("block", BLOCKS)
def test_loads_in_no_reorder_are_not_exchanged(block):
    _, model = compiled(LOADED.format(block=BLOCKS[block]))
    rules = [r["text"] for r in compiler.stage(model, "coalesce-transfers")["remarks"]]
    assert any("in the order of reading" in text for text in rules) == (block == "any order"), rules


@pytest.mark.parametrize("block", BLOCKS)
def test_calls_in_no_reorder_stay_on_their_engine(block):
    first, _, rest = WAITING.format(wait="").partition("    nl.fori_loop")
    body = f"    def body(i):\n        {BLOCKS[block]}\n" + first.partition("    def body(i):\n")[2].replace("        ", "            ")
    _, model = compiled(first.partition("    def body")[0] + body + "    nl.fori_loop" + rest)
    assert ("nisa.activation(" in compiler.stage(model, "balance-engines")["text"]) == (block == "any order")


@pytest.mark.parametrize("block", ["nl.no_reorder()", "ncc.no_reorder()"])
def test_calls_of_beta_1_keep_their_order(block):
    source = f"""import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.language as nl
from neuronxcc.nki.language import tensor

@nki.jit
def kernel(a: tensor[128, 512]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    with {block}:
        y = nl.exp(x)
        z = y * 2.0
    nl.store(out, z)
    return out
"""
    [kernel] = compiler.compile(source, check=True)["kernels"]
    kept = ["in_order" in line for line in compiler.stage(kernel, "engine-programs")["text"].splitlines() if re.search(r"nisa\.(dma_copy|act|tens)", line)]
    assert sorted(kept) == [False, False, True, True]


def test_rounds_of_which_some_are_in_no_reorder_stay_apart():
    source = HEAD + """
@nki.jit
def kernel(a: nl.tensor[512, 512]):
    out = nl.ndarray((512, 512), nl.float32, buffer=nl.shared_hbm)
    def move(i):
        x = nl.ndarray((128, 512), nl.float32)
        nisa.dma_copy(dst=x, src=a[i * 128:i * 128 + 128])
        nisa.dma_copy(dst=out[i * 128:i * 128 + 128], src=x)
    for i in range(4):
        if i < 2:
            with nl.no_reorder():
                move(i)
        else:
            move(i)
    return out
"""
    [kernel] = compiler.compile(source, check=True)["kernels"]
    assert compiler.stage(kernel, "nki-to-nisa")["text"].count("in_order") == 4
    [text] = {r["text"] for r in compiler.stage(kernel, "nki-reroll")["remarks"] if "no_reorder" in r["text"]}
    assert "one call of nisa.dma_copy is in no_reorder, another is not" in text
