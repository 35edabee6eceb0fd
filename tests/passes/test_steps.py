"""The rewrites inside a stage (options.steps): their edits lead from the text that the pass got to the text of the stage."""
import json

import pytest

from support import warm
from support.compiler import stage_names
from support.paths import EXAMPLES

HEAD = "import numpy as np\nfrom nkigen import trace, knob\n\n\n"


def kernel(body, specs):
    names = "xyz"[:len(specs)]
    listed = ", ".join(f'({tuple(shape)!r}, "{dtype}")' for shape, dtype in specs)
    return f"{HEAD}@trace(input_specs=[{listed}])\ndef f({', '.join(names)}):\n" + "".join(f"    {line}\n" for line in body)


def hlo(computations, entry):
    return f"HloModule f\n\n{computations}ENTRY main {{\n" + "".join(f"  {line}\n" for line in entry) + "}\n"


SMALL = ((128, 128), "f32")
MADE = {
    "op-expander": hlo("", ["x = f32[128,128] parameter(0)", "ROOT r = f32[128,128] reduce-precision(x), exponent_bits=8, mantissa_bits=7"]),
    "convert-legalization": hlo("", ["x = s64[4] parameter(0)", "ROOT r = s64[4] add(x, x)"]),
    "call-inliner": hlo("g {\n  p = f32[128,128] parameter(0)\n  ROOT e = f32[128,128] exponential(p)\n}\n\n",
                        ["x = f32[128,128] parameter(0)", "ROOT r = f32[128,128] call(x), to_apply=g"]),
    "zero-sized-hlo-elimination": hlo("", ["x = f32[128,0] parameter(0)", "e = f32[128,0] exponential(x)", "y = f32[128,128] parameter(1)",
                                           "ROOT r = f32[128,128] concatenate(e, y), dimensions={1}"]),
    "simplify-conditional": hlo("a {\n  p = f32[8] parameter(0)\n  ROOT e = f32[8] exponential(p)\n}\n\nb {\n  p = f32[8] parameter(0)\n  ROOT e = f32[8] negate(p)\n}\n\n",
                                ["x = f32[8] parameter(0)", "c = pred[] constant(true)",
                                 "ROOT r = f32[8] conditional(c, x, x), true_computation=a, false_computation=b"]),
    "simplify-while-loops": hlo("c {\n  p = (s32[], f32[8]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n  n = s32[] constant(1)\n"
                                "  ROOT l = pred[] compare(i, n), direction=LT\n}\n\nb {\n  p = (s32[], f32[8]) parameter(0)\n  i = s32[] get-tuple-element(p), index=0\n"
                                "  v = f32[8] get-tuple-element(p), index=1\n  n = s32[] constant(1)\n  j = s32[] add(i, n)\n  e = f32[8] exponential(v)\n"
                                "  ROOT t = (s32[], f32[8]) tuple(j, e)\n}\n\n",
                                ["x = f32[8] parameter(0)", "z = s32[] constant(0)", "t = (s32[], f32[8]) tuple(z, x)",
                                 "w = (s32[], f32[8]) while(t), condition=c, body=b", "ROOT r = f32[8] get-tuple-element(w), index=1"]),
    "constant-folding": hlo("", ["x = s32[4] parameter(0)", "a = s32[4] constant({1, 2, 3, 4})", "b = s32[4] add(a, a)", "ROOT r = s32[4] add(x, b)"]),
    "broadcast-canonicalizer": hlo("", ["x = f32[128,64] parameter(0)", "ROOT r = f32[64,128] broadcast(x), dimensions={1,0}"]),
    "dot-decomposer": hlo("", ["x = f32[128,4,32] parameter(0)", "y = f32[4,32,64] parameter(1)",
                               "ROOT r = f32[128,64] dot(x, y), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}"]),
    "recognize-scans": kernel(["return np.cumsum(x, axis=1)"], [SMALL]),
    "decompose-batch-matmul": kernel(["return np.matmul(x, y)"], [((2, 128, 128), "f32")] * 2),
    "round-products": kernel(["return np.matmul(x, y).astype(np.float16)"], [((256, 128), "f32"), ((128, 512), "f32")]),
    "schedule": kernel(["e = np.exp(x - x.max(1, keepdims=True))", "return e / e.sum(1, keepdims=True)"], [((4, 64, 20, 20), "f32")]),
    "canonicalize-partition-dim": kernel(["return x.max(0)"], [((256, 96), "i32")]),
    "knob-driven-fusion": kernel(["a = np.exp(x)", "b = a * 2.0", "knob.fuse(a, b)", "return b + 1.0"], [((256, 256), "f32")]),
}
# so little memory that the kernel's values do not fit
LESS = {"insert-spill-reload": ["--pipeline", "with insert-spill-reload{sbuf-capacity=4096}"]}
CHANGED_BY = {  # an example that the pass changes
    "reshape-mover": "04", "algebraic-simplifier": "03", "transpose-folding": "08", "cse": "11", "dce": "04", "hlo-to-linalg": "02", "canonicalize": "11",
    "cse:2": "02", "remove-redundant-zero-fill": "11", "recognize-activations": "06", "prepare-arithmetic": "02", "flash-attention": "08",
    "infer-layout": "06", "fuse-row-tiles": "01", "assign-linalg-op-ids": "06", "knob-driven-tiling": "06",
    "apply-and-strip-transforms": "06", "canonicalize-loop-step": "02", "one-shot-bufferize": "06", "canonicalize:2": "02",
    "eliminate-uninitialized-copies": "11", "annotate-memory-space": "06", "eliminate-same-memspace-copy": "02", "legalize-layout": "02",
    "simplify-linalg": "02", "insert-spill-reload": "07", "insert-memref-dealloc": "02", "linalg-to-nisa": "02", "coalesce-transfers": "03", "balance-engines": "01",
    "allocate-memory": "06", "engine-programs": "06",
}


