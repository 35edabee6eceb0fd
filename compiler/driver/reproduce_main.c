/* reproduce_main: `nkx reproduce FILE`: runs the program of a failed check before its pass and after it. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>
#include <openssl/evp.h>

#include "driver/main.h"
#include "driver/pipeline.h"
#include "driver/reproduce.h"
#include "hlo/passes.h"
#include "hlo/read.h"
#include "linalg/lower.h"
#include "nisa/nisa.h"
#include "passes/pass.h"

static const char usage[] =
    "usage: nkx reproduce FILE\n"
    "  Runs the program of a file that `nkx compile --check --reproducer FILE` wrote, or that the service gives as an\n"
    "  artifact, before its pass and after it, and compares both with NumPy's results.\n";

struct replay {
  struct ir *ir;
  struct arena *arena;
  struct diags *ds;
  const json_t *file;
  const struct stage_def *stage;
  int index;
  enum target target;
  struct trace_kernel kernel;
  MlirModule module;
  struct stage_checks checks;
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void *read_base64(struct arena *a, const json_t *v, size_t want) {
  const char *text = json_string_value(v);
  const size_t n = json_string_length(v);
  if (!text || n % 4 || n / 4 * 3 < want || n / 4 * 3 > want + 2)
    return NULL;
  unsigned char *bytes = arena_alloc(a, n / 4 * 3 + 1);
  return n && EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)n) < 0 ? NULL : bytes;
}

static bool read_array(struct arena *a, const json_t *v, struct trace_tensor *tensor, struct trace_array *x) {
  const json_t *shape = json_object_get(v, "shape"), *spread = json_object_get(v, "spread");
  const char *name = json_string_value(json_object_get(v, "name")),
             *dtype = json_string_value(json_object_get(v, "dtype"));
  int64_t dims[HLO_RANK_MAX], n = 1;
  const int rank = (int)json_array_size(shape);
  const enum dtype t = dtype ? dtype_from_name(dtype) : DT_NONE;
  if (!name || t == DT_NONE || json_array_size(shape) > HLO_RANK_MAX)
    return false;
  for (int d = 0; d < rank; d++) {
    dims[d] = json_integer_value(json_array_get(shape, (size_t)d));
    if (dims[d] < 0 || __builtin_mul_overflow(n, dims[d], &n) || n > INT32_MAX)
      return false;
  }
  *tensor = (struct trace_tensor){arena_strdup(a, name), hlo_shape_array(a, t, rank, dims), -1, false};
  *x = (struct trace_array){.shape = tensor->shape,
                            .data = read_base64(a, json_object_get(v, "data"), (size_t)n * dtype_size(t))};
  if (spread)
    x->spread = read_base64(a, spread, (size_t)n * sizeof(float));
  return x->data && (!spread || x->spread);
}

static bool read_arrays(struct arena *a, const json_t *list, int *n, struct trace_tensor **tensors,
                        struct trace_array **arrays) {
  *n = (int)json_array_size(list);
  *tensors = arena_new_array(a, struct trace_tensor, (size_t)*n);
  *arrays = arena_new_array(a, struct trace_array, (size_t)*n);
  for (int i = 0; i < *n; i++)
    if (!read_array(a, json_array_get(list, (size_t)i), &(*tensors)[i], &(*arrays)[i]))
      return false;
  return true;
}

static enum status read_program(struct replay *r, struct error *err) {
  const json_t *text = json_object_get(r->file, "before"), *proto = json_object_get(r->file, "before_base64");
  if (json_is_string(text))
    return ir_parse(r->ir, json_string_value(text), json_string_length(text), "before.mlir", r->arena, r->ds,
                    &r->module);
  const size_t n = json_string_length(proto);
  const char *end = json_string_value(proto);
  const size_t size = n < 4 ? 0 : n / 4 * 3 - (end[n - 1] == '=') - (end[n - 2] == '=');
  void *bytes = size ? read_base64(r->arena, proto, size) : NULL;
  if (!bytes)
    return fail(err, ST_INPUT, "the program is missing");
  r->kernel.module = hlo_read_proto(r->arena, bytes, size, r->ds);
  return r->kernel.module ? ST_OK : ST_INPUT;
}

static enum status read_replay(struct replay *r, struct error *err) {
  const char *name = json_string_value(json_object_get(r->file, "kernel")),
             *target = json_string_value(json_object_get(r->file, "target"));
  const json_int_t index = json_integer_value(json_object_get(r->file, "index"));
  struct check_set *set = &r->checks.sets[0];
  if (!name || !target || !target_from_name(target, &r->target) || index < 0 || index >= pipeline_hlo.n)
    return fail(err, ST_INPUT, "it is not a reproducer of this version");
  r->kernel.name = name;
  r->index = (int)index;
  r->stage = &pipeline_hlo.stages[index];
  *set = (struct check_set){.what = ""};
  if (!read_arrays(r->arena, json_object_get(r->file, "inputs"), &r->kernel.n_inputs, &r->kernel.inputs, &set->in) ||
      !read_arrays(r->arena, json_object_get(r->file, "outputs"), &r->kernel.n_outputs, &r->kernel.outputs, &set->want))
    return fail(err, ST_INPUT, "an array of the reproducer cannot be read");
  set->tolerances = arena_new_array(r->arena, struct check_tolerance, (size_t)r->kernel.n_outputs);
  check_tolerate(r->arena, r->kernel.n_outputs, set->want, set->tolerances);
  return read_program(r, err);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static enum status run_pass(struct replay *r) {
  struct pass_run run = {.ir = r->ir, .target = r->target, .options = "", .arena = r->arena, .ds = r->ds};
  struct hlo_pass_result result = {.ds = r->ds};
  struct remarks remarks = {0};
  switch (r->stage->runner) {
  case RUN_TRACE:
    return ST_OK;
  case RUN_HLO:
    hlo_pass_find(r->stage->pass)(r->kernel.module, &result);
    return hlo_verify(r->kernel.module, r->ds);
  case RUN_TO_LINALG:
    return linalg_from_hlo(r->ir, r->kernel.module, r->ds, &r->module);
  case RUN_UPSTREAM:
    return ir_run_pipeline(r->ir, mlirModuleGetOperation(r->module), r->stage->pass, r->arena, r->ds);
  default:
    run.module = mlirModuleGetOperation(r->module);
    run.remarks = &remarks;
    run.def = pass_find(r->stage->pass);
    return run.def->run(&run);
  }
}

/* Checks the program as that of a stage, and prints the verdict.  True if it passes. */
static bool judge(struct replay *r, const struct stage_def *def, const char *when) {
  struct stage s = {.def = def, .changed = true};
  stage_checks_run(&r->checks, r->module, &s, r->ds);
  printf("%s %s: %s", when, r->stage->name, s.check.status);
  if (s.check.reason)
    printf(" (%s)\n", s.check.reason);
  else
    printf(" (max abs %.2g, rel %.2g)\n", s.check.result.max_abs_err, s.check.result.max_rel_err);
  return !strcmp(s.check.status, "pass");
}

