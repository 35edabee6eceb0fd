"""Tensors whose place on chip the kernel chooses: they are there to the end, and what cannot be there is refused."""
import re

import numpy as np
import pytest

from support import compiler
from support.nki_kernels import HEAD
from support.runs import simulated

# the tiles of even and of odd rounds have a place each; others are placed around them
ROTATING = HEAD + """
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    factor = nl.ndarray((32, 64), a.dtype, buffer=nl.sbuf, address=(96, 0))
    nisa.memset(dst=factor, value=3.0)
    for i in range(6):
        x = nl.ndarray((32, 64), a.dtype, buffer=nl.sbuf, address=(64, 8192 + i % 2 * 256))
        y = nl.ndarray((32, 64), a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x, src=a[i * 32:i * 32 + 32])
        nisa.tensor_tensor(dst=y, data1=x, data2=factor, op=nl.multiply)
        nisa.dma_copy(dst=out[i * 32:i * 32 + 32], src=y)
    return out
"""

# a loop whose rounds use one place, and a tensor in PSUM in the fourth bank
SAME_PLACE = HEAD + """
@nki.jit
def kernel(a):
    out = nl.ndarray((P, 64), a.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((P, 64), nl.float32, buffer=nl.psum, address=(0, 3 * 2048))
    for i in range(4):
        x = nl.ndarray((P, P), a.dtype, buffer=nl.sbuf, address=(0, 1024))
        y = nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf, address=(0, 2048))
        nisa.dma_copy(dst=x, src=a[i * P:i * P + P, 0:P])
        nisa.dma_copy(dst=y, src=a[i * P:i * P + P, P:P + 64])
        nisa.nc_matmul(total, x, y)
    z = nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf, address=(0, 1024))
    nisa.tensor_copy(dst=z, src=total)
    nisa.dma_copy(dst=out, src=z)
    return out
"""

BETA_1 = """import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.compiler as ncc
"""

MOD_ALLOC = BETA_1 + """
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray((4, nl.par_dim(128), 64), dtype=a.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=512, num_free_tiles=(2,)))
    p = nl.ndarray((4, nl.par_dim(64), 128), dtype=nl.float32, buffer=ncc.psum.mod_alloc(base_bank=2, num_bank_tiles=(3,)))
    y = nl.ndarray((4, nl.par_dim(64), 128), dtype=a.dtype, buffer=ncc.sbuf.alloc(lambda block, partitions, row: (64 * (block[0] % 2), 4096)))
    for i in nl.affine_range(4):
        x[i] = nl.load(a[i * 128:(i + 1) * 128, :])
        p[i] = nisa.nc_transpose(x[i])
        y[i] = nl.copy(p[i], dtype=a.dtype)
        nl.store(out[i * 128:i * 128 + 64, :], y[i][:, 0:64])
        nl.store(out[i * 128 + 64:(i + 1) * 128, :], y[i][:, 64:128])
    return out
"""


def blocks_transposed(a):
    parts = [a[i:i + 128].T for i in range(0, 512, 128)]
    return np.concatenate([half for p in parts for half in (p[:, :64], p[:, 64:])])


KERNELS = {
    "rotating": (ROTATING, (192, 64), lambda a: 3 * a, ["96, 0", "64, 8192", "64, 8448"]),
    "one place": (SAME_PLACE, (512, 192), lambda a: a[:, :128].T @ a[:, 128:], ["3, 0", "0, 1024", "0, 2048"]),
    "mod_alloc": (MOD_ALLOC, (512, 64), blocks_transposed, ["0, 512", "0, 768", "2, 0", "3, 0", "4, 0", "0, 4096", "64, 4096"]),
}


def launched(source, shape):
    return f"{source}\nkernel(np.zeros({shape}, np.float32))\n"


def errors(source, shape=(128, 64)):
    return [d for d in compiler.compile(launched(source, shape))["diagnostics"] if d["severity"] == "error"]


@pytest.mark.parametrize("name", KERNELS)
def test_tensors_are_at_their_addresses_in_every_stage_and_the_values_are_right(name, rng):
    source, shape, want, places = KERNELS[name]
    result = compiler.compile(launched(source, shape), check=True)
    assert result["status"] == "ok", result["diagnostics"]
    [kernel] = result["kernels"]
    assert [s["check"]["status"] for s in kernel["stages"][-3:]] == ["pass"] * 3
    assert set(re.findall(r"address=\[(.*?)\]", compiler.stage(kernel, "nki-to-nisa")["text"])) == set(places)
    for stage in ("allocate-memory", "engine-programs"):
        found = re.findall(r"address=\[(.*?)\] at=\[(.*?)\]", compiler.stage(kernel, stage)["text"])
        assert {a for a, _ in found} == set(places) and all(a == at for a, at in found), found
    a = rng.uniform(-1, 1, shape).astype(np.float32)
    outputs, _ = simulated(launched(source, shape), {"a": a})
    np.testing.assert_allclose(outputs["out"], want(a), rtol=1e-4, atol=1e-4)


