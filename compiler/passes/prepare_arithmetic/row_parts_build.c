/* row_parts_build: rewrites operations on few long rows, see row_parts.c. */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/arena.h"
#include "base/table.h"
#include "passes/lib/edit.h"
#include "passes/prepare_arithmetic/row_parts.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

struct build {
  struct pass_run *run;
  const struct row_parts *g;
  int64_t partitions;
  MlirValue same; /* true where row and column are parts of the same row; null until it is needed */
  struct table body,
      rests; /* of values, by what they are reshapes of: in parts, and the tails, or a number for each part in `body` */
  struct table fixed; /* the same of values that are not the group's: columns, and numbers for each row */
};

static void *boxed(struct build *x, MlirValue v) {
  MlirValue *box = arena_alloc(x->run->arena, sizeof *box);
  *box = v;
  return box;
}

static MlirValue keep(struct build *x, struct table *t, MlirValue key, MlirValue v) {
  table_put(t, key.ptr, boxed(x, v));
  return v;
}

static MlirValue look(const struct table *t, MlirValue key) {
  const MlirValue *v = table_get(t, key.ptr);
  return v ? *v : (MlirValue){NULL};
}

/* ---- values from outside ------------------------------------------------------------------------------------------------- */

/* Columns from `first` on of v, a matrix. */
static MlirValue columns_of(struct ir_builder *b, MlirValue v, int64_t first, int64_t n) {
  int64_t dims[2];
  const int rank = ir_shape(v, 2, dims);
  assert(rank == 2);
  (void)rank;
  if (first == 0 && n == dims[1])
    return v;
  dims[1] = n;
  const struct ir_slice s = {.rank = 2, .offsets = (int64_t[]){0, first}, .sizes = dims};
  return ir_extract_slice(b, v, &s, ir_tensor_of(ir_value_element(v), 2, dims));
}

/* [rows, n], a row of it for each part: [partitions, n].  DMA alone repeats it, which waits for nothing. */
static MlirValue for_each_part(struct build *x, struct ir_builder *b, MlirValue v, int64_t n) {
  const int64_t once[] = {x->g->rows, n}, all[] = {x->g->rows, x->g->each, n}, to[] = {x->partitions, n};
  v = edit_reshape(b, v, 2, once);
  v = ir_result(ir_broadcast(b, v, ir_empty_of(b, ir_tensor_of(ir_value_element(v), 3, all)), 1));
  return edit_reshape(b, v, 2, to);
}

/* Rows from outside, in parts. */
static MlirValue body_of_rows(struct build *x, struct ir_builder *b, MlirValue v) {
  const struct row_parts *g = x->g;
  const int64_t cut[] = {g->rows, g->each, g->length}, to[] = {x->partitions, g->length};
  const bool has_more = mlirShapedTypeGetRank(mlirValueGetType(v)) > 2;
  v = edit_reshape(b, v, 2, (int64_t[]){g->rows, g->columns});
  v = columns_of(b, v, 0, g->each * g->length);
  if (!has_more || g->rows == 1)
    return edit_reshape(b, v, 2, to);
  /* each row is cut where it is: what is one row only as a whole has no tiles */
  MlirType element = ir_value_element(v);
  v = ir_expand_shape(b, v, ir_tensor_of(element, 3, cut), 2, (int[]){1, 3}, 3, cut);
  return ir_collapse_shape(b, v, ir_tensor_of(element, 2, to), 2, (int[]){2, 3});
}

static MlirValue tail_of_rows(struct build *x, struct ir_builder *b, MlirValue v) {
  const struct row_parts *g = x->g;
  v = edit_reshape(b, v, 2, (int64_t[]){g->rows, g->columns});
  return for_each_part(x, b, columns_of(b, v, g->each * g->length, g->tail), g->tail);
}

/* A value for each column, for each row. */
static MlirValue body_of_columns(struct build *x, struct ir_builder *b, MlirValue v) {
  const struct row_parts *g = x->g;
  const int64_t once[] = {g->each, g->length}, all[] = {g->rows, g->each, g->length}, to[] = {x->partitions, g->length};
  v = edit_reshape(b, v, 2, (int64_t[]){1, g->columns});
  v = edit_reshape(b, columns_of(b, v, 0, g->each * g->length), 2, once);
  if (g->rows > 1)
    v = ir_result(ir_broadcast(b, v, ir_empty_of(b, ir_tensor_of(ir_value_element(v), 3, all)), 0));
  return edit_reshape(b, v, 2, to);
}

