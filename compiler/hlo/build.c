/* build: the way from a draft to an instruction, leaves, and the end of the entry computation. */
#include "hlo/build_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hlo/infer.h"
#include "hlo/literal.h"

void hlo_builder_init(struct hlo_builder *b, struct hlo_module *m) {
  *b = (struct hlo_builder){.module = m, .computation = m->entry};
}

hlo_val hlo_build_refuse(struct hlo_builder *b, const char *fmt, ...) {
  if (!b->err.code) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(b->err.text, sizeof b->err.text, fmt, ap);
    va_end(ap);
    b->err.code = ST_INPUT;
  }
  return NULL;
}

static const struct hlo_dot_dims *dup_dot(struct arena *a, const struct hlo_dot_dims *d) {
  struct hlo_dot_dims *r = arena_new(a, struct hlo_dot_dims);
  r->lhs_contracting = hlo_ints_dup(a, d->lhs_contracting.n, d->lhs_contracting.v);
  r->rhs_contracting = hlo_ints_dup(a, d->rhs_contracting.n, d->rhs_contracting.v);
  r->lhs_batch = hlo_ints_dup(a, d->lhs_batch.n, d->lhs_batch.v);
  r->rhs_batch = hlo_ints_dup(a, d->rhs_batch.n, d->rhs_batch.v);
  return r;
}

static const struct hlo_gather_dims *dup_gather(struct arena *a, const struct hlo_gather_dims *g) {
  struct hlo_gather_dims *r = arena_dup(a, g, sizeof *g);
  r->offset_dims = hlo_ints_dup(a, g->offset_dims.n, g->offset_dims.v);
  r->collapsed_slice_dims = hlo_ints_dup(a, g->collapsed_slice_dims.n, g->collapsed_slice_dims.v);
  r->start_index_map = hlo_ints_dup(a, g->start_index_map.n, g->start_index_map.v);
  r->slice_sizes = hlo_ints_dup(a, g->slice_sizes.n, g->slice_sizes.v);
  r->operand_batching_dims = hlo_ints_dup(a, g->operand_batching_dims.n, g->operand_batching_dims.v);
  r->start_indices_batching_dims = hlo_ints_dup(a, g->start_indices_batching_dims.n, g->start_indices_batching_dims.v);
  return r;
}

static const struct hlo_scatter_dims *dup_scatter(struct arena *a, const struct hlo_scatter_dims *s) {
  struct hlo_scatter_dims *r = arena_dup(a, s, sizeof *s);
  r->update_window_dims = hlo_ints_dup(a, s->update_window_dims.n, s->update_window_dims.v);
  r->inserted_window_dims = hlo_ints_dup(a, s->inserted_window_dims.n, s->inserted_window_dims.v);
  r->scatter_dims_to_operand_dims =
      hlo_ints_dup(a, s->scatter_dims_to_operand_dims.n, s->scatter_dims_to_operand_dims.v);
  r->input_batching_dims = hlo_ints_dup(a, s->input_batching_dims.n, s->input_batching_dims.v);
  r->scatter_indices_batching_dims =
      hlo_ints_dup(a, s->scatter_indices_batching_dims.n, s->scatter_indices_batching_dims.v);
  return r;
}

static const struct hlo_window *dup_window(struct arena *a, const struct hlo_window *w) {
  struct hlo_window *r = arena_new(a, struct hlo_window);
  *r = (struct hlo_window){w->n, arena_dup(a, w->v, (size_t)w->n * sizeof *w->v)};
  return r;
}

static const struct hlo_conv_dims *dup_conv(struct arena *a, const struct hlo_conv_dims *c) {
  struct hlo_conv_dims *r = arena_dup(a, c, sizeof *c);
  r->input_spatial = hlo_ints_dup(a, c->input_spatial.n, c->input_spatial.v);
  r->kernel_spatial = hlo_ints_dup(a, c->kernel_spatial.n, c->kernel_spatial.v);
  r->output_spatial = hlo_ints_dup(a, c->output_spatial.n, c->output_spatial.v);
  return r;
}

