#include "driver/stage_check.h"

#include <assert.h>
#include <malloc.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "driver/check_nki.h"
#include "driver/entry.h"
#include "hlo/literal.h"
#include "hlo/passes.h"
#include "linalg/lower.h"
#include "sim/decode.h"

/* ---- time -------------------------------------------------------------------------------------------------------- */

/* True if another run as long as the longest one, and then the rest of the pipeline, fit into the remaining time. */
static bool fits(int64_t longest_us, int64_t used_us, int64_t all_us, int64_t reserve_us) {
  return used_us + longest_us + longest_us / 4 + reserve_us <= all_us;
}

static void raise_to(int64_t *most, int64_t v) {
  *most = v > *most ? v : *most;
}

static bool has_time(const struct stage_checks *c) {
  const int64_t wall_us = c->deadline_us - c->began_us;
  struct rlimit r;
  if (c->deadline_us && !fits(c->longest_us, clock_now_us() - c->began_us, wall_us, wall_us / 8))
    return false;
  if (getrlimit(RLIMIT_CPU, &r) || r.rlim_cur == RLIM_INFINITY)
    return true;
  const int64_t cpu_us = (int64_t)r.rlim_cur * 1000000;
  return fits(c->longest_cpu_us, clock_cpu_us(), cpu_us, check_reserve_cpu_us(cpu_us));
}

/* Of an NKI kernel whose texts are run again. */
enum { TEXT_CALLS_MAX = 5000 };

/* ---- one stage --------------------------------------------------------------------------------------------------- */

static enum status open_program(struct stage_checks *c, MlirModule module, const struct stage_def *def,
                                struct diags *ds, struct check_program **out) {
  struct trace_kernel *k = c->kernel;
  const char *name = k->module ? k->module->name : k->name;
  MlirModule plain = {NULL};

  if (stage_form(def) != FORM_HLO)
    return check_open(c->ir, module, name, c->arena, ds, out);
  enum status st = linalg_from_hlo_plain(c->ir, hlo_expanded(c->arena, k->module), ds, &plain);
  if (!st)
    st = check_open(c->ir, plain, name, c->arena, ds, out);
  if (!mlirModuleIsNull(plain))
    mlirModuleDestroy(plain);
  return st;
}

/* Adds what one set of inputs gave to the result of the others. */
static void merge(struct check_result *all, const struct check_result *r) {
  const double abs_err = fmax(all->max_abs_err, r->max_abs_err), rel_err = fmax(all->max_rel_err, r->max_rel_err);
  if (all->pass)
    *all = *r;
  all->max_abs_err = abs_err;
  all->max_rel_err = rel_err;
}

/* The program of a stage: of tensors or buffers, or of NISA instructions. */
struct subject {
  struct check_program *linalg; /* NULL: nisa */
  struct sim_program nisa;
};

static enum status decode(struct stage_checks *c, MlirModule module, struct diags *ds, struct subject *s) {
  const struct trace_kernel *k = c->kernel;
  s->linalg = NULL;
  return sim_decode(mlirModuleGetOperation(module), k->module ? k->module->name : k->name, c->arena, ds, &s->nisa);
}

/* Engine programs run in two orders: as many instructions as possible before a transfer, and the other way round. */
static const enum sim_schedule orders[] = {SIM_SCHEDULE_LATE_DMA, SIM_SCHEDULE_EARLY_DMA};
enum { N_ORDERS = sizeof orders / sizeof *orders };

/* Returns how many times the program is run.  Run k uses set k, or the last one, and order k. */
static int count_runs(const struct stage_checks *c, const struct subject *s) {
  const bool has_orders = !s->linalg && s->nisa.n_streams;
  return has_orders && c->n_sets < N_ORDERS ? N_ORDERS : c->n_sets;
}

