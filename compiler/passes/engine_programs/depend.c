/* depend: which pairs of instructions must be ordered.
 *
 * Two instructions depend on each other if both access the same memory and one of them writes.  There are two cases:
 *
 *   - They use the same buffer.  All pairs of its uses are compared, element by element (solve.c).
 *   - They use different allocations whose places overlap, one after the other.  Then all uses of the first come before
 *     all uses of the second.  In each stream, the last use of the first one and the first use of the second one stand
 *     for the others, because a stream executes in program order.
 *
 * An instruction also waits for those that it names (`after`, nki/order.h).
 *
 * The pairs of allocations come from a walk in program order that keeps, for every byte of a memory, the allocation that
 * owned it last.  An allocation waits for the owners of its bytes only: they have waited for those before.  A loop's body
 * is walked twice, so that its first allocations meet its last ones.
 */
#include <string.h>

#include "base/array.h"
#include "base/index.h"
#include "passes/engine_programs/engine_programs.h"

/* An access of a buffer. */
struct use {
  int instr, stream;
  const struct ep_access *access;
};
struct uses {
  struct use *v;
  int n, cap;
};

struct pair {
  int x, y; /* buffers, in program order */
};

/* Bytes of a memory, and the allocation that had them last. */
struct owned {
  int64_t from, to;
  int buffer;
};
struct memory {
  struct owned *v;
  int n, cap;
};

struct finder {
  struct ep *ep;
  struct arena *arena;
  struct uses *uses; /* of each buffer, in program order */
  struct memory memory[NISA_SPACES];
  struct index seen; /* pairs */
  struct {
    struct pair *v;
    int n, cap;
  } pairs;
  struct {
    int *v;
    int n, cap;
  } placed; /* allocations with a place and with uses, in program order */
};

static int segment_of(const struct finder *f, const struct use *u) {
  return f->ep->instrs.v[u->instr].segment;
}

static int loop_of(const struct finder *f, const struct use *u) {
  return f->ep->instrs.v[u->instr].loop;
}

/* ---- the same buffer -------------------------------------------------------------------------------------------- */

static void add_uses(struct finder *f, int instr, const struct ep_access *x) {
  struct ep *ep = f->ep;
  for (int s = 0; s < ep->n_streams; s++)
    if (ep->instrs.v[instr].streams >> s & 1)
      array_push(f->arena, &f->uses[x->buffer], (struct use){instr, s, x});
}

/* An access of memory that is known only at run time counts as a use of every buffer. */
static void add_use_of_any(struct finder *f, int instr, const struct ep_access *x) {
  for (int b = 0; b < f->ep->buffers.n; b++) {
    struct ep_access *any = arena_new(f->arena, struct ep_access);
    *any = (struct ep_access){.buffer = b, .writes = x->writes, .base = x->base};
    add_uses(f, instr, any);
  }
}

static void collect_uses(struct finder *f) {
  struct ep *ep = f->ep;
  f->uses = arena_new_array(f->arena, struct uses, (size_t)ep->buffers.n + 1);
  for (int k = 0; k < ep->instrs.n; k++)
    for (int i = 0; i < ep->instrs.v[k].n_accesses; i++) {
      const struct ep_access *x = &ep->instrs.v[k].accesses[i];
      if (x->buffer == EP_NONE)
        add_use_of_any(f, k, x);
      else
        add_uses(f, k, x);
    }
}

static void order(struct finder *f, const struct use *x, const struct use *y, bool whole) {
  if (!y->access->is_earlier && ep_is_counted(f->ep, x->instr, x->stream))
    ep_order(f->ep, x->instr, x->stream, x->access, y->instr, y->stream, y->access, whole);
}

/* x writes all that y accesses, and both are executed once: what is before x needs no order with y. */
static bool hides(const struct finder *f, const struct use *x, const struct use *y) {
  const struct ep_access *a = x->access, *b = y->access;
  if (!a->writes || loop_of(f, x) != EP_NONE || loop_of(f, y) != EP_NONE)
    return false;
  if (!mlirValueEqual(a->base, b->base) || !a->rank || a->rank != b->rank)
    return false;
  for (int k = 0; k < a->rank; k++) {
    const struct ep_range *p = &a->range[k], *q = &b->range[k];
    const int64_t low = q->low.constant - p->low.constant;
    if (!p->is_known || !q->is_known || p->period || low < 0 || low + q->width > p->width)
      return false;
  }
  return true;
}

