/* native: see native.h. */
#include "driver/native.h"

#include <string.h>

#include "nki/lower.h"
#include "sim/decode.h"
#include "sim/run.h"

struct native {
  struct ir_native base; /* first: ir->native points to it */
  const struct trace_kernel *kernel;
  struct arena *arena;
  bool is_ready;
  struct sim_program *programs; /* of kernel->calls */
  struct interp_native runner;
};

static int find(const struct native *n, const char *name, size_t len) {
  for (int k = 0; k < n->kernel->n_calls; k++) {
    const char *has = n->kernel->calls[k]->name;
    if (strlen(has) == len && !memcmp(has, name, len))
      return k;
  }
  return -1;
}

static bool has(const struct ir_native *base, MlirStringRef name) {
  return find((const struct native *)base, name.data, name.length) >= 0;
}

static enum status make(const struct ir_native *base, struct ir *ir, MlirStringRef name, bool *is_written,
                        struct diags *ds, MlirModule *out) {
  const struct native *n = (const struct native *)base;
  const int k = find(n, name.data, name.length);
  if (k < 0) {
    diag_add(ds, DS_ERROR, DG_INTERNAL, NULL, "the code of %.*s is not known", (int)name.length, name.data);
    return ST_INPUT;
  }
  const struct nki_program *p = n->kernel->calls[k];
  for (int i = 0; i < p->tensors.n; i++) /* a result is an array of its own: no other value has its memory */
    if (p->tensors.v[i]->input >= 0)
      is_written[p->tensors.v[i]->input] = nki_is_written(p, p->tensors.v[i]) || nki_is_output(p, p->tensors.v[i]);
  return nki_lower(ir, p, ds, out);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static enum status run(void *user, const char *name, int n_args, const void *const *args, int n_results,
                       void *const *results, struct error *err) {
  struct native *n = user;
  const int k = find(n, name, strlen(name));
  const struct sim_options options = {.schedule = SIM_SCHEDULE_LATE_DMA};
  struct sim_fault fault;
  if (k < 0 || n->programs[k].n_args != n_args || n->programs[k].n_results != n_results)
    return fail(err, ST_INPUT, "%s has other arguments or results", name);
  enum status st = sim_run(&n->programs[k], args, results, &options, NULL, &fault);
  return st ? fail(err, ST_INPUT, "%s: %s: %s", name, sim_fault_name(fault.kind), fault.text) : ST_OK;
}

static enum status decode(struct native *n, struct ir *ir, int k, struct diags *ds) {
  MlirModule m;
  enum status st = nki_lower(ir, n->kernel->calls[k], ds, &m);
  if (st)
    return st;
  st = sim_decode(mlirModuleGetOperation(m), n->kernel->calls[k]->name, n->arena, ds, &n->programs[k]);
  mlirModuleDestroy(m);
  return st;
}

enum status native_runner(struct ir *ir, struct diags *ds, const struct interp_native **out) {
  *out = NULL;
  if (!ir->native)
    return ST_OK;
  struct native *n = (struct native *)(uintptr_t)ir->native;
  enum status st = ST_OK;
  for (int k = 0; !n->is_ready && !st && k < n->kernel->n_calls; k++)
    st = decode(n, ir, k, ds);
  n->is_ready = !st;
  if (!st)
    *out = &n->runner;
  return st;
}

/* ---- one kernel -------------------------------------------------------------------------------------------------- */

void native_open(struct ir *ir, const struct trace_kernel *k, struct arena *a) {
  ir->native = NULL;
  if (!k->n_calls)
    return;
  struct native *n = arena_new(a, struct native);
  *n = (struct native){.base = {make, has},
                       .kernel = k,
                       .arena = a,
                       .programs = arena_new_array(a, struct sim_program, (size_t)k->n_calls)};
  n->runner = (struct interp_native){run, n};
  ir->native = &n->base;
}

void native_close(struct ir *ir) {
  ir->native = NULL;
}
