"""prepare-arithmetic keeps what a module computes: divisions of every kind, ranks 0 to 4, broadcasts, reductions."""
import re

import numpy as np
import pytest

from support import values

PASS = "prepare-arithmetic"


def tensor(shape, kind="f32"):
    return "tensor<" + "".join(f"{d}x" for d in shape) + kind + ">"


def amap(n, results):
    return f"affine_map<({', '.join(f'd{i}' for i in range(n))}) -> ({', '.join(str(r) for r in results)})>"


def generic(name, loops, inputs, out, body, kind="f32", reduction=()):
    """inputs: [(value, shape, map results)], out: (shape, results, init value); body uses %i0 … and %acc."""
    n = len(loops)
    maps = ", ".join([amap(n, m) for _, _, m in inputs] + [amap(n, out[1])])
    its = ", ".join('"reduction"' if i in reduction else '"parallel"' for i in range(n))
    ins = f"ins({', '.join(v for v, _, _ in inputs)} : {', '.join(tensor(s, kind) for _, s, _ in inputs)})" if inputs else ""
    args = ", ".join([f"%i{k}: {kind}" for k in range(len(inputs))] + [f"%acc: {kind}"])
    return f"""
  {name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{its}]}} {ins} outs({out[2]} : {tensor(out[0], kind)}) {{
  ^bb0({args}):
{body}
  }} -> {tensor(out[0], kind)}"""


def function(args, lines, results):
    """args and results: [(value, shape, kind)]"""
    a = ", ".join(f"{v}: {tensor(s, k)}" for v, s, k in args)
    r = ", ".join(tensor(s, k) for _, s, k in results)
    return (f"func.func @f({a}) -> ({r}) {{\n{lines}\n  return {', '.join(v for v, _, _ in results)} : {r}\n}}\n")


def elementwise(shape, operands, body, kind="f32", consts=""):
    """One generic over shape; operands: [(shape, map results)]."""
    n = len(shape)
    args = [(f"%a{k}", s, kind) for k, (s, _) in enumerate(operands)]
    lines = consts + f"  %e = tensor.empty() : {tensor(shape, kind)}\n" + generic(
        "%r", shape, [(f"%a{k}", s, m) for k, (s, m) in enumerate(operands)], (shape, [f"d{i}" for i in range(n)], "%e"),
        body, kind)
    return function(args, lines, [("%r", shape, kind)])


def assert_two_dimensional(text):
    """Engines get two dimensions and more; broadcasts and transposes are data movement."""
    for line in text.splitlines():
        if re.search(r"linalg\.(?!broadcast|transpose|index|yield)\w+", line):
            for shape in re.findall(r"tensor<((?:\d+x)*)", line):
                assert shape.count("x") >= 2, line


def whole(shape):
    return (shape, [f"d{i}" for i in range(len(shape))])


@pytest.mark.parametrize("c", [2.0, 3.0, -0.37, 1e-40, 3e38, 1e30])
def test_division_by_a_constant_keeps_its_values(rng, c):
    text = elementwise((7, 13), [whole((7, 13))], "    %q = arith.divf %i0, %c : f32\n    linalg.yield %q : f32",
                       consts=f"  %c = arith.constant {c:.9e} : f32\n")
    scale = np.float32(c / 10) if c > 1e6 else np.float32(1)
    inputs = [(rng.standard_normal((7, 13)) * scale).astype(np.float32)]
    if c == 1e-40:
        inputs[0] = (inputs[0] * np.float32(1e-20)).astype(np.float32)
    after = values.opt(text, PASS)
    assert "arith.divf" not in after
    (got,), (want,) = values.run(after, inputs), values.run(text, inputs)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=0)
    assert np.isfinite(want).any()