static const struct hlo_groups *dup_groups(struct arena *a, const struct hlo_groups *g) {
  struct hlo_ints *v = arena_new_array(a, struct hlo_ints, (size_t)g->n);
  struct hlo_groups *r = arena_new(a, struct hlo_groups);
  for (int k = 0; k < g->n; k++)
    v[k] = hlo_ints_dup(a, g->v[k].n, g->v[k].v);
  *r = (struct hlo_groups){g->n, v};
  return r;
}

static const struct hlo_operand_alias *dup_aliases(struct arena *a, int n, const struct hlo_operand_alias *v) {
  struct hlo_operand_alias *r = arena_dup(a, v, (size_t)n * sizeof *v);
  for (int k = 0; k < n; k++)
    r[k].output_index = hlo_ints_dup(a, v[k].output_index.n, v[k].output_index.v);
  return r;
}

/* The draft's attributes, with everything behind them, for i. */
static void copy_attributes(struct arena *a, struct hlo_instr *i, const struct hlo_instr *draft) {
  const size_t rank = draft->n_operands ? (size_t)draft->operands[0]->shape.rank : 0;
  struct hlo_attrs at = *draft->attrs;
  at.dimensions = hlo_ints_dup(a, at.dimensions.n, at.dimensions.v);
  if (at.slice)
    at.slice = arena_dup(a, at.slice, rank * sizeof *at.slice);
  if (at.padding)
    at.padding = arena_dup(a, at.padding, rank * sizeof *at.padding);
  if (at.dot)
    at.dot = dup_dot(a, at.dot);
  if (at.gather)
    at.gather = dup_gather(a, at.gather);
  if (at.scatter)
    at.scatter = dup_scatter(a, at.scatter);
  if (at.window)
    at.window = dup_window(a, at.window);
  if (at.conv)
    at.conv = dup_conv(a, at.conv);
  if (at.groups)
    at.groups = dup_groups(a, at.groups);
  if (at.custom_call_target)
    at.custom_call_target = arena_strdup(a, at.custom_call_target);
  if (at.backend_config)
    at.backend_config = arena_strdup(a, at.backend_config);
  if (at.n_operand_aliases)
    at.operand_aliases = dup_aliases(a, at.n_operand_aliases, at.operand_aliases);
  hlo_set_attrs(i, &at);
  i->n_called = draft->n_called;
  if (draft->n_called)
    i->called = arena_dup(a, draft->called, (size_t)draft->n_called * sizeof(struct hlo_computation *));
}

hlo_val hlo_build_append(struct hlo_builder *b, const char *name, const struct hlo_instr *asked) {
  struct arena *a = b->module->arena;
  struct hlo_instr draft = *asked;
  struct hlo_shape shape;
  struct error err;

  if (b->err.code)
    return NULL;
  if (!draft.attrs)
    draft.attrs = &hlo_no_attrs;
  for (int k = 0; k < draft.n_operands; k++)
    if (!draft.operands[k])
      return hlo_build_refuse(b, "%s: operand %d is missing", hlo_op_name(draft.op), k);
  if (hlo_infer_shape(a, &draft, &shape, &err))
    return hlo_build_refuse(b, "%s", err.text);
  shape = hlo_shape_dup(a, &shape); /* inferred from the draft, which may be the caller's storage */
  struct hlo_instr *i = hlo_append(b->computation, draft.op, name, shape, draft.n_operands, draft.operands);
  copy_attributes(a, i, &draft);
  i->locs = b->locs;
  return i;
}

/* ---- leaves ------------------------------------------------------------------------------------------ */

/* The parameter array's storage is the next power of two of n_params. */
static void add_param(struct hlo_computation *c, struct hlo_instr *p) {
  int n = c->n_params;
  if (!(n & (n - 1))) {
    struct hlo_instr **v = arena_new_array(c->module->arena, struct hlo_instr *, n ? 2 * (size_t)n : 1);
    if (n)
      memcpy(v, c->params, (size_t)n * sizeof *v);
    c->params = v;
  }
  c->params[c->n_params++] = p;
}

