/* first: where the largest or smallest element of a row is.
 *
 *     %m = max of %x                                                       %m = max of %x
 *     %a = %x == %m, or %x is NaN                                          %u = 0, 2^-24, 2*2^-24 … along the row
 *     %i = 0, 1, 2 … along the row                                   ==>   %f = maximum(1 if %x is not such an element, otherwise 0, %u)
 *     %r = min of (%i where %a, otherwise the length)                      %r = 2^24 * min of %f
 *
 * NumPy's argmax and argmin are written so.  Masks and places of all elements would be tensors of their own, made by six operations.
 * Below 1 the places are exact in f32, and an element that is not looked for gives 1, so the rest is one operation and a minimum.
 *
 * If a row has a NaN, %m is NaN, and the first NaN is looked for; otherwise the first element that equals %m.  Both are one comparison
 * with numbers for each row:
 *
 *     %x is not looked for   <=>   minimum(%x, %s) < %t        %s, %t = infinity, %m; of a NaN the largest number, infinity
 *
 * because then no element is larger than %m, or no number reaches infinity.  The smallest element is found the same way with signs
 * changed.  An integer is compared with %m.
 *
 * Columns of a matrix of floats are turned first: then what is known of each lies in its partition.  The steps before are erased
 * where nothing else reads them.  Exact; linear in ops.
 */
#include <float.h>
#include <math.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

enum { PLACES = 1 << 24 }; /* the places of more are not exact in f32 */

struct first {
  MlirOperation op;  /* the minimum of places */
  MlirValue x, most; /* the elements, and the largest or smallest of each row */
  MlirAffineMap most_map;
  struct structured s; /* of op */
  int loop;            /* that is reduced */
  bool is_float, is_max;
};

/* ---- what is one -------------------------------------------------------------------------------------------------------- */

/* The only operation in the body of op, on all of its arguments. Null if there are others. */
static MlirOperation only_operation(MlirOperation op) {
  MlirOperation def = ir_defining_op(mlirOperationGetOperand(mlirBlockGetTerminator(ir_body(op)), 0));
  if (mlirOperationIsNull(def) || !mlirBlockEqual(mlirOperationGetBlock(def), ir_body(op)) ||
      !mlirOperationEqual(mlirBlockGetFirstOperation(ir_body(op)), def))
    return (MlirOperation){NULL};
  return def;
}

static bool is_argument(MlirOperation op, MlirOperation inside, int operand, int argument) {
  return mlirValueEqual(mlirOperationGetOperand(inside, operand), mlirBlockGetArgument(ir_body(op), argument));
}

/* Reads v, made by an element-wise generic of n inputs and one operation of this name on them in order; *predicate may be NULL. */
static MlirOperation made_by(struct pass_run *run, MlirValue v, const char *name, int n, int64_t *predicate,
                             struct structured *s) {
  MlirOperation op = ir_defining_op(v), inside;

  if (mlirOperationIsNull(op) || !ir_is(op, "linalg.generic") || !prepare_may_change(run, op, s) ||
      s->kind != SK_ELEMENTWISE || s->n_inputs != n || !mlirAffineMapIsIdentity(s->maps[n]))
    return (MlirOperation){NULL};
  inside = only_operation(op);
  if (mlirOperationIsNull(inside) || !ir_is(inside, name))
    return (MlirOperation){NULL};
  for (int k = 0; k < n; k++)
    if (!is_argument(op, inside, k, k))
      return (MlirOperation){NULL};
  if (predicate)
    *predicate = ir_int_attr(inside, "predicate", -1);
  return op;
}

/* True if v is x != x: where x is NaN. */
static bool is_nan_of(struct pass_run *run, MlirValue v, MlirValue x) {
  struct structured s;
  int64_t predicate;
  MlirOperation op = made_by(run, v, "arith.cmpf", 2, &predicate, &s);
  return !mlirOperationIsNull(op) && predicate == IR_FLT_UNE && mlirValueEqual(mlirOperationGetOperand(op, 0), x) &&
         mlirValueEqual(mlirOperationGetOperand(op, 1), x) && mlirAffineMapIsIdentity(s.maps[0]) &&
         mlirAffineMapIsIdentity(s.maps[1]);
}

