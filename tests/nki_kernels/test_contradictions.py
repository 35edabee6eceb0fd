"""Where public material on NKI contradicts itself, or leaves the values open: what is decided here, the header that says so, and a
kernel whose result would be another one otherwise."""
import pathlib
import re

import numpy as np
import pytest

import nkipy  # noqa: F401  (it adds nki where the vendor's package is not installed)
import nki
import nki.isa as nisa
import nki.language as nl
from support import compiler
from support.nki_kernels import HEAD
from support.paths import ROOT

SUBSET, NKI, RULES, COMPOSE, REROLL, NISA = ("compiler/trace/python/nkx/nki_subset.py", *(
    f"compiler/nki/{name}.h" for name in ("nki", "rules", "compose", "reroll")), "compiler/nisa/nisa.h")

SAID = [  # the topic, the file, and what it says
    (".ap(offset=n) of a view", NKI, "offset counts elements from the view's first one"),
    ("loops of Python", REROLL, "a loop of Python is unrolled when the kernel runs, and a loop again afterwards"),
    ("functions inside", SUBSET, "nested functions, lambda, comprehensions accepted: they run at compile time, and fori_loop needs them"),
    ("the index of dynamic_range", NKI, "it may be an index and a scalar_offset"),
    ("is", SUBSET, "They mean identity, as in Python"),
    ("integers", SUBSET, "Python's, without a limit, at compile time; a number that a call takes has at most 64 bits, and a register has 32"),
    ("tiles of columns", RULES, "tile_position and tile_size may choose tiles of rows and of columns"),
    ("tensor_scalar_reduce", COMPOSE, "A call reduces its results in f32, before they are converted to dst's type"),
    ("reduce_res of activation", COMPOSE, "It adds them to the registers once, and then stores these in reduce_res, which it does not read"),
    ("bias of activation", RULES, "The bias of an activation has any type but tfloat32"),
    ("floats that become integers", NISA, "to an integer in the same way, and if out of range to the nearest value, NaN to 0"),
    ("memory that is not initialised", NISA, "memory that is not initialised, which is a fault to read"),
    ("sin beyond pi", NISA, "sin (of every x;"),
    ("bits of copies", NISA, "between equal types the bits do not change, as in every copy"),
    ("integers on GpSimd", NISA, 'With engine = "gpsimd" integers stay integers'),
    ("comparisons", NISA, "is_eq is_ne is_gt is_ge is_lt is_le logical_and logical_or logical_xor (1 or 0;"),
]


@pytest.mark.parametrize("topic, file, sentence", SAID, ids=[s[0] for s in SAID])
def test_a_header_says_what_is_decided(topic, file, sentence):
    text = re.sub(r"\s+(\* )?\s*", " ", (pathlib.Path(ROOT) / file).read_text())
    assert sentence in text


CASES = []


def case(topic, want, *inputs):
    """A kernel, its result, and its inputs."""
    def add(kernel):
        CASES.append((topic, kernel, np.asarray(want), inputs))
        return kernel
    return add


def f32(*rows):
    return np.array(rows, np.float32)


COUNT = np.arange(32, dtype=np.float32).reshape(2, 16)
LONG = np.full((4, 20), 1 + 2 ** -10, np.float32)  # bf16 would make 1 of it


@case(".ap(offset=n) of a view", COUNT[:, 10:13], COUNT)
@nki.jit
def ap_of_a_view(x):
    out = nl.ndarray((2, 3), nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=nl.load(x)[:, 8:].ap([[16, 2], [1, 3]], offset=2))
    return out


@case("functions inside", COUNT + 3, COUNT)
@nki.jit
def functions_inside(x):
    out, t = nl.ndarray((2, 16), nl.float32, buffer=nl.shared_hbm), nl.load(x)

    def body(i):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    nl.fori_loop(0, 3, body)
    nl.store(out, t)
    return out


