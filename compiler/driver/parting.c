/* parting: see the header. */
#include "driver/parting.h"

#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/array.h"
#include "base/json.h"
#include "driver/parting_internal.h"
#include "driver/result_file.h"

/* ---- stages ------------------------------------------------------------------------------------------------------ */

static enum status keep_frame(void *user, const char *json, size_t len) {
  struct error err;
  return result_file_add(user, json, len, &err);
}

/* Compiles a job.  A refusal has the stages before it. */
static enum status compile_side(struct parting_finder *f, struct parting_side *s, struct error *err) {
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

static const json_t *stages_of(const struct parting_side *s) {
  return json_object_get(json_array_get(json_object_get(s->result, "kernels"), 0), "stages");
}

static const char *key_of(struct arena *a, const json_t *stages, size_t at) {
  const char *name = json_string_value(json_object_get(json_array_get(stages, at), "name"));
  int nth = 0;
  for (size_t i = 0; i <= at; i++)
    nth += !strcmp(name, json_string_value(json_object_get(json_array_get(stages, i), "name")));
  return nth > 1 ? arena_printf(a, "%s:%d", name, nth) : arena_strdup(a, name);
}

/* The stage's number in its pipeline: a side that begins at a later stage lacks those before. */
static int index_of(const json_t *stages, size_t at) {
  return (int)json_integer_value(json_object_get(json_array_get(stages, at), "index"));
}

static struct diff_text text_of(const json_t *stage) {
  const json_t *text = json_object_get(stage, "text");
  return (struct diff_text){json_string_value(text), json_string_length(text)};
}

static enum status compare_texts(struct parting_pair *p, struct error *err) {
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
  diff_clear(&d);
  return ST_OK;
}

static enum status pair_stages(struct parting_finder *f, struct error *err) {
  const json_t *a = stages_of(&f->sides[0]), *b = stages_of(&f->sides[1]);
  enum status st = ST_OK;
  for (size_t i = 0; !st && i < json_array_size(a); i++)
    for (size_t k = 0; !st && k < json_array_size(b); k++) {
      struct parting_pair p = {
          .name = key_of(f->arena, a, i), .at = {(int)i, (int)k}, .index = {index_of(a, i), index_of(b, k)}};
      if (strcmp(p.name, key_of(f->arena, b, k)) != 0)
        continue;
      const char *dialect = json_string_value(json_object_get(json_array_get(a, i), "dialect"));
      p.is_hlo = dialect && !strcmp(dialect, "hlo");
      p.text[0] = text_of(json_array_get(a, i));
      p.text[1] = text_of(json_array_get(b, k));
      st = compare_texts(&p, err);
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

static void set_place(struct parting_finder *f, struct parting_place *out, const struct parting_pair *p, int line_a,
                      int line_b) {
  *out = (struct parting_place){p->name, {line_a, line_b}, {NULL, NULL}};
  for (int s = 0; s < 2; s++)
    out->text[s] = line_of(f->arena, p->text[s], out->line[s]);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Compares what two stages return, one result after another up to the first that differs.  *verdict: PARTING_NO_VALUE with *reason
 * if one cannot be compared; *which: the result that it is about. */
static enum status compare_returned(struct parting_finder *f, const char *label, const int index[2],
                                    const struct diff_text text[2], enum parting_verdict *verdict,
                                    struct parting_found *found, int *which, const char **reason, struct error *err) {
  struct parting_returned r[2];
  double largest = 0; /* of the results that are alike */
  enum status st = ST_OK;
  for (int s = 0; s < 2; s++)
    r[s] = parting_returned(f->arena, text[s]);
  *verdict = PARTING_NO_VALUE;
  *which = 0;
  *reason =
      r[0].n != r[1].n ? "the kernels have different numbers of results" : "the stage does not say what it returns";
  for (int k = 0; !st && r[0].n == r[1].n && k < r[0].n && parting_has_budget(f); k++) {
    const struct parting_want want[2] = {{index[0], r[0].line, r[0].names[k], label},
                                         {index[1], r[1].line, r[1].names[k], label}};
    *which = k;
    st = parting_compare(f, want, false, verdict, found, reason, err);
    largest = found->max_abs_err > largest ? found->max_abs_err : largest;
    if (st || *verdict != PARTING_ALIKE)
      break;
    found->max_abs_err = largest;
  }
  return st;
}

static size_t last_stage(const json_t *stages) {
  return json_array_size(stages) - 1;
}

/* Compares what the kernels return: the results of their last stages. */
static enum status compare_results(struct parting_finder *f, enum parting_verdict *verdict, struct error *err) {
  struct parting_results *out = &f->out->results;
  struct diff_text text[2];
  struct parting_found found = {.index = NULL};
  const char *reason = NULL;
  int index[2], which;
  for (int s = 0; s < 2; s++) {
    const json_t *stages = stages_of(&f->sides[s]);
    index[s] = index_of(stages, last_stage(stages));
    text[s] = text_of(json_array_get(stages, last_stage(stages)));
  }
  const char *label = key_of(f->arena, stages_of(&f->sides[1]), last_stage(stages_of(&f->sides[1])));
  const enum status st = compare_returned(f, label, index, text, verdict, &found, &which, &reason, err);
  const json_t *kernel = json_array_get(json_object_get(f->sides[1].result, "kernels"), 0);
  const json_t *output = json_array_get(json_object_get(kernel, "outputs"), (size_t)which);
  const char *name = json_string_value(json_object_get(output, "name"));
  *out = (struct parting_results){.is_known = *verdict > PARTING_OTHER,
                                  .is_same = *verdict == PARTING_ALIKE,
                                  .name = name ? arena_strdup(f->arena, name) : NULL,
                                  .reason = reason ? reason : "a value is too large, or cannot be taken",
                                  .index = found.index,
                                  .got = {found.got[0], found.got[1]},
                                  .max_abs_err = found.max_abs_err};
  return st;
}

/* ---- the first value that differs ---------------------------------------------------------------------------------- */

static void set_value(struct parting_finder *f, const struct parting_pair *p, int line_a, int line_b,
                      const struct parting_found *found) {
  set_place(f, &f->out->value, p, line_a, line_b);
  f->out->index = found->index;
  f->out->got[0] = found->got[0];
  f->out->got[1] = found->got[1];
  f->out->max_abs_err = found->max_abs_err;
}

static enum status compare_lines(struct parting_finder *f, const struct parting_pair *p, int line_a, int line_b,
                                 enum parting_verdict *v, struct parting_found *found, struct error *err) {
  const struct parting_want want[2] = {{p->index[0], line_a, NULL, p->name}, {p->index[1], line_b, NULL, p->name}};
  const char *reason;
  return parting_compare(f, want, !p->is_hlo, v, found, &reason, err);
}

/* True if a line of B that agrees as much as this one's counterpart has its value: then that one is it. */
static enum status has_other(struct parting_finder *f, const struct parting_pair *p, const struct counterparts *c,
                             int line, bool *has, struct error *err) {
  enum status st = ST_OK;
  *has = false;
  for (int b = 1; !st && !*has && b <= p->n_lines[1] && parting_has_budget(f); b++) {
    enum parting_verdict v = PARTING_NO_VALUE;
    struct parting_found found;
    if (b != c->to[line - 1] && c->group[1][b - 1] == c->group[0][line - 1])
      st = compare_lines(f, p, line, b, &v, &found, err);
    *has = v == PARTING_ALIKE;
  }
  return st;
}

/* Finds the first operation of the pair whose values differ.  Counts the lines that have no counterpart. */
static enum status scan_pair(struct parting_finder *f, const struct parting_pair *p, bool *is_found,
                             struct error *err) {
  const struct counterparts c = parting_pair_lines(f, p);
  enum status st = ST_OK;
  *is_found = false;
  f->out->alone_stage = p->name;
  for (int s = 0; s < 2; s++) {
    f->out->n_lines_alone[s] = 0;
    for (int i = 0; i < p->n_lines[s]; i++)
      f->out->n_lines_alone[s] += c.is_step[s][i] && !c.group[s][i];
  }
  for (int line = 1; !st && !*is_found && line <= p->n_lines[0] && parting_has_budget(f); line++) {
    enum parting_verdict v = PARTING_NO_VALUE;
    struct parting_found found;
    bool has = false;
    if (!c.to[line - 1])
      continue;
    st = compare_lines(f, p, line, c.to[line - 1], &v, &found, err);
    if (!st && v == PARTING_APART && c.is_guess[line - 1])
      st = has_other(f, p, &c, line, &has, err);
    for (int s = 0; !st && v == PARTING_OTHER && s < 2; s++)
      f->out->n_lines_alone[s]++;
    *is_found = !st && v == PARTING_APART && !has;
    if (*is_found)
      set_value(f, p, line, c.to[line - 1], &found);
  }
  return st;
}

/* Finds the first stage from `at` on whose results differ, by halves: once two results differ, later stages carry that on. */
static enum status first_apart(struct parting_finder *f, int at, int *found, struct parting_found *element,
                               struct error *err) {
  int end = f->pairs.n; /* the results from here on differ */
  enum status st = ST_OK;
  while (!st && at < end && parting_has_budget(f)) {
    const int middle = (at + end) / 2;
    const struct parting_pair *p = &f->pairs.v[middle];
    struct parting_found here;
    enum parting_verdict v;
    const char *reason;
    int which;
    st = compare_returned(f, p->name, p->index, p->text, &v, &here, &which, &reason, err);
    if (v == PARTING_APART) {
      end = middle;
      *element = here;
    } else {
      at = middle + 1;
    }
  }
  *found = end < f->pairs.n ? end : -1;
  return st;
}

/* The results are compared first.  Then comes the stage where the texts part: what differs there may not reach a result.  Only
 * results that differ lead to another stage: parts, order and layout of what is between are no faults. */
static enum status compare_values(struct parting_finder *f, int first, struct error *err) {
  enum parting_verdict results = PARTING_NO_VALUE;
  struct parting_found element;
  bool is_found = false;
  int at = -1;
  enum status st = compare_results(f, &results, err);
  if (!st)
    st = scan_pair(f, &f->pairs.v[first], &is_found, err);
  if (st || is_found || results == PARTING_ALIKE)
    return st;
  st = first_apart(f, first, &at, &element, err);
  if (st || at < 0)
    return st;
  if (at != first)
    st = scan_pair(f, &f->pairs.v[at], &is_found, err);
  if (!st && !is_found) {
    const struct parting_pair *p = &f->pairs.v[at];
    set_value(f, p, parting_returned(f->arena, p->text[0]).line, parting_returned(f->arena, p->text[1]).line, &element);
    if (!f->out->note)
      f->out->note = "the stage's results are the first values that differ: no line before them that both have does";
  }
  return st;
}

enum status parting_find(const struct job_runner *runner, struct arena *a, const struct job jobs[2], bool with_values,
                         parting_progress progress, void *user, struct parting *out, struct error *err) {
  struct parting_finder f = {.runner = runner,
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

/* The results, which come first, and what there is to say of all values. */
static void put_values(struct buf *b, const struct parting *r) {
  const struct parting_results *x = &r->results;
  if (r->text.stage) {
    json_put_key(b, "results");
    buf_putc(b, '{');
    if (x->is_known)
      json_put_field_bool(b, "same", x->is_same);
    else
      json_put_field_str(b, "reason", x->reason ? x->reason : "the time was up");
    if (x->is_known && !x->is_same && x->name)
      json_put_field_str(b, "name", x->name);
    if (x->is_known && x->index) {
      json_put_key(b, "index");
      buf_puts(b, x->index);
      json_put_field_double(b, "a", x->got[0]);
      json_put_field_double(b, "b", x->got[1]);
    }
    if (x->is_known && (x->is_same || x->index))
      json_put_field_double(b, "max_abs_err", x->max_abs_err);
    buf_putc(b, '}');
  }
  if (r->alone_stage) {
    json_put_key(b, "no_counterpart");
    buf_putc(b, '{');
    json_put_field_str(b, "stage", r->alone_stage);
    json_put_field_int(b, "a", r->n_lines_alone[0]);
    json_put_field_int(b, "b", r->n_lines_alone[1]);
    buf_putc(b, '}');
  }
  json_put_field_int(b, "compared", r->n_values);
}

void parting_put(struct buf *b, const struct parting *r, bool with_values) {
  buf_puts(b, "{\"frame\":\"parting\",\"parting\":{");
  json_put_field_bool(b, "done", true);
  json_put_field_int(b, "stages", r->n_stages);
  json_put_field_int(b, "alone", r->n_alone);
  put_place(b, "text", r, &r->text, false);
  put_place(b, "values", r, &r->value, true);
  if (with_values)
    put_values(b, r);
  if (r->note)
    json_put_field_str(b, "note", r->note);
  buf_puts(b, "}}");
}