@pytest.mark.parametrize("zero", ["0.0", "-0.0", "0x7F800000", "0x7FC00000"])
def test_division_by_zero_infinity_and_nan_keeps_its_values(zero):
    text = elementwise((1, 6), [whole((1, 6))], "    %q = arith.divf %i0, %c : f32\n    linalg.yield %q : f32",
                       consts=f"  %c = arith.constant {zero} : f32\n")
    x = np.array([[1, -2, 0, np.inf, -np.inf, np.nan]], np.float32)
    after = values.opt(text, PASS)
    assert "arith.divf" not in after
    (got,), (want,) = values.run(after, [x]), values.run(text, [x])
    np.testing.assert_array_equal(got, want)
    assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all()


@pytest.mark.parametrize("shape,by", [((128, 256), (128, 256)), ((256, 256), (256, 1)), ((128, 256), (1, 256)),
                                      ((130, 517), (130, 1)), ((7,), (7,)), ((1031,), (1031,)), ((), ()),
                                      ((3, 5, 7), (3, 1, 7)), ((2, 3, 4, 5), (1, 3, 1, 5))])
def test_division_of_tensors_keeps_its_values(rng, shape, by):
    maps = [f"d{i}" if b == s else 0 for i, (s, b) in enumerate(zip(shape, by))]
    text = elementwise(shape, [whole(shape), (by, maps)], "    %q = arith.divf %i0, %i1 : f32\n    linalg.yield %q : f32")
    after = values.check(text, PASS, rng)
    assert "arith.divf" not in after and "linalg.div" not in after and "linalg.reciprocal" in after


@pytest.mark.parametrize("kind", ["f16", "bf16", "f32", "f64"])
def test_named_division_keeps_its_values_in_every_float_type(rng, kind):
    t = tensor((5, 9), kind)
    text = f"""func.func @f(%a: {t}, %b: {t}) -> {t} {{
      %e = tensor.empty() : {t}
      %r = linalg.div ins(%a, %b : {t}, {t}) outs(%e : {t}) -> {t}
      return %r : {t}
    }}"""
    assert "linalg.div " not in values.check(text, PASS, rng)


@pytest.mark.parametrize("kind", ["i8", "i32"])
def test_integer_division_is_left_alone(rng, kind):
    t = tensor((5, 9), kind)
    text = f"""func.func @f(%a: {t}, %b: {t}) -> {t} {{
      %e = tensor.empty() : {t}
      %r = linalg.div ins(%a, %b : {t}, {t}) outs(%e : {t}) -> {t}
      return %r : {t}
    }}"""
    assert "linalg.div " in values.check(text, PASS, rng)


def test_two_divisions_in_one_body_keep_their_values(rng):
    text = elementwise((6, 10), [whole((6, 10)), ((6, 1), ["d0", 0]), whole((6, 10))], """
    %p = arith.divf %i0, %i1 : f32
    %q = arith.divf %i2, %i1 : f32
    %s = arith.subf %p, %q : f32
    %d = arith.divf %s, %i0 : f32
    linalg.yield %d : f32""")
    after = values.check(text, PASS, rng)
    assert after.count("linalg.reciprocal") == 1  # of %i1; %i0 is also read as a number


def test_division_inside_a_reduction_keeps_its_values(rng):
    body = "    %q = arith.divf %i0, %i1 : f32\n    %s = arith.addf %acc, %q : f32\n    linalg.yield %s : f32"
    lines = """  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x1xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<6x1xf32>) -> tensor<6x1xf32>""" + generic(
        "%r", (6, 10), [("%a", (6, 10), ["d0", "d1"]), ("%b", (10,), ["d1"])], ((6, 1), ["d0", 0], "%f"), body,
        reduction={1})
    text = function([("%a", (6, 10), "f32"), ("%b", (10,), "f32")], lines, [("%r", (6, 1), "f32")])
    assert "arith.divf" not in values.check(text, PASS, rng)


