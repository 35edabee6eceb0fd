"""decompose-batch-matmul keeps what a module computes: odd shapes, several and missing batch dimensions, other orders."""
import pytest

from support import values

PASS = "decompose-batch-matmul"


def tensor(shape, kind="f32"):
    return "tensor<" + "".join(f"{d}x" for d in shape) + kind + ">"


def amap(n, results):
    return f"affine_map<({', '.join(f'd{i}' for i in range(n))}) -> ({', '.join(f'd{r}' for r in results)})>"


def product(op, loops, lhs, rhs, out, kinds=("f32", "f32"), body=""):
    """lhs, rhs and out: their loops; loops: the extents."""
    a, b, c = (tensor([loops[d] for d in m], k) for m, k in ((lhs, kinds[0]), (rhs, kinds[0]), (out, kinds[1])))
    maps = ", ".join(amap(len(loops), m) for m in (lhs, rhs, out))
    zero = "0" if kinds[1].startswith("i") else "0.0"
    head = f"indexing_maps = [{maps}]"
    if op == "linalg.generic":
        its = ", ".join('"parallel"' if i in out else '"reduction"' for i in range(len(loops)))
        use = (f"linalg.generic {{{head}, iterator_types = [{its}]}} ins(%a, %b : {a}, {b}) outs(%f : {c}) {{\n"
               f"  ^bb0(%x: {kinds[0]}, %y: {kinds[0]}, %o: {kinds[1]}):\n{body}\n  }} -> {c}")
    else:
        use = f"{op} {head} ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}"
    return f"""func.func @f(%a: {a}, %b: {b}) -> {c} {{
  %z = arith.constant {zero} : {kinds[1]}
  %e = tensor.empty() : {c}
  %f = linalg.fill ins(%z : {kinds[1]}) outs(%e : {c}) -> {c}
  %r = {use}
  return %r : {c}
}}"""


MULADD = """    %p = arith.mulf %x, %y : f32
    %s = arith.addf %o, %p : f32
    linalg.yield %s : f32"""


@pytest.mark.parametrize("shape", [(1, 3, 4, 5), (3, 7, 1, 13), (2, 130, 17, 9), (4, 1, 1, 1)])
def test_a_batch_matmul_keeps_its_values_in_one_loop(rng, shape):
    after = values.check(product("linalg.batch_matmul", shape, (0, 1, 3), (0, 3, 2), (0, 1, 2)), PASS, rng, tol=1e-4)
    assert "batch_matmul" not in after and after.count("scf.for") == 1


ORDERS = [((1, 3), (0, 3, 2)), ((0, 1, 3), (3, 2)), ((0, 3, 1), (0, 3, 2)), ((0, 1, 3), (0, 2, 3))]


@pytest.mark.parametrize("op,lhs,rhs", [("linalg.contract", *o) for o in ORDERS + [((3, 1), (0, 2, 3))]] +
                         [("linalg.batch_matmul", *o) for o in ORDERS])
def test_products_without_batches_or_in_another_order_keep_their_values(rng, op, lhs, rhs):
    after = values.check(product(op, (3, 5, 6, 7), lhs, rhs, (0, 1, 2)), PASS, rng, tol=1e-4)
    assert "linalg.matmul" in after and after.count("scf.for") == 1


@pytest.mark.parametrize("lhs,rhs", [((0, 1, 2, 4), (0, 1, 4, 3)), ((1, 2, 4), (0, 1, 4, 3)), ((0, 2, 4), (1, 4, 3))])
@pytest.mark.parametrize("op", ["linalg.contract", "linalg.generic"])
def test_products_with_two_batch_dimensions_keep_their_values_in_two_loops(rng, op, lhs, rhs):
    after = values.check(product(op, (2, 3, 4, 5, 6), lhs, rhs, (0, 1, 2, 3), body=MULADD), PASS, rng, tol=1e-4)
    assert "linalg.matmul" in after and after.count("scf.for") == 2


def test_narrow_inputs_with_a_wide_accumulator_keep_their_values(rng):
    body = """    %u = arith.extf %x : bf16 to f32
    %v = arith.extf %y : bf16 to f32
    %p = arith.mulf %u, %v : f32
    %s = arith.addf %p, %o : f32
    linalg.yield %s : f32"""
    for op in ("linalg.batch_matmul", "linalg.generic"):
        text = product(op, (2, 5, 6, 7), (0, 1, 3), (0, 3, 2), (0, 1, 2), ("bf16", "f32"), body)
        assert "linalg.matmul" in values.check(text, PASS, rng, tol=1e-4)


