/* expand_solve: Cholesky factors and triangular systems of equations, one row in each iteration of a loop.
 *
 *     a = u^T u:   for j = 0 …:       r = a[j, :] / sqrt(a[j, j]), and 0 before column j
 *                                     a = a - r^T r;  a[j, :] = r
 *     t x = y:     for j = 0 … or     r = y[j, :] / t[j, j]
 *                  j = n-1 … 0:       y = y - t[:, j] r, in the rows that are still to come;  y[j, :] = r
 *
 * Only rows are read and written, never columns, and each update is the product of a column and a row.  So matrices keep
 * their layout in memory, and nothing is transposed inside the loop.  For the first this is possible because the
 * remaining part of a stays symmetric.  Matrices with leading dimensions are solved in parallel.
 *
 * For the CPU, JAX calls LAPACK: potrf, which also returns the row where it failed, and trsm.
 */
#include <stdlib.h>
#include <string.h>

#include "hlo/expand.h"

/* ---- loops ------------------------------------------------------------------------------------------------------- */

enum { STATE_MAX = 3 };

/* Returns state[0] after an iteration; the other elements do not change.  at: the counter, s32[]. */
typedef hlo_val loop_body(struct hlo_builder *b, hlo_val at, hlo_val const *state, const void *user);

static hlo_val loop_parameter(struct hlo_builder *in, struct hlo_builder *b, const char *name,
                              const struct hlo_shape *state) {
  hlo_builder_init(in, b->module);
  in->locs = b->locs;
  in->computation =
      hlo_computation_new(b->module, arena_printf(b->module->arena, "%s_%d", name, b->module->next_computation_id));
  return hlo_parameter(in, arena_printf(b->module->arena, "%s_state", in->computation->name), *state);
}

static struct hlo_computation *loop_finish(struct hlo_builder *in, struct hlo_builder *b, hlo_val root) {
  in->computation->root = root;
  if (in->err.code && !b->err.code)
    b->err = in->err;
  return in->computation;
}

/* state[0] after the loop over 0 … n-1, or downwards. */
static hlo_val loop_over(struct hlo_builder *b, const char *name, int64_t n, bool is_down, int n_state,
                         hlo_val const *state, loop_body *body, const void *user) {
  hlo_val all[1 + STATE_MAX] = {hlo_scalar(b, DT_I32, is_down ? (double)n - 1 : 0)};
  for (int k = 0; k < n_state; k++)
    all[1 + k] = state[k];
  hlo_val init = hlo_tuple(b, 1 + n_state, all);
  if (!init)
    return NULL;
  struct hlo_builder in;
  hlo_val p = loop_parameter(&in, b, name, &init->shape);
  for (int k = 0; k <= n_state; k++)
    all[k] = hlo_tuple_element(&in, p, k);
  all[1] = body(&in, all[0], all + 1, user);
  all[0] = hlo_binary(&in, HLO_ADD, all[0], hlo_scalar(&in, DT_I32, is_down ? -1 : 1));
  struct hlo_computation *next = loop_finish(&in, b, hlo_tuple(&in, 1 + n_state, all));
  p = loop_parameter(&in, b, name, &init->shape);
  hlo_val limit = hlo_scalar(&in, DT_I32, is_down ? 0 : (double)n);
  hlo_val goes_on = hlo_compare(&in, is_down ? HLO_GE : HLO_LT, hlo_tuple_element(&in, p, 0), limit);
  return hlo_tuple_element(b, hlo_while(b, loop_finish(&in, b, goes_on), next, init), 1);
}

/* ---- matrices ------------------------------------------------------------------------------------------------------ */

/* x as a matrix, or as [k, rows, columns] if it has leading dimensions. */
static hlo_val flatten(struct hlo_builder *b, hlo_val x) {
  const struct hlo_shape *s = &x->shape;
  int64_t dims[] = {1, s->dims[s->rank - 2], s->dims[s->rank - 1]};
  for (int d = 0; d < s->rank - 2; d++)
    dims[0] *= s->dims[d];
  return s->rank > 2 ? hlo_reshape(b, x, 3, dims) : x;
}

static hlo_val transpose(struct hlo_builder *b, hlo_val x) {
  static const int64_t matrix[] = {1, 0}, matrices[] = {0, 2, 1};
  return x ? hlo_transpose(b, x, x->shape.rank == 2 ? matrix : matrices) : NULL;
}