def test_floor_of_a_quotient_is_exact(rng):
    t = tensor((4, 1000))
    text = f"""func.func @f(%a: {t}, %b: {t}) -> {t} {{
      %e = tensor.empty() : {t}
      %q = linalg.div ins(%a, %b : {t}, {t}) outs(%e : {t}) -> {t}
      %r = linalg.floor ins(%q : {t}) outs(%e : {t}) -> {t}
      return %r : {t}
    }}"""
    b = rng.integers(1, 1000, (4, 1000)).astype(np.float32)
    a = b * rng.integers(1, 1000, (4, 1000)).astype(np.float32)
    (got,) = values.run(values.opt(text, PASS), [a, b])
    assert (got == np.floor(a / b)).all()


@pytest.mark.parametrize("shape", [(n,) for n in (1, 2, 7, 128, 130, 513, 517, 1024, 4096, 1021)] +
                         [(1, 1024), (1024, 1), (1, 1026, 1), (1, 513), (1, 1021), (1026, 1, 1)])
def test_chains_of_long_rows_and_columns_keep_their_values(rng, shape):
    t = tensor(shape)
    text = f"""func.func @f(%a: {t}, %b: {t}) -> ({t}, {t}) {{
      %e = tensor.empty() : {t}
      %x = linalg.add ins(%a, %b : {t}, {t}) outs(%e : {t}) -> {t}
      %y = linalg.exp ins(%x : {t}) outs(%e : {t}) -> {t}
      %z = linalg.mul ins(%y, %a : {t}, {t}) outs(%e : {t}) -> {t}
      return %y, %z : {t}, {t}
    }}"""
    assert_two_dimensional(values.check(text, PASS, rng))


REDUCERS = {"arith.addf": 0.0, "arith.mulf": 1.0, "arith.maximumf": 0.5, "arith.minimumf": 0.25}


SHAPES = [((7,), {0}), ((1031,), {0}), ((2048,), {0}), ((5, 9), {0, 1}), ((1, 9), {0, 1}), ((5, 9), {0}), ((5, 9), {1}),
          ((3, 4, 5), {0, 1, 2}), ((3, 4, 5), {1, 2}), ((3, 4, 5), {0, 2}), ((3, 4, 5), {1}), ((130, 517), {0, 1}),
          ((9, 1), {0, 1}), ((1, 1026), {1}), ((1026, 1), {0}), ((2048, 1), {0, 1}), ((1, 2048, 1), {1, 2}),
          ((5, 70, 130), {1, 2}), ((3, 64, 9, 17), {1, 2, 3}), ((1, 65, 128), {1, 2})]


@pytest.mark.parametrize("op,shape,axes", [("arith.addf", *s) for s in SHAPES] +
                         [(op, *SHAPES[k]) for op in list(REDUCERS)[1:] for k in (2, 3, 6, -3)])
@pytest.mark.parametrize("keep", [False, True])
def test_reductions_keep_their_values(rng, op, shape, axes, keep):
    n = len(shape)
    out = tuple(1 if i in axes else d for i, d in enumerate(shape) if keep or i not in axes)
    results = [0 if i in axes else f"d{i}" for i in range(n) if keep or i not in axes]
    body = f"    %s = {op} %acc, %i0 : f32\n    linalg.yield %s : f32"
    lines = f"""  %z = arith.constant {REDUCERS[op]} : f32
  %e = tensor.empty() : {tensor(out)}
  %f = linalg.fill ins(%z : f32) outs(%e : {tensor(out)}) -> {tensor(out)}""" + generic(
        "%r", shape, [("%a", shape, [f"d{i}" for i in range(n)])], (out, results, "%f"), body,
        reduction=axes)
    text = function([("%a", shape, "f32")], lines, [("%r", out, "f32")])
    x = rng.uniform(0.9, 1.1, shape).astype(np.float32)
    if op == "arith.mulf" and x.size > 2000:
        x = (1 + (x - 1) / 1000).astype(np.float32)
    assert_two_dimensional(values.check(text, PASS, rng, tol=1e-4, inputs=[x]))


