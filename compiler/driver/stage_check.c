#include "driver/stage_check.h"

#include <assert.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "driver/entry.h"
#include "hlo/passes.h"
#include "linalg/lower.h"

/* ---- time -------------------------------------------------------------------------------------------------------- */

static int64_t cpu_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* True if another run as long as the longest one, and then the rest of the pipeline, fit into the remaining time. */
static bool fits(int64_t longest_us, int64_t used_us, int64_t all_us) {
  return used_us + longest_us + longest_us / 4 + all_us / 8 <= all_us;
}

static bool has_time(const struct stage_checks *c) {
  struct rlimit r;
  if (c->deadline_us && !fits(c->longest_us, clock_now_us() - c->began_us, c->deadline_us - c->began_us))
    return false;
  return getrlimit(RLIMIT_CPU, &r) || r.rlim_cur == RLIM_INFINITY ||
         fits(c->longest_cpu_us, cpu_us(), (int64_t)r.rlim_cur * 1000000);
}

/* ---- one stage --------------------------------------------------------------------------------------------------- */

static enum status open_program(struct stage_checks *c, MlirModule module, const struct stage_def *def,
                                struct diags *ds, struct check_program **out) {
  struct trace_kernel *k = c->kernel;
  const char *name = k->module ? k->module->name : k->name;
  MlirModule plain = {NULL};

  if (def->runner >= RUN_TO_LINALG)
    return check_open(c->ir, module, name, c->arena, ds, out);
  enum status st = linalg_from_hlo_plain(c->ir, hlo_expanded(c->arena, k->module), ds, &plain);
  if (!st)
    st = check_open(c->ir, plain, name, c->arena, ds, out);
  if (!mlirModuleIsNull(plain))
    mlirModuleDestroy(plain);
  return st;
}

/* Runs the program; got[n_outputs] receives the results, with data in a. */
static enum status run_program(struct stage_checks *c, struct check_program *p, struct trace_array *got,
                               struct arena *a, struct diags *ds) {
  struct trace_kernel *k = c->kernel;
  for (int i = 0; i < k->n_outputs; i++)
    got[i].shape = k->outputs[i].shape;
  enum status st = check_link(c->ir, p, c->arena, ds);
  return st ? st : check_run(p, k->n_inputs, c->in, k->n_outputs, got, a, ds);
}

static enum status run_and_compare(struct stage_checks *c, struct check_program *p, struct check_result *result,
                                   struct diags *ds) {
  struct arena results;
  arena_init(&results);
  struct trace_array *got = arena_new_array(&results, struct trace_array, (size_t)c->kernel->n_outputs);
  enum status st = run_program(c, p, got, &results, ds);
  if (!st)
    check_compare(c->kernel->n_outputs, got, c->want, result);
  arena_clear(&results);
  return st;
}

/* Returns the result of an equal program that was run before; NULL if there was none. */
static const struct check_result *find_known(const struct stage_checks *c, const unsigned char *digest) {
  for (int i = 0; i < c->n_known; i++)
    if (!memcmp(c->known[i].digest, digest, CHECK_DIGEST))
      return &c->known[i].result;
  return NULL;
}

static void remember(struct stage_checks *c, const unsigned char *digest, struct check_result result) {
  if (c->n_known == STAGE_CHECKS_MAX)
    return;
  assert(!find_known(c, digest));
  memcpy(c->known[c->n_known].digest, digest, CHECK_DIGEST);
  c->known[c->n_known++].result = result;
}

static void raise_to(int64_t *most, int64_t v) {
  *most = v > *most ? v : *most;
}

/* Runs a stage of NISA; got[n_outputs] receives the results. */
static enum status simulate(struct stage_checks *c, MlirModule module, struct trace_array *got, struct diags *ds) {
  const struct trace_kernel *k = c->kernel;
  for (int i = 0; i < k->n_outputs; i++)
    got[i].shape = k->outputs[i].shape;
  return check_simulate(module, k->module ? k->module->name : k->name, k->n_inputs, c->in, k->n_outputs, got,
                        c->deadline_us, c->arena, ds); /* a diagnostic refers to places in this arena */
}

static enum status simulate_and_compare(struct stage_checks *c, MlirModule module, struct check_result *result,
                                        struct diags *ds) {
  struct trace_array *got = arena_new_array(c->arena, struct trace_array, (size_t)c->kernel->n_outputs);
  enum status st = simulate(c, module, got, ds);
  if (!st)
    check_compare(c->kernel->n_outputs, got, c->want, result);
  return st;
}

static enum status check(struct stage_checks *c, MlirModule module, const struct stage_def *def,
                         struct check_result *result, struct diags *ds) {
  unsigned char digest[CHECK_DIGEST];
  struct check_program *p = NULL;
  const int64_t began_us = clock_now_us(), began_cpu_us = cpu_us();

  if (def->runner == RUN_TO_NISA) {
    enum status simulated = simulate_and_compare(c, module, result, ds);
    raise_to(&c->longest_us, clock_now_us() - began_us);
    raise_to(&c->longest_cpu_us, cpu_us() - began_cpu_us);
    return simulated;
  }
  enum status st = open_program(c, module, def, ds, &p);
  if (st)
    return st;
  check_digest(p, digest);
  const struct check_result *known = find_known(c, digest);
  if (known) {
    *result = *known;
    check_unload(p);
    return ST_OK;
  }
  st = run_and_compare(c, p, result, ds);
  check_unload(p);
  if (!st)
    remember(c, digest, *result);
  raise_to(&c->longest_us, clock_now_us() - began_us);
  raise_to(&c->longest_cpu_us, cpu_us() - began_cpu_us);
  return st;
}