static enum status replay(struct replay *r, struct error *err) {
  enum status st = read_replay(r, err);
  r->checks.ir = r->ir;
  r->checks.kernel = &r->kernel;
  r->checks.arena = r->arena;
  r->checks.n_sets = 1;
  if (st)
    return st;
  bool passes = true;
  if (r->stage->runner != RUN_TRACE)
    passes = judge(r, &pipeline_hlo.stages[r->index - 1], "before");
  st = run_pass(r);
  if (!st)
    passes &= judge(r, r->stage, "after");
  return st ? st : passes ? ST_OK : ST_INPUT;
}

static enum status run(struct replay *r, const char *path, struct error *err) {
  json_error_t wrong;
  json_t *file = json_load_file(path, 0, &wrong);
  if (!file)
    return fail(err, ST_INPUT, "%.160s: %s", path, wrong.text);
  r->file = file;
  enum status st = replay(r, err);
  if (!mlirModuleIsNull(r->module))
    mlirModuleDestroy(r->module);
  json_decref(file);
  return st;
}

int reproduce_main(int argc, char **argv) {
  struct error err = {0};
  struct arena a;
  struct diags ds;
  struct ir ir;

  if (argc == 2 && !strcmp(argv[1], "--help"))
    return fputs(usage, stdout), EXIT_DONE;
  if (argc != 2)
    return fputs(usage, stderr), EXIT_USAGE;
  arena_init(&a);
  diags_init(&ds, &a);
  struct replay r = {.ir = &ir, .arena = &a, .ds = &ds};
  enum status st = ir_init(&ir, &err);
  if (!st)
    st = run(&r, argv[1], &err);
  for (int i = 0; i < ds.n; i++)
    diag_print(stderr, &ds.v[i]);
  if (err.text[0])
    fprintf(stderr, "nkx reproduce: %s\n", err.text);
  arena_clear(&a);
  return st == ST_OK ? EXIT_DONE : st == ST_INPUT ? EXIT_REFUSED : st == ST_LIMIT ? EXIT_LIMIT : EXIT_FAULT;
}
