"""Each operation knows the rounds of the Python loops in which it was recorded: against programs that count for themselves."""
import json
import random
import subprocess

import pytest

from support import warm
from support.paths import NKX

HEAD = "import numpy as np\nfrom nkigen import trace\n\n"
SPECS = '@trace(input_specs=[((4, 4), "f32"), ((4, 4), "f32")])\n'


def compiled(source, *arguments):
    done = warm.run("compile", "-", "--quiet", "--json", "-", *arguments, input=source.encode())
    result = json.loads(done.stdout)
    assert result["status"] == "ok", result["diagnostics"]
    return result


def loops_of(result, number):
    """The places of the loops around a place, those of the outermost caller first."""
    if number < 0:
        return []
    *_, caller, loops = [*result["places"][number], []][:8]
    return loops_of(result, caller) + loops


def recorded(result, kernel, stage=0, only="multiply"):
    """(line of the place, its boxes) of every operation of a stage whose text has `only`."""
    shown = result["kernels"][kernel]["stages"][stage]
    for text, entry in zip(shown["text"].split("\n"), shown["lines"]):
        if "src" in entry and f" {only}(" in text:
            source = result["sources"][entry["src"]]
            for place, boxes in zip(source["places"], source.get("rounds", [None] * 8)):
                depth = len(loops_of(result, place))
                assert (boxes is None) == (depth == 0) and all(len(box) == depth for box in boxes or []), (text, boxes)
                yield result["places"][place][1], boxes


def rounds(body, before="", only="multiply"):
    """The rounds of the operations of a kernel in order; None outside of loops."""
    result = compiled(f"{HEAD}{before}{SPECS}def kernel(x, c):\n{body}    return x\n", "--stop-after", "trace")
    found = [boxes for _, boxes in recorded(result, 0, only=only)]
    assert all(boxes is None or len(boxes) == 1 for boxes in found)
    return [boxes and boxes[0] for boxes in found]


def test_nested_loops():
    got = rounds("    for i in range(2):\n        x = x * c\n        for j in range(3):\n            x = x * c\n")
    assert got == [[0], [0, 0], [0, 1], [0, 2], [1], [1, 0], [1, 1], [1, 2]]


def test_a_helper_that_is_called_in_a_loop():
    assert rounds("    for i in range(2):\n        x = f(x, c)\n    x = f(x, c)\n", "def f(x, c):\n    return x * c\n") == [[0], [1], None]


def test_a_loop_in_a_helper_that_is_called_twice_is_two_loops():
    source = f"{HEAD}def f(x, c):\n    for i in range(2):\n        x = x * c\n    return x\n{SPECS}def kernel(x, c):\n    return f(x, c) + f(x, c)\n"
    result = compiled(source, "--stop-after", "trace")
    assert [boxes for _, boxes in recorded(result, 0)] == [[[0]], [[1]], [[0]], [[1]]]
    stage = result["kernels"][0]["stages"][0]
    sources = [result["sources"][e["src"]] for t, e in zip(stage["text"].split("\n"), stage["lines"]) if " multiply(" in t]
    loops = [loops_of(result, s["places"][0]) for s in sources]
    assert loops[0] == loops[1] != loops[2] == loops[3]
    assert {tuple(result["places"][n][:5]) for n, in loops} == {(0, 5, 5, 5, 22)}, "both at `for i in range(2)`"


@pytest.mark.parametrize("comprehension, expected", [
    ("x = [x * c for i in range(3)][-1]", [[0], [1], [2]]),
    ("x = {i: x * c for i in range(3) if i != 1}[2]", [[0], [2]]),
    ("x = sum(x * c for i in (1, 2))", [[0], [1]]),
    ("x = [x * c for i in range(2) for j in range(2)][0]", [[0, 0], [0, 1], [1, 0], [1, 1]]),
    ("x = [[x * c for j in range(2)] for i in range(2)][0][0]", [[0, 0], [0, 1], [1, 0], [1, 1]]),
])
def test_comprehensions(comprehension, expected):
    assert rounds(f"    {comprehension}\n") == expected


def test_break_and_continue():
    body = "    for i in range(9):\n        if i == 1:\n            continue\n        if i == 4:\n            break\n        x = x * c\n    x = x * c\n"
    assert rounds(body) == [[0], [2], [3], None]