/* ---- all stages -------------------------------------------------------------------------------------------------- */

/* Makes inputs for a program that is not Python. */
static enum status make_inputs(struct stage_checks *c, struct diags *ds) {
  const struct trace_kernel *k = c->kernel;
  if (c->inputs_npz)
    return trace_npz_read(c->arena, c->inputs_npz, k->n_inputs, k->inputs, ds, c->in);
  enum status st = entry_make_inputs(c->arena, k, c->seed, c->in);
  if (st)
    diag_add(ds, DS_ERROR, DG_MEMORY_LIMIT, NULL, "inputs and outputs exceed %d MiB", ENTRY_INPUTS_MAX >> 20);
  return st;
}

/* Checks the first stage of a program that does not come from Python: its results are taken as correct, so it
 * passes. */
static enum status run_first_stage(struct stage_checks *c, MlirModule module, const struct stage_def *def,
                                   struct diags *ds) {
  struct check_program *p = NULL;
  unsigned char digest[CHECK_DIGEST];
  enum status st = make_inputs(c, ds);
  if (st)
    return st;
  c->has_inputs = true;
  if (c->only_inputs)
    return ST_OK;
  if (def->runner == RUN_TO_NISA)
    return simulate(c, module, c->want, ds);
  st = open_program(c, module, def, ds, &p);
  if (st)
    return st;
  check_digest(p, digest);
  st = run_program(c, p, c->want, c->arena, ds);
  if (!st)
    remember(c, digest, (struct check_result){.pass = true});
  check_unload(p);
  return st;
}

void stage_checks_begin(struct stage_checks *c, MlirModule module, const struct stage_def *first) {
  struct trace_kernel *k = c->kernel;
  struct diags ds;

  c->began_us = clock_now_us();
  diags_init(&ds, c->arena);
  c->in = arena_new_array(c->arena, struct trace_array, (size_t)k->n_inputs);
  c->want = arena_new_array(c->arena, struct trace_array, (size_t)k->n_outputs);
  enum status st = k->program ? trace_make_inputs(k, c->seed, &ds, c->in) : run_first_stage(c, module, first, &ds);
  if (!st && k->program) {
    c->has_inputs = true;
    st = trace_eval_numpy(k, c->in, &ds, c->want);
  }
  if (st)
    c->no_check = ds.n         ? ds.v[0].message
                  : k->program ? "NumPy could not run the kernel"
                               : "the program could not be run as it was read";
}

static const char out_of_time[] = "running it could take the job past the time that it has";

/* Returns the reason why the stage is not run; NULL if it is run. */
static const char *why_not(const struct stage_checks *c) {
  if (c->no_check)
    return c->no_check;
  return has_time(c) ? NULL : out_of_time;
}

void stage_checks_run(struct stage_checks *c, MlirModule module, struct stage *s, struct diags *ds) {
  struct stage_check *r = &s->check;
  const bool is_first_failure = !c->last.status || strcmp(c->last.status, "fail") != 0;
  const struct diag *fault = NULL; /* the fault that the simulator found */

  assert(c->kernel && c->in);
  if (c->last.status && !s->changed) { /* the same program was checked in the previous stage */
    *r = c->last;
    return;
  }
  *r = (struct stage_check){.status = "skipped", .reason = why_not(c)};
  if (!r->reason) {
    struct diags own;
    diags_init(&own, c->arena);
    if (check(c, module, s->def, &r->result, &own)) {
      r->reason = own.n ? own.v[0].message : "the stage could not be run";
      fault = own.n && own.v[0].code == DG_CHECK_FAILED ? &own.v[0] : NULL;
      if (fault)
        r->status = "fail";
    } else
      r->status = r->result.pass ? "pass" : "fail";
  }
  if (r->reason == out_of_time && !c->is_out_of_time) {
    struct diag *d = diag_add(ds, DS_WARNING, DG_CHECK_INCOMPLETE, NULL,
                              "from %s on stages were not run: the job's time was up", s->def->name);
    d->stage = s->def->name;
    d->hint = "smaller shapes are checked faster; `nkx compile --check` in a terminal takes its time";
    c->is_out_of_time = true;
  }
  c->last = *r;
  if (fault && is_first_failure)
    diag_add(ds, DS_ERROR, DG_CHECK_FAILED, fault->loc, "after %s the kernel cannot be run: %s", s->def->name,
             fault->message)
        ->stage = s->def->name;
  else if (!strcmp(r->status, "fail") && is_first_failure)
    diag_add(ds, DS_ERROR, DG_CHECK_FAILED, NULL,
             "after %s the kernel no longer computes what %s: output %s differs by %g", s->def->name,
             c->kernel->program ? "NumPy computes" : "it did when it was read",
             c->kernel->outputs[r->result.worst_output].name, r->result.max_abs_err)
        ->stage = s->def->name;
}
