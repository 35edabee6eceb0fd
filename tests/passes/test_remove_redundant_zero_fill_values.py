"""remove-redundant-zero-fill keeps what a module computes when empty tensors count as zero."""
from support import values

PASS = "remove-redundant-zero-fill"


def test_a_matmul_that_shares_its_empty_tensor_starts_at_zero(rng):
    """The exponential may be computed in the tensor's memory; the matmul must not start from that."""
    t = "tensor<9x9xf32>"
    text = f"""func.func @f(%a: {t}) -> ({t}, {t}) {{
      %z = arith.constant -0.0 : f32
      %e = tensor.empty() : {t}
      %x = linalg.exp ins(%a : {t}) outs(%e : {t}) -> {t}
      %f = linalg.fill ins(%z : f32) outs(%e : {t}) -> {t}
      %m = linalg.matmul ins(%a, %x : {t}, {t}) outs(%f : {t}) -> {t}
      %n = linalg.matmul ins(%x, %a : {t}, {t}) outs(%f : {t}) -> {t}
      return %m, %n : {t}, {t}
    }}"""
    assert "linalg.fill" not in values.check(text, PASS, rng, tol=1e-4)


def test_a_zero_that_is_a_factor_or_overwrites_contents_is_kept(rng):
    t = "tensor<5x5xf32>"
    text = f"""func.func @f(%a: {t}, %b: {t}) -> ({t}, {t}) {{
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : {t}
      %f = linalg.fill ins(%z : f32) outs(%e : {t}) -> {t}
      %g = linalg.fill ins(%z : f32) outs(%b : {t}) -> {t}
      %m = linalg.matmul ins(%a, %f : {t}, {t}) outs(%a : {t}) -> {t}
      %n = linalg.matmul ins(%a, %b : {t}, {t}) outs(%g : {t}) -> {t}
      return %m, %n : {t}, {t}
    }}"""
    assert values.check(text, PASS, rng, tol=1e-4).count("linalg.fill") == 2


def test_a_fill_inside_a_loop_is_kept(rng):
    t = "tensor<6x6xf32>"
    text = f"""func.func @f(%a: {t}) -> {t} {{
      %z = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %e = tensor.empty() : {t}
      %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a) -> ({t}) {{
        %f = linalg.fill ins(%z : f32) outs(%e : {t}) -> {t}
        %m = linalg.matmul ins(%a, %x : {t}, {t}) outs(%f : {t}) -> {t}
        scf.yield %m : {t}
      }}
      return %r : {t}
    }}"""
    assert "linalg.fill" not in values.check(text, PASS, rng, tol=1e-4)