@pytest.mark.parametrize("kind,op,zero", [("i32", "arith.maxsi", -100), ("i32", "arith.minsi", 100), ("i8", "arith.addi", 3),
                                          ("i32", "arith.minui", -1), ("i1", "arith.andi", "true"),
                                          ("i1", "arith.ori", "false"), ("i32", "arith.muli", 1)])
@pytest.mark.parametrize("shape", [(6, 11), (1031,), (1300,)])
def test_integer_reductions_to_a_scalar_are_exact(rng, kind, op, zero, shape):
    n = len(shape)
    body = f"    %s = {op} %acc, %i0 : {kind}\n    linalg.yield %s : {kind}"
    ztype = "" if kind == "i1" else f" : {kind}"
    lines = f"""  %z = arith.constant {zero}{ztype}
  %e = tensor.empty() : tensor<{kind}>
  %f = linalg.fill ins(%z : {kind}) outs(%e : tensor<{kind}>) -> tensor<{kind}>""" + generic(
        "%r", shape, [("%a", shape, [f"d{i}" for i in range(n)])], ((), [], "%f"), body, kind, reduction=set(range(n)))
    values.check(function([("%a", shape, kind)], lines, [("%r", (), kind)]), PASS, rng)


@pytest.mark.parametrize("shape", [(11,), (6, 11), (1, 8)])
def test_argmax_over_all_elements_keeps_its_index(rng, shape):
    """Two results and positions: no combiner to split by."""
    n = len(shape)
    flat = "    %at = linalg.index 0 : index\n" if n == 1 else """    %r0 = linalg.index 0 : index
    %r1 = linalg.index 1 : index
    %w = arith.constant 11 : index
    %m = arith.muli %r0, %w : index
    %at = arith.addi %m, %r1 : index
"""
    maps = ", ".join([amap(n, [f"d{i}" for i in range(n)]), amap(n, []), amap(n, [])])
    its = ", ".join(['"reduction"'] * n)
    text = f"""func.func @f(%a: {tensor(shape)}) -> (tensor<f32>, tensor<i32>) {{
  %z = arith.constant -1.0e30 : f32
  %zi = arith.constant 0 : i32
  %e = tensor.empty() : tensor<f32>
  %ei = tensor.empty() : tensor<i32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %fi = linalg.fill ins(%zi : i32) outs(%ei : tensor<i32>) -> tensor<i32>
  %r:2 = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{its}]}} ins(%a : {tensor(shape)}) outs(%f, %fi : tensor<f32>, tensor<i32>) {{
  ^bb0(%i0: f32, %best: f32, %where: i32):
{flat}
    %c = arith.index_cast %at : index to i32
    %more = arith.cmpf ogt, %i0, %best : f32
    %b = arith.select %more, %i0, %best : f32
    %p = arith.select %more, %c, %where : i32
    linalg.yield %b, %p : f32, i32
  }} -> (tensor<f32>, tensor<i32>)
  return %r#0, %r#1 : tensor<f32>, tensor<i32>
}}"""
    values.check(text, PASS, rng)


def test_bias_and_scale_of_rank_1_keep_their_values(rng):
    text = elementwise((130, 517), [whole((130, 517)), ((517,), ["d1"]), ((130,), ["d0"]), ((), []), ((1, 1), [0, 0])], """
    %p = arith.addf %i0, %i1 : f32
    %q = arith.mulf %p, %i2 : f32
    %r0 = arith.subf %q, %i3 : f32
    %r1 = arith.subf %r0, %i4 : f32
    linalg.yield %r1 : f32""")
    after = values.check(text, PASS, rng)
    assert "linalg.broadcast" not in after  # legalize-layout copies rows to partitions


