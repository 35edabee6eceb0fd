"""Every pair of dtypes, and every dtype with Python's numbers, gives what frontend's table says, in either order."""
import itertools

import pytest

from support.oracles import xla

SIGNED, UNSIGNED = ["int8", "int16", "int32"], ["uint8", "uint16", "uint32"]
FLOATS, EIGHTS = ["float16", "bfloat16", "float32"], ["float8_e5m2", "float8_e4m3fn", "float8_e4m3"]
DTYPES = ["bool", *SIGNED, *UNSIGNED, *FLOATS, *EIGHTS]
BITS = {t: int(t.lstrip("uint")) for t in SIGNED + UNSIGNED}


def expected(a, b):
    """The dtype, or None where there is no way; 64 bits are narrowed to 32."""
    if a == b or b == "bool":
        return a
    if a == "bool":
        return b
    if a in BITS and b in BITS:
        if (a in SIGNED) == (b in SIGNED):
            return max(a, b, key=BITS.get)
        s, u = (a, b) if a in SIGNED else (b, a)
        return s if BITS[s] > BITS[u] else f"int{min(2 * BITS[u], 32)}"
    if a in BITS or b in BITS:
        return b if a in BITS else a
    if a in EIGHTS and b in EIGHTS:
        return None
    if a in EIGHTS or b in EIGHTS:
        return b if a in EIGHTS else a
    return "float32"


PAIRS = list(itertools.product(DTYPES, DTYPES))


def test_pairs():
    good = [(a, b) for a, b in PAIRS if expected(a, b)]
    assert len(good) == len(PAIRS) - 6
    names = [f"x{k}" for k in range(len(DTYPES))]
    at = dict(zip(DTYPES, names))
    body = "".join(f"        np.add({at[a]}, {at[b]}),\n        np.where({at['bool']}, {at[a]}, {at[b]}),\n" for a, b in good)
    kernel = xla.trace(f"import numpy as np\ndef kernel({', '.join(names)}):\n    return (\n{body}    )\n",
                       inputs=[(at[t], (2,), t) for t in DTYPES])
    got = [o["dtype"] for o in kernel["outputs"]]
    assert list(zip(good, got[::2])) == [(p, expected(*p)) for p in good]
    assert got[::2] == got[1::2]


@pytest.mark.parametrize("a, b", [p for p in PAIRS if not expected(*p)])
def test_pairs_without_promotion_are_refused(a, b):
    r = xla._nkx.trace_source("def kernel(x, y):\n    return x + y\n", inputs=[("x", (2,), a), ("y", (2,), b)])
    (d,) = r["diagnostics"]
    assert d["code"] == "dtype-promotion" and d["message"] == f"No implicit dtype promotion path between {a} and {b}"


def test_python_numbers():
    names = [f"x{k}" for k in range(len(DTYPES))]
    body = "".join(f"        {n} * 1, 1 * {n}, {n} + 0.5, 0.5 + {n}, {n} + True,\n" for n in names)
    kernel = xla.trace(f"def kernel({', '.join(names)}):\n    return (\n{body}    )\n", inputs=[(n, (2,), t) for n, t in zip(names, DTYPES)])
    got = [o["dtype"] for o in kernel["outputs"]]
    for k, t in enumerate(DTYPES):
        with_int = "int32" if t == "bool" else t
        with_float = "float32" if t == "bool" or t in BITS else t
        assert got[5 * k:5 * k + 5] == [with_int, with_int, with_float, with_float, t], t


def test_64_bits_are_narrowed_with_a_warning():
    r = xla._nkx.trace_source("def kernel(x, y, z):\n    return x, y, z\n", inputs=[("x", (2,), "f64"), ("y", (2,), "i64"), ("z", (2,), "u64")])
    assert [o["dtype"] for o in r["kernels"][0]["outputs"]] == ["float32", "int32", "uint32"]
    assert [(d["severity"], d["code"]) for d in r["diagnostics"]] == [("warning", "dtype-narrowed")] * 3
