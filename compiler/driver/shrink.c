/* shrink: see the header. */
#include "driver/shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/json.h"
#include "driver/frame_scan.h"
#include "driver/gather.h"
#include "driver/pipeline.h"

enum { NAME_MAX_LEN = 64, REQUEST_MAX = 4 << 20 };

/* What is seen of a run.  A runner may have it seen in another process, so the memory is shared. */
struct watch {
  struct shrink_fault fault;
  char names[GATHER_STAGES_MAX][NAME_MAX_LEN]; /* of the stages of the kernel so far */
  int n;
};

struct search {
  const struct job_runner *runner;
  const struct job *job; /* as it was given, for what JSON does not have */
  json_t *request;       /* the smallest job so far */
  json_t *changes;       /* the members of it that changed */
  struct watch *watch;
  int64_t until_us;
  int candidate_ms;
  int candidates;
  shrink_progress progress;
  void *user;
  struct shrink_result *out;
};

/* ---- one run ----------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *o, const char *key) {
  const char *s = json_string_value(json_object_get(o, key));
  return s ? s : "";
}

static int count_of(const struct watch *w, const char *name) {
  int n = 0;
  for (int i = 0; i < w->n; i++)
    n += !strcmp(w->names[i], name);
  return n;
}

/* The error's stage may have been sent, with a check that failed, or not have been made. */
static void name_stage(const struct watch *w, const char *name, char *out, size_t size) {
  const bool is_last = w->n && !strcmp(w->names[w->n - 1], name);
  const int nth = count_of(w, name) + !is_last;
  snprintf(out, size, nth > 1 ? "%s:%d" : "%s", name, nth);
}

static void put_kind(char *out, size_t size, const char *message) {
  size_t n = 0;
  for (; *message && n + 1 < size; message++)
    if (!strchr("0123456789.", *message))
      out[n++] = *message;
  out[n] = 0;
}

static void see_diagnostic(struct watch *w, const json_t *d) {
  const char *stage = text_of(d, "stage");
  if (w->fault.code[0] || strcmp(text_of(d, "severity"), "error") != 0)
    return;
  if (*stage)
    name_stage(w, stage, w->fault.stage, sizeof w->fault.stage);
  else
    put_kind(w->fault.kind, sizeof w->fault.kind, text_of(d, "message"));
  snprintf(w->fault.code, sizeof w->fault.code, "%s", text_of(d, "code"));
}

static void see_stage(struct watch *w, const struct frame *f) {
  struct frame stage;
  const struct frame_member *m = frame_get(f, "stage"), *name;
  if (w->n == GATHER_STAGES_MAX || frame_scan_object(m->value, m->value_len, &stage, NULL) != ST_OK ||
      !(name = frame_get(&stage, "name")) || name->value_len < 2)
    return;
  snprintf(w->names[w->n++], NAME_MAX_LEN, "%.*s", (int)name->value_len - 2, name->value + 1);
}

static enum status see(void *user, const char *json, size_t len) {
  struct watch *w = user;
  struct frame f;
  if (frame_scan(json, len, &f, NULL) != ST_OK)
    return ST_BUG;
  if (f.kind == FRAME_KERNEL)
    w->n = 0;
  if (f.kind == FRAME_STAGE)
    see_stage(w, &f);
  if (f.kind == FRAME_DIAGNOSTIC) {
    const struct frame_member *m = frame_get(&f, "diagnostic");
    json_t *d = json_loadb(m->value, m->value_len, 0, NULL);
    see_diagnostic(w, d);
    json_decref(d);
  }
  return ST_OK;
}

/* Runs the job for at most ms.  s->watch has its fault. */
static enum status run(struct search *s, const struct job *job, int ms, bool *is_late, struct error *err) {
  struct shrink_fault *f = &s->watch->fault;
  enum job_end end;
  memset(s->watch, 0, sizeof *s->watch);
  const enum status st = s->runner->run(s->runner->user, job, ms, see, s->watch, &end, err);
  *is_late = !st && end == JOB_LATE;
  if (*is_late) {
    *f = (struct shrink_fault){0};
  } else if (!st && end == JOB_DIED) {
    *f = (struct shrink_fault){.code = "worker-died"};
    if (s->watch->n)
      snprintf(f->stage, sizeof f->stage, "%s", s->watch->names[s->watch->n - 1]);
  }
  return st;
}

/* ---- candidates -------------------------------------------------------------------------------------------------- */

/* Reads the job of a request.  What stands in no request is as in the job that was given.  Nothing after the
 * faulty stage is of interest. */
