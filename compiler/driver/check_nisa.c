/* check_nisa: runs a stage of NISA instructions in the simulator, instead of machine code. */
#include <assert.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "driver/check_internal.h"
#include "sim/run.h"

/* Returns the type in which a value of the program stores elements of type t: the pass that narrows 64 bits also
 * narrows inputs and outputs. */
static enum dtype stored_dtype(const struct sim_value *v, enum dtype t) {
  return (size_t)sim_type_bytes(v->type) < dtype_size(t) ? dtype_narrow(t) : t;
}

static bool has_shape(const struct sim_value *v, const struct hlo_shape *s) {
  bool is_same = v->rank == s->rank;
  for (int k = 0; is_same && k < s->rank; k++)
    is_same = v->dims[k] == s->dims[k];
  return is_same;
}

static enum status check_values(const struct sim_program *p, int n_in, const struct trace_array *in, int n_out,
                                const struct trace_array *out, struct diags *ds) {
  if (p->n_args != n_in || p->n_results != n_out)
    return check_refuse(ds, "it has another number of inputs or outputs than the kernel");
  for (int k = 0; k < n_in; k++)
    if (!has_shape(&p->args[k], &in[k].shape))
      return check_refuse(ds, "an input has another shape than in the kernel");
  for (int k = 0; k < n_out; k++)
    if (!has_shape(&p->results[k], &out[k].shape))
      return check_refuse(ds, "an output has another shape than in the kernel");
  return ST_OK;
}

enum status check_bind(const struct sim_program *p, int n_in, const struct trace_array *in, int n_out,
                       struct trace_array *out, struct arena *a, struct diags *ds, struct check_binding *b) {
  enum status st = check_values(p, n_in, in, n_out, out, ds);
  if (st)
    return st;
  b->args = arena_new_array(a, const void *, (size_t)n_in);
  b->results = arena_new_array(a, void *, (size_t)n_out);
  for (int k = 0; k < n_in; k++) {
    const enum dtype t = stored_dtype(&p->args[k], in[k].shape.dtype);
    b->args[k] = t == in[k].shape.dtype ? in[k].data : check_convert_array(a, &in[k], t).data;
  }
  for (int k = 0; k < n_out; k++) {
    out[k].shape.dtype = stored_dtype(&p->results[k], out[k].shape.dtype);
    b->results[k] = out[k].data = arena_alloc(a, (size_t)p->results[k].bytes);
  }
  return ST_OK;
}

/* A kernel of some hundred operations needs most of this for its stages, however short the limit is. */
enum { STAGES_CPU_US = 700000 };

int64_t check_reserve_cpu_us(int64_t all_us) {
  const int64_t share = all_us / 8, least = all_us / 2 < STAGES_CPU_US ? all_us / 2 : STAGES_CPU_US;
  return share > least ? share : least;
}

struct time_limit check_time_limit(int64_t deadline_us) {
  struct time_limit d = {0};
  struct rlimit r;
  if (deadline_us)
    d.wall_us = deadline_us - (deadline_us - clock_now_us()) / 8;
  if (!getrlimit(RLIMIT_CPU, &r) && r.rlim_cur != RLIM_INFINITY)
    d.cpu_us = (int64_t)r.rlim_cur * 1000000 - check_reserve_cpu_us((int64_t)r.rlim_cur * 1000000);
  return d;
}

enum status check_simulate(const struct sim_program *p, enum sim_schedule schedule, int n_in,
                           const struct trace_array *in, int n_out, struct trace_array *out, int64_t deadline_us,
                           struct arena *a, struct diags *ds) {
  struct check_binding b;
  struct sim_fault fault;
  const struct sim_options options = {.limit = check_time_limit(deadline_us), .schedule = schedule};

  enum status st = check_bind(p, n_in, in, n_out, out, a, ds, &b);
  if (st)
    return st;
  st = sim_run(p, b.args, b.results, &options, NULL, &fault);
  if (st)
    diag_add(ds, DS_ERROR, fault.kind == SIM_FAULT_TIME ? DG_TIME_LIMIT : DG_CHECK_FAILED, fault.loc, "%s: %s%s%s",
             sim_fault_name(fault.kind), fault.instr ? fault.instr->def->name : "", fault.instr ? ": " : "",
             fault.text);
  return st;
}
