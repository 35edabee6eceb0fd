/* compile: runs one job through the stages of stages.def and reports frames.
 *
 * Each kernel of the source goes through all stages before the next kernel is traced, so that the first results are
 * sent early.  A stage that fails ends its kernel, not the job: the earlier stages have been sent, and the other
 * kernels follow.
 */
#include "driver/compile.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "driver/entry.h"
#include "driver/pipeline.h"
#include "driver/plant.h"
#include "driver/reproduce.h"
#include "driver/simulate.h"
#include "driver/stage.h"
#include "driver/stage_check.h"
#include "hlo/passes.h"
#include "hlo/print.h"
#include "linalg/lower.h"
#include "nisa/nisa.h"
#include "passes/pass.h"

static_assert(JOB_SOURCE_MAX == (int)TRACE_SOURCE_MAX, "a job may hold any source that the tracer takes");
static_assert(JOB_RANK_MAX == (int)HLO_RANK_MAX, "a job's inputs have the shapes that HLO has");

enum {
  ARTIFACT_MAX = 8 << 20,
  REPRODUCER_MAX = 40 << 20,
  TRACE_MAX = 1 << 30
}; /* the reproducer as base64 is smaller than a frame */

struct run {
  struct ir *ir;
  const struct job *job;
  frame_sink sink;
  void *user;
  struct arena *arena;
  struct sources sources;
  struct diags diags;
  int n_diags_sent;
  struct trace_kernel *traced; /* the kernel to compile; NULL: the job's source */
  MlirModule *last;            /* where the caller wants its last stage, or NULL */
  int first_stage, last_stage; /* indices */
  bool has_failed;
};

/* One kernel and the state of its compilation. */
struct path {
  struct run *run;
  int number;
  struct trace_kernel *kernel;
  MlirModule module; /* from hlo-to-linalg on */
  bool is_nisa;      /* the source is NISA */
  struct stage before;
  uint64_t fingerprint; /* of the module that `before` shows */
  bool is_same;         /* the last pass changed nothing */
  struct stage_checks checks;
  /* With a check: the program before the current pass, in one of two forms. */
  MlirOperation old_module;
  struct buf old_proto;
  bool has_reproducer;
};

/* ---- frames ------------------------------------------------------------------------------------------------------ */

static enum status send(struct run *r, struct buf *b) {
  enum status st = buf_status(b);
  if (!st)
    st = r->sink(r->user, b->data, b->len);
  buf_clear(b);
  return st;
}

/* True if an earlier diagnostic, which is not an error, has the same text and the same place. */
static bool is_repeated(const struct diags *ds, int at) {
  const struct diag *d = &ds->v[at];
  for (int i = 0; i < at && d->severity != DS_ERROR; i++) {
    const struct diag *e = &ds->v[i];
    if (e->severity == d->severity && e->code == d->code && src_loc_equal(e->loc, d->loc) &&
        !strcmp(e->message, d->message))
      return true;
  }
  return false;
}

/* Sends the diagnostics that were added since the last call; repeated warnings and notes are sent once. */
static enum status send_diags(struct run *r, int kernel) {
  enum status st = ST_OK;
  for (; !st && r->n_diags_sent < r->diags.n; r->n_diags_sent++) {
    struct buf b;
    if (is_repeated(&r->diags, r->n_diags_sent))
      continue;
    buf_init(&b, FRAME_MAX);
    stage_put_diag_frame(&b, &r->diags.v[r->n_diags_sent], kernel);
    st = send(r, &b);
  }
  return st;
}

/* Ends the job because a frame would exceed FRAME_MAX. */
static enum status refuse_frame(struct run *r, const struct stage *s) {
  struct diag *d =
      diag_add(&r->diags, DS_ERROR, DG_OUTPUT_LIMIT, NULL,
               "this stage is larger than %d MiB with its maps, the most that a result can hold", FRAME_MAX >> 20);
  d->stage = s->def->name;
  d->hint = "stop after an earlier stage, or compile parts of the kernel";
  return ST_INPUT;
}