static enum status read_request(const struct search *s, const json_t *request, struct arena *a, struct job *out,
                                struct error *err) {
  arena_init(a);
  enum status st = arena_reserve(a, REQUEST_MAX) ? ST_OK : fail(err, ST_NOMEM, "a candidate");
  if (!st)
    st = job_read(a, request, out, err);
  if (st)
    return st;
  out->version = s->job->version;
  out->inputs_npz = s->job->inputs_npz;
  out->seed = s->job->seed;
  out->memory_max = s->job->memory_max;
  const char *stage = s->out->fault.stage;
  if (!out->stop_after && !out->simulate && *stage && pipeline_has_stage(stage))
    out->stop_after = stage;
  return ST_OK;
}

struct answer {
  json_t *shrink;
};

static enum status take_answer(void *user, const char *json, size_t len) {
  struct answer *a = user;
  json_t *f = json_loadb(json, len, 0, NULL);
  if (!strcmp(text_of(f, "frame"), "shrink"))
    a->shrink = json_incref(json_object_get(f, "shrink"));
  json_decref(f);
  return ST_OK;
}

/* Asks the reducer.  *out is NULL if it has no answer: the text is beyond the tracer's limits. */
static enum status ask(const struct search *s, int from, json_t **out, struct error *err) {
  struct job job;
  struct arena arena;
  struct answer a = {0};
  enum job_end end;
  enum status st = read_request(s, s->request, &arena, &job, err);
  job.shrink = (struct job_shrink){true, from};
  job.stop_after = NULL;
  if (!st)
    st = s->runner->run(s->runner->user, &job, 0, take_answer, &a, &end, err);
  arena_clear(&arena);
  *out = a.shrink;
  return st;
}

static int count_lines(const json_t *request) {
  int n = 0;
  const json_t *f;
  size_t i;
  for (const char *p = text_of(request, "source"); *p; p++)
    n += *p == '\n';
  json_array_foreach(json_object_get(request, "files"), i, f) for (const char *p = text_of(f, "source"); *p; p++) n +=
      *p == '\n';
  return n;
}

static bool is_same(const struct shrink_fault *a, const struct shrink_fault *b) {
  return !strcmp(a->code, b->code) && !strcmp(a->stage, b->stage) && !strcmp(a->kind, b->kind);
}

/* Runs a candidate, and keeps it if it has the fault. */
static enum status try_candidate(struct search *s, const json_t *candidate, bool *is_kept, struct error *err) {
  json_t *request = json_copy(s->request), *change = json_object_get(candidate, "request");
  struct job job;
  struct arena a;
  struct error unfit;
  bool is_late;
  *is_kept = false;
  s->out->n_tried++;
  arena_init(&a);
  enum status st = ST_OK;
  if (request && json_object_update(request, change) == 0 && !read_request(s, request, &a, &job, &unfit)) {
    st = run(s, &job, s->candidate_ms, &is_late, err);
    *is_kept = !st && is_same(&s->watch->fault, &s->out->fault) && json_object_update(s->changes, change) == 0;
  }
  arena_clear(&a);
  if (*is_kept) {
    json_decref(s->request);
    s->request = json_incref(request);
    s->out->n_kept++;
  }
  json_decref(request);
  if (!st && s->progress)
    s->progress(s->user, &(struct shrink_step){text_of(candidate, "what"), s->out->n_tried, count_lines(s->request),
                                               *is_kept, s->changes});
  return st;
}

static bool has_budget(struct search *s) {
  const bool is_late = clock_now_us() >= s->until_us;
  if (is_late || s->out->n_tried >= s->candidates)
    s->out->stopped = is_late ? "seconds" : "candidates";
  return !s->out->stopped;
}

/* Tries the candidates of one answer.  *from: where to go on; -1: these were the last. */
static enum status try_answer(struct search *s, const json_t *answer, int *from, bool *is_kept, struct error *err) {
  const json_t *candidate, *next = json_object_get(answer, "next");
  enum status st = ST_OK;
  size_t i;
  *from = next ? (int)json_integer_value(next) : -1;
  json_array_foreach(json_object_get(answer, "candidates"), i, candidate) {
    if (!has_budget(s))
      return ST_OK;
    st = try_candidate(s, candidate, is_kept, err);
    if (*is_kept)
      *from = (int)json_integer_value(json_object_get(candidate, "then"));
    if (st || *is_kept)
      return st;
  }
  return ST_OK;
}

