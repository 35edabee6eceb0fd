"""Everything that is refused: stable code, a sentence, the exact range, and no harm to the next job."""
import pytest

from support.oracles import xla

trace_source = xla._nkx.trace_source

HEAD = "import numpy as np\nfrom nkigen import trace, knob\n"
LINE = 5  # of the statement under test


def refused(statement, specs="[((4, 4), 'f32'), ((3, 5), 'f32'), ((4,), 'i32')]"):
    result = trace_source(f"{HEAD}@trace(input_specs={specs})\ndef kernel(x, y, i):\n    {statement}\n    return x\n")
    assert result["status"] != "ok" and result["kernels"] == []
    (d,) = [d for d in result["diagnostics"] if d["severity"] == "error"]
    return d


# (code, statement with the refused expression in «», message or None, hint or None)
CASES = [
    ("unsupported-op", "«np.linalg.svd(x)»", "np.linalg.svd is not supported in a kernel", "decompositions"),
    ("unsupported-op", "z = 1 + «np.bincount(i)»", "np.bincount is not supported in a kernel", "np.arange"),
    ("unsupported-op", "«np.gradient(x, axis=0)»", "np.gradient is not supported in a kernel", "slices"),
    ("unsupported-op", "«np.nextafter(x, x)»", "np.nextafter is not supported in a kernel", "eps"),
    ("unsupported-op", "«np.subtract.accumulate(x)»", "np.subtract.accumulate is not supported in a kernel", None),
    ("unsupported-op", "«np.linalg.norm(x, 2)»", None, "fro"),
    ("unsupported-op", "«np.pad(x, 1, mode='mean')»", "np.pad with mode=\"mean\" is not supported", "constant"),
    ("unsupported-op", "«np.compress(i > 0, x, axis=0)»", None, "np.where"),
    ("bad-argument", "«np.putmask([1.0], x > 0, x)»", "putmask: the first argument must be an array, not list", None),
    ("bad-argument", "«np.einsum('ij,jk', x)»", "einsum: more subscripts than operands", "->"),
    ("bad-argument", "«np.einsum('ijk->i', x)»", None, "->"),
    ("shape-mismatch", "«np.einsum('ij,kj->ik', x, y)»", "einsum: an index has the sizes 4 and 5", None),
    ("shape-mismatch", "«np.tensordot(x, y)»", None, None),
    ("dtype-promotion", "«np.sum(x, axis=0, out=i)»", None, "astype"),
    ("unsupported-op", "«np.linalg.eigvals(x)»", "np.linalg.eigvals is not supported in a kernel", None),
    ("unsupported-op", "«x.fill»(0)", "ndarray.fill is not supported in a kernel", "x[...]"),
    ("unsupported-op", "«x.tolist»()", "ndarray.tolist is not supported in a kernel", "return it"),
    ("unsupported-op", "«np.where(x > 0)»", None, "np.where(condition, x, y)"),
    ("unsupported-op", "«np.sum(x, where=x > 0)»", "np.sum with where= is not supported", "np.where"),
    ("shape-mismatch", "«np.sum(x, axis=0, out=y)»", None, None),
    ("shape-mismatch", "a = np.zeros((4, 3)); «np.add(x, 1, out=a)»", None, None),
    ("unsupported-op", "«x.reshape(2, 8, order='F')»", "order='F' is not supported", None),
    ("unsupported-op", "«np.repeat(x, [1, 2, 3, 4], axis=0)»", None, "np.take"),
    ("unsupported-dtype", "«x >> 1»", "right_shift is not defined for float32", "power of two"),
    ("unsupported-dtype", "«1 << x»", "left_shift is not defined for float32", "power of two"),
    ("unsupported-op", "«pow(x, 2, 3)»", None, None),
    ("traced-iter", "«a, b» = x[0, 0]", None, None),
    ("traced-iter", "«list(x[0, 0])»", None, None),
    ("traced-bool", "«if x[0, 0] > 0»: pass", None, "np.where"),
    ("traced-bool", "«while x[0, 0] > 0»: pass", None, "np.where"),
    ("traced-bool", "«assert x[0, 0] > 0»", None, None),
    ("traced-bool", "«bool(x)»", None, None),
    ("traced-bool", "«max(x[0, 0], x[0, 1])»", None, None),
    ("traced-value", "«float(x[0, 0])»", "a traced tensor cannot be converted to a Python float: its value is not known while tracing", None),
    ("traced-value", "«int(x[0, 0])»", None, None),
    ("traced-value", "«np.asarray(x)»", "a traced tensor cannot be converted to a NumPy array: it has no data while tracing", "np.stack"),
    ("traced-value", "«np.array([x[0, 0], 1.0])»", None, None),
    ("traced-value", "«range(i[0])»", None, "x.shape[0]"),
    ("traced-value", "«np.zeros(i)»", None, None),
    ("traced-value", "«np.ones((9, 9)).dot(x)»", None, "np.dot(T, x)"),
    ("traced-value", "«np.ones((9, 9)).take(i)»", None, "np.dot(T, x)"),
    ("traced-value", "«f'{x[0, 0]:.2f}'»", None, None),
    ("traced-value", "«x.reshape(i[0], 4)»", None, None),
    ("traced-iter", "for v in «x[0, 0]»: pass", None, None),
    ("shape-mismatch", "«x @ y»", "matmul: shapes (4, 4) and (3, 5) do not fit together", "transpose"),
    ("shape-mismatch", "«x + y»", "operands could not be broadcast together with shapes (4, 4) (3, 5)", None),
    ("shape-mismatch", "«np.dot(x, y)»", None, None),
    ("shape-mismatch", "«x @ 2»", None, "use *"),
    ("shape-mismatch", "«x.reshape(3, -1)»", "cannot reshape array of shape (4, 4) into shape (3, -1)", None),
    ("shape-mismatch", "«np.concatenate([x, y])»", None, None),
    ("shape-mismatch", "«np.stack([x, y])»", None, None),
    ("shape-mismatch", "«np.broadcast_to(x, (4, 5))»", "shape (4, 4) cannot be broadcast to (4, 5)", None),
    ("shape-mismatch", "«x[0:2]» = y", "could not broadcast input array from shape (3, 5) into shape (2, 4)", None),
    ("shape-mismatch", "«i += x»", None, None),
    ("bad-argument", "«np.sum(x, axis=2)»", "axis 2 is out of bounds for array of dimension 2", None),
    ("bad-argument", "«np.sum(x, axis=(0, -2))»", "duplicate value in 'axis'", None),
    ("bad-argument", "«x.sum(axes=0)»", None, None),
    ("python-exception", "«np.sum(x, axes=0)»", None, None),
    ("bad-argument", "«np.transpose(x, (0, 0))»", "repeated axis in transpose", None),
    ("bad-argument", "«np.transpose(x, (0,))»", None, None),
    ("bad-argument", "«np.split(x, 3)»", "array split does not result in an equal division: 4 into 3", "indices"),
    ("bad-argument", "«np.split(x, 0)»", None, None),
    ("bad-argument", "«np.squeeze(x, 0)»", "cannot select an axis to squeeze out which has size not equal to one: axis 0 has size 4", None),
    ("bad-argument", "«np.expand_dims(x, (0, 0))»", "repeated axis", None),
    ("bad-argument", "«np.concatenate([x], axis=3)»", None, None),
    ("bad-argument", "«x[4]»", "index 4 is out of bounds for axis 0 with size 4", None),
    ("bad-argument", "«x[0, 0, 0]»", None, None),
    ("bad-argument", "a = np.ones(4); a.flags.writeable = False; «a[0]» = x[0, 0]", "assignment destination is read-only", "np.copy"),
    ("bad-argument", "«np.broadcast_to(x, (2, 4, 4))[0, 0, 0]» = 1", "assignment destination is read-only", "np.copy"),
    ("bad-argument", "«np.diagonal(x)[0]» = 1", "assignment destination is read-only", "np.copy"),
    ("bad-argument", "a = np.ones((4, 4)); a[0] = x[0]; b = np.diagonal(a); «b[0]» = 1", "assignment destination is read-only", "np.copy"),
    ("bad-argument", "a = np.ones((4, 4)); «np.diagonal(a)[0:1]» = x[0, 0]", "assignment destination is read-only", "np.copy"),
    ("unsupported-index", "a = np.ones((4, 4)); b = a.view(np.int32); «a[0]» = x[0]", None, "np.copy"),
    ("unsupported-dtype", "a = np.ones(4, np.clongdouble); «a[0]» = x[0, 0]", None, "float32"),
    ("unsupported-index", "y = x.T + 1; r = y.reshape(-1); «r[0]» = 1", None, "np.copy"),
    ("unsupported-index", "y = x.T + 1; r = y.reshape(-1); y[0] = 1; «r + 1»", None, "np.copy"),
    ("bad-argument", "«x[..., ...]»", "an index can only have a single ellipsis ('...')", None),
    ("bad-argument", "«x[[0, 7]]»", "index 7 is out of bounds for axis 0 with size 4", None),
    ("bad-argument", "«i ** -1»", "integers to negative integer powers are not allowed", None),
    ("bad-argument", "«i + 3000000000»", "Python integer 3000000000 out of bounds for int32", None),
    ("bad-argument", "«np.max(x[:0])»", "zero-size array to reduction operation max which has no identity", None),
    ("unsupported-index", "«x[x > 0]»", None, "np.where"),
    ("unsupported-index", "«x[True]»", "Boolean scalar indexing (x[True], x[False]) is not supported", "None"),
    ("shape-mismatch", "«x[i, i[:3]]»", "shape mismatch: indexing arrays could not be broadcast together with shapes (4,) (3,)", None),
    ("unsupported-index", "«x[x > 0]» = y[0]", None, "np.where"),
    ("bad-argument", "«x[np.ones(3, bool)]»", None, None),
    ("unsupported-index", "«x[:i[0]]»", None, None),
    ("unsupported-index", "«x[1.5]»", None, None),
    ("unsupported-index", "«x['a']»", None, None),
    ("unsupported-index", "«x[x]»", None, "astype"),
    ("unsupported-dtype", "«x.astype(np.clongdouble)»", None, "float32"),
    ("unsupported-dtype", "«np.floor(x * 1j)»", "floor is not supported for complex numbers", "x.real"),
    ("unsupported-dtype", "«x & x»", "bitwise_and is not defined for float32", "x > 0"),
    ("unsupported-dtype", "«~x»", None, "logical_not"),
    ("unsupported-dtype", "«(x > 0) - (x < 0)»", None, "^"),
    ("unsupported-dtype", "«-(x > 0)»", None, None),
    ("unsupported-dtype", "«i + np.array([1 << 40])»", None, "32 bits"),
    ("dtype-promotion", "«i /= 2»", "cannot store a float32 result in a int32 tensor in place", None),
    ("dtype-promotion", "«np.add(x, x, dtype=np.int32)»", None, None),
    ("dtype-promotion", "«np.exp(x, dtype=np.int32)»", None, None),
    ("python-exception", "«raise ValueError('no')»", "ValueError: no", None),
    ("python-exception", "«{}['k']»", "KeyError: 'k'", None),
    ("python-exception", "«raise ValueError('a\\0b')»", "ValueError: a\x1ab", None),
    ("python-exception", "«undefined_name»", "NameError: name 'undefined_name' is not defined", None),
    ("python-exception", "«x + 'a'»", None, None),
    ("python-exception", "«{x: 1}»", None, None),
    ("python-exception", "«x.nothing»", "AttributeError: 'nkx.Tensor' object has no attribute 'nothing'", None),
    ("python-import", "import tensorflow as tf; «tf.add(x, x)»",
     f'tensorflow.add cannot be used: the module "tensorflow", imported at kernel.py:{LINE}, is not available here', "numpy"),
    ("python-import", "«from numpy import nothing»", None, None),
    ("nesting-too-deep", "f = lambda n: «f(n + 1)»; f(0)", None, "recursion"),
    ("memory-limit", "«np.ones((1 << 20, 1 << 24))»", None, "smaller"),
]