/* Sends a stage, after a frame of the sources that it is the first to refer to. */
static enum status send_stage(struct run *r, const struct stage *s, int kernel) {
  struct buf stage, sources;
  enum status st = ST_OK;
  buf_init(&stage, FRAME_MAX);
  stage_put_frame(&stage, s, kernel, &r->sources);
  if (sources_has_news(&r->sources)) {
    buf_init(&sources, FRAME_MAX);
    sources_put_frame(&sources, &r->sources);
    st = send(r, &sources);
  }
  if (!st && buf_status(&stage) == ST_LIMIT)
    st = refuse_frame(r, s);
  if (!st)
    return send(r, &stage);
  buf_clear(&stage);
  return st;
}

static const char *find_key(struct run *r) {
  size_t len;
  char *key, *text;
  if (r->job->key)
    return r->job->key;
  text = job_dump(r->job, &len);
  if (!text)
    arena_oom(r->job->source_len);
  key = arena_alloc(r->arena, JOB_KEY_SIZE);
  job_key(text, len, key);
  free(text);
  return key;
}

static enum status send_start(struct run *r) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  buf_puts(&b, "{\"frame\":\"start\",\"version\":1");
  json_put_field_str(&b, "key", find_key(r));
  json_put_field_str(&b, "language", language_name(r->job->language));
  json_put_field_str(&b, "target", target_name(r->job->target));
  json_put_field_str(&b, "pipeline", pipeline_version());
  buf_putc(&b, '}');
  return send(r, &b);
}

static void put_tensors(struct buf *b, const char *key, const struct trace_tensor *v, int n) {
  json_put_key(b, key);
  buf_putc(b, '[');
  for (int i = 0; i < n; i++) {
    json_put_comma(b);
    buf_putc(b, '{');
    json_put_field_str(b, "name", v[i].name);
    json_put_key(b, "shape");
    buf_putc(b, '[');
    for (int d = 0; d < v[i].shape.rank; d++)
      buf_printf(b, d ? ",%lld" : "%lld", (long long)v[i].shape.dims[d]);
    buf_putc(b, ']');
    json_put_field_str(b, "dtype", dtype_numpy_name(v[i].shape.dtype));
    if (v[i].alias_of >= 0)
      json_put_field_int(b, "alias_of", v[i].alias_of);
    buf_putc(b, '}');
  }
  buf_putc(b, ']');
}

static enum status send_kernel(struct path *p) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  buf_printf(&b, "{\"frame\":\"kernel\",\"kernel\":%d", p->number);
  json_put_field_str(&b, "name", p->kernel->name);
  put_tensors(&b, "inputs", p->kernel->inputs, p->kernel->n_inputs);
  put_tensors(&b, "outputs", p->kernel->outputs, p->kernel->n_outputs);
  buf_putc(&b, '}');
  return send(p->run, &b);
}

static enum status send_end(struct run *r, int64_t started_us) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  buf_puts(&b, "{\"frame\":\"end\"");
  json_put_field_str(&b, "status", r->has_failed ? "error" : "ok");
  json_put_field_int(&b, "time_us", clock_now_us() - started_us);
  buf_putc(&b, '}');
  return send(r, &b);
}

/* ---- artifacts --------------------------------------------------------------------------------------------------- */

static enum status send_artifact(struct path *p, const char *name, const char *type, const struct buf *data) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  char hex[2 * SHA256_DIGEST_LENGTH + 1];
  struct buf b;

  SHA256((const unsigned char *)buf_text(data), data->len, digest);
  for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
    snprintf(hex + 2 * i, 3, "%02x", digest[i]);
  buf_init(&b, FRAME_MAX);
  buf_puts(&b, "{\"frame\":\"artifact\",\"artifact\":{");
  json_put_field_str(&b, "name", name);
  json_put_field_int(&b, "kernel", p->number);
  json_put_field_str(&b, "media_type", type);
  json_put_field_int(&b, "size", (long long)data->len);
  json_put_field_str(&b, "sha256", hex);
  buf_puts(&b, "},\"data\":\"");
  size_t n = (data->len + 2) / 3 * 4;
  if (buf_reserve(&b, n) == ST_OK) {
    EVP_EncodeBlock((unsigned char *)b.data + b.len, (const unsigned char *)buf_text(data), (int)data->len);
    b.len += n;
  }
  buf_puts(&b, "\"}");
  return send(p->run, &b);
}

