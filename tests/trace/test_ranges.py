"""Every instruction knows the exact columns of the expression that made it, and the calls that led there."""
import pytest

from support.oracles import xla


def places(source, **options):
    """opcode -> [(the text of the range, the texts of the calls outside it)], without parameters and the root."""
    lines = source.split("\n")

    def text(r):
        _, line, col, end_line, end_col, _ = r
        if line == end_line:
            return lines[line - 1][col - 1:end_col - 1]
        return "\n".join([lines[line - 1][col - 1:], *lines[line:end_line - 1], lines[end_line - 1][:end_col - 1]])

    kernel = xla.trace(source, **options)
    found = {}
    for i in kernel["instructions"]:
        if i["opcode"] != "parameter" and i["name"] != "result":
            assert i["src"], i
            found.setdefault(i["opcode"], []).append((text(i["src"][0]), [text(r) for r in i["src"][1:]]))
    return found


def kernel(body, before=""):
    return f"import numpy as np\nfrom nkigen import trace\n{before}@trace(input_specs=[((4, 4), 'f32'), ((4, 4), 'f32')])\ndef kernel(x, y):\n{body}"


def test_several_expressions_on_one_line():
    got = places(kernel("    a = x + y; b = np.exp(a) * a.T; return b - np.sum(b, axis=0)\n"))
    assert got["add"] == [("x + y", [])]
    assert got["exponential"] == [("np.exp(a)", [])]
    assert got["transpose"] == [("a.T", [])]
    assert got["multiply"] == [("np.exp(a) * a.T", [])]
    assert got["reduce"] == [("np.sum(b, axis=0)", [])]
    assert got["subtract"] == [("b - np.sum(b, axis=0)", [])]


def test_helper_functions_leave_their_calls():
    got = places(kernel("    return outer_helper(x) + outer_helper(y)\n",
                        "def inner(v): return np.tanh(v)\ndef outer_helper(v):\n    return inner(v * v)\n"))
    assert got["tanh"] == [("np.tanh(v)", ["inner(v * v)", f"outer_helper({n})"]) for n in "xy"]
    assert got["multiply"] == [("v * v", [f"outer_helper({n})"]) for n in "xy"]
    names = [r[5] for r in xla.trace(kernel("    return h(x)\n", "def h(v): return -v\n"))["instructions"][2]["src"]]
    assert names == ["h", "kernel"]


def test_calls_over_several_lines():
    got = places(kernel("    return np.maximum(\n        x +\n        y,\n        0,\n    )\n"))
    assert got["add"] == [("x +\n        y", [])]
    assert got["maximum"] == [("np.maximum(\n        x +\n        y,\n        0,\n    )", [])]


def test_columns_count_characters():
    got = places(kernel("    größe = '😀'; ß = x * y; return np.exp(ß) + ß  # ü\n"))
    assert got["multiply"] == [("x * y", [])]
    assert got["exponential"] == [("np.exp(ß)", [])]
    assert got["add"] == [("np.exp(ß) + ß", [])]


def test_a_byte_order_mark_and_foreign_line_ends():
    source = kernel("    z = x - y\n    return z\n")
    got = xla.trace("\ufeff" + source.replace("\n", "\r\n"))
    (sub,) = [i for i in got["instructions"] if i["opcode"] == "subtract"]
    assert sub["src"] == [("kernel.py", 5, 9, 5, 14, "kernel")]


def test_indexing_assignment_and_in_place():
    got = places(kernel("    z = x[1:, 0]; y[0] = z[0]\n    x *= y\n    return x, y\n"))
    assert got["slice"][0] == ("x[1:, 0]", []) and got["slice"][1] == ("z[0]", [])
    assert got["dynamic-update-slice"] == [("y[0]", [])]
    assert got["multiply"] == [("x *= y", [])]


def test_comprehensions_lambdas_and_generators():
    got = places(kernel("    f = lambda v: v * 2\n    return sum(f(v) for v in (x, y)) + [np.cos(v) for v in (x,)][0]\n"))
    assert [t for t, _ in got["multiply"]] == ["v * 2", "v * 2"]
    assert got["multiply"][0][1][0] == "f(v)"
    assert got["cosine"][0][0] == "np.cos(v)"