/* ---- operands ------------------------------------------------------------------------------------------------------------ */

struct operand {
  MlirValue v;
  MlirAffineMap map;
};

static struct operand operand_of(struct build *x, struct ir_builder *b, MlirValue v, struct row_parts_has has,
                                 bool is_tail) {
  const int64_t matrix[] = {0, 1}, number[] = {0, IR_CONST(0)}, row[] = {IR_CONST(0), 1},
                one[] = {IR_CONST(0), IR_CONST(0)};
  MlirValue key = row_parts_origin(v), made;
  struct table *t = is_tail && has.columns ? &x->rests : &x->body;

  if (has.rows && has.columns) {
    made = look(t, key);
    if (mlirValueIsNull(made))
      made = keep(x, t, key, is_tail ? tail_of_rows(x, b, v) : body_of_rows(x, b, v));
    return (struct operand){made, ir_map(b, 2, 2, matrix)};
  }
  if (has.columns && is_tail) {
    v = edit_reshape(b, v, 2, (int64_t[]){1, x->g->columns});
    return (struct operand){columns_of(b, v, x->g->each * x->g->length, x->g->tail), ir_map(b, 2, 2, row)};
  }
  if (has.columns) {
    made = look(&x->fixed, key);
    if (mlirValueIsNull(made))
      made = keep(x, &x->fixed, key, body_of_columns(x, b, v));
    return (struct operand){made, ir_map(b, 2, 2, matrix)};
  }
  made = look(&x->body, key); /* the group's, also of one row */
  if (mlirValueIsNull(made) && has.rows) {
    made = look(&x->fixed, key);
    if (mlirValueIsNull(made))
      made = keep(x, &x->fixed, key, for_each_part(x, b, v, 1));
  }
  if (!mlirValueIsNull(made))
    return (struct operand){made, ir_map(b, 2, 2, number)};
  return (struct operand){edit_reshape(b, v, 2, (int64_t[]){1, 1}), ir_map(b, 2, 2, one)};
}

/* ---- operations ------------------------------------------------------------------------------------------------------------ */

/* Makes op compute `columns` of each part, in init. */
static MlirValue compute(struct build *x, struct ir_builder *b, MlirOperation op, const struct structured *s,
                         enum row_parts_kind kind, bool is_tail, MlirValue init) {
  MlirOperation made = mlirOperationClone(op);
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];
  const bool is_reduced = kind == PARTS_REDUCE;

  for (int o = 0; o < s->n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    const struct operand to = operand_of(x, b, v, row_parts_has_of(x->g, s, kind, o, v), is_tail);
    mlirOperationSetOperand(made, o, to.v);
    maps[o] = to.map;
  }
  mlirOperationSetOperand(made, s->n_inputs, init);
  mlirValueSetType(ir_result(made), mlirValueGetType(init));
  maps[s->n_inputs] = is_reduced ? ir_map(b, 2, 2, (int64_t[]){0, IR_CONST(0)}) : ir_identity_map(b, 2);
  if (ir_is(op, "linalg.generic")) {
    edit_set_maps(made, s->n_inputs + 1, maps);
    edit_set_iterators(made, 2, (bool[]){false, is_reduced});
  }
  return ir_result(ir_place(b, made));
}

static MlirValue combine(struct ir_builder *b, MlirValue const *args, void *user) {
  return ir_binary(b, user, args[1], args[0]);
}

static MlirValue combine_two(struct ir_builder *b, MlirValue const *args, void *user) {
  return ir_binary(b, user, args[0], args[1]);
}

static MlirValue pick(struct ir_builder *b, MlirValue const *args, void *user) {
  return ir_select(b, args[0], args[1], *(const MlirValue *)user);
}

static MlirValue start(struct ir_builder *b, MlirValue number, int64_t rows, int64_t columns) {
  return ir_fill(b, number, ir_empty_of(b, ir_tensor_of(mlirValueGetType(number), 2, (int64_t[]){rows, columns})));
}

static MlirValue is_equal(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  return ir_cmpf(b, IR_FLT_OEQ, args[0], args[1]);
}