/* Reads where x equals `most`, which has the loops that are not reduced. */
static bool read_equal(struct pass_run *run, MlirValue v, struct first *f) {
  struct structured s;
  int64_t predicate;
  MlirOperation op = made_by(run, v, f->is_float ? "arith.cmpf" : "arith.cmpi", 2, &predicate, &s);

  if (mlirOperationIsNull(op) || predicate != (f->is_float ? (int)IR_FLT_OEQ : (int)IR_INT_EQ) ||
      !mlirAffineMapIsIdentity(s.maps[0]) || s.n_loops != f->s.n_loops)
    return false;
  f->x = mlirOperationGetOperand(op, 0);
  f->most = mlirOperationGetOperand(op, 1);
  f->most_map = s.maps[1];
  int next = 0; /* of the loops that are not reduced, all in order */
  for (int r = 0; r < mlirAffineMapGetNumResults(s.maps[1]); r++) {
    const int loop = structured_map_loop(s.maps[1], r);
    next += next == f->loop;
    if (loop < 0)
      continue;
    if (loop != next && s.extents[loop] != 1)
      return false;
    next = loop + 1;
  }
  next += next == f->loop;
  return next >= s.n_loops;
}

/* Reads where x equals `most` or is NaN. */
static bool read_mask(struct pass_run *run, MlirValue v, struct first *f) {
  struct structured s;
  MlirOperation both = made_by(run, v, "arith.ori", 2, NULL, &s);

  f->is_float = !mlirOperationIsNull(both);
  if (!f->is_float)
    return read_equal(run, v, f);
  return mlirAffineMapIsIdentity(s.maps[0]) && mlirAffineMapIsIdentity(s.maps[1]) &&
         read_equal(run, mlirOperationGetOperand(both, 0), f) && is_nan_of(run, mlirOperationGetOperand(both, 1), f->x);
}

/* True if the fill starts the largest or smallest from where any element is as large or as small. */
static bool starts_from_end(MlirValue init, bool is_max) {
  MlirOperation fill = ir_defining_op(init), def;
  if (mlirOperationIsNull(fill) || !ir_is(fill, "linalg.fill"))
    return false;
  def = ir_defining_op(mlirOperationGetOperand(fill, 0));
  if (mlirOperationIsNull(def) || !ir_is(def, "arith.constant"))
    return false;
  MlirAttribute v = ir_attr(def, "value");
  return mlirAttributeIsAFloat(v) && mlirFloatAttrGetValueDouble(v) == (is_max ? -INFINITY : INFINITY);
}

/* True if `most` is the largest or smallest of x along the loop; NaN if there is one. */
static bool read_most(struct first *f) {
  MlirValue v = f->most;
  MlirOperation op = ir_defining_op(v);
  struct structured s;

  while (!mlirOperationIsNull(op) && (ir_is(op, "tensor.expand_shape") || ir_is(op, "tensor.collapse_shape")))
    op = ir_defining_op(mlirOperationGetOperand(op, 0));
  if (!f->is_float)
    return true; /* what it is does not matter where it is compared with as it is */
  if (mlirOperationIsNull(op) || !ir_is(op, "linalg.generic") || !structured_read(op, &s) || s.kind != SK_REDUCTION ||
      s.n_inputs != 1 || s.n_inits != 1 || !mlirAffineMapIsIdentity(s.maps[0]) ||
      !mlirValueEqual(mlirOperationGetOperand(op, 0), f->x) || !prepare_keeps_order(&s))
    return false;
  for (int l = 0; l < s.n_loops; l++)
    if (s.reduction[l] != (l == f->loop))
      return false;
  f->is_max = prepare_is_plain(op, "arith.maximumf");
  return (f->is_max || prepare_is_plain(op, "arith.minimumf")) &&
         starts_from_end(mlirOperationGetOperand(op, 1), f->is_max);
}

/* True for rows, and for columns of a matrix of floats, which are turned.  Of several matrices each would be turned on its own: their columns
 * stay as they are. */