/* Runs the program for the k-th time and compares the results. */
static enum status run_once(struct stage_checks *c, const struct subject *s, int run, struct check_result *result,
                            struct diags *ds) {
  const struct trace_kernel *k = c->kernel;
  const struct check_set *set = &c->sets[run < c->n_sets ? run : c->n_sets - 1];
  struct arena results;
  arena_init(&results);
  if (s->linalg)
    check_limit_time(s->linalg, check_time_limit(c->deadline_us));
  struct trace_array *got = arena_new_array(&results, struct trace_array, (size_t)k->n_outputs);
  for (int i = 0; i < k->n_outputs; i++)
    got[i].shape = k->outputs[i].shape;
  enum status st = s->linalg ? check_run(s->linalg, k->n_inputs, set->in, k->n_outputs, got, &results, ds)
                             : check_simulate(&s->nisa, orders[run % N_ORDERS], k->n_inputs, set->in, k->n_outputs, got,
                                              c->deadline_us, c->arena, ds);
  if (!st)
    check_compare_within(k->n_outputs, got, set->want, set->tolerances, result);
  result->what = set->what;
  arena_clear(&results);
  return st;
}

static enum status run_and_compare(struct stage_checks *c, const struct subject *s, struct check_result *result,
                                   struct diags *ds) {
  const int n = count_runs(c, s);
  enum status st = ST_OK;
  *result = (struct check_result){.pass = true, .wrong_index = -1, .what = ""};
  for (int run = 0; !st && result->pass && run < n; run++) {
    struct check_result one;
    const int64_t began_us = clock_now_us(), began_cpu_us = clock_cpu_us();
    result->is_partial = run && (!c->wants_all_runs || !has_time(c));
    if (result->is_partial)
      break;
    st = run_once(c, s, run, &one, ds);
    raise_to(&c->longest_us, clock_now_us() - began_us);
    raise_to(&c->longest_cpu_us, clock_cpu_us() - began_cpu_us);
    if (!st)
      merge(result, &one);
    else
      result->what = one.what;
  }
  return st;
}

/* Returns the result of an equal program that was run before, or the place for it; NULL if there is neither. */
static struct known_result *find_known(struct stage_checks *c, const unsigned char *digest) {
  for (int i = 0; i < c->n_known; i++)
    if (!memcmp(c->known[i].digest, digest, CHECK_DIGEST))
      return &c->known[i];
  return NULL;
}

static void remember(struct stage_checks *c, const unsigned char *digest, struct check_result result) {
  struct known_result *k = find_known(c, digest);
  if (!k && c->n_known == STAGE_CHECKS_MAX)
    return;
  k = k ? k : &c->known[c->n_known++];
  memcpy(k->digest, digest, CHECK_DIGEST);
  k->result = result;
}

/* True if the result is one of all runs, or as many as this stage needs. */
static bool is_enough(const struct stage_checks *c, const struct check_result *r) {
  return !r->is_partial || !c->wants_all_runs;
}

static enum status run_linalg(struct stage_checks *c, MlirModule module, const struct stage_def *def,
                              struct check_result *result, struct diags *ds) {
  unsigned char digest[CHECK_DIGEST];
  struct check_program *p = NULL;
  enum status st = open_program(c, module, def, ds, &p);
  if (st)
    return st;
  check_digest(p, digest);
  const struct known_result *known = find_known(c, digest);
  if (known && is_enough(c, &known->result)) {
    *result = known->result;
    check_unload(p);
    return ST_OK;
  }
  st = check_link(c->ir, p, c->arena, ds);
  check_use_products(p, c->products);
  if (!st)
    st = run_and_compare(c, &(struct subject){.linalg = p}, result, ds);
  check_unload(p);
  if (!st)
    remember(c, digest, *result);
  return st;
}

static enum status run_nisa(struct stage_checks *c, MlirModule module, struct check_result *result, struct diags *ds) {
  struct subject s;
  enum status st = decode(c, module, ds, &s);
  return st ? st : run_and_compare(c, &s, result, ds);
}

static enum status run_nki(struct stage_checks *c, const struct nki_program *p, struct check_result *result,
                           struct diags *ds) {
  MlirModule module;
  enum status st = check_nki_module(c->ir, p, ds, &module);
  if (st)
    return st;
  st = run_nisa(c, module, result, ds);
  mlirModuleDestroy(module);
  return st;
}

static bool is_text(const struct stage_def *def) {
  return def->runner == RUN_NKI_AST || def->runner == RUN_NKI_TRACE;
}