/* The comparison of each element's row number with its column number. */
static hlo_val where_rows(struct hlo_builder *b, enum hlo_direction d, hlo_val x) {
  const int rank = x->shape.rank;
  hlo_val row = hlo_iota(b, DT_I32, rank, x->shape.dims, rank - 2);
  return hlo_compare(b, d, row, hlo_iota(b, DT_I32, rank, x->shape.dims, rank - 1));
}

/* Part [row, column] of x, of one row and n columns. */
static hlo_val read_at(struct hlo_builder *b, hlo_val x, hlo_val row, hlo_val column, int64_t n) {
  if (!x)
    return NULL;
  hlo_val zero = hlo_scalar(b, DT_I32, 0), starts[] = {zero, row, column ? column : zero};
  int64_t sizes[] = {x->shape.dims[0], 1, n};
  const int skip = x->shape.rank == 2;
  return hlo_dynamic_slice(b, x, starts + skip, sizes + skip);
}

static hlo_val write_row(struct hlo_builder *b, hlo_val x, hlo_val row, hlo_val at) {
  hlo_val zero = hlo_scalar(b, DT_I32, 0), starts[] = {zero, at, zero};
  return x ? hlo_dynamic_update_slice(b, x, row, starts + (x->shape.rank == 2)) : NULL;
}

/* x / y, where y has one column. */
static hlo_val divide_by(struct hlo_builder *b, hlo_val x, hlo_val y) {
  static const int64_t batch[] = {0};
  if (!x || !y)
    return NULL;
  const bool has_batch = x->shape.rank == 3;
  y = hlo_reshape(b, y, has_batch, x->shape.dims);
  return hlo_binary(b, HLO_DIVIDE, x, hlo_broadcast(b, y, x->shape.rank, x->shape.dims, batch));
}

/* x^T y of two rows: a matrix. */
static hlo_val outer(struct hlo_builder *b, hlo_val x, hlo_val y) {
  static const int64_t batch[] = {0}, rows[] = {0, 1};
  if (!x || !y)
    return NULL;
  const bool has_batch = x->shape.rank == 3;
  const struct hlo_ints at = {1, rows + has_batch}, batches = {has_batch, batch};
  return hlo_dot(b, x, y, &(struct hlo_dot_dims){at, at, batches, batches}, x->shape.dtype);
}

/* x's diagonal as a column. */
static hlo_val diagonal(struct hlo_builder *b, hlo_val x) {
  const int64_t last = x->shape.rank - 1;
  hlo_val only = hlo_select(b, where_rows(b, HLO_EQ, x), x, hlo_expand_like(b, x, 0));
  hlo_val all = hlo_reduce(b, HLO_ADD, only, hlo_scalar(b, x->shape.dtype, 0), 1, &last);
  int64_t dims[] = {x->shape.dims[0], x->shape.dims[1], 1};
  dims[last] = 1;
  return hlo_reshape(b, all, x->shape.rank, dims);
}

/* Whether the index along dimension d of x is after (or at) the counter. */
static hlo_val is_reached(struct hlo_builder *b, enum hlo_direction to, hlo_val x, int d, hlo_val at) {
  hlo_val index = hlo_iota(b, DT_I32, x->shape.rank, x->shape.dims, d);
  return hlo_compare(b, to, index, hlo_broadcast(b, at, x->shape.rank, x->shape.dims, NULL));
}

/* ---- Cholesky -------------------------------------------------------------------------------------------------------- */

static hlo_val factor_row(struct hlo_builder *b, hlo_val at, hlo_val const *state, const void *user) {
  hlo_val a = state[0];
  (void)user;
  hlo_val row = read_at(b, a, at, NULL, a ? a->shape.dims[a->shape.rank - 1] : 0);
  hlo_val pivot = read_at(b, row, hlo_scalar(b, DT_I32, 0), at, 1);
  row = divide_by(b, row, hlo_unary(b, HLO_SQRT, pivot));
  if (!row)
    return NULL;
  row = hlo_select(b, is_reached(b, HLO_GE, row, row->shape.rank - 1, at), row, hlo_expand_like(b, row, 0));
  return write_row(b, hlo_binary(b, HLO_SUBTRACT, a, outer(b, row, row)), row, at);
}

