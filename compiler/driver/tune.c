/* tune: searches for knobs that make a kernel faster on the simulated machine.
 *
 * The kernel is compiled once as it is.  Its remarks say at which expressions a knob would change what, and its profile how
 * much of the critical path each of them takes.  The search then changes one knob at a time, the dearest expression first,
 * keeps a change that makes the kernel faster, and goes on from there until no change does, or the budget is used up.  A
 * candidate is the source with the knobs written into it, compiled and timed like any other; values are not computed.
 */
#include "driver/compile_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/json.h"
#include "driver/tune_edit.h"
#include "sim/decode.h"
#include "sim/profile.h"

enum { POINTS_MAX = 16 }; /* of the Pareto front that are sent, each with a source */

struct tune_probe {
  struct tune *tune;
  bool is_first; /* of the kernel as it is: finds the sites */
  bool is_timed;
  int64_t ps, sbuf;
};

/* A text that was compiled and timed. */
struct point {
  int64_t ps, sbuf;
  const struct tune_value **chosen; /* of each site */
};

struct tune {
  struct run *run;
  struct arena *arena;
  struct tune_sites sites;
  const char *kernel; /* its name */
  struct {
    uint64_t *v;
    int n, cap;
  } seen; /* hashes of the texts that were tried */
  struct {
    struct point *v;
    int n, cap;
  } points;
  int best; /* in points */
  int n_tried, n_refused;
  int64_t until_us;
};

/* ---- one compile ------------------------------------------------------------------------------------------------- */

void tune_probe_stage(struct tune_probe *probe, const struct stage *s) {
  struct tune *t = probe->tune;
  if (!probe->is_first || probe->is_timed)
    return;
  for (const struct remark *r = s->remarks.first; r; r = r->next)
    tune_add_remark(&t->sites, t->arena, t->run->job->source, t->run->job->filename, r);
}

/* The time of the critical path that lines of the site take. */
static int64_t weight_of(const struct sim_profile *p, const struct tune_site *s) {
  int64_t sum = 0;
  for (int k = 0; k < p->n_lines; k++)
    if (p->lines[k].file && !strcmp(p->lines[k].file, s->range.file) && p->lines[k].line >= s->range.line &&
        p->lines[k].line <= s->range.end_line)
      sum += p->lines[k].critical_ps;
  return sum;
}

/* Times the last stage of the kernel; only the first kernel of a source without a name for one. */
enum status tune_probe_end(struct path *p) {
  struct tune_probe *probe = p->run->probe;
  struct tune *t = probe->tune;
  struct arena a;
  struct sim_program program;
  struct sim_timeline timeline;
  struct sim_profile profile;
  struct sim_fault fault;
  if (probe->is_timed || stage_form(p->before.def) != FORM_NISA || !p->kernel->module)
    return ST_OK;
  arena_init(&a);
  const struct sim_time_options options = {.target = p->run->job->target, .limit.wall_us = t->until_us};
  enum status st = sim_decode(mlirModuleGetOperation(p->module), p->kernel->module->name, &a, &p->run->diags, &program);
  if (!st && sim_time(&program, &options, &a, &timeline, &fault)) {
    diag_add(&p->run->diags, DS_ERROR, DG_TIME_LIMIT, NULL, "the kernel is not timed: %s", fault.text);
    st = ST_INPUT;
  }
  if (!st) {
    sim_profile_make(&timeline, &a, &profile);
    probe->is_timed = true;
    probe->ps = timeline.total_ps;
    probe->sbuf = profile.sbuf[0].peak_bytes;
    t->kernel = arena_strdup(t->arena, p->kernel->name);
    for (int k = 0; probe->is_first && k < t->sites.n; k++)
      t->sites.v[k].weight = weight_of(&profile, &t->sites.v[k]);
  }
  arena_clear(&a);
  return st;
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

static uint64_t hash(const char *text) {
  uint64_t h = 14695981039346656037u;
  for (; *text; text++)
    h = (h ^ (unsigned char)*text) * 1099511628211u;
  return h;
}

static bool is_new(struct tune *t, const char *text) {
  const uint64_t h = hash(text);
  for (int k = 0; k < t->seen.n; k++)
    if (t->seen.v[k] == h)
      return false;
  array_push(t->arena, &t->seen, h);
  return true;
}

static bool has_budget(const struct tune *t) {
  return t->n_tried < t->run->job->tune.candidates && clock_now_us() < t->until_us;
}

static const char *text_of(struct tune *t, const struct tune_value *const *chosen) {
  struct buf b;
  buf_init(&b, 2 * JOB_SOURCE_MAX);
  tune_put_text(&b, t->run->job->source, &t->sites, chosen);
  const char *text = buf_status(&b) ? NULL : arena_strdup(t->arena, buf_text(&b));
  buf_clear(&b);
  return text;
}

static void put_knobs(struct tune *t, struct buf *b, const struct tune_value *const *chosen) {
  json_put_key(b, "knobs");
  buf_putc(b, '[');
  for (int k = 0; k < t->sites.n; k++) {
    struct buf call;
    if (!chosen[k])
      continue;
    buf_init(&call, FRAME_MAX);
    tune_put_call(&call, &t->sites, chosen, k);
    json_put_comma(b);
    buf_putc(b, '{');
    stage_put_range(b, &t->sites.v[k].range);
    json_put_field_str(b, "writes", buf_text(&call));
    buf_putc(b, '}');
    buf_clear(&call);
  }
  buf_putc(b, ']');
}

static void put_point(struct buf *b, const struct point *p) {
  json_put_field_double(b, "us", (double)p->ps / 1e6);
  json_put_field_int(b, "sbuf", p->sbuf);
}

static enum status send_candidate(struct tune *t, const struct point *p, bool is_timed, bool is_best) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  buf_puts(&b, "{\"frame\":\"tune\",\"tune\":{");
  json_put_field_int(&b, "number", t->n_tried);
  if (is_timed)
    put_point(&b, p);
  else
    json_put_field_bool(&b, "refused", true);
  json_put_field_bool(&b, "best", is_best);
  put_knobs(t, &b, p->chosen);
  buf_puts(&b, "}}");
  return compile_send(t->run, &b);
}