def test_a_loop_that_an_exception_leaves_is_over():
    body = "    try:\n        for i in range(3):\n            x = x * c\n            1 / 0\n    except ZeroDivisionError:\n        x = x * c\n    x = x * c\n"
    assert rounds(body) == [[0], None, None]


def test_while():
    body = "    i = 0\n    while i < 3:\n        i += 1\n        if i == 2:\n            continue\n        x = x * c\n    else:\n        x = x * c\n    x = x * c\n"
    assert rounds(body) == [[0], [2], None, None]


def test_while_in_a_loop_begins_anew():
    body = "    for i in range(2):\n        n = 0\n        while n < 2:\n            n += 1\n            x = x * c\n"
    assert rounds(body) == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_an_else_that_leaves_the_loop_around_keeps_its_meaning():
    body = "    for i in range(3):\n        n = 0\n        while n < 1:\n            n += 1\n        else:\n            break\n    for i in range(i + 1):\n        x = x * c\n"
    assert rounds(body) == [[0]]


def test_a_generator_that_waits_is_not_a_loop_of_its_caller():
    body = "    g = (x * c for i in range(3))\n    x = next(g)\n    x = x * c\n    x = next(g)\n    for y in g:\n        x = y * c\n"
    assert rounds(body) == [[0], None, [1], [0, 2], [0]]


def test_iterating_over_a_tensor_records_in_the_round():
    assert rounds("    for row in x:\n        y = row * c\n    x = y\n", only="slice") == [[0], [1], [2], [3]]


def test_loops_of_other_files_are_counted(tmp_path):
    (tmp_path / "kernel.py").write_text(f"{HEAD}from part import f\n{SPECS}def kernel(x, c):\n    return f(x, c)\n")
    (tmp_path / "part.py").write_text("def f(x, c):\n    for i in range(2):\n        x = x * c\n    return x\n")
    done = subprocess.run([NKX, "compile", tmp_path / "kernel.py", "--quiet", "--json", "-", "--stop-after", "trace"], capture_output=True, timeout=120)
    assert [boxes for _, boxes in recorded(json.loads(done.stdout), 0)] == [[[0]], [[1]]]


def test_merged_operations_keep_the_rounds_of_all():
    source = f"{HEAD}{SPECS}def kernel(x, c):\n    y = x\n    for i in range(5):\n        y = y + x * c\n    return y\n"
    result = compiled(source, "--stop-after", "cse:1")
    assert [boxes for _, boxes in recorded(result, 0, stage=-1)] == [[[[0, 4]]]]


def test_many_scattered_rounds_are_capped_with_a_count():
    source = f"{HEAD}{SPECS}def kernel(x, c):\n    y = x\n    for i in range(24):\n        y = y + x * c if i % 2 else y * x\n    return y\n"
    result = compiled(source, "--stop-after", "cse:1")
    stage = result["kernels"][0]["stages"][-1]
    (number,) = {e["src"] for t, e in zip(stage["text"].split("\n"), stage["lines"]) if " multiply(%x, %c)" in t}
    assert result["sources"][number]["rounds"] == [[[n] for n in range(1, 17, 2)]] and result["sources"][number]["more_rounds"] == 4


def test_rounds_reach_the_instructions():
    source = f"{HEAD}{SPECS}def kernel(x, c):\n    for i in range(3):\n        x = np.exp(x * c)\n    return x\n"
    result = compiled(source)
    for stage in result["kernels"][0]["stages"]:
        found = {}
        for text, entry in zip(stage["text"].split("\n"), stage["lines"]):
            if any(word in text for word in (" exponential(", "linalg.exp", "math.exp", "nisa.activation")) and "src" in entry:
                source = result["sources"][entry["src"]]
                for box in source["rounds"][0]:
                    found.setdefault(str(box), []).append(text)
        if stage["phase"] != "engines":
            assert set(found) == {"[0]", "[1]", "[2]"}, stage["name"]


