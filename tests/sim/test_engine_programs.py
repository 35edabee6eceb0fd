"""The programs of engines and DMA queues of the examples: they are ordered, and every single wait in them is needed."""
import numpy as np
import pytest

from support import compiler
from support.paths import EXAMPLES
from support.simulator import Fault, Simulator

LARGE = {"12_decoder_layer"}


def inputs_of(kernel):
    rng = np.random.default_rng(3)
    return [rng.standard_normal(x["shape"]).astype(x["dtype"]) for x in kernel["inputs"]]


def without(lines, k):
    return "\n".join(lines[:k] + lines[k + 1:])


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_a_removed_wait_is_a_race(path, target):
    with Simulator() as simulator:
        for kernel in compiler.compile(path.read_text(), "--target", target)["kernels"]:
            lines = compiler.stage(kernel, "engine-programs")["text"].split("\n")
            arrays = inputs_of(kernel)
            simulator.run("\n".join(lines), arrays)
            waits = [k for k, line in enumerate(lines) if line.strip().startswith("nisa.wait ")]
            assert waits
            for k in waits[:: (1 if target == "trn2" else 4) * (8 if path.stem in LARGE else 1)]:
                with pytest.raises(Fault) as fault:
                    simulator.run(without(lines, k), arrays)
                assert fault.value.kind == "race", (lines[k], fault.value)
