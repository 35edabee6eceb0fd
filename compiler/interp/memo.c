/* memo: the results of operations, kept under a key of the operation and its operands.
 *
 *     scf.for %i = %c0 to %c8 step %c1 {            stage 30 runs this loop; in stages 31 to 35 it is the same and finds
 *       %x = memref.subview %a[0, %i] ...           the same elements in %a and %b: they take the elements that %b had
 *       linalg.exp ins(%x) outs(%y) ...             after it
 *     }
 *
 * A pass changes a few operations of a kernel.  Every stage is read and run, but an operation of the function's own block,
 * a loop with all that it contains or one structured operation, whose result an earlier stage or an earlier operation
 * computed, is not run again.  Two operations compute the same if the same instructions, with slots numbered in their
 * order, start from the same scalars, shapes and layouts, and from memory with the same contents; all of it goes into 128
 * bits, as for products (products.c).  What an operation leaves is the contents of the blocks that it may write and of
 * those of its results.  They lie in memory that does not change, so they come back as copies that are put off (parts.c): a
 * series of known operations moves no elements at all.
 *
 * Operations that are not described here, or that write memory which the program does not own, are always run.
 */
#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "interp/memo_internal.h"

enum { LEAST_BYTES = 16 << 10 }; /* an operation on less costs less than to look it up */

/* What a block has after an operation. */
struct state {
  size_t bytes;
  const char *base; /* its elements before the parts are copied; NULL: nothing has written it */
  int n_parts;
  struct kept_part {
    int64_t at; /* in bytes from the block's beginning */
    struct part part;
  } *parts;
  bool is_sum;
};

struct effect {
  int outside,
      result; /* whose block has the state: the operation's slot from outside with this number, or its result */
  struct state state;
  int64_t offset, *dims, *strides; /* of a result */
};

struct memo {
  struct arena *arena;
  struct index index;
  struct {
    struct known {
      struct key key;
      int n_effects;
      struct effect *effects;
    } *v;
    int n, cap;
  } known;
};

struct memo *memo_new(struct arena *a) {
  struct memo *memo = arena_new(a, struct memo);
  *memo = (struct memo){.arena = a, .index = {.arena = a}};
  return memo;
}

/* ---- what it starts from ------------------------------------------------------------------------------------------ */

/* True if the elements are adjacent; *bytes: how many. */
static bool is_dense(const struct view *v, int rank, size_t size, int64_t *bytes) {
  int64_t n = 1;
  for (int d = rank - 1; d >= 0; d--) {
    if (v->dims[d] != 1 && v->strides[d] != n)
      return false;
    n *= v->dims[d];
  }
  *bytes = n * (int64_t)size;
  return *bytes > 0;
}

/* The elements of the block's first part if it is the whole block, so that what was before does not matter; or NULL. */
static const char *base_part(const struct memory_block *b) {
  const struct part *x = b->parts.v;
  const bool is_base = b->parts.n && x->to.data == (const char *)b->data &&
                       x->to.n * x->to.length == (int64_t)b->bytes &&
                       (x->to.n == 1 || (x->to.step == x->to.length && x->from_step == x->to.length));
  return is_base ? x->from : NULL;
}

static void mix_key(struct scan *s, struct key k) {
  mix(s, (int64_t)k.low);
  mix(s, (int64_t)k.high);
}

static void mix_rows(struct scan *s, const char *data, const struct rows *like, int64_t step, bool is_fixed) {
  const struct rows rows = {(char *)(uintptr_t)data, like->n, like->length, step};
  mix_key(s, products_digest(s->m->products, &rows, is_fixed));
}

/* The digest of a block that has all its elements. */
static struct key digest_block(struct machine *m, struct memory_block *b) {
  assert(!b->is_raw && !b->parts.n);
  const struct rows all = {(char *)b->data, 1, (int64_t)b->bytes, (int64_t)b->bytes};
  if (!b->has_digest)
    b->digest = products_digest(m->products, &all, false);
  b->has_digest = true;
  return b->digest;
}

/* A block has parts only if nothing else has written it, or the first part writes all of it. */
static void settle_base(struct memory_block *b) {
  if (!b->is_raw && b->parts.n && !base_part(b))
    parts_copy(&b->parts);
}