/* The texts of nki-ast and nki-trace are Python: they are run as kernels by themselves. */
static enum status run_text(struct stage_checks *c, const struct stage *s, struct check_result *result,
                            struct diags *ds) {
  struct trace_kernel *k = c->kernel;
  const struct check_set *set = &c->sets[0];
  struct trace_array *got = arena_new_array(c->arena, struct trace_array, (size_t)k->n_outputs);
  for (int i = 0; i < k->n_outputs; i++)
    got[i] = (struct trace_array){.shape = k->outputs[i].shape};
  const int64_t began_us = clock_now_us(), began_cpu_us = clock_cpu_us();
  enum status st = trace_eval_nki_text(k, s->text, s->text_len, s->def->runner == RUN_NKI_AST, set->in, ds, got);
  raise_to(&c->longest_us, clock_now_us() - began_us);
  raise_to(&c->longest_cpu_us, clock_cpu_us() - began_cpu_us);
  *result = (struct check_result){.pass = true, .wrong_index = -1};
  struct diag *why = st && ds->n ? &ds->v[0] : NULL;
  if (why && st == ST_INPUT && why->code != DG_NKI_UNSUPPORTED) { /* the text is not what the kernel is */
    why->code = DG_CHECK_FAILED;
    why->loc = NULL; /* it is in the text */
  }
  if (!st)
    check_compare_within(k->n_outputs, got, set->want, set->tolerances, result);
  result->what = set->what;
  return st;
}

static enum status check(struct stage_checks *c, MlirModule module, const struct stage *s, struct check_result *result,
                         struct diags *ds) {
  if (is_text(s->def))
    return run_text(c, s, result, ds);
  switch (stage_form(s->def)) {
  case FORM_NKI:
    return run_nki(c, s->nki, result, ds);
  case FORM_NISA:
    return run_nisa(c, module, result, ds);
  default:
    return run_linalg(c, module, s->def, result, ds);
  }
}

/* ---- all stages -------------------------------------------------------------------------------------------------- */

static struct check_set *new_set(struct stage_checks *c, const char *what) {
  struct check_set *set = &c->sets[c->n_sets];
  *set = (struct check_set){.what = what};
  set->in = arena_new_array(c->arena, struct trace_array, (size_t)c->kernel->n_inputs);
  set->want = arena_new_array(c->arena, struct trace_array, (size_t)c->kernel->n_outputs);
  set->tolerances = arena_new_array(c->arena, struct check_tolerance, (size_t)c->kernel->n_outputs);
  for (int i = 0; i < c->kernel->n_outputs; i++)
    set->want[i] = (struct trace_array){0};
  return set;
}

/* What the caller gets as the inputs and, later, their results. */
static void use_set(struct stage_checks *c, const struct check_set *set) {
  c->in = set->in;
  c->want = set->want;
  c->has_inputs = true;
}

static void keep_set(struct stage_checks *c, struct check_set *set) {
  check_tolerate(c->arena, c->kernel->n_outputs, set->want, set->tolerances);
  c->n_sets++;
}

/* ---- a program that does not come from Python ---- */

/* Makes the inputs of set, which become the usual ones. */
static enum status make_inputs(struct stage_checks *c, struct check_set *set, struct diags *ds) {
  const struct trace_kernel *k = c->kernel;
  enum status st = c->inputs_npz ? trace_npz_read(c->arena, c->inputs_npz, k->n_inputs, k->inputs, ds, set->in)
                                 : entry_make_inputs(c->arena, k, c->seed, set->in);
  if (st && !c->inputs_npz)
    diag_add(ds, DS_ERROR, DG_MEMORY_LIMIT, NULL, "inputs and outputs exceed %d MiB", ENTRY_INPUTS_MAX >> 20);
  if (!st)
    use_set(c, set);
  return st;
}

static enum status simulate_first_stage(struct stage_checks *c, MlirModule module, struct check_set *set,
                                        struct diags *ds) {
  const struct trace_kernel *k = c->kernel;
  struct subject s;
  for (int i = 0; i < k->n_outputs; i++)
    set->want[i].shape = k->outputs[i].shape;
  enum status st = decode(c, module, ds, &s);
  if (!st)
    st =
        check_simulate(&s.nisa, orders[0], k->n_inputs, set->in, k->n_outputs, set->want, c->deadline_us, c->arena, ds);
  if (!st)
    keep_set(c, set);
  return st;
}

