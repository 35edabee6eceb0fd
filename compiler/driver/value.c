#include "driver/value.h"

#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "driver/check_internal.h"
#include "driver/simulate.h"
#include "driver/value_find.h"
#include "interp/interp.h"
#include "ir/query.h"
#include "ir/structured.h"
#include "linalg/lower.h"

static const char *first_message(const struct diags *ds, const char *otherwise) {
  return ds->n ? ds->v[0].message : otherwise;
}

/* The operation on a line; NULL if there is none. */
static const struct ir_op *op_on(const struct stage *s, int line) {
  for (int k = 0; line && k < s->ops.n; k++)
    if (s->ops.ops[k].line == line)
      return &s->ops.ops[k];
  return NULL;
}

/* ---- HLO --------------------------------------------------------------------------------------------------------- */

const char *value_of_hlo(struct ir *ir, struct hlo_module *m, struct hlo_instr *i, const struct trace_array *in,
                         struct arena *a, struct trace_array *out) {
  MlirModule module = {NULL};
  struct diags ds;
  if (i->shape.dtype == DT_TUPLE)
    return "it is a tuple: ask for one of its elements";
  diags_init(&ds, a);
  m->entry->root = i;
  m->n_outputs = 1;
  m->n_aliases = 0;
  *out = (struct trace_array){.shape = i->shape};
  if (linalg_from_hlo_plain(ir, m, &ds, &module))
    return first_message(&ds, "the stage cannot be lowered");
  const enum status st = check_execute(ir, module, m->name, m->entry->n_params, in, 1, out, a, &ds);
  mlirModuleDestroy(module);
  return st ? first_message(&ds, "the stage cannot be run") : NULL;
}

static struct hlo_instr *instr_of(const struct hlo_module *m, int id) {
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) {
      if (i->id == id)
        return i;
    }
  return NULL;
}

/* ---- operations of MLIR ------------------------------------------------------------------------------------------ */

/* The value to take, and the operation before which it is taken. */
struct tap {
  MlirValue value;
  MlirOperation before;
};

static bool has_id(MlirOperation op, void *id) {
  return ir_op_id(mlirOperationGetLocation(op)) == *(const int *)id;
}

/* The operation with this id in a module; null if it is gone. */
static MlirOperation find_op(struct arena *a, MlirOperation module, int id) {
  const struct ir_ops all = ir_collect(a, module, has_id, &id);
  return all.n ? all.v[0] : (MlirOperation){NULL};
}

static MlirOperation after(MlirOperation op) {
  return mlirOperationGetNextInBlock(op);
}

static bool is_terminator(MlirOperation op) {
  return mlirOperationIsNull(after(op));
}

static bool is_view(MlirOperation op) {
  static const char *const views[] = {"memref.subview",          "memref.cast",         "memref.collapse_shape",
                                      "memref.reinterpret_cast", "memref.expand_shape", "memref.memory_space_cast"};
  for (size_t k = 0; k < sizeof views / sizeof *views; k++)
    if (ir_is(op, views[k]))
      return true;
  return false;
}

/* The buffer that v is a part of. */
static MlirValue base_of(MlirValue v) {
  for (MlirOperation op = ir_defining_op(v); !mlirOperationIsNull(op) && is_view(op); op = ir_defining_op(v))
    v = mlirOperationGetOperand(op, 0);
  return v;
}

/* The operation before which the life of buffer v ends; `from` is the first one to look at, in v's block. */
static MlirOperation end_of_life(MlirOperation from, MlirValue v) {
  const MlirValue base = base_of(v);
  MlirOperation op = from;
  for (; !is_terminator(op); op = after(op))
    if (ir_is(op, "memref.dealloc") && mlirValueEqual(base_of(mlirOperationGetOperand(op, 0)), base))
      break;
  return op;
}

