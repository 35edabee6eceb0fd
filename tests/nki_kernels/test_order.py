"""with_schedule and depends_on: calls that wait for others whose data they do not read."""
import re
from itertools import takewhile

import numpy as np
import pytest

from support import compiler
from support.nki_kernels import HEAD
from support.runs import simulated

KERNEL = HEAD + """
@nki.jit
def three(x):
    out = nl.ndarray((3, 128, 512), nl.float32, buffer=nl.shared_hbm)
    a, b, c = (nl.ndarray((128, 512), nl.float32) for _ in range(3))
    nisa.memset(a, 1.0, engine=nisa.engine.vector, name="first")
    nisa.memset(b, 2.0, engine=nisa.engine.gpsimd, name="second")
    nisa.dma_copy(dst=c, src=x, name="third")
    nisa.dma_copy(dst=out[0], src=a)
    nisa.dma_copy(dst=out[1], src=b)
    nisa.dma_copy(dst=out[2], src=c)
    return out


three{}(np.zeros((128, 512), np.float32))
"""
BY_HANDLE = KERNEL.format("").replace("    nisa.memset(a", "    first = nisa.memset(a").replace("    nisa.memset(b", "    second = nisa.memset(b").replace(
    'name="third")', 'name="third").depends_on(first, second)').replace('name="second")', 'name="second").depends_on(first)')


def scheduled(schedule):
    return KERNEL.format(f".with_schedule({schedule})")


def programs(source, *arguments):
    """{engine: the lines of its program}"""
    [kernel] = compiler.compile(source, *arguments)["kernels"]
    found = re.findall(r"nisa\.program (\w+) \{\n(.*?)\n    \}", compiler.stage(kernel, "engine-programs")["text"], re.S)
    return {engine: [line.strip() for line in text.splitlines()] for engine, text in found}


def errors(source):
    return [d for d in compiler.compile(source)["diagnostics"] if d["severity"] == "error"]


def test_without_a_schedule_independent_calls_do_not_wait():
    first = [line for lines in programs(KERNEL.format("")).values() for line in takewhile(lambda line: "nisa.wait" not in line, lines)]
    assert sum("nisa.memset" in line for line in first) == 2 and sum("nisa.dma_trigger" in line for line in first) == 1


SCHEDULE = '[("second", "first"), ("third", ["first", "second"])]'


@pytest.mark.parametrize("source", [scheduled(SCHEDULE), BY_HANDLE], ids=["with_schedule", "depends_on"])
def test_a_call_waits_for_those_that_the_schedule_says(source):
    engines = programs(source)
    assert engines["gpsimd"][0] == "nisa.wait vector >= 1" and "nisa.memset" in engines["gpsimd"][1]
    assert engines["sync"][0] == "nisa.wait gpsimd >= 1"  # which has waited for vector


def test_a_schedule_takes_time_and_changes_no_value(rng):
    x = {"x": rng.uniform(-1, 1, (128, 512)).astype(np.float32)}
    (free, plain), (bound, ordered) = (simulated(s, x) for s in (KERNEL.format(""), scheduled(SCHEDULE)))
    assert all(free[n].tobytes() == bound[n].tobytes() for n in free)
    assert ordered["profile"]["total_us"] > plain["profile"]["total_us"]


def test_calls_that_wait_are_shown_in_every_stage():
    [kernel] = compiler.compile(scheduled(SCHEDULE))["kernels"]
    for stage in ("nki-trace", "nki-canonicalize", "nki-reroll"):
        assert 'name="third")  # after "first", "second"' in compiler.stage(kernel, stage)["text"]
    assert 'after="first,second"' in compiler.stage(kernel, "nki-to-nisa")["text"]


