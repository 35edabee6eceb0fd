"""Each HLO pass on modules that it changes: XLA runs the text of every stage and gets what it got from the first, and the
product's own check says the same up to linalg.  tests/unit/test_hlo_pipeline.c says what the passes do to such modules.
"""

import numpy as np
import pytest

from support import compiler
from support.oracles import xla

BRANCHES = """
f {
  p = f32[4] parameter(0)
  s = f32[4] sine(p)
  c = f32[4] cosine(p)
  ROOT t = (f32[4], f32[4]) tuple(s, c)
}
g {
  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  ROOT t = (f32[4], f32[4]) tuple(n, p)
}
"""


def loop(limit, result="subtract(a, b)"):
    """x grows by z, y is a sum that nothing reads, n and z stay."""
    state = "(s32[], s32[], f32[4], f32[4], f32[4])"
    return f"""
body {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  x = f32[4] get-tuple-element(p), index=2
  y = f32[4] get-tuple-element(p), index=3
  z = f32[4] get-tuple-element(p), index=4
  one = s32[] constant(1)
  next = s32[] add(i, one)
  more = f32[4] add(x, z)
  sum = f32[4] add(y, x)
  ROOT t = {state} tuple(next, n, more, sum, z)
}}
condition {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] get-tuple-element(p), index=1
  ROOT c = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  x = f32[4] parameter(0)
  z = f32[4] parameter(1)
  zero = s32[] constant(0)
  limit = s32[] {limit}
  t = {state} tuple(zero, limit, x, x, z)
  w = {state} while(t), condition=condition, body=body
  a = f32[4] get-tuple-element(w), index=2
  b = f32[4] get-tuple-element(w), index=4
  ROOT r = f32[4] {result}
}}
"""


# (what, stages that must change the module, text)
MODULES = {
    "sixty_four_bits": (["convert-legalization"], """
ENTRY e {
  x = s64[3,4] parameter(0)
  y = f64[3,4] parameter(1)
  i = s64[3,4] iota(), iota_dimension=1
  a = s64[3,4] add(x, i)
  f = f64[3,4] convert(a)
  s = f64[3,4] sine(y)
  m = f64[3,4] multiply(f, s)
  ROOT r = (s64[3,4], f64[3,4]) tuple(a, m)
}
"""),
    "calls": (["call-inliner", "dce"], """
f {
  p = f32[4] parameter(0)
  ROOT e = f32[4] exponential(p)
}
g {
  q = f32[4] parameter(0)
  h = f32[4] call(q), to_apply=f
  ROOT c = f32[4] negate(h)
}
ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] call(x), to_apply=g
  b = f32[4] call(a), to_apply=g
  ROOT r = f32[4] add(a, b)
}
"""),
    "no_elements": (["zero-sized-hlo-elimination"], """
ENTRY e {
  x = f32[0,4] parameter(0)
  y = f32[2,4] parameter(1)
  s = f32[0,4] sine(x)
  c = f32[2,4] concatenate(s, y), dimensions={0}
  ROOT r = f32[2,4] negate(c)
}
"""),
    "known_branch": (["simplify-conditional"], BRANCHES + """
ENTRY e {
  x = f32[4] parameter(0)
  p = pred[] constant(false)
  c = (f32[4], f32[4]) conditional(p, x, x), true_computation=f, false_computation=g
  a = f32[4] get-tuple-element(c), index=0
  b = f32[4] get-tuple-element(c), index=1
  ROOT r = f32[4] multiply(a, b)
}
"""),
    "half_a_branch": (["simplify-conditional"], BRANCHES + """
ENTRY e {
  x = f32[4] parameter(0)
  p = pred[] parameter(1)
  c = (f32[4], f32[4]) conditional(p, x, x), true_computation=f, false_computation=g
  b = f32[4] get-tuple-element(c), index=1
  ROOT r = f32[4] exponential(b)
}
"""),
    "same_branches": (["simplify-conditional"], """
f {
  p = f32[4] parameter(0)
  ROOT s = f32[4] sine(p)
}
ENTRY e {
  x = f32[4] parameter(0)
  k = s32[] parameter(1)
  c = f32[4] conditional(k, x, x, x), branch_computations={f, f, f}
  ROOT r = f32[4] negate(c)
}
"""),
    "eight_trips": (["simplify-while-loops"], loop("constant(8)")),
    "one_trip": (["simplify-while-loops"], loop("constant(1)")),
    "no_trip": (["simplify-while-loops"], loop("constant(-3)")),
    "trips_unknown": (["simplify-while-loops"], loop("parameter(2)")),
    "nested": (["simplify-while-loops"], """
inner_body {
  p = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  y = f32[4] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  s = f32[4] sine(x)
  u = f32[4] add(y, x)
  ROOT t = (s32[], f32[4], f32[4]) tuple(next, s, u)
}
inner_condition {
  p = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  p = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  y = f32[4] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  zero = s32[] constant(0)
  q = (s32[], f32[4], f32[4]) tuple(zero, x, y)
  w = (s32[], f32[4], f32[4]) while(q), condition=inner_condition, body=inner_body
  a = f32[4] get-tuple-element(w), index=1
  ROOT t = (s32[], f32[4], f32[4]) tuple(next, a, y)
}
condition {
  p = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(2)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  x = f32[4] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[4], f32[4]) tuple(zero, x, x)
  w = (s32[], f32[4], f32[4]) while(t), condition=condition, body=body
  ROOT a = f32[4] get-tuple-element(w), index=1
}
"""),
    "constants": (["constant-folding"], """
ENTRY e {
  x = f32[2] parameter(0)
  a = f32[2] constant({1, 2})
  b = f32[2] constant({3, 5})
  p = f32[2] multiply(a, b)
  h = bf16[2] convert(p)
  l = pred[2] compare(a, b), direction=GT
  s = f32[2] select(l, x, p)
  ROOT r = (f32[2], bf16[2]) tuple(s, h)
}
"""),
    "broadcast_out_of_order": (["broadcast-canonicalizer"], """
ENTRY e {
  x = f32[2,3,4] parameter(0)
  b = f32[4,5,2,3] broadcast(x), dimensions={2,3,0}
  ROOT r = f32[4,5,2,3] sine(b)
}
"""),
    "heads": (["dot-decomposer"], """
ENTRY e {
  q = f32[2,5,3,8] parameter(0)
  k = f32[2,7,3,8] parameter(1)
  d = f32[2,3,5,7] dot(q, k), lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3}
  ROOT r = f32[2,3,5,7] sine(d)
}
"""),
    "rows_and_sums": (["dot-decomposer"], """
ENTRY e {
  x = f32[2,3,4,5] parameter(0)
  y = f32[5,6,4] parameter(1)
  z = f32[4,2,5,3] parameter(2)
  d = f32[2,3,6] dot(x, y), lhs_contracting_dims={2,3}, rhs_contracting_dims={2,0}
  o = f32[] dot(x, z), lhs_contracting_dims={0,1,2,3}, rhs_contracting_dims={1,3,0,2}
  v = f32[4] constant({1, 2, 3, 4})
  w = f32[4,5,6] dot(v, y), lhs_contracting_dims={}, rhs_contracting_dims={}, lhs_batch_dims={0}, rhs_batch_dims={2}
  ROOT r = (f32[2,3,6], f32[], f32[4,5,6]) tuple(d, o, w)
}
"""),
    "transposed_operands": (["transpose-folding"], """
ENTRY e {
  x = f32[2,4,3] parameter(0)
  y = f32[2,5,4] parameter(1)
  s = f32[2,3,4] transpose(x), dimensions={0,2,1}
  u = f32[2,4,5] transpose(y), dimensions={0,2,1}
  d = f32[2,3,5] dot(s, u), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  ROOT r = f32[2,3,5] sine(d)
}
"""),
    "reshapes_meet": (["reshape-mover", "algebraic-simplifier"], """
ENTRY e {
  x = f32[6,4] parameter(0)
  y = f32[6,4] parameter(1)
  two = f32[] constant(2)
  b = f32[24] broadcast(two), dimensions={}
  p = f32[24] reshape(x)
  q = f32[24] reshape(y)
  s = f32[24] subtract(p, q)
  m = f32[24] power(b, s)
  o = f32[6,4] reshape(m)
  t = f32[4,6] transpose(o), dimensions={1,0}
  v = f32[4,6] sine(t)
  u = f32[6,4] transpose(v), dimensions={1,0}
  ROOT r = f32[6,4] add(u, x)
}
"""),
    "equal_and_dead": (["cse", "dce"], """
ENTRY e {
  x = f32[4] parameter(0)
  a = f32[4] sine(x)
  b = f32[4] sine(x)
  c = f32[4] cosine(x)
  ROOT r = f32[4] subtract(a, b)
}
"""),
}
NARROW = {np.dtype("int64"): np.int32, np.dtype("float64"): np.float32}