/* What the operation computes: its first result, or the memory that it writes. */
static const char *main_value(MlirOperation op, MlirValue *out) {
  struct structured s;
  if (mlirOperationGetNumResults(op)) {
    *out = mlirOperationGetResult(op, 0);
    return NULL;
  }
  if (ir_is(op, "memref.copy") || ir_is(op, "memref.store"))
    *out = mlirOperationGetOperand(op, 1);
  else if (structured_read(op, &s) && s.n_inits)
    *out = mlirOperationGetOperand(op, s.n_inputs);
  else
    return "the operation on this line computes no value: name one that it uses";
  return NULL;
}

/* Where a value is taken that the operation at `at` defines, or that is an argument of its block. */
static MlirOperation place_of_definition(MlirOperation at, MlirValue v) {
  const bool is_argument = mlirValueIsABlockArgument(v);
  const MlirOperation first = is_argument ? mlirBlockGetFirstOperation(mlirBlockArgumentGetOwner(v)) : after(at);
  const bool is_complete = !is_argument && mlirOperationGetNumRegions(at); /* a loop that hands on a buffer */
  return mlirTypeIsAMemRef(mlirValueGetType(v)) && !is_complete ? end_of_life(first, v) : first;
}

/* The value at a place of the text; the reason if it is none. */
static const char *value_at(const struct value_request *rq, MlirOperation module, const struct value_place *place,
                            MlirOperation *op, MlirValue *out) {
  const struct ir_op *on = op_on(rq->stage, place->line);
  *op = on ? find_op(rq->arena, module, on->id) : (MlirOperation){NULL};
  if (place->kind == VALUE_ELEMENT || !on)
    return "this name belongs to the body of an operation, which is applied to each element: ask for the operation";
  if (mlirOperationIsNull(*op))
    return "the operation that computes it is an annotation, which is not run";
  if (place->kind == VALUE_RESULT && place->index < mlirOperationGetNumResults(*op)) {
    *out = mlirOperationGetResult(*op, place->index);
    return NULL;
  }
  MlirBlock b = place->kind == VALUE_ARGUMENT && mlirOperationGetNumRegions(*op) ? ir_body(*op) : (MlirBlock){NULL};
  if (mlirBlockIsNull(b) || place->index >= mlirBlockGetNumArguments(b))
    return "there is no such result";
  *out = mlirBlockGetArgument(b, place->index);
  return NULL;
}

/* Finds the value of a name as it is after the operation on the job's line, or where it is defined. */
static const char *find_named(const struct value_request *rq, MlirOperation module, struct tap *t, struct value *out) {
  const struct job_value *want = &rq->job->value;
  const struct stage *s = rq->stage;
  struct value_place place;
  MlirOperation definition;
  if (!value_find(s->text, s->text_len, want->name, want->line, &place))
    return "the stage defines no value of this name";
  const char *reason = value_at(rq, module, &place, &definition, &t->value);
  if (reason)
    return reason;
  out->op_id = place.kind == VALUE_RESULT ? ir_op_id(mlirOperationGetLocation(definition)) : -1;
  const struct ir_op *on = op_on(s, want->line);
  const MlirOperation at = on ? find_op(rq->arena, module, on->id) : (MlirOperation){NULL};
  if (want->line && !on)
    return "there is no operation on this line";
  if (want->line == place.line || mlirOperationIsNull(at)) { /* null: an annotation, which is not run */
    out->line = place.line;
    t->before = place_of_definition(definition, t->value);
    return NULL;
  }
  t->before = is_terminator(at) || ir_is(at, "memref.dealloc") ? at : after(at);
  if (mlirTypeIsAMemRef(mlirValueGetType(t->value))) /* it may not be complete there */
    out->op_id = -1;
  return NULL;
}

static const char *find_on_line(const struct value_request *rq, MlirOperation module, struct tap *t,
                                struct value *out) {
  const struct ir_op *on = op_on(rq->stage, rq->job->value.line);
  if (!on)
    return "there is no operation on this line";
  const MlirOperation op = find_op(rq->arena, module, on->id);
  if (mlirOperationIsNull(op))
    return "the operation on this line is an annotation, which is not run";
  const char *reason = main_value(op, &t->value);
  if (reason)
    return reason;
  const bool is_defined = mlirOperationGetNumResults(op) > 0;
  out->op_id = on->id;
  t->before = is_defined ? place_of_definition(op, t->value) : after(op);
  return NULL;
}