/* The same contents give the same key, whether they were copied or are to be. */
static bool scan_contents(struct scan *s, struct memory_block *b) {
  settle_base(b);
  const char *base = base_part(b);
  const struct rows all = {.n = 1, .length = (int64_t)b->bytes};
  if (b->is_released || !b->bytes)
    return false;
  mix(s, all.length);
  mix(s, b->is_sum);
  mix(s, base || !b->is_raw);
  if (base)
    mix_rows(s, base, &all, all.length, true);
  else if (!b->is_raw)
    mix_key(s, digest_block(s->m, b));
  for (int k = base != NULL; k < b->parts.n; k++) {
    const struct part *x = &b->parts.v[k];
    mix_list(s, 4, (int64_t[]){x->to.data - (const char *)b->data, x->to.n, x->to.length, x->to.step});
    mix_rows(s, x->from, &x->to, x->from_step, true);
  }
  return true;
}

/* The number of the first slot from outside with this block. */
static int first_with(const struct scan *s, const struct memory_block *b) {
  int k = 0;
  while (view_of(s->m, s->room->outside.v[k].slot)->block != b || s->m->p->slots[s->room->outside.v[k].slot].view < 0)
    k++;
  return k;
}

static bool scan_memory(struct scan *s, int k) {
  const struct outside *o = &s->room->outside.v[k];
  const struct view *v = view_of(s->m, o->slot);
  const int rank = rank_of(s->m, o->slot);
  int64_t bytes;
  mix_list(s, rank, v->dims);
  mix_list(s, rank, v->strides);
  if (v->block) {
    const int first = first_with(s, v->block);
    mix(s, first);
    mix(s, v->data - (const char *)v->block->data);
    return first < k || scan_contents(s, v->block);
  }
  mix(s, -1);
  if (v->is_fixed)
    mix(s, (int64_t)(intptr_t)v->data);
  if (o->is_written || v->is_fixed)
    return !o->is_written;
  if (!is_dense(v, rank, dtype_size(s->m->p->slots[o->slot].t), &bytes))
    return false;
  mix_rows(s, v->data, &(struct rows){.n = 1, .length = bytes}, bytes, false);
  return true;
}

static bool scan_start(struct scan *s) {
  for (int k = 0; k < s->room->outside.n; k++) {
    const int slot = s->room->outside.v[k].slot;
    if (s->m->p->slots[slot].view < 0)
      mix(s, machine_int(s->m, slot));
    else if (!scan_memory(s, k))
      return false;
  }
  return true;
}

/* ---- what it leaves ----------------------------------------------------------------------------------------------- */

static bool keep_state(struct machine *m, struct memo *memo, struct memory_block *b, struct state *out) {
  settle_base(b);
  const char *base = base_part(b);
  const int first = base != NULL;
  *out = (struct state){.bytes = b->bytes, .base = base, .n_parts = b->parts.n - first, .is_sum = b->is_sum};
  if (b->is_released || out->n_parts >= PARTS_MAX)
    return false;
  out->parts = arena_new_array(memo->arena, struct kept_part, (size_t)out->n_parts);
  for (int k = 0; k < out->n_parts; k++) {
    const struct part *x = &b->parts.v[first + k];
    out->parts[k] = (struct kept_part){x->to.data - (const char *)b->data, *x};
  }
  if (base || b->is_raw)
    return true;
  out->base = products_keep_bytes(m->products, (const char *)b->data, b->bytes, digest_block(m, b));
  return out->base;
}

static void restore_state(struct memory_block *b, const struct state *s) {
  b->is_raw = true;
  b->is_sum = s->is_sum;
  b->has_digest = false;
  b->parts.n = 0;
  const int64_t bytes = (int64_t)s->bytes;
  bool ok = !s->base || parts_add(&b->parts, &(struct part){{(char *)b->data, 1, bytes, bytes}, s->base, bytes});
  for (int k = 0; ok && k < s->n_parts; k++) {
    struct part x = s->parts[k].part;
    x.to.data = (char *)b->data + s->parts[k].at;
    ok = parts_add(&b->parts, &x);
  }
  assert(ok); /* keep_state has counted them */
}

static int64_t *copy_list(struct memo *memo, int n, const int64_t *v) {
  return arena_dup(memo->arena, v, (size_t)n * sizeof *v);
}

