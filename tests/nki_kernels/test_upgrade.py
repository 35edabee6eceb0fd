"""`nkx nki upgrade`: kernels of beta 1 rewritten for the newest generation compute the same values; what is not certain is
marked, and stays."""
import ast
import json
import os
import subprocess
import sys

import pytest

from support import nki_helpers, warm
from support.nki_beta1 import HEAD, KERNELS
from support.nki_pairs import PAIRS, source_of
from support.paths import BUILD, NKX, TESTS

pytestmark = pytest.mark.xdist_group("upgrade")  # the kernels are upgraded and compared once

MARK = "# nkx: not upgraded: "
SOURCES = {name: HEAD + k[0] for name, k in KERNELS.items()} | {f"pair {n}": source_of(n, 1) for n in PAIRS}
SOURCES |= {f"functions: {n}": HEAD + text for n, text in nki_helpers.KERNELS.items()}
BY_HAND = {"attention_fused", "transpose2d", "average_pool", "attention_v4", "maxpool", "rmsnorm", "causal", "pair transpose2d", "pair average pool",
           "pair max pool", "pair causal mask"}


def upgrade(text):
    done = warm.text("nki", "upgrade", "-", input=text, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def upgraded():
    return {name: upgrade(text)[0] for name, text in SOURCES.items()}


COMPARE = """
import importlib, json, sys
import ml_dtypes, numpy as np
import nki
from nkx import annotations

found = {}
for name, old, new in json.load(open("pairs.json")):
    try:
        kernels = [next(v for v in vars(importlib.import_module(m)).values() if type(v).__name__ == "Kernel") for m in (old, new)]
        rng = np.random.default_rng(5)
        arrays = [rng.uniform(-1, 1, shape).astype(dtype) for _, (shape, dtype) in annotations.specs_of(kernels[0].func)]
        x, y = (nki.simulate(k)(*arrays) for k in kernels)
        found[name] = [k.generation for k in kernels] + [x.dtype == y.dtype and x.tobytes() == y.tobytes()]
    except Exception as e:
        found[name] = repr(e)
json.dump(found, open("found.json", "w"))
"""


@pytest.fixture(scope="module")
def values(upgraded, tmp_path_factory):
    """Both versions of every kernel that is upgraded wholly, on the simulated machine."""
    folder, pairs = tmp_path_factory.mktemp("upgrade"), []
    for number, (name, text) in enumerate(upgraded.items()):
        if MARK not in text:
            (folder / f"old_{number}.py").write_text(SOURCES[name])
            (folder / f"new_{number}.py").write_text(text)
            pairs.append((name, f"old_{number}", f"new_{number}"))
    (folder / "pairs.json").write_text(json.dumps(pairs))
    (folder / "compare.py").write_text(COMPARE)
    path = os.pathsep.join(map(str, (BUILD / "python", BUILD / "python/nkx/stubs")))
    done = subprocess.run([sys.executable, "compare.py"], cwd=folder, env={"PATH": os.environ["PATH"], "PYTHONPATH": path},
                          capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "found.json").read_text())


@pytest.mark.parametrize("name", [n for n in SOURCES if n not in BY_HAND])
def test_an_upgraded_kernel_computes_the_same_values(values, upgraded, name):
    assert "neuronxcc" not in upgraded[name] and "arange" not in upgraded[name] and "mgrid" not in upgraded[name]
    assert values[name] == [1, 2, True]


@pytest.mark.parametrize("name", sorted(BY_HAND))
def test_what_is_not_certain_is_marked_and_stays(upgraded, name):
    lines = upgraded[name].splitlines()
    marked = [lines[i + 1].strip() for i, line in enumerate(lines) if line.strip().startswith(MARK)]
    assert marked and all(line in SOURCES[name] for line in marked)


def test_comments_and_lines_that_say_nothing_of_nki_stay():
    text = HEAD + """
# what is above stays
@nki.jit(mode="baremetal")
def kernel(a: tensor[200, 64], factor=2.0):
    \"\"\"Its text.\"\"\"
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    ip = nl.arange(128)[:, None]  # partitions
    jf = nl.arange(64)[None, :]
    n = (a.shape[0] + 127) // 128   # how many
    for i in nl.affine_range(n):
        # the last tile is smaller
        t = nl.load(a[i * 128 + ip, jf], mask=(i * 128 + ip < a.shape[0]))
        nl.store(out[i * 128 + ip, jf], t * factor, mask=(i * 128 + ip < a.shape[0]))
    return out


if __name__ == "__main__":
    print(nki.simulate_kernel(kernel, np.ones((200, 64))))
"""
    new, said = upgrade(text)
    assert said == "nkx: -: everything is upgraded\n"
    assert new == """import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
from nki.typing import tensor

# what is above stays
@nki.jit(mode="baremetal")
def kernel(a: tensor[200, 64], factor=2.0):
    \"\"\"Its text.\"\"\"
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    n = (a.shape[0] + 127) // 128   # how many
    for i in range(n):
        # the last tile is smaller
        t = nl.load(a[nl.ds(i * 128, min(128, a.shape[0] - i * 128)), 0:64])
        nl.store(out[nl.ds(i * 128, min(128, a.shape[0] - i * 128)), 0:64], nl.multiply(t, factor, dtype=nl.float32))
    return out


if __name__ == "__main__":
    print(nki.simulate(kernel)(np.ones((200, 64))))
"""