@pytest.mark.parametrize("rank", [3, 4])
def test_random_broadcasts_keep_their_values(rng, rank):
    for _ in range(4):
        shape = tuple(int(d) for d in rng.integers(1, 6, rank))
        operands = [whole(shape)]
        for _ in range(3):
            axes = [i for i in range(rank) if rng.random() < 0.6]
            ones = [i for i in axes if rng.random() < 0.3]
            operands.append((tuple(1 if i in ones else shape[i] for i in axes), [0 if i in ones else f"d{i}" for i in axes]))
        text = elementwise(shape, operands, """
    %p = arith.addf %i0, %i1 : f32
    %q = arith.mulf %p, %i2 : f32
    %s = arith.divf %q, %i3 : f32
    linalg.yield %s : f32""")
        values.check(text, PASS, rng)


def test_a_softmax_of_a_vector_keeps_its_values(rng):
    """max, subtract, exp, sum, divide over a vector: everything in rank 1 and 0."""
    n = 300
    v, s = tensor((n,)), "tensor<f32>"
    def red(name, x, op, init):
        return f"""  %z{name} = arith.constant {init} : f32
  %e{name} = tensor.empty() : {s}
  %f{name} = linalg.fill ins(%z{name} : f32) outs(%e{name} : {s}) -> {s}""" + generic(
            f"%{name}", (n,), [(x, (n,), ["d0"])], ((), [], f"%f{name}"),
            f"    %s = {op} %acc, %i0 : f32\n    linalg.yield %s : f32", reduction={0})
    def bcast(name, x, y, op):
        return generic(f"%{name}", (n,), [(x, (n,), ["d0"]), (y, (), [])], ((n,), ["d0"], "%e"),
                       f"    %s = {op} %i0, %i1 : f32\n    linalg.yield %s : f32")
    lines = (f"  %e = tensor.empty() : {v}\n" + red("m", "%a", "arith.maximumf", "0xFF800000") + bcast("d", "%a", "%m", "arith.subf")
             + f"\n  %x = linalg.exp ins(%d : {v}) outs(%e : {v}) -> {v}\n" + red("t", "%x", "arith.addf", "0.0")
             + bcast("y", "%x", "%t", "arith.divf"))
    values.check(function([("%a", (n,), "f32")], lines, [("%y", (n,), "f32")]), PASS, rng)


def test_iota_and_gather_keep_their_indices(rng):
    text = """func.func @f(%t: tensor<9x4xf32>, %i: tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>) {
  %e = tensor.empty() : tensor<6xf32>
  %ei = tensor.empty() : tensor<6xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%i : tensor<6xi32>) outs(%e : tensor<6xf32>) {
  ^bb0(%k: i32, %o: f32):
    %c = arith.index_cast %k : i32 to index
    %l = linalg.index 0 : index
    %m = arith.constant 4 : index
    %n = arith.remui %l, %m : index
    %v = tensor.extract %t[%c, %n] : tensor<9x4xf32>
    linalg.yield %v : f32
  } -> tensor<6xf32>
  %io = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} outs(%ei : tensor<6xi32>) {
  ^bb0(%o: i32):
    %l = linalg.index 0 : index
    %c = arith.index_cast %l : index to i32
    linalg.yield %c : i32
  } -> tensor<6xi32>
  return %r, %io : tensor<6xf32>, tensor<6xi32>
}"""
    inputs = [rng.standard_normal((9, 4)).astype(np.float32), rng.integers(0, 9, 6).astype(np.int32)]
    values.check(text, PASS, rng, inputs=inputs)


def test_a_fill_that_is_returned_keeps_its_values(rng):
    text = """func.func @f(%a: tensor<700xf32>) -> (tensor<700xf32>, tensor<f32>) {
  %c = arith.constant 2.5 : f32
  %e = tensor.empty() : tensor<700xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<700xf32>) -> tensor<700xf32>
  %e0 = tensor.empty() : tensor<f32>
  %f0 = linalg.fill ins(%c : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  return %f, %f0 : tensor<700xf32>, tensor<f32>
}"""
    values.check(text, PASS, rng)