def test_products_of_integers_keep_their_values(rng):
    text = product("linalg.batch_matmul", (2, 5, 6, 7), (0, 1, 3), (0, 3, 2), (0, 1, 2), ("i8", "i32"))
    assert "linalg.matmul" in values.check(text, PASS, rng)


def test_values_are_kept_after_remove_redundant_zero_fill(rng):
    text = product("linalg.batch_matmul", (3, 5, 6, 7), (0, 1, 3), (0, 3, 2), (0, 1, 2))
    after = values.check(text, ["remove-redundant-zero-fill", PASS], rng, tol=1e-4)
    assert "linalg.fill" not in after


def turned(batch, m, n, k):
    """A product whose left operand is a transpose of an argument."""
    lead, order = "".join(f"{d}x" for d in batch), ", ".join(str(d) for d in (*range(len(batch)), len(batch) + 1, len(batch)))
    a, t, b, c = (f"tensor<{lead}{s}xf32>" for s in (f"{k}x{m}", f"{m}x{k}", f"{k}x{n}", f"{m}x{n}"))
    return f"""func.func @f(%a: {a}, %b: {b}) -> {c} {{
  %z = arith.constant 0.0 : f32
  %g = tensor.empty() : {t}
  %t = linalg.transpose ins(%a : {a}) outs(%g : {t}) permutation = [{order}]
  %e = tensor.empty() : {c}
  %f = linalg.fill ins(%z : f32) outs(%e : {c}) -> {c}
  %r = linalg.{"batch_" * bool(batch)}matmul ins(%t, %b : {t}, {b}) outs(%f : {c}) -> {c}
  return %r : {c}
}}"""


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("m,n,k", [(517, 3, 130), (1, 1, 1), (130, 5, 1), (7, 517, 2)])
def test_a_product_with_a_transposed_left_operand_keeps_its_values(rng, batch, m, n, k):
    assert "linalg.transpose" not in values.check(turned(batch, m, n, k), PASS, rng, tol=1e-4)


def converted(kind, order, batch_of_left=True):
    """A product of f32 whose right operand, and left one, are converted from a shorter type; order: a permutation of the right one, or None."""
    right = (4, 33, 17) if order is None else (4, 17, 33)
    left = (4, 5, 33) if batch_of_left else (5, 33)
    turned = "%bc" if order is None else "%bt"
    turn = "" if order is None else f"""
  %et = tensor.empty() : {tensor((4, 33, 17))}
  %bt = linalg.transpose ins(%bc : {tensor(right)}) outs(%et : {tensor((4, 33, 17))}) permutation = {order}"""
    maps = f"affine_map<(d0, d1, d2, d3) -> ({'d0, ' if batch_of_left else ''}d1, d3)>, {amap(4, (0, 3, 2))}, {amap(4, (0, 1, 2))}"

    def convert(name, of, shape):
        ident = amap(len(shape), range(len(shape)))
        return f"""
  %e{name} = tensor.empty() : {tensor(shape)}
  %{name} = linalg.generic {{indexing_maps = [{ident}, {ident}], iterator_types = [{', '.join(['"parallel"'] * len(shape))}]}} ins({of} : {tensor(shape, kind)}) outs(%e{name} : {tensor(shape)}) {{
  ^bb0(%x: {kind}, %o: f32):
    %y = arith.extf %x : {kind} to f32
    linalg.yield %y : f32
  }} -> {tensor(shape)}"""

    return f"""func.func @f(%a: {tensor(left, kind)}, %b: {tensor(right, kind)}) -> {tensor((4, 5, 17))} {{
  %z = arith.constant 0.0 : f32{convert("ac", "%a", left)}{convert("bc", "%b", right)}{turn}
  %e = tensor.empty() : {tensor((4, 5, 17))}
  %f = linalg.fill ins(%z : f32) outs(%e : {tensor((4, 5, 17))}) -> {tensor((4, 5, 17))}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}} ins(%ac, {turned} : {tensor(left)}, {tensor((4, 33, 17))}) outs(%f : {tensor((4, 5, 17))}) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
{MULADD}
  }} -> {tensor((4, 5, 17))}
  return %r : {tensor((4, 5, 17))}
}}"""


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("order", [None, "[0, 2, 1]"])
@pytest.mark.parametrize("batch_of_left", [True, False])
def test_operands_that_are_converted_for_a_product_are_converted_in_its_loops(rng, kind, order, batch_of_left):
    text = values.check(converted(kind, order, batch_of_left), PASS, rng, tol=1e-4)
    loop = text[text.index("scf.for"):]
    assert loop.count("arith.extf") == 1 + batch_of_left and text.count("arith.extf") == 2, "one for every batch stays before the loop"
