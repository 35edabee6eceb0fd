/* compile_resume: the text of a stage that somebody changed takes the place of the stage's program.
 *
 *     stage N as the pass made it ──text──► the user's text ──parsed, verified──► stage N, from which the pipeline goes on
 *           │                                     │
 *           └──────── lines that belong together ─┘   give the new operations their ancestors and their Python places
 *
 * The checks keep their inputs and NumPy's results, so that an edit that changes what the kernel computes is found.
 */
#include "driver/compile_internal.h"

#include <assert.h>
#include <string.h>

#include "driver/resume_text.h"
#include "hlo/adopt.h"
#include "hlo/passes.h"
#include "hlo/read.h"
#include "ir/query.h"
#include "nisa/nisa.h"
#include "nisa/parse.h"

/* A stage whose text is replaced. */
struct edit {
  struct path *path;
  struct stage *stage;
  struct resume_text text;
  struct resume_lines lines;
  const struct ir_op **op_at; /* [line of the stage - 1]: its first operation, or NULL */
  const char *name;           /* of the text, in diagnostics */
};

static enum status refuse(struct edit *e, enum diag_code code, int line, const char *hint, const char *text) {
  struct run *r = e->path->run;
  const struct src_loc *loc = NULL;
  if (line) {
    struct src_loc *l = arena_new(r->arena, struct src_loc);
    l->range = (struct src_range){e->name, line, 1, line + 1, 1};
    loc = l;
  }
  diag_add(&r->diags, DS_ERROR, code, loc, "%s", text)->hint = hint;
  return ST_INPUT;
}

static const struct ir_op *old_op(const struct edit *e, int line) {
  const int old = line >= 1 && line <= e->lines.n ? e->lines.old[line - 1] : 0;
  assert(old <= e->lines.n_old);
  return old ? e->op_at[old - 1] : NULL;
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static void index_lines(struct edit *e) {
  const struct ir_snapshot *ops = &e->stage->ops;
  e->op_at = arena_new_array(e->path->run->arena, const struct ir_op *, (size_t)e->lines.n_old);
  for (int i = ops->n - 1; i >= 0; i--)
    if (ops->ops[i].line)
      e->op_at[ops->ops[i].line - 1] = &ops->ops[i];
}

/* Sets the text that is parsed: the user's, with the constants' elements. */
static enum status restore(struct edit *e, struct buf *out) {
  struct run *r = e->path->run;
  struct error err = {0};
  int bad = 0;
  if (resume_elided_at(e->text.changed, e->text.changed_len) == e->text.changed_len) {
    buf_append(out, e->text.changed, e->text.changed_len);
    return buf_status(out);
  }
  struct stage whole = {.def = e->stage->def, .elide_above = 0};
  e->path->is_same = false;
  enum status st = compile_read_stage(e->path, &whole, &err);
  if (st)
    return refuse(e, DG_OUTPUT_LIMIT, 0, NULL, err.text);
  e->text.whole = whole.text;
  e->text.whole_len = whole.text_len;
  st = resume_restore(&e->text, &e->lines, out, &bad);
  if (st == ST_INPUT)
    return refuse(e, DG_CANNOT_RESUME, bad, "leave the line as it was, or write all elements",
                  "the elements of this constant are in no line of the stage that this line was made from");
  return st ? refuse(e, DG_OUTPUT_LIMIT, 0, NULL,
                     arena_printf(r->arena, "the constants of %s are too long to be read again", e->stage->def->name))
            : ST_OK;
}

/* ---- MLIR and NISA ----------------------------------------------------------------------------------------------- */

static int line_of(MlirOperation op) {
  MlirLocation loc = mlirOperationGetLocation(op);
  return mlirLocationIsAFileLineColRange(loc) ? mlirLocationFileLineColRangeGetStartLine(loc) : 0;
}

/* An operation in the body of a named linalg operation, whose text has no body. */
static bool is_hidden(MlirOperation op, void *user) {
  (void)user;
  MlirOperation parent = mlirOperationGetParentOperation(op);
  return !mlirOperationIsNull(parent) && ir_is_of(parent, "linalg.") &&
         (!line_of(op) || line_of(op) == line_of(parent));
}

static bool is_hidden_constant(MlirOperation op, void *user) {
  return ir_is(op, "arith.constant") && is_hidden(op, user);
}

/* The constant of this value in the entry block of the function that contains op; null if there is none. */
static MlirOperation outer_constant(MlirOperation op) {
  MlirOperation f = op;
  while (!mlirOperationIsNull(f) && !ir_is(f, "func.func"))
    f = mlirOperationGetParentOperation(f);
  MlirOperation c = mlirOperationIsNull(f) ? f : mlirBlockGetFirstOperation(ir_body(f));
  while (!mlirOperationIsNull(c) &&
         !(ir_is(c, "arith.constant") && mlirAttributeEqual(ir_attr(c, "value"), ir_attr(op, "value"))))
    c = mlirOperationGetNextInBlock(c);
  return c;
}

/* MLIR's canonicalizer moves constants out of all bodies, also of those that are not printed; the parser makes these anew. */
static void move_hidden_constants(const struct edit *e, MlirModule m) {
  const struct ir_snapshot *made = &e->stage->ops;
  for (int i = 0; i < made->n; i++)
    if (!made->ops[i].line && !strcmp(made->ops[i].name, "arith.constant"))
      return; /* they are still in their bodies */
  struct ir_ops hidden = ir_collect(e->path->run->arena, mlirModuleGetOperation(m), is_hidden_constant, NULL);
  for (int i = 0; i < hidden.n; i++) {
    MlirOperation outer = outer_constant(hidden.v[i]);
    if (mlirOperationIsNull(outer))
      continue;
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(hidden.v[i], 0), mlirOperationGetResult(outer, 0));
    mlirOperationDestroy(hidden.v[i]);
  }
}