def test_calls_that_return_tiles_get_a_destination():
    new, _ = upgrade(HEAD + """
@nki.jit
def kernel(a: tensor[128, 64], b: tensor[128, 64]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x, y = nl.load(a), nl.load(b)
    acc = nl.zeros((nl.par_dim(64), 64), dtype=nl.float32, buffer=nl.psum)
    acc += nisa.nc_matmul(x, y)
    r = nl.ndarray((128, 64), dtype=nl.float32)
    r[...] = nisa.tensor_tensor(x, nisa.activation(np.exp, y), op=np.add)
    nl.store(out, r)
    return out
""")
    body = new[new.index("acc = "):]
    assert body == """acc = nl.zeros((64, 64), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc, stationary=x, moving=y)
    r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    tile_1 = nl.ndarray(y.shape, dtype=y.dtype, buffer=nl.sbuf)
    nisa.activation(dst=tile_1, op=nl.exp, data=y)
    nisa.tensor_tensor(dst=r, data1=x, data2=tile_1, op=nl.add)
    nl.store(out, r)
    return out
"""


@pytest.mark.parametrize("body, same", [
    ("    y = nl.load(b[ip, jf])\n    nl.store(out[ip, jf], x + y, mask=(ip < 100))\n", "nl.add(x, y[0:min(128, 100), :])"),
    ("    s = nl.ndarray((nl.par_dim(128), 1), dtype=nl.float32)\n    s[ip, nl.arange(1)[None, :]] = nisa.tensor_reduce(np.add, x, axis=[1])\n",
     "dst=s[0:min(128, 100), 0:1]"),
    ("    y = nl.copy(x[ip, jf])\n", "y = nl.copy(x[0:min(128, 100), 0:64])"),
    ("    y = nl.load(b[ip, jf])\n    y[...] = x * 2.0\n", "dst=y[0:min(128, 100), :]"),
    ("    y = nl.copy(x[nl.arange(64)[:, None], jf])\n", MARK + "a mask has made the tile smaller"),
    ("    y = nl.load(b[ip, jf])\n    z = nisa.nc_matmul(nl.copy(x), y)\n", None),
])
def test_a_tile_that_a_mask_made_smaller_makes_what_is_beside_it_smaller(body, same):
    new, _ = upgrade(HEAD + """
@nki.jit
def kernel(a: tensor[100, 64], b: tensor[128, 64]):
    out = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    ip, jf = nl.arange(128)[:, None], nl.arange(64)[None, :]
    x = nl.load(a[ip, jf], mask=(ip < 100))
""" + body + "    return out\n")
    assert same is None or same in new, new


def test_results_that_are_parameters_are_marked():
    new, said = upgrade(HEAD + "@nki.baremetal\ndef kernel(a, out):\n    nl.store(out, nl.load(a))\n")
    assert "@nki.jit\n" in new and f"    {MARK}the results are parameters" in new and "1 statement to be done by hand" in said


def test_launches_that_are_no_more_are_marked():
    text = HEAD + """
@nki.jit
def kernel(a: tensor[256, 64]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i, j = nl.program_id(0), nl.program_id(axis=1)
    for k in range(nl.num_programs(0)):
        if nl.num_programs(axes=1) == 2:
            nl.store(out[nl.ds(i * 128, 128), nl.ds(j * 32, 32)], nl.load(a[nl.ds(i * 128, 128), nl.ds(j * 32, 32)]))
    return out


x = np.zeros((256, 64), np.float32)
if True: kernel[2, 2](x)
for g in (1, 2):
    r = nki.simulate_kernel(kernel[2, g], x)
    kernel[nl.spmd_dim(2, nl.nc(2))](x)
kernel[1](x), kernel[2](x), kernel[(2,)](x), kernel(x)
"""
    new, said = upgrade(text)
    ast.parse(new)
    lines = [line.strip() for line in new.splitlines()]
    below = [lines[i + 1] for i, line in enumerate(lines) if line.startswith(MARK + "a launch now has one axis")]
    assert below == ["i, j = nl.program_id(0), nl.program_id(axis=1)", "if nl.num_programs(axes=1) == 2:", "if True: kernel[2, 2](x)",
                     "r = nki.simulate(kernel[2, g])(x)", "kernel[nl.spmd_dim(2, nl.nc(2))](x)"]
    assert "5 statements to be done by hand" in said


