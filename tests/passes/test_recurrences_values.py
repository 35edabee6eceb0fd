"""Recurrences that are written out step by step: which become scans, and that every stage computes what NumPy computes."""
import re

import pytest

from support.compiler import compile, is_checked, stage

HEAD = "import numpy as np\n\n\n"


def counts(body, inputs):
    """How many scans the kernel has after recognize-scans, and how many operations; every stage is compared with NumPy."""
    names = ", ".join(x.split("=")[0] for x in inputs)
    source = HEAD + f"def f({names}):\n" + "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    arguments = [a for x in inputs for a in ("--input", x)]
    (kernel,) = compile(source, *arguments, "--stop-after", "linalg-to-nisa", check=True)["kernels"]
    assert all(is_checked(s) for s in kernel["stages"] if s["name"] != "trace"), [s["name"] for s in kernel["stages"] if not is_checked(s)]
    text = stage(kernel, "recognize-scans")["text"]
    return len(re.findall(r":2 = linalg\.generic .*\"reduction\"\]", text)), len(re.findall(r"= (linalg|tensor|arith)\.", text))


SCANNED = {
    "selective scan": ("""
h = np.zeros((140, 5), np.float32)
rows = []
for t in range(9):
    h = np.exp(d[t][:, None] * a) * h + d[t][:, None] * b[t][None, :] * x[t][:, None]
    rows.append(np.sum(h * c[t][None, :], axis=1))
return np.stack(rows)""", ["x=9x140:f32", "d=9x140:f32", "a=140x5:f32", "b=9x5:f32", "c=9x5:f32"]),
    "with the last state": ("""
h = np.zeros((130, 3), np.float32)
rows = []
for t in range(6):
    h = a[t][:, None] * h + x[t][:, None]
    rows.append(np.sum(h, axis=1))
return np.stack(rows), h""", ["x=6x130:f32", "a=6x130:f32"]),
    "moving average": ("""
s = x[0]
out = [s]
for t in range(1, 7):
    s = 0.1 * x[t] + 0.9 * s
    out.append(s)
return np.stack(out)""", ["x=7x33:f32"]),
    "assigned": ("""
y = np.zeros_like(x)
y[0] = x[0]
for t in range(1, 8):
    y[t] = 0.5 * y[t - 1] + x[t]
return y""", ["x=8x256:f32"]),
    "a part is assigned": ("""
y = np.zeros_like(x)
for t in range(2, 8):
    y[t] = a * y[t - 1] - x[t]
return y""", ["x=8x20:f32", "a=20:f32"]),
    "last state": ("""
h = np.zeros((200,), np.float32)
for t in range(5):
    h = a * h + x[t]
return h""", ["x=5x200:f32", "a=200:f32"]),
    "a first state": ("""
for t in range(5):
    h = h * a[t] - x[t] * x[t]
return np.tanh(h)""", ["x=5x7:f32", "a=5x7:f32", "h=7:f32"]),
    "columns": ("""
h = np.zeros((130,), np.float32)
out = []
for t in range(5):
    h = a[:, t] * h + x[:, t]
    out.append(h)
return np.stack(out, axis=1)""", ["x=130x5:f32", "a=130x5:f32"]),
    "every second column": ("""
h = x[:, 1]
out = []
for t in range(1, 6):
    h = a[:, t] * h + x[:, 2 * t]
    out.append(np.maximum(h, 0))
return np.stack(out, axis=1)""", ["x=130x12:f32", "a=130x6:f32"]),
    "batches": ("""
h = np.zeros((3, 150), np.float32)
out = []
for t in range(6):
    h = a[None, :] * h + x[:, t]
    out.append(h * g[:, t])
return np.stack(out, axis=1)""", ["x=3x6x150:f32", "a=150:f32", "g=3x6x150:f32"]),
    "one number": ("""
y = x[0:1]
out = [y]
for t in range(1, 40):
    y = 0.5 * y + x[t:t + 1]
    out.append(y)
return np.concatenate(out)""", ["x=40:f32"]),
    "a running maximum": ("""
m = x[0]
out = [m]
for t in range(1, 6):
    m = np.maximum(m + w, x[t])
    out.append(m)
return np.stack(out)""", ["x=6x64:f32", "w=64:f32"]),
    "the state from the right": ("""
h = x[0]
out = []
for t in range(1, 7):
    h = x[t] - a[t] * h
    out.append(h)
return np.stack(out)""", ["x=7x64:f32", "a=7x64:f32"]),
}