/* u of a = u^T u, in a's flattened shape, with zeros below the diagonal. */
static hlo_val factor(struct hlo_builder *b, hlo_val a, bool is_lower) {
  a = flatten(b, a);
  hlo_val given = where_rows(b, is_lower ? HLO_GE : HLO_LE, a), symmetric = hlo_select(b, given, a, transpose(b, a));
  return loop_over(b, "cholesky", a->shape.dims[a->shape.rank - 1], false, 1, &symmetric, factor_row, NULL);
}

hlo_val hlo_expand_cholesky(struct hlo_builder *b, struct hlo_instr *i) {
  hlo_val a = i->operands[0];
  const bool is_lower = i->attrs->cholesky->is_lower;
  if (!hlo_shape_elements(&a->shape))
    return a;
  hlo_val u = factor(b, a, is_lower);
  return hlo_reshape(b, is_lower ? transpose(b, u) : u, a->shape.rank, a->shape.dims);
}

/* LAPACK's status: 0, or the number of the first row, from 1, whose pivot was not positive. */
static hlo_val failed_row(struct hlo_builder *b, hlo_val u, const struct hlo_shape *s) {
  hlo_val d = diagonal(b, u);
  if (!d)
    return NULL;
  const int rank = d->shape.rank;
  const double none = (double)d->shape.dims[rank - 2] + 1;
  hlo_val good = hlo_compare(b, HLO_GT, d, hlo_expand_like(b, d, 0)); /* false for NaN */
  hlo_val number = hlo_expand_with(b, HLO_ADD, hlo_iota(b, DT_I32, rank, d->shape.dims, rank - 2), 1);
  number = hlo_select(b, good, hlo_expand_like(b, number, none), number);
  const int64_t over[] = {rank - 2, rank - 1};
  hlo_val first = hlo_reduce(b, HLO_MINIMUM, number, hlo_scalar(b, DT_I32, none), 2, over);
  hlo_val is_none = hlo_compare(b, HLO_EQ, first, hlo_expand_like(b, first, none));
  first = hlo_select(b, is_none, hlo_expand_like(b, first, 0), first);
  return hlo_reshape(b, first, s->rank, s->dims);
}

/* ---- triangular systems ------------------------------------------------------------------------------------------------ */

struct system {
  bool is_down, has_unit_diagonal;
};

/* state: y, the transposed matrix without its diagonal and with zeros in the other triangle, its diagonal as a column. */
static hlo_val solve_row(struct hlo_builder *b, hlo_val at, hlo_val const *state, const void *user) {
  const struct system *s = user;
  hlo_val y = state[0];
  if (!y)
    return NULL;
  const int rank = y->shape.rank;
  hlo_val row = read_at(b, y, at, NULL, y->shape.dims[rank - 1]);
  if (!s->has_unit_diagonal)
    row = divide_by(b, row, read_at(b, state[2], at, NULL, 1));
  hlo_val column = read_at(b, state[1], at, NULL, y->shape.dims[rank - 2]);
  hlo_val rest = hlo_binary(b, HLO_SUBTRACT, y, outer(b, column, row));
  rest = hlo_select(b, is_reached(b, s->is_down ? HLO_LT : HLO_GT, y, rank - 2, at), rest, y);
  return write_row(b, rest, row, at);
}

static hlo_val solve(struct hlo_builder *b, hlo_val a, hlo_val y, const struct hlo_triangular *t) {
  const struct hlo_shape *shape = &y->shape;
  const bool is_transposed = t->transpose == HLO_TRANSPOSE_YES || t->transpose == HLO_TRANSPOSE_ADJOINT;
  /* x op(a) = y is op(a)^T x^T = y^T */
  const bool is_lower = t->is_lower ^ is_transposed ^ !t->is_left;
  struct system s = {!is_lower, t->has_unit_diagonal};
  if (!hlo_shape_elements(shape))
    return y;
  a = flatten(b, a);
  y = flatten(b, y);
  if (t->is_left != is_transposed)
    a = transpose(b, a);
  if (!t->is_left)
    y = transpose(b, y);
  if (!a)
    return NULL;
  hlo_val strict = where_rows(b, is_lower ? HLO_LT : HLO_GT, a);
  hlo_val state[] = {y, hlo_select(b, strict, a, hlo_expand_like(b, a, 0)),
                     s.has_unit_diagonal ? NULL : diagonal(b, a)};
  const int64_t n = a->shape.dims[a->shape.rank - 1];
  hlo_val x = loop_over(b, "triangular_solve", n, s.is_down, s.has_unit_diagonal ? 2 : 3, state, solve_row, &s);
  return hlo_reshape(b, t->is_left ? x : transpose(b, x), shape->rank, shape->dims);
}