/* Sends the HLO as traced, which is what NKIPy would pass to the vendor's compiler. */
static enum status send_artifacts(struct path *p) {
  const struct hlo_print_options opt = {.metadata = true};
  const char *name = p->kernel->name;
  struct arena *a = p->run->arena;
  struct buf b;

  buf_init(&b, ARTIFACT_MAX);
  enum status st = hlo_write_proto(p->kernel->module, &b);
  if (!st)
    st = send_artifact(p, arena_printf(a, "%s/hlo.pb", name), "application/x-protobuf", &b);
  buf_clear(&b);
  if (!st)
    st = hlo_print(p->kernel->module, &opt, &b, a, NULL);
  if (!st)
    st = send_artifact(p, arena_printf(a, "%s/hlo.txt", name), "text/plain", &b);
  buf_clear(&b);
  if (st == ST_LIMIT) {
    diag_add(&p->run->diags, DS_WARNING, DG_OUTPUT_LIMIT, NULL, "the HLO artifacts exceed %d MiB and are left out",
             ARTIFACT_MAX >> 20);
    return ST_OK;
  }
  return st;
}

/* ---- stages ------------------------------------------------------------------------------------------------------ */

static enum status run_hlo(struct path *p, hlo_pass *pass) {
  struct hlo_pass_result result = {.ds = &p->run->diags};
  hlo_stage_mark(p->kernel->module);
  pass(p->kernel->module, &result);
  p->is_same = !result.changed;
  return p->is_same ? ST_OK : hlo_verify(p->kernel->module, &p->run->diags);
}

/* Records if the pass changed the module; verifies a changed module. */
static enum status verify_change(struct path *p) {
  struct run *r = p->run;
  MlirOperation module = mlirModuleGetOperation(p->module);
  struct ir_capture c;

  p->is_same = ir_fingerprint(module) == p->fingerprint;
  if (p->is_same)
    return ST_OK;
  ir_capture_begin(r->ir, &c, &r->diags, DG_PASS_FAILED, r->arena);
  bool ok = mlirOperationVerify(module);
  ir_capture_end(r->ir, &c);
  return ok ? ST_OK : ST_INPUT;
}

static enum status run_upstream(struct path *p, const char *pipeline) {
  struct run *r = p->run;
  enum status st = ir_run_pipeline(r->ir, mlirModuleGetOperation(p->module), pipeline, r->arena, &r->diags);
  return st ? st : verify_change(p);
}

/* Runs one of our own passes. */
static enum status run_pass(struct path *p, const struct pass_def *def, struct remarks *remarks) {
  struct run *r = p->run;
  struct pass_run run = {
      .ir = r->ir,
      .module = mlirModuleGetOperation(p->module),
      .target = r->job->target,
      .options = "",
      .arena = r->arena,
      .ds = &r->diags,
      .remarks = remarks,
      .def = def,
  };
  enum status st = def->run(&run);
  return st ? st : verify_change(p);
}

