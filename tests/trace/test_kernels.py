"""How kernels are found, how their inputs are known, what is recorded beside the operations."""
import numpy as np
import pytest

from support.oracles import xla

trace_source = xla._nkx.trace_source

BODY = "def kernel(a, b):\n    return np.maximum(a @ b, 0)\n"
SPECS = "[((4, 8), 'f32'), ((8, 3), 'bf16')]"
FORMS = {
    "nkigen": f"from nkigen import trace, knob\n@trace(input_specs={SPECS})\n{BODY}",
    "kernelgen": f"from nkipy_kernelgen import trace, knob\n@trace(input_specs={SPECS})\n{BODY}",
    "nkx": f"import nkx\n@nkx.trace(input_specs={SPECS}, name='kernel')\n{BODY}",
    "specialize": f"from nkipy.core.compile import trace\n@trace\n{BODY}kernel.specialize(A, B)\n",
    "assigned": f"from nkipy.core.compile import trace\n{BODY}traced = trace(kernel)\ntraced.specialize(A, b=B)\n",
    "called": f"from nkipy.core.compile import trace\n@trace(backend='nkigen')\n{BODY}r = kernel(A, B)\nassert r.shape == (4, 3)\n",
    "keywords": f"from nkipy.core.compile import trace\n@trace(backend='hlo')\n{BODY}kernel(b=B, a=A)\n",
    "plain": f"def helper(x): return x\n{BODY}def show(r): print(r.shape)\nshow(helper(kernel(A, b=B)))\n",
    "main": f"{BODY}def main():\n    a = A\n    return kernel(a, B).sum()\nif __name__ == '__main__':\n    main()\n",
    "class": f"from nkipy.core.trace import NKIPyKernel\nfrom nkipy.core.compile import trace\n{BODY}k = trace(kernel)\nassert isinstance(k, NKIPyKernel)\nk(A, B)\n",
}
ARRAYS = "import numpy as np, ml_dtypes\nA = np.ones((4, 8), np.float32)\nB = np.ones((8, 3), ml_dtypes.bfloat16)\n"


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_kernel_is_found(form):
    kernel = xla.trace(ARRAYS + FORMS[form])
    assert kernel["name"] == "kernel"
    assert [(t["name"], t["shape"], t["dtype"]) for t in kernel["inputs"]] == [("a", (4, 8), "float32"), ("b", (8, 3), "bfloat16")]
    assert [(t["name"], t["shape"], t["dtype"], t["alias_of"]) for t in kernel["outputs"]] == [("output0", (4, 3), "float32", -1)]


def test_a_plain_function_takes_the_shapes_of_the_request():
    for inputs in ([(None, (4, 8), "f32"), (None, (8, 3), "bfloat16")], [("b", (8, 3), "bf16"), ("a", (4, 8), "float32")]):
        kernel = xla.trace("import numpy as np\ndef helper(x): return x\n" + BODY, inputs=inputs)
        assert kernel["name"] == "kernel" and [t["name"] for t in kernel["inputs"]] == ["a", "b"]


def test_a_call_of_a_plain_function_gives_its_arguments():
    source = "import numpy as np\ndef scale(x, by):\n    return x * by\n" \
             "def block(x, /, w, *rest, by=2.0, **more):\n    f = lambda t: scale(t, by)\n    x[0] = 1\n    return f(x) @ w + rest[0] + more['c']\n" \
             "some = np.arange(16, dtype=np.float32).reshape(4, 4)\nfor n in 8, 16:\n    block(some * n, some, some[0], c=some[1], by=n)\n"
    kernel = xla.trace(source, evaluate=True)
    some = np.arange(16, dtype=np.float32).reshape(4, 4)
    assert kernel["name"] == "block"
    assert [(t["name"], t["shape"]) for t in kernel["inputs"]] == [("x", (4, 4)), ("w", (4, 4)), ("rest_0", (4,)), ("c", (4,))]
    np.testing.assert_array_equal(kernel["input_values"][0], some * 8)  # of the first call, before it wrote
    written = np.concatenate([np.ones((1, 4)), some[1:] * 8])
    np.testing.assert_array_equal(kernel["expected"][0], written * 8 @ some + some[0] + some[1])


