/* parting: see the header. */
#include "driver/parting.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/array.h"
#include "diff/diff.h"
#include "driver/check.h"
#include "driver/compile.h"
#include "driver/result_file.h"
#include "driver/stage_check.h"

enum { LAST_TRIES = 6 }; /* operations from the end of a stage, one of which has a value */

struct side {
  const struct job *job;
  json_t *result;
};

struct pair {
  const char *name;
  int index[2]; /* in the pipelines */
  struct diff_text text[2];
  int n_lines[2], *to; /* to[i]: the line of the other side that line i + 1 is; 0: none */
  bool is_same;
  int first[2]; /* the first lines that differ */
};

struct finder {
  struct ir *ir;
  struct arena *arena;
  struct side sides[2];
  struct {
    struct pair *v;
    int n, cap;
  } pairs;
  struct parting *out;
};

/* ---- stages ------------------------------------------------------------------------------------------------------ */

static enum status keep_frame(void *user, const char *json, size_t len) {
  struct error err;
  return result_file_add(user, json, len, &err);
}

/* Compiles a job.  A refusal has the stages before it. */
static enum status compile_side(struct finder *f, struct side *s, struct error *err) {
  struct result_file r;
  result_file_init(&r);
  enum status st = compile_run(f->ir, s->job, keep_frame, &r);
  if (st == ST_OK || st == ST_INPUT)
    st = result_file_parse(&r, &s->result, err);
  else
    fail(err, st, "a limit was reached");
  result_file_clear(&r);
  const json_t *kernel = json_array_get(json_object_get(s->result, "kernels"), 0);
  if (!st && !json_array_size(json_object_get(kernel, "stages")))
    st = fail(err, ST_INPUT, "%.120s has no stages: nkx compile says why", s->job->filename);
  return st;
}

static const json_t *stages_of(const struct side *s) {
  return json_object_get(json_array_get(json_object_get(s->result, "kernels"), 0), "stages");
}

static const char *key_of(struct arena *a, const json_t *stages, size_t at) {
  const char *name = json_string_value(json_object_get(json_array_get(stages, at), "name"));
  int nth = 0;
  for (size_t i = 0; i <= at; i++)
    nth += !strcmp(name, json_string_value(json_object_get(json_array_get(stages, i), "name")));
  return nth > 1 ? arena_printf(a, "%s:%d", name, nth) : arena_strdup(a, name);
}

static struct diff_text text_of(const json_t *stage) {
  const json_t *text = json_object_get(stage, "text");
  return (struct diff_text){json_string_value(text), json_string_length(text)};
}

/* Fills p->to, which pairs equal lines and changed ones, from the hunks. */
static void pair_lines(struct pair *p, const struct diff *d, struct arena *a) {
  int from = 1, to = 1;
  p->to = arena_new_array(a, int, (size_t)d->lines_from + 1);
  memset(p->to, 0, ((size_t)d->lines_from + 1) * sizeof *p->to);
  for (int i = 0; i <= d->n; i++) {
    const struct diff_hunk *h = i < d->n ? &d->hunks[i] : NULL;
    const int end = h ? h->from : d->lines_from + 1;
    while (from < end)
      p->to[from++ - 1] = to++;
    for (int k = 0; h && k < h->n_pairs; k++)
      p->to[h->pairs[k].from - 1] = h->pairs[k].to;
    from += h ? h->n_from : 0;
    to += h ? h->n_to : 0;
  }
}

static enum status compare_texts(struct finder *f, struct pair *p, struct error *err) {
  struct diff d = {0};
  const enum status st = diff_make(p->text[0], p->text[1], &d, err);
  if (st)
    return st;
  p->is_same = d.n == 0;
  p->n_lines[0] = d.lines_from;
  p->n_lines[1] = d.lines_to;
  if (d.n) {
    p->first[0] = d.hunks[0].n_from ? d.hunks[0].from : 0;
    p->first[1] = d.hunks[0].n_to ? d.hunks[0].to : 0;
  }
  pair_lines(p, &d, f->arena);
  diff_clear(&d);
  return ST_OK;
}

static enum status pair_stages(struct finder *f, struct error *err) {
  const json_t *a = stages_of(&f->sides[0]), *b = stages_of(&f->sides[1]);
  enum status st = ST_OK;
  for (size_t i = 0; !st && i < json_array_size(a); i++)
    for (size_t k = 0; !st && k < json_array_size(b); k++) {
      struct pair p = {.name = key_of(f->arena, a, i), .index = {(int)i, (int)k}};
      if (strcmp(p.name, key_of(f->arena, b, k)) != 0)
        continue;
      p.text[0] = text_of(json_array_get(a, i));
      p.text[1] = text_of(json_array_get(b, k));
      st = compare_texts(f, &p, err);
      array_push(f->arena, &f->pairs, p);
      break;
    }
  f->out->n_stages = f->pairs.n;
  f->out->n_alone = (int)json_array_size(a) + (int)json_array_size(b) - 2 * f->pairs.n;
  return st;
}

static const char *line_of(struct arena *a, struct diff_text t, int line) {
  const char *p = t.data, *end = t.data + t.len, *stop;
  if (line < 1)
    return NULL;
  while (--line && p < end) {
    const char *nl = memchr(p, '\n', (size_t)(end - p));
    p = nl ? nl + 1 : end;
  }
  stop = memchr(p, '\n', (size_t)(end - p));
  return arena_strndup(a, p, (size_t)((stop ? stop : end) - p));
}