def test_rounds_that_use_one_place_are_a_loop_and_those_that_rotate_say_why_not():
    [kernel] = compiler.compile(launched(SAME_PLACE, (512, 192)))["kernels"]
    assert "for i in nl.affine_range(4):" in compiler.stage(kernel, "nki-reroll")["text"]
    assert "scf.for" in compiler.stage(kernel, "engine-programs")["text"]
    [kernel] = compiler.compile(launched(ROTATING, (192, 64)))["kernels"]
    [remark] = [r["text"] for r in compiler.stage(kernel, "nki-reroll")["remarks"] if "address" in r["text"]]
    assert "the tensor x has another address" in remark


def test_the_trace_shows_addresses():
    [kernel] = compiler.compile(launched(ROTATING, (192, 64)))["kernels"]
    assert "x_1 = nl.ndarray((32, 64), nl.float32, buffer=nl.sbuf, address=(64, 8448))" in compiler.stage(kernel, "nki-trace")["text"]


def test_both_cores_have_all_addresses(rng):
    source = HEAD + """
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    own = slice(nl.program_id(0) * 64, nl.program_id(0) * 64 + 64)
    x = nl.ndarray((64, 64), a.dtype, buffer=nl.sbuf, address=(64, 4096))
    nisa.dma_copy(dst=x, src=a[own])
    nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1.0 + nl.program_id(0))
    nisa.dma_copy(dst=out[own], src=x)
    return out
"""
    a = rng.uniform(-1, 1, (128, 64)).astype(np.float32)
    outputs, _ = simulated(source + "\nkernel[2](np.zeros((128, 64), np.float32))\n", {"a": a})
    np.testing.assert_allclose(outputs["out"], a + np.arange(1, 3).repeat(64)[:, None], atol=1e-6)


def at(memory, shape, address, dtype="nl.float32"):
    return f"t = nl.ndarray({shape}, {dtype}, buffer=nl.{memory}, address={address})"


BOUNDS = [  # a tensor that is just inside, and one that is not
    (at("sbuf", "(128, 64)", "(0, 212728)"), at("sbuf", "(128, 64)", "(0, 212732)"), "cannot begin at byte 212732 of 212984"),
    (at("sbuf", "(128, 64)", "(0, 0)"), at("sbuf", "(128, 64)", "(0, -4)"), "cannot begin at byte -4"),
    (at("sbuf", "(64, 64)", "(64, 0)"), at("sbuf", "(65, 64)", "(64, 0)"), "a tensor of 65 partitions begins at partition 0, not 64"),
    (at("sbuf", "(32, 64)", "(96, 0)"), at("sbuf", "(33, 64)", "(96, 0)"), "a tensor of 33 partitions begins at partition 0 or 64, not 96"),
    (at("sbuf", "(32, 64)", "(32, 0)"), at("sbuf", "(32, 64)", "(16, 0)"), "begins at partition 0, 32, 64 or 96, not 16"),
    (at("sbuf", "(32, 64)", "(0, 2)", "nl.bfloat16"), at("sbuf", "(32, 64)", "(0, 2)"), "the address 2 is not a multiple of the size of an element, 4"),
    (at("psum", "(128, 512)", "(0, 14336)"), at("psum", "(128, 512)", "(0, 16384)"), "cannot begin at byte 16384 of 16384"),
    (at("psum", "(128, 256)", "(0, 2048)"), at("psum", "(128, 256)", "(0, 1024)"), "tensors there begin with a bank, every 2048 bytes"),
    (at("psum", "(64, 256)", "(0, 0)"), at("psum", "(64, 256)", "(64, 0)"), "a tensor in psum begins at partition 0, not 64"),
    (at("sbuf", "(128, 64)", "(0, 0)"), at("hbm", "(128, 64)", "(0, 0)"), "a tensor in hbm has no address"),
    (at("sbuf", "(128, 64)", "(0, 0)"), at("sbuf", "(128, 64)", "(0,)"), "an address of 1 number"),
]


