/* libnrt: a library with the interface of the Neuron runtime that runs simulation packages in the simulator.
 *
 * Tests only: its version says so, and it accepts no NEFF of the vendor's compiler.  It has as many cores as
 * NEURON_RT_VISIBLE_CORES says, or two.  It counts what it hands out, and can fail in any call:
 *
 *     NRT_STAND_IN_FAIL=nrt_load=9        every nrt_load returns status 9
 *     NRT_STAND_IN_FAIL=nrt_execute@2=5   the second nrt_execute after nrt_init returns 5
 *     NRT_STAND_IN_REPORT=FILE            when the process ends, FILE gets a line of JSON: {"live": {kind: number}, "calls": {name: number}}
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/check.h"
#include "neff/nrt.h"
#include "neff/package.h"
#include "nisa/nisa.h"
#include "nisa/parse.h"
#include "sim/decode.h"
#include "sim/run.h"

#define NRT_FUNCTION(kind, result, name, parameters) result name parameters;
#include "neff/nrt.def"
#undef NRT_FUNCTION
int nkx_stand_in_live(void);
long nkx_stand_in_calls(const char *function);

/* ---- calls ------------------------------------------------------------------------------------------------------- */

enum call {
#define NRT_FUNCTION(kind, result, name, parameters) CALL_##name,
#include "neff/nrt.def"
#undef NRT_FUNCTION
  CALLS
};
static const char *const call_names[] = {
#define NRT_FUNCTION(kind, result, name, parameters) #name,
#include "neff/nrt.def"
#undef NRT_FUNCTION
};

enum kind { RUNTIME, MODEL, INFO, SET, TENSOR, PROFILE, KINDS };
static const char *const kind_names[] = {"runtime", "model", "info", "set", "tensor", "profile"};

static long calls[CALLS], counted[CALLS]; /* counted: since the last nrt_close */
static int live[KINDS];

int nkx_stand_in_live(void) {
  int n = 0;
  for (int k = 0; k < KINDS; k++)
    n += live[k];
  return n;
}

long nkx_stand_in_calls(const char *function) {
  for (int c = 0; c < CALLS; c++)
    if (!strcmp(call_names[c], function))
      return calls[c];
  return -1;
}

/* Counts the call; returns the status that it is to fail with, or NRT_SUCCESS. */
static enum nrt_status enter(enum call c) {
  const char *want = getenv("NRT_STAND_IN_FAIL");
  const size_t n = strlen(call_names[c]);
  long nth = 0;
  int st;
  calls[c]++;
  counted[c]++;
  if (!want || strncmp(want, call_names[c], n) != 0)
    return NRT_SUCCESS;
  if (sscanf(want + n, "@%ld=%d", &nth, &st) == 2)
    return counted[c] == nth ? (enum nrt_status)st : NRT_SUCCESS;
  return sscanf(want + n, "=%d", &st) == 1 ? (enum nrt_status)st : NRT_SUCCESS;
}

#define ENTER(function) \
  do { \
    const enum nrt_status failing = enter(CALL_##function); \
    if (failing) \
      return failing; \
  } while (0)
/* The same for a function that needs the runtime. */
#define ENTER_RUNNING(function) \
  ENTER(function); \
  if (!live[RUNTIME]) \
  return NRT_UNINITIALIZED

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("NRT_STAND_IN_REPORT");
  FILE *f = path ? fopen(path, "ae") : NULL;
  if (!f)
    return;
  fprintf(f, "{\"live\": {");
  for (int k = 0; k < KINDS; k++)
    fprintf(f, "%s\"%s\": %d", k ? ", " : "", kind_names[k], live[k]);
  fprintf(f, "}, \"calls\": {");
  for (int c = 0; c < CALLS; c++)
    fprintf(f, "%s\"%s\": %ld", c ? ", " : "", call_names[c], calls[c]);
  fprintf(f, "}}\n");
  fclose(f);
}

static void *new_zeroed(enum kind k, size_t n) {
  void *p = calloc(1, n ? n : 1);
  live[k] += p != NULL;
  return p;
}

static void release(enum kind k, void *p) {
  live[k] -= p != NULL;
  assert(live[k] >= 0);
  free(p);
}

/* ---- the runtime ------------------------------------------------------------------------------------------------- */

static struct ir ir;

static int n_cores(void) {
  const char *visible = getenv("NEURON_RT_VISIBLE_CORES");
  int first, last;
  if (!visible)
    return 2;
  return sscanf(visible, "%d-%d", &first, &last) == 2 ? last - first + 1 : 1;
}