/* Runs the first stage of such a program: its results are taken as correct, so it passes. */
static enum status run_first_stage(struct stage_checks *c, MlirModule module, const struct stage_def *def,
                                   struct diags *ds) {
  struct check_program *p = NULL;
  unsigned char digest[CHECK_DIGEST];
  struct check_set *set = new_set(c, "");
  enum status st = make_inputs(c, set, ds);
  if (st || c->only_inputs)
    return st;
  if (stage_form(def) == FORM_NISA)
    return simulate_first_stage(c, module, set, ds);
  st = open_program(c, module, def, ds, &p);
  if (st)
    return st;
  check_digest(p, digest);
  st = check_link(c->ir, p, c->arena, ds);
  for (int i = 0; i < c->kernel->n_outputs; i++)
    set->want[i].shape = c->kernel->outputs[i].shape;
  check_limit_time(p, check_time_limit(c->deadline_us));
  if (!st)
    st = check_run(p, c->kernel->n_inputs, set->in, c->kernel->n_outputs, set->want, c->arena, ds);
  if (!st) {
    remember(c, digest, (struct check_result){.pass = true, .wrong_index = -1});
    keep_set(c, set);
  }
  check_unload(p);
  return st;
}

/* ---- a kernel in Python ---- */

/* Returns the share of the outputs' elements that are NaN or infinite. */
static double share_undefined(const struct trace_kernel *k, const struct trace_array *out) {
  int64_t n = 0, n_undefined = 0;
  for (int i = 0; i < k->n_outputs; i++) {
    const struct hlo_literal x = {.shape = out[i].shape, .data = out[i].data};
    const int64_t count = hlo_shape_elements(&out[i].shape);
    n += count;
    for (int64_t e = 0; dtype_is_float(out[i].shape.dtype) && e < count; e++)
      n_undefined += !isfinite(hlo_literal_double(&x, (size_t)e));
  }
  return n ? (double)n_undefined / (double)n : 0;
}

static const char *reason(const struct diags *ds, const char *otherwise) {
  return ds->n ? ds->v[0].message : otherwise;
}

static const double mostly = 0.5;

static const char out_of_time[] = "running it could take the job past the time that it has";

static const char no_time_for_wide[] = "compared on the usual inputs only: there was no time for those of wide ranges";

/* A run for the roundings takes as long as this many plain ones, at most. */
enum { RUNS_FOR_SPREAD = 5 };

/* Returns when the reference runs must end: with a quarter of the remaining time for the stages. */
static struct time_limit reference_limit(const struct stage_checks *c) {
  struct time_limit t = check_time_limit(c->deadline_us);
  const int64_t now_us = clock_now_us(), cpu_us = clock_cpu_us();
  if (t.wall_us)
    t.wall_us -= (t.wall_us - now_us) / 4;
  if (t.cpu_us)
    t.cpu_us -= (t.cpu_us - cpu_us) / 4;
  return t;
}

/* True if as many more runs as long as one that began at these times would end after the limit. */
static bool is_too_long(const struct time_limit *limit, int64_t began_us, int64_t began_cpu_us, int more) {
  const int64_t now_us = clock_now_us(), cpu_us = clock_cpu_us();
  return (limit->wall_us && now_us + more * (now_us - began_us) > limit->wall_us) ||
         (limit->cpu_us && cpu_us + more * (cpu_us - began_cpu_us) > limit->cpu_us);
}

/* Makes the usual inputs: from the first ranges in which the kernel's functions are defined, or else from those in which
 * the fewest results are NaN or infinite.  The arrays of a call come last, if all values are of one kind, such as zeros: they
 * may be the only indices that fit.  Returns NULL, or the reason why there is nothing to compare with. */
