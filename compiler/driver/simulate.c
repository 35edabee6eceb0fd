#include "driver/simulate_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "driver/check.h"
#include "driver/summary.h"
#include "nisa/nisa.h"
#include "sim/decode.h"
#include "sim/report.h"

/* ---- limits ------------------------------------------------------------------------------------------------------ */

/* The data of a run take up to job->memory_max; inputs, outputs and NumPy's copies of them are a part of it. */
enum { ARRAYS_PART = 4 };

static int64_t array_bytes(const struct trace_tensor *v, int n) {
  int64_t total = 0, bytes;
  for (int k = 0; k < n; k++)
    if (__builtin_mul_overflow(hlo_shape_elements(&v[k].shape), (int64_t)dtype_size(v[k].shape.dtype), &bytes) ||
        __builtin_add_overflow(total, bytes, &total))
      return INT64_MAX;
  return total;
}

const char *simulate_refusal(const struct job *job, const struct trace_kernel *k, struct arena *a) {
  const int64_t in = array_bytes(k->inputs, k->n_inputs), out = array_bytes(k->outputs, k->n_outputs);
  const int64_t most = job->memory_max / ARRAYS_PART;
  if (!job->memory_max || (in <= most && out <= most - in))
    return NULL;
  return arena_printf(a, "its inputs and outputs take more than %lld MiB, which is the limit here",
                      (long long)(most >> 20));
}

/* A run may take half of the time that the job has left: the run with values, then that of the time; then comes its
 * profile. */
static struct time_limit time_limit(const struct job *job) {
  struct time_limit d = check_time_limit(job->deadline_us);
  if (d.wall_us)
    d.wall_us -= (d.wall_us - clock_now_us()) / 2;
  if (d.cpu_us)
    d.cpu_us -= (d.cpu_us - clock_cpu_us()) / 2;
  return d;
}

/* ---- instructions and lines --------------------------------------------------------------------------------------- */

/* The stage's operation that each instruction is: instructions are decoded in the order in which the stage shows them. */
static const struct ir_op **find_ops(const struct simulate_request *rq, const struct sim_program *p) {
  const struct ir_op **ops = arena_new_array(rq->arena, const struct ir_op *, (size_t)p->n_instrs);
  int next = 0;
  for (int i = 0; i < rq->stage->ops.n && next < p->n_instrs; i++)
    if (!strcmp(rq->stage->ops.ops[i].name, p->instrs[next].def->full_name))
      ops[next++] = &rq->stage->ops.ops[i];
  return ops;
}

/* The user of a NISA text knows its own lines. */
static int *find_lines(const struct simulation *s) {
  const struct sim_program *p = &s->program;
  int *lines = arena_new_array(s->rq->arena, int, (size_t)p->n_instrs);
  for (int k = 0; k < p->n_instrs; k++)
    if (s->rq->is_nisa)
      lines[k] = p->instrs[k].loc ? p->instrs[k].loc->range.line : 0;
    else
      lines[k] = s->ops[k] ? s->ops[k]->line : 0;
  return lines;
}

/* The program has the stage's allocations in their order. */
static int *find_buffer_lines(const struct simulate_request *rq, const struct sim_program *p) {
  int *lines = arena_new_array(rq->arena, int, (size_t)p->n_buffers);
  const struct ir_snapshot *ops = &rq->stage->ops;
  for (int k = 0, i = 0; k < p->n_buffers; k++) {
    lines[k] = 0;
    if (p->buffers[k].kind != SIM_ALLOC)
      continue;
    while (i < ops->n && strcmp(ops->ops[i].name, "nisa.alloc") != 0)
      i++;
    lines[k] = rq->is_nisa  ? (p->buffers[k].loc ? p->buffers[k].loc->range.line : 0)
               : i < ops->n ? ops->ops[i].line
                            : 0;
    i++;
  }
  return lines;
}

