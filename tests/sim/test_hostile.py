"""Programs that do what a NeuronCore would do silently, or that would take all memory or time (hostile/*.nisa): each one is
stopped, and the report names the right line.

A file says what it expects:  `// FAULT kind` at the end of the line of the instruction (one of several, where the moment
decides), or `// FAULT-AT-END kind` where no instruction did it;  `// FAULT verify: message` where the program is refused
before it runs.  `// LIMITS memory=… time=… argument1=…` are bytes, milliseconds, and what fills an argument."""
import re

import numpy as np
import pytest

from support.oracles.nisa_eval import parse_memref
from support.paths import TESTS
from support.simulator import Fault, Simulator

FILES = sorted((TESTS / "sim/hostile").glob("*.nisa"))
KINDS = ("unwritten-read", "out-of-bounds", "use-after-release", "bad-accumulation", "unwritten-result", "memory-limit",
         "time-limit", "bad-instruction", "engine", "race", "deadlock")
# refused before the program runs, which is where these mistakes are found
REFUSED = {"use-after-release": "releas", "bad-accumulation": "accumulates", "engine": "engine does not"}


@pytest.fixture(scope="module")
def simulator():
    with Simulator() as s:
        yield s


def expected(text):
    """{line: kind}; line 0: no instruction."""
    lines = text.split("\n")
    found = {n: m[1].strip() for n, line in enumerate(lines, 1) if (m := re.search(r"// FAULT (.*)$", line))}
    return found | {0: m[1].strip() for line in lines if (m := re.match(r"// FAULT-AT-END (.*)$", line))}


def limits(text):
    return {k: int(v) for line in re.findall(r"^// LIMITS (.*)$", text, re.M) for k, v in re.findall(r"(\w+)=(-?\d+)", line)}


def arguments(text, given):
    signature = re.search(r"func\.func @k\((.*)\) ->", text)[1]
    arrays = []
    for k, t in enumerate(re.findall(r"%\w+: (memref<[^%]*?>)(?:, (?=%)|$)", signature)):
        shape, dtype, *_ = parse_memref(t)
        arrays.append(np.full(shape, given.get(f"argument{k}", 1), dtype))
    return arrays


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_wrong_program_is_stopped_at_the_right_instruction(simulator, path):
    text = path.read_text()
    want, given = expected(text), limits(text)
    assert want, "the file does not say what it expects"
    with pytest.raises(Fault) as caught:
        simulator.run(text, arguments(text, given), given.get("memory", 0), given.get("time", 2000))
    fault = caught.value
    assert fault.line in want, fault
    kind, _, message = want[fault.line].partition(": ")
    assert fault.kind == kind, fault
    assert message in fault.message, fault


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_without_its_mistake_it_is_the_only_report(simulator, path):
    """The process that ran it runs the next one as if nothing had happened."""
    text = path.read_text()
    first, second = [], []
    for reports in (first, second):
        with pytest.raises(Fault) as caught:
            simulator.run(text, arguments(text, limits(text)), limits(text).get("memory", 0), limits(text).get("time", 2000))
        reports.append(caught.value.kind)
    assert first == second


def test_there_are_three_programs_for_each_kind_of_report():
    found = [(kind, message) for p in FILES for kind, _, message in [w.partition(": ") for w in expected(p.read_text()).values()]]
    for kind in KINDS:
        n = len([1 for k, m in found if k == kind or (k == "verify" and kind in REFUSED and REFUSED[kind] in m)])
        assert n >= 3, (kind, n)
