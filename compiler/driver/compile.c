/* compile: runs one job through the stages of stages.def and reports frames.
 *
 * Each kernel of the source goes through all stages before the next kernel is traced, so that the first results are
 * sent early.  A stage that fails ends its kernel, not the job: the earlier stages have been sent, and the other
 * kernels follow.
 */
#include "driver/compile_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "driver/by_hand.h"
#include "driver/entry.h"
#include "driver/gather.h"
#include "driver/native.h"
#include "driver/resume_text.h"
#include "ir/places.h"
#include "nisa/nisa.h"
#include "nki/ast.h"
#include "trace/shrink.h"

static_assert(JOB_SOURCE_MAX == (int)TRACE_SOURCE_MAX, "a job may hold any source that the tracer takes");
static_assert(JOB_RANK_MAX == (int)HLO_RANK_MAX, "a job's inputs have the shapes that HLO has");

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

static bool needs_inputs(const struct job *j) {
  return j->simulate || j->value.is_set;
}

/* Returns the pipeline as the job's author changed it. */
static const struct pipeline *change_by_hand(struct run *r, const struct pipeline *p) {
  const struct job *j = r->job;
  const struct pipeline *changed;
  int n_unused;
  by_hand_apply(r->arena, p, j->n_by_hand, j->by_hand, &changed, &n_unused);
  if (n_unused)
    diag_add(&r->diags, DS_NOTE, DG_PIPELINE_CHANGED, NULL,
             "%d of the %d changes of the pipeline are of stages that this kernel does not go through", n_unused,
             j->n_by_hand);
  return changed;
}

/* Returns a path from the first stage of a pipeline to the last one that the job wants. */
static struct path new_path(struct run *r, const struct pipeline *unchanged) {
  const struct job *j = r->job;
  const struct pipeline *pipeline = change_by_hand(r, unchanged);
  struct path p = {.run = r, .pipeline = pipeline, .last_stage = pipeline->n - 1};
  const char *last = j->value.is_set ? j->value.stage : j->stop_after;
  if (last && pipeline_stage(pipeline, last) >= 0)
    p.last_stage = pipeline_stage(pipeline, last);
  return p;
}

static const struct pipeline *numpy_pipeline(const struct job *j) {
  return j->is_reference ? &pipeline_reference : &pipeline_hlo;
}

/* Runs all stages of p->kernel. */
static enum status run_path(struct path *p) {
  struct run *r = p->run;
  enum status st = compile_send_kernel(p);
  if (!st)
    st = compile_find_resume(p);
  if (!st && r->job->artifacts && p->kernel->module && !r->job->value.is_set)
    st = compile_send_artifacts(p);
  if (!st && r->job->vendor)
    st = compile_with_vendor(p);
  if (!st)
    compile_use_native(p); /* the vendor's compiler gets the calls as they were */
  native_open(r->ir, p->kernel, r->arena);
  /* the simulation of a Python kernel makes its inputs when all stages have been sent, in case they are too large */
  if (!st && (r->job->check || (needs_inputs(r->job) && !p->kernel->program)))
    compile_begin_checks(p);
  compile_begin_turns(p);
  for (int i = p->first_stage; !st && i <= p->last_stage; i++)
    st = compile_stage(p, i);
  if (!st && p->vendor_nki)
    st = compile_send_vendor_stage(p);
  if (!st && r->probe)
    st = tune_probe_end(p);
  else if (!st && r->job->value.is_set)
    st = compile_send_value(p);
  else if (!st && r->job->simulate)
    st = compile_send_simulation(p);
  if (!st && r->job->artifacts && !r->job->value.is_set)
    st = compile_send_package(p);
  native_close(r->ir);
  stage_checks_end(&p->checks);
  compile_forget_old_program(p);
  if (!st && r->last)
    *r->last = p->module;
  else if (!mlirModuleIsNull(p->module))
    mlirModuleDestroy(p->module);
  if (st == ST_INPUT || st == ST_LIMIT || st == ST_BUG) {
    if (!r->diags.has_error)
      diag_add(&r->diags, DS_ERROR, DG_INTERNAL, NULL, "a stage failed without a message");
    r->has_failed = true;
    return compile_send_diags(r, p->number);
  }
  return st;
}

/* Sends stage `index` of a kernel that was refused: the operations that were traced before. */
static enum status send_partial_stage(struct path *p, int index, bool partial) {
  struct stage s = {.index = index,
                    .def = &p->pipeline->stages[index],
                    .changed = true,
                    .partial = partial,
                    .elide_above = p->run->job->constants,
                    .time_us = partial ? p->kernel->time_us : p->kernel->ast->time_us};
  struct error err = {0};
  return compile_read_stage(p, &s, &err) ? ST_OK : compile_send_stage(p->run, &s, p->number);
}