def test_rounds_with_calls_that_wait_stay_unrolled_and_say_why():
    source = HEAD + """
@nki.jit
def chain(x: nl.tensor[128, 512]):
    out = nl.ndarray((4, 128, 512), nl.float32, buffer=nl.shared_hbm)
    last = None
    for i in range(4):
        a = nl.ndarray((128, 512), nl.float32)
        load = nisa.dma_copy(dst=a, src=x)
        if last is not None:
            load.depends_on(last)
        last = nisa.dma_copy(dst=out[i], src=a)
    return out
"""
    [kernel] = compiler.compile(source, check=True)["kernels"]
    roll = compiler.stage(kernel, "nki-reroll")
    assert "for " not in roll["text"] and any("waits for another call" in r["text"] for r in roll["remarks"])
    # a load waits for the store before it, in whichever queues they are
    assert len(re.findall(r'after="#\d+"', compiler.stage(kernel, "engine-programs")["text"])) == 3
    assert all(s["check"]["status"] == "pass" for s in kernel["stages"][-3:])


def test_a_launch_on_two_cores_keeps_its_schedule():
    launch = KERNEL.format('[2].with_schedule([("second", "first")])')
    other = KERNEL.format('.with_schedule([("second", "first")])[2]')
    texts = [compiler.stage(compiler.compile(s)["kernels"][0], "engine-programs")["text"] for s in (launch, other)]
    assert texts[0] == texts[1] and "after=first" in texts[0]


@pytest.mark.parametrize("schedule, code, text", [
    ('[("first", "second")]', "nki-unsupported", "first waits for second, which the kernel calls later"),
    ('[("fourth", "first")]', "nki-name-in-use", 'the schedule says "fourth", but no call has this name'),
    ('[("first",)]', "nki-call", "the schedule has the entry ('first',)"), ('[("third", 3)]', "nki-call", "the schedule has the entry ('third', 3)"),
    ("None", "nki-call", "the schedule has the entry None")])
def test_a_wrong_schedule_is_refused(schedule, code, text):
    assert (code, text) in [(d["code"], d["message"].partition(";")[0]) for d in errors(scheduled(schedule))]


def test_a_name_that_two_calls_have_cannot_be_scheduled():
    source = scheduled('[("third", "second")]').replace('name="first"', 'name="second"')
    [d] = errors(source)
    assert d["code"] == "nki-name-in-use" and 'two calls have the name "second"' in d["message"]
    assert d["range"]["line"] == source[:source.index("nisa.memset(b")].count("\n") + 1


def test_a_call_in_a_loop_on_the_device_does_not_wait_for_one_outside():
    source = HEAD + """
@nki.jit
def looped(x: nl.tensor[128, 512]):
    out = nl.ndarray((128, 512), nl.float32, buffer=nl.shared_hbm)
    a, b = nl.ndarray((128, 512), nl.float32), nl.ndarray((128, 512), nl.float32)
    load = nisa.dma_copy(dst=a, src=x)
    for i in nl.dynamic_range(4):
        nisa.memset(b, 2.0).depends_on(load)
    nisa.dma_copy(dst=out, src=a)
    return out
"""
    [d] = errors(source)
    assert d["code"] == "nki-device-loop" and "depends_on" in source.splitlines()[d["range"]["line"] - 1]


def test_what_is_no_instruction_is_refused():
    [d] = errors(BY_HANDLE.replace("depends_on(first)", "depends_on(a)"))
    assert d["code"] == "nki-call" and "depends_on takes instructions" in d["message"]


@pytest.mark.parametrize("mistake, line", [("nisa.memset(a, 1.0, engine=nisa.engine.tensor)", "tensor"), ("nisa.tensor_copy(dst=a, src=x)", "src=x")])
def test_a_mistake_of_a_kernel_that_the_file_calls_is_reported_once(mistake, line):
    source = KERNEL.format("").replace('nisa.memset(a, 1.0, engine=nisa.engine.vector, name="first")', mistake)
    [d] = errors(source)
    assert line in source.splitlines()[d["range"]["line"] - 1]


def test_a_call_that_only_fails_on_arrays_is_reported_where_it_is():
    """The kernel itself is right: what fails is what the file does with it."""
    source = KERNEL.format("").replace("three(np.zeros((128, 512), np.float32))", "three(np.zeros((128, 512), np.float32))\nthree(1, 2, 3)")
    [d] = errors(source)
    assert source.splitlines()[d["range"]["line"] - 1] == "three(1, 2, 3)"
