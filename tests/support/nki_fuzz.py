"""Rewrites and compiles mutated NKI kernels: python3 -m support.nki_fuzz upgrade|compile SEED SECONDS, with the product's Python
packages and the stand-ins for nki in PYTHONPATH.  The last line says how many; the exit status is 1 if one of them failed.

`upgrade`: the rewriter ends soon, raises nothing, gives a program, and leaves nothing of beta 1 where it marks nothing.
`compile`: a whole compile ends, and each of its errors has a code of diag.def and a range in the source.
"""
import ast
import random
import re
import sys
import time
import warnings

from support import nki_beta1, nki_helpers, nki_mutations, nki_pairs
from support.guarded import Guarded
from support.nki_mutations import CODES, TOKENS

SECONDS = 10  # for one source
FAULTS = {"internal", "check-failed", "worker-died", "ir-invalid", "hlo-invalid"}


def joined(r, source):
    """Some statements stand on one line, bodies on that of their header; or tabs indent."""
    tree, lines = ast.parse(source), source.split("\n")
    simple = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return)
    bodies = [n.body for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.For, ast.If))]
    for body in r.sample(bodies, min(len(bodies), 2)):
        if all(isinstance(n, simple) and n.lineno == n.end_lineno for n in body) and r.random() < 0.5:
            text = "; ".join(lines[n.lineno - 1].split("  #")[0].strip() for n in body)
            for n in body:
                lines[n.lineno - 1] = None
            at = body[0].lineno - 2
            if lines[at] is not None and lines[at].split("  #")[0].endswith(":"):
                lines[at] = f"{lines[at].split('  #')[0]} {text}"
            else:
                lines[body[0].lineno - 1] = " " * body[0].col_offset + text
            break  # places have changed
        for x, y in zip(body, body[1:]):
            plain = all(isinstance(n, simple) and n.lineno == n.end_lineno for n in (x, y)) and y.lineno == x.lineno + 1
            if plain and lines[x.lineno - 1] is not None and r.random() < 0.4:
                first = lines[x.lineno - 1].split("  #")[0]
                lines[y.lineno - 1] = f"{first}{r.choice([';', '; ', ' ;  '])}{lines[y.lineno - 1].strip()}"
                lines[x.lineno - 1] = None
    source = "\n".join(line for line in lines if line is not None)
    if r.random() < 0.1:
        source = re.sub(r"^(    )+", lambda m: "\t" * (len(m[0]) // 4), source, flags=re.M)
    return source


def mutated(r, sources):
    """A program; None where the mutation is none."""
    source = r.choice(sources)
    try:
        for _ in range(r.randint(0, 2)):
            source = r.choice([nki_mutations.of_text, lambda r, s: nki_mutations.of_tree(r, s, sources)])(r, source)
        source = joined(r, source)
        ast.parse(source)
        return source
    except (SyntaxError, ValueError, RecursionError, OverflowError, MemoryError, TypeError, AttributeError, IndexError):
        return None


def may_run_for_ever(source):
    """It has a `while` that is ordinary Python, which runs as long as it says."""
    tree = ast.parse(source)
    inside = {n for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for n in ast.walk(f)}
    return any(isinstance(n, ast.While) and n not in inside for n in ast.walk(tree))


def check_upgrade(source):
    from nkx import nki_upgrade
    new, marks = nki_upgrade.upgrade(source)
    ast.parse(new)
    assert marks == new.count(nki_upgrade.MARK) - source.count(nki_upgrade.MARK), (marks, new)
    if not marks:
        assert "import neuronxcc" not in new and "from neuronxcc" not in new, new
        assert nki_upgrade.upgrade(new) == (new, 0), "it is upgraded"


def check_compile(source):
    from support import compiler
    result = compiler.compile(source, "--stop-after", "nki-to-nisa", timeout=60)
    rows = source.encode().split(b"\n")
    for d in result["diagnostics"]:
        assert d["code"] in CODES and d["code"] not in FAULTS, d
        if "range" in d and d["range"].get("file", "kernel.py") in ("kernel.py", "-", "<stdin>"):
            p = d["range"]
            assert 1 <= p["line"] <= p["end_line"] <= len(rows) and 1 <= p["col"], d
        assert d["severity"] != "error" or "range" in d or result["status"] == "limit", d  # warnings of Python itself have none
    assert (result["status"] == "ok") == all(d["severity"] != "error" for d in result["diagnostics"]), result["status"]


def main(what, seed, seconds):
    r = random.Random(seed)
    guarded = Guarded(f"{what}, seed {seed}", SECONDS if what == "upgrade" else None)
    older = [nki_beta1.HEAD + k[0] for k in nki_beta1.KERNELS.values()] + [nki_pairs.source_of(p, 1) for p in nki_pairs.PAIRS]
    older += [nki_beta1.HEAD + text for text in nki_helpers.KERNELS.values()]
    sources = older if what == "upgrade" else older + list(nki_mutations.sources())
    check = {"upgrade": check_upgrade, "compile": check_compile}[what]
    nki_mutations.HEAD = nki_beta1.HEAD  # what of_text leaves as it is
    warnings.simplefilter("ignore")
    TOKENS.extend(["nl.mgrid[0:4,0:3]", "nl.arange(4)[:,None]", "ip", "jf", "mask=(i < 3)", "x; y", "i_p.p"])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        source = mutated(r, sources)
        if source is not None and (what == "upgrade" or not may_run_for_ever(source)):
            guarded.run(guarded.n, source, check)
    return guarded.end(f"sources: {what}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