@pytest.mark.parametrize("name", SCANNED)
def test_a_recurrence_becomes_one_scan(name):
    scans, _ = counts(*SCANNED[name])
    assert scans == 1


def test_recurrences_that_need_each_other_become_scans():
    """The numerator and denominator of RWKV, with the maximum that keeps them finite."""
    body = """
m = x[0]
num = v[0]
den = np.ones((40,), np.float32)
out = []
for t in range(1, 8):
    n = np.maximum(m + w, x[t])
    e = np.exp(m + w - n)
    num = e * num + np.exp(x[t] - n) * v[t]
    den = e * den + np.exp(x[t] - n)
    m = n
    out.append(num / den)
return np.stack(out)"""
    scans, operations = counts(body, ["x=8x40:f32", "v=8x40:f32", "w=40:f32"])
    assert scans == 3
    assert operations < 80


def test_as_many_operations_for_any_number_of_steps():
    def operations(n):
        body = SCANNED["selective scan"][0].replace("range(9)", f"range({n})")
        return counts(body, [f"x={n}x140:f32", f"d={n}x140:f32", "a=140x5:f32", f"b={n}x5:f32", f"c={n}x5:f32"])[1]
    assert operations(8) == operations(24)


STAY = {
    "too few": ("""
h = x[0]
for t in range(1, 4):
    h = a * h + x[t]
return h""", ["x=4x30:f32", "a=30:f32"]),
    "not linear": ("""
h = x[0]
out = []
for t in range(1, 7):
    h = np.tanh(a * h + x[t])
    out.append(h)
return np.stack(out)""", ["x=7x30:f32", "a=30:f32"]),
    "the state twice": ("""
h = x[0]
out = []
for t in range(1, 7):
    h = h * h + x[t]
    out.append(h)
return np.stack(out)""", ["x=7x30:f32"]),
    "different steps": ("""
h = x[0]
out = []
for t in range(1, 7):
    h = a * h + x[t] if t % 2 else a + h * x[t]
    out.append(h)
return np.stack(out)""", ["x=7x30:f32", "a=30:f32"]),
    "integers": ("""
h = x[0]
out = []
for t in range(1, 7):
    h = 3 * h + x[t]
    out.append(h)
return np.stack(out)""", ["x=7x30:i32"]),
    "half precision": ("""
h = x[0]
out = []
for t in range(1, 7):
    h = a * h + x[t]
    out.append(h)
return np.stack(out)""", ["x=7x30:bf16", "a=30:bf16"]),
    "every state is needed besides": ("""
h = x[0]
out = []
for t in range(1, 7):
    h = a * h + x[t]
    out.append(np.exp(h) if t % 2 else np.tanh(h))
return np.concatenate(out)""", ["x=7x30:f32", "a=30:f32"]),
    "wide states": ("""
h = x[0]
out = []
for t in range(1, 7):
    h = a * h + x[t]
    out.append(h)
return np.stack(out)""", ["x=7x130x20:f32", "a=130x20:f32"]),
}


@pytest.mark.parametrize("name", STAY)
def test_what_is_no_recurrence_or_gains_nothing_stays(name):
    scans, _ = counts(*STAY[name])
    assert scans == 0


def test_few_states_that_are_needed_besides_are_taken_from_the_scan():
    body = """
h = x[0]
out = []
for t in range(1, 13):
    h = a * h + x[t]
    out.append(h)
    if t == 5:
        kept = np.exp(h)
return np.stack(out) + kept, h * 2"""
    assert counts(body, ["x=13x30:f32", "a=30:f32"])[0] == 1


def test_what_a_knob_asks_something_for_stays():
    source = ("import numpy as np\nfrom nkigen import trace, knob\n\n\n@trace(input_specs=[((6, 30), 'f32'), ((30,), 'f32')])\ndef f(x, a):\n    h = x[0]\n"
              "    out = []\n    for t in range(1, 6):\n        h = a * h + x[t]\n        if t == 3:\n            knob.knob(h, mem_space='Sbuf')\n        out.append(h)\n    return np.stack(out)\n")
    (kernel,) = compile(source, "--stop-after", "recognize-scans", check=True)["kernels"]
    assert ":2 = linalg.generic" not in stage(kernel, "recognize-scans")["text"]
