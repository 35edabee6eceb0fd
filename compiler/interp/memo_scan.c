/* memo_scan: what an operation does, as a part of its key (memo.c).
 *
 * Two operations that differ in the numbers of their slots only have the same key: slots are numbered in the order in
 * which the operation names them.
 */
#include <string.h>

#include "base/array.h"
#include "interp/memo_internal.h"

struct memo_room *memo_room(struct arena *a, int n_slots) {
  struct memo_room *r = arena_new(a, struct memo_room);
  *r = (struct memo_room){.arena = a, .places = arena_new_array(a, struct place, (size_t)n_slots)};
  memset(r->places, 0, (size_t)n_slots * sizeof *r->places);
  return r;
}

static struct place *define(struct scan *s, int slot) {
  const struct slot *x = &s->m->p->slots[slot];
  struct place *p = &s->room->places[slot];
  if (p->scan != s->room->n_scans)
    *p = (struct place){s->room->n_scans, s->room->n_numbers++, -1};
  mix(s, p->number);
  mix(s, (int64_t)x->t << 16 | x->is_tensor << 8 | (x->view < 0 ? 255 : s->m->p->ranks[x->view]));
  return p;
}

static struct place *use(struct scan *s, int slot) {
  struct place *p = &s->room->places[slot];
  const bool is_outside = p->scan != s->room->n_scans;
  if (is_outside) {
    define(s, slot)->root = s->room->outside.n;
    array_push(s->room->arena, &s->room->outside, ((struct outside){.slot = slot}));
  }
  mix(s, p->number);
  return p;
}

static void write_to(struct scan *s, int slot) {
  const struct place *p = use(s, slot);
  if (p->root >= 0)
    s->room->outside.v[p->root].is_written = true;
}

static bool is_memref(const struct scan *s, int slot) {
  const struct slot *x = &s->m->p->slots[slot];
  return x->view >= 0 && !x->is_tensor;
}

static bool scan_block(struct scan *s, const struct block *b) {
  mix(s, b ? b->code.n : -1);
  if (!b)
    return true;
  for (int k = 0; k < b->n_args; k++) {
    if (is_memref(s, b->args[k]))
      return false;
    define(s, b->args[k]);
  }
  for (int k = 0; k < b->code.n; k++)
    if (!memo_scan(s, &b->code.v[k]))
      return false;
  mix(s, b->n_results);
  for (int k = 0; k < b->n_results; k++) {
    if (is_memref(s, b->results[k]))
      return false;
    use(s, b->results[k]);
  }
  return true;
}

static void scan_linear(struct scan *s, int n, const struct linear *x) {
  mix(s, x->constant);
  mix_list(s, n, x->by);
}

static void scan_affine(struct scan *s, const struct affine *e) {
  mix(s, e->kind);
  mix(s, e->value);
  if (e->kind == AFFINE_OPERAND || e->kind == AFFINE_CONSTANT)
    return;
  scan_affine(s, e->x);
  scan_affine(s, e->y);
}

static void scan_arith(struct scan *s, const struct arith *x) {
  mix(s, x->op);
  mix(s, (int64_t)x->from << 32 | x->to);
  mix(s, x->predicate);
}

/* An instruction of a structured operation's body, whose operands are numbers of values. */
static bool scan_row(struct scan *s, const struct instr *in) {
  mix(s, in->op);
  mix(s, in->n_args);
  for (int k = 0; k < in->n_args; k++)
    if (in->op == OP_LOAD && !k)
      use(s, in->args[k]);
    else
      mix(s, in->args[k]);
  mix(s, in->results[0]);
  if (in->op == OP_ARITH)
    scan_arith(s, &in->arith);
  else if (in->op == OP_CONSTANT)
    mix(s, (int64_t)in->bits);
  else if (in->op == OP_INDEX)
    mix(s, in->index);
  else if (in->op == OP_AFFINE_APPLY)
    scan_affine(s, in->affine);
  return in->op == OP_ARITH || in->op == OP_CONSTANT || in->op == OP_INDEX || in->op == OP_LOAD ||
         in->op == OP_AFFINE_APPLY;
}