def rewritten(body, above=""):
    """The body of a kernel after the upgrade, and the text above it."""
    text = HEAD + above + "\n@nki.jit\ndef kernel(a: tensor[128, 64]):\n    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)\n" + body
    new, _ = upgrade(text)
    ast.parse(new)
    return new.split("buffer=nl.shared_hbm)\n", 1)[1], new.split("\n@nki.jit")[0]


def test_statements_that_share_a_line_are_rewritten_each():
    body, _ = rewritten("    ip = nl.arange(128)[:, None]; jf = nl.arange(64)[None, :]; x = nl.load(a[ip, jf]);\n"
                        "    for i in nl.affine_range(2): y = nisa.activation(op=nl.exp, data=x); nl.store(out, y)\n    return out\n")
    assert body == """    x = nl.load(a[0:128, 0:64])
    for i in range(2):
        y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.activation(dst=y, op=nl.exp, data=x)
        nl.store(out, y)
    return out
"""


def test_line_ends_in_an_indentation_go_away_and_those_in_comments_stay():
    body, _ = rewritten("    \\\n  \\\nx = nl.load(a); y = nisa.activation(op=nl.exp, data=x)\n    if True:  # C:\\\n"
                        "        # D:\\\n        nl.store(out, y)\n    return out\n")
    assert body == """    x = nl.load(a)
    y = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.activation(dst=y, op=nl.exp, data=x)
    if True:  # C:\\
        # D:\\
        nl.store(out, y)
    return out
"""


def test_a_line_of_nothing_but_a_backslash_takes_no_indentation_away():
    body, _ = rewritten("\\\n    x = nl.load(a); y = nisa.activation(op=nl.exp, data=x)\n    nl.store(out, y)\n    return out\n")
    assert body.splitlines()[0] == "    x = nl.load(a)" and body.splitlines()[-1] == "    return out"


def test_a_line_of_nothing_but_a_backslash_may_stand_between_statements():
    body, _ = rewritten("    x = nl.load(a)\n\\\n    for i in range(2):  # C:\\\n        x = nl.exp(x); x = nl.exp(x)\n    nl.store(out, x)\n    return out\n")
    assert [line for line in body.splitlines() if "nl.exp" in line] == ["        x = nl.exp(x)"] * 2


@pytest.mark.parametrize("head, new", [
    ("if True:\n    import neuronxcc.nki as nki\nelse:\n    pass\n", "import nki.language as nl\nif True:\n    import nki\nelse:\n    pass\n"),
    ('"""import nki"""\nfrom __future__ import annotations\nfrom neuronxcc import nki\n',
     '"""import nki"""\nfrom __future__ import annotations\nimport nki\nimport nki.language as nl\n')])
def test_a_new_import_stands_where_one_may(head, new):
    text, _ = upgrade(head + "@nki.jit\ndef kernel(a):\n    nl.load(a)\n")
    assert text.startswith(new) and ast.parse(text)


def test_a_mark_stands_alone_above_a_statement_that_shared_a_line():
    body, _ = rewritten("    x = nl.load(a); y = strange(x); nl.store(out, x)\n    return out\n")
    assert body.splitlines()[1].startswith(f"    {MARK}") and body.splitlines()[2:4] == ["    y = strange(x)", "    nl.store(out, x)"]


def test_tabs_stay_and_a_body_that_becomes_empty_passes():
    text = HEAD + ("@nki.jit\ndef kernel(a: tensor[128, 64]):\n\tif True:\n\t\tip = nl.arange(128)[:, None]\n\tx = nisa.activation(op=nl.exp, data=a)\n"
                   "\treturn a\n")
    new, _ = upgrade(text)
    ast.parse(new)
    assert "\t\tpass\n" in new and "\n\tnisa.activation(dst=x" in new


def test_a_mark_on_a_statement_that_goes_away_stays():
    new, said = upgrade(HEAD + "@nki.jit\ndef kernel(a, out):\n    ip = nl.arange(128)[:, None]\n    nl.store(out[ip, 0:4], nl.load(a[ip, 0:4]))\n")
    ast.parse(new)
    assert "ip" not in new and f"    {MARK}the results are parameters" in new and "1 statement" in said


def test_what_uses_an_uncertain_value_is_marked():
    body, _ = rewritten("    x = strange(nl.load(a))\n    y = x + 1\n    nl.store(out, y)\n    return out\n")
    assert body.count(MARK) == 3