enum nrt_status nrt_init(int framework, const char *framework_version, const char *fal_version) {
  struct error err;
  ENTER(nrt_init);
  if (framework != NRT_FRAMEWORK_NONE || !framework_version || !fal_version || live[RUNTIME])
    return NRT_INVALID;
  if (ir_init(&ir, &err))
    return NRT_FAILURE;
  live[RUNTIME] = 1;
  return NRT_SUCCESS;
}

void nrt_close(void) {
  calls[CALL_nrt_close]++;
  if (live[RUNTIME])
    ir_clear(&ir);
  live[RUNTIME] = 0;
  memset(counted, 0, sizeof counted);
}

enum nrt_status nrt_get_visible_vnc_count(uint32_t *count) {
  ENTER(nrt_get_visible_vnc_count);
  *count = (uint32_t)n_cores();
  return NRT_SUCCESS;
}

enum nrt_status nrt_get_version(struct nrt_version *v, size_t size) {
  ENTER(nrt_get_version);
  if (size != sizeof *v)
    return NRT_INVALID;
  *v = (struct nrt_version){.rt_major = 2};
  snprintf(v->rt_detail, sizeof v->rt_detail, NRT_STAND_IN ": simulates, no device");
  return NRT_SUCCESS;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

struct nrt_model {
  struct arena arena;
  int core;
  struct neff_opened package;
  struct sim_program program;
};

/* As the vendor's compiler names the inputs that a kernel writes. */
static void put_name(const struct neff_opened *x, bool is_output, int k, char out[NRT_NAME_SIZE]) {
  bool is_written = false;
  for (int i = 0; !is_output && i < x->n_outputs; i++)
    is_written |= x->outputs[i].alias_of == k;
  snprintf(out, NRT_NAME_SIZE, "%.200s%s", is_output ? x->outputs[k].name : x->inputs[k].name,
           is_written ? ".must_alias_input" : "");
}

static enum status open_package(struct nrt_model *m, const void *neff, size_t size, struct diags *ds,
                                struct error *err) {
  struct neff x;
  MlirModule module;
  enum status st = neff_read(&m->arena, neff, size, NEFF_LIMITS, &x, err);
  if (!st)
    st = neff_package_open(&m->arena, &x, &m->package, err);
  if (st)
    return st;
  st = nisa_parse(&ir, m->package.text, m->package.text_len, "program.mlir", &m->arena, ds, &module);
  if (st)
    return st;
  MlirOperation op = mlirModuleGetOperation(module);
  st = nisa_verify(op, m->package.target, &m->arena, ds);
  if (!st)
    st = sim_decode(op, m->package.kernel, &m->arena, ds, &m->program);
  mlirModuleDestroy(module);
  return st;
}

enum nrt_status nrt_load(const void *neff, size_t size, int32_t vnc, int32_t vnc_count, struct nrt_model **model) {
  struct error err = {0};
  struct diags ds;
  ENTER_RUNNING(nrt_load);
  if (!neff || vnc < 0 || vnc_count != 1 || !model)
    return NRT_INVALID;
  if (vnc >= n_cores())
    return NRT_LOAD_NOT_ENOUGH_NC;
  struct nrt_model *m = new_zeroed(MODEL, sizeof *m);
  if (!m)
    return NRT_FAIL_HOST_MEM_ALLOC;
  arena_init(&m->arena);
  diags_init(&ds, &m->arena);
  m->core = vnc;
  if (open_package(m, neff, size, &ds, &err)) {
    fprintf(stderr, "libnrt stand-in: %s\n", ds.n ? ds.v[0].message : err.text);
    arena_clear(&m->arena);
    release(MODEL, m);
    return NRT_INVALID;
  }
  *model = m;
  return NRT_SUCCESS;
}

/* One device only. */
enum nrt_status nrt_load_collectives(const void *neff, size_t size, int32_t vnc, int32_t vnc_count,
                                     uint32_t ctx_device_id, uint32_t ctx_device_count, struct nrt_model **model) {
  ENTER_RUNNING(nrt_load_collectives);
  return ctx_device_id || ctx_device_count != 1 ? NRT_INVALID : nrt_load(neff, size, vnc, vnc_count, model);
}

enum nrt_status nrt_unload(struct nrt_model *m) {
  const enum nrt_status failing = enter(CALL_nrt_unload);
  arena_clear(&m->arena); /* a real runtime cannot be asked a second time either */
  release(MODEL, m);
  return failing;
}

static bool fill_info(const struct neff_opened *x, bool is_output, int k, struct nrt_tensor_info *out) {
  const struct neff_io *io = is_output ? &x->outputs[k] : &x->inputs[k];
  *out = (struct nrt_tensor_info){.usage = is_output ? NRT_USAGE_OUTPUT : NRT_USAGE_INPUT,
                                  .size = dtype_size(io->dtype),
                                  .dtype = nrt_dtype_from(io->dtype),
                                  .ndim = (uint32_t)io->rank,
                                  .shape = calloc((size_t)io->rank + 1, sizeof *out->shape)};
  put_name(x, is_output, k, out->name);
  for (int d = 0; out->shape && d < io->rank; d++) {
    out->shape[d] = (uint32_t)io->dims[d];
    out->size *= (size_t)io->dims[d];
  }
  return out->shape;
}

static void free_info(struct nrt_tensor_info_array *info) {
  for (uint64_t k = 0; k < info->tensor_count; k++)
    free(info->tensor_array[k].shape);
  release(INFO, info);
}

enum nrt_status nrt_get_model_tensor_info(struct nrt_model *m, struct nrt_tensor_info_array **out) {
  const struct neff_opened *x = &m->package;
  const int n = x->n_inputs + x->n_outputs;
  bool ok = true;
  ENTER_RUNNING(nrt_get_model_tensor_info);
  struct nrt_tensor_info_array *info = new_zeroed(INFO, sizeof *info + (size_t)n * sizeof *info->tensor_array);
  for (int k = 0; info && k < n; k++) {
    const bool is_output = k >= x->n_inputs;
    ok &= fill_info(x, is_output, is_output ? k - x->n_inputs : k, &info->tensor_array[info->tensor_count++]);
  }
  if (info && !ok) {
    free_info(info);
    info = NULL;
  }
  *out = info;
  return info ? NRT_SUCCESS : NRT_FAIL_HOST_MEM_ALLOC;
}

enum nrt_status nrt_free_model_tensor_info(struct nrt_tensor_info_array *info) {
  const enum nrt_status failing = enter(CALL_nrt_free_model_tensor_info);
  free_info(info);
  return failing;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

struct nrt_tensor {
  int core;
  size_t size;
  char *data;
};

enum nrt_status nrt_tensor_allocate(int placement, int vnc, size_t size, const char *name, struct nrt_tensor **tensor) {
  ENTER_RUNNING(nrt_tensor_allocate);
  if (placement != NRT_PLACEMENT_DEVICE || vnc < 0 || vnc >= n_cores() || !name)
    return NRT_INVALID;
  struct nrt_tensor *t = new_zeroed(TENSOR, sizeof *t);
  char *data = t ? malloc(size + 1) : NULL;
  if (!data) {
    release(TENSOR, t);
    return NRT_RESOURCE;
  }
  memset(data, 0xa5, size); /* a device's memory is not zero */
  *t = (struct nrt_tensor){vnc, size, data};
  *tensor = t;
  return NRT_SUCCESS;
}

void nrt_tensor_free(struct nrt_tensor **tensor) {
  calls[CALL_nrt_tensor_free]++;
  if (*tensor)
    free((*tensor)->data);
  release(TENSOR, *tensor);
  *tensor = NULL;
}

static bool is_inside(const struct nrt_tensor *t, size_t offset, size_t size) {
  return offset <= t->size && size <= t->size - offset;
}

enum nrt_status nrt_tensor_write(struct nrt_tensor *t, const void *from, size_t offset, size_t size) {
  ENTER_RUNNING(nrt_tensor_write);
  if (!is_inside(t, offset, size))
    return NRT_INVALID;
  memcpy(t->data + offset, from, size);
  return NRT_SUCCESS;
}

enum nrt_status nrt_tensor_read(const struct nrt_tensor *t, void *to, size_t offset, size_t size) {
  ENTER_RUNNING(nrt_tensor_read);
  if (!is_inside(t, offset, size))
    return NRT_INVALID;
  memcpy(to, t->data + offset, size);
  return NRT_SUCCESS;
}

/* ---- sets -------------------------------------------------------------------------------------------------------- */

enum { SET_MAX = 256 };

struct set {
  int n;
  struct {
    char name[NRT_NAME_SIZE];
    struct nrt_tensor *tensor;
  } v[SET_MAX];
};

enum nrt_status nrt_allocate_tensor_set(void **set) {
  ENTER_RUNNING(nrt_allocate_tensor_set);
  *set = new_zeroed(SET, sizeof(struct set));
  return *set ? NRT_SUCCESS : NRT_FAIL_HOST_MEM_ALLOC;
}

void nrt_destroy_tensor_set(void **set) {
  calls[CALL_nrt_destroy_tensor_set]++;
  release(SET, *set);
  *set = NULL;
}

enum nrt_status nrt_add_tensor_to_tensor_set(void *set, const char *name, struct nrt_tensor *tensor) {
  struct set *s = set;
  ENTER_RUNNING(nrt_add_tensor_to_tensor_set);
  if (s->n == SET_MAX || strlen(name) >= NRT_NAME_SIZE || !tensor)
    return NRT_INVALID;
  snprintf(s->v[s->n].name, NRT_NAME_SIZE, "%s", name);
  s->v[s->n++].tensor = tensor;
  return NRT_SUCCESS;
}

/* The data of the model's tensor in a set; NULL if it is not there, on another core or of another size. */
static void *find_data(const struct nrt_model *m, const struct set *s, bool is_output, int k, size_t size) {
  char name[NRT_NAME_SIZE];
  put_name(&m->package, is_output, k, name);
  for (int i = 0; i < s->n; i++)
    if (!strcmp(s->v[i].name, name) && s->v[i].tensor->core == m->core && s->v[i].tensor->size >= size)
      return s->v[i].tensor->data;
  return NULL;
}

/* ---- executions -------------------------------------------------------------------------------------------------- */

/* The arrays of the tensors in a set; false if one is not there. */
static bool take_arrays(struct arena *a, const struct nrt_model *m, const struct set *s, bool is_output,
                        struct trace_array *out) {
  const int n = is_output ? m->package.n_outputs : m->package.n_inputs;
  bool ok = s->n == n;
  for (int k = 0; ok && k < n; k++) {
    const struct neff_io *io = is_output ? &m->package.outputs[k] : &m->package.inputs[k];
    out[k].shape = hlo_shape_array(a, io->dtype, io->rank, io->dims);
    out[k].data = find_data(m, s, is_output, k, (size_t)hlo_shape_elements(&out[k].shape) * dtype_size(io->dtype));
    ok = out[k].data;
  }
  return ok;
}

static enum nrt_status simulate(struct arena *a, const struct nrt_model *m, const struct trace_array *in,
                                const struct trace_array *out) {
  const struct sim_options options = {.memory_max = INT64_C(1) << 40};
  const int n_out = m->package.n_outputs;
  struct trace_array *got = arena_dup(a, out, ((size_t)n_out + 1) * sizeof *out);
  struct check_binding b;
  struct sim_fault fault = {0};
  struct diags ds;
  diags_init(&ds, a);
  enum status st = check_bind(&m->program, m->package.n_inputs, in, n_out, got, a, &ds, &b);
  if (!st)
    st = sim_run(&m->program, b.args, b.results, &options, NULL, &fault);
  if (st) {
    fprintf(stderr, "libnrt stand-in: %s\n", fault.kind ? fault.text : ds.n ? ds.v[0].message : "a bad program");
    return NRT_EXEC_COMPLETED_WITH_ERR;
  }
  for (int k = 0; k < n_out; k++) {
    const enum dtype t = out[k].shape.dtype;
    const void *data = got[k].shape.dtype == t ? got[k].data : check_convert_array(a, &got[k], t).data;
    memcpy(out[k].data, data, (size_t)hlo_shape_elements(&out[k].shape) * dtype_size(t));
  }
  return NRT_SUCCESS;
}

enum nrt_status nrt_execute(struct nrt_model *m, const void *in_set, void *out_set) {
  struct arena a;
  ENTER_RUNNING(nrt_execute);
  arena_init(&a);
  struct trace_array *in = arena_new_array(&a, struct trace_array, (size_t)m->package.n_inputs + 1);
  struct trace_array *out = arena_new_array(&a, struct trace_array, (size_t)m->package.n_outputs + 1);
  memset(in, 0, ((size_t)m->package.n_inputs + 1) * sizeof *in);
  memset(out, 0, ((size_t)m->package.n_outputs + 1) * sizeof *out);
  const enum nrt_status st = take_arrays(&a, m, in_set, false, in) && take_arrays(&a, m, out_set, true, out)
                                 ? simulate(&a, m, in, out)
                                 : NRT_EXEC_BAD_INPUT;
  arena_clear(&a);
  return st;
}

/* ---- profiles ---------------------------------------------------------------------------------------------------- */

enum nrt_status nrt_profile_start(struct nrt_model *m, const char *file) {
  (void)m;
  ENTER_RUNNING(nrt_profile_start);
  if (live[PROFILE] || !file)
    return NRT_INVALID;
  live[PROFILE] = 1;
  return NRT_SUCCESS;
}

enum nrt_status nrt_profile_stop(const char *file) {
  const enum nrt_status failing = enter(CALL_nrt_profile_stop);
  live[PROFILE] = 0;
  FILE *f = failing ? NULL : fopen(file, "we");
  if (!f)
    return failing ? failing : NRT_INVALID;
  fputs(NRT_STAND_IN ": there is no profile without a device\n", f);
  return fclose(f) ? NRT_FAILURE : NRT_SUCCESS;
}
