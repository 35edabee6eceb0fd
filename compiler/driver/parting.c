/* parting: see the header. */
#include "driver/parting.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "base/array.h"
#include "base/json.h"
#include "diff/diff.h"
#include "driver/check.h"
#include "driver/frame_scan.h"
#include "driver/result_file.h"

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
  bool is_hlo;  /* its values are whole tensors, whose shapes are no matter of layout */
  int first[2]; /* the first lines that differ */
};

struct finder {
  const struct job_runner *runner;
  parting_progress progress;
  void *user;
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
  enum job_end end;
  result_file_init(&r);
  enum status st = f->runner->run(f->runner->user, s->job, 0, keep_frame, &r, &end, err);
  if (!st && end != JOB_ENDED)
    st = fail(err, ST_INPUT, "%.120s cannot be compiled: its process ended, or took too long", s->job->filename);
  if (!st)
    st = result_file_parse(&r, &s->result, err);
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
      const char *dialect = json_string_value(json_object_get(json_array_get(a, i), "dialect"));
      p.is_hlo = dialect && !strcmp(dialect, "hlo");
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

/* A value from the frames of its job: what it is, and its elements, which come first. */
struct taken {
  struct arena *arena;
  struct trace_array x;
  size_t size; /* of x.data */
  bool has_shape;
};

/* The elements of an artifact, from its base64. */
static void take_elements(struct taken *t, const struct frame *f) {
  const struct frame_member *about = frame_get(f, "artifact"), *data = frame_get(f, "data");
  struct frame artifact;
  const struct frame_member *name = NULL;
  if (data && frame_scan_object(about->value, about->value_len, &artifact, NULL) == ST_OK)
    name = frame_get(&artifact, "name");
  const size_t tail = strlen("/" VALUE_FILE_NAME "\"");
  if (!name || name->value_len < tail || data->value_len < 2 ||
      memcmp(name->value + name->value_len - tail, "/" VALUE_FILE_NAME "\"", tail) != 0)
    return;
  const char *text = data->value + 1;
  const size_t len = data->value_len - 2;
  unsigned char *to = len <= INT_MAX ? arena_try_array(t->arena, len / 4 * 3 + 1, 1) : NULL;
  const int n = to ? EVP_DecodeBlock(to, (const unsigned char *)text, (int)len) : -1;
  if (n < 0)
    return;
  t->x.data = to;
  t->size = (size_t)n - (len && text[len - 1] == '=') - (len > 1 && text[len - 2] == '=');
}

static void take_shape(struct taken *t, const struct frame *f) {
  const struct frame_member *m = frame_get(f, "value");
  json_t *v = json_loadb(m->value, m->value_len, 0, NULL);
  const json_t *shape = json_object_get(v, "shape");
  const char *dtype = json_string_value(json_object_get(v, "dtype"));
  int64_t dims[JOB_RANK_MAX + 1];
  const int rank = (int)json_array_size(shape);
  if (json_is_array(shape) && rank <= JOB_RANK_MAX && dtype && dtype_from_name(dtype) != DT_NONE) {
    for (int d = 0; d < rank; d++)
      dims[d] = json_integer_value(json_array_get(shape, (size_t)d));
    t->x.shape = hlo_shape_array(t->arena, dtype_from_name(dtype), rank, dims);
    t->has_shape = true;
  }
  json_decref(v);
}

static enum status take(void *user, const char *json, size_t len) {
  struct frame f;
  if (frame_scan(json, len, &f, NULL) != ST_OK)
    return ST_BUG;
  if (f.kind == FRAME_ARTIFACT)
    take_elements(user, &f);
  if (f.kind == FRAME_VALUE)
    take_shape(user, &f);
  return ST_OK;
}

/* Takes the value of a line; *has: there is one. */
static enum status value_of(const struct finder *f, const struct pair *p, int s, int line, struct taken *out, bool *has,
                            struct error *err) {
  struct job job = *f->sides[s].job;
  char stage[16];
  enum job_end end;
  snprintf(stage, sizeof stage, "%d", p->index[s]);
  job.value = (struct job_value){.is_set = true, .stage = stage, .line = line};
  job.check = job.simulate = false;
  job.artifacts = true;
  job.patterns = NULL;
  job.stop_after = NULL;
  const enum status st = f->runner->run(f->runner->user, &job, 0, take, out, &end, err);
  *has = !st && end == JOB_ENDED && out->x.data && out->has_shape &&
         out->size == (size_t)hlo_shape_elements(&out->x.shape) * dtype_size(out->x.shape.dtype);
  return st;
}

enum verdict { NO_VALUE, ALIKE, APART };

/* Compares two values; what differs is kept in f->out. */
static enum verdict compare_arrays(struct finder *f, const struct pair *p, const struct trace_array *x,
                                   const struct trace_array *y, struct arena *a) {
  struct parting *o = f->out;
  struct check_result r = {.wrong_index = -1};
  struct buf b;
  const bool is_alike = hlo_shape_same_dims(&x->shape, &y->shape);
  if (!is_alike && !p->is_hlo)
    return NO_VALUE; /* another tile or layout */
  o->n_values++;
  o->index = NULL;
  if (!is_alike)
    return APART;
  const struct trace_array got = check_convert_array(a, y, x->shape.dtype);
  check_compare(1, &got, x, &r);
  if (r.pass)
    return ALIKE;
  buf_init(&b, 1024);
  check_put_index(&b, &x->shape, r.wrong_index < 0 ? 0 : r.wrong_index);
  o->index = arena_strdup(f->arena, buf_text(&b));
  buf_clear(&b);
  o->got[0] = r.expected;
  o->got[1] = r.got;
  o->max_abs_err = r.max_abs_err;
  return APART;
}

/* Compares the values of a pair of lines. */
static enum status compare_lines(struct finder *f, const struct pair *p, int line_a, int line_b, enum verdict *verdict,
                                 struct error *err) {
  struct arena a;
  bool has = false;
  arena_init(&a);
  struct taken x = {.arena = &a}, y = {.arena = &a};
  enum status st = value_of(f, p, 0, line_a, &x, &has, err);
  if (!st && has)
    st = value_of(f, p, 1, line_b, &y, &has, err);
  *verdict = !st && has ? compare_arrays(f, p, &x.x, &y.x, &a) : NO_VALUE;
  arena_clear(&a);
  if (!st && *verdict != NO_VALUE && f->progress)
    f->progress(f->user, p->name, line_b, f->out->n_values);
  return st;
}

static bool has_budget(struct finder *f) {
  if (f->out->n_values < PARTING_VALUES_MAX)
    return true;
  f->out->note = "the limit of values was reached";
  return false;
}

/* Compares the last operation of the pair that has a value on both sides. */
static enum status compare_last(struct finder *f, const struct pair *p, enum verdict *v, struct error *err) {
  enum status st = ST_OK;
  int tries = 0;
  *v = NO_VALUE;
  for (int line = p->n_lines[0]; !st && *v == NO_VALUE && line > 0 && tries < LAST_TRIES && has_budget(f); line--)
    if (p->to[line - 1]) {
      st = compare_lines(f, p, line, p->to[line - 1], v, err);
      tries++;
    }
  return st;
}

/* Finds the first operation of the pair whose values differ. */
static enum status scan_pair(struct finder *f, const struct pair *p, bool *is_found, struct error *err) {
  enum status st = ST_OK;
  *is_found = false;
  for (int line = 1; !st && !*is_found && line <= p->n_lines[0] && has_budget(f); line++) {
    enum verdict v = NO_VALUE;
    if (p->to[line - 1])
      st = compare_lines(f, p, line, p->to[line - 1], &v, err);
    *is_found = !st && v == APART;
    if (*is_found)
      set_place(f, &f->out->value, p, line, p->to[line - 1]);
  }
  return st;
}

/* Finds the first pair from `at` on whose last values differ; *found is -1 if none does. */
static enum status first_apart(struct finder *f, int at, int *found, struct error *err) {
  int end = f->pairs.n; /* the pairs from here on differ */
  enum status st = ST_OK;
  while (!st && at < end && has_budget(f)) {
    const int middle = (at + end) / 2;
    enum verdict v;
    st = compare_last(f, &f->pairs.v[middle], &v, err);
    if (v == APART)
      end = middle;
    else
      at = middle + 1;
  }
  *found = end < f->pairs.n ? end : -1;
  return st;
}

/* The stage where the texts part is looked through first: what differs there may not reach its last value. */
static enum status compare_values(struct finder *f, int first, struct error *err) {
  bool is_found;
  int at = -1;
  enum status st = scan_pair(f, &f->pairs.v[first], &is_found, err);
  if (st || is_found)
    return st;
  st = first_apart(f, first + 1, &at, err);
  if (!st && at >= 0)
    st = scan_pair(f, &f->pairs.v[at], &is_found, err);
  if (!st && at >= 0 && !is_found && !f->out->note)
    f->out->note = "the last values of a stage differ, but none of the operations that both sides have";
  return st;
}

enum status parting_find(const struct job_runner *runner, struct arena *a, const struct job jobs[2], bool with_values,
                         parting_progress progress, void *user, struct parting *out, struct error *err) {
  struct finder f = {.runner = runner,
                     .progress = progress,
                     .user = user,
                     .arena = a,
                     .sides = {{&jobs[0], NULL}, {&jobs[1], NULL}},
                     .out = out};
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
      st = compare_values(&f, first, err);
  }
  if (st == ST_TIMEOUT && first >= 0) { /* what was found until then is right */
    st = ST_OK;
    out->note = "the time was up";
  }
  json_decref(f.sides[0].result);
  json_decref(f.sides[1].result);
  return st;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void put_place(struct buf *b, const char *key, const struct parting *r, const struct parting_place *p,
                      bool with_numbers) {
  static const char *const sides[] = {"a", "b"};
  if (!p->stage)
    return;
  json_put_key(b, key);
  buf_putc(b, '{');
  json_put_field_str(b, "stage", p->stage);
  for (int s = 0; s < 2; s++) {
    if (!p->line[s])
      continue;
    json_put_key(b, sides[s]);
    buf_putc(b, '{');
    json_put_field_int(b, "line", p->line[s]);
    json_put_field_str(b, "text", p->text[s]);
    if (with_numbers && r->index)
      json_put_field_double(b, "value", r->got[s]);
    buf_putc(b, '}');
  }
  if (with_numbers && r->index) {
    json_put_key(b, "index");
    buf_puts(b, r->index);
    json_put_field_double(b, "max_abs_err", r->max_abs_err);
  }
  buf_putc(b, '}');
}

void parting_put_progress(struct buf *b, const char *stage, int line, int n_values) {
  buf_puts(b, "{\"frame\":\"parting\",\"parting\":{");
  json_put_field_str(b, "stage", stage);
  json_put_field_int(b, "line", line);
  json_put_field_int(b, "compared", n_values);
  buf_puts(b, "}}");
}

void parting_put(struct buf *b, const struct parting *r, bool with_values) {
  buf_puts(b, "{\"frame\":\"parting\",\"parting\":{");
  json_put_field_bool(b, "done", true);
  json_put_field_int(b, "stages", r->n_stages);
  json_put_field_int(b, "alone", r->n_alone);
  put_place(b, "text", r, &r->text, false);
  put_place(b, "values", r, &r->value, true);
  if (with_values)
    json_put_field_int(b, "compared", r->n_values);
  if (r->note)
    json_put_field_str(b, "note", r->note);
  buf_puts(b, "}}");
}