/* Makes the program of this stage from the program of the previous stage. */
static enum status transform(struct path *p, const struct stage_def *def, struct remarks *remarks) {
  struct run *r = p->run;
  p->is_same = false;
  switch (def->runner) {
  case RUN_TRACE:
    return hlo_verify(p->kernel->module, &r->diags);
  case RUN_HLO:
    return run_hlo(p, hlo_pass_find(def->pass));
  case RUN_TO_LINALG:
    if (!p->kernel->module) /* it was read as linalg */
      return ST_OK;
    return linalg_from_hlo(r->ir, p->kernel->module, &r->diags, &p->module);
  case RUN_UPSTREAM:
    return run_upstream(p, def->pass);
  case RUN_PASS:
    return run_pass(p, pass_find(def->pass), remarks);
  case RUN_TO_NISA: {
    if (p->is_nisa && def == &pipeline_stages[r->first_stage]) /* it was verified when it was read */
      return ST_OK;
    enum status st = run_pass(p, pass_find(def->pass), remarks);
    return st ? st : nisa_verify(mlirModuleGetOperation(p->module), r->job->target, r->arena, &r->diags);
  }
  }
  return ST_BUG;
}

/* Sets the stage's text and operations.  After a pass that changed nothing they are those of the previous stage, so
 * that nothing is printed again. */
static enum status read_stage(struct path *p, struct stage *s, struct error *err) {
  struct run *r = p->run;
  if (p->is_same) {
    s->text = p->before.text;
    s->text_len = p->before.text_len;
    s->ops = ir_snapshot_again(&p->before.ops, r->arena);
    return ST_OK;
  }
  if (s->def->runner < RUN_TO_LINALG)
    return stage_read_hlo(s, p->kernel->module, r->arena, err);
  MlirOperation module = mlirModuleGetOperation(p->module);
  enum status st = stage_read_mlir(s, r->ir, module, r->arena, err);
  p->fingerprint = st ? 0 : ir_fingerprint(module);
  return st;
}

static bool same_text(const struct stage *x, const struct stage *y) {
  return x->text == y->text || (x->text_len == y->text_len && !memcmp(x->text, y->text, x->text_len));
}

/* Sets the stage of the diagnostics from number `first` on that have none yet. */
static void blame(struct run *r, int first, const struct stage_def *def) {
  for (int i = first; i < r->diags.n; i++)
    if (!r->diags.v[i].stage)
      r->diags.v[i].stage = def->name;
}

/* ---- the reproducer of a failed check ---------------------------------------------------------------------------- */

static void forget_old_program(struct path *p) {
  if (!mlirOperationIsNull(p->old_module))
    mlirOperationDestroy(p->old_module);
  p->old_module = (MlirOperation){NULL};
  buf_clear(&p->old_proto);
}

/* Keeps the program before a pass until its check is done. */
static void keep_old_program(struct path *p) {
  forget_old_program(p);
  buf_init(&p->old_proto, REPRODUCER_MAX);
  if (!mlirModuleIsNull(p->module))
    p->old_module = mlirOperationClone(mlirModuleGetOperation(p->module));
  else if (p->kernel->module && hlo_write_proto(p->kernel->module, &p->old_proto))
    buf_clear(&p->old_proto);
}

/* Sends the reproducer of the first stage that fails. */
static enum status send_reproducer(struct path *p, const struct stage *s) {
  struct run *r = p->run;
  struct buf b;
  if (p->has_reproducer || !s->check.status || strcmp(s->check.status, "fail") != 0 || s->check.reason)
    return ST_OK;
  p->has_reproducer = true;
  const struct reproducer what = {
      .stage = s->def,
      .index = s->index,
      .target = r->job->target,
      .kernel = p->kernel,
      .set = stage_checks_set_of(&p->checks, &s->check.result),
      .module = p->old_module,
      .proto = &p->old_proto,
  };
  buf_init(&b, REPRODUCER_MAX);
  reproduce_put(&b, &what);
  if (buf_status(&b) == ST_OK) {
    const char *name = arena_printf(r->arena, "%s/reproducer.json", p->kernel->name);
    enum status st = send_artifact(p, name, "application/json", &b);
    buf_clear(&b);
    return st;
  }
  buf_clear(&b);
  diag_add(&r->diags, DS_WARNING, DG_OUTPUT_LIMIT, NULL,
           "the reproducer of the failed check exceeds %d MiB and is left out", REPRODUCER_MAX >> 20)
      ->stage = s->def->name;
  return ST_OK;
}

