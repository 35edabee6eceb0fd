"""Collectives are kept as calls down to NISA, where each is an instruction, and compute on every stage what they mean when
all devices of a group hold the same data; custom calls that only the hardware knows are kept, and never checked wrongly.
"""
import re

import numpy as np
import pytest

from support import compiler, reference, source_map
from support.oracles import llvm

pytestmark = pytest.mark.xdist_group("collectives")  # the kernels are compiled once
HEAD = """import numpy as np
import nkipy.distributed.collectives as cc
from nkigen import trace
PAIR, PAIRS, FOUR = [[0, 1]], [[0, 1], [2, 3]], [[0, 1, 2, 3]]
"""
# name: (inputs, body, the instructions on NISA)
KERNELS = {
    "products": ("((128, 256), 'f32'), ((256, 256), 'f32')", """(x, w):
    y = cc.all_reduce(x @ w, PAIRS)
    return cc.all_gather(y + x, 0, PAIR), cc.reduce_scatter(x, 1, FOUR, np.maximum) * 2, cc.all_to_all(x, 0, 0, PAIR)
""", "all_reduce all_gather reduce_scatter all_to_all"),
    "few_dimensions": ("((5,), 'f32')", """(x):
    return cc.all_reduce(x, PAIR), cc.all_gather(x, 0, PAIR) * 2, cc.all_reduce(np.sum(x), PAIR)
""", "all_reduce all_gather all_reduce"),
    "three_dimensions": ("((5, 7, 3), 'bfloat16')", """(x):
    return cc.all_reduce(x + x, [[0, 1, 2]], np.multiply), cc.all_gather(x, 1, PAIR)[1:, ::2] + 1
""", "all_reduce all_gather"),
    "integers": ("((4, 6), 'uint8'), ((4, 6), 'bool')", """(x, c):
    x = x + 200
    return (cc.all_reduce(x, PAIR), cc.reduce_scatter(x, 0, PAIR, np.minimum), cc.reduce_scatter(x, 1, PAIR, np.maximum),
            cc.all_reduce(c, PAIR, np.maximum), cc.all_gather(c, 1, PAIR))
""", "all_reduce reduce_scatter reduce_scatter all_reduce all_gather"),
    "in_place": ("((130, 30), 'f32'), ((130, 30), 'f32')", """(x, y):
    x[:64] = cc.all_reduce(x, PAIR)[:64]
    y[:] = cc.all_reduce(y, PAIR)
    return cc.all_gather(cc.all_reduce(x @ y.T, PAIR), 0, PAIR)
""", "all_reduce all_reduce all_reduce all_gather"),
    "chain": ("((128, 128), 'float16')", """(x):
    for i in range(3):
        x = cc.all_reduce(np.tanh(x), PAIR)
    return x
""", "all_reduce all_reduce all_reduce"),
    # not merged, although two are the same: every device has to take part as often as the others
    "all_reduce": ("((130, 128), 'f32')", """(x):
    return cc.all_reduce(x, PAIR) + cc.all_reduce(x, PAIR) + cc.all_reduce(x, PAIRS) + x
""", "all_reduce all_reduce all_reduce"),
    "exchange": ("((4, 6, 2), 'f32')", """(x):
    return (cc.all_to_all(x, 0, 1, PAIR), cc.all_to_all(x, 1, 0, [[0, 1, 2]]), cc.all_to_all(x, -1, 0, PAIR),
            cc.all_to_all(x, 0, 2, FOUR), cc.all_to_all(x, 1, 1, PAIR))
""", "all_to_all all_to_all all_to_all all_to_all all_to_all"),
    "sixty_four_bits": ("((4, 6), 'int64')", "(x):\n    return cc.all_reduce(x, PAIR)\n", "all_reduce"),
}
SOURCE = HEAD + "".join(f"\n\n@trace(input_specs=[{inputs}])\ndef {name}{body}"
                        for name, (inputs, body, _) in KERNELS.items())


@pytest.fixture(scope="module")
def compiled():
    result = compiler.compile(SOURCE, check=True)
    assert {d["severity"] for d in result["diagnostics"]} <= {"warning"}, result["diagnostics"]
    return {k["name"]: k for k in result["kernels"]}


def instructions(text):
    return " ".join(re.findall(r"nisa\.((?:all|reduce|collective)_(?:gather|reduce|scatter|to_all|permute))\(", text))


