/* measure: what the simulated machine says of an order. */
#include "mlir-c/BuiltinAttributes.h"

#include "ir/query.h"
#include "passes/schedule/overlap.h"
#include "sim/decode.h"
#include "sim/timeline.h"

/* A longer program is not timed: each of its orders would take longer than the rest of the pass. */
enum { EXECUTIONS_MAX = 10000 };

static bool run_stage(const struct pass_run *from, MlirOperation module, const char *name, struct arena *a,
                      struct diags *ds) {
  const struct pass_def *def = pass_find(name);
  struct pass_run run = {
      .ir = from->ir, .module = module, .target = from->target, .options = "", .arena = a, .ds = ds, .def = def};
  return def->run(&run) == ST_OK;
}

static const char *function_of(MlirOperation module, struct arena *a) {
  for (MlirOperation op = mlirBlockGetFirstOperation(ir_body(module)); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (ir_is(op, "func.func")) {
      MlirStringRef s = mlirStringAttrGetValue(mlirOperationGetAttributeByName(op, ir_str("sym_name")));
      return arena_strndup(a, s.data, s.length);
    }
  return NULL;
}

/* What products after the first window of the Tensor engine's clock take more at half of the clock. */
static double slowed_ns(const struct sim_timeline *t) {
  const int64_t window = sim_constant_ps(SIM_TENSOR_WINDOW, t->target);
  int64_t ps = 0;

  for (const struct sim_exec *x = t->execs, *end = x + t->n; x < end; x++)
    if (x->is_half_clock && x->free > window)
      ps += (x->free - (x->start < window ? window : x->start)) / 2;
  return (double)ps / 1e3;
}

double schedule_measure(const struct pass_run *run, MlirOperation module, double *slowed) {
  struct arena a;
  struct diags ds;
  struct sim_program p;
  struct sim_timeline t;
  struct sim_fault fault;
  double ns = -1;

  arena_init(&a);
  diags_init(&ds, &a);
  const struct sim_time_options options = {.target = run->target, .executions_max = EXECUTIONS_MAX};
  const char *name = function_of(module, &a);
  if (name && run_stage(run, module, "balance-engines", &a, &ds) &&
      run_stage(run, module, "allocate-memory", &a, &ds) && run_stage(run, module, "engine-programs", &a, &ds) &&
      !sim_decode(module, name, &a, &ds, &p) && !sim_time(&p, &options, &a, &t, &fault)) {
    ns = (double)t.total_ps / 1e3;
    *slowed = slowed_ns(&t);
  }
  arena_clear(&a);
  return ns;
}