/* Compiles and times the source with these knobs.  *is_best: it is the fastest so far.  A text that was tried before is not
 * tried again, and one that the compiler refuses is none. */
static enum status try_point(struct tune *t, const struct tune_value **chosen, bool *is_best) {
  const char *text = text_of(t, chosen);
  struct tune_probe probe = {.tune = t};
  struct job job = *t->run->job;
  *is_best = false;
  if (!text || strlen(text) > JOB_SOURCE_MAX || !is_new(t, text))
    return ST_OK;
  job.source = text;
  job.source_len = strlen(text);
  job.kernel = t->kernel;
  job.tune = (struct job_tune){0};
  const enum status st = compile_probed(t->run->ir, &job, &probe);
  if (st && st != ST_INPUT && st != ST_LIMIT)
    return st;
  t->n_tried++;
  struct point p = {probe.ps, probe.sbuf, chosen};
  const bool is_timed = !st && probe.is_timed;
  t->n_refused += !is_timed;
  if (is_timed) {
    *is_best = p.ps < t->points.v[t->best].ps;
    array_push(t->arena, &t->points, p);
    if (*is_best)
      t->best = t->points.n - 1;
  }
  return send_candidate(t, &p, is_timed, *is_best);
}

/* ---- the search -------------------------------------------------------------------------------------------------- */

/* Tries the best point with another value of one site, or without one. */
static enum status try_change(struct tune *t, int site, const struct tune_value *value, bool *is_better) {
  const size_t n = (size_t)t->sites.n;
  const struct tune_value **chosen = arena_new_array(t->arena, const struct tune_value *, n);
  memcpy(chosen, t->points.v[t->best].chosen, n * sizeof *chosen);
  chosen[site] = value;
  return has_budget(t) ? try_point(t, chosen, is_better) : ST_OK;
}

/* The tile with one entry twice or half as long. */
static const struct tune_value *scaled(struct tune *t, const struct tune_value *from, int entry, bool is_longer) {
  struct tune_value *v = arena_new(t->arena, struct tune_value);
  *v = *from;
  v->entry[entry] = is_longer ? 2 * from->entry[entry] : from->entry[entry] / 2;
  return v->entry[entry] > 0 && v->entry[entry] < INT32_MAX ? v : NULL;
}

/* Tries all values of one site.  *is_better: one of them was taken. */
static enum status improve_site(struct tune *t, int site, bool *is_better) {
  const struct tune_site *s = &t->sites.v[site];
  const struct tune_value *now = t->points.v[t->best].chosen[site];
  enum status st = ST_OK;
  bool is_taken = false;
  for (int k = 0; !st && k < s->n_offers; k++, *is_better |= is_taken)
    st = try_change(t, site, &s->offers[k], &is_taken);
  if (!st && now)
    st = try_change(t, site, NULL, &is_taken);
  *is_better |= is_taken;
  for (int k = 0; s->what == TUNE_TILE && k < 2 * s->now.n && !st; k++, *is_better |= is_taken) {
    const struct tune_value *v = scaled(t, now ? now : &s->now, k / 2, k % 2 == 0);
    is_taken = false;
    if (v)
      st = try_change(t, site, v, &is_taken);
  }
  return st;
}