/* Each use with those before it, and, in the next iteration of a loop around, with those after it and with itself: a
 * queue does not wait for its own transfers. */
static void order_uses(struct finder *f, const struct uses *u) {
  for (int j = 0; j < u->n; j++)
    for (int i = j; i >= 0 && segment_of(f, &u->v[i]) == segment_of(f, &u->v[j]); i--) {
      const struct use *x = &u->v[i], *y = &u->v[j];
      if (!x->access->writes && !y->access->writes)
        continue;
      order(f, x, y, false);
      if (i != j)
        order(f, y, x, false);
      if (x->instr != y->instr && hides(f, x, y))
        break;
    }
}

/* ---- overlapping places ----------------------------------------------------------------------------------------- */

static void add_pair(struct finder *f, int x, int y) {
  struct pair p = {x < y ? x : y, x < y ? y : x};
  const uint32_t hash = hash_bytes(&p, sizeof p);
  if (x == y)
    return;
  for (struct index_probe at = index_probe(&f->seen, hash); index_next(&at);)
    if (f->pairs.v[at.entry].x == p.x && f->pairs.v[at.entry].y == p.y)
      return;
  index_add(&f->seen, hash, f->pairs.n);
  array_push(f->arena, &f->pairs, p);
}

/* The first range that ends after byte `at`. */
static int first_after(const struct memory *m, int64_t at) {
  int low = 0, high = m->n;
  while (low < high) {
    const int mid = (low + high) / 2;
    if (m->v[mid].to > at)
      high = mid;
    else
      low = mid + 1;
  }
  return low;
}

/* Puts n ranges in the place of those from first to end - 1. */
static void replace_ranges(struct finder *f, struct memory *m, int first, int end, const struct owned *with, int n) {
  while (m->n + n > m->cap)
    m->v = array_grow(f->arena, m->v, m->n, &m->cap, sizeof *m->v);
  memmove(m->v + first + n, m->v + end, (size_t)(m->n - end) * sizeof *m->v);
  memcpy(m->v + first, with, (size_t)n * sizeof *m->v);
  m->n += first + n - end;
}

static void take_bytes(struct finder *f, int buffer) {
  const struct ep_buffer *b = &f->ep->buffers.v[buffer];
  struct memory *m = &f->memory[b->space];
  struct owned parts[3];
  int n = 0;
  const int first = first_after(m, b->from);
  int end = first;
  for (; end < m->n && m->v[end].from < b->to; end++)
    add_pair(f, m->v[end].buffer, buffer);
  if (first < end && m->v[first].from < b->from)
    parts[n++] = (struct owned){m->v[first].from, b->from, m->v[first].buffer};
  parts[n++] = (struct owned){b->from, b->to, buffer};
  if (first < end && m->v[end - 1].to > b->to)
    parts[n++] = (struct owned){b->to, m->v[end - 1].to, m->v[end - 1].buffer};
  replace_ranges(f, m, first, end, parts, n);
}

/* True if `loop` is `around`, or is in it. */
static bool is_in(const struct ep *ep, int loop, int around) {
  while (loop != EP_NONE && loop != around)
    loop = ep->loops.v[loop].parent;
  return loop == around;
}

/* Walks the allocations from number `at` on that are in `loop`; returns the number of the first one after it. */
static int walk_places(struct finder *f, int loop, int at) {
  const struct ep *ep = f->ep;
  while (at < f->placed.n) {
    const int inner = ep->buffers.v[f->placed.v[at]].loop;
    if (!is_in(ep, inner, loop))
      return at;
    if (inner == loop) {
      take_bytes(f, f->placed.v[at++]);
    } else {
      const int child = ep_loop_at(ep, inner, ep_depth(ep, loop));
      walk_places(f, child, at);
      at = walk_places(f, child, at);
    }
  }
  return at;
}

