/* place: see the header.
 *
 * First fit: items are placed one after another, each at the lowest address that no item has that is alive with it.  In
 * which order decides what fits, so several are tried: the largest first, in program order, the longest lifetime first;
 * and after a failure the item that had no room first (no order is right for all programs: the problem is NP-hard).
 *
 * Values of a loop that share bytes make engines wait: one that computes the first one of the next round waits for what reads the last
 * one of this round.  So if it fits with four copies of what DMA fills, those in the loop share no bytes, unless it has
 * products.
 *
 * To keep memory unused for some time after it became free, lifetimes are made longer by a distance, in operations.  The
 * largest distance of total, total / 2, total / 4 … with which everything fits is taken.  The largest is the whole
 * function: then no memory is reused.  Of the few banks of PSUM each item then takes the one that was free for the longest time. */
#include "passes/allocate_memory/place.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOVES_MAX = 24 }; /* of items to the front of the order, after failures */
enum { GIVEN_BACK_MAX = 16 };
enum { COPIES_KEPT = 4 }; /* of what DMA fills: with more, memory that nothing else in the loop uses saves more */
enum { ADDRESSES_FEW = 16 };

struct placing {
  struct place_item *v;
  int n;
  int64_t capacity;
  int64_t distance; /* by which lifetimes are longer */
  bool is_apart;    /* what lies in a loop shares its bytes with nothing else there */
  int *order;       /* the items in the order in which they are placed */
  int *placed;      /* those that have an offset, by offset */
};

static int64_t round_up(int64_t x, int64_t unit) {
  return (x + unit - 1) / unit * unit;
}

static int64_t stride_of(const struct place_item *x) {
  return round_up(x->bytes, x->align);
}

static int64_t size_of(const struct place_item *x) {
  return (x->copies - 1) * stride_of(x) + x->bytes;
}

/* True if x keeps its bytes during the whole loop.  loop_to: see nisa/lifetime.h. */
static bool keeps_bytes(const struct placing *p, const struct place_item *x) {
  return x->copies > 1 || (p->is_apart && x->loop_to < INT_MAX && !x->is_with_products);
}

static int begin_of(const struct placing *p, const struct place_item *x) {
  return keeps_bytes(p, x) ? x->loop_from : x->from;
}
static int end_of(const struct placing *p, const struct place_item *x) {
  return keeps_bytes(p, x) ? x->loop_to : x->to;
}

static bool meet(const struct placing *p, const struct place_item *x, const struct place_item *y) {
  return begin_of(p, x) < end_of(p, y) + p->distance && begin_of(p, y) < end_of(p, x) + p->distance;
}

/* ---- placing in a given order ----------------------------------------------------------------------------------- */

/* Finds the lowest offset for x; false if there is none. */
static bool place_one(const struct placing *p, int n_placed, struct place_item *x) {
  const int64_t size = size_of(x);
  int64_t at = 0;

  for (int k = 0; k < n_placed; k++) {
    const struct place_item *y = &p->v[p->placed[k]];
    if (!meet(p, x, y))
      continue;
    if (y->offset - at >= size)
      break;
    const int64_t after = round_up(y->offset + size_of(y), x->align);
    at = after > at ? after : at;
  }
  if (at + size > p->capacity)
    return false;
  x->offset = at;
  return true;
}

/* Where x belongs among the placed ones, which are in the order of their offsets. */
static int position_of(const struct placing *p, int n_placed, const struct place_item *x) {
  int k = n_placed;
  while (k > 0 && p->v[p->placed[k - 1]].offset > x->offset)
    k--;
  return k;
}

static void insert(struct placing *p, int n_placed, int item) {
  const int at = position_of(p, n_placed, &p->v[item]);
  memmove(p->placed + at + 1, p->placed + at, (size_t)(n_placed - at) * sizeof *p->placed);
  p->placed[at] = item;
}