/* True where row and column of [partitions, partitions] are parts of the same row. */
static MlirValue same_row(struct build *x, struct ir_builder *b) {
  const int64_t n = x->partitions, all[] = {n, n};
  float *row = arena_alloc(x->run->arena, (size_t)n * sizeof *row);
  MlirType f32 = mlirF32TypeGet(b->ctx),
           type[] = {ir_tensor_of(f32, 2, (int64_t[]){n, 1}), ir_tensor_of(f32, 2, (int64_t[]){1, n})};
  MlirValue inputs[2];

  if (!mlirValueIsNull(x->same))
    return x->same;
  for (int64_t i = 0; i < n; i++)
    row[i] = (float)(i / x->g->each);
  for (int k = 0; k < 2; k++)
    inputs[k] = ir_constant_of(b, mlirDenseElementsAttrFloatGet(type[k], (intptr_t)n, row));
  MlirAffineMap maps[] = {ir_map(b, 2, 2, (int64_t[]){0, IR_CONST(0)}), ir_map(b, 2, 2, (int64_t[]){IR_CONST(0), 1}),
                          ir_identity_map(b, 2)};
  MlirType mask = ir_tensor_of(mlirIntegerTypeGet(b->ctx, 1), 2, all);
  x->same = ir_result(ir_linalg_generic(b, &(struct ir_generic){.n_loops = 2,
                                                                .n_inputs = 2,
                                                                .inputs = inputs,
                                                                .maps = maps,
                                                                .output = ir_empty_of(b, mask),
                                                                .body = is_equal}));
  return x->same;
}

/* Combines the numbers v of all parts of each row, from `first` on; for each of the parts. */
static MlirValue across(struct build *x, struct ir_builder *b, MlirValue v, const char *combiner, MlirValue first) {
  const int64_t n = x->partitions, dims[] = {n, n};
  MlirType element = ir_value_element(v);
  MlirValue wide = prepare_copy(b, v, ir_map(b, 2, 2, (int64_t[]){0, IR_CONST(0)}), 2, dims),
            turned = ir_result(ir_transpose(b, wide, 2, (int64_t[]){1, 0}));

  if (x->g->rows > 1) {
    MlirValue neutral = prepare_neutral(b, element, combiner), inputs[] = {same_row(x, b), turned};
    MlirAffineMap maps[] = {ir_identity_map(b, 2), ir_identity_map(b, 2), ir_identity_map(b, 2)};
    turned =
        ir_result(ir_linalg_generic(b, &(struct ir_generic){.n_loops = 2,
                                                            .n_inputs = 2,
                                                            .inputs = inputs,
                                                            .maps = maps,
                                                            .output = ir_empty_of(b, ir_tensor_of(element, 2, dims)),
                                                            .body = pick,
                                                            .user = &neutral}));
  }
  MlirAffineMap maps[] = {ir_identity_map(b, 2), ir_map(b, 2, 2, (int64_t[]){0, IR_CONST(0)})};
  return ir_result(ir_linalg_generic(b, &(struct ir_generic){.n_loops = 2,
                                                             .reduction = (const bool[]){false, true},
                                                             .n_inputs = 1,
                                                             .inputs = &turned,
                                                             .maps = maps,
                                                             .output = start(b, first, n, 1),
                                                             .body = combine,
                                                             .user = (void *)(uintptr_t)combiner}));
}

static MlirValue combine_with(struct build *x, struct ir_builder *b, MlirValue v, MlirValue w, const char *combiner) {
  MlirValue inputs[] = {v, w};
  const MlirAffineMap same = ir_identity_map(b, 2);
  MlirAffineMap maps[] = {same, same, same};
  MlirType type = ir_tensor_of(ir_value_element(v), 2, (int64_t[]){x->partitions, 1});
  return ir_result(ir_linalg_generic(b, &(struct ir_generic){.n_loops = 2,
                                                             .n_inputs = 2,
                                                             .inputs = inputs,
                                                             .maps = maps,
                                                             .output = ir_empty_of(b, type),
                                                             .body = combine_two,
                                                             .user = (void *)(uintptr_t)combiner}));
}

/* A reduction: of each part, of the parts of each row, and with the tail. */
static void build_reduction(struct build *x, struct ir_builder *b, MlirOperation op, const struct structured *s) {
  const char *name = prepare_combiner(op, s);
  MlirType element = ir_value_element(ir_result(op));
  MlirValue first = mlirOperationGetOperand(ir_defining_op(mlirOperationGetOperand(op, s->n_inputs)), 0),
            neutral = prepare_neutral(b, element, name);
  MlirValue v = compute(x, b, op, s, PARTS_REDUCE, false, start(b, neutral, x->partitions, 1));

  v = across(x, b, v, name, x->g->tail ? neutral : first);
  if (x->g->tail)
    v = combine_with(x, b, v, compute(x, b, op, s, PARTS_REDUCE, true, start(b, first, x->partitions, 1)), name);
  keep(x, &x->body, ir_result(op), v);
}

