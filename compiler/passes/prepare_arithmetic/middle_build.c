/* middle_build: gives a group of operations around a reduction of dimensions before the last ones its new form, see middle.c. */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/arena.h"
#include "base/table.h"
#include "passes/lib/edit.h"
#include "passes/prepare_arithmetic/middle.h"

struct change {
  struct pass_run *run;
  const struct prepare_group *g;
  const struct middle *m;
  struct table made;   /* a value of the group, and what replaced it elsewhere -> the new value */
  struct table turned; /* another value -> its transpose */
};

/* ---- forms --------------------------------------------------------------------------------------------------------------- */

static int loops_of(const struct middle *m) {
  return m->each || m->batch > 1 ? 3 : 2;
}

/* Dimension d of the new form: what an operand must have to have it, and its extent. */
static int part_at(const struct middle *m, int d) {
  static const int rows[] = {BATCH, ROWS, COLUMNS}, bands[] = {ROWS, COLUMNS, ROWS};
  return m->each ? bands[d] : rows[d + PARTS - loops_of(m)];
}

static int64_t extent_at(const struct middle *m, int d) {
  const int64_t rows[] = {m->batch, m->rows, m->columns};
  if (!m->each)
    return rows[d + PARTS - loops_of(m)];
  return d == 0 ? m->batch * m->each : d == 1 ? m->columns : m->rows / m->each;
}

static int column_loop(const struct middle *m) {
  return m->each ? 1 : loops_of(m) - 1;
}

/* Writes the dimensions of a form; returns their number. */
static int dims_of(const struct middle *m, const struct form *f, int64_t *dims) {
  const int n = loops_of(m);
  for (int d = 0; d < n; d++)
    dims[d] = f->has[part_at(m, d)] ? extent_at(m, d) : 1;
  return n;
}

static MlirValue swap(const struct change *c, struct ir_builder *b, MlirValue v) {
  const int64_t two[] = {1, 0}, three[] = {0, 2, 1};
  return ir_result(ir_transpose(b, v, c->m->batch > 1 ? 3 : 2, c->m->batch > 1 ? three : two));
}

/* v with more dimensions, which follow each other in those that it has. */
static MlirValue expand(struct ir_builder *b, MlirValue v, int rank, const int64_t *dims) {
  int64_t from[STRUCTURED_LOOPS_MAX];
  int end[STRUCTURED_LOOPS_MAX];
  const int n = ir_shape(v, STRUCTURED_LOOPS_MAX, from);
  if (n == rank || !ir_group_dims(n, from, rank, dims, end))
    return edit_reshape(b, v, rank, dims);
  return ir_expand_shape(b, v, ir_tensor_of(ir_value_element(v), rank, dims), n, end, rank, dims);
}

/* The dimensions of a whole value in bands are batch and bands, columns, rows of a band. */
enum { BANDS_RANK = 4 };

static MlirValue change_places(const struct middle *m, struct ir_builder *b, MlirValue v) {
  const int64_t all[] = {0, 2, 1, 3}, without_batch[] = {1, 0, 2};
  return ir_result(m->batch > 1 ? ir_transpose(b, v, BANDS_RANK, all)
                                : ir_transpose(b, v, BANDS_RANK - 1, without_batch));
}

/* A whole value, [batch, columns, rows], in bands. */
static MlirValue to_bands(const struct middle *m, struct ir_builder *b, MlirValue v) {
  const int64_t cut[BANDS_RANK] = {m->batch, m->columns, m->each, m->rows / m->each},
                to[] = {m->batch * m->each, m->columns, m->rows / m->each};
  const int first = m->batch == 1;
  if (m->each > 1) /* a batch of one has no dimension */
    v = change_places(m, b,
                      expand(b, edit_reshape(b, v, 3 - first, (int64_t[]){m->batch, m->columns, m->rows} + first),
                             BANDS_RANK - first, cut + first));
  return edit_reshape(b, v, 3, to);
}

/* A value in bands in its old shape. */
static MlirValue from_bands(const struct middle *m, struct ir_builder *b, MlirValue v, int rank, const int64_t *old) {
  const int64_t cut[BANDS_RANK] = {m->batch, m->each, m->columns, m->rows / m->each};
  const int first = m->batch == 1;
  if (m->each > 1) {
    v = change_places(m, b, expand(b, v, BANDS_RANK - first, cut + first));
    v = edit_reshape(b, v, 3 - first, (int64_t[]){m->batch, m->columns, m->rows} + first);
  }
  return expand(b, v, rank, old);
}

/* A whole value in its new form. */
static MlirValue turn(const struct change *c, struct ir_builder *b, MlirValue v) {
  const int64_t before[] = {c->m->batch, c->m->columns, c->m->rows};
  const int first = c->m->batch == 1;
  return c->m->each ? to_bands(c->m, b, v) : swap(c, b, edit_reshape(b, v, 3 - first, before + first));
}