/* Fixed items come first. */
static bool place_in_order(struct placing *p, int *failed) {
  int n_placed = 0;
  for (int k = 0; k < p->n; k++)
    if (p->v[k].is_fixed)
      insert(p, n_placed++, k);
  for (int k = 0; k < p->n; k++) {
    if (p->v[p->order[k]].is_fixed)
      continue;
    if (!place_one(p, n_placed, &p->v[p->order[k]])) {
      *failed = p->order[k];
      return false;
    }
    insert(p, n_placed++, p->order[k]);
  }
  return true;
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

enum order_kind { BY_SIZE, BY_PROGRAM, BY_LENGTH, ORDER_KINDS };

struct key {
  int64_t first; /* larger ones come first */
  int from, item;
};

static int by_key(const void *p, const void *q) {
  const struct key *x = p, *y = q;
  if (x->first != y->first)
    return x->first > y->first ? -1 : 1;
  return x->from != y->from ? (x->from > y->from) - (x->from < y->from) : x->item - y->item;
}

static void set_order(struct placing *p, struct key *keys, enum order_kind kind) {
  for (int k = 0; k < p->n; k++) {
    const struct place_item *x = &p->v[k];
    keys[k] = (struct key){.from = begin_of(p, x), .item = k};
    keys[k].first = kind == BY_SIZE ? size_of(x) : kind == BY_LENGTH ? (int64_t)end_of(p, x) - begin_of(p, x) : 0;
  }
  qsort(keys, (size_t)p->n, sizeof *keys, by_key);
  for (int k = 0; k < p->n; k++)
    p->order[k] = keys[k].item;
}

static void move_to_front(struct placing *p, int item) {
  int k = 0;
  while (p->order[k] != item)
    k++;
  memmove(p->order + 1, p->order, (size_t)k * sizeof *p->order);
  p->order[0] = item;
}

static bool place_in_some_order(struct placing *p, struct key *keys, int moves, int *failed) {
  for (int kind = 0; kind < ORDER_KINDS; kind++) {
    set_order(p, keys, (enum order_kind)kind);
    if (place_in_order(p, failed))
      return true;
  }
  set_order(p, keys, BY_SIZE);
  for (int k = 0; k < moves; k++) {
    if (place_in_order(p, failed))
      return true;
    move_to_front(p, *failed);
  }
  return false;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* A change of the memory in use. */
struct change {
  int at, item;
  int64_t bytes;
};

static int by_time(const void *p, const void *q) {
  const struct change *x = p, *y = q;
  if (x->at != y->at)
    return (x->at > y->at) - (x->at < y->at);
  return (x->bytes > y->bytes) - (x->bytes < y->bytes); /* an end makes room for a begin at the same place */
}

/* The item that begins where more than the capacity is first in use; -1 if there is none.  Fixed ones are not counted,
 * because they may have bytes in common. */
static int find_excess(const struct placing *p, struct change *changes) {
  int64_t live = 0;
  for (int k = 0; k < p->n; k++) {
    const int64_t size = p->v[k].is_fixed ? 0 : size_of(&p->v[k]);
    changes[2 * k] = (struct change){begin_of(p, &p->v[k]), k, size};
    changes[2 * k + 1] = (struct change){end_of(p, &p->v[k]), k, -size};
  }
  qsort(changes, (size_t)p->n * 2, sizeof *changes, by_time);
  for (int k = 0; k < 2 * p->n; k++)
    if ((live += changes[k].bytes) > p->capacity)
      return changes[k].item;
  return -1;
}

static bool gives_way_before(const struct place_item *x, const struct place_item *y) {
  if ((x->copies > 2) != (y->copies > 2))
    return x->copies > 2;
  /* An engine waits longer for a transfer, which wants more copies, than for another engine. */
  if (x->copies <= 2 && x->wanted != y->wanted)
    return x->wanted < y->wanted;
  /* A wait in an outer loop is a rarer one, and its copies are in the way of all that is in it. */
  const bool is_outside = x->loop_from <= y->loop_from && y->loop_to <= x->loop_to;
  if (is_outside != (y->loop_from <= x->loop_from && x->loop_to <= y->loop_to))
    return is_outside;
  return size_of(x) > size_of(y);
}

/* Takes a copy from one of the items that are alive with `item`, or from it; false if none has more than so many. */
static bool take_copy(struct placing *p, int item, int least) {
  struct place_item *best = NULL;
  for (int k = 0; k < p->n; k++) {
    struct place_item *x = &p->v[k];
    if (x->copies > least && meet(p, x, &p->v[item]) && (!best || gives_way_before(x, best)))
      best = x;
  }
  if (best)
    best->copies--;
  return best;
}

/* Takes copies until everything fits; false if it does not where each has at most so many. */
static bool take_copies(struct placing *p, struct key *keys, struct change *changes, int least, int *failed) {
  while ((*failed = find_excess(p, changes)) >= 0)
    if (!take_copy(p, *failed, least))
      return false;
  while (!place_in_some_order(p, keys, MOVES_MAX, failed))
    if (!take_copy(p, *failed, least))
      return false;
  return true;
}

/* Gives items a second copy again that fits after all: what was taken later may have left room. */
static void give_back(struct placing *p, struct key *keys, struct change *changes) {
  int failed, tries = 0;
  for (int k = 0; k < p->n && tries < GIVEN_BACK_MAX; k++) {
    struct place_item *x = &p->v[k];
    if (x->copies != 1 || x->wanted < 2)
      continue;
    tries++;
    x->copies = 2;
    if (find_excess(p, changes) >= 0 || !place_in_some_order(p, keys, 0, &failed))
      x->copies = 1;
  }
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static int64_t latest_end(const struct placing *p) {
  int end = 0;
  for (int k = 0; k < p->n; k++) {
    const int e = end_of(p, &p->v[k]);
    end = e > end ? e : end;
  }
  return end;
}

static void spread(struct placing *p, struct key *keys, struct place_item *best) {
  int failed;
  for (int64_t distance = latest_end(p); distance > 0; distance /= 2) {
    p->distance = distance;
    if (place_in_some_order(p, keys, 0, &failed))
      return;
  }
  memcpy(p->v, best, (size_t)p->n * sizeof *best);
}

/* ---- banks ------------------------------------------------------------------------------------------------------- */

static bool share_bytes(const struct place_item *x, int64_t at, const struct place_item *y) {
  return at < y->offset + size_of(y) && y->offset < at + size_of(x);
}

/* The operations between the two, also from the end of a loop to its begin; -1 if they are alive together. */
static int64_t gap_of(const struct placing *p, const struct place_item *x, const struct place_item *y) {
  const int64_t after = begin_of(p, x) - end_of(p, y), before = begin_of(p, y) - end_of(p, x);
  int64_t gap = after > before ? after : before;

  if (gap >= 0 && x->loop_from == y->loop_from && x->loop_to == y->loop_to) {
    const int64_t round = x->loop_to - x->loop_from,
                  around = round - (end_of(p, x) - begin_of(p, x)) - (end_of(p, y) - begin_of(p, y)) - gap;
    gap = around < gap ? around : gap;
  }
  return gap;
}

/* The least gap to those that have bytes in common with item k if it is at `at`. */
static int64_t least_gap(const struct placing *p, int k, int64_t at) {
  int64_t least = INT64_MAX;
  for (int i = 0; i < p->n; i++) {
    if (i == k || !share_bytes(&p->v[k], at, &p->v[i]))
      continue;
    const int64_t gap = gap_of(p, &p->v[k], &p->v[i]);
    least = gap < least ? gap : least;
  }
  return least;
}

/* Where there are few addresses, as in PSUM, moves each item to that which has been free for the longest time. */
static void take_turns(struct placing *p, struct key *keys) {
  set_order(p, keys, BY_PROGRAM);
  for (int n = 0; n < p->n; n++) {
    const int k = p->order[n];
    struct place_item *x = &p->v[k];
    int64_t best = x->is_fixed ? INT64_MAX : least_gap(p, k, x->offset);
    for (int64_t at = 0; at + size_of(x) <= p->capacity && best < INT64_MAX; at += x->align) {
      const int64_t gap = least_gap(p, k, at);
      if (gap <= best)
        continue;
      best = gap;
      x->offset = at;
    }
  }
}

bool place_items(struct arena *a, struct place_item *v, int n, int64_t capacity, int *failed) {
  struct placing p = {.v = v, .n = n, .capacity = capacity};
  struct change *changes = arena_new_array(a, struct change, (size_t)n * 2);
  struct key *keys = arena_new_array(a, struct key, (size_t)n);

  p.order = arena_new_array(a, int, (size_t)n);
  p.placed = arena_new_array(a, int, (size_t)n);
  for (int k = 0; k < n; k++) {
    assert(v[k].align >= 1 && v[k].copies >= 1 && v[k].from < v[k].to);
    v[k].wanted = v[k].copies;
  }
  p.is_apart = true;
  if (!take_copies(&p, keys, changes, COPIES_KEPT, failed)) {
    p.is_apart = false;
    for (int k = 0; k < n; k++)
      v[k].copies = v[k].wanted;
    if (!take_copies(&p, keys, changes, 1, failed))
      return false;
  }
  give_back(&p, keys, changes);
  const bool fits = place_in_some_order(&p, keys, MOVES_MAX, failed);
  assert(fits);
  (void)fits;
  for (int k = 0; k < n; k++)
    v[k].stride = stride_of(&v[k]);
  spread(&p, keys, arena_dup(a, v, (size_t)n * sizeof *v));
  if (n && capacity / v[0].align <= ADDRESSES_FEW)
    take_turns(&p, keys);
  return true;
}