@pytest.mark.parametrize("code, statement, message, hint", CASES, ids=[f"{c[0]}-{n}" for n, c in enumerate(CASES)])
def test_refusals(code, statement, message, hint):
    start, end = statement.index("«"), statement.index("»") - 1
    d = refused(statement.replace("«", "").replace("»", ""))
    assert d["code"] == code, d
    if message:
        assert d["message"] == message
    if hint:
        assert hint in d["hint"]
    if statement.startswith(("«if ", "«while ", "«assert ")):  # the condition, not the statement
        word = statement[1:].split()[0]
        start, end = start + len(word) + 1, end
    assert d["src"][0][:5] == ("kernel.py", LINE, 5 + start, LINE, 5 + end)
    assert d["src"][0][5].startswith("kernel")


def test_the_body_of_a_loop_must_not_write_to_an_array_from_outside():
    d = refused("a = np.zeros(4)\n    def body(j, s):\n        a[j] = s\n        return s\n    nkx.fori_loop(0, 4, body, x[0, 0])".replace(
        "nkx.", "__import__('nkx')."))
    assert (d["code"], d["message"]) == ("unsupported-index", "the body of a fori_loop writes to an array from outside of it")
    assert d["src"][0][:5] == ("kernel.py", 7, 9, 7, 13) and "carry it" in d["hint"]