hlo_val hlo_parameter(struct hlo_builder *b, const char *name, struct hlo_shape shape) {
  struct hlo_instr draft = {
      .op = HLO_PARAMETER, .shape = shape, .attrs = &(struct hlo_attrs){.parameter_number = b->computation->n_params}};
  if (shape.dtype == DT_NONE || (shape.dtype == DT_TUPLE && b->computation == b->module->entry))
    return hlo_build_refuse(b, "parameter %s: must be an array", name);
  hlo_val p = hlo_build_append(b, name, &draft);
  if (p)
    add_param(b->computation, p);
  return p;
}

hlo_val hlo_constant(struct hlo_builder *b, struct hlo_shape shape, const void *data) {
  struct arena *a = b->module->arena;
  struct hlo_literal *l = arena_new(a, struct hlo_literal);
  int64_t n = hlo_shape_elements(&shape), bytes;

  if (b->err.code)
    return NULL;
  if (!dtype_size(shape.dtype) || n < 0 || __builtin_mul_overflow(n, (int64_t)dtype_size(shape.dtype), &bytes))
    return hlo_build_refuse(b, "constant: %s cannot be a constant", hlo_shape_text(a, &shape));
  l->shape = hlo_shape_array(a, shape.dtype, shape.rank, shape.dims);
  l->size = (size_t)bytes;
  l->data = arena_dup(a, data, l->size);
  return hlo_build_append(
      b, NULL, &(struct hlo_instr){.op = HLO_CONSTANT, .shape = l->shape, .attrs = &(struct hlo_attrs){.literal = l}});
}

hlo_val hlo_scalar(struct hlo_builder *b, enum dtype t, double v) {
  char bytes[8] = {0};
  if (dtype_size(t))
    hlo_literal_store(t, v, bytes);
  return hlo_constant(b, (struct hlo_shape){.dtype = t}, bytes);
}

hlo_val hlo_full(struct hlo_builder *b, enum dtype t, int rank, const int64_t *dims, double v) {
  hlo_val s = hlo_scalar(b, t, v);
  return rank ? hlo_broadcast(b, s, rank, dims, NULL) : s;
}

hlo_val hlo_extreme(struct hlo_builder *b, enum dtype t, bool lowest) {
  char bytes[8] = {0};
  if (dtype_size(t))
    hlo_literal_store_extreme(t, lowest, bytes);
  return hlo_constant(b, (struct hlo_shape){.dtype = t}, bytes);
}

hlo_val hlo_iota(struct hlo_builder *b, enum dtype t, int rank, const int64_t *dims, int64_t dimension) {
  struct hlo_shape shape = {.dtype = t, .rank = rank, .dims = dims};
  if (t == DT_NONE || t == DT_TUPLE)
    return hlo_build_refuse(b, "iota: unknown data type");
  return hlo_build_append(
      b, NULL,
      &(struct hlo_instr){.op = HLO_IOTA, .shape = shape, .attrs = &(struct hlo_attrs){.dimensions = {1, &dimension}}});
}

/* ---- end --------------------------------------------------------------------------------------------- */

enum status hlo_finish(struct hlo_builder *b, int n, hlo_val const *results, const char *const *names) {
  struct hlo_module *m = b->module;
  struct arena *a = m->arena;

  b->computation = m->entry;
  for (int k = 0; k < n && !b->err.code; k++)
    if (!results[k] || results[k]->parent != m->entry)
      hlo_build_refuse(b, "result %d is not a value of this kernel", k);
  if (b->err.code)
    return b->err.code;
  if (n) {
    struct hlo_instr draft = {
        .op = n == 1 ? HLO_COPY : HLO_TUPLE, .n_operands = n, .operands = (struct hlo_instr **)(uintptr_t)results};
    m->entry->root = hlo_build_append(b, "result", &draft);
    if (!m->entry->root)
      return b->err.code;
  }
  m->n_outputs = n;
  m->output_names = arena_new_array(a, const char *, (size_t)n);
  for (int k = 0; k < n; k++)
    m->output_names[k] = arena_strdup(a, names[k]);
  return ST_OK;
}