/* Does one stage: transform, read, check, send.  ST_INPUT: the kernel ends here. */
static enum status run_stage(struct path *p, int index) {
  struct run *r = p->run;
  assert(index >= r->first_stage && index <= r->last_stage && index < pipeline_n_stages);
  const struct stage_def *def = &pipeline_stages[index];
  struct stage s = {.index = index, .def = def};
  struct error err = {0};
  int first = r->diags.n;
  if (r->job->check)
    keep_old_program(p);
  int64_t t0 = clock_now_us();

  enum status st = transform(p, def, &s.remarks);
  if (!st && plant_fault && plant_fault(index, def->runner < RUN_TO_LINALG ? p->kernel->module : NULL, p->module))
    p->is_same = false;
  s.time_us = clock_now_us() - t0 + (def->runner == RUN_TRACE ? p->kernel->time_us : 0);
  blame(r, first, def);
  if (st)
    return st;
  st = read_stage(p, &s, &err);
  if (st) {
    diag_add(&r->diags, DS_ERROR, st == ST_LIMIT ? DG_OUTPUT_LIMIT : DG_INTERNAL, NULL, "%s", err.text)->stage =
        def->name;
    return ST_INPUT;
  }
  s.changed = !p->before.def || !same_text(&s, &p->before);
  if (r->job->check)
    stage_checks_run(&p->checks, p->module, &s, &r->diags);

  st = send_stage(r, &s, p->number);
  if (!st && r->job->check)
    st = send_reproducer(p, &s);
  p->before = s;
  return st ? st : send_diags(r, p->number);
}

/* Makes the inputs, and what the stages are compared with. */
static void begin_checks(struct path *p) {
  struct run *r = p->run;
  p->checks = (struct stage_checks){.ir = r->ir,
                                    .kernel = p->kernel,
                                    .arena = r->arena,
                                    .seed = r->job->seed,
                                    .inputs_npz = r->job->inputs_npz,
                                    .deadline_us = r->job->deadline_us,
                                    .only_inputs = p->is_nisa && !r->job->check};
  stage_checks_begin(&p->checks, p->module, &pipeline_stages[r->first_stage]);
}

/* ---- simulation -------------------------------------------------------------------------------------------------- */

/* Returns why the kernel is not simulated, and the status to report; NULL if it is. */
static const char *why_not_simulated(struct path *p, const char **status) {
  struct run *r = p->run;
  *status = "skipped";
  if (p->before.def->runner < RUN_TO_NISA)
    return "the kernel was not taken to NISA";
  const char *refusal = simulate_refusal(r->job, p->kernel, r->arena);
  if (refusal) {
    struct diag *d = diag_add(&r->diags, DS_WARNING, DG_MEMORY_LIMIT, NULL, "the kernel is not simulated: %s", refusal);
    d->hint = "smaller shapes can be simulated; `nkx run` in a terminal has no such limit";
    *status = "limit";
    return refusal;
  }
  if (!p->checks.kernel)
    begin_checks(p);
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
    st = send_artifact(p, arena_printf(r->arena, "%s/timeline.json", p->kernel->name), "application/json", &b);
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
      st = send_trace(p, s);
  }
  arena_clear(&scratch);
  return st;
}

static enum status send_refusal(struct path *p, const char *status, const char *reason) {
  struct buf b;
  buf_init(&b, FRAME_MAX);
  simulate_put_refusal(&b, p->number, status, reason);
  return send(p->run, &b);
}