@pytest.mark.parametrize("wrong", ["np.sum(x, axis=2)", "np.transpose(x, (0, 5))", "np.roll(x, 1, -4)", "np.expand_dims(x, (7,))", "np.concatenate([x, x], 3)"])
def test_a_wrong_axis_is_numpys_axis_error(wrong):
    source = (f"import numpy as np\ndef kernel(x):\n    try:\n        {wrong}\n    except np.exceptions.AxisError as e:\n"
              "        assert isinstance(e, (ValueError, IndexError))\n        return x + (str(e) == f'axis {e.axis} is out of bounds for array of dimension {e.ndim}')\n"
              "kernel(np.ones((4, 4)))\n")
    result = trace_source(source, inputs=[(None, (4, 4), "f32")])
    assert result["diagnostics"] == [] and len(result["kernels"]) == 1
    (d,) = trace_source(f"import numpy as np\ndef kernel(x):\n    return {wrong}\n", inputs=[(None, (4, 4), "f32")])["diagnostics"]
    assert d["code"] == "bad-argument" and "is out of bounds for array of dimension" in d["message"] and d["src"][0][:3] == ("kernel.py", 3, 12)


def test_a_missing_attribute_is_an_attribute_error():
    source = "def kernel(x):\n    assert not hasattr(x, 'nothing') and getattr(x, 'nowhere', 3) == 3\n    return x.missing\n"
    (d,) = trace_source(source, inputs=[(None, (4,), "f32")])["diagnostics"]
    assert (d["code"], d["message"]) == ("python-exception", "AttributeError: 'nkx.Tensor' object has no attribute 'missing'")


