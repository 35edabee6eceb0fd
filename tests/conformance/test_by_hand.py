"""Pipelines that a user changes: passes left out, put in, given options.  What comes out computes what NumPy computes, or a pass
refuses it; nothing else can happen.  NKX_BY_HAND=all tries each change on each example."""
import os

import pytest

from support import compiler, warm
from support.paths import ROOT

EXAMPLES = sorted((ROOT / "explorer/examples").glob("*.py"))
ALL = os.environ.get("NKX_BY_HAND") == "all"
STAYING = ("trace", "hlo-to-linalg", "linalg-to-nisa")


def specs():
    """The stages as a change names them."""
    seen, out = {}, []
    for name in compiler.stage_names():
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name}:{seen[name]}")
    return out


def flags(changes):
    return [f for c in changes for f in ("--pipeline", c)]


def compiled(example, *changes, check=True):
    return compiler.compile(example.read_text(), *flags(changes), check=check, timeout=300)


def is_right_or_refused(result):
    (kernel,) = result["kernels"]
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert all(d["code"] in ("pass-failed", "ir-invalid", "memory-full") for d in errors), errors
    assert bool(errors) == (result["status"] == "error") and (errors or len(kernel["stages"]) >= 53)
    assert all(s["check"]["status"] in ("pass", "skipped") for s in kernel["stages"]), [s["name"] for s in kernel["stages"] if s["check"]["status"] == "fail"]
    if errors:
        assert any("hint" in d for d in errors) and errors[0]["stage"], errors
    return not errors


# the refusals are those of the passes that miss what the stage makes
NEEDED = {"assign-linalg-op-ids", "apply-and-strip-transforms", "one-shot-bufferize", "annotate-memory-space", "legalize-layout", "insert-memref-dealloc"}


@pytest.mark.parametrize("spec", [s for s in specs() if s.split(":")[0] not in STAYING][:: 1 if ALL else 4])
def test_a_pass_is_left_out(spec):
    for example in EXAMPLES if ALL else [EXAMPLES[0]]:
        result = compiled(example, f"without {spec}")
        went_through = is_right_or_refused(result)
        (kernel,) = result["kernels"]
        at = specs().index(spec)
        if len(kernel["stages"]) > at:
            stage = kernel["stages"][at]
            assert stage["by_hand"] == "left out" and not stage["changed"] and stage["text"] == kernel["stages"][at - 1]["text"]
        if example is EXAMPLES[0]:
            assert went_through or spec in NEEDED | {"prepare-arithmetic", "canonicalize:2", "eliminate-uninitialized-copies"}, spec


def upstream():
    text = (ROOT / "compiler/driver/by_hand.def").read_text()
    return [line.split('"')[1] for line in text.splitlines() if line.startswith("UPSTREAM(")]


@pytest.mark.parametrize("place", ["hlo-to-linalg", "canonicalize-loop-step", "insert-memref-dealloc"])
def test_a_pass_of_mlir_is_put_in(place):
    for number, name in enumerate(upstream()):
        if not ALL and number % 4:
            continue
        for example in EXAMPLES if ALL else [EXAMPLES[3]]:
            result = compiled(example, f"after {place} {name}")
            is_right_or_refused(result)
            stages = result["kernels"][0]["stages"]
            at = specs().index(place) + 1
            if len(stages) > at:
                stage = stages[at]
                assert (stage["name"], stage["by_hand"], stage["index"]) == (name, "put in", at)
                assert stage["dialect"] == stages[at - 1]["dialect"] and name in stage["pass"]


def ours():
    listed = warm.run("compile", "--pipeline", "list").stdout.decode().splitlines()
    return [line.split()[0] for line in listed if line.split()[1] == "mlir" and line.split()[0] not in upstream()]


@pytest.mark.parametrize("place", ["hlo-to-linalg", "infer-layout", "annotate-memory-space", "legalize-layout"])
def test_a_pass_of_ours_is_put_in(place):
    names = ours()
    assert len(names) >= 20
    for number, name in enumerate(names):
        if not ALL and number % 7:
            continue
        for example in EXAMPLES if ALL else [EXAMPLES[7]]:
            is_right_or_refused(compiled(example, f"after {place} {name}"))


def test_passes_run_in_the_order_of_their_changes_and_maps_go_through_them():
    result = compiled(EXAMPLES[0], "after cse:2 loop-invariant-code-motion", "after cse:2 sccp", "after dce reshape-mover", "with canonicalize:2{max-iterations=1}", "without flash-attention")
    assert is_right_or_refused(result)
    stages = result["kernels"][0]["stages"]
    names = [s["name"] for s in stages]
    at = names.index("sccp")
    assert names[at - 2:at + 1] == ["cse", "loop-invariant-code-motion", "sccp"] and names[names.index("dce") + 1] == "reshape-mover"
    assert [s["pass"] for s in stages if s.get("by_hand") == "options"] == ["builtin.module(canonicalize{max-iterations=1})"]
    last = stages[-1]
    assert last["name"] == "engine-programs" and any(line.get("src") for line in last["lines"])


def test_a_pass_that_moves_buffers_is_refused_once_they_are_freed():
    result = compiled(EXAMPLES[7], "after annotate-memory-space insert-memref-dealloc", check=False)
    (error,) = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert (error["stage"], error["message"]) == ("canonicalize-reshape", "canonicalize-reshape works on buffers that nothing frees yet")


def test_an_own_pass_takes_its_options():
    result = compiled(EXAMPLES[7], "with flash-attention{form=none}")
    assert is_right_or_refused(result)
    (stage,) = [s for s in result["kernels"][0]["stages"] if "by_hand" in s]
    assert stage["pass"] == "flash-attention{form=none}" and not stage["changed"]


@pytest.mark.parametrize(("change", "says"), [
    ("without trace", "trace cannot be left out"),
    ("without csee", 'no stage is called "csee"'),
    ("without cse:9", 'no stage is called "cse:9"'),
    ("leave out cse", "expected"),
    ("after cse convert-linalg-to-loops", "no pass convert-linalg-to-loops can run"),
    ("after cse infer-layout", "no pass infer-layout can run"),
    ("after linalg-to-nisa canonicalize", "no pass canonicalize can run"),
    ("after nki-trace sccp", "no pass can run after nki-trace"),
    ("with canonicalize{print=1}", "has no option print"),
    ("with canonicalize{max-iterations}", "has no option max-iterations"),
    ("with infer-layout{a=1}", "infer-layout has no options"),
    ("with canonicalize{max-iterations=1}}", "expected"),
    ("after cse:2 sccp;" * 33, "at most 32"),
    ("without " + "c" * 300, "at most 240 bytes"),
])
def test_what_is_no_change_is_refused_with_its_reason(change, says):
    done = warm.run("compile", "-", "--pipeline", change, input=EXAMPLES[0].read_bytes())
    assert done.returncode == (3 if "at most" in says else 2) and says in done.stderr.decode(), done.stderr


def test_options_that_mlir_refuses_fail_the_stage():
    result = compiled(EXAMPLES[0], "with canonicalize{max-iterations=many}")
    (error,) = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert (error["code"], error["stage"]) == ("pass-failed", "canonicalize") and len(result["kernels"][0]["stages"]) == 16


def test_a_kernel_of_nki_says_what_does_not_reach_it():
    source = next((ROOT / "explorer/examples/nki").glob("*.py")).read_text()
    result = compiler.compile(source, *flags(["without cse", "without allocate-memory"]))
    (note,) = [d for d in result["diagnostics"] if d["code"] == "pipeline-changed"]
    assert note["severity"] == "note" and note["message"].startswith("1 of the 2 changes")
