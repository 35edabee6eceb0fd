/* places: what the elements of a value say about where they are.
 *
 *     %i = linalg.generic { yield index_cast(linalg.index 0) }
 *     %j = linalg.generic { yield index_cast(linalg.index 1) }         the places j - i
 *     %d = linalg.sub ins(%j, %i)
 *
 * Masks of triangles and diagonals begin like this.  The places are read through sums and differences of values of the same
 * dimensions; anything else has none.  Each value is read once for each use: the depth is bounded.
 */
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

enum { DEPTH_MAX = 8 };

static void add(struct prepare_places *p, const struct prepare_places *x, int64_t sign) {
  p->constant += sign * x->constant;
  p->n_steps += x->n_steps;
  for (int l = 0; l < STRUCTURED_LOOPS_MAX; l++)
    p->factor[l] += sign * x->factor[l];
}

static bool read_value(MlirValue v, int n_loops, int depth, struct prepare_places *p);

/* A scalar in the body of op. */
static bool read_scalar(MlirOperation op, const struct structured *s, MlirValue v, int depth,
                        struct prepare_places *p) {
  struct prepare_places x = {0}, y = {0};

  *p = (struct prepare_places){0};
  if (depth > DEPTH_MAX)
    return false;
  if (ir_int_constant(v, &p->constant))
    return p->constant >= INT32_MIN && p->constant <= INT32_MAX;
  if (mlirValueIsABlockArgument(v)) {
    const int k = (int)mlirBlockArgumentGetArgNumber(v);
    return mlirBlockEqual(mlirBlockArgumentGetOwner(v), ir_body(op)) && k < s->n_inputs &&
           mlirAffineMapIsIdentity(s->maps[k]) && read_value(mlirOperationGetOperand(op, k), s->n_loops, depth + 1, p);
  }
  MlirOperation def = ir_defining_op(v);
  if (ir_is(def, "linalg.index")) {
    p->factor[ir_int_attr(def, "dim", 0)] = 1;
    return true;
  }
  if (ir_is(def, "arith.index_cast"))
    return read_scalar(op, s, mlirOperationGetOperand(def, 0), depth + 1, p);
  const bool is_sub = ir_is(def, "arith.subi");
  if (!is_sub && !ir_is(def, "arith.addi"))
    return false;
  if (!read_scalar(op, s, mlirOperationGetOperand(def, 0), depth + 1, &x) ||
      !read_scalar(op, s, mlirOperationGetOperand(def, 1), depth + 1, &y))
    return false;
  add(p, &x, 1);
  add(p, &y, is_sub ? -1 : 1);
  return true;
}

static bool read_value(MlirValue v, int n_loops, int depth, struct prepare_places *p) {
  MlirOperation op = ir_defining_op(v);
  struct prepare_places x = {0}, y = {0};
  struct structured s;

  *p = (struct prepare_places){0};
  if (depth > DEPTH_MAX || mlirOperationIsNull(op) || !structured_read(op, &s) || !structured_is_elementwise(&s) ||
      s.n_loops != n_loops || s.n_inits != 1 || !mlirAffineMapIsIdentity(s.maps[s.n_inputs]) || prepare_has_knob(v) ||
      !mlirTypeIsAInteger(ir_value_element(v)) || mlirIntegerTypeGetWidth(ir_value_element(v)) != 32)
    return false;
  if (ir_is(op, "linalg.generic")) {
    if (!read_scalar(op, &s, mlirOperationGetOperand(mlirBlockGetTerminator(ir_body(op)), 0), depth + 1, p))
      return false;
  } else {
    const bool is_sub = ir_is(op, "linalg.sub");
    if ((!is_sub && !ir_is(op, "linalg.add")) || !read_value(mlirOperationGetOperand(op, 0), n_loops, depth + 1, &x) ||
        !read_value(mlirOperationGetOperand(op, 1), n_loops, depth + 1, &y))
      return false;
    add(p, &x, 1);
    add(p, &y, is_sub ? -1 : 1);
  }
  p->n_steps++;
  return true;
}

bool prepare_read_places(MlirValue v, struct prepare_places *p) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  int64_t most;

  if (rank < 1 || !read_value(v, rank, 0, p))
    return false;
  most = p->constant < 0 ? -p->constant : p->constant;
  for (int d = 0; d < rank; d++)
    most += (p->factor[d] < 0 ? -p->factor[d] : p->factor[d]) * dims[d];
  return most <= INT32_MAX; /* no sum wraps around */
}

bool prepare_read_mask(MlirValue v, struct prepare_places *p, int64_t *predicate) {
  MlirOperation op = ir_defining_op(v);
  struct prepare_places x = {0}, y = {0};
  struct structured s;

  if (mlirOperationIsNull(op) || !ir_is(op, "linalg.generic") || !structured_read(op, &s) ||
      !structured_is_elementwise(&s) || s.n_inits != 1 || !mlirAffineMapIsIdentity(s.maps[s.n_inputs]) ||
      prepare_has_knob(v))
    return false;
  MlirOperation compare = ir_defining_op(mlirOperationGetOperand(mlirBlockGetTerminator(ir_body(op)), 0));
  if (mlirOperationIsNull(compare) || !ir_is(compare, "arith.cmpi"))
    return false;
  if (!read_scalar(op, &s, mlirOperationGetOperand(compare, 0), 0, &x) ||
      !read_scalar(op, &s, mlirOperationGetOperand(compare, 1), 0, &y))
    return false;
  *p = x;
  add(p, &y, -1);
  *predicate = ir_int_attr(compare, "predicate", -1);
  return true;
}
