/* remark: see remark.h. */
#include "passes/remark.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "base/json.h"

/* ---- making ------------------------------------------------------------------------------------------------------ */

static const char *copy_of(struct remark *r, const char *s) {
  return s ? arena_strndup(r->arena, s, strlen(s)) : NULL;
}

struct remark *remark_add(struct remarks *rs, struct arena *a, const struct remark *like) {
  struct remark *r = arena_dup(a, like, sizeof *like);
  r->arena = a;
  if (rs->last)
    rs->last->next = r;
  else
    rs->first = r;
  rs->last = r;
  rs->n++;
  return r;
}

void remark_cost(struct remark *r, const char *fmt, ...) {
  if (!r)
    return;
  va_list ap;
  va_start(ap, fmt);
  r->cost = arena_vprintf(r->arena, fmt, ap);
  va_end(ap);
}

void remark_forced(struct remark *r, const char *why) {
  if (r)
    r->forced = copy_of(r, why);
}

void remark_limit(struct remark *r, const char *name, const char *unit, int64_t used, int64_t available) {
  if (!r)
    return;
  struct remark_limit **end = &r->limits;
  while (*end)
    end = &(*end)->next;
  *end = arena_new(r->arena, struct remark_limit);
  **end =
      (struct remark_limit){.name = copy_of(r, name), .unit = copy_of(r, unit), .used = used, .available = available};
}

void remark_reject_for(struct remark *r, const char *choice, const char *value, const char *cost, const char *reason) {
  if (!r)
    return;
  struct remark_rejected **end = &r->rejected;
  while (*end)
    end = &(*end)->next;
  *end = arena_new(r->arena, struct remark_rejected);
  **end = (struct remark_rejected){
      .choice = copy_of(r, choice), .reason = copy_of(r, reason), .cost = copy_of(r, cost), .value = copy_of(r, value)};
}

void remark_reject(struct remark *r, const char *choice, const char *reason) {
  remark_reject_for(r, choice, NULL, NULL, reason);
}

void remark_knob(struct remark *r, const char *call, const char *argument, const char *value) {
  if (!r)
    return;
  struct remark_knob *k = arena_new(r->arena, struct remark_knob);
  *k = (struct remark_knob){.call = copy_of(r, call), .argument = copy_of(r, argument), .value = copy_of(r, value)};
  r->knob = k;
}

void remark_knob_dims(struct remark *r, int n, const int *dims) {
  if (!r)
    return;
  assert(r->knob);
  struct remark_knob *k = arena_new(r->arena, struct remark_knob);
  int *own = arena_new_array(r->arena, int, (size_t)n + 1);
  for (int d = 0; d < n; d++)
    own[d] = dims[d];
  *k = *r->knob;
  k->n_dims = n;
  k->dims = own;
  r->knob = k;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void put_limits(struct buf *b, const struct remark_limit *l) {
  json_put_key(b, "limits");
  buf_putc(b, '[');
  for (; l; l = l->next) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", l->name);
    json_put_field_str(b, "unit", l->unit);
    json_put_field_int(b, "used", l->used);
    json_put_field_int(b, "available", l->available);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

static void put_rejected(struct buf *b, const struct remark *r) {
  json_put_key(b, "rejected");
  buf_putc(b, '[');
  for (const struct remark_rejected *x = r->rejected; x; x = x->next) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "choice", x->choice);
    json_put_field_str(b, "reason", x->reason);
    if (x->cost)
      json_put_field_str(b, "cost", x->cost);
    if (x->value && r->knob) {
      json_put_key(b, "value");
      buf_puts(b, x->value);
    }
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

static void put_knob(struct buf *b, const struct remark *r) {
  const struct remark_knob *k = r->knob;
  json_put_key(b, "knob");
  buf_putc(b, '{');
  json_put_field_str(b, "call", k->call);
  json_put_field_str(b, "argument", k->argument);
  json_put_key(b, "value");
  buf_puts(b, k->value);
  json_put_key(b, "offers");
  buf_putc(b, '[');
  for (const struct remark_rejected *x = r->rejected; x; x = x->next)
    if (x->value) {
      json_put_comma(b);
      buf_puts(b, x->value);
    }
  buf_putc(b, ']');
  if (k->n_dims) {
    json_put_key(b, "dims");
    buf_putc(b, '[');
    for (int d = 0; d < k->n_dims; d++) {
      json_put_comma(b);
      json_put_int(b, k->dims[d]);
    }
    buf_putc(b, ']');
  }
  buf_putc(b, '}');
}

void remark_put_reasons(struct buf *b, const struct remark *r) {
  json_put_field_str(b, "rule", rule_def(r->rule)->name);
  if (r->cost)
    json_put_field_str(b, "cost", r->cost);
  if (r->forced)
    json_put_field_str(b, "forced", r->forced);
  if (r->limits)
    put_limits(b, r->limits);
  if (r->rejected)
    put_rejected(b, r);
  if (r->knob)
    put_knob(b, r);
}