@case("the index of dynamic_range", COUNT.reshape(8, 4), COUNT.reshape(8, 4))
@nki.jit
def index_as_an_offset(x):
    out = nl.ndarray((8, 4), nl.float32, buffer=nl.shared_hbm)
    for i in nl.dynamic_range(0, 8, 2):
        t = nl.ndarray((2, 4), nl.float32)
        nisa.dma_copy(dst=t, src=x.ap([[4, 2], [1, 4]], scalar_offset=i))
        nisa.dma_copy(dst=out.ap([[4, 2], [1, 4]], scalar_offset=i), src=t)
    return out


@case("is", COUNT, COUNT)
@nki.jit
def identity(x):
    out = nl.ndarray((2, 16), nl.float32, buffer=nl.shared_hbm)
    p, q = [1], [1]
    assert p == q and not (p is q) and p is not None
    nl.store(out, nl.load(x))
    return out


@case("integers", [[np.iinfo(np.int32).min]], np.array([[np.iinfo(np.int32).max]], np.int32))
@nki.jit
def integers(x):
    out, t = nl.ndarray((1, 1), nl.int32, buffer=nl.shared_hbm), nl.load(x)
    assert (1 << 31) + (1 << 31) == 1 << 32 and (1 << 40) * (1 << 40) == 1 << 80
    r = nisa.register_alloc(t)
    nisa.register_store(t, r + 1)
    nl.store(out, t)
    return out


@case("tiles of columns", np.full((128, 2), 64, np.float32), np.ones((128, 64), np.float32))
@nki.jit
def tiles_of_columns(x):
    out, l = nl.ndarray((128, 2), nl.float32, buffer=nl.shared_hbm), nl.load(x)
    p = nl.ndarray((128, 2), nl.float32, buffer=nl.psum)
    for k in (0, 64):
        nisa.nc_matmul(p[k:k + 64], l[k:k + 64], l[k:k + 64, 0:2], tile_position=(k, k), tile_size=(64, 64))
    nl.store(out, nl.copy(p))
    return out


@case("tensor_scalar_reduce", LONG.sum(1, keepdims=True), LONG)
@nki.jit
def reduction_of_f32(x):
    out = nl.ndarray((4, 1), nl.float32, buffer=nl.shared_hbm)
    d, r = nl.ndarray((4, 20), nl.bfloat16), nl.ndarray((4, 1), nl.float32)
    nisa.tensor_scalar_reduce(d, nl.load(x), nl.multiply, 1.0, nl.add, r)
    nl.store(out, r)
    return out


@case("reduce_res of activation", 2 * LONG.sum(1, keepdims=True), LONG)
@nki.jit
def one_addition(x):
    out = nl.ndarray((4, 1), nl.float32, buffer=nl.shared_hbm)
    d, r = nl.ndarray((4, 20), nl.float32), nl.ndarray((4, 1), nl.float32)
    nisa.memset(r, 100.0)
    for cmd in (nisa.reduce_cmd.reset_reduce, nisa.reduce_cmd.reduce):
        nisa.activation(d, nl.copy, nl.load(x), reduce_op=nl.add, reduce_res=r, reduce_cmd=cmd)
    nl.store(out, r)
    return out


def square_with_bias(x, b):
    out, t = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm), nl.ndarray(x.shape, nl.float32)
    nisa.activation(dst=t, op=nl.square, data=nl.load(x), bias=nl.load(b))
    nl.store(out, t)
    return out


for name in ("float32", "int32", "int16", "uint8"):
    column = np.arange(2, dtype=name)[:, None]
    case(f"bias of activation, {name}", np.square(COUNT + column.astype(np.float32)), COUNT, column)(nki.jit(square_with_bias))


@case("floats that become integers", [[0, 2, 2, 0, -2, np.iinfo(np.int32).max, np.iinfo(np.int32).min, 0]], f32([.5, 1.5, 2.5, -.5, -1.5, 3e9, -3e9, np.nan]))
@nki.jit
def to_integers(x):
    out, t = nl.ndarray((1, 8), nl.int32, buffer=nl.shared_hbm), nl.ndarray((1, 8), nl.int32)
    nisa.tensor_copy(dst=t, src=nl.load(x))
    nl.store(out, t)
    return out


@case("sin beyond pi", np.sin(f32([9, -9, 100, 1])), f32([9, -9, 100, 1]))
@nki.jit
def sine(x):
    out = nl.ndarray((1, 4), nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.sin(nl.load(x)))
    return out


