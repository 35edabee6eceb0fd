"""nkx why: the chain of decisions that led to an operation of a stage, in one text."""
import re
import subprocess

import pytest

from support.paths import EXAMPLES, NKX

SOFTMAX = next(p for p in EXAMPLES if p.name.startswith("03_"))
MADE = """import numpy as np
from nkigen import trace


@trace(input_specs=[((256, 512), "f32")])
def f(x):
    return np.exp(x) + np.exp(x)
"""


def why(*arguments):
    done = subprocess.run([NKX, "why", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def heads(text):
    """The stages that are told of, in order."""
    return [m[1] for m in re.finditer(r"^ *\d+ ([a-z-]+)", text, re.M)]


def test_the_chain_goes_from_the_source_through_every_change_to_the_operation():
    code, text, errors = why(SOFTMAX, "linalg-to-nisa", "nisa.activation")
    assert (code, errors) == (0, "")
    first, places = text.splitlines()[:2]
    assert first.startswith("line 36 of linalg-to-nisa: nisa.activation(") and re.fullmatch(r"from .*03_softmax.py:15:9", places)
    told = heads(text)
    assert told[0] == "trace" and told[-1] == "linalg-to-nisa" and {"infer-layout", "one-shot-bufferize"} <= set(told)
    # a stage that only handed the operation on is not told of
    assert not {"op-expander", "dce", "round-products"} & set(told)
    # each is told by what the operation was there
    assert "exponential(" in text and "linalg.exp ins(" in text
    # and the decisions are told with their reasons
    assert "* TILE=[128,256] (as given)\n      Rule tile-size: " in text and "Because: " in text and "Limit: partitions: 128 of 128" in text
    assert re.search(r"      This: \d+ tiles?\n", text) and re.search(r"      Instead \[64, 256\]: \d+ tiles; lanes of the engines would be idle\n", text)
    assert "      This: nothing\n" in text and re.search(r"      Instead HBM: about [\d.]+ us; its readers would load it", text)
    assert "      No other choice: No other engine has it.\n" in text
    assert "* activation on scalar\n" in text and "No knob: the operation and its types decide." in text


def test_what_became_one_operation_is_told_as_several(tmp_path):
    (tmp_path / "k.py").write_text(MADE)
    code, text, _ = why(tmp_path / "k.py", "cse", "exponential")
    assert code == 0
    assert "trace: 2 operations, the first of them\n" in text and text.rstrip().endswith("No pass had a choice about it.")


@pytest.mark.parametrize("stage, line, said", [
    ("nowhere", "1", "the kernel has no stage nowhere"),
    ("trace", "1", "line 1 of trace is no operation"),
    ("trace", "100000", "line 100000 of trace is no operation"),
    ("trace", "0", "line 0 of trace is no operation"),
    ("trace", "nisa.matmul", 'no line of trace has "nisa.matmul"'),
])
def test_what_is_not_there_is_refused(stage, line, said):
    code, text, errors = why(SOFTMAX, stage, line)
    assert (code, text) == (1, "") and said in errors