/* Sends what a kernel was before it was refused: of an NKI kernel its analysis, and its calls if there are any. */
static enum status send_partial(struct path *p) {
  const struct nki_program *nki = p->kernel->nki;
  enum status st = compile_send_kernel(p);
  if (!st && nki)
    st = send_partial_stage(p, p->first_stage, false);
  if (!st && (!nki || nki->items.n) && p->first_stage + (nki != NULL) <= p->last_stage)
    st = send_partial_stage(p, p->first_stage + (nki != NULL), true);
  return st ? st : compile_send_diags(p->run, p->number);
}

enum status compile_kernel(struct run *r, struct trace_program *job, int number, int *n_sent) {
  struct trace_kernel *kernel;
  enum status st = trace_kernel(job, number, &r->diags, &kernel);
  if (!st && !kernel)
    return compile_send_diags(r, -1);
  struct path p = new_path(r, kernel && kernel->nki ? &pipeline_nki : numpy_pipeline(r->job));
  p.kernel = kernel;
  p.nki = kernel ? kernel->nki : NULL;
  p.number = *n_sent;
  *n_sent += p.kernel != NULL;
  if (!st)
    return run_path(&p);
  r->has_failed = true;
  return p.kernel ? send_partial(&p) : compile_send_diags(r, -1);
}

