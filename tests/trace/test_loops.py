"""fori_loop: traced once into a while that computes what the Python loop computes."""
import numpy as np
import pytest

from support.kernels.fori_loops import HEAD, KERNELS, kernel
from support.oracles import xla


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_while_computes_what_the_loop_computes(name):
    k = xla.check(kernel(*KERNELS[name]))
    assert sum(i["opcode"] == "while" for i in k["instructions"]) == KERNELS[name][0].count("fori_loop") - (name == "nested")


def test_no_iterations_give_the_initial_value():
    k = xla.check(kernel("return fori_loop(2, 2, lambda i, a: a + x[99], x + 1.0)", "((4,), 'f32')"))
    assert all(i["opcode"] != "while" for i in k["instructions"])


def test_the_body_runs_once_in_python():
    result = xla._nkx.trace_source(kernel("def body(i, a):\n    print('once')\n    return a + x[i]\n"
                                          "return fori_loop(0, 1000, body, x[0])", "((1000, 2), 'f32')"))
    assert result["status"] == "ok" and result["output"] == "once\n"


def test_an_input_that_is_written_to_becomes_an_alias():
    k = xla.trace(kernel(*KERNELS["writes into an input"]))
    assert [o["alias_of"] for o in k["outputs"]] == [-1, 0]


def test_without_a_trace_it_is_the_loop():
    body = lambda i, a: a + i  # noqa: E731
    assert xla._nkx.fori_loop(0, 5, body, 0) == 10
    assert xla._nkx.fori_loop(5, 0, body, 3) == 3
    with pytest.raises(TypeError):
        xla._nkx.fori_loop(0, 2.5, body, 0)


def test_every_import_name():
    for name in ("nkigen.apis", "nkipy_kernelgen.apis", "nkx"):
        xla.check(f"import numpy as np\nfrom nkigen import trace\nfrom {name} import fori_loop\n"
                  "@trace(input_specs=[((4,), 'f32')])\ndef kernel(x):\n    return fori_loop(0, 3, lambda i, a: a + x, x)\n")


# (code, statement with the refused expression in «», message, hint)
REFUSED = [
    ("shape-mismatch", "«fori_loop(0, 3, lambda i, a: a + x, x[0])»",
     "fori_loop: the carried value is float32 (4,), but the body returns float32 (4, 4)", "give init the shape"),
    ("dtype-promotion", "«fori_loop(0, 3, lambda i, a: a + x[i], np.zeros(4, np.float16))»",
     "fori_loop: the carried value is float16 (4,), but the body returns float32 (4,)", "astype"),
    ("dtype-promotion", "«fori_loop(0, 3, lambda i, s: (s[0], s[1] + 0.5), (x, k))»",
     "fori_loop: carried value 1 is int32 (4,), but the body returns float32 (4,)", "astype"),
    ("bad-argument", "«fori_loop(0, 3, lambda i, a: (a, a), x)»", "the body must return one tensor, not a tuple", None),
    ("bad-argument", "«fori_loop(0, 3, lambda i, a: None, x)»", "the body must return one tensor, not a None", "return the new value"),
    ("bad-argument", "«fori_loop(0, 3, lambda i, s: s[0], (x, x))»", "init is a tuple of 2", "one entry per"),
    ("bad-argument", "«fori_loop(0, 3, lambda i, s: (s[0],), (x, x))»", "init has 2 values, but the body returns a tuple of 1", None),
    ("bad-argument", "«fori_loop(0, 3, lambda i, a: a, [x])»", "init must not be a list", "tuple"),
    ("bad-argument", "«fori_loop(0, 3, 5, x)»", "body must be a function, not a int", None),
    ("bad-argument", "«fori_loop(0, 2.5, lambda i, a: a, x)»", "upper must be an integer, not float", None),
    ("traced-value", "«fori_loop(k[0], 3, lambda i, a: a, x)»", "lower is a traced tensor", None),
    ("bad-argument", "fori_loop(0, 2, lambda i, a: «fori_loop(0, i, lambda j, b: b, a)», x)", "upper is another loop's index", "np.where"),
    ("bad-argument", "fori_loop(0, 5, lambda i, a: a + «x[i]», x[0])",
     "this index runs from 0 to 4, which is out of bounds for axis 0 with size 4", "every iteration"),
    ("bad-argument", "fori_loop(0, 3, lambda i, a: a + «x[i * 2:(i + 1) * 2]», x[0:2])", "runs from 0 to 5", None),
    ("unsupported-index", "fori_loop(0, 3, lambda i, a: a + np.sum(«x[i:]»), x[0])", "the size of this slice is not the same", "i * T"),
    ("unsupported-index", "fori_loop(0, 2, lambda i, a: a + np.sum(«x[i:2 * i + 1]»), x[0])", "the size of this slice", None),
    ("traced-bool", "fori_loop(0, 3, lambda i, a: a if «i == 0» else a + x, x)", None, "np.where"),
    ("traced-value", "fori_loop(0, 3, lambda i, a: [a for _ in «range(i)»][0], x)", "cannot be used as a Python index or size", "unrolled"),
    ("traced-value", "fori_loop(0, 3, lambda i, a: a + «int(i)», x)", "cannot be converted to a Python int", None),
    ("bad-argument", "t = []; fori_loop(0, 3, lambda i, a: (t.append(x[i]), a + x[i])[1], x[0]); z = «t[0] + 1.0»",
     "made in the body of a fori_loop is used outside", "return it from the body"),
    ("bad-argument", "t = []; fori_loop(0, 3, lambda i, a: (t.append(i), a)[1], x); z = «x[t[0]]»",
     "the index of a fori_loop is used outside of its body", None),
    ("unsupported-index", "fori_loop(0, 3, lambda i, a: («x.__setitem__(i, a)», a)[1], x[0])", "writes to a tensor from outside", "carry it"),
    ("unsupported-index", "«fori_loop(0, 3, lambda i, a: (a.__setitem__(i, 0.0), a + 1.0)[1], x)»",
     "writes to carried value 0 and returns another", "np.copy"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_a_loop_is_refused_where_it_stands(case):
    code, statement, message, hint = case
    source = kernel(f"{statement.replace('«', '').replace('»', '')}\nreturn x", "((4, 4), 'f32'), ((4,), 'i32')", "x, k")
    result = xla._nkx.trace_source(source)
    (d,) = [d for d in result["diagnostics"] if d["severity"] == "error"]
    start, end = 5 + statement.index("«"), 4 + statement.index("»")
    assert d["code"] == code, d
    assert message is None or message in d["message"], d["message"]
    assert not hint or hint in d["hint"], d
    assert d["src"][0][1:5] == (6, start, 6, end), d


def test_a_loop_that_was_refused_leaves_nothing_behind():
    xla.check(kernel("try:\n    fori_loop(0, 3, lambda i, a: a @ np.exp(x[0:2]), x)\nexcept ValueError:\n    pass\nreturn x + 1.0",
                     "((4, 4), 'f32')"))


def test_provenance_reaches_into_the_body():
    k = xla.trace(kernel("def body(i, a):\n    return a + np.exp(x[i])\nreturn fori_loop(0, 3, body, x[0])", "((3, 4), 'f32')"))
    assert "fori_loop_1_body" in k["text"] and np.all([i["src"] for i in k["instructions"]])
