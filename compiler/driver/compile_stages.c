/* compile_stages: one stage of a kernel: the transformation, its verification, its text, and its check. */
#include "driver/compile_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <mlir-c/BuiltinAttributes.h>
#include <mlir-c/BuiltinTypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "driver/plant.h"
#include "driver/reproduce.h"
#include "driver/steps.h"
#include "hlo/passes.h"
#include "hlo/print.h"
#include "ir/internal.h"
#include "ir/query.h"
#include "linalg/lower.h"
#include "nisa/nisa.h"
#include "nki/canonical.h"
#include "nki/lower.h"
#include "nki/reroll.h"
#include "passes/pass.h"

enum { REPRODUCER_MAX = 40 << 20 }; /* as base64 it is smaller than a frame */

/* In a program of tests: changes what the stage's pass made, before it is verified.  True if it did. */
static bool plant(struct path *p, const struct stage_def *def) {
  const int index = (int)(def - p->pipeline->stages);
  return plant_fault && (p->pipeline == &pipeline_hlo || p->pipeline->base == &pipeline_hlo) &&
         p->pipeline->n == pipeline_hlo.n &&
         plant_fault(index, stage_form(def) == FORM_HLO ? p->kernel->module : NULL, p->module);
}

static enum status run_hlo(struct path *p, const struct stage_def *def, struct steps *steps) {
  struct hlo_pass_result result = {.ds = &p->run->diags};
  hlo_stage_mark(p->kernel->module);
  p->kernel->module->steps = steps_listener(steps);
  hlo_pass_find(def->pass)(p->kernel->module, &result);
  p->kernel->module->steps = NULL;
  p->is_same = !plant(p, def) && !result.changed;
  return p->is_same ? ST_OK : hlo_verify(p->kernel->module, &p->run->diags);
}

/* ---- memory that stages take turns with -------------------------------------------------------------------------- */

/* Places and remarks' places live as long as the job (ir/places.h), and a frame is sent before the next stage begins.  What
 * looks back further than one stage keeps all. */
void compile_begin_turns(struct path *p) {
  struct run *r = p->run;
  const struct job *j = r->job;
  r->has_turns = !j->check && !j->value.is_set && !j->patterns && !r->probe && p->resume_stage < 0 && !r->diags.n;
}

void compile_end_turns(struct run *r) {
  for (int k = 0; k < 2; k++) {
    arena_clear(&r->shown[k]);
    arena_clear(&r->work[k]);
  }
}

/* For what is needed until the next stage is sent. */
static struct arena *work_of(struct path *p, const struct stage_def *def) {
  struct run *r = p->run;
  return r->has_turns ? &r->work[(def - p->pipeline->stages) & 1] : r->arena;
}

/* For a stage that differs from p->before. */
static struct arena *shown_next(struct run *r) {
  if (!r->has_turns)
    return r->arena;
  arena_reuse(&r->shown[1 - r->shown_at]);
  return &r->shown[1 - r->shown_at];
}

/* Begins with a stage's part of the memory.  A diagnostic may refer to places in it, so then nothing is reused any more. */
static void begin_turn(struct path *p, const struct stage_def *def) {
  struct run *r = p->run;
  r->has_turns &= !r->diags.n;
  if (r->has_turns)
    arena_reuse(work_of(p, def));
}

/* Records if the pass changed the module; verifies a changed module. */
static enum status verify_change(struct path *p, const struct stage_def *def) {
  struct run *r = p->run;
  MlirOperation module = mlirModuleGetOperation(p->module);
  struct ir_capture c;

  plant(p, def);
  p->is_same = ir_prints_match(module, &p->prints);
  if (p->is_same)
    return ST_OK;
  ir_capture_begin(r->ir, &c, &r->diags, DG_PASS_FAILED, r->arena);
  p->is_verified =
      p->is_verified ? ir_verify_changed(module, &p->prints, work_of(p, def)) : mlirOperationVerify(module);
  ir_capture_end(r->ir, &c);
  return p->is_verified ? ST_OK : ST_INPUT;
}

static enum status run_upstream(struct path *p, const struct stage_def *def) {
  struct run *r = p->run;
  if (def->hand && mlirPassManagerIsNull(ir_pass_manager(r->ir, def->pass))) {
    diag_add(&r->diags, DS_ERROR, DG_PASS_FAILED, NULL, "MLIR does not take the options of %s", def->pass);
    return ST_INPUT;
  }
  enum status st = ir_run_pipeline(r->ir, mlirModuleGetOperation(p->module), def->pass, r->arena, &r->diags);
  return st ? st : verify_change(p, def);
}

