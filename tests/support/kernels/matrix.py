"""The kernels in batches, and what is asked of a compiled batch.

A batch is some kernels of one variant in one source.  Compiling costs little, running every stage costs most: a stage
whose text is the same for two targets is run for one of them.
"""
import collections

import numpy as np

from support import compiler, reference, warm
from support.kernels import elementwise, layers, left_out, loops, models, movement, products, reductions, suite  # noqa: F401  (they register their kernels)
from support.oracles import llvm, xla

TARGETS = ("trn2", "trn1", "trn3")
STAGES = len(compiler.pipeline())
RUN_MAX = 1 << 22  # elements of inputs and results of a kernel that is run independently at every stage


def wanted():
    """The kernels that the front end can trace."""
    return [k for k in suite.KERNELS.values() if not any(n in left_out.MISSING for n in k.needs)]


def missing():
    return {k.name: [left_out.MISSING[n] for n in k.needs if n in left_out.MISSING]
            for k in suite.KERNELS.values() if any(n in left_out.MISSING for n in k.needs)}


def batches(chosen, size):
    """[(variant, kernels)]: kernels of one family and one variant together, heavy ones alone."""
    groups = collections.defaultdict(list)
    for k in chosen:
        for variant in k.variants():
            groups[k.family, variant, k.name if k.heavy else ""].append(k)
    return [(variant, ks[i : i + size]) for (_, variant, _), ks in groups.items() for i in range(0, len(ks), size)]


def label(batch):
    variant, ks = batch
    return f"{variant}-{ks[0].family}-{ks[0].name}" + (f"-{len(ks)}" if len(ks) > 1 else "")


def compile_batch(variant, ks, target, check):
    return compiler.compile(suite.source(ks, variant), "--target", target, check=check, timeout=900)


def faults(result, variant, ks, checked):
    """What keeps the batch from being right: [text]; refusals listed in left_out.REFUSED are none."""
    found = []
    by_name = {k["name"]: k for k in result["kernels"]}
    names = [k["name"] for k in result["kernels"]]
    for d in result["diagnostics"]:
        if d["severity"] != "error":
            continue
        at = d.get("kernel", -1)
        name = names[at] if 0 <= at < len(names) else None
        known = left_out.REFUSED.get(f"{name}/{variant}")
        if known is None or known not in d["message"]:
            found.append(f"{name}/{variant}: {d.get('stage')}: {d['code']}: {d['message']}")
    for k in ks:
        got = by_name.get(k.name)
        if f"{k.name}/{variant}" in left_out.REFUSED:
            continue
        if got is None or len(got["stages"]) < STAGES:
            found.append(f"{k.name}/{variant}: ends after {len(got['stages']) if got else 0} of {STAGES} stages")
        elif checked:
            found += [f"{k.name}/{variant}: {s['name']}: {s['check']}" for s in got["stages"] if not compiler.is_checked(s)]
    return found


def _to_mlir(text):
    """A readable NISA text in MLIR's generic form."""
    done = warm.text("opt", input=text)
    assert done.returncode == 0, f"nkx opt: {done.stderr[:3000]}"
    return done.stdout


def verify(results):
    """mlir-opt-22 takes every MLIR stage of these results; how many texts it was given."""
    texts = {}
    for result in results:
        for k in result["kernels"]:
            for s in k["stages"]:
                if s["dialect"] != "hlo":
                    texts.setdefault(s["text"], (s["dialect"], f"{k['name']} after {s['name']}"))
    generic = [_to_mlir(t) if dialect == "nisa" else t for t, (dialect, _) in texts.items()]
    llvm.mlir_opt("\n// -----\n".join(generic), "--split-input-file", "-o", "/dev/null")
    return len(texts)


def independent(results, variant, ks):
    """Stages run with none of our code: the first HLO by XLA, the first linalg and the last memref one by LLVM's tools, NISA
    by the tests' evaluator; each text once.  How many were run.  (The product's check runs those in between; here it is
    a second opinion at the points where one representation ends and the next begins.)"""
    n = 0
    plain = reference.functions(suite.source(ks, variant))
    for k in ks:
        arrays, want, done = k.arrays(), None, set()
        for result in results:
            compiled = next((c for c in result["kernels"] if c["name"] == k.name), None)
            if compiled is None or len(compiled["stages"]) < STAGES:
                continue
            want = reference.call(plain[k.name], compiled, arrays) if want is None else want
            n += sum(_run_stage(s, compiled, arrays, want, done) for s in _picked(compiled["stages"]))
    return n


def _picked(stages):
    of = [[s for s in stages if s["dialect"] == d] for d in ("hlo", "linalg", "memref")]
    return [of[0][0], of[1][0], of[2][-1], next(s for s in stages if s["name"] == "linalg-to-nisa")]


def _run_stage(stage, compiled, arrays, want, done):
    text = stage["text"].replace("nisa.target<trn1>", "nisa.target<trn2>").replace("nisa.target<trn3>", "nisa.target<trn2>")
    if text in done:
        return 0
    done.add(text)
    if stage["dialect"] == "nisa":
        reference.assert_nisa(compiled, arrays, want)
        return 1
    got = (xla.run_text if stage["dialect"] == "hlo" else llvm.run)(text, arrays)
    reference.assert_close(got, want, f"{compiled['name']} after {stage['name']}")
    return 1


def elements(k):
    return sum(int(np.prod(p.shape)) for p in k.inputs)