def test_only_calls_that_give_arrays_make_a_kernel():
    called = "import numpy as np\nx = np.ones((4, 4), np.float32)\ndef f(x): return x + 1\ndef g(x): return x * 2\ndef h(x): print(x.shape)\n"
    assert xla.trace(called + "f(x)\nh(x)\nh(np.ones(g(3)))\n")["name"] == "f"
    assert xla.trace(called + "f(x)\ng(g(x))\n")["name"] == "g"
    assert xla.trace(called + "f(x)\n", kernel="g", inputs=[(None, (3,), "f32")])["name"] == "g"
    assert xla.trace(called + "f(x)\n", inputs=[(None, (3,), "f32")])["name"] == "h"  # the request decides: the last one, as without a call
    for more in ("h(x)\n", "l = []\nl.append(l)\ndef k(x): return l\nk(x)\n", "def k(x): raise ValueError\ntry: k(x)\nexcept ValueError: pass\n",
                 "import sys\nsys.setprofile(None)\nf(x)\n"):
        codes = [d["code"] for d in trace_source(called + more)["diagnostics"]]
        assert "no-shapes" in codes, more
    annotated = "import numpy as np\nimport neuronxcc.nki.typing as nt\ndef f(x): return x\ndef g(x: nt.tensor[np.float32, (128, 256)]): return x + 1\nf(np.ones(3))\n"
    assert xla.trace(annotated)["name"] == "g"


def test_the_last_function_or_the_named_one_is_the_kernel():
    source = "def f(x): return x + 1\ndef g(x): return x * 2\n"
    assert xla.trace(source, inputs=[(None, (3,), "f32")])["name"] == "g"
    assert xla.trace(source, kernel="f", inputs=[(None, (3,), "f32")])["name"] == "f"
    result = trace_source(source, kernel="h", inputs=[(None, (3,), "f32")])
    assert result["status"] == "input" or result["kernels"] == []
    assert result["diagnostics"][0]["code"] == "no-kernel"


def test_what_a_decorator_made_of_a_function_is_the_kernel_where_nothing_else_is():
    wrap = "import functools\nclass Call:\n    def __init__(self, f):\n        functools.update_wrapper(self, f)\n" \
           "        self.f = f\n    def __call__(self, x):\n        return self.f(x) + 1\n@Call\ndef g(x): return x * 2\n"
    kernel = xla.trace(wrap, inputs=[(None, (3,), "f32")])
    assert kernel["name"] == "g" and [i["opcode"] for i in kernel["instructions"]].count("add") == 1
    assert xla.trace("def f(x): return x\n" + wrap, inputs=[(None, (3,), "f32")])["name"] == "f"
    hostile = "class Odd:\n    def __call__(self): pass\n    def __getattr__(self, name):\n        globals().clear()\n        1 / 0\n"
    assert [d["code"] for d in trace_source(hostile + "odd = [Odd() for i in range(9)]\na, b = odd[:2]\n")["diagnostics"]] == ["no-kernel"]


def test_several_kernels_come_in_the_order_of_definition():
    source = "from nkigen import trace\n" + "".join(
        f"@trace(input_specs=[(({n},), 'f32')])\ndef {name}(x): return x * {n}\n" for n, name in [(3, "zeta"), (2, "alpha"), (5, "mid")])
    assert [k["name"] for k in trace_source(source)["kernels"]] == ["zeta", "alpha", "mid"]
    assert [k["name"] for k in trace_source(source, kernel="alpha")["kernels"]] == ["alpha"]


def test_a_refused_kernel_does_not_hide_the_others():
    source = """from nkigen import trace
import numpy as np
@trace(input_specs=[((3,), 'f32')])
def bad(x): return np.linalg.svd(x)
@trace(input_specs=[((3,), 'f32')])
def good(x): return x + 1
"""
    result = trace_source(source)
    assert [k["name"] for k in result["kernels"]] == ["good"]
    assert [d["code"] for d in result["diagnostics"]] == ["unsupported-op"]


