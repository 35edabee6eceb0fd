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