def source_of(stage):
    return MADE[stage] if stage in MADE else next(p for p in EXAMPLES if p.name.startswith(CHANGED_BY[stage])).read_text()


def compiled(source, stage, steps=False):
    language = "hlo" if source.startswith("HloModule") else "nkipy"
    wanted = [*LESS.get(stage, []), *(["--steps", stage] if steps else [])]
    done = warm.run("compile", "-", "--language", language, "--stop-after", stage, "--json", "-", "--quiet", *wanted, input=source.encode())
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)["kernels"][0]


def steps_from(source, stage, number):
    language = "hlo" if source.startswith("HloModule") else "nkipy"
    done = warm.run("steps", "-", stage, "--language", language, "--from", number, "--json", input=source.encode())
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def applied(text, edit):
    lines = text.splitlines(keepends=True)
    at = edit["line"] - 1
    return "".join(lines[:at]) + edit["text"] + "".join(lines[at + edit["removed"]:])


def same_but_for_time(stage):
    return {k: v for k, v in stage.items() if k != "time_us"}


@pytest.mark.parametrize("stage", [*MADE, *CHANGED_BY])
def test_the_edits_lead_to_the_text_of_the_stage(stage):
    plain = compiled(source_of(stage), stage)
    kernel = compiled(source_of(stage), stage, steps=True)
    # recording changes nothing
    assert [same_but_for_time(s) for s in kernel["stages"]] == [same_but_for_time(s) for s in plain["stages"]]
    before, made = kernel["stages"][-2:]
    steps = kernel["steps"]
    assert made["changed"] and steps["steps"], "the kernel is one that the pass changes"
    assert steps["stage"] == made["name"] and steps["from"] == 0 and "next" not in steps
    if before["dialect"] == made["dialect"]:
        assert steps["begin"] == before["text"]
    text = steps["begin"]
    for step in steps["steps"]:
        assert step["rule"] and step["diff"]["lines_from"] == len(text.splitlines())
        if "line" in step.get("op", {}):
            # the operation is on that line of the stage before: the first there, or one inside of it
            assert before["lines"][step["op"]["line"] - 1]["op"] <= step["op"]["id"]
            assert step["op"].get("src") is not None or "src" not in before["lines"][step["op"]["line"] - 1]
        after = applied(text, step["edit"])
        assert after != text
        text = after
    assert text == made["text"]
    assert steps["how"] == ("operations" if stage == "hlo-to-linalg" else "again" if stage.startswith("canonicalize:") or stage == "canonicalize"
                            else "whole" if stage == "cse:2" else "rewrites")