static bool are_rows(const struct first *f) {
  int64_t before = 1;
  for (int l = 0; l < f->loop; l++)
    before *= f->s.extents[l];
  return f->loop == f->s.n_loops - 1 || (f->is_float && before == 1);
}

/* Reads op: the least of the places where a mask is true, of the length elsewhere. */
static bool read_first(struct pass_run *run, MlirOperation op, struct first *f) {
  struct prepare_places places;
  struct structured s;

  *f = (struct first){.op = op, .loop = -1};
  if (!ir_is(op, "linalg.generic") || !prepare_may_change(run, op, &f->s) || f->s.kind != SK_REDUCTION ||
      f->s.n_inputs != 1 || !mlirAffineMapIsIdentity(f->s.maps[0]) || !prepare_is_plain(op, "arith.minsi"))
    return false;
  for (int l = 0; l < f->s.n_loops; l++)
    if (f->s.reduction[l]) {
      if (f->loop >= 0)
        return false;
      f->loop = l;
    }
  const int64_t n = f->s.extents[f->loop];
  MlirValue v = mlirOperationGetOperand(op, 0);
  MlirOperation select = ir_defining_op(v);
  if (n < 2 || n > PLACES || mlirOperationIsNull(select) || !ir_is(select, "linalg.generic") ||
      !prepare_may_change(run, select, &s) || s.kind != SK_ELEMENTWISE || s.n_inputs != 2 ||
      !mlirAffineMapIsIdentity(s.maps[0]) || !mlirAffineMapIsIdentity(s.maps[1]) || !mlirAffineMapIsIdentity(s.maps[2]))
    return false;
  MlirOperation inside = only_operation(select);
  int64_t other = 0, init = 0;
  MlirOperation fill = ir_defining_op(mlirOperationGetOperand(op, 1));
  if (mlirOperationIsNull(inside) || !ir_is(inside, "arith.select") || !is_argument(select, inside, 0, 0) ||
      !is_argument(select, inside, 1, 1) || !ir_int_constant(mlirOperationGetOperand(inside, 2), &other) ||
      other != n || mlirOperationIsNull(fill) || !ir_is(fill, "linalg.fill") ||
      !ir_int_constant(mlirOperationGetOperand(fill, 0), &init) || init < n)
    return false;
  if (!prepare_read_places(mlirOperationGetOperand(select, 1), &places) || places.constant)
    return false;
  for (int l = 0; l < f->s.n_loops; l++)
    if (places.factor[l] != (l == f->loop))
      return false;
  return read_mask(run, mlirOperationGetOperand(select, 0), f) && read_most(f) && are_rows(f);
}

/* ---- the change --------------------------------------------------------------------------------------------------------- */

/* Of a float type, the largest number. */
static double largest(MlirType t) {
  return mlirTypeIsABF16(t) ? 0x1.fep127 : mlirTypeIsAF16(t) ? 65504 : FLT_MAX;
}

/* Numbers for each row, from that which is NaN if the row has one: for such rows, and for others. */
struct numbers {
  MlirValue nan, other; /* other is null: the number itself */
};

static MlirValue number(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct numbers *n = user;
  return ir_select(b, ir_cmpf(b, IR_FLT_UNE, args[0], args[0]), n->nan, mlirValueIsNull(n->other) ? args[0] : n->other);
}

static MlirValue numbers_of(struct ir_builder *b, MlirValue v, struct numbers n) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  const MlirAffineMap maps[] = {ir_identity_map(b, rank), ir_identity_map(b, rank)};
  return ir_result(ir_linalg_generic(b, &(struct ir_generic){.n_loops = rank,
                                                             .n_inputs = 1,
                                                             .inputs = &v,
                                                             .maps = maps,
                                                             .output = ir_empty_of(b, mlirValueGetType(v)),
                                                             .body = number,
                                                             .user = &n}));
}