static bool scan_structured(struct scan *s, const struct structured *x) {
  const int64_t numbers[] = {x->n_loops, x->n_operands,    x->n_inputs,      x->n_values,
                             x->code.n,  x->is_copy,       x->copied_from,   x->is_fold,
                             x->product, x->transposed[0], x->transposed[1], x->accumulates};
  mix_list(s, sizeof numbers / sizeof *numbers, numbers);
  for (int l = 0; l < x->n_loops; l++) {
    mix(s, x->is_parallel[l]);
    mix(s, (int64_t)x->extent_operand[l] << 32 | x->extent_dim[l]);
  }
  for (int k = 0; k < x->n_operands; k++) {
    const struct operand *o = &x->operands[k];
    mix(s, (int64_t)o->t << 16 | o->is_read << 1 | o->is_all);
    mix(s, o->rank);
    for (int d = 0; d < o->rank; d++)
      scan_linear(s, x->n_loops, &o->at[d]);
    if (o->init >= 0)
      use(s, o->init);
    if (k >= x->n_inputs && o->init < 0)
      write_to(s, o->slot);
    else if (o->init < 0)
      use(s, o->slot);
    else
      define(s, o->slot);
  }
  for (int k = 0; k < x->n_values; k++) {
    mix(s, x->values[k].t);
    if (x->values[k].outer >= 0)
      use(s, x->values[k].outer);
  }
  for (int k = 0; k < x->code.n; k++)
    if (!scan_row(s, &x->code.v[k]))
      return false;
  for (int k = 0; k < x->n_operands - x->n_inputs; k++)
    mix(s, x->yields[k]);
  return true;
}

static void scan_shape(struct scan *s, const struct instr *in) {
  mix_list(s, in->op == OP_ALLOC ? 1 : in->view.n, in->view.offsets);
  mix_list(s, in->view.n, in->view.sizes);
  mix_list(s, in->view.n, in->view.strides);
  for (int k = 0; in->view.groups && k < in->view.n; k++)
    mix(s, in->view.groups[k]);
}

/* The memref that the instruction makes is a part of its operand's. */
static bool is_part(enum op op) {
  return op == OP_SUBVIEW || op == OP_COLLAPSE || op == OP_EXPAND || op == OP_CAST;
}

static bool scan_kind(struct scan *s, const struct instr *in) {
  switch (in->op) {
  case OP_ARITH:
    scan_arith(s, &in->arith);
    return true;
  case OP_CONSTANT:
    mix(s, (int64_t)in->bits);
    return true;
  case OP_ALLOC:
  case OP_SUBVIEW:
  case OP_COLLAPSE:
  case OP_EXPAND:
  case OP_INSERT_SLICE:
  case OP_ELEMENTS:
    scan_shape(s, in);
    return true;
  case OP_DEALLOC:
    return use(s, in->args[0])->root < 0;
  case OP_STORE:
  case OP_COPY:
    write_to(s, in->args[1]);
    return true;
  case OP_LOAD:
  case OP_INSERT:
  case OP_CAST:
  case OP_DIM:
    return true;
  case OP_AFFINE_APPLY:
    scan_affine(s, in->affine);
    return true;
  case OP_FOR:
    return scan_block(s, in->blocks[0]);
  case OP_IF:
  case OP_WHILE:
    return scan_block(s, in->blocks[0]) && scan_block(s, in->blocks[1]);
  case OP_STRUCTURED:
    return scan_structured(s, in->structured);
  default:
    return false;
  }
}

bool memo_scan(struct scan *s, const struct instr *in) {
  const bool has_blocks = in->op == OP_FOR || in->op == OP_IF || in->op == OP_WHILE;
  mix(s, in->op);
  mix(s, (int64_t)in->n_args << 32 | in->n_results);
  for (int k = 0; k < in->n_args; k++)
    use(s, in->args[k]);
  if (!scan_kind(s, in))
    return false;
  for (int k = 0; k < in->n_results; k++) {
    if (has_blocks && is_memref(s, in->results[k]))
      return false;
    struct place *p = define(s, in->results[k]);
    if (is_part(in->op) && is_memref(s, in->results[k]))
      p->root = s->room->places[in->args[0]].root;
  }
  return true;
}