/* Sends the values of the kernel's last stage, and its time: that is known even if the values are not. */
static enum status send_runs(struct path *p, const char *refused, const char *status) {
  struct run *r = p->run;
  const struct simulate_request rq = {.job = r->job,
                                      .kernel = p->kernel,
                                      .number = p->number,
                                      .module = p->module,
                                      .stage = &p->before,
                                      .is_nisa = p->is_nisa,
                                      .in = p->checks.in,
                                      .want = p->checks.want,
                                      .reference = reference_name(p),
                                      .arena = r->arena};
  const int first = r->diags.n;
  struct simulation *s;
  struct buf b;
  if (simulate_open(&rq, &r->diags, &s))
    return send_refusal(p, "skipped",
                        r->diags.n > first ? r->diags.v[first].message : "the simulator cannot run the stage");
  buf_init(&b, FRAME_MAX);
  if (refused)
    simulate_put_refusal(&b, p->number, status, refused);
  else
    simulate_put_values(s, &b);
  enum status st = send(r, &b);
  if (!st)
    st = send_diags(r, p->number); /* now, because the profile may reach a limit that ends the job */
  return st ? st : send_profile(p, s);
}

/* Runs the kernel's last stage on the simulated machine. */
static enum status send_simulation(struct path *p) {
  struct run *r = p->run;
  const int first = r->diags.n;
  const bool is_nisa = p->before.def->runner == RUN_TO_NISA;
  const char *status, *refused = why_not_simulated(p, &status);
  const enum status st = is_nisa ? send_runs(p, refused, status) : send_refusal(p, status, refused);
  for (int i = first; i < r->diags.n; i++)
    r->has_failed |= r->diags.v[i].severity == DS_ERROR;
  return st ? st : send_diags(r, p->number);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* Runs all stages of p->kernel. */
static enum status run_path(struct path *p) {
  struct run *r = p->run;
  enum status st = send_kernel(p);
  if (!st && r->job->artifacts && p->kernel->module)
    st = send_artifacts(p);
  /* the simulation of a Python kernel makes its inputs when all stages have been sent, in case they are too large */
  if (!st && (r->job->check || (r->job->simulate && !p->kernel->program)))
    begin_checks(p);
  for (int i = r->first_stage; !st && i <= r->last_stage; i++)
    st = run_stage(p, i);
  if (!st && r->job->simulate)
    st = send_simulation(p);
  forget_old_program(p);
  if (!st && r->last)
    *r->last = p->module;
  else if (!mlirModuleIsNull(p->module))
    mlirModuleDestroy(p->module);
  if (st == ST_INPUT || st == ST_LIMIT || st == ST_BUG) {
    if (!r->diags.has_error)
      diag_add(&r->diags, DS_ERROR, DG_INTERNAL, NULL, "a stage failed without a message");
    r->has_failed = true;
    return send_diags(r, p->number);
  }
  return st;
}

/* Sends the operations that were traced before a kernel was refused. */
static enum status send_partial(struct path *p) {
  struct run *r = p->run;
  struct stage s = {.index = r->first_stage, .def = &pipeline_stages[r->first_stage], .changed = true, .partial = true};
  struct error err = {0};

  s.time_us = p->kernel->time_us;
  enum status st = send_kernel(p);
  if (!st && !read_stage(p, &s, &err))
    st = send_stage(r, &s, p->number);
  return st ? st : send_diags(r, p->number);
}

static enum status run_kernel(struct run *r, struct trace_program *job, int number, int *n_sent) {
  struct path p = {.run = r, .number = *n_sent};
  enum status st = trace_kernel(job, number, &r->diags, &p.kernel);
  *n_sent += p.kernel != NULL;
  if (!st)
    return run_path(&p);
  r->has_failed = true;
  return p.kernel ? send_partial(&p) : send_diags(r, -1);
}

/* Reports the output of the source as a note, so that print() helps while writing a kernel. */
static void report_output(struct run *r, const struct trace_program *job) {
  size_t len;
  const char *text = job ? trace_output(job, &len) : NULL;
  if (text && len)
    diag_add(&r->diags, DS_NOTE, DG_KERNEL_OUTPUT, NULL, "%.*s", (int)len, text);
}

static const struct trace_input_spec *trace_inputs(const struct job *j, struct arena *a) {
  struct trace_input_spec *specs = arena_new_array(a, struct trace_input_spec, (size_t)j->n_inputs);
  for (int i = 0; i < j->n_inputs; i++) {
    const struct job_input *in = &j->inputs[i];
    specs[i] = (struct trace_input_spec){in->name, hlo_shape_array(a, in->dtype, in->rank, in->dims)};
  }
  return specs;
}

static const struct trace_file *trace_files(const struct job *j, struct arena *a) {
  struct trace_file *files = arena_new_array(a, struct trace_file, (size_t)j->n_files);
  for (int i = 0; i < j->n_files; i++)
    files[i] = (struct trace_file){j->files[i].name, j->files[i].source, j->files[i].source_len};
  return files;
}

static enum status run_source(struct run *r) {
  const struct job *j = r->job;
  const struct trace_request rq = {
      .source = j->source,
      .source_len = j->source_len,
      .filename = j->filename,
      .n_files = j->n_files,
      .files = trace_files(j, r->arena),
      .kernel = j->kernel,
      .n_inputs = j->n_inputs,
      .inputs = trace_inputs(j, r->arena),
      .inputs_npz = j->inputs_npz,
  };
  struct trace_program *job = NULL;
  int n_sent = 0;

