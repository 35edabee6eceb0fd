"""Analyses mutated NKI kernels: python3 -m support.nki_mutations SEED COUNT, with the product's Python packages and the
stand-ins for nki in PYTHONPATH.  The last line says how many were analysed; the exit status is 1 if one of them failed.

The analysis must end soon, raise nothing, give only codes of diag.def and ranges inside of the source, and give the same
when it is asked again.  The mutated source is compiled, but never run.
"""
import ast
import copy
import random
import sys
import types
import warnings

from nkx import nki_ast
from support.guarded import Guarded
from support.nki_kernels import HEAD, KERNELS
from support.nki_subset_accepted import ACCEPTED
from support.nki_subset_refused import DEVICE, REFUSED
from support.paths import ROOT

SECONDS = 5  # for one kernel; a usual one takes milliseconds
TOKENS = """x out a nl nisa nki P n i t None True False 0 1 -1 128 10**30 1e400 '' 'é' f'{x}' f'{x:3}' [] () {} {1} {1:2} lambda:0 ...
 + - * / // % ** << >> & | ^ ~ @ == != < > is in not and or if else for while with def class return yield await async break
 continue pass del global nonlocal import from try except finally raise assert match case = += := , : . ; ( ) [ ] { } * **
 nl.load nl.ndarray nl.affine_range nl.dynamic_range nisa.memset nisa.nc_matmul nl.arange nl.no_reorder() nisa.register_alloc
 dst= mask= dtype= *x **x x[0] x.shape x.reshape range(3) slice(0,4) \\\n # \t 世界 \U0001f600 self type int len""".split(" ")
WRAPS = ["if x:\n {}", "for i in nl.dynamic_range(3):\n {}", "while n:\n {}", "with nl.no_reorder():\n {}", "try:\n {}\nfinally: pass",
         "def f(q, *, w=1, **k):\n {}", "class C(Z, m=1):\n {}", "async def g():\n {}", "match n:\n case [1, *z]:\n  {}",
         "for i, (j, *k) in x:\n {}\nelse: pass", "if hasattr(nl, 'q'):\n {}\nelse:\n {}"]
CODES = {line.split('"')[1] for line in (ROOT / "compiler/base/diag.def").read_text().splitlines() if line.startswith("DIAG(")}


def sources():
    yield from (HEAD + text for text, _, _ in KERNELS.values())
    for n, (_, text, *_) in enumerate([*ACCEPTED, *REFUSED, *DEVICE]):
        text = text.replace("$", str(n)).replace("«", "").replace("»", "")
        definitions, _, body = text.rpartition("@@\n")
        if body.startswith("@nki.jit"):
            yield HEAD + body
        else:
            body = "\n".join("    " + line for line in body.splitlines())
            yield f"{HEAD}{definitions}@nki.jit\ndef k{n}(a, b=1):\n    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)\n" \
                  f"    x = nl.load(a)\n    n = 4\n{body}\n    return out\n"


def of_text(r, source):
    """Characters, words or lines are removed, doubled, replaced or moved."""
    for _ in range(r.randint(1, 4)):
        lines = source.split("\n")
        i = r.randrange(len(HEAD.split("\n")) - 1, len(lines))
        kind = r.randrange(6)
        if kind == 0:
            lines.insert(r.randrange(len(lines)), lines[i])
        elif kind == 1:
            del lines[i]
        elif kind == 2:
            lines[i] = r.choice(["    ", "", "  "]) + lines[i].lstrip()
        else:
            words = lines[i].split(" ")
            k = r.randrange(len(words))
            words[k] = r.choice([r.choice(TOKENS), words[k] + r.choice(TOKENS), r.choice(TOKENS) + words[k], ""])
            lines[i] = " ".join(words)
        source = "\n".join(lines)
    return source


def of_tree(r, source, others):
    """Expressions are exchanged, also with those of another source; statements are moved into others."""
    tree, other = ast.parse(source), ast.parse(r.choice(others))
    # copies, so that no expression becomes a part of itself
    pool = [n for n in ast.walk(other) if isinstance(n, ast.expr) and isinstance(getattr(n, "ctx", ast.Load()), ast.Load)]
    for _ in range(r.randint(1, 5)):
        nodes = [(p, name, value) for p in ast.walk(tree) for name, value in ast.iter_fields(p) if isinstance(value, (ast.expr, list))]
        p, name, value = r.choice(nodes)
        if isinstance(value, ast.expr) and isinstance(getattr(value, "ctx", ast.Load()), ast.Load):
            setattr(p, name, copy.deepcopy(r.choice(pool)))
        elif isinstance(value, list) and value and isinstance(value[0], ast.stmt) and name == "body":
            i = r.randrange(len(value))
            wrap = ast.parse(r.choice(WRAPS).replace("{}", "pass")).body[0]
            for holder in ast.walk(wrap):
                if isinstance(getattr(holder, "body", None), list) and len(holder.body) == 1 and isinstance(holder.body[0], ast.Pass):
                    holder.body = [value[i]]
                    break
            value[i] = wrap
        elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
            value[r.randrange(len(value))] = copy.deepcopy(r.choice(pool))
    return ast.unparse(ast.fix_missing_locations(tree))


def functions(source):
    """The kernels of a source as functions that nobody calls; they see the names of HEAD."""
    module = compile(source, "kernel.py", "exec", dont_inherit=True)
    names = {}
    exec(compile(HEAD, "head.py", "exec"), names)  # noqa: S102: our own text
    made = {}
    for c in module.co_consts:
        if isinstance(c, types.CodeType) and not c.co_freevars and c.co_name.isidentifier():
            made[c.co_name] = types.FunctionType(c, names, c.co_name)
    names.update(made)
    return list(made.values())


def check(source, fn, generation):
    texts, params = {"kernel.py": source}, {"a": ("float32", (128, 512))}
    lines, found = nki_ast.analyse(fn, generation, texts, params)
    assert nki_ast.analyse(fn, generation, texts, params) == (lines, found), "it is not the same again"
    rows = source.replace("\r\n", "\n").split("\n")
    for severity, code, message, hint, place in found:
        assert severity in ("error", "warning") and code in CODES, code
        assert isinstance(message, str) and message and (hint is None or isinstance(hint, str)), (message, hint)
        _inside(place, rows)
    for text, name, place in lines:
        assert "\n" not in text and (name is None) == (place is None)
        if place:
            _inside(place, rows)


def _inside(place, rows):
    _, line, col, end_line, end_col = place
    assert 1 <= line <= end_line <= len(rows), place
    assert 1 <= col <= len(rows[line - 1]) + 1 and 1 <= end_col <= len(rows[end_line - 1]) + 1, place
    assert (line, col) <= (end_line, end_col), place


def main(seed, count):
    r, all_sources, guarded = random.Random(seed), list(sources()), Guarded(f"analysis, seed {seed}", SECONDS)
    warnings.simplefilter("ignore")  # those of Python about the mutated source
    for round_ in range(count):
        source = r.choice(all_sources)
        try:
            source = of_text(r, source) if r.random() < 0.5 else of_tree(r, source, all_sources)
            found = functions(source)
        except (SyntaxError, ValueError, RecursionError, OverflowError, MemoryError, TypeError, AttributeError):
            continue  # no program
        for fn in found:
            guarded.run(f"round {round_}, {fn.__name__}", source, check, fn, r.choice((1, 2, 2)))
    return guarded.end("kernels analysed")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