static bool is_of_buffers(MlirType t) {
  bool has = false;
  for (intptr_t i = 0; i < mlirFunctionTypeGetNumInputs(t); i++)
    has |= mlirTypeIsAMemRef(mlirFunctionTypeGetInput(t, i));
  for (intptr_t i = 0; i < mlirFunctionTypeGetNumResults(t); i++)
    has |= mlirTypeIsAMemRef(mlirFunctionTypeGetResult(t, i));
  return has;
}

/* In a pipeline that was changed by hand: refuses a pass for tensors on buffers, and the reverse, and one that moves buffers where
 * they are freed already. */
static enum status check_form(struct path *p, const struct stage_def *stage) {
  struct run *r = p->run;
  const struct ir_ops functions = ir_collect_named(r->arena, mlirModuleGetOperation(p->module), "func.func");
  bool has_buffers = false;
  for (int i = 0; i < functions.n; i++)
    has_buffers |= is_of_buffers(mlirTypeAttrGetValue(ir_attr(functions.v[i], "function_type")));
  if (stage->runner != RUN_PASS)
    return ST_OK;
  if (ir_collect_named(r->arena, mlirModuleGetOperation(p->module), "memref.dealloc").n) {
    diag_add(&r->diags, DS_ERROR, DG_PASS_FAILED, NULL, "%s works on buffers that nothing frees yet", stage->name);
    return ST_INPUT;
  }
  if (pipeline_takes_buffers(stage->name) == has_buffers)
    return ST_OK;
  diag_add(&r->diags, DS_ERROR, DG_PASS_FAILED, NULL, "%s works on %s, and the program has %s here", stage->name,
           has_buffers ? "tensors" : "buffers", has_buffers ? "buffers" : "tensors");
  return ST_INPUT;
}

/* Runs one of our own passes. */
static enum status run_pass(struct path *p, const struct stage_def *stage, struct stage *made, struct steps *steps) {
  struct run *r = p->run;
  const struct pass_def *def = pass_find(stage->pass);
  if (p->pipeline->base && check_form(p, stage))
    return ST_INPUT;
  struct pass_run run = {
      .ir = r->ir,
      .module = mlirModuleGetOperation(p->module),
      .target = r->job->target,
      .options = stage->options ? stage->options : "",
      .arena = work_of(p, stage),
      .ds = &r->diags,
      .remarks = &made->remarks,
      .steps = steps_listener(steps),
      .def = def,
  };
  enum status st = def->run(&run);
  return st ? st : verify_change(p, stage);
}

/* Verifies instructions.  What is wrong is the fault of this stage, which the form of the module alone does not tell. */
static enum status verify_nisa(struct path *p, const struct stage_def *stage) {
  struct run *r = p->run;
  const int before = r->diags.n;
  enum status st = nisa_verify(mlirModuleGetOperation(p->module), r->job->target, work_of(p, stage), &r->diags);
  for (int i = before; i < r->diags.n; i++)
    r->diags.v[i].stage = stage->name;
  return st;
}

/* What the verifier says of full memory is the kernel's mistake: nothing but the kernel decides how much it uses. */
static enum status run_nki_lower(struct path *p) {
  struct run *r = p->run;
  enum status st = nki_lower(r->ir, p->nki, &r->diags, &p->module);
  const int before = r->diags.n;
  if (!st)
    st = nisa_verify(mlirModuleGetOperation(p->module), r->job->target, r->arena, &r->diags);
  for (int i = before; i < r->diags.n; i++)
    if (r->diags.v[i].code == DG_MEMORY_FULL) {
      r->diags.v[i].code = DG_NKI_MEMORY_FULL;
      r->diags.v[i].hint = "use smaller tiles, or a tensor again that is not needed any more";
    }
  return st;
}

static void add_notes(struct run *r, const char *pass, const struct nki_notes *notes, struct remarks *remarks) {
  for (int i = 0; i < notes->n; i++) {
    const struct nki_note *n = &notes->v[i];
    const struct remark remark = {
        .pass = pass, .rule = n->rule, .text = n->text, .name = n->name, .op = n->id, .locs = n->locs};
    struct remark *made = remark_add(remarks, r->arena, &remark);
    if (n->cost) {
      remark_cost(made, "%s", n->cost);
      remark_reject_for(made, n->rejected, NULL, n->rejected_cost, n->reason);
    }
  }
}

static enum status run_reroll(struct path *p, struct remarks *remarks) {
  struct run *r = p->run;
  struct nki_program *rolled;
  struct nki_notes notes = {0};
  enum status st = nki_reroll(p->nki, r->job->keep_rounds, &r->diags, &rolled, &notes);
  if (st)
    return st;
  p->nki = rolled;
  add_notes(r, "nki-reroll", &notes, remarks);
  return ST_OK;
}