/* The operand v in its new form. */
static MlirValue operand(struct change *c, struct ir_builder *b, MlirValue v, const struct form *f) {
  int64_t dims[PARTS];
  const int rank = dims_of(c->m, f, dims);
  MlirValue made = {table_get(&c->made, v.ptr)}, turned = {table_get(&c->turned, v.ptr)};

  if (made.ptr && mlirTypeEqual(mlirValueGetType(made), ir_tensor_of(ir_value_element(v), rank, dims)))
    return made;
  if (!middle_is_whole(f))
    return edit_reshape(b, v, rank, dims);
  if (turned.ptr)
    return turned;
  turned = turn(c, b, v);
  table_put(&c->turned, v.ptr, (void *)turned.ptr);
  return turned;
}

/* ---- operations ---------------------------------------------------------------------------------------------------------- */

static void set_places(struct pass_run *run, MlirOperation op, int dim) {
  const struct ir_ops at = ir_collect_named(run->arena, op, "linalg.index");
  for (int i = 0; i < at.n; i++)
    ir_set_attr(at.v[i], "dim", mlirIntegerAttrGet(mlirIntegerTypeGet(mlirOperationGetContext(op), 64), dim));
}

/* Numbers for each row in another shape: a row in HBM is where the column is stored, and needs no transpose. */
static MlirValue in_shape(struct ir_builder *b, MlirValue v, int rank, const int64_t *dims) {
  const int64_t n = prepare_elements(v);
  MlirValue flat = edit_reshape(b, v, 1, &n);
  return rank == 1 ? flat
                   : ir_expand_shape(b, flat, ir_tensor_of(ir_value_element(v), rank, dims), 1, &rank, rank, dims);
}

/* Makes the operation in its new form; what is read outside is turned back. */
static void rewrite(struct change *c, MlirOperation op) {
  struct structured s;
  struct ir_builder b = edit_before(c->run, op);
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];
  MlirOperation made = mlirOperationClone(op);
  int64_t dims[PARTS], old[STRUCTURED_LOOPS_MAX];
  const bool ok = structured_read(op, &s);
  const struct form out = middle_form(c->m, &s, s.n_inputs, ir_result(op));
  const bool has_columns =
      middle_is_whole(&out) || s.kind == SK_REDUCTION; /* the loop over columns has more than one step */
  const int loops = loops_of(c->m), column = column_loop(c->m);
  bool reduction[PARTS] = {false};

  assert(ok);
  (void)ok;
  mlirOperationRemoveAttributeByName(made, mlirStringRefCreateFromCString(MIDDLE));
  for (int o = 0; o < s.n_inputs + 1; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    const struct form f = middle_form(c->m, &s, o, o < s.n_inputs ? v : ir_result(op));
    const int rank = dims_of(c->m, &f, dims);
    int64_t at[PARTS];
    for (int d = 0; d < rank; d++)
      at[d] = f.has[part_at(c->m, d)] || (d == column && !has_columns) ? d : IR_CONST(0);
    maps[o] = ir_map(&b, loops, rank, at);
    mlirOperationSetOperand(made, o, o < s.n_inputs ? operand(c, &b, v, &f) : edit_reshape_init(&b, v, rank, dims));
  }
  MlirValue result = ir_result(made), was = ir_result(op);
  mlirValueSetType(result, mlirValueGetType(mlirOperationGetOperand(made, s.n_inputs)));
  if (ir_is(op, "linalg.generic")) {
    edit_set_maps(made, s.n_inputs + 1, maps);
    reduction[column] = s.kind == SK_REDUCTION;
    edit_set_iterators(made, loops, reduction);
    set_places(c->run, made, column);
  }
  ir_place(&b, made);
  table_put(&c->made, was.ptr, (void *)result.ptr);
  if (!middle_is_read_outside(c->g, was))
    return;
  const int rank = ir_shape(was, STRUCTURED_LOOPS_MAX, old);
  MlirValue back;
  if (!middle_is_whole(&out))
    back = in_shape(&b, result, rank, old);
  else if (c->m->each)
    back = from_bands(c->m, &b, result, rank, old);
  else
    back = edit_reshape(&b, swap(c, &b, result), rank, old);
  edit_replace_data_uses(c->run->arena, was, back, (MlirOperation){NULL});
  table_put(&c->made, back.ptr, (void *)result.ptr);
}

void middle_build(struct pass_run *run, const struct prepare_group *g, const struct middle *m, struct ir_ops all) {
  struct change c = {.run = run, .g = g, .m = m, .made = {.arena = run->arena}, .turned = {.arena = run->arena}};

  for (int i = 0; i < all.n; i++) /* in program order */
    if (!mlirOperationIsNull(all.v[i]) && middle_is_in(g, all.v[i]))
      rewrite(&c, all.v[i]);
  for (int i = all.n - 1; i >= 0; i--)
    if (!mlirOperationIsNull(all.v[i]) && middle_is_in(g, all.v[i])) {
      mlirOperationDestroy(all.v[i]);
      all.v[i] = (MlirOperation){NULL};
    }
}