static int line_of(const struct simulation *s, const struct sim_instr *i) {
  return i ? s->lines[i - s->program.instrs] : 0;
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

static void put_output(const struct simulation *s, int k, struct buf *b) {
  const struct simulate_request *rq = s->rq;
  struct check_result r;
  json_put_comma(b);
  buf_putc(b, '{');
  json_put_field_str(b, "name", rq->kernel->outputs[k].name);
  summary_put(b, &s->out[k]);
  if (rq->reference) {
    check_compare(1, &s->out[k], &rq->want[k], &r);
    json_put_field_bool(b, "pass", r.pass);
    json_put_field_double(b, "max_abs_err", r.max_abs_err);
    json_put_field_double(b, "max_rel_err", r.max_rel_err);
  }
  buf_putc(b, '}');
}

static void put_outputs(const struct simulation *s, struct buf *b) {
  json_put_key(b, "outputs");
  buf_putc(b, '[');
  for (int k = 0; k < s->rq->kernel->n_outputs; k++)
    put_output(s, k, b);
  buf_putc(b, ']');
}

/* Reports the outputs that are wrong. */
static void check_outputs(const struct simulation *s) {
  const struct simulate_request *rq = s->rq;
  struct check_result r;
  for (int k = 0; rq->reference && k < rq->kernel->n_outputs; k++) {
    check_compare(1, &s->out[k], &rq->want[k], &r);
    if (!r.pass)
      diag_add(s->ds, DS_ERROR, DG_CHECK_FAILED, NULL, "the simulated output %s differs from the reference by %g",
               rq->kernel->outputs[k].name, r.max_abs_err)
          ->stage = rq->stage->def->name;
  }
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static bool is_limit(enum sim_fault_kind k) {
  return k == SIM_FAULT_MEMORY || k == SIM_FAULT_TIME;
}

static void put_place(struct buf *b, const char *key, const struct src_loc *loc) {
  if (!loc)
    return;
  json_put_key(b, key);
  buf_putc(b, '{');
  stage_put_range(b, &loc->range);
  buf_putc(b, '}');
}

static void put_fault(const struct simulation *s, struct buf *b) {
  const struct sim_fault *f = &s->fault;
  json_put_key(b, "fault");
  buf_putc(b, '{');
  json_put_field_str(b, "kind", sim_fault_name(f->kind));
  json_put_field_str(b, "message", f->text);
  if (f->instr) {
    json_put_field_str(b, "instruction", f->instr->def->name);
    json_put_field_str(b, "engine", nisa_engine_name(f->instr->engine));
    if (line_of(s, f->instr))
      json_put_field_int(b, "line", line_of(s, f->instr));
  }
  put_place(b, "range", f->loc);
  if (f->other) {
    json_put_field_str(b, "other", f->other->def->name);
    if (line_of(s, f->other))
      json_put_field_int(b, "other_line", line_of(s, f->other));
    put_place(b, "other_range", f->other_loc);
  }
  buf_putc(b, '}');
}

/* A program that is too large for the job is not wrong: the stages are the result, and the limit has a name. */
static void report_fault(const struct simulation *s) {
  const struct sim_fault *f = &s->fault;
  const enum diag_code code = f->kind == SIM_FAULT_MEMORY ? DG_MEMORY_LIMIT
                              : f->kind == SIM_FAULT_TIME ? DG_TIME_LIMIT
                                                          : DG_SIMULATION_FAULT;
  struct diag *d = is_limit(f->kind)
                       ? diag_add(s->ds, DS_WARNING, code, NULL, "the simulation was stopped: %s", f->text)
                       : diag_add(s->ds, DS_ERROR, code, f->loc, "%s: %s%s%s", sim_fault_name(f->kind),
                                  f->instr ? f->instr->def->name : "", f->instr ? ": " : "", f->text);
  d->stage = s->rq->stage->def->name;
  if (is_limit(f->kind))
    d->hint = "smaller shapes are simulated faster; `nkx run` in a terminal has no such limit";
}

/* ---- the frame --------------------------------------------------------------------------------------------------- */

enum status simulate_open(const struct simulate_request *rq, struct diags *ds, struct simulation **out) {
  const struct trace_kernel *k = rq->kernel;
  struct simulation *s = arena_new(rq->arena, struct simulation);
  *s = (struct simulation){.rq = rq, .ds = ds};
  enum status st =
      sim_decode(mlirModuleGetOperation(rq->module), k->module ? k->module->name : k->name, rq->arena, ds, &s->program);
  if (st)
    return st;
  s->ops = find_ops(rq, &s->program);
  s->lines = find_lines(s);
  s->buffer_lines = find_buffer_lines(rq, &s->program);
  simulate_find_watches(s);
  *out = s;
  return ST_OK;
}

enum status simulate_run(struct simulation *s) {
  const struct simulate_request *rq = s->rq;
  const struct trace_kernel *k = rq->kernel;
  struct check_binding binding;
  s->out = arena_new_array(rq->arena, struct trace_array, (size_t)k->n_outputs);
  for (int i = 0; i < k->n_outputs; i++)
    s->out[i].shape = k->outputs[i].shape;
  enum status st = check_bind(&s->program, k->n_inputs, rq->in, k->n_outputs, s->out, rq->arena, s->ds, &binding);
  if (st)
    return st;
  const struct sim_options options = {.memory_max = rq->job->memory_max,
                                      .limit = time_limit(rq->job),
                                      .n_watches = s->program.n_instrs ? s->n_watches : 0,
                                      .watches = s->watches,
                                      .record = &s->record};
  const int64_t began_us = clock_now_us();
  sim_record_init(&s->record, s->program.n_streams, rq->arena);
  st = sim_run(&s->program, binding.args, binding.results, &options, &s->counts, &s->fault);
  s->has_record = !st;
  s->time_us = clock_now_us() - began_us;
  return st;
}

static void begin_frame(struct buf *b, int kernel, const char *status) {
  buf_printf(b, "{\"frame\":\"simulation\",\"kernel\":%d,\"simulation\":{", kernel);
  json_put_field_str(b, "status", status);
}

void simulate_put_refusal(struct buf *b, int kernel, const char *status, const char *reason) {
  begin_frame(b, kernel, status);
  json_put_field_str(b, "reason", reason);
  buf_puts(b, "}}");
}

static void write_outputs(const struct simulation *s) {
  const struct simulate_request *rq = s->rq;
  if (rq->job->outputs_npz &&
      trace_npz_write(rq->arena, rq->job->outputs_npz, rq->kernel->n_outputs, rq->kernel->outputs, s->out, s->ds))
    return; /* the diagnostic says why */
}

void simulate_put_values(struct simulation *s, struct buf *b) {
  const struct simulate_request *rq = s->rq;
  const enum status st = simulate_run(s);
  if (st && !s->fault.kind) {
    simulate_put_refusal(b, rq->number, "skipped",
                         s->ds->n ? s->ds->v[s->ds->n - 1].message : "the simulator cannot run it");
    return;
  }
  begin_frame(b, rq->number, !s->fault.kind ? "ok" : is_limit(s->fault.kind) ? "limit" : "fault");
  json_put_field_str(b, "stage", rq->stage->def->name);
  if (rq->reference)
    json_put_field_str(b, "reference", rq->reference);
  json_put_field_int(b, "time_us", s->time_us);
  json_put_field_int(b, "instructions", s->counts.instrs);
  json_put_field_int(b, "matmuls", s->counts.matmuls);
  json_put_field_int(b, "dma_bytes", s->counts.dma_bytes);
  if (s->fault.kind) {
    put_fault(s, b);
    report_fault(s);
  } else {
    put_outputs(s, b);
    check_outputs(s);
    write_outputs(s);
  }
  simulate_put_watches(s, b);
  buf_puts(b, "}}");
  for (int k = 0; k < s->n_watches; k++)
    sim_watch_clear(&s->watches[k]);
}

/* ---- time -------------------------------------------------------------------------------------------------------- */

enum { EXECUTION_BYTES = 1024 }; /* twice what an execution takes in a timeline and its profile */

bool simulate_time(struct simulation *s, struct arena *a) {
  const struct job *job = s->rq->job;
  const struct sim_time_options options = {.target = job->target,
                                           .record = s->has_record ? &s->record : NULL,
                                           .executions_max = (int)(job->memory_max / EXECUTION_BYTES),
                                           .limit = time_limit(job)};
  s->fault = (struct sim_fault){SIM_FAULT_NONE};
  if (sim_time(&s->program, &options, a, &s->timeline, &s->fault)) {
    report_fault(s);
    return false;
  }
  sim_profile_make(&s->timeline, a, &s->profile);
  return true;
}

enum status simulate_put_profile(const struct simulation *s, struct buf *b) {
  struct buf text;
  buf_init(&text, FRAME_MAX);
  buf_printf(b, "{\"frame\":\"profile\",\"kernel\":%d,\"profile\":", s->rq->number);
  const struct sim_report_lines lines = {s->lines, s->buffer_lines};
  enum status st = sim_report_json(&s->profile, &lines, b);
  if (!st)
    st = sim_report_text(&s->profile, &text);
  json_put_field_str(b, "text", buf_text(&text));
  buf_putc(b, '}');
  buf_clear(&text);
  return st ? st : buf_status(b);
}

enum status simulate_put_trace(const struct simulation *s, struct buf *b) {
  return sim_report_trace(&s->profile, b);
}

enum status simulate_put_columns(const struct simulation *s, struct buf *b) {
  const struct sim_report_lines lines = {s->lines, s->buffer_lines};
  return sim_report_columns(&s->profile, &lines, b);
}
