"""Where a text has knobs, an import's place, and where an argument goes: read from what is written, with Python's own parser."""
import json

from nkx import written_knobs

TEXT = '''"""In a text:
import nothing
knob.knob(e, "))")
"""
from __future__ import annotations
import numpy as np
from nkigen import trace, knob as kb
from nkipy.core.knob import knob as put

def kernel(x):
    é = np.exp(x)  # 😀 kb.knob(é)
    kb.knob(
        é,  # the ) value
    ).layout(mem_space="(").tile_op(
        tile_size=[128,
                   256],  # )
    )
    if True:
        é = put(é, 0, tile_size=(1, 2)); kb.fuse(é, x)
    y = np.tanh(kb.knob(é, "Sbuf"))
    é = y
    kb.knob(é)
    return é
'''


def find(text, expression=None):
    data = text.encode()
    begin = data.index(expression.encode()) if expression else 0
    return data, json.loads(written_knobs.find(text, begin, begin + len(expression.encode()) if expression else 0))


def part(data, begin, end):
    return data[begin:end].decode()


def brackets(data, call):
    """The text with X as a further argument, to the end of the line, and the arguments."""
    with_x = data[:call["put"]] + call["separator"].encode() + b"X" + data[call["put"]:]
    line = with_x[with_x.rfind(b"\n", 0, call["put"]) + 1:with_x.find(b"\n", call["put"])].decode().strip()
    return line, {name: part(data, *at) for name, *at in call["arguments"]}


def test_the_knobs_of_a_variable_up_to_the_statement_that_sets_it():
    data, found = find(TEXT, "np.exp(x)")
    first, second, third = found["calls"]
    assert not any(c["is_around"] for c in found["calls"])
    assert part(data, first["value"][0], first["end"]).endswith("256],  # )\n    )")
    assert brackets(data, first) == ("é, X  # the ) value", {})
    assert [(m["name"], *brackets(data, m)) for m in first["methods"]] == [
        ("layout", ').layout(mem_space="(", X).tile_op(', {"mem_space": '"("'}),
        ("tile_op", "256], X  # )", {"tile_size": "[128,\n                   256]"})]
    assert brackets(data, second)[1] == {"partition_dim": "0", "tile_size": "(1, 2)"}
    assert brackets(data, third) == ('y = np.tanh(kb.knob(é, "Sbuf", X))', {"partition_dim": '"Sbuf"'})


def test_the_knob_around_an_expression():
    data, found = find("import nkigen\ny = f(nkigen.knob.knob((a + b), mem_space='Sbuf').layout() * 2)\n", "a + b")
    (call,) = found["calls"]
    assert call["is_around"] and part(data, *call["value"]) == "a + b" and [m["name"] for m in call["methods"]] == ["layout"]
    assert brackets(data, call["methods"][0]) == ("y = f(nkigen.knob.knob((a + b), mem_space='Sbuf').layout(X) * 2)", {})


def test_statements_that_are_knobs():
    data, found = find(TEXT)
    texts = [part(data, *s[:2]) for s in found["statements"]]
    assert [t[:8] for t in texts] == ["kb.knob(", "kb.fuse(", "kb.knob("] and texts[0].endswith("# )\n    )")
    assert [(line, end) for _, _, line, end in found["statements"]] == [(12, 17), (19, 19), (22, 22)]
    assert find("x = 1\nprint(knob)\nknob\nf(knob.knob(x))\n")[1]["statements"] == []


def test_the_place_of_an_import():
    for text, rest, name in [(TEXT, "import numpy", "kb"), ("x = 1\nfrom nkigen import knob\n", "from nkigen", "knob"),
                             ('"""import a"""\n@f\ndef g(): pass\n', "@f", None), ("from __future__ import annotations\nx = 1\n", "x = 1", None),
                             ("def f():\n  from nkigen import knob\n", "def f", None), ("", "", None)]:
        data, found = find(text)
        assert data[found["import_at"]:].decode().startswith(rest) and found["name"] == name, text