struct placing {
  const struct edit *edit;
  MlirContext ctx;
};

/* An operation that has no line of its own has the place of what contains it. */
static MlirWalkResult place_op(MlirOperation op, void *user) {
  const struct placing *p = user;
  const int line = line_of(op);
  const struct ir_op *old = old_op(p->edit, line);
  MlirOperation parent = mlirOperationGetParentOperation(op);
  mlirOperationSetLocation(op, old                                   ? ir_loc_tagged(p->ctx, old->id, old->locs)
                               : line || mlirOperationIsNull(parent) ? mlirLocationUnknownGet(p->ctx)
                                                                     : mlirOperationGetLocation(parent));
  return MlirWalkResultAdvance;
}

static MlirAttribute entry_type(const struct edit *e, MlirModule m) {
  const struct trace_kernel *k = e->path->kernel;
  MlirOperation f =
      ir_find_symbol(mlirModuleGetOperation(m), "func.func", ir_str(k->module ? k->module->name : k->name));
  return mlirOperationIsNull(f) ? (MlirAttribute){NULL} : ir_attr(f, "function_type");
}

/* The rest of the pipeline and the checks pass the arguments that the kernel has. */
static enum status check_entry(struct edit *e, MlirModule m) {
  const MlirAttribute old = entry_type(e, e->path->module), new = entry_type(e, m);
  if (mlirAttributeIsNull(old) || (!mlirAttributeIsNull(new) && mlirAttributeEqual(old, new)))
    return ST_OK;
  return refuse(e, DG_CANNOT_RESUME, 0, "change what the function does, not how it is called",
                mlirAttributeIsNull(new) ? "the kernel's function has another name, or is gone"
                                         : "the kernel's function has other arguments or results than before");
}

static enum status parse_mlir(struct edit *e, const struct buf *text, MlirModule *out) {
  struct run *r = e->path->run;
  const bool is_nisa = stage_form(e->stage->def) == FORM_NISA;
  enum status st =
      (is_nisa ? nisa_parse : ir_parse)(r->ir, buf_text(text), text->len, e->name, r->arena, &r->diags, out);
  if (st)
    return st;
  MlirOperation op = mlirModuleGetOperation(*out);
  if (is_nisa)
    ir_set_attr(op, "nisa.target", nisa_target_attr(r->ir->ctx, r->job->target));
  st = check_entry(e, *out);
  if (!st && is_nisa)
    st = nisa_verify(op, r->job->target, r->arena, &r->diags);
  if (st)
    mlirModuleDestroy(*out);
  return st;
}

static enum status replace_mlir(struct edit *e, const struct buf *text) {
  struct path *p = e->path;
  MlirModule m;
  enum status st = parse_mlir(e, text, &m);
  if (st)
    return st;
  move_hidden_constants(e, m);
  mlirOperationWalk(mlirModuleGetOperation(m), place_op, &(struct placing){e, p->run->ir->ctx}, MlirWalkPreOrder);
  mlirModuleDestroy(p->module);
  p->module = m;
  return ST_OK;
}

/* ids of operations of the stage as the pass made it become those of the stage before. */
static void translate_ancestors(struct edit *e, const struct ir_snapshot *made) {
  struct arena *a = e->path->run->arena;
  for (int i = 0; i < e->stage->ops.n; i++) {
    struct ir_op *o = &e->stage->ops.ops[i];
    if (o->n_from != 1 || o->from[0] >= made->n) { /* place_op gave it one, or none */
      o->n_from = 0;
      continue;
    }
    const struct ir_op *old = &made->ops[o->from[0]];
    o->n_from = old->n_from;
    o->from = arena_dup(a, old->from, (size_t)old->n_from * sizeof *old->from);
  }
}

