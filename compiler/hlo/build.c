/* build: the way from a draft to an instruction, leaves, and the end of the entry computation. */
#include "hlo/build_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hlo/attrs.h"
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
  struct hlo_instr *i = b->before ? hlo_insert(b->before, draft.op, name, shape, draft.n_operands, draft.operands)
                                  : hlo_append(b->computation, draft.op, name, shape, draft.n_operands, draft.operands);
  const struct hlo_attrs attrs = hlo_attrs_dup(b->module, &draft);
  hlo_set_attrs(i, &attrs);
  i->n_called = draft.n_called;
  i->called = arena_dup(a, draft.called, (size_t)draft.n_called * sizeof(struct hlo_computation *));
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
