#include "neff/device.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "neff/neff.h"
#include "neff/nrt.h"

/* Models and tensors are in lists, so that device_close finds them. */
struct device_model {
  struct device_model *prev, *next;
  struct device *device;
  struct nrt_model *handle;
  int core, n;
  struct device_io *ios;
};

struct device_tensor {
  struct device_tensor *prev, *next;
  struct device *device;
  struct nrt_tensor *handle;
  size_t size;
};

struct device {
  struct nrt lib;
  struct device_about about;
  char version[NRT_DETAIL_SIZE + 96];
  bool is_open;
  struct device_model *models;
  struct device_tensor *tensors;
};

#define LIST_ADD(list, x) \
  do { \
    (x)->prev = NULL; \
    (x)->next = (list); \
    if ((x)->next) \
      (x)->next->prev = (x); \
    (list) = (x); \
  } while (0)
#define LIST_REMOVE(list, x) \
  do { \
    if ((x)->next) \
      (x)->next->prev = (x)->prev; \
    if ((x)->prev) \
      (x)->prev->next = (x)->next; \
    else \
      (list) = (x)->next; \
  } while (0)

static enum status no_memory(struct diags *ds) {
  diag_add(ds, DS_ERROR, DG_MEMORY_LIMIT, NULL, "there is no memory for the Neuron runtime");
  return ST_NOMEM;
}

/* Makes a diagnostic of a status other than success. */
static enum status check(struct diags *ds, const char *function, const char *of, enum nrt_status st) {
  const char *name = nrt_status_name(st);
  if (st == NRT_SUCCESS)
    return ST_OK;
  if (name)
    diag_add(ds, DS_ERROR, DG_NEURON_STATUS, NULL, "%s%s%s: %s (%d): %s", function, *of ? " of " : "", of, name, st,
             nrt_status_meaning(st));
  else
    diag_add(ds, DS_ERROR, DG_NEURON_STATUS, NULL, "%s%s%s: status %d, which is not documented", function,
             *of ? " of " : "", of, st);
  return ST_INPUT;
}