def test_a_helper_in_a_loop_is_told_apart_by_its_call():
    got = places(kernel("    z = x\n    for _ in range(3):\n        z = h(z)\n    return h(z)\n", "def h(v): return v / 2\n"))
    assert got["divide"] == [("v / 2", ["h(z)"])] * 4
    lines = [i["src"][1][1] for i in xla.trace(kernel("    return h(\n      x) + h(y)\n", "def h(v): return v / 2\n"))["instructions"]
             if i["opcode"] == "divide"]
    assert lines == [6, 7]


def test_the_root_belongs_to_the_return_statement():
    got = xla.trace(kernel("    return x + y\n"))["instructions"][-1]
    assert got["src"] == [("kernel.py", 5, 5, 5, 17, "kernel")]


def test_recursion_keeps_a_bounded_chain():
    got = xla.trace(kernel("    return deep(x, 200)\n", "def deep(v, n): return v + 1 if n == 0 else deep(v, n - 1)\n"))
    add = [i for i in got["instructions"] if i["opcode"] == "add"][0]
    assert 1 < len(add["src"]) <= 64


def test_the_filename_of_the_request():
    got = xla.trace(kernel("    return x + y\n"), filename="dir/my kernel.py")["instructions"][-1]
    assert got["src"][0][0] == "dir/my kernel.py"


def test_iteration_belongs_to_what_is_iterated():
    got = places(kernel("    z = x[0]\n    for a, b in [(y, 1)]: z = z + b\n    for r in (  # a: comment\n        y\n    ):\n        z = z + r\n    return z\n"))
    assert [t for t, _ in got["slice"]] == ["x[0]"] + ["y"] * 4


def test_parameters_belong_to_their_names():
    source = """from nkigen import trace
@trace(input_specs=[((3,), 'f32'), ((3,), 'f32'), ((3,), 'i32')])
def kernel(x: "x, (y)", größe: dict[str, int] = {"n": 1}, # n, y
           n=(1, 2), *, y=3):
    return x + größe * n
"""
    got = xla.trace(source)["instructions"][:3]
    assert [i["src"][0][1:5] for i in got] == [(3, 12, 3, 13), (3, 25, 3, 30), (4, 12, 4, 13)]


HEADERS = """from nkigen import trace
shapes = trace(input_specs=[((3,), 'f32'), ((3,), 'f32')])
class Group:
    if True:
        @shapes
        @shapes
        def nested(x, /, größe: "a:b" = {1: 2}[1], # : x
          ) -> "int:": # c
            async def inner(q, *x): pass
            return x * größe
line = shapes(lambda a, b=(lambda a: a): a + b if True else (lambda a, b: a)(a, b))
def outer():
    def kernel(a, b=lambda a=":": a
              ):
        return a - b
    return kernel
inner = shapes(outer())
"""


def test_parameters_are_found_in_every_kind_of_header():
    kernels = xla._nkx.trace_source(HEADERS)["kernels"]
    got = {k["name"]: [i["src"][0][1:5] for i in k["instructions"] if i["opcode"] == "parameter"] for k in kernels}
    assert got == {"nested": [(7, 20, 7, 21), (7, 26, 7, 31)], "<lambda>": [(11, 22, 11, 23), (11, 25, 11, 26)],
                   "kernel": [(13, 16, 13, 17), (13, 19, 13, 20)]}


@pytest.mark.parametrize("source, place", [
    ("@trace\ndef f(\n  x: 'a:b', # c:\n  ): return x\n", (3, 1, 5, 4)),
    ("f = trace(lambda x, y=':': x)\n", (2, 11, 2, 26)),
    ("@trace\ndef f(x) -> 'x:y' : return x\n", (3, 1, 3, 19)),
])
def test_a_kernel_without_shapes_belongs_to_its_header(source, place):
    (d,) = xla._nkx.trace_source("from nkigen import trace\n" + source)["diagnostics"]
    assert d["code"] == "no-shapes" and d["src"][0][1:5] == place