def test_kernels_before_an_exception_are_kept():
    result = trace_source("from nkigen import trace\n@trace(input_specs=[((3,), 'f32')])\ndef f(x): return -x\n1 / 0\n")
    assert [k["name"] for k in result["kernels"]] == ["f"]
    assert result["diagnostics"][0]["message"] == "ZeroDivisionError: division by zero"


def test_defaults_and_python_values_stay_python():
    kernel = xla.trace("from nkigen import trace\n@trace(input_specs=[((8,), 'f32')])\ndef f(x, n=3): return [x * i for i in range(n)]\n")
    assert [t["name"] for t in kernel["outputs"]] == ["output0", "output1", "output2"]
    source = """
import numpy as np
from nkipy.core.compile import trace
@trace
def f(x, scale, *rest, flag=False, **named):
    return (x * scale + rest[0] if flag else x) + named["w"]
f.specialize(np.ones(3, np.float32), 2.5, np.ones(3, np.float32), flag=True, w=np.ones((1,), np.float32))
"""
    assert [t["name"] for t in xla.check(source)["inputs"]] == ["x", "rest_0", "w"]


def test_wide_inputs_are_narrowed_with_a_warning():
    source = """
import numpy as np
from nkipy.core.compile import trace
@trace
def f(x, i, u): return x + 1, i + 1, u
f(np.ones(3), np.arange(3), np.arange(3, dtype=np.uint64))
"""
    result = trace_source(source)
    assert [(d["severity"], d["code"]) for d in result["diagnostics"]] == [("warning", "dtype-narrowed")] * 3
    assert [t["dtype"] for t in result["kernels"][0]["inputs"]] == ["float32", "int32", "uint32"]


def test_specialised_arrays_are_the_input_values():
    kernel = xla.trace("import numpy as np\nfrom nkipy.core.compile import trace\n@trace\ndef f(x):\n    x[0] = 9\n    return x\n"
                       "f(np.arange(4, dtype=np.float32))\n", evaluate=True)
    np.testing.assert_array_equal(kernel["input_values"][0], [0, 1, 2, 3])
    np.testing.assert_array_equal(kernel["expected"][0], [9, 1, 2, 3])


def test_inputs_from_an_npz_file(tmp_path):
    np.savez(tmp_path / "in.npz", x=np.arange(3.0))
    source = "def f(x, y): return x + y\n"
    kernel = xla.trace(source, inputs=[(None, (3,), "f32"), (None, (3,), "f32")], evaluate=True, npz=str(tmp_path / "in.npz"))
    np.testing.assert_array_equal(kernel["input_values"][0], np.arange(3, dtype=np.float32))
    result = trace_source(source, inputs=[(None, (2,), "f32"), (None, (2,), "f32")], evaluate=True, npz=str(tmp_path / "in.npz"))
    assert result["diagnostics"][0]["code"] == "bad-inputs"


# ---- mutation and aliases


def outputs(source):
    kernel = xla.check("import numpy as np\nfrom nkigen import trace\nS = ((4, 6), 'f16')\n" + source)
    return [(t["name"], t["alias_of"]) for t in kernel["outputs"]], kernel


def test_a_returned_parameter_that_was_written_is_an_alias():
    got, kernel = outputs("@trace(input_specs=[S, S])\ndef f(a, b):\n    a[0, :] = b[1, :]\n    return a\n")
    assert got == [("a", 0)]
    assert [i["name"] for i in kernel["instructions"][:2]] == ["a.must_alias_input", "b"]
    assert "input_output_alias" in kernel["text"]


def test_a_written_parameter_that_is_not_returned_is_appended():
    got, _ = outputs("@trace(input_specs=[S, S])\ndef f(a, b):\n    a[0] = b[1]\n    return a + b\n")
    assert got == [("output0", -1), ("a", 0)]
    got, _ = outputs("@trace(input_specs=[S, S])\ndef f(a, b):\n    a[0] = b[1]\n")
    assert got == [("a", 0)]


def test_order_and_names_of_mixed_results():
    got, _ = outputs("@trace(input_specs=[S, S, S])\ndef f(a, b, c):\n    a[0] = 1\n    c[1] = 2\n    return a, a * b, c\n")
    assert got == [("a", 0), ("output1", -1), ("c", 2)]