/* The arguments: x, then a place, then numbers for each row. */
static MlirValue place_of_float(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct first *f = user;
  MlirValue v = ir_binary(b, f->is_max ? "arith.minimumf" : "arith.maximumf", args[0], args[2]);
  MlirValue is_other = ir_cmpf(b, f->is_max ? IR_FLT_OLT : IR_FLT_OGT, v, args[3]);
  return ir_binary(b, "arith.maximumf", ir_op1(b, "arith.uitofp", mlirValueGetType(args[1]), 1, &is_other), args[1]);
}

static MlirValue place_of_integer(struct ir_builder *b, MlirValue const *args, void *user) {
  MlirValue is_other = ir_cmpi(b, IR_INT_NE, args[0], args[2]);
  (void)user;
  return ir_binary(b, "arith.maximumf", ir_op1(b, "arith.uitofp", mlirValueGetType(args[1]), 1, &is_other), args[1]);
}

static MlirValue least(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  return ir_binary(b, "arith.minimumf", args[1], args[0]);
}

/* The place, or the length if nothing was found, as for an integer that no element equals. */
struct result {
  MlirType type;
  int64_t length;
};

static MlirValue as_integer(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct result *r = user;
  MlirType f32 = mlirValueGetType(args[0]);
  MlirValue v = ir_binary(b, "arith.mulf", args[0], ir_float(b, f32, PLACES));
  v = ir_binary(b, "arith.minimumf", v, ir_float(b, f32, (double)r->length));
  return ir_op1(b, "arith.fptosi", r->type, 1, &v);
}

static MlirValue furthest(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct first *f = user;
  return ir_binary(b, f->is_max ? "arith.maximumf" : "arith.minimumf", args[1], args[0]);
}

/* The map of a value without the loop, for loops of which that one is the last. */
static MlirAffineMap turned_map(struct ir_builder *b, const struct first *f, MlirAffineMap map) {
  int64_t results[STRUCTURED_LOOPS_MAX];
  const int n = (int)mlirAffineMapGetNumResults(map);
  for (int r = 0; r < n; r++) {
    const int loop = structured_map_loop(map, r);
    results[r] = loop < 0 ? IR_CONST(0) : loop - (loop > f->loop);
  }
  return ir_map(b, f->s.n_loops, n, results);
}

/* Columns become rows: the elements are turned, and their largest or smallest is that of rows. */
static void turn(struct ir_builder *b, struct first *f) {
  const int n = f->s.n_loops, last = n - 1;
  int64_t order[STRUCTURED_LOOPS_MAX], dims[STRUCTURED_LOOPS_MAX], at[STRUCTURED_LOOPS_MAX];

  for (int l = 0; l < n; l++) {
    order[l] = l < f->loop ? l : l < last ? l + 1 : f->loop;
    dims[l] = f->s.extents[order[l]];
    at[l] = l;
  }
  f->x = ir_result(ir_transpose(b, f->x, n, order));
  f->s.maps[1] = turned_map(b, f, f->s.maps[1]);
  f->most_map = ir_map(b, n, last, at);
  for (int l = 0; l < n; l++) {
    f->s.extents[l] = dims[l];
    f->s.reduction[l] = l == last;
  }
  f->loop = last;
  MlirType t = ir_value_element(f->x);
  MlirValue end = ir_float(b, t, f->is_max ? -INFINITY : INFINITY);
  MlirAffineMap maps[] = {f->s.maps[0], f->most_map};
  f->most = ir_result(
      ir_linalg_generic(b, &(struct ir_generic){.n_loops = n,
                                                .reduction = f->s.reduction,
                                                .n_inputs = 1,
                                                .inputs = &f->x,
                                                .maps = maps,
                                                .output = ir_fill(b, end, ir_empty_of(b, ir_tensor_of(t, last, dims))),
                                                .body = furthest,
                                                .user = f}));
}