static enum status run_canonicalize(struct path *p, struct remarks *remarks) {
  struct nki_notes notes = {0};
  p->nki = nki_canonicalize(p->nki, &notes);
  add_notes(p->run, "nki-canonicalize", &notes, remarks);
  return ST_OK;
}

/* Makes the program of this stage from the program of the previous stage. */
static enum status transform(struct path *p, struct stage *s, struct steps *steps) {
  struct run *r = p->run;
  const struct stage_def *def = s->def;
  p->is_same = def->hand == HAND_OUT;
  if (p->is_same)
    return ST_OK;
  switch (def->runner) {
  case RUN_TRACE:
    plant(p, def);
    return hlo_verify(p->kernel->module, &r->diags);
  case RUN_HLO:
    return run_hlo(p, def, steps);
  case RUN_TO_LINALG: {
    if (!p->kernel->module) /* it was read as linalg */
      return ST_OK;
    enum status st = linalg_from_hlo(r->ir, p->kernel->module, &r->diags, &p->module);
    if (!st)
      plant(p, def);
    return st;
  }
  case RUN_UPSTREAM:
    return run_upstream(p, def);
  case RUN_PASS:
    return run_pass(p, def, s, steps);
  case RUN_TO_NISA: {
    if (p->is_nisa && def == &p->pipeline->stages[p->first_stage]) /* it was verified when it was read */
      return ST_OK;
    enum status st = run_pass(p, def, s, steps);
    return st ? st : verify_nisa(p, def);
  }
  case RUN_NKI_AST:
    return ST_OK;
  case RUN_NKI_TRACE:
    if (p->nki->grid.rank && r->job->instance >= p->nki->instances.n)
      diag_add(&r->diags, DS_WARNING, DG_NKI_GRID, p->nki->locs.n ? p->nki->locs.v[0] : NULL,
               "there is no instance %d to show: the launch has %d, from 0 on", r->job->instance, p->nki->instances.n);
    return ST_OK;
  case RUN_NKI_CANONICALIZE:
    return run_canonicalize(p, &s->remarks);
  case RUN_NKI_REROLL:
    return run_reroll(p, &s->remarks);
  case RUN_NKI_LOWER:
    return run_nki_lower(p);
  }
  return ST_BUG;
}

/* Sets the stage's text and operations.  After a pass that changed nothing they are those of the previous stage, so
 * that nothing is printed again. */
enum status compile_read_stage(struct path *p, struct stage *s, struct error *err) {
  struct run *r = p->run;
  if (p->is_same) {
    s->text = p->before.text;
    s->text_len = p->before.text_len;
    s->ops = ir_snapshot_again(&p->before.ops, r->has_turns ? &r->shown[r->shown_at] : r->arena);
    return ST_OK;
  }
  if (s->def->runner == RUN_NKI_AST)
    return stage_read_ast(s, p->kernel->ast, r->arena, err);
  if (stage_form(s->def) == FORM_NKI)
    return stage_read_nki(s, p->nki, s->def->runner != RUN_NKI_REROLL ? r->job->instance : -1, r->arena, err);
  if (stage_form(s->def) == FORM_HLO)
    return stage_read_hlo(s, p->kernel->module, r->arena, err);
  MlirOperation module = mlirModuleGetOperation(p->module);
  enum status st = stage_read_mlir(s, r->ir, module, shown_next(r), err);
  p->prints.n = 0;
  if (!st)
    ir_prints_take(module, r->arena, &p->prints);
  return st;
}

/* True if the stage's text is another than that of the stage before. */
static bool differs(const struct path *p, const struct stage *s) {
  const struct stage *x = &p->before;
  return !x->def || (x->text != s->text && (x->text_len != s->text_len || memcmp(x->text, s->text, x->text_len) != 0));
}

/* Sets the stage of the diagnostics from number `first` on that have none yet. */
static void blame(struct run *r, int first, const struct stage_def *def) {
  for (int i = first; i < r->diags.n; i++)
    if (!r->diags.v[i].stage)
      r->diags.v[i].stage = def->name;
}

/* What a pass refuses after a change of the pipeline may be due to the change: the first error says so. */
static void hint_at_change(struct run *r, int first) {
  for (int i = first; i < r->diags.n; i++)
    if (r->diags.v[i].severity == DS_ERROR && !r->diags.v[i].hint) {
      r->diags.v[i].hint = "the pipeline was changed by hand: take the change back, or make it at another stage";
      return;
    }
}

/* ---- the reproducer of a failed check ---------------------------------------------------------------------------- */