/* True if elements of this block are computed one by one, in the body of a structured operation. */
static bool is_in_body(MlirOperation op) {
  for (MlirOperation p = mlirOperationGetParentOperation(op); !mlirOperationIsNull(p);
       p = mlirOperationGetParentOperation(p))
    if (ir_is_of(p, "linalg.") || ir_is_of(p, "tensor."))
      return true;
  return false;
}

static const char *insert_watch(MlirOperation module, const struct tap *t) {
  MlirType type = mlirValueGetType(t->value);
  if (is_in_body(t->before))
    return "this is a part of the body of an operation, which is applied to each element: ask for the operation";
  check_declare(module, INTERP_WATCH, 1, &type, 0, NULL);
  check_insert(t->before, "func.call", 1, &t->value, 0, NULL, INTERP_WATCH);
  return NULL;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static const char *take(struct interp_watch *w, struct arena *a, struct value *out) {
  int64_t n = 1;
  out->executions = w->n_executions;
  if (!w->is_kept)
    return w->n_executions ? arena_printf(a, "it is executed only %lld times", (long long)w->n_executions)
                           : "it is not executed";
  out->nth = w->nth ? w->nth : w->n_executions;
  for (int d = 0; d < w->rank; d++)
    n *= w->dims[d];
  out->array.shape = hlo_shape_array(a, w->dtype, w->rank, w->dims);
  out->array.data = arena_alloc(a, (size_t)n * dtype_size(w->dtype) + 1);
  memcpy(out->array.data, w->data, (size_t)n * dtype_size(w->dtype));
  return NULL;
}

/* Runs a program into which a watch was inserted. */
static const char *run_watched(const struct value_request *rq, struct check_program *p, struct value *out) {
  const struct trace_kernel *k = rq->kernel;
  struct interp_watch w = {.nth = rq->job->value.nth};
  struct diags ds;
  diags_init(&ds, rq->arena);
  struct trace_array *got = arena_new_array(rq->arena, struct trace_array, (size_t)k->n_outputs);
  for (int i = 0; i < k->n_outputs; i++)
    got[i].shape = k->outputs[i].shape;
  const char *reason = NULL;
  if (check_link(rq->ir, p, rq->arena, &ds) ||
      (check_run_watched(p, k->n_inputs, rq->in, k->n_outputs, got, &w, rq->arena, &ds) && !w.is_kept))
    reason = first_message(&ds, "the stage cannot be run");
  if (!reason)
    reason = take(&w, rq->arena, out);
  interp_watch_clear(&w);
  return reason;
}

typedef const char *find_tap(const struct value_request *rq, MlirOperation module, struct tap *t, struct value *out);

static const char *evaluate_mlir(const struct value_request *rq, MlirModule module, find_tap *find, struct value *out) {
  const struct trace_kernel *k = rq->kernel;
  struct check_program *p = NULL;
  struct tap t;
  struct diags ds;
  diags_init(&ds, rq->arena);
  if (check_open(rq->ir, module, k->module ? k->module->name : k->name, rq->arena, &ds, &p))
    return first_message(&ds, "the stage cannot be run");
  const char *reason = find(rq, check_module(p), &t, out);
  if (!reason)
    reason = insert_watch(check_module(p), &t);
  if (!reason)
    reason = run_watched(rq, p, out);
  check_unload(p);
  return reason;
}

/* ---- an instruction of HLO that is not in the entry computation --------------------------------------------------- */

static bool is_loop_body(const struct hlo_module *m, const struct hlo_computation *c) {
  for (const struct hlo_computation *d = m->computations; d; d = d->next)
    hlo_for_each(i, d) {
      for (int k = 0; k < i->n_called; k++)
        if (i->called[k] == c && i->op != HLO_WHILE && i->op != HLO_CONDITIONAL && i->op != HLO_CALL)
          return false;
    }
  return true;
}

static bool has_shape(MlirValue v, const struct hlo_shape *s) {
  MlirType t = mlirValueGetType(v);
  if (!mlirTypeIsARankedTensor(t) || mlirShapedTypeGetRank(t) != s->rank)
    return false;
  for (int k = 0; k < s->rank; k++)
    if (mlirShapedTypeGetDimSize(t, k) != s->dims[k])
      return false;
  return true;
}

/* The last operation that the instruction was lowered to and that has a value of its shape. */
static const char *find_lowered(const struct value_request *rq, MlirOperation module, struct tap *t,
                                struct value *out) {
  int id = out->op_id;
  const struct hlo_instr *i = instr_of(rq->kernel->module, id);
  const struct ir_ops all = ir_collect(rq->arena, module, has_id, &id);
  for (int k = all.n - 1; k >= 0; k--)
    if (mlirOperationGetNumResults(all.v[k]) == 1 && has_shape(mlirOperationGetResult(all.v[k], 0), &i->shape)) {
      *t = (struct tap){mlirOperationGetResult(all.v[k], 0), after(all.v[k])};
      return NULL;
    }
  return "its value is a part of that of another instruction";
}

static const char *evaluate_nested(const struct value_request *rq, const struct hlo_instr *i, struct value *out) {
  struct hlo_module *m = rq->kernel->module;
  MlirModule module = {NULL};
  struct diags ds;
  diags_init(&ds, rq->arena);
  if (!is_loop_body(m, i->parent))
    return "it is part of a computation that is applied to each element";
  if (linalg_from_hlo_plain(rq->ir, m, &ds, &module))
    return first_message(&ds, "the stage cannot be lowered");
  const char *reason = evaluate_mlir(rq, module, find_lowered, out);
  mlirModuleDestroy(module);
  return reason;
}

static const char *evaluate_hlo(const struct value_request *rq, struct value *out) {
  const struct job_value *want = &rq->job->value;
  const struct stage *s = rq->stage;
  struct value_place place = {.line = want->line};
  if (want->name && !value_find(s->text, s->text_len, want->name, want->line, &place))
    return "the stage defines no value of this name";
  const struct ir_op *on = op_on(s, place.line);
  struct hlo_instr *i = on ? instr_of(rq->kernel->module, on->id) : NULL;
  if (!i)
    return "there is no instruction on this line";
  out->line = place.line;
  out->op = on->name;
  out->op_id = on->id;
  if (i->parent != rq->kernel->module->entry)
    return evaluate_nested(rq, i, out);
  if (want->nth > 1)
    return "it is executed only once";
  out->nth = out->executions = 1;
  return value_of_hlo(rq->ir, rq->kernel->module, i, rq->in, rq->arena, &out->array);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static const char *evaluate_nisa(const struct value_request *rq, struct value *out) {
  const struct simulate_request s = {.job = rq->job,
                                     .kernel = rq->kernel,
                                     .module = rq->module,
                                     .stage = rq->stage,
                                     .is_nisa = rq->is_nisa,
                                     .in = rq->in,
                                     .arena = rq->arena};
  struct simulated_value v = {.operand = NULL};
  const char *reason = simulate_value(&s, &v);
  out->operand = v.operand;
  out->nth = v.nth;
  out->executions = v.executions;
  out->unwritten = v.unwritten;
  out->is_on_chip = v.is_on_chip;
  out->array = v.array;
  return reason;
}

void value_evaluate(const struct value_request *rq, struct value *out) {
  const struct stage *s = rq->stage;
  const struct job_value *want = &rq->job->value;
  *out = (struct value){.line = want->line, .op_id = -1};
  const enum stage_form form = stage_form(s->def);
  if (form == FORM_NKI)
    out->reason = "values are known from nki-to-nisa on";
  else if (form == FORM_HLO)
    out->reason = evaluate_hlo(rq, out);
  else if (form == FORM_NISA)
    out->reason = evaluate_nisa(rq, out);
  else
    out->reason = evaluate_mlir(rq, rq->module, want->name ? find_named : find_on_line, out);
  const struct ir_op *on = op_on(s, out->line);
  if (on && !out->op)
    out->op = on->name;
}