static int by_weight(const void *x, const void *y) {
  const struct tune_site *a = x, *b = y;
  if (a->what == TUNE_DROP || b->what == TUNE_DROP) /* what the user has asked for is in question first */
    return (b->what == TUNE_DROP) - (a->what == TUNE_DROP);
  return (b->weight > a->weight) - (b->weight < a->weight);
}

static enum status search(struct tune *t, const char **stopped) {
  enum status st = ST_OK;
  bool is_better = true;
  while (!st && is_better && has_budget(t)) {
    is_better = false;
    for (int k = 0; !st && k < t->sites.n && has_budget(t); k++)
      if (t->sites.v[k].weight > 0 || t->sites.v[k].what == TUNE_DROP)
        st = improve_site(t, k, &is_better);
  }
  *stopped = clock_now_us() >= t->until_us                ? "seconds"
             : t->n_tried >= t->run->job->tune.candidates ? "candidates"
                                                          : "no change is faster";
  return st;
}

/* ---- the result -------------------------------------------------------------------------------------------------- */

static int by_time(const void *x, const void *y) {
  const struct point *a = x, *b = y;
  return a->ps != b->ps ? (a->ps > b->ps) - (a->ps < b->ps) : (a->sbuf > b->sbuf) - (a->sbuf < b->sbuf);
}

/* Sends the points that no other one beats in time and in SBUF, the fastest first. */
static enum status send_result(struct tune *t, const char *stopped, int64_t began_us) {
  const int64_t start_ps = t->points.v[0].ps;
  int64_t least = INT64_MAX;
  int n = 0;
  struct buf b;
  qsort(t->points.v, (size_t)t->points.n, sizeof *t->points.v, by_time);
  buf_init(&b, FRAME_MAX);
  buf_puts(&b, "{\"frame\":\"tune\",\"tune\":{\"done\":true");
  json_put_field_str(&b, "kernel", t->kernel);
  json_put_field_str(&b, "stopped", stopped);
  json_put_field_int(&b, "tried", t->n_tried);
  json_put_field_int(&b, "refusals", t->n_refused);
  json_put_field_double(&b, "seconds", (double)(clock_now_us() - began_us) / 1e6);
  json_put_field_double(&b, "start_us", (double)start_ps / 1e6);
  json_put_key(&b, "points");
  buf_putc(&b, '[');
  for (int k = 0; k < t->points.n && n < POINTS_MAX; k++) {
    const struct point *p = &t->points.v[k];
    if (p->sbuf >= least)
      continue;
    least = p->sbuf;
    n++;
    json_put_comma(&b);
    buf_putc(&b, '{');
    put_point(&b, p);
    put_knobs(t, &b, p->chosen);
    json_put_field_str(&b, "source", text_of(t, p->chosen));
    buf_putc(&b, '}');
  }
  buf_puts(&b, "]}}");
  return compile_send(t->run, &b);
}

/* When the search ends: of the time that the job has left, a fifth is for the candidate that is being compiled then. */
static int64_t end_of_search(const struct job *j, int64_t now_us) {
  const int64_t asked = now_us + j->tune.seconds * INT64_C(1000000);
  const int64_t most = j->deadline_us ? j->deadline_us - (j->deadline_us - now_us) / 5 : asked;
  return asked < most ? asked : most;
}

enum status compile_tune(struct run *r) {
  const int64_t began_us = clock_now_us();
  struct tune t = {.run = r, .arena = r->arena, .until_us = end_of_search(r->job, began_us)};
  struct tune_probe first = {.tune = &t, .is_first = true};
  struct job job = *r->job;
  const char *stopped;
  job.tune = (struct job_tune){0};
  enum status st = compile_probed(r->ir, &job, &first);
  if (st && st != ST_INPUT && st != ST_LIMIT)
    return st;
  if (st || !first.is_timed) {
    diag_add(&r->diags, DS_ERROR, DG_BAD_INPUTS, NULL,
             st ? "the kernel does not compile as it is, so there is nothing to tune"
                : "there is no kernel of NumPy calls to tune");
    r->has_failed = true;
    return compile_send_diags(r, -1);
  }
  if (!knob_text_read(r->arena, r->job->source, 0, 0,
                      &t.sites.written)) /* else it has none: a program that is no Python */
    tune_add_statements(&t.sites, r->arena, r->job->source, r->job->filename);
  qsort(t.sites.v, (size_t)t.sites.n, sizeof *t.sites.v, by_weight);
  const struct point start = {first.ps, first.sbuf,
                              arena_new_array(r->arena, const struct tune_value *, (size_t)t.sites.n + 1)};
  memset(start.chosen, 0, ((size_t)t.sites.n + 1) * sizeof *start.chosen);
  array_push(r->arena, &t.points, start);
  is_new(&t, r->job->source);
  st = send_candidate(&t, &start, true, true);
  if (!st)
    st = search(&t, &stopped);
  return st ? st : send_result(&t, stopped, began_us);
}