static enum status refuse_missing(const struct device *d, const char *function, struct diags *ds) {
  diag_add(ds, DS_ERROR, DG_NEURON_FUNCTION, NULL, "%s has no function %s", d->lib.path, function);
  return ST_INPUT;
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

/* "2" or "2-3". */
static bool is_range_of_cores(const char *s) {
  char *end;
  const unsigned long first = strtoul(s, &end, 10);
  if (*s < '0' || *s > '9' || (*end && *end != '-'))
    return false;
  const char *rest = *end ? end + 1 : NULL;
  const unsigned long last = rest ? strtoul(rest, &end, 10) : first;
  return (!rest || (*rest >= '0' && *rest <= '9')) && !*end && first <= last && last < 4096;
}

static enum status choose_cores(const struct device_options *o, struct diags *ds) {
  if (!o->cores)
    return ST_OK;
  if (!is_range_of_cores(o->cores)) {
    diag_add(ds, DS_ERROR, DG_BAD_ARGUMENT, NULL, "cores %.40s: expected a number or a range, such as 2 or 2-3",
             o->cores);
    return ST_INPUT;
  }
  return setenv("NEURON_RT_VISIBLE_CORES", o->cores, 1) ? no_memory(ds) : ST_OK;
}

static enum status describe(struct device *d, struct diags *ds) {
  struct nrt_version v = {0};
  uint32_t n = 0;
  enum status st = ST_OK;
  d->about = (struct device_about){.path = d->lib.path, .version = d->version, .cores = -1};
  if (d->lib.nrt_get_version)
    st = check(ds, "nrt_get_version", "", d->lib.nrt_get_version(&v, sizeof v));
  if (!st && d->lib.nrt_get_version) {
    v.rt_detail[NRT_DETAIL_SIZE - 1] = 0;
    snprintf(d->version, sizeof d->version, "%llu.%llu.%llu.%llu%s%s", (unsigned long long)v.rt_major,
             (unsigned long long)v.rt_minor, (unsigned long long)v.rt_patch, (unsigned long long)v.rt_maintenance,
             *v.rt_detail ? ", " : "", v.rt_detail);
    d->about.is_stand_in = !strncmp(v.rt_detail, NRT_STAND_IN, sizeof NRT_STAND_IN - 1);
  }
  if (!st && d->lib.nrt_get_visible_vnc_count) {
    st = check(ds, "nrt_get_visible_vnc_count", "", d->lib.nrt_get_visible_vnc_count(&n));
    d->about.cores = (int)n;
  }
  return st;
}

enum status device_open(const struct device_options *o, struct diags *ds, struct device **out) {
  struct device *d = calloc(1, sizeof *d);
  if (!d)
    return no_memory(ds);
  enum status st = choose_cores(o, ds);
  if (!st)
    st = nrt_library_open(o->library, ds, &d->lib);
  if (!st)
    st = describe(d, ds);
  if (!st)
    st = check(ds, "nrt_init", "", d->lib.nrt_init(NRT_FRAMEWORK_NONE, "nkx", "1.0"));
  d->is_open = !st;
  if (st)
    device_close(d, ds);
  else
    *out = d;
  return st;
}

enum status device_close(struct device *d, struct diags *ds) {
  enum status st = ST_OK;
  if (!d)
    return ST_OK;
  for (struct device_model *m = d->models, *next; m; m = next) {
    next = m->next;
    const enum status one = device_unload(m, ds);
    st = st ? st : one;
  }
  for (struct device_tensor *t = d->tensors, *next; t; t = next) {
    next = t->next;
    device_tensor_free(t);
  }
  if (d->is_open)
    d->lib.nrt_close();
  nrt_library_close(&d->lib);
  free(d);
  return st;
}

const struct device_about *device_about(const struct device *d) {
  return &d->about;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

static void clear_ios(struct device_model *m) {
  for (int k = 0; k < m->n; k++) {
    free(m->ios[k].name);
    free(m->ios[k].dims);
  }
  free(m->ios);
}

static bool copy_io(const struct nrt_tensor_info *from, struct device_io *to) {
  *to = (struct device_io){.name = strndup(from->name, NRT_NAME_SIZE - 1),
                           .is_output = from->usage == NRT_USAGE_OUTPUT,
                           .type = from->dtype,
                           .size = from->size,
                           .rank = (int)from->ndim,
                           .dims = calloc(from->ndim + 1, sizeof *to->dims)};
  for (uint32_t i = 0; to->dims && i < from->ndim; i++)
    to->dims[i] = from->shape[i];
  return to->name && to->dims;
}

/* Copies what the library says of the model's tensors. */
static enum status read_ios(struct device_model *m, struct diags *ds) {
  const struct nrt *lib = &m->device->lib;
  struct nrt_tensor_info_array *info = NULL;
  enum status st = check(ds, "nrt_get_model_tensor_info", "", lib->nrt_get_model_tensor_info(m->handle, &info));
  if (st)
    return st;
  if (!info) {
    diag_add(ds, DS_ERROR, DG_NEURON_STATUS, NULL, "nrt_get_model_tensor_info: it succeeded and gave nothing");
    return ST_INPUT;
  }
  m->ios = calloc((size_t)info->tensor_count + 1, sizeof *m->ios);
  for (uint64_t k = 0; !st && k < info->tensor_count; k++) {
    if (!m->ios || !copy_io(&info->tensor_array[k], &m->ios[k]))
      st = no_memory(ds);
    m->n += m->ios != NULL;
  }
  const enum status freed = check(ds, "nrt_free_model_tensor_info", "", lib->nrt_free_model_tensor_info(info));
  return st ? st : freed;
}

/* A device could not execute it: better to say so than to wait for the runtime's status. */
static enum status check_package(const struct device *d, const void *neff, size_t size, struct diags *ds) {
  struct neff_header h;
  struct error err;
  if (neff_header_get(neff, size, &h, &err)) {
    diag_add(ds, DS_ERROR, DG_NEURON_NEFF, NULL, "it is no NEFF: %s", err.text);
    return ST_INPUT;
  }
  if (!(h.features & NEFF_FEATURE_SIMULATION) || d->about.is_stand_in)
    return ST_OK;
  diag_add(ds, DS_ERROR, DG_NEURON_PACKAGE, NULL,
           "it is a simulation package, which no device executes: the encoding of engine instructions is not public")
      ->hint = "compile the kernel with the vendor's compiler: nkx neff vendor; or run it on the simulated machine, "
               "without --device neuron";
  return ST_INPUT;
}

enum status device_load(struct device *d, const void *neff, size_t size, int core, const struct device_group *group,
                        struct diags *ds, struct device_model **out) {
  enum status st = check_package(d, neff, size, ds);
  if (!st && group && !d->lib.nrt_load_collectives)
    st = refuse_missing(d, "nrt_load_collectives", ds);
  if (st)
    return st;
  struct device_model *m = calloc(1, sizeof *m);
  if (!m)
    return no_memory(ds);
  m->device = d;
  m->core = core;
  if (group)
    st = check(ds, "nrt_load_collectives", "",
               d->lib.nrt_load_collectives(neff, size, core, 1, group->rank, group->size, &m->handle));
  else
    st = check(ds, "nrt_load", "", d->lib.nrt_load(neff, size, core, 1, &m->handle));
  if (st) {
    free(m);
    return st;
  }
  LIST_ADD(d->models, m);
  st = read_ios(m, ds);
  if (st)
    device_unload(m, ds);
  else
    *out = m;
  return st;
}

enum status device_unload(struct device_model *m, struct diags *ds) {
  struct device *d = m->device;
  const enum status st = check(ds, "nrt_unload", "", d->lib.nrt_unload(m->handle));
  LIST_REMOVE(d->models, m);
  clear_ios(m);
  free(m);
  return st;
}

int device_ios(const struct device_model *m, const struct device_io **out) {
  *out = m->ios;
  return m->n;
}

int device_core(const struct device_model *m) {
  return m->core;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

enum status device_tensor_new(struct device *d, int core, size_t size, const char *name, struct diags *ds,
                              struct device_tensor **out) {
  struct device_tensor *t = calloc(1, sizeof *t);
  if (!t)
    return no_memory(ds);
  t->device = d;
  t->size = size;
  enum status st = check(ds, "nrt_tensor_allocate", name,
                         d->lib.nrt_tensor_allocate(NRT_PLACEMENT_DEVICE, core, size, name, &t->handle));
  if (st) {
    free(t);
    return st;
  }
  LIST_ADD(d->tensors, t);
  *out = t;
  return ST_OK;
}

void device_tensor_free(struct device_tensor *t) {
  if (!t)
    return;
  t->device->lib.nrt_tensor_free(&t->handle);
  LIST_REMOVE(t->device->tensors, t);
  free(t);
}

enum status device_tensor_write(struct device_tensor *t, size_t offset, const void *from, size_t size,
                                struct diags *ds) {
  assert(offset <= t->size && size <= t->size - offset);
  return check(ds, "nrt_tensor_write", "", t->device->lib.nrt_tensor_write(t->handle, from, offset, size));
}

enum status device_tensor_read(struct device_tensor *t, size_t offset, void *to, size_t size, struct diags *ds) {
  assert(offset <= t->size && size <= t->size - offset);
  return check(ds, "nrt_tensor_read", "", t->device->lib.nrt_tensor_read(t->handle, to, offset, size));
}

/* ---- executions -------------------------------------------------------------------------------------------------- */

/* Makes a set of the arguments in *set, which the caller destroys in any case. */
static enum status make_set(const struct nrt *lib, int n, const struct device_argument *v, struct diags *ds,
                            void **set) {
  enum status st = check(ds, "nrt_allocate_tensor_set", "", lib->nrt_allocate_tensor_set(set));
  for (int k = 0; !st && k < n; k++)
    st = check(ds, "nrt_add_tensor_to_tensor_set", v[k].name,
               lib->nrt_add_tensor_to_tensor_set(*set, v[k].name, v[k].tensor->handle));
  return st;
}

enum status device_execute(struct device_model *m, int n_in, const struct device_argument *in, int n_out,
                           const struct device_argument *out, struct diags *ds, int64_t *ns) {
  const struct nrt *lib = &m->device->lib;
  void *inputs = NULL, *outputs = NULL;
  enum status st = make_set(lib, n_in, in, ds, &inputs);
  if (!st)
    st = make_set(lib, n_out, out, ds, &outputs);
  if (!st) {
    const int64_t began = clock_now_ns();
    const enum nrt_status done = lib->nrt_execute(m->handle, inputs, outputs);
    if (ns)
      *ns = clock_now_ns() - began;
    st = check(ds, "nrt_execute", "", done);
  }
  if (outputs)
    lib->nrt_destroy_tensor_set(&outputs);
  if (inputs)
    lib->nrt_destroy_tensor_set(&inputs);
  return st;
}

enum status device_profile_start(struct device_model *m, const char *path, struct diags *ds) {
  const struct device *d = m->device;
  return d->lib.nrt_profile_start && d->lib.nrt_profile_stop
             ? check(ds, "nrt_profile_start", "", d->lib.nrt_profile_start(m->handle, path))
             : refuse_missing(d, "nrt_profile_start", ds);
}

enum status device_profile_stop(struct device_model *m, const char *path, struct diags *ds) {
  return check(ds, "nrt_profile_stop", "", m->device->lib.nrt_profile_stop(path));
}