def test_an_intermediate_value_takes_the_name_that_it_is_given():
    kernel = xla.trace("def kernel(x):\n    y, z = x + 1, x * 2\n    y.backend_tensor.name = 'scores'\n    z.name = 'scores'\n    x.name = 'other'\n    return y @ z\n",
                       inputs=[("x", (4, 4), "f32")])
    xla.read_proto(kernel["proto"])
    assert [i["name"] for i in kernel["instructions"] if i["opcode"] in ("parameter", "add", "multiply")] == ["x", "scores", "scores.1"]


def test_a_refusal_in_a_helper_names_the_call():
    d = trace_source(HEAD + "def h(v):\n    return np.linalg.inv(v)\n@trace(input_specs=[((2, 2), 'f32')])\ndef k(x):\n    return h(x) + 1\n")["diagnostics"][0]
    assert [r[1:] for r in d["src"]] == [(4, 12, 4, 28, "h"), (7, 12, 7, 16, "k")]


@pytest.mark.parametrize("result, message", [
    ("3.0", "the kernel returned an object of type float, not a traced tensor"),
    ("np.ones(3)", "the kernel returned an object of type numpy.ndarray, not a traced tensor"),
    ("x, None", "result 1 is an object of type NoneType, not a traced tensor"),
    ("{'a': x}", "the kernel returned an object of type dict, not a traced tensor"),
    ("[x, (x, x)]", "result 1 is an object of type tuple, not a traced tensor"),
])
def test_results_must_be_tensors(result, message):
    d = trace_source(f"{HEAD}@trace(input_specs=[((2, 2), 'f32')])\ndef k(x):\n    return {result}\n")["diagnostics"][0]
    assert (d["code"], d["message"]) == ("result-not-tensor", message)
    assert d["hint"] and d["src"][0][1:5] in [(5, 5, 5, 12 + len(result)), (5, 12, 5, 12 + len(result))]


