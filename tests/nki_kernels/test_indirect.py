"""t.indirect(index): columns that numbers select, against NumPy's own indexing."""
import numpy as np
import pytest

import nkipy  # noqa: F401  (it adds nki where the vendor's package is not installed)
import nki

from support import compiler, nki_checks
from support.nki_kernels import HEAD

P, F = 64, 40


def kernel(body, name="k", out="float32", n=24):
    return f"""
@nki.jit
def {name}(x: nl.tensor[{P}, {F}], y: nl.tensor[{P}, {n}], i: nl.tensor[nl.uint16, ({P}, 2)]):
    t, u, index = nl.load(x), nl.load(y), nl.load(i)
    out = nl.ndarray(({P}, {n}), nl.{out}, buffer=nl.shared_hbm)
    z = nl.ndarray(({P}, {n}), nl.{out})
    {body}
    nl.store(out, z)
    return out
"""


def columns(x, i, n):
    """An own model: in each group of 16 partitions, the numbers go down the partitions first."""
    out = np.empty((len(x), n), x.dtype)
    for p in range(len(x)):
        first = p - p % 16
        for k in range(n):
            out[p, k] = x[p, i[first + k % 16, k // 16]]
    return out


CASES = {
    "tensor_copy": ("nisa.tensor_copy(z, t.indirect(index, 24))", lambda c, y: c),
    "tensor_tensor": ("nisa.tensor_tensor(z, t.indirect(index, num_elem=24), u, nl.subtract)", lambda c, y: c - y),
    "tensor_scalar": ("nisa.tensor_scalar(z, t.indirect(index, 24), nl.multiply, 3.0, op1=nl.add, operand1=1.0)", lambda c, y: c * 3 + 1),
    "activation": ("nisa.activation(z, nl.square, t.indirect(index, 24), scale=0.5)", lambda c, y: (c * np.float32(0.5)) ** 2),
    "tensor_reduce": ("nisa.tensor_reduce(z[:, 0:1], nl.add, t.indirect(index, 24), 1); nisa.tensor_copy(z[:, 1:24], u[:, 1:24])",
                      lambda c, y: np.concatenate([c.sum(1, keepdims=True), y[:, 1:]], 1)),
    "tensor_copy_predicated": ("nisa.tensor_copy(z, u); b = nl.ndarray((64, 40), nl.uint8); nisa.tensor_scalar(b, t, nl.greater, 0.0); "
                               "nisa.tensor_copy_predicated(z, 7.0, b.indirect(index, 24))", lambda c, y: np.where(c > 0, np.float32(7), y)),
    "of a view": ("nisa.tensor_copy(z, t[:, 4:40].indirect(index, 24))", None),
}


def operands(rng):
    x = rng.integers(-9, 9, (P, F)).astype(np.float32)
    y = rng.integers(-9, 9, (P, 24)).astype(np.float32)
    return x, y, rng.integers(0, F - 4, (P, 2)).astype(np.uint16)


@pytest.mark.parametrize("what", CASES)
def test_a_call_reads_the_columns_that_numbers_select(what, rng, monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    body, formula = CASES[what]
    x, y, i = operands(rng)
    names = {}
    source = HEAD + kernel(body)
    exec(compile(source, "kernel.py", "exec"), names)
    got = nki.simulate(names["k"])(x, y, i)
    want = columns(x[:, 4:], i, 24) if formula is None else formula(columns(x, i, 24), y)
    assert np.array_equal(got, want)


# what is written to columns of t, which is 40 wide: the call, and the columns by x, y and the columns before
WRITES = {
    "tensor_copy": ("nisa.tensor_copy(t.indirect(index, 24), u)", lambda x, y, c: y),
    "tensor_tensor": ("nisa.tensor_tensor(t.indirect(index, 24), t.indirect(index, 24), u, nl.add)", lambda x, y, c: c + y),
    "tensor_scalar": ("nisa.tensor_scalar(t.indirect(index, 24), u, nl.multiply, 3.0)", lambda x, y, c: y * 3),
    "tensor_reduce": ("w = nl.load(y).reshape((64, 12, 2)); nisa.tensor_reduce(t.indirect(index, 12), nl.add, w, 2)",
                      lambda x, y, c: y.reshape(64, 12, 2).sum(2)),
    "activation": ("nisa.activation(t.indirect(index, num_elem=24), nl.square, u)", lambda x, y, c: y * y),
    "tensor_copy_predicated": ("m = nl.ndarray((64, 24), nl.uint8); nisa.tensor_scalar(m, u, nl.greater, 0.0); "
                               "nisa.tensor_copy_predicated(t.indirect(index, 24), 7.0, m)", lambda x, y, c: np.where(y > 0, np.float32(7), c)),
    "of a view": ("nisa.tensor_copy(t[:, 4:40].indirect(index, 24), u)", lambda x, y, c: y),
}


def writing(body, name="k"):
    """A kernel that returns t.  Its numbers are 32 columns of each group, each once."""
    return kernel(body, name).replace(f"out = nl.ndarray(({P}, 24)", f"out = nl.ndarray(({P}, {F})").replace("nl.store(out, z)", "nl.store(out, t)")


def permuted(rng):
    numbers = np.stack([rng.permutation(F - 4)[:32].reshape(2, 16).T for _ in range(P // 16)])
    return numbers.reshape(P, 2).astype(np.uint16)


def written(x, i, values):
    out = x.copy()
    for p in range(len(x)):
        first = p - p % 16
        for k in range(values.shape[1]):
            out[p, i[first + k % 16, k // 16]] = values[p, k]
    return out


@pytest.mark.parametrize("what", WRITES)
def test_a_call_writes_the_columns_that_numbers_select(what, rng, monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    body, formula = WRITES[what]
    (x, y, _), i, names = operands(rng), permuted(rng), {}
    exec(compile(HEAD + writing(body), "kernel.py", "exec"), names)
    got, want = nki.simulate(names["k"])(x, y, i), x.copy()
    part = want[:, 4:] if what == "of a view" else want
    part[...] = written(part, i, formula(x, y, columns(part, i, 24)))
    assert np.array_equal(got, want)


def test_every_stage_computes_what_calls_that_write_columns_do():
    source = HEAD + "".join(writing(body, f"k{n}") for n, (body, _) in enumerate(WRITES.values()))
    result = compiler.compile(source, "--target", "trn3", check=True)
    assert result["status"] == "ok", result["diagnostics"]
    for k in result["kernels"]:
        assert nki_checks.all_pass(k), (k["name"], [s.get("check") for s in k["stages"]])
        text = {s["name"]: s["text"] for s in k["stages"]}
        assert ".indirect(index" in text["nki-trace"] and ".indirect(" not in text["nki-canonicalize"]


def test_columns_of_a_part_of_a_group_cannot_be_written():
    source = HEAD + writing("nisa.tensor_copy(t[0:8].indirect(index[0:8], 24), u[0:8])")
    [d] = [d for d in compiler.compile(source, "--target", "trn3")["diagnostics"] if d["severity"] == "error"]
    assert d["code"] == "nki-operand" and "no groups of 16" in d["message"]


def test_every_stage_computes_what_the_calls_do():
    source = HEAD + "".join(kernel(body, f"k{n}") for n, (body, _) in enumerate(CASES.values()))
    result = compiler.compile(source, "--target", "trn3", check=True)
    assert result["status"] == "ok", result["diagnostics"]
    assert len(result["kernels"]) == len(CASES)
    for k in result["kernels"]:
        assert nki_checks.all_pass(k), (k["name"], [s.get("check") for s in k["stages"]])
        text = {s["name"]: s["text"] for s in k["stages"]}
        assert ".indirect(index" in text["nki-trace"], text["nki-trace"]
        assert "nisa.local_gather(" in text["nki-canonicalize"] and ".indirect(" not in text["nki-canonicalize"]


REFUSED = [
    ("nisa.memset(«z.indirect(index, 24)», 0.0)", "nki-operand", "dst of nisa.memset cannot be columns", "trn3"),
    ("nisa.dma_copy(«z.indirect(index, 24)», y)", "nki-operand", "dst of nisa.dma_copy cannot be columns", "trn3"),
    ("nisa.tensor_tensor(z, u, «t.indirect(index, 24)», nl.add)", "nki-operand", "data2 of nisa.tensor_tensor cannot be columns", "trn3"),
    ("nisa.reciprocal(z, «t.indirect(index, 24)»)", "nki-operand", "cannot be columns", "trn3"),
    ("nisa.tensor_copy(z, «t.indirect(index, 24)»)", "nki-unsupported", "trn2 does not have .indirect", "trn2"),
    ("nisa.tensor_copy(z, «x.indirect(index, 24)»)", "nki-memory", "src is in shared_hbm", "trn3"),
    ("m = nl.ndarray((64, 40), nl.float32, buffer=nl.psum); nisa.tensor_copy(z, «m.indirect(index, 24)»)", "nki-view", "the tensor of .indirect is in psum", "trn3"),
    ("nisa.tensor_copy(z, «t.indirect(u, 24)»)", "nki-dtype", "index of .indirect has the type float32", "trn3"),
    ("nisa.tensor_copy(z, «t.indirect(index, 33)»)", "nki-bounds", "num_elem of .indirect is 33", "trn3"),
    ("nisa.tensor_copy(z, «t.indirect(index, 0)»)", "nki-bounds", "num_elem of .indirect is 0", "trn3"),
    ("nisa.tensor_copy(z, «t.indirect(index[0:32], 24)»)", "nki-view", "partitions 0 to 31", "trn3"),
    ("nisa.tensor_copy(z, «t.indirect(index, 24)[:, 0:4]»)", "nki-view", "operand of nki.isa only", "trn3"),
    ("nisa.tensor_copy(z, «t.indirect(index, 24).reshape((64, 24))»)", "nki-view", "operand of nki.isa only", "trn3"),
    ("m = nl.ndarray((64, 24), nl.float32, buffer=nl.psum); nisa.nc_matmul(m, t, «t.indirect(index, 24)»)", "nki-operand",
     "moving of nisa.nc_matmul cannot be columns", "trn3"),
]


@pytest.mark.parametrize(("line", "code", "text", "target"), REFUSED)
def test_what_cannot_be_such_columns_is_refused_at_its_place(line, code, text, target):
    at, end = line.index("«"), line.index("»") - 1
    source = HEAD + kernel(line.replace("«", "").replace("»", ""))
    result = compiler.compile(source, "--target", target)
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert [(d["code"], text in d["message"]) for d in errors] == [(code, True)], errors
    place = errors[0]["range"]
    row = source.split("\n")[place["line"] - 1].strip()
    assert row == line.replace("«", "").replace("»", "") and (place["col"], place["end_col"]) == (at + 5, end + 5), place
    assert errors[0].get("hint") or code == "nki-bounds"


def test_a_view_says_that_numbers_select_its_columns():
    result = compiler.compile(HEAD + kernel("""c = t.indirect(index)
    assert c.is_indirect() and not t.is_indirect() and c.shape == (64, 32) and c.dtype == t.dtype and c.buffer == nl.sbuf
    nisa.tensor_copy(z, t.indirect(index, 24))"""), "--target", "trn3")
    assert result["status"] == "ok", result["diagnostics"]