void compile_forget_old_program(struct path *p) {
  if (!mlirOperationIsNull(p->old_module))
    mlirOperationDestroy(p->old_module);
  p->old_module = (MlirOperation){NULL};
  buf_clear(&p->old_proto);
}

/* Keeps the program before a pass until its check is done. */
static void keep_old_program(struct path *p) {
  compile_forget_old_program(p);
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
  const bool is_known = p->pipeline == &pipeline_hlo || p->pipeline == &pipeline_reference;
  if (p->has_reproducer || !is_known || !s->check.status || strcmp(s->check.status, "fail") != 0)
    return ST_OK;
  p->has_reproducer = true;
  const struct reproducer what = {
      .stage = s->def,
      .index = pipeline_index_in_hlo(s->def),
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
    enum status st = compile_send_artifact(p, name, "application/json", &b);
    buf_clear(&b);
    return st;
  }
  buf_clear(&b);
  diag_add(&r->diags, DS_WARNING, DG_OUTPUT_LIMIT, NULL,
           "the reproducer of the failed check exceeds %d MiB and is left out", REPRODUCER_MAX >> 20)
      ->stage = s->def->name;
  return ST_OK;
}

static enum status send_stage(struct path *p, const struct stage *s) {
  const bool is_wanted = !p->run->job->value.is_set && !p->run->probe;
  return is_wanted ? compile_send_stage(p->run, s, p->number) : ST_OK;
}

/* Does one stage: transform, read, check, send.  ST_INPUT: the kernel ends here. */
enum status compile_stage(struct path *p, int index) {
  struct run *r = p->run;
  assert(index >= p->first_stage && index <= p->last_stage && index < p->pipeline->n);
  const struct stage_def *def = &p->pipeline->stages[index];
  struct stage s = {.index = index, .def = def, .elide_above = r->job->constants};
  struct error err = {0};
  int first = r->diags.n;
  if (r->job->check)
    keep_old_program(p);
  begin_turn(p, def);
  struct steps *steps = steps_begin(p, index);
  int64_t t0 = clock_now_us();

  enum status st = transform(p, &s, steps);
  s.time_us = clock_now_us() - t0;
  if (def->runner == RUN_TRACE || def->runner == RUN_NKI_TRACE)
    s.time_us += p->kernel->time_us;
  else if (def->runner == RUN_NKI_AST)
    s.time_us += p->kernel->ast->time_us;
  blame(r, first, def);
  if (st) {
    if (p->pipeline->base)
      hint_at_change(r, first);
    const enum status sent = steps ? steps_send(steps, NULL) : ST_OK;
    steps_free(steps);
    return sent ? sent : st;
  }
  st = compile_read_stage(p, &s, &err);
  const enum status sent = st || !steps ? ST_OK : steps_send(steps, &s);
  steps_free(steps);
  if (sent)
    return sent;
  if (st) {
    diag_add(&r->diags, DS_ERROR, st == ST_LIMIT ? DG_OUTPUT_LIMIT : DG_INTERNAL, NULL, "%s", err.text)->stage =
        def->name;
    return ST_INPUT;
  }
  s.edit = p->before.edit ? EDIT_EARLIER : EDIT_NONE;
  s.changed = differs(p, &s);
  const enum status resumed = index == p->resume_stage ? compile_resume(p, &s) : ST_OK;
  blame(r, first, def);
  if (resumed) { /* the stage as its pass made it is shown beside the errors */
    st = send_stage(p, &s);
    return st ? st : resumed;
  }
  if (r->probe)
    tune_probe_stage(r->probe, &s);
  if (s.edit == EDIT_HERE)
    s.changed = differs(p, &s);
  compile_try_patterns(p, &s);
  if (r->job->check)
    stage_checks_run(&p->checks, p->module, &s, &r->diags);

  st = send_stage(p, &s);
  if (!st && r->job->check)
    st = send_reproducer(p, &s);
  if (p->before.text != s.text)
    r->shown_at = 1 - r->shown_at;
  p->before = s;
  if (r->job->value.is_set)
    compile_note_stage(p);
  return st ? st : compile_send_diags(r, p->number);
}

/* Makes the inputs, and what the stages are compared with. */
void compile_begin_checks(struct path *p) {
  struct run *r = p->run;
  p->checks = (struct stage_checks){.ir = r->ir,
                                    .kernel = p->kernel,
                                    .pipeline = p->pipeline,
                                    .arena = r->arena,
                                    .seed = r->job->seed,
                                    .inputs_npz = r->job->inputs_npz,
                                    .deadline_us = r->job->deadline_us,
                                    .only_inputs = p->is_nisa && !r->job->check};
  stage_checks_begin(&p->checks, p->module, &p->pipeline->stages[p->first_stage]);
}
