"""fori_loop through the whole pipeline: every stage computes what the Python loop computes, down to the instructions.

The kernels are those of tests/trace/test_loops.py, where XLA runs their HLO.
"""
import pathlib
import sys

import pytest

import kernels

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "trace"))
import test_loops as loops  # noqa: E402


@pytest.mark.parametrize("name", sorted(loops.KERNELS))
def test_every_stage_computes_what_numpy_computes(name):
    source = loops.kernel(*loops.KERNELS[name])
    result = kernels.compile(source, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    (kernel,) = result["kernels"]
    assert len(kernel["stages"]) == len(kernels.pipeline())
    for stage in kernel["stages"]:
        assert kernels.is_checked(stage), (stage["name"], stage["check"])
    inputs = kernels.random_inputs(kernel)
    kernels.assert_nisa(kernel, inputs, kernels.run_numpy(source, kernel, inputs))


WHOLE = {"rms norm": "<6| 16>", "row sums": "| 4>", "writes into an input": "<5| 4>"}  # partitions and elements


@pytest.mark.parametrize("name", sorted(WHOLE))
def test_what_is_carried_is_updated_in_place(name):
    """acc[i] = … writes one row in each iteration: nothing copies a whole buffer from memory to memory."""
    (kernel,) = kernels.compile(loops.kernel(*loops.KERNELS[name]))["kernels"]
    copies = [line for line in kernel["stages"][-1]["text"].split("\n") if "nisa.dma_copy" in line]
    assert copies and not [line for line in copies if WHOLE[name] in line and "sbuf" not in line]
