/* hlo: the graph itself: opcodes, shapes, computations, instructions, provenance.
 *
 * The rules of HLO are in infer.c.  Lists are intrusive and doubly linked, so that a pass can insert and remove while
 * it walks.
 */
#include "hlo/hlo.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/names.h"

/* ---- names of things --------------------------------------------------------------------------------- */

static const struct op_info {
  const char *name;
  int arity;
  enum hlo_class class;
} ops[HLO_OP_COUNT] = {
#define HLO_OP(e, name, arity, class) [e] = {name, arity, class},
#include "hlo/opcodes.def"
#undef HLO_OP
};

const char *hlo_op_name(enum hlo_op op) {
  return (unsigned)op < HLO_OP_COUNT ? ops[op].name : "?";
}
int hlo_op_arity(enum hlo_op op) {
  return ops[op].arity;
}
enum hlo_class hlo_op_class(enum hlo_op op) {
  return ops[op].class;
}
bool hlo_op_hands_on(enum hlo_op op) {
  return op == HLO_TUPLE || op == HLO_GET_TUPLE_ELEMENT || op == HLO_CALL || op == HLO_CONDITIONAL || op == HLO_WHILE ||
         op == HLO_OPT_BARRIER;
}

bool hlo_op_is_collective(enum hlo_op op) {
  return op == HLO_ALL_GATHER || op == HLO_ALL_REDUCE || op == HLO_REDUCE_SCATTER || op == HLO_ALL_TO_ALL ||
         op == HLO_COLLECTIVE_PERMUTE;
}

bool hlo_can_reduce(enum hlo_op op, enum dtype t) {
  switch (op) {
  case HLO_ADD:
  case HLO_MULTIPLY:
  case HLO_MAXIMUM:
  case HLO_MINIMUM:
    return true;
  case HLO_AND:
  case HLO_OR:
    return !dtype_is_float(t);
  default:
    return false;
  }
}

int hlo_op_from_name(const char *name, size_t n) {
  for (int op = 0; op < HLO_OP_COUNT; op++)
    if (!strncmp(ops[op].name, name, n) && !ops[op].name[n])
      return op;
  return -1;
}

