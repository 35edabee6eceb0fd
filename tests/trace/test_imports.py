"""Several files of one request: imports between them against CPython's own, and the places that name them."""
import builtins
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import pytest

from support.oracles import xla

trace_source = xla._nkx.trace_source
LINES = int(os.environ.get("NKX_IMPORT_PROGRAMS", "120"))  # random programs


def run_ours(files, main="main.py"):
    """What the main file prints, and the type of the exception that ends it, or None."""
    result = trace_source(files[main], filename=main, kernel="-", files=[(n, t) for n, t in files.items() if n != main])
    errors = [d for d in result["diagnostics"] if d["severity"] == "error" and d["code"] != "no-kernel"]
    return result["output"], errors


def run_cpython(files, main="main.py"):
    """The same by CPython from a folder on disk: `import main`, with the main file's folder first in the path."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        first, stem = os.path.split(main[:-3])
        program = f"import sys; sys.path[:1] = [{os.path.join(folder, first)!r}, {folder!r}]; import {stem}"
        done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, timeout=60,
                              cwd=folder, env={"PATH": os.environ["PATH"]})
    last = done.stderr.strip().splitlines()[-1] if done.returncode else None
    return done.stdout, last and last.partition(":")[0], last and last.partition(": ")[2]


def assert_same(files, main="main.py"):
    out, kind, message = run_cpython(files, main)
    ours, errors = run_ours(files, main)
    assert ours == out, (files, ours, out, errors)
    if kind is None:
        assert errors == [], (files, errors)
    elif kind in ("ImportError", "ModuleNotFoundError"):
        assert [d["code"] for d in errors] == ["python-import"], (files, kind, message, errors)
    elif kind in ("SyntaxError", "IndentationError"):
        assert [d["code"] for d in errors] == ["python-syntax"], (files, kind, message, errors)
    else:
        assert [d["message"].partition(":")[0] for d in errors] == [kind], (files, kind, message, errors)
    return out, kind


# ---- cases


CASES = {
    "a module": {"main.py": "import helper\nprint(helper.x, helper.__name__)", "helper.py": "x = 1"},
    "as": {"main.py": "import a.b as c\nprint(c.x, c.__name__, c.__package__)", "a/__init__.py": "", "a/b.py": "x = 1"},
    "a package without __init__.py": {"main.py": "import a.b\nfrom a import b\nprint(a.b.x, b is a.b, a.__name__)", "a/b.py": "x = 2"},
    "from . import": {"main.py": "from a import f\nprint(f())", "a/__init__.py": "from . import b\nfrom .b import g as f", "a/b.py": "def g(): return 3"},
    "two levels up": {"main.py": "import a.b.c", "a/__init__.py": "", "a/d.py": "x = 4", "a/b/__init__.py": "", "a/b/c.py": "from ..d import x\nfrom .. import d\nprint(x, d.x)"},
    "above the top": {"main.py": "import a.b", "a/__init__.py": "", "a/b.py": "from ... import x"},
    "relative in the main file": {"main.py": "from . import helper", "helper.py": ""},
    "star": {"main.py": "from a import *\nprint(sorted(n for n in dir() if n[0] != '_'))", "a/__init__.py": "__all__ = ['b', 'x']\nx = 1\ny = 2", "a/b.py": ""},
    "a circle": {"main.py": "import a\nprint(a.f())", "a.py": "import b\ndef f(): return b.g()", "b.py": "import a\ndef g(): return 5"},
    "a circle of names": {"main.py": "import a", "a.py": "from b import g\ndef f(): pass", "b.py": "from a import f\ndef g(): pass"},
    "a circle with the main file": {"main.py": "X = 1\nimport a\nprint(a.y)\nY = 2", "a.py": "import main\ny = main.X\nprint(hasattr(main, 'Y'))"},
    "import_module": {"main.py": "import importlib\nm = importlib.import_module('a.b')\nprint(m.x, importlib.import_module('.b', 'a') is m)", "a/__init__.py": "", "a/b.py": "x = 1"},
    "reload": {"main.py": "import importlib, a\na.x = 7\nprint(importlib.reload(a).x)", "a.py": "x = 1"},
    "a package before a module": {"main.py": "import a\nprint(a.x)", "a.py": "x = 'module'", "a/__init__.py": "x = 'package'"},
    "a module before a folder": {"main.py": "import a\nprint(a.x)\nimport a.b", "a.py": "x = 'module'", "a/b.py": ""},
    "the same name twice": {"main.py": "import a.util, b.util, util\nprint(a.util.x, b.util.x, util.x)", "a/util.py": "x = 1", "b/util.py": "x = 2", "util.py": "x = 3"},
    "a name of the standard library": {"main.py": "import chunk\nprint(chunk.x)", "chunk.py": "x = 1"},
    "a missing name": {"main.py": "from a import b", "a.py": ""},
    "a missing submodule": {"main.py": "import a.b", "a/__init__.py": ""},
    "not a package": {"main.py": "import a.b", "a.py": ""},
    "an exception in a file": {"main.py": "import a", "a.py": "1 / 0"},
    "an exception that is caught": {"main.py": "try:\n    import a\nexcept ZeroDivisionError:\n    print('caught')\nimport sys\nprint('a' in sys.modules)", "a.py": "1 / 0"},
    "a syntax error": {"main.py": "import a", "a.py": "x = = 1"},
    "find_spec": {"main.py": "import importlib.util as u\nprint(u.find_spec('a') is None, u.find_spec('nowhere'), u.find_spec('a.b') is None)", "a/__init__.py": "", "a/b.py": ""},
    "conditional": {"main.py": "try:\n    import nowhere\nexcept ImportError as e:\n    print(e.name)\nimport a", "a.py": "try:\n    from nowhere.x import y\nexcept ModuleNotFoundError:\n    y = None\nprint(y)"},
    "guarded by the importer": {"main.py": "try:\n    import a\nexcept ImportError:\n    print('without a')", "a.py": "import nowhere"},
    "a lazy import": {"main.py": "def f():\n    from a import x\n    return x\nprint(f(), f())", "a.py": "print('once')\nx = 1"},
    "a module __getattr__": {"main.py": "import a\nfrom a import zed\nprint(a.foo, zed)", "a.py": "def __getattr__(n): return n * 2 if n[0] != '_' else __import__('builtins').getattr(None, n)"},
    "dataclasses and pickles": {"main.py": "import pickle, a\nprint(pickle.loads(pickle.dumps(a.P(3))))", "a.py": "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int"},
    "a byte order mark and Windows lines": {"main.py": "import a\nprint(a.x)", "a.py": "\ufeffx = 1\r\nif x:\r\n    x = 2\r\n"},
    "__path__ and __file__": {"main.py": "import a, a.b\nprint(a.b.__file__.endswith('b.py'), len(a.__path__), a.__spec__.name, a.b.__spec__.parent)", "a/__init__.py": "", "a/b.py": ""},
    "runpy": {"main.py": "import runpy\nprint(runpy.run_module('a', run_name='it')['x'])", "a.py": "x = __name__"},
}


@pytest.mark.parametrize("name", CASES)
def test_imports_between_files_are_those_of_cpython(name):
    assert_same(CASES[name])


def test_the_main_file_may_lie_in_a_folder():
    files = {"app/main.py": "import helper\nfrom app import other\nimport lib.x\nprint(helper.x, other.x, lib.x.x)",
             "app/helper.py": "x = 1", "app/other.py": "x = 2", "lib/x.py": "x = 3"}
    assert_same(files, "app/main.py")
    relative = files | {"app/main.py": "from . import helper\nfrom .other import x\nprint(helper.x, x)"}
    assert run_ours(relative, "app/main.py") == ("1 2\n", [])


def test_a_file_hides_no_module_that_is_loaded():
    files = {"main.py": "import numpy, random, ast\nprint(numpy.__name__, random.random() < 1, hasattr(ast, 'parse'))",
             "numpy.py": "1 / 0", "random.py": "1 / 0", "ast.py": "1 / 0", "nkx/places.py": "1 / 0"}
    assert run_ours(files) == ("numpy True True\n", [])
    source = "from nkigen import trace\n@trace(input_specs=[((3,), 'f32')])\ndef f(x):\n    for r in x: pass\n    return x + 1\n"
    result = trace_source(source, filename="numpy.py", files=[("linecache.py", "1 / 0"), ("inspect.py", "1 / 0")])
    assert [k["name"] for k in result["kernels"]] == ["f"] and not result["diagnostics"]


def test_nothing_of_a_request_lives_on():
    state = lambda: (list(sys.path), len(sys.meta_path), len(sys.path_hooks), builtins.__import__)
    run_ours({"main.py": "import a.b", "a/b.py": ""})
    before, modules = state(), set(sys.modules)
    run_ours({"main.py": "import a.b, statistics_of_mine, flax.linen, torch.distributed\nprint(a.b.x)", "a/b.py": "x = 1", "statistics_of_mine.py": ""})
    assert state() == before and set(sys.modules) - modules == set()
    assert not [p for p in sys.path_importer_cache if p.startswith("nkx-files:")]
    out, errors = run_ours({"main.py": "from a.b import x\nprint(x)", "a/b.py": "x = 2"})
    assert (out, errors) == ("2\n", [])
    _, (error,) = run_ours({"main.py": "import a.b\na.b.x()"})
    assert error["code"] == "python-import"


# ---- places and kernels


HELPER = "import numpy as np\n\n\ndef gelu(x):\n    é = x * 2; return np.tanh(é)\n"


def test_places_name_their_file():
    source = "from lib.act import gelu\n\ndef kernel(x):\n    return gelu(x) + 1\n"
    result = trace_source(source, filename="main.py", files=[("lib/act.py", HELPER)], inputs=[("x", (3,), "f32")])
    assert not result["diagnostics"]
    places = {i["opcode"]: i["src"] for i in result["kernels"][0]["instructions"]}
    assert places["tanh"] == [("lib/act.py", 5, 23, 5, 33, "gelu"), ("main.py", 4, 12, 4, 19, "kernel")]
    assert places["add"] == [("main.py", 4, 12, 4, 23, "kernel")]


@pytest.mark.parametrize("helper, code, place", [
    ("def f(x):\n    return x.tolist()\n", "unsupported-op", ("lib.py", 2, 12)),
    ("def f(x):\n    return x +\n", "python-syntax", ("lib.py", 2, 15)),
    ("\n" * 3 + "1 / 0\n", "python-exception", ("lib.py", 4, 1)),
    ("x = '\0'\n", "python-syntax", ("lib.py", 1, 1)),
    ("x = " + "(" * 200 + "\n", "nesting-too-deep", ("lib.py", 1, 106)),
])
def test_diagnostics_are_in_the_file_that_is_wrong(helper, code, place):
    result = trace_source("import lib\ndef kernel(x):\n    return lib.f(x)\n", filename="main.py",
                          files=[("lib.py", helper)], inputs=[("x", (3,), "f32")])
    d = result["diagnostics"][0]
    assert (d["code"], d["src"][0][:3]) == (code, place)


def test_kernels_of_the_main_file_come_before_those_that_it_imports():
    decorated = "from nkigen import trace\n@trace(input_specs=[((3,), 'f32')])\ndef {}(x): return x + 1\n"
    lib = ("lib.py", decorated.format("inner") + "def plain(x): return x * 2\n")
    names = lambda source, **more: [k["name"] for k in trace_source(source, filename="main.py", files=[lib], **more)["kernels"]]
    assert names("import lib\n" + decorated.format("outer")) == ["outer"]
    assert names("import lib\n") == ["inner"]
    assert names("import lib\n" + decorated.format("outer"), kernel="inner") == ["inner"]
    assert names("from lib import plain\n", kernel="plain", inputs=[(None, (3,), "f32")]) == ["plain"]
    result = trace_source("from other import plain\n", filename="main.py", files=[("other.py", "def plain(x): return x\n")],
                          inputs=[(None, (3,), "f32")])
    assert [k["name"] for k in result["kernels"]] == ["plain"]


def test_the_source_limit_counts_all_files():
    big = "#" + "x" * (200 << 10) + "\n"
    result = trace_source(big, files=[("a.py", big)])
    assert [d["code"] for d in result["diagnostics"]] == ["source-too-large"]


# ---- random programs


class Program:
    """A random tree of files that import each other, each of which prints what it sees."""

    def __init__(self, seed):
        self.r = r = random.Random(seed)
        names = ["a", "b", "c", "util"]
        self.modules = set()  # tuples
        for _ in range(r.randint(2, 7)):
            self.modules.add(tuple(r.choice(names) for _ in range(r.randint(1, 3))))
        self.packages = {m[:n] for m in self.modules for n in range(1, len(m))}
        self.files = {"/".join(m) + ".py": self.text(m[:-1]) for m in sorted(self.modules)}
        for p in sorted(self.packages):
            if r.random() < 0.6:
                self.files["/".join(p) + "/__init__.py"] = self.text(p)
        self.files["main.py"] = self.text(())

    def statement(self, package):
        r = self.r
        target = r.choice(sorted(self.modules | self.packages))
        if r.random() < 0.08:
            target += (r.choice(["nothing", "a"]),)
        kind = r.randrange(7)
        if kind == 0:
            return f"import {'.'.join(target)}"
        if kind == 1:
            return f"import {'.'.join(target)} as m\nprint(__name__, m.__name__)"
        if kind == 2:
            return f"from {'.'.join(target)} import value\nprint(value)"
        if kind == 3 and len(target) > 1:
            return f"from {'.'.join(target[:-1])} import {target[-1]}\nprint({target[-1]}.__name__)"
        if kind == 4:
            return f"import importlib\nprint(importlib.import_module({'.'.join(target)!r}).__name__)"
        if kind == 5:
            level = r.randint(1, max(1, len(package)))
            base = package[: len(package) - level + 1]
            near = [m[len(base):] for m in self.modules | self.packages if m[: len(base)] == base and len(m) > len(base)]
            if near:
                chosen = r.choice(sorted(near))
                if len(chosen) == 1:
                    return f"from {'.' * level} import {chosen[0]} as n\nprint(n.__name__)"
                return f"from {'.' * level}{'.'.join(chosen[:-1])} import {chosen[-1]} as n\nprint(n.__name__)"
        return f"from {'.'.join(target)} import *"

    def text(self, package):
        lines = [f"value = {self.r.randint(0, 99)}"] if self.r.random() < 0.9 else []
        lines.append("print('>', __name__, __package__)")
        for _ in range(self.r.randint(0, 3)):
            s = self.statement(package)
            kind = self.r.random()
            if kind < 0.25:
                s = "try:\n    " + s.replace("\n", "\n    ") + "\nexcept Exception as e:\n    print(type(e).__name__)"
            elif kind < 0.4:
                s = "def late():\n    " + s.replace("\n", "\n    ").replace("import *", "import value") + "\nlate()"
            lines.append(s)
        lines.append("print('<', __name__)")
        return "\n".join(lines) + "\n"


def test_random_programs_of_several_files_are_those_of_cpython():
    ends = {}
    for seed in range(LINES):
        files = Program(seed).files
        assert not any(re.search(r"\0", t) for t in files.values())
        _, kind = assert_same(files)
        ends[kind] = ends.get(kind, 0) + 1
    assert ends[None] > LINES / 4 and len(ends) > 1, ends  # both kinds of ends are met
