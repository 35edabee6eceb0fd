/* why: see the header.  Linear in the lines and provenance of the stages up to the one that is asked for. */
#include "driver/why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/rule.h"
#include "base/utf8.h"
#include "driver/result_stage.h"

enum { SHOWN_MAX = 120 /* bytes of a line of IR */, PLACES_MAX = 4 };

struct ops {
  json_int_t *v; /* sorted, each once */
  size_t n;
};

struct chain {
  struct arena *a;
  struct buf *b;
  const json_t *result, *stages;
  struct ops *ops; /* of each stage up to the last */
  int n_stages;
};

static const char *text_of(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

/* ---- following --------------------------------------------------------------------------------------------------- */

static int compare_ids(const void *x, const void *y) {
  const json_int_t p = *(const json_int_t *)x, q = *(const json_int_t *)y;
  return p < q ? -1 : p > q;
}

static void sort_ops(struct ops *o) {
  size_t n = 0;
  if (o->n)
    qsort(o->v, o->n, sizeof *o->v, compare_ids);
  for (size_t i = 0; i < o->n; i++)
    if (!n || o->v[n - 1] != o->v[i])
      o->v[n++] = o->v[i];
  o->n = n;
}

static bool has_op(const struct ops *o, json_int_t id) {
  return o->n && bsearch(&id, o->v, o->n, sizeof id, compare_ids);
}

/* The ids of the operations in the stage before from which an operation of stage s was made. */
static const json_t *made_from(const struct chain *c, int s, json_int_t id) {
  char key[24];
  snprintf(key, sizeof key, "%lld", (long long)id);
  return json_object_get(json_object_get(json_array_get(c->stages, (size_t)s), "from"), key);
}

/* Fills the operations of the stage before from those of stage s; false when out of memory. */
static bool follow_back(struct chain *c, int s) {
  const struct ops *now = &c->ops[s];
  struct ops *before = &c->ops[s - 1];
  const json_t *id;
  size_t k, n = 0;
  for (size_t i = 0; i < now->n; i++)
    n += json_array_size(made_from(c, s, now->v[i]));
  before->v = arena_try_array(c->a, n, sizeof *before->v);
  if (!before->v)
    return false;
  for (size_t i = 0; i < now->n; i++)
    json_array_foreach(made_from(c, s, now->v[i]), k, id) before->v[before->n++] = json_integer_value(id);
  sort_ops(before);
  return true;
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

/* Appends the text of a line, at most SHOWN_MAX bytes of it. */
static void put_line(struct buf *b, const char *text, size_t len) {
  const bool is_cut = len > SHOWN_MAX;
  buf_append(b, text, is_cut ? utf8_cut(text, len, SHOWN_MAX) : len);
  buf_puts(b, is_cut ? "…\n" : "\n");
}

/* Returns the text of the first line of stage s that is in the chain. */
static const char *first_text(const struct chain *c, int s, size_t *len) {
  const json_t *stage = json_array_get(c->stages, (size_t)s), *l;
  size_t i;
  json_array_foreach(json_object_get(stage, "lines"), i, l) {
    const json_t *op = json_object_get(l, "op");
    if (op && has_op(&c->ops[s], json_integer_value(op)))
      break;
  }
  return result_line(stage, (int)i + 1, len);
}

/* True if the first line of the chain reads otherwise than in the stage before, or has more or fewer lines beside it. */
static bool is_changed(const struct chain *c, int s) {
  size_t n, m;
  const char *now = first_text(c, s, &n), *before = first_text(c, s - 1, &m);
  return n != m || memcmp(now, before, n) != 0 || c->ops[s].n != c->ops[s - 1].n;
}

/* What the ancestors are in stage s: the text of the first one, and how many others there are. */
static void put_stage(struct chain *c, int s) {
  const json_t *stage = json_array_get(c->stages, (size_t)s);
  size_t len;
  buf_printf(c->b, "%3d %s", s, text_of(stage, "name"));
  if (c->ops[s].n > 1)
    buf_printf(c->b, ": %zu operations, the first of them", c->ops[s].n);
  buf_puts(c->b, "\n      ");
  const char *text = first_text(c, s, &len);
  put_line(c->b, text, len);
}

static void put_remark(struct chain *c, const json_t *r) {
  const struct rule_def *rule = rule_find(text_of(r, "rule"));
  const json_t *x;
  size_t i;
  buf_printf(c->b, "    * %s\n", text_of(r, "text"));
  if (rule)
    buf_printf(c->b, "      Rule %s: %s\n      Because: %s\n", rule->name, rule->says, rule->because);
  const char *forced = rule && *rule->forced ? rule->forced : text_of(r, "forced");
  if (*forced)
    buf_printf(c->b, "      No other choice: %s\n", forced);
  if (json_object_get(r, "cost"))
    buf_printf(c->b, "      This: %s\n", text_of(r, "cost"));
  json_array_foreach(json_object_get(r, "limits"), i, x)
      buf_printf(c->b, "      Limit: %s: %lld of %lld %s\n", text_of(x, "name"),
                 (long long)json_integer_value(json_object_get(x, "used")),
                 (long long)json_integer_value(json_object_get(x, "available")), text_of(x, "unit"));
  json_array_foreach(json_object_get(r, "rejected"), i, x)
      buf_printf(c->b, "      Instead %s: %s%s%s\n", text_of(x, "choice"), text_of(x, "cost"),
                 json_object_get(x, "cost") ? "; " : "", text_of(x, "reason"));
  if (rule)
    buf_printf(c->b, "      %s%s\n", strncmp(rule->knob, "No knob", 7) != 0 ? "Knob: " : "", rule->knob);
}

/* Appends what the pass of stage s decided about the chain; false if that is nothing. */
static bool put_remarks(struct chain *c, int s, bool has_head) {
  const json_t *r;
  size_t i;
  bool any = false;
  json_array_foreach(json_object_get(json_array_get(c->stages, (size_t)s), "remarks"), i, r) {
    const json_t *op = json_object_get(r, "op"), *from = json_object_get(r, "from");
    const bool is_about = op ? has_op(&c->ops[s], json_integer_value(op))
                             : from && s > 0 && has_op(&c->ops[s - 1], json_integer_value(from));
    if (!is_about)
      continue;
    if (!any && !has_head)
      put_stage(c, s);
    any = true;
    put_remark(c, r);
  }
  return any;
}

static void put_places(struct chain *c, const json_t *line) {
  const json_t *p;
  const char *file;
  size_t n = 0, more = 0;
  for (; (p = result_place(c->result, line, n + more, &file));)
    if (n == PLACES_MAX)
      more++;
    else
      buf_printf(c->b, "%s%s:%lld:%lld", n++ ? ", " : "from ", file,
                 (long long)json_integer_value(json_array_get(p, 1)),
                 (long long)json_integer_value(json_array_get(p, 2)));
  if (more)
    buf_printf(c->b, ", and %zu more", more);
  buf_puts(c->b, n ? "\n" : "no place of the source: the compiler made it\n");
}

static void put_chain(struct chain *c) {
  int n_decisions = 0, first = 0;
  while (first < c->n_stages - 1 && !c->ops[first].n)
    first++;
  for (int s = first; s < c->n_stages; s++) {
    const bool tells = s == first || s == c->n_stages - 1 || is_changed(c, s);
    if (tells)
      put_stage(c, s);
    n_decisions += put_remarks(c, s, tells);
  }
  if (first)
    buf_printf(c->b, "It begins in stage %d: the pass made it, and nothing in the stages before led to it.\n", first);
  if (!n_decisions)
    buf_puts(c->b, "No pass had a choice about it.\n");
}

enum status why_put(struct arena *a, struct buf *b, const json_t *result, int kernel, const char *stage, int line,
                    struct error *err) {
  const json_t *stages = json_object_get(json_array_get(json_object_get(result, "kernels"), (size_t)kernel), "stages");
  const json_t *wanted = result_stage(result, kernel, stage);
  if (!wanted)
    return fail(err, ST_INPUT, "the kernel has no stage %.60s", stage);
  const json_t *at = line > 0 ? json_array_get(json_object_get(wanted, "lines"), (size_t)line - 1) : NULL;
  const json_t *op = json_object_get(at, "op");
  if (!op)
    return fail(err, ST_INPUT, "line %d of %.60s is no operation", line, stage);
  struct chain c = {.a = a, .b = b, .result = result, .stages = stages, .n_stages = 1};
  while (json_array_get(stages, (size_t)c.n_stages - 1) != wanted)
    c.n_stages++;
  json_int_t id = json_integer_value(op);
  c.ops = arena_try_array(a, (size_t)c.n_stages, sizeof *c.ops);
  if (!c.ops)
    return fail(err, ST_NOMEM, "why");
  c.ops[c.n_stages - 1] = (struct ops){&id, 1};
  for (int s = c.n_stages - 1; s > 0; s--)
    if (!follow_back(&c, s))
      return fail(err, ST_NOMEM, "why");
  size_t len;
  const char *text = result_line(wanted, line, &len);
  buf_printf(b, "line %d of %s: ", line, stage);
  put_line(b, text, len);
  put_places(&c, at);
  buf_putc(b, '\n');
  put_chain(&c);
  return ST_OK;
}
