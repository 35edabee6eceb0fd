#include "base/rounds.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

const struct rounds *rounds_one(struct arena *a, const int *at, int depth) {
  assert(depth > 0);
  struct rounds_span *v = arena_new_array(a, struct rounds_span, (size_t)depth);
  for (int i = 0; i < depth; i++)
    v[i] = (struct rounds_span){at[i], at[i]};
  struct rounds *r = arena_new(a, struct rounds);
  *r = (struct rounds){.depth = depth, .n = 1, .v = v};
  return r;
}

bool rounds_equal(const struct rounds *x, const struct rounds *y) {
  if (x == y || !x || !y)
    return x == y;
  return x->depth == y->depth && x->n == y->n && x->more == y->more &&
         !memcmp(x->v, y->v, (size_t)x->n * (size_t)x->depth * sizeof *x->v);
}

/* ---- boxes ------------------------------------------------------------------------------------------------------- */

static bool contains(const struct rounds_span *outer, const struct rounds_span *inner, int depth) {
  for (int i = 0; i < depth; i++)
    if (inner[i].first < outer[i].first || inner[i].last > outer[i].last)
      return false;
  return true;
}

static bool is_in(const struct rounds *r, const struct rounds_span *box) {
  for (int i = 0; i < r->n; i++)
    if (contains(r->v + i * r->depth, box, r->depth))
      return true;
  return false;
}

static bool covers(const struct rounds *x, const struct rounds *y) {
  if (x->depth != y->depth || x->more < y->more)
    return false;
  for (int i = 0; i < y->n; i++)
    if (!is_in(x, y->v + i * y->depth))
      return false;
  return true;
}

/* Returns the number of rounds of a box, at most INT_MAX. */
static int volume(const struct rounds_span *box, int depth) {
  long long n = 1;
  for (int i = 0; i < depth && n < INT_MAX; i++)
    n *= (long long)box[i].last - box[i].first + 1;
  return n < INT_MAX ? (int)n : INT_MAX;
}

static int add(int x, int y) {
  int sum;
  return __builtin_add_overflow(x, y, &sum) ? INT_MAX : sum;
}

/* Extends box by `other` if the two differ for one loop only, and their ranges for it touch or overlap.  The union is then
 * one box, too. */
static bool join(struct rounds_span *box, const struct rounds_span *other, int depth) {
  int at = -1;
  for (int i = 0; i < depth; i++) {
    if (box[i].first == other[i].first && box[i].last == other[i].last)
      continue;
    if (at >= 0)
      return false;
    at = i;
  }
  if (at < 0)
    return true;
  struct rounds_span *x = &box[at];
  const struct rounds_span y = other[at];
  if (add(x->last, 1) < y.first || add(y.last, 1) < x->first)
    return false;
  *x = (struct rounds_span){x->first < y.first ? x->first : y.first, x->last > y.last ? x->last : y.last};
  return true;
}

static void remove_box(struct rounds *r, struct rounds_span *v, int at) {
  const int depth = r->depth;
  memmove(v + at * depth, v + (at + 1) * depth, (size_t)((r->n - at - 1) * depth) * sizeof *v);
  r->n--;
}

/* Adds a box to the boxes v of r.  A box that has grown may join others, so it is taken out and added again. */
static void add_box(struct rounds *r, struct rounds_span *v, struct rounds_span *box) {
  const size_t size = (size_t)r->depth * sizeof *box;
  for (int i = 0; i < r->n; i++) {
    struct rounds_span *old = v + i * r->depth;
    if (contains(old, box, r->depth))
      return;
    if (contains(box, old, r->depth) || join(box, old, r->depth)) {
      remove_box(r, v, i);
      i = -1; /* from the start: the box may join a box that it did not touch before */
    }
  }
  if (r->n < ROUNDS_SHOWN)
    memcpy(v + r->n++ * r->depth, box, size);
  else
    r->more = add(r->more, volume(box, r->depth));
}

const struct rounds *rounds_union(struct arena *a, const struct rounds *x, const struct rounds *y) {
  if (!x || !y)
    return x ? x : y;
  if (x == y || covers(x, y))
    return x;
  if (covers(y, x))
    return y;
  const int depth = x->depth;
  struct rounds *r = arena_new(a, struct rounds);
  struct rounds_span *v = arena_new_array(a, struct rounds_span, (size_t)(ROUNDS_SHOWN + 1) * (size_t)depth);
  struct rounds_span *box = v + ROUNDS_SHOWN * depth;
  *r = (struct rounds){.depth = depth, .n = x->n, .more = x->more > y->more ? x->more : y->more, .v = v};
  memcpy(v, x->v, (size_t)(x->n * depth) * sizeof *v);
  for (int i = 0; i < y->n; i++) {
    if (y->depth != depth) {
      r->more = add(r->more, volume(y->v + i * y->depth, y->depth));
      continue;
    }
    memcpy(box, y->v + i * depth, (size_t)depth * sizeof *box);
    add_box(r, v, box);
  }
  return r;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

void rounds_print(struct buf *b, const struct rounds *r) {
  for (int i = 0; i < r->n * r->depth; i++) {
    if (i)
      buf_putc(b, i % r->depth ? '.' : ' ');
    buf_printf(b, "%d", r->v[i].first);
    if (r->v[i].last != r->v[i].first)
      buf_printf(b, "-%d", r->v[i].last);
  }
  if (r->more)
    buf_printf(b, "+%d", r->more);
}

/* Reads a number of at most INT_MAX at *p. */
static bool read_number(const char **p, const char *end, int *out) {
  long long n = 0;
  const char *q = *p;
  for (; q < end && *q >= '0' && *q <= '9' && n <= INT_MAX; q++)
    n = n * 10 + (*q - '0');
  const bool ok = q > *p && n <= INT_MAX;
  *p = q;
  *out = (int)n;
  return ok;
}

static bool read_span(const char **p, const char *end, struct rounds_span *s) {
  if (!read_number(p, end, &s->first))
    return false;
  s->last = s->first;
  if (*p == end || **p != '-')
    return true;
  ++*p;
  return read_number(p, end, &s->last) && s->last >= s->first;
}

const struct rounds *rounds_read(struct arena *a, const char *text, size_t len) {
  const char *end = text + len, *p = text;
  size_t n_spans = 1;
  for (const char *q = text; q < end; q++)
    n_spans += *q == '.' || *q == ' ';
  struct rounds_span *v = arena_new_array(a, struct rounds_span, n_spans);
  struct rounds *r = arena_new(a, struct rounds);
  *r = (struct rounds){.v = v};
  for (size_t i = 0, in_box = 0; i < n_spans; i++) {
    if (!read_span(&p, end, &v[i]))
      return NULL;
    in_box++;
    if (p < end && *p == '.') {
      p++;
      continue;
    }
    if (r->n++ && in_box != (size_t)r->depth)
      return NULL;
    r->depth = (int)in_box;
    in_box = 0;
    if (p < end && *p == ' ')
      p++;
  }
  if (p < end && *p++ == '+' && !read_number(&p, end, &r->more))
    return NULL;
  return p == end && r->n <= ROUNDS_SHOWN ? r : NULL;
}

void rounds_put_json(struct buf *b, const struct rounds *r) {
  for (int i = 0; i < r->n * r->depth; i++) {
    const struct rounds_span s = r->v[i];
    buf_puts(b, !i ? "[[" : i % r->depth ? "," : "],[");
    if (s.first == s.last)
      buf_printf(b, "%d", s.first);
    else
      buf_printf(b, "[%d,%d]", s.first, s.last);
  }
  buf_puts(b, "]]");
}
