#include "neff/nrt.h"

#include <assert.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert(sizeof(void *) == 8 && offsetof(struct nrt_tensor_info, size) == 264 &&
                  offsetof(struct nrt_tensor_info, shape) == 280 && sizeof(struct nrt_tensor_info) == 296,
              "the structure is that of the vendor's header");

/* ---- statuses and types ------------------------------------------------------------------------------------------ */

const char *nrt_status_name(enum nrt_status st) {
  switch (st) {
#define NRT_STATUS(number, name, what) \
  case NRT_##name: \
    return "NRT_" #name;
#include "neff/nrt_status.def"
#undef NRT_STATUS
  }
  return NULL;
}

const char *nrt_status_meaning(enum nrt_status st) {
  switch (st) {
#define NRT_STATUS(number, name, what) \
  case NRT_##name: \
    return what;
#include "neff/nrt_status.def"
#undef NRT_STATUS
  }
  return NULL;
}

static const enum dtype types[] = {
#define NRT_DTYPE(number, name, type) [number] = type,
#include "neff/nrt_dtype.def"
#undef NRT_DTYPE
};
enum { N_TYPES = sizeof types / sizeof *types };

enum dtype nrt_dtype_to(int t) {
  return t >= 0 && t < N_TYPES ? types[t] : DT_NONE;
}

enum nrt_dtype nrt_dtype_from(enum dtype t) {
  for (int k = 0; k < N_TYPES; k++)
    if (t != DT_NONE && types[k] == t)
      return (enum nrt_dtype)k;
  switch (dtype_size(t)) {
  case 1:
    return NRT_DTYPE_UINT8;
  case 2:
    return NRT_DTYPE_UINT16;
  case 4:
    return NRT_DTYPE_UINT32;
  case 8:
    return NRT_DTYPE_UINT64;
  default:
    return NRT_DTYPE_UNKNOWN;
  }
}

/* ---- the library ------------------------------------------------------------------------------------------------- */

static const char *const places[] = {"libnrt.so.1", "libnrt.so", "/opt/aws/neuron/lib/libnrt.so.1"};
enum { N_PLACES = sizeof places / sizeof *places };

static const struct {
  const char *name;
  size_t at;
  bool is_needed;
} functions[] = {
#define NEEDED true
#define OFFERED false
#define NRT_FUNCTION(kind, result, name, parameters) {#name, offsetof(struct nrt, name), kind},
#include "neff/nrt.def"
#undef NRT_FUNCTION
#undef NEEDED
#undef OFFERED
};

/* The library stays mapped after dlclose: its threads may still run. */
static void *open_library(const char *path, struct nrt *out) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle)
    snprintf(out->path, sizeof out->path, "%s", path);
  return handle;
}

static enum status refuse_library(struct diags *ds, const char *path) {
  const char *why = dlerror();
  struct diag *d = diag_add(ds, DS_ERROR, DG_NEURON_LIBRARY, NULL, "the Neuron runtime's library cannot be loaded: %s",
                            why ? why : path);
  d->hint = "install the package aws-neuronx-runtime-lib on a machine with Neuron devices, or name libnrt.so.1 with "
            "--libnrt or NKX_LIBNRT";
  return ST_INPUT;
}

enum status nrt_library_open(const char *path, struct diags *ds, struct nrt *out) {
  memset(out, 0, sizeof *out);
  if (!path)
    path = getenv("NKX_LIBNRT");
  if (path)
    out->handle = open_library(path, out);
  for (int k = 0; !path && !out->handle && k < N_PLACES; k++)
    out->handle = open_library(places[k], out);
  if (!out->handle)
    return refuse_library(ds, path ? path : places[0]);
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
    void *f = dlsym(out->handle, functions[k].name);
    if (!f && functions[k].is_needed) {
      diag_add(ds, DS_ERROR, DG_NEURON_FUNCTION, NULL, "%s has no function %s: it is no libnrt of version 2", out->path,
               functions[k].name);
      nrt_library_close(out);
      return ST_INPUT;
    }
    memcpy((char *)out + functions[k].at, &f, sizeof f);
  }
  return ST_OK;
}

void nrt_library_close(struct nrt *lib) {
  if (lib->handle)
    dlclose(lib->handle);
  memset(lib, 0, sizeof *lib);
}