static bool keep_result(struct machine *m, struct memo *memo, const struct instr *in, int k, struct effect *out) {
  const struct view *v = view_of(m, in->results[k]);
  const int rank = rank_of(m, in->results[k]);
  if (!v->block)
    return false;
  *out = (struct effect){.outside = -1,
                         .result = k,
                         .offset = v->data - (const char *)v->block->data,
                         .dims = copy_list(memo, rank, v->dims),
                         .strides = copy_list(memo, rank, v->strides)};
  return keep_state(m, memo, v->block, &out->state);
}

/* Keeps what the operation of the last scan has left. */
static void keep(struct scan *s, const struct instr *in) {
  struct memo *memo = products_memo(s->m->products);
  const int n_outside = s->room->outside.n;
  struct known known = {.key = *s->key};
  known.effects = arena_new_array(memo->arena, struct effect, (size_t)(n_outside + in->n_results));
  for (int k = 0; k < n_outside; k++) {
    const struct outside *o = &s->room->outside.v[k];
    struct effect *e = &known.effects[known.n_effects];
    if (!o->is_written)
      continue;
    *e = (struct effect){.outside = k, .result = -1};
    if (!keep_state(s->m, memo, view_of(s->m, o->slot)->block, &e->state))
      return;
    known.n_effects++;
  }
  for (int k = 0; k < in->n_results; k++)
    if (!keep_result(s->m, memo, in, k, &known.effects[known.n_effects++]))
      return;
  index_add(&memo->index, (uint32_t)known.key.low, memo->known.n);
  array_push(memo->arena, &memo->known, known);
}

static bool restore(struct scan *s, const struct instr *in, const struct known *known) {
  for (int k = 0; k < known->n_effects; k++) {
    const struct effect *e = &known->effects[k];
    const int slot = e->outside >= 0 ? s->room->outside.v[e->outside].slot : in->results[e->result];
    struct view *v = view_of(s->m, slot);
    if (e->outside < 0) {
      const size_t n = (size_t)rank_of(s->m, slot) * sizeof *v->dims;
      if (!machine_allocate(s->m, in, v, e->state.bytes))
        return false;
      v->data += e->offset;
      memcpy(v->dims, e->dims, n);
      memcpy(v->strides, e->strides, n);
    }
    restore_state(v->block, &e->state);
  }
  return true;
}

/* ---- operations --------------------------------------------------------------------------------------------------- */

static bool is_large(const struct machine *m, int slot) {
  const struct slot *x = &m->p->slots[slot];
  int64_t n = (int64_t)dtype_size(x->t);
  for (int d = 0; x->view >= 0 && d < m->p->ranks[x->view]; d++)
    n *= m->views[x->view].dims[d];
  return x->view >= 0 && n >= LEAST_BYTES;
}

static bool is_worth(const struct machine *m, const struct instr *in) {
  bool has_large = in->op == OP_FOR;
  if (in->op != OP_FOR && in->op != OP_COPY && (in->op != OP_STRUCTURED || in->structured->product != DT_NONE))
    return false;
  for (int k = 0; k < in->n_results; k++)
    if (!m->p->slots[in->results[k]].is_tensor)
      return false;
  for (int k = 0; !has_large && k < in->n_args; k++)
    has_large = is_large(m, in->args[k]);
  return has_large;
}

/* Sets the key of the operation; false if it is not described. */
static bool scan_all(struct scan *s, const struct instr *in) {
  s->room->n_scans++;
  s->room->n_numbers = s->room->outside.n = 0;
  return memo_scan(s, in) && scan_start(s);
}

static const struct known *find(const struct memo *memo, const struct key *key) {
  for (struct index_probe i = index_probe(&memo->index, (uint32_t)key->low); index_next(&i);) {
    const struct known *k = &memo->known.v[i.entry];
    if (k->key.low == key->low && k->key.high == key->high)
      return k;
  }
  return NULL;
}

bool memo_run(struct machine *m, const struct instr *in) {
  struct key key = {1, 2};
  struct scan s = {m, m->memo, &key};
  if (in->op == OP_COPY && machine_put_off_copy(m, in->args[0], view_of(m, in->args[1])))
    return true;
  if (!is_worth(m, in) || !scan_all(&s, in))
    return run_instr(m, in);
  const struct known *known = find(products_memo(m->products), &key);
  if (known)
    return restore(&s, in, known);
  if (!run_instr(m, in))
    return false;
  keep(&s, in);
  return true;
}