/* Refuses kernel i and those after it. */
static void refuse_kernels(struct run *r, struct trace_program *job, int i) {
  struct diag *d = diag_add(&r->diags, DS_ERROR, DG_TOO_MANY_KERNELS, trace_place(job, i),
                            "the source has %d kernels, but a result can have %d; from this one on they are left out",
                            trace_count(job), GATHER_KERNELS_MAX);
  d->hint = "compile one kernel by its name (--kernel NAME, \"kernel\" in a request), or divide the source";
  r->has_failed = true;
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

static struct trace_request trace_request(const struct job *j, struct arena *a) {
  return (struct trace_request){
      .source = j->source,
      .source_len = j->source_len,
      .filename = j->filename,
      .target = j->target,
      .n_files = j->n_files,
      .files = trace_files(j, a),
      .kernel = j->kernel,
      .n_inputs = j->n_inputs,
      .inputs = trace_inputs(j, a),
      .inputs_npz = j->inputs_npz,
  };
}

static enum status run_source(struct run *r) {
  const struct trace_request rq = trace_request(r->job, r->arena);
  struct trace_program *job = NULL;
  int n_sent = 0;

  enum status opened = trace_open(r->arena, &rq, &r->diags, &job);
  if (opened)
    r->has_failed = true;
  enum status st = compile_send_diags(r, -1);
  for (int i = 0; !st && job && i < trace_count(job); i++) {
    if (n_sent == GATHER_KERNELS_MAX) {
      refuse_kernels(r, job, i);
      break;
    }
    st = compile_kernel(r, job, i, &n_sent);
  }
  report_output(r, job);
  trace_close(job);
  return st ? st : compile_send_diags(r, -1);
}

/* Rewrites the source and its files for the newest NKI, instead of compiling them. */
static enum status run_upgrade(struct run *r) {
  const struct trace_request rq = trace_request(r->job, r->arena);
  const struct nki_upgraded *files = NULL;
  if (nki_upgrade_files(r->arena, &rq, &r->diags, &files))
    r->has_failed = true;
  const enum status st = files ? compile_send_upgrade(r, 1 + rq.n_files, files) : ST_OK;
  return st ? st : compile_send_diags(r, -1);
}

/* Proposes smaller forms of the job, instead of compiling it. */
static enum status run_shrink(struct run *r) {
  const struct trace_request rq = trace_request(r->job, r->arena);
  const char *answer = NULL;
  size_t len;
  char *text = job_dump(r->job, &len);
  if (!text)
    arena_oom(r->job->source_len);
  if (trace_shrink(r->arena, &rq, text, r->job->shrink.from, &r->diags, &answer))
    r->has_failed = true;
  free(text);
  const enum status st = answer ? compile_send_shrink(r, answer) : ST_OK;
  return st ? st : compile_send_diags(r, -1);
}

/* The text of a stage that leaves out elements of constants is a program of MLIR whose values nobody knows. */
static void warn_of_elided(struct run *r) {
  const struct job *j = r->job;
  const size_t at = resume_elided_at(j->source, j->source_len);
  if (at == j->source_len)
    return;
  struct src_loc *place = arena_new(r->arena, struct src_loc);
  int line = 1, col = 0;
  for (size_t i = 0; i < at; i++) {
    const bool begins = ((unsigned char)j->source[i] & 0xC0) != 0x80; /* a character of UTF-8, which columns count */
    col = j->source[i] == '\n' ? 0 : col + begins;
    line += j->source[i] == '\n';
  }
  place->range = (struct src_range){j->filename, line, col, line, col + 1};
  diag_add(&r->diags, DS_WARNING, DG_IR_INVALID, place, "the elements of this constant are left out of the text")
      ->hint = "compile the source with --constants 0 (options.constants: 0) for a text with all elements";
}

/* Runs a program in HLO or MLIR: one kernel, which starts at the stage of its form. */
static enum status run_program(struct run *r) {
  struct path p = new_path(r, numpy_pipeline(r->job));
  const int64_t t0 = clock_now_us();
  enum status st;
  if (r->job->language == LANG_HLO) {
    st = entry_read_hlo(r->arena, r->job, &r->diags, &p.kernel);
  } else {
    const char *first = "hlo-to-linalg";
    warn_of_elided(r);
    p.is_nisa = entry_is_nisa(r->job->source, r->job->source_len);
    st = p.is_nisa ? entry_read_nisa(r->ir, r->arena, r->job, &r->diags, &p.kernel, &p.module, &first)
                   : entry_read_mlir(r->ir, r->arena, r->job, &r->diags, &p.kernel, &p.module);
    p.first_stage = pipeline_find(p.pipeline, first);
    if (p.last_stage < p.first_stage)
      p.last_stage = p.first_stage;
  }
  if (st) {
    r->has_failed = true;
    return compile_send_diags(r, -1);
  }
  p.kernel->time_us = clock_now_us() - t0;
  p.insides = compile_bind_native(&p);
  const bool is_inside = r->job->kernel && compile_has_native(p.insides, r->job->kernel);
  int n_sent = !is_inside;
  st = is_inside ? ST_OK : run_path(&p);
  return st ? st : compile_native(r, p.insides, &n_sent);
}

static enum status run_traced(struct run *r) {
  struct path p = new_path(r, r->traced->nki ? &pipeline_nki : numpy_pipeline(r->job));
  p.kernel = r->traced;
  p.nki = r->traced->nki;
  return run_path(&p);
}

static enum status run_all(struct run *r, struct arena *arena) {
  const struct job *job = r->job;
  int64_t started_us = clock_now_us();
  assert(!job->stop_after || pipeline_has_stage(job->stop_after)); /* checked when the job was read */

  arena_init(arena);
  r->arena = arena;
  struct ir_places *const outer = r->ir->places;
  r->ir->places = ir_places_new(arena);
  diags_init(&r->diags, arena);
  sources_init(&r->sources, arena, job->filename);
  buf_init(&r->told.json, FRAME_MAX);
  enum status st = compile_send_start(r);
  compile_read_patterns(r);
  if (!st)
    st = r->traced                     ? run_traced(r)
         : job->upgrade                ? run_upgrade(r)
         : job->shrink.is_set          ? run_shrink(r)
         : job->tune.seconds           ? compile_tune(r)
         : job->language == LANG_NEFF  ? compile_neff(r)
         : job->language == LANG_NKIPY ? run_source(r)
                                       : run_program(r);
  compile_end_patterns(r);
  if (!st)
    st = compile_send_diags(r, -1);
  r->has_failed |= r->diags.has_error;
  if (!st)
    st = compile_send_end(r, started_us);
  r->ir->places = outer;
  compile_end_turns(r);
  buf_clear(&r->told.json);
  arena_clear(arena);
  return st ? st : r->has_failed ? ST_INPUT : ST_OK;
}

enum status compile_run(struct ir *ir, const struct job *job, frame_sink sink, void *user) {
  struct arena arena;
  struct run r = {.ir = ir, .job = job, .sink = sink, .user = user};
  return run_all(&r, &arena);
}

static enum status drop_frame(void *user, const char *json, size_t len) {
  (void)user, (void)json, (void)len;
  return ST_OK;
}

enum status compile_probed(struct ir *ir, const struct job *job, struct tune_probe *probe) {
  struct arena arena;
  struct run r = {.ir = ir, .job = job, .sink = drop_frame, .probe = probe};
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