/* The number of an element in row-major order, divided by PLACES; *user is the length of a row. */
static MlirValue place(struct ir_builder *b, MlirValue const *args, void *user) {
  MlirType f32 = mlirValueGetType(args[0]);
  MlirValue first = ir_binary(b, "arith.muli", ir_linalg_index(b, 0), ir_index(b, *(const int64_t *)user)),
            at = ir_binary(b, "arith.addi", first, ir_linalg_index(b, 1));
  at = ir_op1(b, "arith.index_cast", mlirIntegerTypeGet(b->ctx, 32), 1, &at);
  at = ir_op1(b, "arith.sitofp", f32, 1, &at);
  return ir_binary(b, "arith.mulf", at, ir_float(b, f32, 1.0 / PLACES));
}

/* The places along the loop, each divided by PLACES, for so many loops: [1, n, 1].  Few are a constant; of more each partition counts a
 * part. */
static MlirValue places_of(struct ir_builder *b, const struct first *f) {
  enum { CONSTANT_MAX = 1024, ONE_MAX = 4096 }; /* elements; one partition counts up to ONE_MAX */
  float few[CONSTANT_MAX];
  const int64_t n = f->s.extents[f->loop], rows = n > ONE_MAX ? NISA_PARTITIONS : 1, each = (n + rows - 1) / rows,
                all = rows * each;
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const MlirAffineMap map = ir_identity_map(b, 2);
  MlirType f32 = mlirF32TypeGet(b->ctx);

  for (int l = 0; l < f->s.n_loops; l++)
    dims[l] = l == f->loop ? n : 1;
  for (int64_t i = 0; i < n && n <= CONSTANT_MAX; i++)
    few[i] = (float)i / PLACES;
  if (n <= CONSTANT_MAX)
    return ir_constant_of(b, mlirDenseElementsAttrFloatGet(ir_tensor_of(f32, f->s.n_loops, dims), (intptr_t)n, few));
  MlirValue v = ir_result(
      ir_linalg_generic(b, &(struct ir_generic){.n_loops = 2,
                                                .maps = &map,
                                                .output = ir_empty_of(b, ir_tensor_of(f32, 2, (int64_t[]){rows, each})),
                                                .body = place,
                                                .user = (void *)(uintptr_t)&each}));
  if (all > n) {
    const struct ir_slice s = {.rank = 1, .offsets = (int64_t[]){0}, .sizes = &n};
    v = ir_extract_slice(b, edit_reshape(b, v, 1, &all), &s, ir_tensor_of(f32, 1, &n));
  }
  return edit_reshape(b, v, f->s.n_loops, dims);
}

/* 1 for each element that is not looked for, its place for others. */
static MlirValue mark(struct ir_builder *b, const struct first *f) {
  MlirValue inputs[4] = {f->x, places_of(b, f), f->most};
  MlirAffineMap maps[5] = {ir_identity_map(b, f->s.n_loops), {NULL}, f->most_map, f->most_map};
  int64_t at[STRUCTURED_LOOPS_MAX];
  const int n = f->is_float ? 4 : 3;

  for (int l = 0; l < f->s.n_loops; l++)
    at[l] = l == f->loop ? l : IR_CONST(0);
  maps[1] = ir_map(b, f->s.n_loops, f->s.n_loops, at);
  maps[n] = maps[0];
  if (f->is_float) {
    MlirType t = ir_value_element(f->x);
    const double sign = f->is_max ? 1 : -1;
    MlirValue end = ir_float(b, t, sign * INFINITY), most = ir_float(b, t, sign * largest(t));
    inputs[2] = numbers_of(b, f->most, (struct numbers){most, end});
    inputs[3] = numbers_of(b, f->most, (struct numbers){end, {NULL}});
  }
  return ir_result(ir_linalg_generic(
      b,
      &(struct ir_generic){.n_loops = f->s.n_loops,
                           .n_inputs = n,
                           .inputs = inputs,
                           .maps = maps,
                           .output = ir_empty_of(b, ir_tensor_of(mlirF32TypeGet(b->ctx), f->s.n_loops, f->s.extents)),
                           .body = f->is_float ? place_of_float : place_of_integer,
                           .user = (void *)(uintptr_t)f}));
}