const char *hlo_direction_name(enum hlo_direction d) {
  static const char *const names[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  return (unsigned)d < sizeof names / sizeof *names ? names[d] : "?";
}

const char *hlo_mem_space_name(enum mem_space m) {
  static const char *const names[] = {"", "Hbm", "Psum", "Sbuf", "SharedHbm", "Constant"};
  return (unsigned)m < sizeof names / sizeof *names ? names[m] : "";
}

/* ---- shapes ------------------------------------------------------------------------------------------ */

struct hlo_ints hlo_ints_dup(struct arena *a, int n, const int64_t *v) {
  assert(n >= 0);
  return (struct hlo_ints){n, n ? arena_dup(a, v, (size_t)n * sizeof *v) : NULL};
}

bool hlo_ints_equal(struct hlo_ints x, struct hlo_ints y) {
  return x.n == y.n && (!x.n || x.v == y.v || !memcmp(x.v, y.v, (size_t)x.n * sizeof *x.v));
}

bool hlo_dot_dims_equal(const struct hlo_dot_dims *x, const struct hlo_dot_dims *y) {
  return hlo_ints_equal(x->lhs_contracting, y->lhs_contracting) &&
         hlo_ints_equal(x->rhs_contracting, y->rhs_contracting) && hlo_ints_equal(x->lhs_batch, y->lhs_batch) &&
         hlo_ints_equal(x->rhs_batch, y->rhs_batch);
}

struct hlo_shape hlo_shape_array(struct arena *a, enum dtype t, int rank, const int64_t *dims) {
  struct hlo_ints d = hlo_ints_dup(a, rank, dims);
  return (struct hlo_shape){.dtype = t, .rank = rank, .dims = d.v};
}

struct hlo_shape hlo_shape_dup(struct arena *a, const struct hlo_shape *s) {
  if (s->dtype != DT_TUPLE)
    return hlo_shape_array(a, s->dtype, s->rank, s->dims);
  struct hlo_shape *elems = arena_new_array(a, struct hlo_shape, (size_t)s->n_elems);
  for (int k = 0; k < s->n_elems; k++)
    elems[k] = hlo_shape_dup(a, &s->elems[k]);
  return (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = s->n_elems, .elems = elems};
}

bool hlo_dims_equal(int rank, const int64_t *x, const int64_t *y) {
  return rank == 0 || memcmp(x, y, (size_t)rank * sizeof *x) == 0;
}

void hlo_dims_copy(int rank, int64_t *to, const int64_t *from) {
  if (rank)
    memcpy(to, from, (size_t)rank * sizeof *to);
}

bool hlo_shape_same_dims(const struct hlo_shape *x, const struct hlo_shape *y) {
  return x->rank == y->rank && hlo_dims_equal(x->rank, x->dims, y->dims);
}

bool hlo_shape_equal(const struct hlo_shape *x, const struct hlo_shape *y) {
  if (x->dtype != y->dtype)
    return false;
  if (x->dtype != DT_TUPLE)
    return hlo_shape_same_dims(x, y);
  if (x->n_elems != y->n_elems)
    return false;
  for (int i = 0; i < x->n_elems; i++)
    if (!hlo_shape_equal(&x->elems[i], &y->elems[i]))
      return false;
  return true;
}

bool hlo_is_topk(const struct hlo_instr *i) {
  if (i->op != HLO_CUSTOM_CALL || !i->attrs->custom_call_target ||
      strcmp(i->attrs->custom_call_target, HLO_TOPK_TARGET) || i->n_operands != 1 || i->n_called ||
      i->shape.dtype != DT_TUPLE || i->shape.n_elems != 2)
    return false;
  const struct hlo_shape *x = &i->operands[0]->shape, *values = &i->shape.elems[0], *at = &i->shape.elems[1];
  if (!x->rank || values->dtype != x->dtype || values->rank != x->rank ||
      (at->dtype != DT_U32 && at->dtype != DT_I32) || !hlo_shape_same_dims(values, at))
    return false;
  for (int d = 0; d < x->rank; d++)
    if (d < x->rank - 1 ? values->dims[d] != x->dims[d] : values->dims[d] > x->dims[d])
      return false;
  const char *k = i->attrs->backend_config; /* says how many; the meaning of any other is not known */
  return !k || !*k || strtoll(k, NULL, 10) == values->dims[x->rank - 1];
}

int64_t hlo_shape_elements(const struct hlo_shape *s) {
  int64_t n = 1;
  bool is_empty = false, overflows = false;
  for (int i = 0; i < s->rank; i++) {
    is_empty |= s->dims[i] == 0;
    overflows |= __builtin_mul_overflow(n, s->dims[i], &n);
  }
  return is_empty ? 0 : overflows ? -1 : n;
}

const char *hlo_shape_text(struct arena *a, const struct hlo_shape *s) {
  if (s->dtype == DT_TUPLE) {
    const char *text = "(";
    for (int i = 0; i < s->n_elems; i++)
      text = arena_printf(a, "%s%s%s", text, i ? ", " : "", hlo_shape_text(a, &s->elems[i]));
    return arena_printf(a, "%s)", text);
  }
  char dims[HLO_RANK_MAX * 21 + 1] = "";
  size_t n = 0;
  for (int i = 0; i < s->rank && i < HLO_RANK_MAX; i++)
    n += (size_t)snprintf(dims + n, sizeof dims - n, "%s%lld", i ? "," : "", (long long)s->dims[i]);
  return arena_printf(a, "%s[%s]", dtype_hlo_name(s->dtype), dims);
}

/* ---- modules and computations ------------------------------------------------------------------------ */

static struct hlo_computation *computation_alloc(struct hlo_module *m, const char *name) {
  struct hlo_computation *c = arena_new(m->arena, struct hlo_computation);
  c->name = arena_strdup(m->arena, name);
  c->id = m->next_computation_id++;
  c->module = m;
  m->n_computations++;
  return c;
}

struct hlo_module *hlo_module_new(struct arena *a, const char *name) {
  struct hlo_module *m = arena_new(a, struct hlo_module);
  m->arena = a;
  m->name = arena_strdup(a, name);
  m->names = hlo_names_new(a);
  m->attr_rows = arena_new_array(a, const struct hlo_attr_row *const *, HLO_OP_COUNT);
  m->entry = computation_alloc(m, "main");
  m->computations = m->entry;
  m->entry_link = &m->computations;
  return m;
}

/* Links c before the entry, which is last. */
static void link_computation(struct hlo_computation *c) {
  struct hlo_module *m = c->module;
  c->next = m->entry;
  *m->entry_link = c;
  m->entry_link = &c->next;
}

static void unlink_computation(struct hlo_computation *c) {
  struct hlo_computation **at = &c->module->computations;
  assert(c != c->module->entry);
  while (*at != c)
    at = &(*at)->next;
  *at = c->next;
  if (c->next == c->module->entry)
    c->module->entry_link = at;
}

struct hlo_computation *hlo_computation_new(struct hlo_module *m, const char *name) {
  struct hlo_computation *c = computation_alloc(m, name);
  link_computation(c);
  return c;
}

void hlo_computation_move_last(struct hlo_computation *c) {
  unlink_computation(c);
  link_computation(c);
}

void hlo_computation_move_before(struct hlo_computation *c, struct hlo_computation *before) {
  if (before == c->module->entry) {
    hlo_computation_move_last(c);
    return;
  }
  unlink_computation(c);
  struct hlo_computation **at = &c->module->computations;
  while (*at != before)
    at = &(*at)->next;
  c->next = before;
  *at = c;
}

void hlo_computation_remove(struct hlo_computation *c) {
  unlink_computation(c);
  c->module->n_computations--;
}

/* ---- instructions ------------------------------------------------------------------------------------ */

const struct hlo_attrs hlo_no_attrs = {0};

/* Instructions are allocated in contiguous pieces of this many bytes, each followed by its operands.  So a pass reads
 * memory in order, whatever else was allocated in between.  The same holds for attributes. */
enum { POOL_BYTES = 64 << 10 };

static void *pool_alloc(struct arena *a, struct hlo_pool *p, size_t n) {
  enum { ALIGN = 8 };
  n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
  if (n > POOL_BYTES / 4)
    return arena_alloc(a, n);
  if (p->left < n)
    *p = (struct hlo_pool){arena_alloc(a, POOL_BYTES), POOL_BYTES};
  p->at += n;
  p->left -= n;
  return p->at - n;
}

/* The same few lists of numbers, constants and attributes occur in many instructions, which share them, so that they stay
 * in the processor's cache.  Recently seen ones are found by hash. */
#define HASH_FACTOR 0x9e3779b97f4a7c15u

static size_t known_place(uint64_t h) {
  return h >> 32 & (HLO_KNOWN - 1);
}

static const int64_t *shared_ints(struct hlo_module *m, int n, const int64_t *v) {
  uint64_t h = (uint64_t)n;
  for (int k = 0; k < n; k++)
    h = (h ^ (uint64_t)v[k]) * HASH_FACTOR;
  struct hlo_ints *known = &m->ints[known_place(h)];
  if (known->n != n || memcmp(known->v, v, (size_t)n * sizeof *v) != 0)
    *known = hlo_ints_dup(m->arena, n, v);
  return known->v;
}

static struct hlo_instr *instr_alloc(struct hlo_computation *c, enum hlo_op op, const char *name,
                                     struct hlo_shape shape, int n_operands, struct hlo_instr *const *operands) {
  struct hlo_module *m = c->module;
  const size_t operands_size = (size_t)n_operands * sizeof(struct hlo_instr *);
  struct hlo_instr *i = pool_alloc(m->arena, &m->instrs, sizeof *i + operands_size);

  i->id = m->next_id++;
  i->op = op;
  c->ops[op / 64] |= (uint64_t)1 << op % 64;
  c->may_call |= hlo_op_calls(op);
  i->name = name ? hlo_names_take(m->arena, m->names, name) : hlo_names_take_automatic(m->arena, m->names, i->id);
  i->shape = shape;
  i->n_operands = n_operands;
  i->attrs = &hlo_no_attrs;
  if (n_operands)
    i->operands = memcpy(i + 1, operands, operands_size);
  if (shape.rank)
    i->shape.dims = shared_ints(m, shape.rank, shape.dims);
  i->parent = c;
  c->n_instrs++;
  return i;
}

struct hlo_instr *hlo_append(struct hlo_computation *c, enum hlo_op op, const char *name, struct hlo_shape shape,
                             int n_operands, struct hlo_instr *const *operands) {
  struct hlo_instr *i = instr_alloc(c, op, name, shape, n_operands, operands);
  i->prev = c->last;
  *(c->last ? &c->last->next : &c->first) = i;
  c->last = i;
  return i;
}

struct hlo_instr *hlo_insert(struct hlo_instr *before, enum hlo_op op, const char *name, struct hlo_shape shape,
                             int n_operands, struct hlo_instr *const *operands) {
  struct hlo_computation *c = before->parent;
  struct hlo_instr *i = instr_alloc(c, op, name, shape, n_operands, operands);
  i->prev = before->prev;
  i->next = before;
  *(before->prev ? &before->prev->next : &c->first) = i;
  before->prev = i;
  return i;
}

/* Most constants have one element or none, and the same few values. */
static const struct hlo_literal *shared_literal(struct hlo_module *m, const struct hlo_literal *l) {
  uint64_t bits = 0;
  if (l->shape.dtype == DT_TUPLE || l->size > sizeof bits)
    return l;
  memcpy(&bits, l->data, l->size);
  const struct hlo_literal **known = &m->literals[known_place((bits ^ (uint64_t)l->shape.dtype) * HASH_FACTOR)];
  if (!*known || (*known)->size != l->size || !hlo_shape_equal(&(*known)->shape, &l->shape) ||
      memcmp((*known)->data, l->data, l->size) != 0)
    *known = l;
  return *known;
}

/* Models repeat layers, so they have few kinds of dot. */
static const struct hlo_dot_dims *shared_dot(struct hlo_module *m, const struct hlo_dot_dims *d) {
  const struct hlo_ints v[] = {d->lhs_contracting, d->rhs_contracting, d->lhs_batch, d->rhs_batch};
  uint64_t h = 0;
  for (size_t k = 0; k < sizeof v / sizeof *v; k++)
    h = (h ^ (uint64_t)v[k].n ^ (v[k].n ? (uint64_t)v[k].v[0] << 8 : 0)) * HASH_FACTOR;
  const struct hlo_dot_dims **known = &m->dots[known_place(h)];
  if (!*known || !hlo_dot_dims_equal(*known, d))
    *known = d;
  return *known;
}

/* The hash covers the members in which attributes mostly differ.  Pointers are compared, not what they point to. */
static const struct hlo_attrs *shared_attrs(struct hlo_module *m, const struct hlo_attrs *attrs) {
  const uint64_t v[] = {(uintptr_t)attrs->dimensions.v,    (uintptr_t)attrs->literal, (uint64_t)attrs->tuple_index,
                        (uint64_t)attrs->parameter_number, (uintptr_t)attrs->slice,   (uintptr_t)attrs->dot,
                        (uint64_t)attrs->direction};
  uint64_t h = 0;
  for (size_t k = 0; k < sizeof v / sizeof *v; k++)
    h = (h ^ v[k]) * HASH_FACTOR ^ h >> 29;
  const struct hlo_attrs **known = &m->known_attrs[known_place(h)];
  if (!*known || memcmp(*known, attrs, sizeof *attrs) != 0)
    *known = memcpy(pool_alloc(m->arena, &m->attrs, sizeof *attrs), attrs, sizeof *attrs);
  return *known;
}

void hlo_set_attrs(struct hlo_instr *i, const struct hlo_attrs *attrs) {
  struct hlo_module *m = i->parent->module;
  struct hlo_attrs own = *attrs;
  if (!memcmp(attrs, &hlo_no_attrs, sizeof *attrs)) {
    i->attrs = &hlo_no_attrs;
    return;
  }
  if (own.dimensions.n)
    own.dimensions.v = shared_ints(m, own.dimensions.n, own.dimensions.v);
  if (own.literal)
    own.literal = shared_literal(m, own.literal);
  if (own.dot)
    own.dot = shared_dot(m, own.dot);
  i->attrs = shared_attrs(m, &own);
}

void hlo_remove(struct hlo_instr *i) {
  struct hlo_computation *c = i->parent;
  assert(c && c->root != i);
  *(i->prev ? &i->prev->next : &c->first) = i->next;
  *(i->next ? &i->next->prev : &c->last) = i->prev;
  i->parent = NULL;
  i->prev = i->next = NULL;
  c->n_instrs--;
}

/* ---- provenance -------------------------------------------------------------------------------------- */

/* from is kept ascending, and its storage is the next power of two of n_from.  So adding ids to a long list one at a time
 * (a thousand equal constants are merged into one) takes linear time in all.  A full list is only read, because several
 * instructions may share it. */
static void from_add(struct arena *a, struct hlo_instr *i, int id) {
  int n = i->n_from, lo = 0, hi = n;
  if (n && i->from[n - 1] < id)
    lo = n;
  while (lo < hi) {
    int mid = lo + (hi - lo) / 2;
    if (i->from[mid] < id)
      lo = mid + 1;
    else
      hi = mid;
  }
  if (lo < n && i->from[lo] == id)
    return;
  int *v = (int *)i->from; /* written here only; const elsewhere */
  if (!(n & (n - 1))) {
    v = arena_new_array(a, int, n ? 2 * (size_t)n : 1);
    if (n)
      memcpy(v, i->from, (size_t)n * sizeof *v);
  }
  memmove(v + lo + 1, v + lo, (size_t)(n - lo) * sizeof *v);
  v[lo] = id;
  i->from = v;
  i->n_from = n + 1;
}

void hlo_derive(struct hlo_instr *heir, const struct hlo_instr *dead) {
  if (heir == dead)
    return;
  struct hlo_computation *c = heir->parent ? heir->parent : dead->parent;
  struct arena *a = c->module->arena;
  if (!heir->n_from && !(dead->n_from & (dead->n_from - 1))) {
    heir->from = dead->from;
    heir->n_from = dead->n_from;
  }
  for (int k = 0; heir->from != dead->from && k < dead->n_from; k++)
    from_add(a, heir, dead->from[k]);
  heir->locs = src_locs_union(a, heir->locs, dead->locs);
  if (!heir->knob)
    heir->knob = dead->knob;
}

void hlo_stage_mark(struct hlo_module *m) {
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) {
      if (i->from == &i->id)
        continue; /* most of them: nothing to write */
      i->n_from = 1;
      i->from = &i->id;
    }
}
