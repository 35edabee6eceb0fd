"""Source maps are exact: line and column, through helper functions, over several lines, past non-ASCII text.

Every instruction leads back to Python, and golden/ says for one example how, stage by stage, with a file for each group of
stages (support/ancestors.py).  When a pass changes them rightly:

    NKX_GOLDEN=write pytest tests/conformance/test_maps.py -k golden        and read `git diff`
"""
import pytest

from support import ancestors, compiler, golden, source_map
from support.paths import EXAMPLES, ROOT, TESTS

EXAMPLE = "01_matmul_bias_relu"

SOURCE = '''import numpy as np
from nkigen import trace


def scale(v, factor):
    return v * factor


@trace(input_specs=[((130, 64), "f32"), ((130, 64), "f32")])
def kernel(a, b):
    é = np.exp(a) + scale(b, 2.0) - np.tanh(a - b); d = np.maximum(
        é,
        0.5,
    )
    "ß"; return (é / d).T @ d
'''

MAXIMUM = "np.maximum(\n        é,\n        0.5,\n    )"
SUBTRACT = "np.exp(a) + scale(b, 2.0) - np.tanh(a - b)"

# opcode -> the expressions that its instructions come from, innermost first with their callers
HLO = {
    "exponential": {("np.exp(a)",)},
    "multiply": {("v * factor", "scale(b, 2.0)")},
    "add": {("np.exp(a) + scale(b, 2.0)",)},
    "subtract": {("a - b",), (SUBTRACT,)},
    "tanh": {("np.tanh(a - b)",)},
    "maximum": {(MAXIMUM,)},
    "divide": {("é / d",)},
    "transpose": {("(é / d).T",)},
    "dot": {("(é / d).T @ d",)},
    "constant": {("v * factor", "scale(b, 2.0)"), (MAXIMUM,)},
    "broadcast": {("v * factor", "scale(b, 2.0)"), (MAXIMUM,)},
}
ALL = set().union(*HLO.values())


def chains(source, entry):
    """The places of one line as tuples of source texts, innermost first."""
    found = []
    for r in entry.get("src", []):
        if r["depth"] == 0:
            found.append([])
        found[-1].append(source_map.text_of(source, r))
    return {tuple(c) for c in found}


def stages():
    result = compiler.compile(SOURCE)
    assert result["status"] == "ok", result["diagnostics"]
    return {(s["name"], s["dialect"]): s for s in result["kernels"][0]["stages"]}


def test_every_hlo_instruction_maps_to_exactly_its_expression():
    seen = set()
    stage = stages()["trace", "hlo"]
    for body, entry in source_map.operations(stage):
        opcode = body.split(" = ", 1)[1].split("(")[0].split()[-1] if " = " in body else ""
        if opcode in HLO:
            got = chains(SOURCE, entry)
            assert got <= HLO[opcode] and len(got) == 1, (body, got)
            seen.add((opcode, *got))
    assert {o for o, _ in seen} == set(HLO)
    assert {c for _, c in seen} == ALL


def test_helper_ranges_name_the_functions():
    stage = stages()["trace", "hlo"]
    for body, entry in source_map.operations(stage):
        if " multiply(" in body:
            assert [r["fn"] for r in entry["src"]] == ["scale", "kernel"]
            return
    raise AssertionError("no multiply")


def test_every_linalg_operation_maps_to_exactly_its_expression():
    names = {
        "linalg.exp": "np.exp(a)", "linalg.tanh": "np.tanh(a - b)", "linalg.div": "é / d",
    }
    # transpose-folding made the transpose a part of the product: both operations stand for both expressions
    folded = {"linalg.transpose", "linalg.matmul"}
    both = {("(é / d).T",), ("(é / d).T @ d",)}
    found = set()
    stage = stages()["hlo-to-linalg", "linalg"]
    for body, entry in source_map.operations(stage):
        got = chains(SOURCE, entry)
        assert got and got <= ALL, (body, got)
        for name, expression in names.items():
            if f"{name} " in body:
                assert got == {(expression,)}, (body, got)
                found.add(name)
        for name in folded:
            if f"{name} " in body:
                assert got == both, (body, got)
                found.add(name)
    assert found == {*names, *folded}


def test_maps_survive_bufferization():
    for (name, dialect), stage in stages().items():
        if dialect == "memref":
            assert source_map.mapped_share(stage) >= 0.95, (name, source_map.unmapped(stage))
            for _, entry in source_map.operations(stage):
                assert chains(SOURCE, entry) <= ALL


@pytest.fixture(scope="module")
def reports():
    return ancestors.reports_of(ROOT / f"explorer/examples/{EXAMPLE}.py")


@pytest.mark.parametrize("group", ancestors.GROUPS)
def test_ancestors_within_a_group_of_stages_are_those_of_its_golden_file(reports, group):
    golden.check(TESTS / f"conformance/golden/{EXAMPLE}/{group}.txt", reports[group])


def is_exact(source, r):
    return r["line"] > 0 and (r["line"], r["col"]) < (r["end_line"], r["end_col"]) and source_map.text_of(source, r).strip() != ""


@pytest.mark.parametrize("stage", ["linalg-to-nisa", "coalesce-transfers", "schedule", "balance-engines", "allocate-memory", "engine-programs"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_instructions_lead_back_to_python(path, stage):
    """By their lines' ranges, with columns; and by provenance, through every stage up to the trace."""
    source = path.read_text()
    for kernel in compiler.compile(source)["kernels"]:
        found = ancestors.instructions(kernel, stage)
        stages = ancestors.up_to(kernel, stage)
        nowhere = [t for _, t, e in found if not any(is_exact(source, r) for r in e.get("src", []))]
        broken = [t for op, t, _ in found if not all(ops for _, ops in ancestors.ancestors(stages, op))]
        share = [1 - len(bad) / len(found) for bad in (nowhere, broken)]
        print(f"{kernel['name']}: of {len(found)} instructions {share[0]:.1%} have a Python range, "
              f"{share[1]:.1%} have ancestors in every stage")
        assert not nowhere and not broken, (nowhere[:5], broken[:5])
