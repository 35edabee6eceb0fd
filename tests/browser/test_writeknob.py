"""Where a knob is written in a Python source, and what becomes of the knobs that are there."""
import pytest

from support.knob_offers import Writer

MEMORY = {"call": "layout", "argument": "mem_space", "value": "Hbm"}
TILE = {"call": "tile_op", "argument": "tile_size", "value": [64, 512, 128], "dims": [0, 1]}  # of a matmul


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return Writer(tmp_path_factory.mktemp("writer"))


def write(writer, text, expression, wanted, nth=0):
    """Writes the knob for an expression of the text."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(expression, at + 1)
    start, end = text[:at], text[: at + len(expression)]
    place = {"file": "kernel.py", "line": start.count("\n") + 1, "col": len(start.split("\n")[-1]) + 1,
             "end_line": end.count("\n") + 1, "end_col": len(end.split("\n")[-1]) + 1}
    return writer.write([{"text": text, "range": place, "wanted": wanted}])[0]


IMPORT = "from nkigen import trace, knob\n"
CASES = {
    "after the assignment": (
        IMPORT + "def f(x):\n    y = x + 1\n    return y\n", "x + 1", MEMORY,
        IMPORT + "def f(x):\n    y = x + 1\n    knob.knob(y).layout(mem_space=\"Hbm\")\n    return y\n"),
    "after an assignment of several lines": (
        IMPORT + "def f(x):\n    y = (x +\n         1)  # ä, 𝛼\n    return y\n", "x +\n         1", MEMORY,
        IMPORT + "def f(x):\n    y = (x +\n         1)  # ä, 𝛼\n    knob.knob(y).layout(mem_space=\"Hbm\")\n    return y\n"),
    "with its type": (
        IMPORT + "def f(x):\n    y: float = x + 1\n    return y\n", "x + 1", MEMORY,
        IMPORT + "def f(x):\n    y: float = x + 1\n    knob.knob(y).layout(mem_space=\"Hbm\")\n    return y\n"),
    "after an update": (
        IMPORT + "def f(x):\n    x *= 2\n    return x\n", "x *= 2", MEMORY,
        IMPORT + "def f(x):\n    x *= 2\n    knob.knob(x).layout(mem_space=\"Hbm\")\n    return x\n"),
    "around an expression without a name": (
        IMPORT + "def f(x):\n    return g((x + 1) * 2)\n", "x + 1", MEMORY,
        IMPORT + "def f(x):\n    return g(knob.knob((x + 1), mem_space=\"Hbm\") * 2)\n"),
    "around one of several values": (
        IMPORT + "def f(x):\n    a, b = x + 1, x + 2\n    return a\n", "x + 2", MEMORY,
        IMPORT + "def f(x):\n    a, b = x + 1, knob.knob(x + 2, mem_space=\"Hbm\")\n    return a\n"),
    "in a lambda": (
        IMPORT + "f = lambda x: x + 1\n", "x + 1", MEMORY, IMPORT + "f = lambda x: knob.knob(x + 1, mem_space=\"Hbm\")\n"),
    "two statements on a line": (
        IMPORT + "def f(x):\n    y = x + 1; return y\n", "x + 1", MEMORY,
        IMPORT + "def f(x):\n    y = knob.knob(x + 1, mem_space=\"Hbm\"); return y\n"),
    "reduced loops have their own argument": (
        IMPORT + "def f(x, w):\n    return x @ w\n", "x @ w", TILE,
        IMPORT + "def f(x, w):\n    return knob.knob(x @ w, tile_size=[64, 512], reduction_tile=[128])\n"),
    "in the place of the one that is there": (
        IMPORT + "y = x + 1\nknob.knob(y).tile_op(tile_size=[1, 2]).layout(partition_dim=0, mem_space=\"Sbuf\")\n", "x + 1", MEMORY,
        IMPORT + "y = x + 1\nknob.knob(y).tile_op(tile_size=[1, 2]).layout(partition_dim=0, mem_space=\"Hbm\")\n"),
    "beside another argument": (
        IMPORT + "y = x + 1\nknob.knob(y).layout(partition_dim=0)\n", "x + 1", MEMORY,
        IMPORT + "y = x + 1\nknob.knob(y).layout(partition_dim=0, mem_space=\"Hbm\")\n"),
    "at the end of a chain": (
        IMPORT + "y = x @ w\nknob.knob(y).layout(mem_space=\"Sbuf\")\n", "x @ w", TILE,
        IMPORT + "y = x @ w\nknob.knob(y).layout(mem_space=\"Sbuf\").tile_op(tile_size=[64, 512, 128])\n"),
    "the layout's tile goes with it": (
        IMPORT + "y = x @ w\nknob.knob(y).tile_op(tile_size=[128, 512, 128]).layout(tile_size=[128, 512])\n", "x @ w", TILE,
        IMPORT + "y = x @ w\nknob.knob(y).tile_op(tile_size=[64, 512, 128]).layout(tile_size=[64, 512])\n"),
    "in the function's arguments": (
        "from nkipy import knob\ny = x @ w\ny = knob(y, tile_size=[128, 512], reduction_tile=[64])\n", "x @ w", TILE,
        "from nkipy import knob\ny = x @ w\ny = knob(y, tile_size=[64, 512], reduction_tile=[128])\n"),
    "in a positional argument": (
        IMPORT + "y = x + 1\nknob.knob(y, 0, \"Sbuf\")\n", "x + 1", MEMORY, IMPORT + "y = x + 1\nknob.knob(y, 0, \"Hbm\")\n"),
    "in a knob around the expression": (
        IMPORT + "return_ = g(knob.knob(x + 1, partition_dim=0))\n", "x + 1", MEMORY,
        IMPORT + "return_ = g(knob.knob(x + 1, partition_dim=0, mem_space=\"Hbm\"))\n"),
    "in an inner block": (
        IMPORT + "y = x + 1\nif deep:\n    knob.knob(y).layout(mem_space=\"Sbuf\")\n", "x + 1", MEMORY,
        IMPORT + "y = x + 1\nif deep:\n    knob.knob(y).layout(mem_space=\"Hbm\")\n"),
    "not in the knob of a later value of the name": (
        IMPORT + "y = x + 1\ny = y * 2\nknob.knob(y).layout(mem_space=\"Sbuf\")\n", "x + 1", MEMORY,
        IMPORT + "y = x + 1\nknob.knob(y).layout(mem_space=\"Hbm\")\ny = y * 2\nknob.knob(y).layout(mem_space=\"Sbuf\")\n"),
    "under the name that it was imported as": (
        "import nkigen as n\ny = x + 1\n", "x + 1", MEMORY, "import nkigen as n\ny = x + 1\nn.knob.knob(y).layout(mem_space=\"Hbm\")\n"),
    "imported beside another name": (
        "from nkigen import trace\ny = x + 1\n", "x + 1", MEMORY,
        "from nkigen import trace, knob\ny = x + 1\nknob.knob(y).layout(mem_space=\"Hbm\")\n"),
    "imported on a line of its own": (
        '"""A kernel"""\nimport numpy as np\nfrom nkipy.core.compile import trace\n\ny = x + 1\n', "x + 1", MEMORY,
        '"""A kernel"""\nimport numpy as np\nfrom nkipy.core.compile import trace\nfrom nkigen import knob\n\ny = x + 1\nknob.knob(y).layout(mem_space="Hbm")\n'),
    "imported after the docstring": (
        '"""A kernel"""\ny = x + 1\n', "x + 1", MEMORY,
        '"""A kernel"""\nfrom nkigen import knob\ny = x + 1\nknob.knob(y).layout(mem_space="Hbm")\n'),
    "imported under a free name": (
        "import numpy as np\nknob = 3\ny = x + 1\n", "x + 1", MEMORY,
        "import numpy as np\nfrom nkigen import knob as knobs\nknob = 3\ny = x + 1\nknobs.knob(y).layout(mem_space=\"Hbm\")\n"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_knob_is_written(writer, name):
    text, expression, wanted, expected = CASES[name]
    assert write(writer, text, expression, wanted).get("text") == expected


REFUSED = {
    "several values": (IMPORT + "a, b = g(x)\n", "g(x)", MEMORY, "several values"),
    "a part of a value": (IMPORT + "a[0] += 1\n", "a[0] += 1", MEMORY, "changes a part of a value in place"),
    "no dimensions": (IMPORT + "z = g(x @ w)\n", "x @ w", {**TILE, "dims": None}, "Give it a name"),
    "a text that has changed": (IMPORT + "y = xx + 1\n", "x + 1", MEMORY, "has changed"),
    "a statement": (IMPORT + "def f(x):\n    return x\n", "return x", MEMORY, "not made by an expression"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_has_a_reason(writer, name):
    text, expression, wanted, reason = REFUSED[name]
    assert reason in write(writer, text, expression, wanted, nth=0).get("why", ""), name