def test_shapes_that_are_not_known():
    d = trace_source("import numpy as np\n\n\ndef kernel(x, y):  # two\n    return x + y\n")["diagnostics"][0]
    assert d["code"] == "no-shapes" and d["src"][0][1:5] == (4, 1, 4, 17)
    d = trace_source("from nkigen import trace\n@trace\ndef kernel(x): return x\n")["diagnostics"][0]
    assert d["code"] == "no-shapes" and d["src"][0][1] == 3


@pytest.mark.parametrize("specs", ["[((4,), 'f33')]", "[((4,),)]", "[4]", "[((-1,), 'f32')]", "[((4,), 'f32')] * 3", "7", "[]"])
def test_wrong_input_specs(specs):
    d = trace_source(f"from nkigen import trace\n@trace(input_specs={specs})\ndef kernel(x, y=1): return x + y\n")["diagnostics"][0]
    assert d["code"] == "bad-inputs" and d["src"][0][1] == 3


@pytest.mark.parametrize("inputs", [[("z", (3,), "f32")], [(None, (3,), "f32")] * 3, [("x", (3,), "f32")], [("x", (3,), "f32")] * 2])
def test_wrong_request_inputs(inputs):
    d = trace_source("def kernel(x, y): return x + y\n", inputs=inputs)["diagnostics"][0]
    assert d["code"] == "bad-inputs" and d["src"][0][1:5] == (1, 1, 1, 17)


def test_no_kernel():
    assert trace_source("x = 1\n")["diagnostics"][0]["code"] == "no-kernel"
    assert trace_source("")["diagnostics"][0]["code"] == "no-kernel"


@pytest.mark.parametrize("source, place", [
    ("def f(:\n", (1, 7, 1, 8)),
    ("x = 'ä' +\n", (1, 10, 1, 11)),
    ("a = 1\n  b = 2\n", (2, 1, 2, 2)),
    ("return 5\n", (1, 1, 1, 9)),
    ("x = (1,\n", (1, 5, 1, 6)),
])
def test_syntax_errors(source, place):
    (d,) = trace_source(source)["diagnostics"]
    assert d["code"] == "python-syntax" and "Error: " in d["message"]
    assert d["src"][0][1:3] == place[:2] or d["src"][0][1] == place[0]


def test_sources_that_are_too_large_or_not_text():
    assert trace_source("#" * (256 * 1024 + 1))["diagnostics"][0]["code"] == "source-too-large"
    assert trace_source("x = 1\ny = '\0'\n")["diagnostics"][0]["src"][0][1] == 2
    (d,) = trace_source(b"x = 1\n# \xff\xfe\n")["diagnostics"]
    assert (d["code"], d["src"][0][1]) == ("python-syntax", 2)


@pytest.mark.parametrize("source, place", [
    ("x = " + "(" * 101 + ")" * 101, (1, 106)),
    ("x = 1\ny = " + "[" * 5000, (2, 106)),
    ("".join(" " * n + "if 1:\n" for n in range(150)), None),
    ("x = " + "-" * 50000 + "1", None),
    ("x = " + "1+" * 50000 + "1", None),
    ("x = " + "a." * 50000 + "b", None),
    ("x = " + "lambda:" * 20000 + "1", None),
    ("x = " + "not " * 30000 + "1", None),
    ("x = " + "f'{" * 40 + "1" + "}'" * 40, None),
])
def test_deep_sources(source, place):
    (d,) = trace_source(source)["diagnostics"]
    assert d["code"] in ("nesting-too-deep", "python-syntax")
    if place:
        assert d["code"] == "nesting-too-deep" and d["src"][0][1:3] == place