/* Orders the last use of x in each stream before the first use of y in each stream, segment by segment. */
static void order_places(struct finder *f, const struct uses *x, const struct uses *y) {
  const int n_streams = f->ep->n_streams;
  for (int i = 0, j = 0; i < x->n && j < y->n;) {
    const struct use *last[EP_STREAMS_MAX] = {NULL}, *first[EP_STREAMS_MAX] = {NULL};
    const int sx = segment_of(f, &x->v[i]), sy = segment_of(f, &y->v[j]), segment = sx < sy ? sx : sy;
    for (; i < x->n && segment_of(f, &x->v[i]) == segment; i++)
      last[x->v[i].stream] = &x->v[i];
    for (; j < y->n && segment_of(f, &y->v[j]) == segment; j++)
      if (!first[y->v[j].stream])
        first[y->v[j].stream] = &y->v[j];
    for (int s = 0; s < n_streams; s++)
      for (int t = 0; t < n_streams; t++)
        if (last[s] && first[t])
          order(f, last[s], first[t], true);
  }
}

static void find_places(struct finder *f) {
  const struct ep *ep = f->ep;
  for (int k = 0; k < ep->buffers.n; k++)
    if (ep->buffers.v[k].is_placed && mem_is_on_chip(ep->buffers.v[k].space) && f->uses[k].n)
      array_push(f->arena, &f->placed, k);
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

static const char *text_of(struct finder *f, MlirAttribute a) {
  if (mlirAttributeIsNull(a) || !mlirAttributeIsAString(a))
    return NULL;
  const MlirStringRef s = mlirStringAttrGetValue(a);
  return arena_printf(f->arena, "%.*s", (int)s.length, s.data);
}

/* Instruction y waits for x, whatever they access. */
static void order_instrs(struct finder *f, int x, int y) {
  static const struct ep_access any = {.buffer = 0};
  const struct ep_instr *a = &f->ep->instrs.v[x], *b = &f->ep->instrs.v[y];
  for (int s = 0; s < f->ep->n_streams && a->segment == b->segment; s++)
    for (int t = 0; t < f->ep->n_streams; t++)
      if ((a->streams >> s & 1) && (b->streams >> t & 1) && ep_is_counted(f->ep, x, s))
        ep_order(f->ep, x, s, &any, y, t, &any, true);
}

/* An instruction with after="a,b" waits for the last instructions before it that have the labels "a" and "b". */
static void order_labels(struct finder *f) {
  struct index by_label = {.arena = f->arena};
  const char **label = arena_new_array(f->arena, const char *, (size_t)f->ep->instrs.n);
  for (int k = 0; k < f->ep->instrs.n; k++) {
    MlirOperation op = f->ep->instrs.v[k].op;
    const char *after = text_of(f, mlirOperationGetAttributeByName(op, ir_str("after")));
    while (after) {
      const char *comma = strchr(after, ',');
      const char *name = comma ? arena_printf(f->arena, "%.*s", (int)(comma - after), after) : after;
      int last = EP_NONE;
      for (struct index_probe at = index_probe(&by_label, hash_text(name)); index_next(&at);)
        last = !strcmp(label[at.entry], name) && at.entry > last ? at.entry : last;
      if (last != EP_NONE)
        order_instrs(f, last, k);
      after = comma ? comma + 1 : NULL;
    }
    label[k] = text_of(f, mlirOperationGetAttributeByName(op, ir_str("label")));
    if (label[k])
      index_add(&by_label, hash_text(label[k]), k);
  }
}

/* Buffers are numbered by their first mention: an allocation is mentioned before its uses. */
void ep_find_waits(struct ep *ep) {
  struct finder f = {.ep = ep, .arena = ep->run->arena, .seen = {.arena = ep->run->arena}};
  collect_uses(&f);
  for (int k = 0; k < ep->buffers.n; k++)
    order_uses(&f, &f.uses[k]);
  order_labels(&f);
  find_places(&f);
  walk_places(&f, EP_NONE, 0);
  for (int k = 0; k < f.pairs.n; k++) {
    order_places(&f, &f.uses[f.pairs.v[k].x], &f.uses[f.pairs.v[k].y]);
    order_places(&f, &f.uses[f.pairs.v[k].y], &f.uses[f.pairs.v[k].x]);
  }
}