def test_views_and_rebinding_are_not_mutations():
    got, _ = outputs("@trace(input_specs=[S, S])\ndef f(a, b):\n    a = a + 1\n    a[0] = 2\n    return a, b\n")
    assert got == [("output0", -1), ("output1", -1)]
    got, _ = outputs("@trace(input_specs=[S])\ndef f(a):\n    a += 1\n    return a\n")
    assert got == [("output0", -1)]


def test_a_parameter_returned_as_it_is_gets_a_copy():
    _, kernel = outputs("@trace(input_specs=[S, S])\ndef f(a, b): return b, a\n")
    assert [i["opcode"] for i in kernel["instructions"]] == ["parameter", "parameter", "copy", "copy", "tuple"]


def test_in_place_operators_change_every_name_of_the_tensor():
    xla.check("import numpy as np\nfrom nkigen import trace\n@trace(input_specs=[((3,), 'f32'), ((3,), 'i32')])\n"
              "def f(x, n):\n    y = x\n    y += 1\n    y *= n\n    m = n\n    m //= 2\n    return x, y, n, m\n")


def test_an_accumulator_may_start_as_an_array():
    xla.check("import numpy as np\nfrom nkigen import trace\n@trace(input_specs=[((4, 3), 'f32')])\n"
              "def f(x):\n    acc = np.zeros(3, np.float32)\n    for row in x:\n        acc += row\n    return acc\n")


def test_rows_unpack_and_iterate():
    xla.check("from nkigen import trace\n@trace(input_specs=[((3, 2), 'f32')])\n"
              "def f(x):\n    a, b, c = x\n    return a + b * len(x), [r for r in x][2] + c\n")


# ---- knobs


def knobs(body, specs="[((4, 8), 'f32'), ((8, 4), 'f32')]", head="from nkigen import trace, knob"):
    result = trace_source(f"import numpy as np\n{head}\nfrom nkigen import trace\n@trace(input_specs={specs})\ndef f(x, y):\n    {body}\n    return z\n")
    assert not [d for d in result["diagnostics"] if d["severity"] == "error"], result["diagnostics"]
    found = [i for i in result["kernels"][0]["instructions"] if i["knob"]]
    return [i["knob"] | {"op": i["opcode"]} for i in found], result


EMPTY = {"loop_tile": [], "tile_size": [], "reduction_tile": [], "layout_tile": [], "mem_space": None, "partition_dim": -1}


def test_the_builder_form():
    for head in ("from nkigen import trace, knob", "from nkipy_kernelgen import trace, knob"):
        got, _ = knobs("z = x @ y; knob.knob(z).tile_op(tile_size=[4, 4, 8]).layout(mem_space='Sbuf', partition_dim=1, tile_size=2)", head=head)
        assert got == [EMPTY | {"op": "dot", "loop_tile": [4, 4, 8], "mem_space": "Sbuf", "partition_dim": 1, "layout_tile": [2]}]


def test_the_function_forms():
    want = [EMPTY | {"op": "dot", "tile_size": [2, 2], "reduction_tile": [8], "mem_space": "Hbm", "partition_dim": 0}]
    call = "partition_dim=0, mem_space='Hbm', tile_size=[2, 2], reduction_tile=8)"
    assert knobs(f"z = knob(x @ y, {call}", head="from nkipy import knob")[0] == want
    assert knobs(f"z = knob(tensor=x @ y, {call}", head="from nkipy.core.knob import knob")[0] == want
    assert knobs(f"z = knob(x @ y, {call}", head="from nkigen.apis import knob")[0] == want
    assert knobs(f"z = knob.knob(x @ y, {call}", head="from nkipy_kernelgen import knob")[0] == want
    assert knobs(f"z = knob(x @ y, {call}", head="from nkigen import knob")[0] == want
    assert knobs("z = knob.knob(x @ y, 0, 'Hbm', (2, 2), [8])", head="from nkigen import knob")[0] == want


def test_several_calls_merge_and_the_later_wins():
    got, _ = knobs("z = x @ y; knob.knob(z).layout(mem_space='Sbuf'); knob.knob(z).layout(partition_dim=1).layout(mem_space='Psum')")
    assert got == [EMPTY | {"op": "dot", "mem_space": "Psum", "partition_dim": 1}]