static const char *make_usual_set(struct stage_checks *c, bool *is_drawn) {
  static const enum trace_ranges ranges[] = {TRACE_AROUND_ZERO, TRACE_POSITIVE, TRACE_LARGE, TRACE_AS_GIVEN};
  struct trace_kernel *k = c->kernel;
  struct check_set *set = new_set(c, ""), best = {.in = NULL};
  const struct time_limit limit = reference_limit(c);
  int64_t began_us = 0, began_cpu_us = 0;
  double least = 2;
  const char *failed = NULL;
  bool draws = true;
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges && least > 0 && draws; i++) {
    struct diags ds;
    diags_init(&ds, c->arena);
    set = new_set(c, "");
    if (trace_make_inputs(k, c->seed, ranges[i], &ds, set->in, &draws))
      return reason(&ds, "the inputs could not be made");
    if (!c->has_inputs)
      use_set(c, set);
    began_us = clock_now_us(), began_cpu_us = clock_cpu_us();
    if (trace_eval_numpy(k, set->in, &ds, set->want)) {
      if (ds.n && ds.v[0].code == DG_TIME_LIMIT)
        return out_of_time;
      if (!failed)
        failed = reason(&ds, "NumPy could not run the kernel");
      if (best.in)
        break;
      continue;
    }
    const double share = share_undefined(k, set->want);
    if (share < least) {
      least = share;
      best = *set;
      *is_drawn = draws;
    }
  }
  if (!best.in)
    return failed;
  *set = best;
  use_set(c, set);
  if (is_too_long(&limit, began_us, began_cpu_us,
                  1 + RUNS_FOR_SPREAD)) /* the second run, and one with other roundings */
    return out_of_time;
  bool is_random;
  trace_find_spread(k, set->in, set->want, &is_random);
  if (is_random)
    return "the kernel draws random numbers: two runs in NumPy gave different results";
  if (least > mostly)
    return arena_printf(c->arena, "%.0f %% of the results are NaN or infinite in NumPy", 100 * least);
  keep_set(c, set);
  return NULL;
}

/* Adds inputs of the widest ranges from which NumPy's results are all finite.  What infinite terms of a sum give depends
 * on how it is computed: a running sum is a product with a triangle of ones, and 0 * inf is NaN. */
static void make_wide_set(struct stage_checks *c) {
  static const enum trace_ranges ranges[] = {TRACE_WIDE, TRACE_WIDE_FLOATS, TRACE_WIDE_NONZERO, TRACE_WIDE_POSITIVE};
  struct trace_kernel *k = c->kernel;
  const struct time_limit limit = reference_limit(c);
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    struct check_set *set = new_set(c, " on inputs of wide ranges");
    struct diags ds;
    bool is_drawn;
    const int64_t began_us = clock_now_us(), began_cpu_us = clock_cpu_us();
    diags_init(&ds, c->arena);
    if (trace_make_inputs(k, c->seed, ranges[i], &ds, set->in, &is_drawn) ||
        trace_eval_numpy(k, set->in, &ds, set->want) || share_undefined(k, set->want) > 0)
      continue;
    if (is_too_long(&limit, began_us, began_cpu_us, RUNS_FOR_SPREAD)) {
      c->no_wide_set = no_time_for_wide;
      return;
    }
    trace_find_spread(k, set->in, set->want, NULL);
    keep_set(c, set);
    return;
  }
  c->no_wide_set = "compared on the usual inputs only: from wide ranges NumPy's results are not all finite";
}

/* The stages compute the same products again and again, on large inputs in hundreds of tiles. */
enum { PRODUCTS_MAX = 256 << 20 };

/* Memory that one run frees stays with the process for the next one: otherwise the kernel clears the same pages for each
 * of a hundred runs, which takes as long as some of them. */
static void keep_memory(void) {
#ifdef __GLIBC__
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
#endif
}

/* A kernel of more bytes of inputs and outputs is run on the second set at the end of each phase only. */
enum { LARGE_BYTES = 16 << 20 };

static bool is_large(const struct trace_kernel *k) {
  size_t bytes = 0;
  for (int i = 0; i < k->n_inputs; i++)
    bytes += (size_t)hlo_shape_elements(&k->inputs[i].shape) * dtype_size(k->inputs[i].shape.dtype);
  for (int i = 0; i < k->n_outputs; i++)
    bytes += (size_t)hlo_shape_elements(&k->outputs[i].shape) * dtype_size(k->outputs[i].shape.dtype);
  return bytes > LARGE_BYTES;
}

void stage_checks_begin(struct stage_checks *c, MlirModule module, const struct stage_def *first) {
  struct trace_kernel *k = c->kernel;
  struct diags ds;
  bool is_drawn = false;

  keep_memory();
  c->is_large = is_large(k);
  c->products = interp_products_new(PRODUCTS_MAX);
  c->began_us = clock_now_us();
  diags_init(&ds, c->arena);
  if (k->program) {
    c->no_check = make_usual_set(c, &is_drawn);
    if (!c->no_check && is_drawn)
      make_wide_set(c);
  } else if (run_first_stage(c, module, first, &ds)) {
    c->no_check = reason(&ds, "the program could not be run as it was read");
  }
}