@pytest.mark.parametrize("inside, outside, message", BOUNDS)
def test_an_address_that_does_not_exist_is_refused_where_it_stands(inside, outside, message):
    body = HEAD + """
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    {}
    nl.store(out, nl.load(a))
    return out
"""
    assert not errors(body.format(inside))
    found = [d for d in errors(body.format(outside)) if d.get("range")]
    code = "nki-memory-full" if "begin with a bank" in message else "nki-address"
    assert found and all(d["code"] == code and message in d["message"] for d in found), found
    line = body.format(outside).splitlines()[found[0]["range"]["line"] - 1]
    assert line.strip() == outside


TWO = HEAD + """
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf, address=(0, 1024))
    y = nl.ndarray({shape}, a.dtype, buffer=nl.sbuf, address=({partition}, {byte}))
    nisa.dma_copy(dst=x, src=a)
    {between}
    nisa.dma_copy(dst=y, src=a[0:{shape}[0]])
    nisa.dma_copy(dst=out[0:{shape}[0]], src=y)
    nisa.dma_copy(dst=out, src={last})
    return out
"""


@pytest.mark.parametrize("given, is_refused", [
    ({}, True), ({"byte": 1024 + 256}, False), ({"byte": 1024 + 252}, True), ({"byte": 1024 - 256}, False), ({"byte": 1024 - 252}, True),
    ({"shape": "(32, 64)", "partition": 96}, True), ({"last": "y", "between": "nisa.dma_copy(dst=out, src=x)"}, False),
])
def test_tensors_in_use_at_the_same_time_share_no_byte(given, is_refused):
    values = {"shape": "(128, 64)", "partition": 0, "byte": 1024, "between": "pass", "last": "x", **given}
    source = TWO.format(**values)
    found = errors(source)  # of the call in the file, and of the compile
    assert bool(found) == is_refused and {d["code"] for d in found} <= {"nki-address"}, found
    for d in found[1:]:
        assert "y has bytes of sbuf" in d["message"] and "x of line 12, which is in use at the same time" in d["message"]
        assert source.splitlines()[d["range"]["line"] - 1].strip().startswith("y = nl.ndarray")


@pytest.mark.parametrize("first, is_refused", [("x", True), ("y", False)])
def test_what_a_loop_on_the_device_uses_is_in_use_in_all_its_rounds(first, is_refused):
    source = HEAD + f"""
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf, address=(0, 1024))
    nisa.dma_copy(dst=x, src=a)
    y = nl.ndarray((P, 64), a.dtype, buffer=nl.sbuf, address=(0, {1024 if first == "x" else 4096}))
    def body(i):
        nisa.dma_copy(dst=out, src=x)
        nisa.dma_copy(dst=y, src=a)
    nl.fori_loop(0, 4, body)
    return out
"""
    assert bool(errors(source)) == is_refused


@pytest.mark.parametrize("buffer, message", [
    ("ncc.sbuf.alloc(64)", "sbuf.alloc needs a function, but got 64"),
    ("ncc.sbuf.alloc(lambda block, partitions, row: 64)", "the function of sbuf.alloc returned 64"),
    ("ncc.psum.alloc(lambda block, partitions, row: (0, 64))", "the function of psum.alloc returned (0, 64)"),
    ("ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(2, 2))", "num_free_tiles is (2, 2), but the tensor has 1 axes of blocks"),
    ("ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(0,))", "num_free_tiles is (0,)"),
    ("ncc.sbuf.mod_alloc(base_addr=0, base_partition=64)", "a tensor of 128 partitions begins at partition 0, not 64"),
    ("ncc.psum.mod_alloc(base_bank=8)", "cannot begin at byte 16384"),
])
def test_a_wrong_allocation_of_beta_1_is_refused(buffer, message):
    source = BETA_1 + f"""
@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((2, nl.par_dim(128), 64), dtype=nl.float32, buffer={buffer})
    nl.store(out, nl.load(a))
    return out
"""
    found = [d for d in errors(source) if d.get("range")]
    assert found and all(d["code"] == "nki-address" for d in found) and any(message in d["message"] for d in found), found


def test_an_allocation_of_beta_1_in_a_newer_kernel_is_told_the_new_spelling():
    source = launched(ROTATING.replace("import nki\n", "import nki\nimport neuronxcc.nki.compiler as ncc\n").replace(
        "buffer=nl.sbuf, address=(96, 0)", "buffer=ncc.sbuf.mod_alloc(base_addr=0)"), (192, 64))
    found = [d for d in compiler.compile(source)["diagnostics"] if d["code"] == "nki-mixed-generations"]
    assert found and all(d["hint"] == "write nl.ndarray(…, buffer=nl.sbuf, address=(partition, byte))" for d in found)