  enum status opened = trace_open(r->arena, &rq, &r->diags, &job);
  if (opened)
    r->has_failed = true;
  enum status st = send_diags(r, -1);
  for (int i = 0; !st && job && i < trace_count(job); i++)
    st = run_kernel(r, job, i, &n_sent);
  report_output(r, job);
  trace_close(job);
  return st ? st : send_diags(r, -1);
}

/* Runs a program in HLO or MLIR: one kernel, which starts at the stage of its form. */
static enum status run_program(struct run *r) {
  struct path p = {.run = r};
  const int64_t t0 = clock_now_us();
  enum status st;
  if (r->job->language == LANG_HLO) {
    st = entry_read_hlo(r->arena, r->job, &r->diags, &p.kernel);
  } else {
    p.is_nisa = entry_is_nisa(r->job->source, r->job->source_len);
    r->first_stage = pipeline_find(p.is_nisa ? "linalg-to-nisa" : "hlo-to-linalg");
    if (r->last_stage < r->first_stage)
      r->last_stage = r->first_stage;
    st = (p.is_nisa ? entry_read_nisa : entry_read_mlir)(r->ir, r->arena, r->job, &r->diags, &p.kernel, &p.module);
  }
  if (st) {
    r->has_failed = true;
    return send_diags(r, -1);
  }
  p.kernel->time_us = clock_now_us() - t0;
  return run_path(&p);
}

static enum status run_traced(struct run *r) {
  struct path p = {.run = r, .kernel = r->traced};
  return run_path(&p);
}

static enum status run_all(struct run *r, struct arena *arena) {
  const struct job *job = r->job;
  int64_t started_us = clock_now_us();
  assert(!job->stop_after || pipeline_has_stage(job->stop_after)); /* checked when the job was read */

  arena_init(arena);
  r->arena = arena;
  diags_init(&r->diags, arena);
  sources_init(&r->sources, arena, job->filename);
  r->last_stage = job->stop_after ? pipeline_find(job->stop_after) : pipeline_n_stages - 1;
  enum status st = send_start(r);
  if (!st)
    st = r->traced ? run_traced(r) : job->language == LANG_NKIPY ? run_source(r) : run_program(r);
  r->has_failed |= r->diags.has_error;
  if (!st)
    st = send_end(r, started_us);
  arena_clear(arena);
  return st ? st : r->has_failed ? ST_INPUT : ST_OK;
}

enum status compile_run(struct ir *ir, const struct job *job, frame_sink sink, void *user) {
  struct arena arena;
  struct run r = {.ir = ir, .job = job, .sink = sink, .user = user};
  return run_all(&r, &arena);
}

enum status compile_traced(struct ir *ir, const struct job *job, struct trace_kernel *k, frame_sink sink, void *user,
                           MlirModule *last) {
  struct arena arena;
  struct run r = {.ir = ir, .job = job, .sink = sink, .user = user, .traced = k, .last = last};
  if (last)
    *last = (MlirModule){NULL};
  return run_all(&r, &arena);
}