def test_brackets_in_strings_and_comments_do_not_nest():
    source = "s = '" + "(" * 300 + "'\nt = '''\n" + "[" * 300 + "\n'''\n# " + "{" * 300 + "\ndef k(x): return x + 1\n"
    assert xla.trace(source, inputs=[("x", (3,), "f32")])


def test_too_many_operations():
    result = trace_source("def k(x):\n    while True: x = x + x\n", inputs=[("x", (1,), "f32")])
    assert (result["diagnostics"][0]["code"], result["status"]) == ("too-many-operations", "limit")
    assert result["diagnostics"][0]["src"][0][1:5] == (2, 21, 2, 26)


def test_a_tensor_does_not_outlive_its_trace():
    source = """from nkigen import trace
kept = []
@trace(input_specs=[((3,), 'f32')])
def first(x):
    kept.append(x * 2)
    return x + 1
@trace(input_specs=[((3,), 'f32')])
def second(x):
    return x + kept[0]
@trace(input_specs=[((3,), 'f32')])
def third(x):
    kept[0][0] = x[0]
    return kept[0]
@trace(input_specs=[((3,), 'f32')])
def fourth(x):
    assert kept[0].shape == (3,) and "float32" in repr(kept[0])
    return kept[0]
"""
    result = trace_source(source)
    assert [k["name"] for k in result["kernels"]] == ["first"]
    assert [d["code"] for d in result["diagnostics"]] == ["bad-argument"] * 3
    assert result["diagnostics"][0]["src"][0][1:5] == (9, 12, 9, 23)


def test_a_tensor_used_after_all_traces():
    source = "from nkigen import trace\nkept = []\n@trace(input_specs=[((3,), 'f32')])\ndef k(x):\n    kept.append(x)\n    return x + kept[0]\n"
    xla.trace(source)
    with pytest.raises(xla._nkx.TraceError):
        xla._nkx.Tensor.__add__(trace_and_leak(), 1)


def trace_and_leak():
    import builtins

    builtins.leaked = []
    try:
        xla.trace("import builtins\ndef k(x):\n    builtins.leaked.append(x)\n    return x\n", inputs=[("x", (3,), "f32")])
        return builtins.leaked[0]
    finally:
        del builtins.leaked


def test_a_kernel_may_catch_what_numpy_would_raise():
    xla.trace(HEAD + """@trace(input_specs=[((4, 4), 'f32')])
def k(x):
    for f, e in [(lambda: x.reshape(3), ValueError), (lambda: x[9], IndexError), (lambda: float(x), TypeError),
                 (lambda: np.linalg.svd(x), NotImplementedError), (lambda: np.sum(x, axis=5), np.exceptions.AxisError.__mro__[1])]:
        try:
            f()
        except e:
            pass
        else:
            raise AssertionError
    import copy; assert copy.deepcopy(x).shape == (4, 4)
    assert not hasattr(x, 'fill') and not hasattr(x, '__array_interface__')
    return x + 1
""")


def test_exceptions_that_fight_back():
    for body in ("class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E\n",
                 "class E(Exception):\n    def __str__(self): return 'x' * 10**7\nraise E\n",
                 "class E(BaseException): pass\nraise E\n", "raise GeneratorExit\n", "raise StopIteration\n", "import sys\nsys.exit(0)\n"):
        (d,) = trace_source(body)["diagnostics"]
        assert d["code"] == "python-exception" and len(d["message"]) < 3000 and d["src"]


def test_output_and_warnings_are_kept():
    result = trace_source("import sys, warnings\nprint('hello', 1)\nprint('err', file=sys.stderr)\ndef k(x):\n    print(x)\n    return x * 1\n", inputs=[("x", (3,), "f32")])
    assert result["output"] == "hello 1\nerr\n<traced tensor float32 (3,)>\n"


def test_endless_output_is_cut_with_a_warning():
    result = trace_source("for i in range(5000): print('é' * 50)\ndef k(x): return x * 1\n", inputs=[("x", (3,), "f32")])
    assert len(result["kernels"]) == 1 and len(result["output"].encode()) <= 65536
    assert [(d["severity"], d["code"]) for d in result["diagnostics"]] == [("warning", "output-limit")]