hlo_val hlo_expand_triangular_solve(struct hlo_builder *b, struct hlo_instr *i) {
  return solve(b, i->operands[0], i->operands[1], i->attrs->triangular);
}

/* ---- LAPACK's calls ------------------------------------------------------------------------------------------------------ */

/* The letter that the call's configuration, {side = 76 : ui8, …}, has under this name; 0 if it has none. */
static char option(const struct hlo_instr *i, const char *name) {
  const size_t n = strlen(name);
  for (const char *p = i->attrs->backend_config; p && (p = strstr(p, name)); p += n) {
    if (p > i->attrs->backend_config && !strchr("{, ", p[-1]))
      continue;
    const char *v = p + n + strspn(p + n, " ");
    if (*v == '=')
      return (char)strtol(v + 1, NULL, 10);
  }
  return 0;
}

bool hlo_expand_is_lapack(const struct hlo_instr *i) {
  const char *t = i->attrs->custom_call_target;
  return i->op == HLO_CUSTOM_CALL && t && !strncmp(t, "lapack_", 7);
}

static bool is_target(const struct hlo_instr *i, const char *name) {
  const char *t = i->attrs->custom_call_target;
  return t && (!strcmp(t, arena_printf(i->parent->module->arena, "lapack_s%s_ffi", name)) ||
               !strcmp(t, arena_printf(i->parent->module->arena, "lapack_d%s_ffi", name)));
}

static bool is_potrf(const struct hlo_instr *i) {
  const struct hlo_shape *s = &i->shape;
  if (!is_target(i, "potrf") || i->n_operands != 1 || s->dtype != DT_TUPLE || s->n_elems != 2)
    return false;
  const struct hlo_shape *a = &i->operands[0]->shape, *info = &s->elems[1];
  return dtype_is_float(a->dtype) && a->rank >= 2 && a->dims[a->rank - 1] == a->dims[a->rank - 2] &&
         hlo_shape_equal(a, &s->elems[0]) && info->dtype == DT_I32 && info->rank == a->rank - 2 &&
         hlo_shape_elements(a) > 0;
}

static bool is_trsm(const struct hlo_instr *i) {
  if (!is_target(i, "trsm") || i->n_operands != 2 || !hlo_shape_equal(&i->shape, &i->operands[1]->shape))
    return false;
  const struct hlo_shape *a = &i->operands[0]->shape, *y = &i->shape;
  if (!dtype_is_float(a->dtype) || a->dtype != y->dtype || a->rank < 2 || a->rank != y->rank ||
      a->dims[a->rank - 1] != a->dims[a->rank - 2])
    return false;
  for (int d = 0; d < a->rank - 2; d++)
    if (a->dims[d] != y->dims[d])
      return false;
  return y->dims[y->rank - (option(i, "side") == 'L' ? 2 : 1)] == a->dims[a->rank - 1];
}

hlo_val hlo_expand_lapack(struct hlo_builder *b, struct hlo_instr *i) {
  const bool is_lower = option(i, "uplo") == 'L';
  if (is_potrf(i)) {
    const struct hlo_shape *s = &i->operands[0]->shape;
    hlo_val u = factor(b, i->operands[0], is_lower);
    if (!u)
      return NULL;
    hlo_val info = failed_row(b, u, &i->shape.elems[1]);
    u = hlo_reshape(b, is_lower ? transpose(b, u) : u, s->rank, s->dims);
    return hlo_tuple(b, 2, (hlo_val[]){u, info});
  }
  if (!is_trsm(i))
    return i;
  const struct hlo_triangular t = {.is_left = option(i, "side") == 'L',
                                   .is_lower = is_lower,
                                   .has_unit_diagonal = option(i, "diag") == 'U',
                                   .transpose = option(i, "trans_x") == 'N' ? HLO_TRANSPOSE_NO : HLO_TRANSPOSE_YES};
  return solve(b, i->operands[0], i->operands[1], &t);
}