static MlirValue empty_of(struct build *x, struct ir_builder *b, MlirOperation op, int64_t columns) {
  return ir_empty_of(b, ir_tensor_of(ir_value_element(ir_result(op)), 2, (int64_t[]){x->partitions, columns}));
}

static void build_one(struct build *x, MlirOperation op) {
  const struct row_parts *g = x->g;
  struct structured s;
  const enum row_parts_kind kind = row_parts_read(x->run, g, op, &s);
  struct ir_builder b = edit_before(x->run, op);
  MlirValue result = ir_result(op);

  if (kind == PARTS_REDUCE) {
    build_reduction(x, &b, op, &s);
    return;
  }
  const int64_t length = kind == PARTS_WHOLE ? g->length : 1;
  keep(x, &x->body, result, compute(x, &b, op, &s, kind, false, empty_of(x, &b, op, length)));
  if (kind == PARTS_WHOLE && g->tail)
    keep(x, &x->rests, result, compute(x, &b, op, &s, kind, true, empty_of(x, &b, op, g->tail)));
}

/* ---- results ------------------------------------------------------------------------------------------------------------- */

static bool is_of_group(const struct row_parts *g, MlirOperation op) {
  for (int i = 0; i < g->n; i++)
    if (mlirOperationEqual(g->ops[i], op))
      return true;
  return false;
}

/* True if something else than the group reads v, also in another shape. */
static bool is_wanted(const struct row_parts *g, MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (ir_is(user, "tensor.expand_shape") || ir_is(user, "tensor.collapse_shape") ? is_wanted(g, ir_result(user))
                                                                                   : !is_of_group(g, user))
      return true;
  }
  return false;
}

/* The rows as others read them. */
static MlirValue whole_of(struct build *x, struct ir_builder *b, MlirValue result) {
  const struct row_parts *g = x->g;
  const int64_t most = g->each * g->length;
  MlirValue v = edit_reshape(b, look(&x->body, result), 2, (int64_t[]){g->rows, most}), rest;

  if (!g->tail)
    return v;
  rest = edit_reshape(b, look(&x->rests, result), 2, (int64_t[]){g->rows, g->each * g->tail});
  rest = columns_of(b, rest, 0, g->tail);
  MlirValue to = ir_empty_of(b, ir_tensor_of(ir_value_element(v), 2, (int64_t[]){g->rows, g->columns}));
  const struct ir_slice first = {.rank = 2, .offsets = (int64_t[]){0, 0}, .sizes = (int64_t[]){g->rows, most}},
                        last = {.rank = 2, .offsets = (int64_t[]){0, most}, .sizes = (int64_t[]){g->rows, g->tail}};
  return ir_insert_slice(b, rest, ir_insert_slice(b, v, to, &first), &last);
}

/* A number for each row, as others read it. */
static MlirValue number_of(struct build *x, struct ir_builder *b, MlirValue result) {
  MlirValue v = edit_reshape(b, look(&x->body, result), 2, (int64_t[]){x->g->rows, x->g->each});
  return columns_of(b, v, 0, 1);
}

static void replace(struct build *x, MlirOperation op) {
  struct structured s;
  const enum row_parts_kind kind = row_parts_read(x->run, x->g, op, &s);
  struct ir_builder b = edit_before(x->run, op);
  MlirValue result = ir_result(op), by;
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(result, STRUCTURED_LOOPS_MAX, dims);

  if (is_wanted(x->g, result))
    by = edit_reshape(&b, kind == PARTS_WHOLE ? whole_of(x, &b, result) : number_of(x, &b, result), rank, dims);
  else
    by = ir_empty_of(&b, mlirValueGetType(result)); /* only what is erased reads it */
  mlirValueReplaceAllUsesOfWith(result, by);
}

void row_parts_build(struct pass_run *run, const struct row_parts *g) {
  struct build x = {.run = run,
                    .g = g,
                    .partitions = g->rows * g->each,
                    .body = {.arena = run->arena},
                    .rests = {.arena = run->arena},
                    .fixed = {.arena = run->arena}};

  for (int i = 0; i < g->n; i++) {
    pass_step(run, g->ops[i], "rows-in-parts");
    build_one(&x, g->ops[i]);
  }
  for (int i = 0; i < g->n; i++)
    replace(&x, g->ops[i]);
  for (int i = g->n - 1; i >= 0; i--)
    mlirOperationDestroy(g->ops[i]);
}
