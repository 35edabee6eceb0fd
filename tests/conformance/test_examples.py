"""Every example of the product, every stage: right values, valid IR, maps that lead back to the source.

Values are computed three times: by NumPy (the example run as plain Python), by the product's own check, and by a run of
the stage's text that uses none of our code (XLA for HLO, LLVM's tools for linalg and memref; what only our passes know,
memories and annotations, is taken away first; a small evaluator in NumPy for NISA, which knows the instructions only).

The largest examples are run at a smaller size, and independently only at the end of each dialect, unless
NKX_FULL_EXAMPLES is set (make nightly).
"""
import os

import pytest

from support import compiler, reference, source_map, warm
from support.oracles import llvm, xla
from support.paths import EXAMPLES



# what is too large for every day: (its sizes, smaller ones)
SMALLER = {"12_decoder_layer": ("SEQ, HIDDEN, HEADS, INNER = 128, 1024, 8, 2816", "SEQ, HIDDEN, HEADS, INNER = 128, 256, 2, 512")}


def is_shortened(path):
    return path.stem in SMALLER and "NKX_FULL_EXAMPLES" not in os.environ


@pytest.fixture(scope="module", params=[pytest.param(p, id=p.stem, marks=pytest.mark.xdist_group(p.stem)) for p in EXAMPLES])
def example(request):
    source = request.param.read_text()
    if is_shortened(request.param):
        full, smaller = SMALLER[request.param.stem]
        assert source.count(full) == 1
        source = source.replace(full, smaller)
    result = compiler.compile(source, check=True, timeout=900)
    return source, result


def test_every_stage_computes_what_numpy_computes(example):
    _, result = example
    assert result["status"] == "ok", result["diagnostics"]
    for kernel in result["kernels"]:
        assert len(kernel["stages"]) == len(compiler.pipeline())
        for stage in kernel["stages"]:
            assert compiler.is_checked(stage), (stage["name"], stage["check"])


def ends_of_dialects(stages):
    return [s for s, after in zip(stages, stages[1:]) if s["dialect"] != after["dialect"]]


def test_independent_runs_of_every_stage_agree_with_numpy(example, request):
    source, result = example
    plain = reference.functions(source)
    path = request.node.callspec.params["example"]
    is_long, is_short = path.stem in SMALLER, is_shortened(path)
    for kernel in result["kernels"]:
        inputs = compiler.random_inputs(kernel)
        want = reference.run_numpy(source, kernel, inputs)
        exact = reference.exactly(plain[kernel["name"]], inputs) if is_long and not is_short else None
        outputs = compiler.output_types(kernel)
        done = set()
        stages = kernel["stages"]
        for stage in ends_of_dialects(stages) if is_short else stages:
            if stage["text"] in done or stage["dialect"] == "nisa":
                continue
            done.add(stage["text"])
            if stage["dialect"] == "hlo":
                got = xla.run_text(stage["text"], inputs)
            else:
                got = llvm.run(stage["text"], inputs)
                assert [(g.shape, g.dtype) for g in got] == outputs, stage["name"]
            what = f"{kernel['name']} after {stage['name']}"
            if exact:
                reference.assert_as_exact_as(want, got, exact, what)
            else:
                reference.assert_close(got, want, what)


@pytest.mark.parametrize("target", ("trn1", "trn2", "trn3"))
def test_instructions_compute_what_numpy_computes(example, target, request):
    source, result = example
    if target != "trn2":
        if is_shortened(request.node.callspec.params["example"]):
            pytest.skip("the largest examples on one target: the others are nightly")
        result = compiler.compile(source, "--target", target)
    plain = reference.functions(source)
    for kernel in result["kernels"]:
        inputs = compiler.random_inputs(kernel)
        want = reference.run_numpy(source, kernel, inputs)
        if request.node.callspec.params["example"].stem in SMALLER:
            exact = reference.exactly(plain[kernel["name"]], inputs)
            reference.assert_as_exact_as(want, reference.run_nisa(kernel, inputs), exact, f"{kernel['name']} on NISA")
        else:
            reference.assert_nisa(kernel, inputs, want)


def nkx_opt(text, *arguments):
    done = warm.text("opt", *arguments, input=text)
    assert done.returncode == 0, done.stderr[:3000]
    return done.stdout


def test_mlir_opt_accepts_every_mlir_stage(example):
    _, result = example
    for kernel in result["kernels"]:
        stages = [stage["text"] for stage in kernel["stages"] if stage["dialect"] not in ("hlo", "nisa")]
        readable = [stage["text"] for stage in kernel["stages"] if stage["dialect"] == "nisa"]
        for nisa in readable:  # read back, it is the same program, in MLIR's form too
            assert nkx_opt(nisa, "--print-nisa").rstrip() == nisa.rstrip()
        stages += [nkx_opt(nisa) for nisa in readable]
        again = llvm.mlir_opt("\n// -----\n".join(dict.fromkeys(stages)), "--split-input-file")
        assert llvm.mlir_opt(again, "--split-input-file") == again


def test_lines_lead_back_to_the_source(example):
    source, result = example
    lines = source.split("\n")
    for kernel in result["kernels"]:
        for stage in kernel["stages"]:
            text = stage["text"].split("\n")
            assert len(stage["lines"]) in (len(text), len(text) - 1)
            for entry in stage["lines"]:
                for r in entry.get("src", []):
                    assert 1 <= r["line"] <= r["end_line"] <= len(lines)
                    assert 1 <= r["col"] <= len(lines[r["line"] - 1]) + 1
                    assert (r["line"], r["col"]) < (r["end_line"], r["end_col"])
            assert source_map.mapped_share(stage) >= 0.95, (stage["name"], source_map.unmapped(stage))


def test_every_operation_has_ancestors_in_the_stage_before(example):
    _, result = example
    for kernel in result["kernels"]:
        ids = set()
        for stage in kernel["stages"]:
            here = {e["op"] for e in stage["lines"] if "op" in e}
            for op, parents in stage["from"].items():
                assert int(op) in here
                assert set(parents) <= ids, (stage["name"], op, parents)
            ids = source_map.all_ids(stage)