@pytest.mark.parametrize("name", MODULES)
def test_every_stage_computes_the_same(name):
    changing, text = MODULES[name]
    result = compiler.compile(f"HloModule {name}\n{text}", "--language", "hlo", "--stop-after", "hlo-to-linalg", check=True)
    codes = {d["code"] for d in result["diagnostics"]}
    assert codes == ({"dtype-narrowed"} if name == "sixty_four_bits" else set()), result["diagnostics"]
    (stages,) = [k["stages"] for k in result["kernels"]]
    assert all(compiler.is_checked(s) for s in stages), [(s["name"], s["check"]) for s in stages if not compiler.is_checked(s)]
    changed = [s["name"] for s in stages if s["changed"]]
    assert set(changing) <= set(changed), changed
    proto = xla.read_text(stages[0]["text"]).as_serialized_hlo_module_proto()
    inputs = xla.random_inputs(proto)
    want = xla.run(proto, inputs)
    for stage in stages[1:-1]:
        if not stage["changed"]:
            continue
        if stage["name"] == "convert-legalization":
            inputs = [x.astype(NARROW.get(x.dtype, x.dtype)) for x in inputs]
            want = [w.astype(NARROW.get(w.dtype, w.dtype)) for w in want]
        for g, w in zip(xla.run_text(stage["text"], inputs), want, strict=True):
            assert (g.dtype, g.shape) == (w.dtype, w.shape), stage["name"]
            np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), 2e-5, 2e-6, err_msg=stage["name"])


def test_a_result_in_place_keeps_its_name_when_it_is_read_again():
    source = """
import numpy as np
from nkigen import trace
@trace(input_specs=[((4, 4), "float32"), ((4, 4), "float32")])
def kernel(x, c):
    c[0:2] = x[0:2] * 2
    return x + 1
"""
    (traced,) = compiler.compile(source, "--stop-after", "trace")["kernels"]
    text = traced["stages"][0]["text"]
    (read,) = compiler.compile(text, "--language", "hlo", "--stop-after", "trace")["kernels"]
    assert read["outputs"] == traced["outputs"]
    assert 'neff_output_names="output0,c"' in text and read["stages"][0]["text"] == text