def test_fuse():
    _, result = knobs("a = x + 1; z = a * 2; knob.fuse(a, z)")
    ids = {i["opcode"]: i["id"] for i in result["kernels"][0]["instructions"]}
    assert result["kernels"][0]["fuses"] == [[ids["add"], ids["multiply"]]]


@pytest.mark.parametrize("package", ["nkigen", "nkipy_kernelgen"])
def test_fuse_never(package):
    source = f"""
from {package} import knob
def f(x, y):
    a = x + y
    knob.fuse(a, never=True)
    return a * 2
"""
    result = trace_source(source, inputs=[("x", (4, 8), "f32"), ("y", (4, 8), "f32")])
    ids = {i["opcode"]: i["id"] for i in result["kernels"][0]["instructions"]}
    assert result["kernels"][0]["fuses"] == [[ids["add"]]] and not result["diagnostics"]


def test_knobs_do_nothing_on_arrays_and_warn_on_inputs():
    source = """
import numpy as np
from nkigen import knob
from nkipy import knob as function
a = np.ones(3)
assert knob.knob(a).tile_op(tile_size=[1]).layout(mem_space="Sbuf") is not None
assert knob.fuse(a, a) is None and function(a, mem_space="Sbuf") is a
def f(x):
    knob.knob(x).layout(mem_space="Sbuf")
    return x + 1
"""
    result = trace_source(source, inputs=[("x", (3,), "f32")])
    assert [(d["severity"], d["code"]) for d in result["diagnostics"]] == [("warning", "knob-ignored")]
    assert result["diagnostics"][0]["src"][0][1:5] == (9, 5, 9, 42)


@pytest.mark.parametrize("call, message", [
    ("knob.knob(z).layout(mem_space='Moon')", "unknown mem_space 'Moon'"),
    ("knob.knob(z).layout(partition_dim=2)", "partition_dim 2 is out of range for a value with 2 axes"),
    ("knob.knob(z).layout(partition_dim=-1)", "partition_dim -1 is out of range for a value with 2 axes"),
    ("knob.knob(z).tile_op(tile_size=[4, 0])", "tile_size must hold positive integers, not [4, 0]"),
    ("knob.knob(z).tile_op(tile_size=4)", "tile_size must be a list of positive integers"),
    ("knob.knob(z).tile_op([4])", None),
    ("knob.knob(z).layout(colour='red')", None),
    ("knob.knob(z, tile_size=[1, 2, 3, 4])", "tile_size has 4 entries for a value with 2 axes"),
    ("knob.knob(z, mem_space=3)", "unknown mem_space 3"),
    ("knob.fuse(z)", "fuse needs at least two tensors, not 1"),
    ("knob.fuse(never=True)", "fuse needs at least one tensor with never=True"),
    ("knob.fuse(z, z, always=True)", "fuse takes tensors and never, not always"),
])
def test_wrong_knobs(call, message):
    result = trace_source(f"from nkigen import trace, knob\n@trace(input_specs=[((4, 4), 'f32')])\ndef f(x):\n    z = x + 1\n    {call}\n    return z\n")
    (d,) = result["diagnostics"]
    assert d["code"] == "bad-knob" and (message is None or d["message"] == message)
    assert d["src"][0][1:5] == (5, 5, 5, 5 + len(call))


def test_a_kernel_is_still_a_function():
    kernel = xla._nkx.trace(input_specs=[((2,), "f32")])(lambda x: x + 1)
    np.testing.assert_array_equal(kernel(np.ones(2)), [2, 2])
    assert kernel.__name__ == "<lambda>" and kernel.__traced__ and callable(kernel.__wrapped__)