ODD = np.array([[2 ** 24 + 1, -(2 ** 30) - 1, 0x7fc12345, 7]], np.int32)  # f32 has none of the first two; the third is a NaN


@case("bits of copies", ODD, ODD)
@nki.jit
def bits(x):
    out, t = nl.ndarray((1, 4), nl.int32, buffer=nl.shared_hbm), nl.ndarray((1, 4), nl.int32)
    nisa.tensor_copy(dst=t, src=nl.load(x))
    u = nl.ndarray((1, 4), nl.float32)
    nisa.tensor_copy(dst=u, src=t.view(nl.float32))
    nisa.dma_copy(dst=out, src=u.view(nl.int32))
    return out


@case("integers on GpSimd", np.vstack([ODD + ODD[:, ::-1], (ODD.astype(np.float32) + ODD[:, ::-1].astype(np.float32)).astype(np.float64).clip(-2**31, 2**31 - 1)]).astype(np.int32),
      ODD, np.ascontiguousarray(ODD[:, ::-1]))
@nki.jit
def sums_of_integers(x, y):
    out = nl.ndarray((2, 4), nl.int32, buffer=nl.shared_hbm)
    a, b, t = nl.load(x), nl.load(y), nl.ndarray((1, 4), nl.int32)
    for row, engine in enumerate((nisa.engine.gpsimd, nisa.engine.vector)):
        nisa.tensor_tensor(t, a, b, nl.add, engine=engine)
        nisa.dma_copy(dst=out[row:row + 1], src=t)
    return out


@case("comparisons", [[1, 0, 0]], f32([1, 2, np.nan]))
@nki.jit
def comparisons(x):
    out, t = nl.ndarray((1, 3), nl.int8, buffer=nl.shared_hbm), nl.ndarray((1, 3), nl.int8)
    nisa.tensor_scalar(dst=t, data=nl.load(x), op0=nl.less, operand0=2.0)
    nl.store(out, t)
    return out


@pytest.mark.parametrize("topic, kernel, want, inputs", CASES, ids=[c[0] for c in CASES])
def test_a_kernel_computes_what_is_decided(topic, kernel, want, inputs):
    got = np.asarray(nki.simulate(kernel)(*inputs))
    assert got.shape == want.shape
    if got.dtype.kind in "iu":
        assert (got == want).all(), (got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_memory_that_nothing_has_written_is_not_read():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((2, 16), nl.float32, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=nl.ndarray((2, 16), nl.float32))
        return out
    with pytest.raises(Exception, match="reads memory that nothing has written"):
        nki.simulate(kernel)(COUNT)


COMPILED = HEAD + """
@nki.jit
def kernel(x: nl.tensor[512, 64]):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    {}
    return out
"""


def test_a_loop_of_python_is_unrolled_and_a_loop_again():
    source = COMPILED.format("for i in nl.affine_range(4):\n        nl.store(out[i * P:i * P + P], nl.load(x[i * P:i * P + P]))")
    [kernel] = compiler.compile(source)["kernels"]
    assert compiler.stage(kernel, "nki-trace")["text"].count("nl.store(") == 4
    assert "for i in nl.affine_range(4):" in compiler.stage(kernel, "nki-reroll")["text"]


@pytest.mark.parametrize("line, code", [
    ("m = [1]; assert m is not [1]", "nki-deprecated"), ("nisa.iota(t, [[1, 64]], offset=1 << 63)", "nki-argument"),
    ("nisa.activation(t, nl.exp, t, bias=t[:, 0:1].view(nl.tfloat32))", "nki-dtype")])
def test_what_is_outside_of_the_decision_says_so(line, code):
    source = COMPILED.format(f"t = nl.load(x[0:P])\n    {line}\n    nl.store(out[0:P], t)")
    assert code in {d["code"] for d in compiler.compile(source)["diagnostics"]}


def test_every_decision_has_a_kernel():
    proven = {c[0].partition(",")[0] for c in CASES} | {"loops of Python", "memory that is not initialised"}
    assert proven == {s[0] for s in SAID}