static MlirValue rewrite(struct pass_run *run, struct first *f) {
  struct ir_builder b = edit_before(run, f->op);
  if (f->loop < f->s.n_loops - 1)
    turn(&b, f);
  MlirType f32 = mlirF32TypeGet(b.ctx);
  struct result result = {ir_value_element(ir_result(f->op)), f->s.extents[f->loop]};
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(ir_result(f->op), STRUCTURED_LOOPS_MAX, dims);
  MlirValue marked = mark(&b, f), one = ir_float(&b, f32, 1);
  MlirOperation reduced = ir_linalg_generic(
      &b, &(struct ir_generic){.n_loops = f->s.n_loops,
                               .reduction = f->s.reduction,
                               .n_inputs = 1,
                               .inputs = &marked,
                               .maps = f->s.maps,
                               .output = ir_fill(&b, one, ir_empty_of(&b, ir_tensor_of(f32, rank, dims))),
                               .body = least});
  MlirValue v = ir_result(reduced);
  const MlirAffineMap maps[] = {ir_identity_map(&b, rank), ir_identity_map(&b, rank)};
  return ir_result(
      ir_linalg_generic(&b, &(struct ir_generic){.n_loops = rank,
                                                 .n_inputs = 1,
                                                 .inputs = &v,
                                                 .maps = maps,
                                                 .output = ir_empty_of(&b, ir_tensor_of(result.type, rank, dims)),
                                                 .body = as_integer,

                                                 .user = &result}));
}

static void remark(struct pass_run *run, const struct first *f) {
  const enum target t = run->target;
  const int64_t columns = f->s.extents[f->loop], rows = prepare_elements(f->x) / columns;
  const double one = price_rows_ns(t, SIM_COST_VECTOR_SCALAR, rows, columns),
               two = price_rows_ns(t, SIM_COST_VECTOR_TENSOR, rows, columns);
  struct remark *r =
      pass_remark(run, f->op, RULE_FIRST_PLACE, "the places of elements that are not %s are 1, others below it",
                  f->is_float ? f->is_max ? "the largest" : "the smallest" : "looked for");
  price_chosen(r, 2 * one + two);
  price_instead(r, "a mask and a place for each element", (f->is_float ? 2 * one + 3 * two : 2 * one + two) + two,
                "each would be a tensor that another operation makes");
}

/* None of these is erased with another: what is erased are masks and places. */
static bool is_least(MlirOperation op, void *user) {
  struct structured s;
  (void)user;
  return ir_is(op, "linalg.generic") && structured_read(op, &s) && s.kind == SK_REDUCTION && s.n_inputs == 1 &&
         s.n_inits == 1 && prepare_is_plain(op, "arith.minsi");
}

/* Erases op and the masks and places that only it reads. */
static void erase_steps(MlirOperation op, int depth) {
  enum { DEPTH_MAX = 3 }; /* the choice, the two masks together, each of them */
  MlirOperation from[STRUCTURED_OPERANDS_MAX];
  struct structured s;

  if (mlirOperationIsNull(op) || !ir_is(op, "linalg.generic") || !structured_read(op, &s) ||
      (depth && s.kind != SK_ELEMENTWISE) || ir_is_used(ir_result(op)))
    return;
  for (int o = 0; o < s.n_inputs; o++) {
    from[o] = ir_defining_op(mlirOperationGetOperand(op, o));
    for (int k = 0; k < o; k++)
      if (!mlirOperationIsNull(from[o]) && !mlirOperationIsNull(from[k]) && mlirOperationEqual(from[o], from[k]))
        from[o] = (MlirOperation){NULL};
  }
  mlirOperationDestroy(op);
  for (int o = 0; depth < DEPTH_MAX && o < s.n_inputs; o++)
    erase_steps(from[o], depth + 1);
}

void prepare_first(struct pass_run *run) {
  const struct ir_ops all = ir_collect(run->arena, run->module, is_least, NULL);

  for (int i = 0; i < all.n; i++) {
    struct first f;
    if (!read_first(run, all.v[i], &f))
      continue;
    pass_step(run, all.v[i], "first-place");
    remark(run, &f);
    mlirValueReplaceAllUsesOfWith(ir_result(all.v[i]), rewrite(run, &f));
    erase_steps(all.v[i], 0);
  }
}