def test_the_instructions_of_an_nki_kernel_have_their_rounds():
    source = """import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def chain(a):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    for i in range(3):
        nisa.activation(dst=t, op=nl.exp, data=t)
    nisa.dma_copy(dst=out, src=t)
    return out
"""
    result = compiled(source, "--input", "a=128x64:f32", "--unroll")
    for stage in result["kernels"][0]["stages"]:
        if stage["name"] in ("nki-trace", "nki-canonicalize", "nki-to-nisa"):
            found = [result["sources"][e["src"]].get("rounds") for t, e in zip(stage["text"].split("\n"), stage["lines"]) if "nisa.activation(" in t]
            assert found == [[[[0]]], [[[1]]], [[[2]]]], stage["name"]


# ---- random programs ----------------------------------------------------------------------------------------------------

ITERABLES = ("range({n})", "[7] * {n}", "enumerate('abc'[:{n}])", "zip(range({n}), 'abcd')", "dict.fromkeys(range({n})).items()", "iter((0,) * {n})")


class Program:
    """One text as a kernel and one that keeps a list of its rounds, with the same lines."""

    def __init__(self, seed):
        self.random, self.lines, self.n = random.Random(seed), [], 0

    def put(self, depth, kernel, counting=None):
        self.lines.append(("    " * depth + kernel, "    " * depth + (kernel if counting is None else counting)))

    def op(self, depth):
        self.put(depth, "x = x * c", f"log.append(({len(self.lines)}, list(r)))")

    def name(self):
        self.n += 1
        return f"v{self.n}"

    def leave(self, depth, v):
        if self.random.random() < 0.4:
            self.put(depth, f"if {v} == {self.random.randrange(3)}: {self.random.choice(('break', 'continue'))}")

    def loop(self, depth, level):
        v, n = self.name(), self.random.randrange(4)
        if self.random.random() < 0.3:
            self.put(depth, f"{v} = 0", f"{v} = 0; r.append(-1)")
            self.put(depth, f"while {v} < {n}:")
            self.put(depth + 1, f"{v} += 1", f"{v} += 1; r[-1] += 1")
        else:
            it = self.random.choice(ITERABLES).format(n=n)
            self.put(depth, f"{v} = -1", f"{v} = -1; r.append(-1)")
            self.put(depth, f"for _ in {it}:")
            self.put(depth + 1, f"{v} += 1", f"{v} += 1; r[-1] += 1")
        mark = len(self.lines)
        self.leave(depth + 1, v)
        self.block(depth + 1, level + 1)
        self.leave(depth + 1, v)
        self.put(depth, "pass", "r.pop()")
        assert len(self.lines) > mark

    def comprehension(self, depth):
        n, line = self.random.randrange(1, 4), len(self.lines)
        self.put(depth, f"x = [x * c for _ in range({n})][-1]", f"log.extend(({line}, [*r, i]) for i in range({n}))")

    def call(self, depth):
        self.put(depth, "x = helper(x, c)", "helper()")

    def block(self, depth, level):
        for _ in range(self.random.randrange(1, 4)):
            kind = self.random.random()
            if kind < 0.4 and level < 3:
                self.loop(depth, level)
            elif kind < 0.5:
                self.comprehension(depth)
            elif kind < 0.65 and self.calls:
                self.call(depth)
            else:
                self.op(depth)

    def texts(self, name):
        self.calls = False
        self.put(0, "def helper(x, c):", "def helper():")
        self.block(1, 1)
        self.put(1, "return x", "return")
        self.calls = True
        self.put(0, f"{SPECS}def {name}(x, c):".replace("\n", "\n"), f"\ndef {name}():")
        self.block(1, 0)
        self.op(1)
        self.put(1, "return x", "return")
        return ["\n".join(lines) + "\n" for lines in zip(*self.lines)]


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_count_the_same(seed):
    kernel, counting = Program(seed).texts("kernel")
    names = {"log": [], "r": []}
    exec(counting + "\nkernel()\n", names)
    if len(names["log"]) > 2000:
        pytest.skip("too long to trace quickly")
    result = compiled(HEAD + kernel, "--stop-after", "trace")
    skipped = HEAD.count("\n") + 1
    line = {i: no for no, i in enumerate(_line_numbers(kernel))}
    got = [(line[at - skipped], boxes[0] if boxes else []) for at, boxes in recorded(result, 0)]
    assert got == names["log"]


def _line_numbers(kernel):
    """The line, from 0, at which each of the program's entries begins: the header of the kernel has two lines."""
    text, at = kernel.split("\n"), 0
    while at < len(text):
        yield at
        at += 2 if text[at].startswith("@") else 1
