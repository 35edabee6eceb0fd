/* adopt: see the header. */
#include "hlo/adopt.h"

#include <assert.h>
#include <string.h>

#include "hlo/names.h"

static enum status compare_entries(const struct hlo_module *m, const struct hlo_module *older, const char **why) {
  const struct hlo_computation *x = older->entry, *y = m->entry;
  if (x->n_params != y->n_params) {
    *why = arena_printf(m->arena, "the entry computation has %d parameters instead of %d", y->n_params, x->n_params);
    return ST_INPUT;
  }
  for (int i = 0; i < x->n_params; i++)
    if (!hlo_shape_equal(&x->params[i]->shape, &y->params[i]->shape)) {
      *why = arena_printf(m->arena, "parameter %d of the entry computation has another shape", i);
      return ST_INPUT;
    }
  if (!x->root != !y->root || (x->root && !hlo_shape_equal(&x->root->shape, &y->root->shape))) {
    *why = "the entry computation's result has another shape";
    return ST_INPUT;
  }
  return ST_OK;
}

/* Sets the mark of each older instruction to the number of its successor in `heirs`, or to -1. */
static struct hlo_instr **adopt_instructions(struct hlo_module *m, const struct hlo_module *older,
                                             struct hlo_instr *const *pairs) {
  int n = 0, k = 0;
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    n += c->n_instrs;
  struct hlo_instr **heirs = arena_new_array(m->arena, struct hlo_instr *, (size_t)n);
  for (struct hlo_computation *c = older->computations; c; c = c->next)
    for (struct hlo_instr *i = c->first; i; i = i->next)
      i->mark = -1;
  m->next_id = older->next_id;
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    for (struct hlo_instr *i = c->first; i; i = i->next, k++) {
      struct hlo_instr *old = pairs[k];
      heirs[k] = i;
      i->n_from = old ? old->n_from : 0;
      i->from = old ? old->from : NULL;
      i->locs = old ? old->locs : (struct src_locs){0};
      i->knob = old ? old->knob : NULL;
      i->id = old ? old->id : m->next_id++;
      if (old)
        old->mark = k;
    }
  assert(k == n);
  return heirs;
}

/* Keeps the fuse groups whose members are all there. */
static void adopt_fuses(struct hlo_module *m, const struct hlo_module *older, struct hlo_instr *const *heirs) {
  for (const struct hlo_fuse *f = older->fuses; f; f = f->next) {
    struct hlo_fuse *g = arena_new(m->arena, struct hlo_fuse);
    *g = (struct hlo_fuse){.is_never = f->is_never, .loc = f->loc};
    g->v = arena_new_array(m->arena, struct hlo_instr *, (size_t)f->n);
    for (int k = 0; k < f->n; k++)
      if (f->v[k]->parent && f->v[k]->mark >= 0)
        g->v[g->n++] = heirs[f->v[k]->mark];
    if (g->n < f->n)
      continue;
    if (m->last_fuse)
      m->last_fuse->next = g;
    else
      m->fuses = g;
    m->last_fuse = g;
  }
}

enum status hlo_adopt(struct hlo_module *m, const struct hlo_module *older, struct hlo_instr *const *pairs,
                      const char **why) {
  enum status st = compare_entries(m, older, why);
  if (st)
    return st;
  struct hlo_instr **heirs = adopt_instructions(m, older, pairs);
  adopt_fuses(m, older, heirs);
  m->name = older->name;
  m->n_outputs = older->n_outputs;
  m->output_names = older->output_names;
  m->n_aliases = older->n_aliases;
  m->aliases = older->aliases;
  if (m->next_computation_id < older->next_computation_id)
    m->next_computation_id = older->next_computation_id;
  hlo_names_inherit(m->arena, m->names, older->names);
  return ST_OK;
}