def test_each_tiled_operation_and_each_program_is_a_step():
    softmax = next(p for p in EXAMPLES if p.name.startswith("03")).read_text()
    tiled = compiled(softmax, "knob-driven-tiling", steps=True)
    script = tiled["stages"][-1]["text"]
    written = [s for s in tiled["steps"]["steps"] if s["rule"] == "write-script"]
    assert len(written) == script.count("transform.structured.match") > 2
    assert [s["edit"]["text"].count("transform.structured.match") for s in written[1:]] == [1] * (len(written) - 1)
    before = tiled["stages"][-2]["text"].splitlines()
    assert all(s["op"]["name"] in before[s["op"]["line"] - 1] for s in written), "the operation that is tiled, not one inside of another"
    divided = compiled(softmax, "engine-programs", steps=True)
    programs = divided["stages"][-1]["op_counts"]["scf.execute_region"]
    assert sum(s["rule"] in ("write-program", "write-queue") for s in divided["steps"]["steps"]) == programs > 2
    copied = [s for s in divided["steps"]["steps"] if s["rule"] == "write-operation"]
    before = divided["stages"][-2]["text"].splitlines()
    assert len(copied) > programs, "each operation outside of loops is a step, and each loop"
    assert all(s["op"]["name"] in before[s["op"]["line"] - 1] for s in copied)


def test_every_pass_of_ours_has_a_kernel_here():
    # canonicalize-reshape finds nothing to do in kernels as they are lowered today; tests/lit/canonicalize-reshape has what it rewrites
    assert set(stage_names()) - {"trace", "canonicalize-reshape"} <= {s.split(":")[0] for s in [*MADE, *CHANGED_BY]}


def test_one_can_go_on_from_a_step():
    source, stage = source_of("canonicalize-loop-step"), "canonicalize-loop-step"
    whole, rest = steps_from(source, stage, 0), steps_from(source, stage, 2)
    assert rest["from"] == 2 and rest["steps"] == whole["steps"][2:]
    text = whole["begin"]
    for step in whole["steps"][:2]:
        text = applied(text, step["edit"])
    assert rest["begin"] == text


def test_an_answer_has_at_most_500_steps_and_names_the_next():
    source = hlo("", ["x = f32[8] parameter(0)", *(f"c{k} = f32[8] exponential(x)" for k in range(600)), "ROOT r = f32[8] negate(x)"])
    first = steps_from(source, "dce", 0)
    names = [s["op"]["name"] for s in first["steps"]]
    assert names in ([], ["exponential"] * len(names)) and len(names) <= 500
    cse = steps_from(source, "cse", 0)
    assert len(cse["steps"]) == 500 and cse["next"] == 500
    rest = steps_from(source, "cse", 500)
    assert len(rest["steps"]) == 99 and "next" not in rest and rest["from"] == 500


def test_what_has_no_steps_says_why():
    assert compiled(source_of("cse:2"), "trace", steps=True)["steps"]["reason"] == "it is the first stage"
    done = warm.text("steps", "-", "nowhere", input=source_of("cse:2"))
    assert done.returncode == 2 and "there is no stage nowhere" in done.stderr


def test_the_terminal_shows_rule_operation_place_and_lines():
    done = warm.text("steps", next(p for p in EXAMPLES if p.name.startswith("03")), "prepare-arithmetic")
    head, place, *lines = done.stdout.splitlines()
    assert head.startswith("0 multiply-by-reciprocal: linalg.generic, line ") and ":18:12" in head
    assert place.startswith("@@ line ") and any(line.startswith("- ") and "arith.divf" in line for line in lines)
    assert any(line.startswith("+ ") and "arith.mulf" in line for line in lines)