static void set_place(struct finder *f, struct parting_place *out, const struct pair *p, int line_a, int line_b) {
  *out = (struct parting_place){p->name, {line_a, line_b}, {NULL, NULL}};
  for (int s = 0; s < 2; s++)
    out->text[s] = line_of(f->arena, p->text[s], out->line[s]);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

struct taken {
  struct arena *arena;
  bool is_taken;
  struct trace_array x;
};

static void take(void *user, const struct trace_array *x) {
  struct taken *t = user;
  const size_t size = (size_t)hlo_shape_elements(&x->shape) * dtype_size(x->shape.dtype);
  t->is_taken = true;
  t->x.shape = hlo_shape_array(t->arena, x->shape.dtype, x->shape.rank, x->shape.dims);
  t->x.data = memcpy(arena_alloc(t->arena, size + 1), x->data, size);
}

static enum status drop(void *user, const char *json, size_t len) {
  (void)user, (void)json, (void)len;
  return ST_OK;
}

/* Takes the value of a line; false if there is none. */
static bool value_of(const struct finder *f, const struct pair *p, int s, int line, struct taken *out) {
  struct job job = *f->sides[s].job;
  char stage[16];
  snprintf(stage, sizeof stage, "%d", p->index[s]);
  job.value = (struct job_value){.is_set = true, .stage = stage, .line = line};
  job.check = job.simulate = job.artifacts = false;
  job.take_value = take;
  job.take_user = out;
  const enum status st = compile_run(f->ir, &job, drop, NULL);
  return out->is_taken && (st == ST_OK || st == ST_INPUT);
}

enum verdict { NO_VALUE, ALIKE, APART };

/* Compares the values of a pair of lines; what differs is kept in f->out. */
static enum verdict compare_lines(struct finder *f, const struct pair *p, int line_a, int line_b) {
  struct arena a;
  enum verdict verdict = NO_VALUE;
  arena_init(&a);
  struct taken x = {.arena = &a}, y = {.arena = &a};
  if (value_of(f, p, 0, line_a, &x) && value_of(f, p, 1, line_b, &y)) {
    struct parting *o = f->out;
    struct check_result r = {.wrong_index = -1};
    o->n_values++;
    o->index = NULL;
    if (!hlo_shape_same_dims(&x.x.shape, &y.x.shape)) {
      verdict = APART;
    } else {
      const struct trace_array got = check_convert_array(&a, &y.x, x.x.shape.dtype);
      check_compare(1, &got, &x.x, &r);
      verdict = r.pass ? ALIKE : APART;
    }
    if (verdict == APART && hlo_shape_same_dims(&x.x.shape, &y.x.shape)) {
      struct buf b;
      buf_init(&b, 1024);
      stage_check_put_index(&b, &x.x.shape, r.wrong_index < 0 ? 0 : r.wrong_index);
      o->index = arena_strdup(f->arena, buf_text(&b));
      buf_clear(&b);
      o->got[0] = r.expected;
      o->got[1] = r.got;
      o->max_abs_err = r.max_abs_err;
    }
  }
  arena_clear(&a);
  return verdict;
}

static bool has_budget(struct finder *f) {
  if (f->out->n_values < PARTING_VALUES_MAX)
    return true;
  f->out->note = "the limit of values was reached";
  return false;
}

/* Compares the last operation of the pair that has a value on both sides. */
static enum verdict compare_last(struct finder *f, const struct pair *p) {
  enum verdict v = NO_VALUE;
  int tries = 0;
  for (int line = p->n_lines[0]; v == NO_VALUE && line > 0 && tries < LAST_TRIES && has_budget(f); line--)
    if (p->to[line - 1]) {
      v = compare_lines(f, p, line, p->to[line - 1]);
      tries++;
    }
  return v;
}

/* Finds the first operation of the pair whose values differ. */
static bool scan_pair(struct finder *f, const struct pair *p) {
  for (int line = 1; line <= p->n_lines[0] && has_budget(f); line++)
    if (p->to[line - 1] && compare_lines(f, p, line, p->to[line - 1]) == APART) {
      set_place(f, &f->out->value, p, line, p->to[line - 1]);
      return true;
    }
  return false;
}

/* Finds the first pair from `at` on whose last values differ; -1: none does. */
static int first_apart(struct finder *f, int at) {
  int end = f->pairs.n; /* the pairs from here on differ */
  while (at < end && has_budget(f)) {
    const int middle = (at + end) / 2;
    if (compare_last(f, &f->pairs.v[middle]) == APART)
      end = middle;
    else
      at = middle + 1;
  }
  return end < f->pairs.n ? end : -1;
}

/* The stage where the texts part is looked through first: what differs there may not reach its last value. */
static void compare_values(struct finder *f, int first) {
  if (scan_pair(f, &f->pairs.v[first]))
    return;
  const int at = first_apart(f, first + 1);
  if (at >= 0 && !scan_pair(f, &f->pairs.v[at]) && !f->out->note)
    f->out->note = "the last values of a stage differ, but none of the operations that both sides have";
}

enum status parting_find(struct ir *ir, struct arena *a, const struct job jobs[2], bool with_values,
                         struct parting *out, struct error *err) {
  struct finder f = {.ir = ir, .arena = a, .sides = {{&jobs[0], NULL}, {&jobs[1], NULL}}, .out = out};
  int first = -1;
  *out = (struct parting){0};
  enum status st = compile_side(&f, &f.sides[0], err);
  if (!st)
    st = compile_side(&f, &f.sides[1], err);
  if (!st)
    st = pair_stages(&f, err);
  for (int i = 0; !st && first < 0 && i < f.pairs.n; i++)
    if (!f.pairs.v[i].is_same)
      first = i;
  if (!st && first >= 0) {
    set_place(&f, &out->text, &f.pairs.v[first], f.pairs.v[first].first[0], f.pairs.v[first].first[1]);
    if (with_values)
      compare_values(&f, first);
  }
  json_decref(f.sides[0].result);
  json_decref(f.sides[1].result);
  return st;
}