def test_functions_that_kernels_call_are_rewritten_with_them():
    body, head = rewritten("    x = nl.load(a)\n    y = scaled(x, 2.0)\n    nl.store(out, value=added(y, t=x))\n    return out\n", """
def scaled(t, s):
    ip, jf = nl.arange(64)[:, None], nl.arange(64)[None, :]  # the upper half
    t[ip, jf] = nisa.activation(op=nl.exp, data=t[ip, jf])
    return t * s  # and all of it

def added(u, t): return u + t
""")
    assert "# nkx" not in head + body
    assert head.split("from nki.typing import tensor")[1] == """

def scaled(t, s):
    nisa.activation(dst=t[0:64, 0:64], op=nl.exp, data=t[0:64, 0:64])
    return nl.multiply(t, s, dtype=nl.float32)  # and all of it

def added(u, t):
    return nl.add(u, t, dtype=nl.float32)
"""


# what a function is given by two calls, or what it does, that leaves something to be done by hand: where and why
BY_CALLS = {
    "numbers of two types": ("def f(t, s): return t * s\n", "y = f(x, 2.0)\n    z = f(x, 2)", "z = f(x, 2)", "f is called above with other kinds"),
    "an index tile": ("def f(t, i): return t[i, 0:4]\n", "y = f(x, nl.arange(64)[:, None])", "y = f(x, nl.arange(64)[:, None])", ""),
    "itself": ("def f(t): return f(t) + t\n", "y = f(x)", "return f(t) + t", "f calls itself"),
    "several stars": ("def f(*t): return t[0] + t[1]\n", "y = f(x, x)", "y = f(x, x)", "the parameters of f are not read"),
    "what it returns": ("def f(t): return strange(t)\n", "y = f(x)", "y = f(x)", "what f returns is not known here"),
    "a mask": ("def f(t, n):\n    i = nl.arange(128)[:, None]\n    return nl.exp(t, mask=(i < n))\n", "y = f(x, 5)", "y = f(x, 5)",
               "what f returns is not known here"),
    "a smaller tile": ("def f(h, n):\n    i, j = nl.arange(128)[:, None], nl.arange(64)[None, :]\n    return nl.load(h[i, j], mask=(i < n))\n",
                       "y = f(a, 5)", "y = f(a, 5)", "by a mask"),
}


@pytest.mark.parametrize("what", BY_CALLS)
def test_a_call_of_a_function_that_is_not_certain_is_marked(what):
    above, statement, line, reason = BY_CALLS[what]
    body, head = rewritten(f"    x = nl.load(a)\n    {statement}\n    return out\n", "\n" + above)
    lines = [text.strip() for text in (head + "\n" + body).splitlines()]
    assert lines[lines.index(line) - 1].startswith(MARK) and reason in lines[lines.index(line) - 1]


UNREAD = {
    "a function that no kernel calls": ("def twice(t):\n    return nl.add(t, t)\n", "twice is no kernel"),
    "functions imported by name": ("from neuronxcc.nki.language import load\n", "functions that are imported by name"),
    "a module without a short name": ("import neuronxcc.nki.language\n", "names of a module without a short name"),
}


@pytest.mark.parametrize("what", UNREAD)
def test_what_is_not_read_is_marked(what):
    above, reason = UNREAD[what]
    _, head = rewritten("    nl.store(out, nl.load(a))\n    return out\n", above)
    assert f"{MARK}{reason}" in head


@pytest.mark.parametrize("statement", ["y: object = x + x", "y = nl.load(a[x, 0:4])", "y = nl.load(a[x[:, 0], 0:4])", "y = x + x if a.shape[0] else x", "y = [x + x for _ in (0, 1)]", "y = strange(x)", "y, z = strange(x)",
                                       "del x", "y = lambda: x + 1", "assert x", "for y in strange(x): nl.store(out, y)", "while x: pass", "if x > 1: pass"])
def test_a_form_that_is_not_known_is_marked(statement):
    body, _ = rewritten(f"    x = nl.load(a)\n    {statement}\n    return out\n")
    assert body.splitlines()[1].startswith(f"    {MARK}") and "# nkx" not in body.splitlines()[2]


def test_mutated_kernels_are_upgraded_to_programs():
    path = os.pathsep.join(map(str, (TESTS, BUILD / "python", BUILD / "python/nkx/stubs")))
    seconds = os.environ.get("NKX_NKI_FUZZ", "6")
    for what in ("upgrade", "compile"):
        done = subprocess.run([sys.executable, "-m", "support.nki_fuzz", what, os.environ.get("NKX_SEED", "1"), seconds],
                              env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300 + float(seconds))
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]


def test_a_file_without_beta_1_stays_as_it_is():
    text = source_of("softmax", 2)
    assert upgrade(text)[0] == text


def test_what_is_no_python_and_a_wrong_usage_are_refused():
    done = subprocess.run([NKX, "nki", "upgrade", "-"], input="def f(:\n", capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and done.stderr.startswith("nkx: -:1: ") and done.stdout == ""
    done = subprocess.run([NKX, "nki", "downgrade", "-"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.startswith("usage: nkx nki upgrade")