void stage_checks_end(struct stage_checks *c) {
  interp_products_free(c->products);
  c->products = NULL;
}

/* Returns the reason why the stage is not run; NULL if it is run. */
static const char *why_not(const struct stage_checks *c, const struct stage_def *def) {
  if (c->no_check)
    return c->no_check;
  if (is_text(def) && c->kernel->nki->n_calls > TEXT_CALLS_MAX)
    return arena_printf(c->arena, "the kernel makes %d calls, and texts of at most %d are run again",
                        c->kernel->nki->n_calls, TEXT_CALLS_MAX);
  return has_time(c) ? NULL : out_of_time;
}

/* The stage's program is that of the previous stage, or the one that its check made and ran.  A text that was run as Python does not
 * count. */
static bool is_checked(const struct stage_checks *c, const struct stage *s) {
  const bool is_skipped = !c->last.status || !strcmp(c->last.status, "skipped");
  if (!c->last.status || !is_enough(c, &c->last.result) || is_text(s->def) || s->def->runner == RUN_NKI_CANONICALIZE)
    return false;
  return (!s->changed && !(is_skipped && stage_form(s->def) == FORM_NKI)) ||
         (!is_skipped && s->def->runner == RUN_NKI_LOWER);
}

/* Returns ", first at [0, 3]: 1.5 instead of 2"; an empty text if no element is known. */
static const char *describe_wrong(struct stage_checks *c, const struct check_result *r) {
  struct buf b;
  if (r->wrong_index < 0)
    return "";
  buf_init(&b, 1024);
  buf_puts(&b, ", first at ");
  check_put_index(&b, &c->kernel->outputs[r->worst_output].shape, r->wrong_index);
  buf_printf(&b, ": %g instead of %g", r->got, r->expected);
  const char *text = arena_strndup(c->arena, buf_text(&b), b.len);
  buf_clear(&b);
  return text;
}

const struct check_set *stage_checks_set_of(const struct stage_checks *c, const struct check_result *r) {
  for (int i = 1; i < c->n_sets; i++)
    if (c->sets[i].what == r->what)
      return &c->sets[i];
  return &c->sets[0];
}

static bool ends_phase(const struct pipeline *p, const struct stage_def *def) {
  return def + 1 == p->stages + p->n || strcmp(def->phase, def[1].phase) != 0;
}

/* Returns what the result does not cover; NULL if it is complete. */
static const char *describe_gap(const struct stage_checks *c, const struct check_result *r) {
  if (!r->is_partial)
    return c->no_wide_set;
  return c->wants_all_runs
             ? no_time_for_wide
             : "compared on the usual inputs only: those of wide ranges are large, and used at the end of "
               "each phase";
}

void stage_checks_run(struct stage_checks *c, MlirModule module, struct stage *s, struct diags *ds) {
  struct stage_check *r = &s->check;
  const bool is_first_failure = !c->last.status || strcmp(c->last.status, "fail") != 0;
  const struct diag *fault = NULL; /* the fault that the simulator found */

  assert(c->kernel);
  c->wants_all_runs = !c->is_large || ends_phase(c->pipeline, s->def);
  if (is_checked(c, s)) {
    *r = c->last;
    return;
  }
  *r = (struct stage_check){.status = "skipped", .reason = why_not(c, s->def)};
  if (!r->reason) {
    struct diags own;
    diags_init(&own, c->arena);
    if (check(c, module, s, &r->result, &own)) {
      r->reason = own.n ? own.v[0].message : "the stage could not be run";
      if (own.n && own.v[0].code == DG_TIME_LIMIT)
        r->reason = out_of_time;
      fault = own.n && own.v[0].code == DG_CHECK_FAILED ? &own.v[0] : NULL;
      if (fault)
        r->status = "fail";
    } else
      r->status = r->result.pass ? "pass" : "fail";
  }
  if (!r->reason)
    r->note = describe_gap(c, &r->result);
  if (!r->reason && r->result.wrong_index >= 0)
    r->wrong = &c->kernel->outputs[r->result.worst_output];
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
             "after %s the kernel no longer computes what %s%s: output %s differs by %g%s", s->def->name,
             c->kernel->program ? "NumPy computes" : "it did when it was read", r->result.what,
             c->kernel->outputs[r->result.worst_output].name, r->result.max_abs_err, describe_wrong(c, &r->result))
        ->stage = s->def->name;
}
