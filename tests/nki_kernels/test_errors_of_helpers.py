"""Mistakes in what a kernel calls: each is shown with the calls that led to it, and the kernel goes on to the others."""
import json

import pytest

from support import compiler, source_map, warm
from support.nki_kernels import HEAD

KERNEL = """
@nki.jit
def kernel(a: nl.tensor[nl.float32, (256, 512)]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    for i in nl.affine_range(2):
        t = load_tile(a, i)
        u = scaled(t)
        nisa.tensor_tensor(dst=t, data1=t, data2=u, op=«nl.exp»)
        z = nl.load(«a[0:200, :]»)
        nisa.dma_copy(dst=out[i * 128:(i + 1) * 128, :], src=«tt»)
    return out
"""
HELPERS = """

def load_tile(h, i):
    t = nl.ndarray((128, 512), h.dtype)
    nisa.dma_copy(dst=t, src=h[i * 128:(i + 1) * 128, :])
    nisa.memset(dst=t, value=«zeroo»)
    return t


class Factor:
    def of(self, x):
        return nl.multiply(x, «self_scale»)


def scaled(t):
    def inner(x):
        return nl.multiply(x, «undefined_scale»)
    y = inner(Factor().of(t))
    return «nl.expp»(y)

"""
CODES = ["nki-name", "nki-name", "nki-name", "nki-unknown-api", "nki-operator", "nki-size-limit", "nki-name"]


def marked(text):
    """(the text without marks, [(line, column, end column), …])"""
    ranges = [(n, line.index("«") + 1, line.index("»")) for n, line in enumerate(text.splitlines(), 1) if "«" in line]
    return text.replace("«", "").replace("»", ""), ranges


def found_in(d):
    return d["range"]["line"], d["range"]["col"], d["range"]["end_col"], d["code"]


def errors(source, *arguments):
    return [d for d in compiler.compile(source, *arguments)["diagnostics"] if d["severity"] == "error"]


def test_a_kernel_shows_the_mistakes_of_its_helpers_and_its_own():
    source, ranges = marked(HEAD + HELPERS + KERNEL)
    found = errors(source)
    assert sorted(map(found_in, found)) == [(*at, code) for at, code in zip(ranges, CODES)]
    by_code = {d["range"]["line"]: d for d in found}
    inner = by_code[ranges[2][0]]
    assert inner["message"] == "undefined_scale is not defined"
    assert [source.splitlines()[c["line"] - 1].strip() for c in inner["calls"]] == ["y = inner(Factor().of(t))", "u = scaled(t)"]


def test_helpers_of_another_file_are_no_exception(tmp_path):
    helpers, in_helpers = marked(HEAD + HELPERS)
    source, own = marked(HEAD + "from tiles import load_tile, scaled\n" + KERNEL)
    (tmp_path / "tiles.py").write_text(helpers)
    (tmp_path / "kernel.py").write_text(source)
    done = warm.run("compile", tmp_path / "kernel.py", "--quiet", "--json", "-")
    found = [d for d in source_map.expanded(json.loads(done.stdout))["diagnostics"] if d["severity"] == "error"]
    got = sorted((str(d["range"].get("file", "")).endswith("tiles.py"), *found_in(d)) for d in found)
    assert got == sorted([(True, *at, code) for at, code in zip(in_helpers, CODES)] + [(False, *at, code) for at, code in zip(own, CODES[4:])])


def test_a_name_that_a_helper_tries_is_pythons():
    source = HEAD + """
def tile(h):
    try:
        return not_there(h)
    except NameError:
        return nl.load(h)


@nki.jit
def kernel(a: nl.tensor[nl.float32, (128, 512)]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, tile(a))
    return out
"""
    assert not errors(source)


ENDS = HEAD + """
def scaled(t, twice):
    if twice:
        return nl.add(t, t)
    return nl.add(t, not_there)


def never(t):
    return nl.add(t, nor_there)


@nki.jit
def kernel(a: nl.tensor[nl.float32, (128, 512)]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    t = scaled(nl.load(a), True)
    if a.shape[0] > 128:
        t = never(t)
    nl.store(out, t)
    return out
"""


def test_what_a_helper_does_not_reach_is_no_mistake():
    assert not errors(ENDS)


def test_a_kernel_that_python_ends_shows_the_names_of_the_helpers_that_it_calls_later():
    source, ranges = marked(HEAD + """
def doubled(t):
    return nl.add(t, «not_there»)


@nki.jit
def kernel(a: nl.tensor[nl.float32, (128, 512)]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    tiles = []
    «tiles.apend»(nl.load(a))
    nl.store(out, doubled(tiles[0]))
    return out
""")
    assert sorted(map(found_in, errors(source))) == [(*at, "nki-name") for at in ranges]


def test_names_of_the_module_itself_are_pythons():
    [d] = errors(HEAD + "x = not_there\n")
    assert d["code"] == "python-exception" and d["message"] == "NameError: name 'not_there' is not defined"


@pytest.mark.parametrize("line, code", [("t = helper(x, not_there)", "nki-name"), ("x[...] = nl.ex(x)", "nki-unknown-api")])
def test_kernels_of_beta_1_go_on_too(line, code):
    source = f"""import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt


def helper(x, y):
    return nl.add(x, also_not_there)


@nki.jit
def kernel(a: nt.tensor[128, 512]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.load(a)
    y = helper(x, x)
    {line}
    nl.store(out[0:200], x)
    return out
"""
    codes = sorted(d["code"] for d in errors(source))
    assert codes == sorted(["nki-name", code, "nki-shape-mismatch"]), errors(source)
