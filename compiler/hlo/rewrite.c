/* rewrite: forwarding, provenance and fuse groups while a pass edits a module. */
#include "hlo/rewrite.h"

void hlo_rewrite_begin(struct hlo_module *m) {
  for (struct hlo_fuse *f = m->fuses; f; f = f->next)
    for (int k = 0; k < f->n; k++)
      f->v[k]->is_fused = true;
}

static struct hlo_instr *heir_of(struct hlo_instr *i) {
  while (!i->parent && i->scratch)
    i = i->scratch;
  return i->parent ? i : NULL;
}

static bool fuse_contains(const struct hlo_fuse *f, int n, const struct hlo_instr *i) {
  for (int k = 0; k < n; k++)
    if (f->v[k] == i)
      return true;
  return false;
}

void hlo_rewrite_end(struct hlo_module *m) {
  struct hlo_fuse **at = &m->fuses, *last = NULL;
  while (*at) {
    struct hlo_fuse *f = *at;
    int n = 0;
    for (int k = 0; k < f->n; k++) {
      struct hlo_instr *i = heir_of(f->v[k]);
      if (!i)
        continue;
      i->is_fused = false;
      if (!fuse_contains(f, n, i))
        f->v[n++] = i;
    }
    bool is_group = n > 1 || n == f->n || (f->is_never && n);
    f->n = n;
    if (is_group) {
      last = f;
      at = &f->next;
    } else {
      *at = f->next;
    }
  }
  m->last_fuse = last;
}

bool hlo_rewrite_is_pinned(const struct hlo_instr *i) {
  return i->knob || i->is_fused;
}

void hlo_rewrite_forward_operands(struct hlo_instr *i) {
  for (int k = 0; k < i->n_operands; k++)
    if (i->operands[k]->scratch)
      i->operands[k] = i->operands[k]->scratch;
}

void hlo_rewrite_inherit(struct hlo_instr *heir, struct hlo_instr *dead) {
  hlo_derive(heir, dead);
  heir->is_fused |= dead->is_fused;
}

void hlo_rewrite_inherit_places(struct hlo_instr *heir, const struct hlo_instr *dead) {
  const struct hlo_knob *knob = heir->knob;
  hlo_derive(heir, dead);
  heir->knob = knob;
}

static struct hlo_instr *copy(struct hlo_instr *before, const struct hlo_instr *x, const char *name,
                              struct hlo_shape shape, struct hlo_instr *const *operands) {
  struct hlo_instr *i = hlo_insert(before, x->op, name, shape, x->n_operands, operands);
  i->attrs = x->attrs;
  i->n_called = x->n_called;
  i->called = x->called;
  hlo_rewrite_inherit_places(i, x);
  i->knob = x->knob;
  return i;
}

struct hlo_instr *hlo_rewrite_copy(struct hlo_instr *before, const struct hlo_instr *x, struct hlo_shape shape,
                                   struct hlo_instr *const *operands) {
  return copy(before, x, x->name, shape, operands);
}

struct hlo_instr *hlo_rewrite_replace(struct hlo_instr *x, struct hlo_shape shape, struct hlo_instr *const *operands) {
  struct hlo_instr *i = copy(x, x, NULL, shape, operands);
  const char *name = i->name;
  i->name = x->name;
  x->name = name;
  return i;
}

void hlo_rewrite_remove(struct hlo_instr *i, struct hlo_instr *heir) {
  i->scratch = heir;
  hlo_remove(i);
}
