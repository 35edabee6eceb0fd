/* compile_simulate: runs the last stage of a kernel on the simulated machine, and sends what came out. */
#include "driver/compile_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "driver/simulate.h"

enum { TRACE_MAX = 1 << 30 };

/* Returns why the kernel is not simulated, and the status to report; NULL if it is. */
static const char *why_not_simulated(struct path *p, const char **status) {
  struct run *r = p->run;
  *status = "skipped";
  if (stage_form(p->before.def) != FORM_NISA)
    return "the kernel was not taken to NISA";
  const char *refusal = simulate_refusal(r->job, p->kernel, r->arena);
  if (refusal) {
    struct diag *d = diag_add(&r->diags, DS_WARNING, DG_MEMORY_LIMIT, NULL, "the kernel is not simulated: %s", refusal);
    d->hint = "smaller shapes can be simulated; `nkx run` in a terminal has no such limit";
    *status = "limit";
    return refusal;
  }
  if (!p->checks.kernel)
    compile_begin_checks(p);
  if (p->checks.has_inputs)
    return NULL;
  diag_add(&r->diags, DS_ERROR, DG_BAD_INPUTS, NULL, "the kernel has no inputs to run on: %s", p->checks.no_check);
  return p->checks.no_check;
}

static const char *reference_name(const struct path *p) {
  return p->checks.no_check || p->is_nisa ? NULL : p->kernel->program ? "numpy" : "first stage";
}

static bool write_trace(const char *path, const struct buf *b) {
  FILE *f = fopen(path, "we");
  bool ok = f && fwrite(buf_text(b), 1, b->len, f) == b->len;
  if (f)
    ok &= fclose(f) == 0;
  return ok;
}

/* Sends the timeline as columns: an artifact. */
static enum status send_columns(struct path *p, const struct simulation *s) {
  struct run *r = p->run;
  struct buf b;
  enum status st = ST_OK;
  if (!r->job->artifacts)
    return ST_OK;
  buf_init(&b, ARTIFACT_MAX);
  if (simulate_put_columns(s, &b))
    diag_add(&r->diags, DS_WARNING, DG_OUTPUT_LIMIT, NULL,
             "the list of executions is longer than %d MiB and is left out", ARTIFACT_MAX >> 20);
  else
    st =
        compile_send_artifact(p, arena_printf(r->arena, "%s/executions.json", p->kernel->name), "application/json", &b);
  buf_clear(&b);
  return st;
}

/* Sends the timeline as an artifact, or writes it to the file that the terminal wants. */
static enum status send_trace(struct path *p, const struct simulation *s) {
  struct run *r = p->run;
  const char *path = r->job->trace_path;
  struct buf b;
  enum status st = ST_OK;
  if (!path && !r->job->artifacts)
    return ST_OK;
  buf_init(&b, path ? TRACE_MAX : ARTIFACT_MAX);
  if (simulate_put_trace(s, &b))
    diag_add(&r->diags, DS_WARNING, DG_OUTPUT_LIMIT, NULL, "the timeline is longer than %d MiB and is left out",
             (path ? TRACE_MAX : ARTIFACT_MAX) >> 20);
  else if (!path)
    st = compile_send_artifact(p, arena_printf(r->arena, "%s/timeline.json", p->kernel->name), "application/json", &b);
  else if (!write_trace(path, &b))
    diag_add(&r->diags, DS_ERROR, DG_BAD_INPUTS, NULL, "%s: %s", path, strerror(errno));
  buf_clear(&b);
  return st;
}

static enum status send_profile(struct path *p, struct simulation *s) {
  struct run *r = p->run;
  struct arena scratch;
  struct buf b;
  enum status st = ST_OK;
  arena_init(&scratch);
  if (simulate_time(s, &scratch)) {
    buf_init(&b, FRAME_MAX);
    if (simulate_put_profile(s, &b))
      diag_add(&r->diags, DS_WARNING, DG_OUTPUT_LIMIT, NULL, "the profile is larger than %d MiB and is left out",
               FRAME_MAX >> 20);
    else
      st = r->sink(r->user, b.data, b.len);
    buf_clear(&b);
    if (!st)
      st = send_columns(p, s);
    if (!st)
      st = send_trace(p, s);
  }
  arena_clear(&scratch);
  return st;
}

static enum status send_refusal(struct path *p, const char *status, const char *reason) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  simulate_put_refusal(&b, p->number, status, reason);
  return compile_send(p->run, &b);
}

struct simulate_request compile_simulate_request(const struct path *p) {
  return (struct simulate_request){.job = p->run->job,
                                   .kernel = p->kernel,
                                   .number = p->number,
                                   .module = p->module,
                                   .stage = &p->before,
                                   .is_nisa = p->is_nisa,
                                   .arena = p->run->arena};
}

/* Sends the values of the kernel's last stage, and its time: that is known even if the values are not. */
static enum status send_runs(struct path *p, const char *refused, const char *status) {
  struct run *r = p->run;
  struct simulate_request rq = compile_simulate_request(p);
  const int first = r->diags.n;
  struct simulation *s;

  rq.in = p->checks.in;
  rq.want = p->checks.want;
  rq.reference = reference_name(p);
  struct buf b;
  if (simulate_open(&rq, &r->diags, &s))
    return send_refusal(p, "skipped",
                        r->diags.n > first ? r->diags.v[first].message : "the simulator cannot run the stage");
  buf_init(&b, FRAME_MAX);
  if (refused)
    simulate_put_refusal(&b, p->number, status, refused);
  else
    simulate_put_values(s, &b);
  enum status st = compile_send(r, &b);
  if (!st)
    st = compile_send_diags(r, p->number); /* now, because the profile may reach a limit that ends the job */
  if (!st)
    st = send_profile(p, s);
  if (!st && !refused && r->job->for_device)
    st = compile_send_tensors(p, s);
  const bool has_neff = r->job->device && (r->job->device->neff || p->neff);
  return st || refused || !has_neff ? st : compile_send_device(p, s);
}

/* Runs the kernel's last stage on the simulated machine. */
enum status compile_send_simulation(struct path *p) {
  struct run *r = p->run;
  const int first = r->diags.n;
  const bool is_nisa = stage_form(p->before.def) == FORM_NISA;
  const char *status, *refused = why_not_simulated(p, &status);
  const enum status st = is_nisa ? send_runs(p, refused, status) : send_refusal(p, status, refused);
  for (int i = first; i < r->diags.n; i++)
    r->has_failed |= r->diags.v[i].severity == DS_ERROR;
  return st ? st : compile_send_diags(r, p->number);
}
