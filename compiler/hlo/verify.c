/* verify: checks everything about a module that later stages rely on.
 *
 * Walks each computation once, in order, with the shape rules of infer.c.  hlo_instr.mark of a visited instruction is its
 * computation's number plus one, so one comparison checks that an operand precedes its user in the same computation.
 */
#include "hlo/passes.h"

#include <stdarg.h>
#include <string.h>

#include "hlo/infer.h"

struct verifier {
  const struct hlo_module *m;
  struct arena *a;      /* freed at the end */
  struct arena *shapes; /* for inferred shapes and texts; cleared from time to time */
  struct diags *ds;
  bool *is_seen; /* by computation id */
};

#define INVALID(v, i, ...) report((v), (i), __VA_ARGS__)

static PRINTF(3, 4) enum status report(struct verifier *v, const struct hlo_instr *i, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *text = arena_vprintf(v->a, fmt, ap);
  va_end(ap);
  const struct src_loc *loc = i && i->locs.n ? i->locs.v[0] : NULL;
  if (i)
    diag_add(v->ds, DS_ERROR, DG_HLO_INVALID, loc, "%%%s: %s", i->name, text);
  else
    diag_add(v->ds, DS_ERROR, DG_HLO_INVALID, NULL, "%s", text);
  return ST_INPUT;
}

/* Clears the arena of inferred shapes, which the next instruction does not need.  Reusing the same memory keeps the
 * passes' data in the processor's cache. */
static void forget_shapes(struct verifier *v) {
  enum { SHAPES_MAX = 128 << 10 };
  if (v->shapes->total > SHAPES_MAX)
    arena_clear(v->shapes);
}

/* ---- one instruction --------------------------------------------------------------------------------- */

static enum status check_called(struct verifier *v, const struct hlo_instr *i) {
  if (!hlo_op_calls(i->op) && i->n_called)
    return INVALID(v, i, "%s calls no computation", hlo_op_name(i->op));
  for (int k = 0; k < i->n_called; k++) {
    const struct hlo_computation *c = i->called[k];
    if (!c || c->module != v->m || c->id < 0 || c->id >= v->m->next_computation_id || !v->is_seen[c->id])
      return INVALID(v, i, "calls a computation that does not precede it");
  }
  return ST_OK;
}

static enum status check_parameter(struct verifier *v, const struct hlo_instr *i) {
  const struct hlo_computation *c = i->parent;
  int64_t n = i->attrs->parameter_number;
  if (n < 0 || n >= c->n_params || c->params[n] != i)
    return INVALID(v, i, "parameter number %lld is not that of this instruction", (long long)n);
  return ST_OK;
}

static enum status check_instr(struct verifier *v, struct hlo_instr *i, int mark) {
  struct hlo_shape shape;
  struct error err;
  enum status st;

  for (int k = 0; k < i->n_operands; k++) {
    const struct hlo_instr *x = i->operands[k];
    if (!x || x->parent != i->parent || x->mark != mark)
      return INVALID(v, i, "operand %d does not precede it", k);
  }
  st = check_called(v, i);
  if (!st && i->op == HLO_PARAMETER)
    st = check_parameter(v, i);
  if (st)
    return st;
  forget_shapes(v);
  if (hlo_infer_shape(v->shapes, i, &shape, &err))
    return INVALID(v, i, "%s", err.text);
  if (!hlo_shape_equal(&shape, &i->shape))
    return INVALID(v, i, "%s gives %s, not %s", hlo_op_name(i->op), hlo_shape_text(v->a, &shape),
                   hlo_shape_text(v->a, &i->shape));
  i->mark = mark;
  return ST_OK;
}

/* ---- computations ------------------------------------------------------------------------------------ */

static void clear_marks(const struct hlo_module *m) {
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) i->mark = 0;
}

static enum status check_computation(struct verifier *v, const struct hlo_computation *c, int mark) {
  int n = 0, n_params = 0;
  const struct hlo_instr *prev = NULL;

  hlo_for_each(i, c) {
    if (i->parent != c || i->prev != prev)
      return INVALID(v, i, "is not linked into computation %s", c->name);
    enum status st = check_instr(v, i, mark);
    if (st)
      return st;
    prev = i;
    n++;
    n_params += i->op == HLO_PARAMETER;
  }
  if (c->last != prev || c->n_instrs != n)
    return INVALID(v, NULL, "computation %s: %d instructions are linked, %d counted", c->name, n, c->n_instrs);
  if (n_params != c->n_params)
    return INVALID(v, NULL, "computation %s: %d parameters exist, %d are listed", c->name, n_params, c->n_params);
  if (c->root ? c->root->parent != c || c->root->mark != mark : c != v->m->entry)
    return INVALID(v, NULL, "computation %s has no root of its own", c->name);
  return ST_OK;
}

