"""Every kernel of this directory, with and without its knobs: all stages, right values, valid IR.

In `make test` all of them are compiled for trn2 and some are checked at every stage.  `NKX_KERNELS=all` (the set
`kernels` of make nightly) is the whole matrix: three targets, each stage of different text run by the product's check, the
ends of HLO, linalg, memref and NISA run with none of our code, every MLIR stage read and verified by mlir-opt-22.
"""
import os

import pytest

from support import compiler
from support.kernels import left_out, matrix, suite

ALL = os.environ.get("NKX_KERNELS") == "all"
SAMPLE = """exp_auto auto_floor_divide auto_power auto_rint tile_f16_add partition_dim_sigmoid add_chain_3d three_results
broadcast_add_middle matrix_mean_axis0 cube_max_axis1 full_sum auto_argmax auto_std softmax_256x256 rmsnorm
auto_rmsnorm_vector_weight layernorm_over_rows matmul_add matmul_chain_auto knob_matmul_chain qkv_projection
matmul_bf16 batched_by_one reshape_used_regroup auto_transpose auto_stack rope head_deconcat take_1000x96_by_130
scatter_rows alias_two auto_head_split_3 feedforward_gated rope_tables experts_one_hot sink_attention
clamped_swiglu drafter rotary_interleaved""".split()


def known(k, variant):
    return f"{k.name}/{variant}" in left_out.REFUSED


def ids(batches):
    return dict(argvalues=batches, ids=[matrix.label(b) for b in batches])


def sample():
    return [k for k in matrix.wanted() if k.name in SAMPLE]


def check_everywhere(variant, ks, record):
    """The product's check on trn2, and on the others if a stage differs; all texts verified.  Returns the results."""
    results = {t: matrix.compile_batch(variant, ks, t, check=t == "trn2") for t in matrix.TARGETS}
    run = {s["text"] for k in results["trn2"]["kernels"] for s in k["stages"]}
    for target in matrix.TARGETS:
        found = matrix.faults(results[target], variant, ks, checked=target == "trn2")
        new = {s["text"] for k in results[target]["kernels"] for s in k["stages"] if s["dialect"] != "nisa"} - run
        if new:
            results[target] = matrix.compile_batch(variant, ks, target, check=True)
            found += matrix.faults(results[target], variant, ks, checked=True)
            run |= new
        assert not found, target + ":\n" + "\n".join(found)
    record("stages", sum(len(k["stages"]) for r in results.values() for k in r["kernels"]))
    record("run by the check", len(run))
    record("verified", matrix.verify(results.values()))
    return list(results.values())


@pytest.mark.skipif(ALL, reason="the whole matrix compiles them, too")
@pytest.mark.parametrize("batch", **ids(matrix.batches(matrix.wanted(), 40)))
def test_every_kernel_compiles_to_instructions(batch):
    found = matrix.faults(matrix.compile_batch(*batch, "trn2", check=False), *batch, checked=False)
    assert not found, "\n".join(found)


@pytest.mark.skipif(ALL, reason="the whole matrix checks them, too")
@pytest.mark.parametrize("batch", **ids(matrix.batches(sample(), 8)))
def test_a_sample_of_kernels_computes_what_numpy_computes_at_every_stage(batch):
    result = matrix.compile_batch(*batch, "trn2", check=True)
    found = matrix.faults(result, *batch, checked=True)
    assert not found, "\n".join(found)
    matrix.verify([result])


@pytest.mark.skipif(not ALL, reason="NKX_KERNELS=all")
@pytest.mark.parametrize("batch", **ids(matrix.batches(matrix.wanted(), 8)))
def test_every_kernel_computes_what_numpy_computes_on_every_target(batch, record_property):
    counts = {}
    results = check_everywhere(*batch, counts.__setitem__)
    small = [k for k in batch[1] if matrix.elements(k) <= matrix.RUN_MAX and not known(k, batch[0])]
    counts["run independently"] = matrix.independent(results, batch[0], small)
    counts["kernels"] = len(batch[1])
    for what, n in counts.items():
        record_property(what, n)


def test_every_left_out_kernel_has_a_reason():
    for name, reasons in matrix.missing().items():
        print(f"left out: {name}: {', '.join(reasons)}")
    for name, message in left_out.REFUSED.items():
        print(f"refused: {name}: {message}")
        kernel, variant = name.split("/")
        assert variant in suite.KERNELS[kernel].variants()
    needs = {n for k in suite.KERNELS.values() for n in k.needs}
    assert set(left_out.MISSING) <= needs, "a feature that no kernel needs"


def test_tile_of_a_regrouped_value_is_ignored_with_a_warning():
    head = [suite.KERNELS["head_deconcat"]]
    result = matrix.compile_batch("builder", head, "trn2", check=False)
    warnings = [d for d in result["diagnostics"] if d["code"] == "knob-ignored"]
    assert len(warnings) == 1 and warnings[0]["severity"] == "warning", result["diagnostics"]
    assert "[128, 128]" in warnings[0]["message"] and "[2, 128, 2, 128]" in warnings[0]["message"]
    assert result["status"] == "ok"


def test_a_tile_too_large_for_a_regrouped_value_is_refused():
    source = suite.source([suite.KERNELS["head_deconcat"]], "builder").replace("put(rows, [128, 128]", "put(rows, [128, 512]")
    result = compiler.compile(source)
    assert [d["code"] for d in result["diagnostics"]] == ["bad-knob"], result["diagnostics"]