CALLS = {  # the parameters: specs as n sizes, and the sum that the kernel returns
    "*grads": ([2, 3, 4], "sum(g[0] for g in grads)", ["grads_0", "grads_1", "grads_2"]),
    "x, *rest": ([2, 3, 4], "x[0] - rest[0][1] * rest[1][2]", ["x", "rest_0", "rest_1"]),
    "x, *rest, w": ([2, 3, 4], "x[0] - rest[0][1] * w[3]", ["x", "rest_0", "w"]),
    "x, *rest, eps=0.5, w, n=2": ([2, 3, 4], "x[0] * n - rest[0][1] * w[3] + eps", ["x", "rest_0", "w"]),
    "x, *, w, eps=0.25": ([2, 3], "x[0] - w[2] + eps", ["x", "w"]),
    "x, y, /, z=None, n=3": ([2, 3], "x[0] - y[2] * n if z is None else x", ["x", "y"]),
    "x, n=2, *rest": ([2], "x[0] * n + len(rest)", ["x"]),
    "x, **options": ([2], "x[0] + len(options)", ["x"]),
}


@pytest.mark.parametrize("parameters", CALLS)
def test_every_kind_of_parameter_takes_its_shape(parameters):
    sizes, result, names = CALLS[parameters]
    kernel = f"def kernel({parameters}):\n    return {result}\n"
    k = xla.check(f"from nkigen import trace\n@trace(input_specs={[((n,), 'f32') for n in sizes]})\n{kernel}")
    assert [(t["name"], t["shape"]) for t in k["inputs"]] == [(name, (n,)) for name, n in zip(names, sizes, strict=True)]
    for asked in ([None] * len(names), names):  # of the request, by position and by name
        k = xla.check(kernel, inputs=[(name, (n,), "f32") for name, n in zip(asked, sizes, strict=True)])
        assert [t["name"] for t in k["inputs"]] == names


@pytest.mark.parametrize("parameters, specs, message", [
    ("x, *rest, w", 1, 'no shape is known for parameter "w"'), ("x, *, n=1", 3, "input_specs has 3 entries for 2 parameters"),
    ("x, **options", 2, "input_specs has 2 entries for 2 parameters")])
def test_specs_that_do_not_fit_the_parameters_are_refused(parameters, specs, message):
    (d,) = trace_source(f"from nkigen import trace\n@trace(input_specs={[((2,), 'f32')] * specs})\ndef kernel({parameters}):\n    return x\n")["diagnostics"]
    assert (d["code"], d["message"], d["src"][0][1]) == ("bad-inputs", message, 3)


@pytest.mark.parametrize("names, message", [
    (["rest_0", "x"], None), (["x", "rest_1"], 'an input before "rest_1" is missing'), (["x", "rest_0", "rest_0"], 'parameter "rest_0" is given twice'),
    (["x", "rest_"], 'the kernel has no parameter "rest_"'), (["x", "rest"], 'the kernel has no parameter "rest"')])
def test_inputs_of_a_request_are_named_by_number_in_args(names, message):
    result = trace_source("def kernel(x, *rest):\n    return x + len(rest)\n", inputs=[(n, (2,), "f32") for n in names])
    assert [d["message"] for d in result["diagnostics"]] == ([message] if message else [])


@pytest.mark.parametrize("decorator, is_now", [("ValueError", "of type ValueError"), ("print", "None")])
def test_a_function_that_its_decorator_made_something_else_is_named(decorator, is_now):
    d, = trace_source(f"é = 1\n\n\n@{decorator}\ndef k(a):\n    return a\n")["diagnostics"]
    assert (d["code"], d["message"]) == ("no-kernel", f"the source defines no function: k is {is_now} after this decorator")
    assert d["src"] == [("kernel.py", 4, 2, 4, 2 + len(decorator), None)]


@pytest.mark.parametrize("head", ["if hasattr(np, 'no_such'):", "match np:\n  case [1, *z]:", "for _ in ():"])
def test_a_function_in_a_branch_that_is_not_executed_is_named(head):
    line, indent = 3 + head.count("\n"), 4 * (1 + head.count("\n"))
    d, = trace_source(f"import numpy as np\n{head}\n{' ' * indent}def k(a):\n{' ' * indent}    return a\n")["diagnostics"]
    assert (d["code"], d["message"]) == ("no-kernel", "the source defines no function: k is in a branch that is not executed")
    assert d["src"] == [("kernel.py", line, 1 + indent, line, 4 + indent, None)]