static uint64_t hash_name(const char *s) {
  uint64_t h = 1469598103934665603u; /* FNV-1a */
  for (; *s; s++)
    h = (h ^ (unsigned char)*s) * 1099511628211u;
  return h ^ h >> 29;
}

/* Checks that names are unique, with a table of its own that stays half empty: the module's set of names does not notice
 * a name that was set directly. */
static enum status check_names(struct verifier *v) {
  size_t n = 0, cap = 16;
  for (const struct hlo_computation *c = v->m->computations; c; c = c->next)
    n += (size_t)c->n_instrs;
  while (cap < 2 * n)
    cap *= 2;
  const char **names = arena_new_array(v->a, const char *, cap);
  for (const struct hlo_computation *c = v->m->computations; c; c = c->next)
    hlo_for_each(i, c) {
      size_t at = hash_name(i->name) & (cap - 1);
      for (; names[at]; at = (at + 1) & (cap - 1))
        if (!strcmp(names[at], i->name))
          return INVALID(v, NULL, "two instructions are called %%%s", i->name);
      names[at] = i->name;
    }
  return ST_OK;
}

/* ---- the module's inputs, outputs and aliases --------------------------------------------------------- */

static const struct hlo_shape *output_shape(const struct hlo_module *m, int k) {
  const struct hlo_shape *s = &m->entry->root->shape;
  return s->dtype == DT_TUPLE ? &s->elems[k] : s;
}

static enum status check_outputs(struct verifier *v) {
  const struct hlo_instr *root = v->m->entry->root;
  int n = !root ? 0 : root->shape.dtype == DT_TUPLE ? root->shape.n_elems : 1;
  if (n != v->m->n_outputs)
    return INVALID(v, root, "the root gives %d results, the module names %d", n, v->m->n_outputs);
  return ST_OK;
}

static enum status check_alias(struct verifier *v, int k) {
  const struct hlo_module *m = v->m;
  const struct hlo_alias *x = &m->aliases[k];
  if (x->output_index < 0 || x->output_index >= m->n_outputs || x->param_index < 0 ||
      x->param_index >= m->entry->n_params)
    return INVALID(v, NULL, "alias of output %d and parameter %d: one of them does not exist", x->output_index,
                   x->param_index);
  for (int j = 0; j < k; j++)
    if (m->aliases[j].output_index == x->output_index || m->aliases[j].param_index == x->param_index)
      return INVALID(v, NULL, "alias of output %d and parameter %d: one of them is aliased twice", x->output_index,
                     x->param_index);
  const struct hlo_instr *p = m->entry->params[x->param_index];
  if (!hlo_shape_equal(&p->shape, output_shape(m, x->output_index)))
    return INVALID(v, p, "has the shape %s, its alias output %d has %s", hlo_shape_text(v->a, &p->shape),
                   x->output_index, hlo_shape_text(v->a, output_shape(m, x->output_index)));
  return ST_OK;
}

static enum status check_fuses(struct verifier *v) {
  for (const struct hlo_fuse *f = v->m->fuses; f; f = f->next)
    for (int k = 0; k < f->n; k++)
      if (!f->v[k] || !f->v[k]->parent || !v->is_seen[f->v[k]->parent->id])
        return INVALID(v, NULL, "a fuse group holds a value that is not in the module");
  return ST_OK;
}

static enum status check_module(struct verifier *v) {
  const struct hlo_module *m = v->m;
  enum status st = ST_OK;
  int mark = 0;

  for (const struct hlo_computation *c = m->computations; c && !st; c = c->next) {
    if (c->module != m || c->id < 0 || c->id >= m->next_computation_id || v->is_seen[c->id])
      return INVALID(v, NULL, "computation %s does not belong to the module", c->name);
    if (c == m->entry ? c->next != NULL : c->next == NULL)
      return INVALID(v, NULL, "the entry computation is not the last one");
    st = check_computation(v, c, ++mark);
    v->is_seen[c->id] = true;
  }
  if (!st && mark != m->n_computations)
    st = INVALID(v, NULL, "%d computations are linked, %d counted", mark, m->n_computations);
  if (!st)
    st = check_names(v);
  if (!st)
    st = check_outputs(v);
  for (int k = 0; k < m->n_aliases && !st; k++)
    st = check_alias(v, k);
  return st ? st : check_fuses(v);
}

enum status hlo_verify(const struct hlo_module *m, struct diags *ds) {
  struct arena scratch, shapes;
  struct verifier v = {.m = m, .a = &scratch, .shapes = &shapes, .ds = ds};

  arena_init(&scratch);
  arena_init(&shapes);
  v.is_seen = arena_new_array(&scratch, bool, (size_t)m->next_computation_id);
  clear_marks(m);
  enum status st = check_module(&v);
  arena_clear(&scratch);
  arena_clear(&shapes);
  return st;
}
