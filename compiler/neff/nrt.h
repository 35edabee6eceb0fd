/* nrt: libnrt, the library of the Neuron runtime, loaded while the program runs.
 *
 * Nothing links it: a machine without it runs everything else.  Names, signatures, structures and statuses are those of the
 * vendor's headers for version 2 of the interface.  Most callers want neff/device.h, which also releases what it takes.
 */
#ifndef NEFF_NRT_H
#define NEFF_NRT_H

#include <stdint.h>

#include "base/diag.h"
#include "base/dtype.h"

enum nrt_status {
#define NRT_STATUS(number, name, what) NRT_##name = number,
#include "neff/nrt_status.def"
#undef NRT_STATUS
};
/* "NRT_RESOURCE", and what it means; NULL for a number that is not documented. */
const char *nrt_status_name(enum nrt_status st);
const char *nrt_status_meaning(enum nrt_status st);

enum nrt_dtype {
#define NRT_DTYPE(number, name, type) NRT_DTYPE_##name = number,
#include "neff/nrt_dtype.def"
#undef NRT_DTYPE
};
enum dtype nrt_dtype_to(int t); /* DT_NONE if there is no such type here */
/* Of a type that libnrt does not have, the unsigned integer of the same size: at the runtime, a bool is a uint8. */
enum nrt_dtype nrt_dtype_from(enum dtype t);

enum { NRT_FRAMEWORK_NONE = 1 };   /* of nrt_init */
enum { NRT_PLACEMENT_DEVICE = 0 }; /* of nrt_tensor_allocate */
enum { NRT_USAGE_INPUT, NRT_USAGE_OUTPUT };
enum { NRT_NAME_SIZE = 256, NRT_DETAIL_SIZE = 128, NRT_GIT_SIZE = 64 };

struct nrt_model;
struct nrt_tensor;

struct nrt_tensor_info {
  char name[NRT_NAME_SIZE];
  int usage;
  size_t size; /* bytes */
  int dtype;   /* enum nrt_dtype */
  uint32_t *shape, ndim;
};
struct nrt_tensor_info_array {
  uint64_t tensor_count;
  struct nrt_tensor_info tensor_array[];
};
struct nrt_version {
  uint64_t rt_major, rt_minor, rt_patch, rt_maintenance;
  char rt_detail[NRT_DETAIL_SIZE], git_hash[NRT_GIT_SIZE];
};

/* rt_detail of the library that the tests build begins with this: it has libnrt's interface, and runs simulation packages in
 * the simulator. */
#define NRT_STAND_IN "nkx stand-in for tests"

/* A loaded library: its functions, and the path it was found at.  A function that is OFFERED may be NULL. */
struct nrt {
  void *handle;
  char path[512];
#define NRT_FUNCTION(kind, result, name, parameters) result(*name) parameters;
#include "neff/nrt.def"
#undef NRT_FUNCTION
};

/* Loads the library at `path`; NULL: at $NKX_LIBNRT, else where the dynamic linker finds libnrt.so.1, else where the vendor's
 * packages put it.  ST_INPUT with DG_NEURON_LIBRARY or DG_NEURON_FUNCTION. */
MUST_USE enum status nrt_library_open(const char *path, struct diags *ds, struct nrt *out);
void nrt_library_close(struct nrt *lib);

#endif