/* ---- HLO --------------------------------------------------------------------------------------------------------- */

/* Finds for each instruction of m the one of the stage that is in the line that its own line was. */
static struct hlo_instr **pair_instructions(const struct edit *e, const struct hlo_module *m,
                                            const struct hlo_module *older) {
  struct arena *a = e->path->run->arena;
  struct hlo_instr **by_id = arena_new_array(a, struct hlo_instr *, (size_t)older->next_id);
  int n = 0, k = 0;
  for (struct hlo_computation *c = older->computations; c; c = c->next)
    for (struct hlo_instr *i = c->first; i; i = i->next)
      by_id[i->id] = i;
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    n += c->n_instrs;
  struct hlo_instr **pairs = arena_new_array(a, struct hlo_instr *, (size_t)n);
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    for (const struct hlo_instr *i = c->first; i; i = i->next, k++) {
      const struct ir_op *old = i->locs.n ? old_op(e, i->locs.v[0]->range.line) : NULL;
      pairs[k] = old ? by_id[old->id] : NULL;
      if (old) /* of several instructions in a line, the first */
        by_id[old->id] = NULL;
    }
  return pairs;
}

static enum status replace_hlo(struct edit *e, const struct buf *text) {
  struct run *r = e->path->run;
  struct trace_kernel *k = e->path->kernel;
  const char *why = NULL;
  struct hlo_module *m = hlo_read_text(r->arena, buf_text(text), text->len, e->name, &r->diags);
  if (!m)
    return ST_INPUT;
  if (hlo_adopt(m, k->module, pair_instructions(e, m, k->module), &why))
    return refuse(e, DG_CANNOT_RESUME, 0, "change what the program computes, not how it is called", why);
  k->module = m;
  return hlo_verify(m, &r->diags);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static enum status replace(struct edit *e) {
  struct path *p = e->path;
  struct run *r = p->run;
  struct error err = {0};
  struct buf text;
  const struct ir_snapshot made = e->stage->ops;
  if (resume_match(r->arena, &e->text, &e->lines, &err))
    return refuse(e, DG_OUTPUT_LIMIT, 0, NULL, err.text);
  index_lines(e);
  buf_init(&text, FRAME_MAX);
  const bool is_hlo = stage_form(e->stage->def) == FORM_HLO;
  enum status st = restore(e, &text);
  if (!st)
    st = is_hlo ? replace_hlo(e, &text) : replace_mlir(e, &text);
  buf_clear(&text);
  if (st)
    return st;
  p->is_same = false;
  if (compile_read_stage(p, e->stage, &err))
    return refuse(e, DG_OUTPUT_LIMIT, 0, NULL, err.text);
  if (!is_hlo)
    translate_ancestors(e, &made);
  return ST_OK;
}

enum status compile_resume(struct path *p, struct stage *s) {
  struct run *r = p->run;
  const struct job_resume *j = &r->job->resume;
  const bool is_hlo = stage_form(s->def) == FORM_HLO;
  struct stage changed = *s;
  struct edit e = {
      .path = p,
      .stage = &changed,
      .text = {.shown = s->text, .shown_len = s->text_len, .changed = j->text, .changed_len = j->len},
      .name = arena_printf(r->arena, "%02d-%s.%s", s->index, s->def->name, is_hlo ? "hlo" : "mlir"),
  };
  enum status st = replace(&e);
  if (st)
    return st;
  *s = changed;
  s->edit = EDIT_HERE;
  return ST_OK;
}

enum status compile_find_resume(struct path *p) {
  struct run *r = p->run;
  const struct job_resume *j = &r->job->resume;
  p->resume_stage = -1;
  if (!j->stage || j->kernel != p->number)
    return ST_OK;
  const int index = pipeline_stage(p->pipeline, j->stage);
  const char *why = NULL;
  if (r->job->vendor || r->job->device || r->job->for_device) /* those begin with the HLO as it was traced */
    why = "a Neuron device runs the kernel's own HLO, not what comes from a changed stage";
  else if (index < p->first_stage)
    why = arena_printf(r->arena, "the kernel has no stage %s, whose text was changed", j->stage);
  else if (stage_form(&p->pipeline->stages[index]) == FORM_NKI)
    why = arena_printf(r->arena, "%s shows what the source says; it is not read back", j->stage);
  if (why) {
    diag_add(&r->diags, DS_ERROR, DG_CANNOT_RESUME, NULL, "%s", why)->hint =
        index < p->first_stage ? "take the change back, or change a stage that there is"
                               : "take the change back, or change the source instead";
    return ST_INPUT;
  }
  p->resume_stage = index;
  return ST_OK;
}