@pytest.mark.parametrize("name", KERNELS)
def test_collectives_are_kept_and_mean_what_they_say_on_every_stage(compiled, name):
    kernel = compiled[name]
    stages = kernel["stages"]
    assert [(s["name"], s["check"]) for s in stages if not compiler.is_checked(s)] == []
    first = [s["dialect"] for s in stages].index("linalg")
    for stage in stages[first:[s["dialect"] for s in stages].index("nisa")]:
        assert len(re.findall(r" call @", stage["text"])) == len(KERNELS[name][2].split()), stage["name"]
    text = compiler.stage(kernel, "linalg-to-nisa")["text"]
    assert instructions(text) == KERNELS[name][2] and "call" not in text
    inputs = compiler.random_inputs(kernel)
    if name != "sixty_four_bits":
        reference.assert_nisa(kernel, inputs, reference.call(reference.functions(SOURCE)[name], kernel, inputs))


def test_every_stage_is_mlir(compiled):
    for stage in compiled["products"]["stages"]:
        if stage["changed"] and stage["dialect"] in ("linalg", "memref"):
            llvm.mlir_opt(stage["text"])


def test_calls_and_instructions_lead_to_their_lines(compiled):
    want = {"all_reduce": "cc.all_reduce(x @ w, PAIRS)", "all_gather": "cc.all_gather(y + x, 0, PAIR)",
            "reduce_scatter": "cc.reduce_scatter(x, 1, FOUR, np.maximum)", "all_to_all": "cc.all_to_all(x, 0, 0, PAIR)"}
    for stage in compiled["products"]["stages"]:
        seen = set()
        for body, entry in source_map.operations(stage):
            m = re.search(r" call @(\w+)\(|^nisa\.(\w+)\(| (all-\w+|all-to-all|reduce-scatter)\(", body)
            name = m and next(g for g in m.groups() if g).replace("-", "_")
            if name in want:
                assert {source_map.text_of(SOURCE, r) for r in entry["src"] if r["depth"] == 0} == {want[name]}, (stage["name"], body)
                seen.add(name)
        assert seen == set(want), stage["name"]


HLO = """HloModule m
largest { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] maximum(b, a) }
odd { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] subtract(a, b) }
ENTRY e { x = s32[4,6] parameter(0)
"""


def compile_hlo(body, *arguments):
    return compiler.compile(HLO + body, "--language", "hlo", *arguments, check=True)


def test_collectives_of_hlo_input():
    result = compile_hlo("""  y = s32[4,6] all-reduce(x), to_apply=largest, channel_id=3
  z = s32[4,6] collective-permute(y), source_target_pairs={{0,1},{1,0}}
  ROOT w = s32[4,18] all-gather(z), dimensions={1}
}""")
    assert not result["diagnostics"]
    (kernel,) = result["kernels"]
    assert [s["name"] for s in kernel["stages"] if not compiler.is_checked(s)] == []
    x = np.arange(24, dtype=np.int32).reshape(4, 6)
    (got,) = reference.run_nisa(kernel, [x])
    np.testing.assert_array_equal(got, np.tile(x, (1, 3)))
    text = compiler.stage(kernel, "linalg-to-nisa")["text"]
    assert instructions(text) == "all_reduce collective_permute all_gather" and "op=max, channel_id=3" in text


def test_a_computation_that_devices_do_not_combine_with_is_refused():
    result = compile_hlo("  ROOT y = s32[4,6] all-reduce(x), replica_groups={{0,1}}, to_apply=odd\n}")
    (error,) = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert error["code"] == "lowering-unsupported" and "its computation must be add, multiply, maximum" in error["message"]


def test_an_unknown_custom_call_is_kept_and_the_check_says_why_it_does_not_run():
    result = compile_hlo('  y = s32[4,6] custom-call(x), custom_call_target="Vendor.Magic"\n  ROOT z = s32[4,6] add(y, x)\n}')
    (kernel,) = result["kernels"]
    for stage in kernel["stages"]:
        assert stage["check"]["status"] == "skipped", stage["name"]
        assert "it calls Vendor.Magic, which is given for the hardware only" in stage["check"]["reason"]
        assert "custom-call(" in stage["text"] or "call @Vendor.Magic(" in stage["text"]
    (error,) = result["diagnostics"]
    assert error["stage"] == "linalg-to-nisa" and "no instruction does what @Vendor.Magic does" in error["message"]