/* Rounds over all changes, until one keeps nothing. */
static enum status search(struct search *s, struct error *err) {
  enum status st = ST_OK;
  int from = 0;
  bool round_keeps = false;
  while (!st && has_budget(s)) {
    bool is_kept = false;
    json_t *answer = NULL;
    st = ask(s, from, &answer, err);
    if (!st)
      st = try_answer(s, answer, &from, &is_kept, err);
    json_decref(answer);
    round_keeps |= is_kept;
    if (st || from >= 0)
      continue;
    if (!round_keeps)
      break;
    round_keeps = false;
    from = 0;
  }
  if (st == ST_TIMEOUT) {
    st = ST_OK;
    s->out->stopped = "seconds";
  }
  if (!s->out->stopped)
    s->out->stopped = "nothing smaller has the fault";
  return st;
}

/* Runs the job as it is, for its fault. */
static enum status find_fault(struct search *s, int seconds, struct error *err) {
  const int64_t began_us = clock_now_us();
  bool is_late = false;
  struct job job;
  struct arena a;
  enum status st = read_request(s, s->request, &a, &job, err);
  if (!st)
    st = run(s, &job, seconds * 1000, &is_late, err);
  arena_clear(&a);
  if (st && st != ST_TIMEOUT)
    return st;
  if (st || is_late)
    return fail(err, ST_INPUT, "the kernel takes longer than %d seconds as it is", seconds);
  if (!s->watch->fault.code[0])
    return fail(err, ST_INPUT, "nothing is wrong with the kernel%s",
                s->job->check ? "" : "; --check also looks at what it computes");
  s->candidate_ms = (int)((clock_now_us() - began_us) / 1000) * 3 + 5000;
  s->out->fault = s->watch->fault;
  if (s->progress)
    s->progress(s->user, &(struct shrink_step){NULL, 0, count_lines(s->request), true, s->changes});
  return ST_OK;
}

enum status shrink_search(const struct job_runner *runner, struct arena *a, const struct job *job, int seconds,
                          int candidates, shrink_progress progress, void *user, struct shrink_result *out,
                          struct error *err) {
  struct search s = {.runner = runner,
                     .job = job,
                     .changes = json_object(),
                     .until_us = clock_now_us() + seconds * INT64_C(1000000),
                     .candidates = candidates,
                     .progress = progress,
                     .user = user,
                     .out = out};
  size_t len;
  char *text = job_dump(job, &len);
  *out = (struct shrink_result){.job = *job};
  s.request = text ? json_loadb(text, len, JSON_ALLOW_NUL, NULL) : NULL;
  free(text);
  s.watch = mmap(NULL, sizeof *s.watch, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  enum status st = !s.request || !s.changes || s.watch == MAP_FAILED ? fail(err, ST_NOMEM, "the search")
                                                                     : find_fault(&s, seconds, err);
  if (!st)
    st = search(&s, err);
  if (!st && !job_read(a, s.request, &out->job, err))
    out->job.inputs_npz = job->inputs_npz;
  if (!st) {
    out->lines = count_lines(s.request);
    out->changes = s.changes;
    s.changes = NULL;
  }
  if (s.watch != MAP_FAILED)
    munmap(s.watch, sizeof *s.watch);
  json_decref(s.changes);
  json_decref(s.request);
  return st;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static void put_request(struct buf *b, const json_t *changes) {
  char *text = json_dumps(changes, JSON_COMPACT);
  json_put_key(b, "request");
  buf_puts(b, text ? text : "{}");
  free(text);
}

void shrink_put_step(struct buf *b, const struct shrink_step *step) {
  buf_puts(b, "{\"frame\":\"shrunk\",\"shrunk\":{");
  json_put_field_int(b, "tried", step->number);
  json_put_field_int(b, "lines", step->lines);
  if (step->what)
    json_put_field_str(b, "what", step->what);
  json_put_field_bool(b, "is_kept", step->is_kept);
  if (step->what && step->is_kept)
    put_request(b, step->changes);
  buf_puts(b, "}}");
}

void shrink_put_result(struct buf *b, const struct shrink_result *r) {
  buf_puts(b, "{\"frame\":\"shrunk\",\"shrunk\":{");
  json_put_field_bool(b, "done", true);
  json_put_field_int(b, "tried", r->n_tried);
  json_put_field_int(b, "kept", r->n_kept);
  json_put_field_int(b, "lines", r->lines);
  json_put_field_str(b, "stopped", r->stopped);
  json_put_field_str(b, "code", r->fault.code);
  if (r->fault.stage[0])
    json_put_field_str(b, "stage", r->fault.stage);
  put_request(b, r->changes);
  buf_puts(b, "}}");
}
