/* device: runs NEFFs on Neuron devices through libnrt.
 *
 * A device owns the models and tensors that were made with it: device_close releases what is left, in the right order, so
 * that a caller that fails only has to call it.  Handles must not be used from two threads at once.
 *
 * Every call that libnrt refuses is a diagnostic DG_NEURON_STATUS that has the function, the name and the number of the status,
 * and what it means.
 */
#ifndef NEFF_DEVICE_H
#define NEFF_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct device;
struct device_model;
struct device_tensor;

struct device_options {
  const char *library; /* path of libnrt; NULL: searched (neff/nrt.h) */
  const char *cores;   /* those that the process may use, "2" or "2-3"; NULL: as NEURON_RT_VISIBLE_CORES says */
};

struct device_about {
  const char *path, *version; /* of the library; version "" if it has no function for it */
  bool is_stand_in;           /* no device: the tests' library, which runs the simulator */
  int cores;                  /* that are visible; -1: not known */
};

/* Loads the library and initialises the runtime.  ST_INPUT with a diagnostic. */
MUST_USE enum status device_open(const struct device_options *o, struct diags *ds, struct device **out);
/* Unloads all models, frees all tensors, and closes the runtime.  A call that libnrt refuses is a diagnostic and ST_INPUT;
 * everything else is released nevertheless.  NULL is fine. */
enum status device_close(struct device *d, struct diags *ds);
/* Borrowed from d. */
const struct device_about *device_about(const struct device *d);

/* An input or output of a model. */
struct device_io {
  char *name;
  bool is_output;
  int type;    /* enum nrt_dtype */
  size_t size; /* bytes */
  int rank;
  int64_t *dims;
};

/* The part that a process has in a program that runs on several devices with collective operations. */
struct device_group {
  uint32_t rank, size;
};

/* Loads the NEFF on a core; core 0 is the first visible one.  group: NULL for a program on its own.  A simulation package
 * is refused (DG_NEURON_PACKAGE), unless the library is the stand-in. */
MUST_USE enum status device_load(struct device *d, const void *neff, size_t size, int core,
                                 const struct device_group *group, struct diags *ds, struct device_model **out);
enum status device_unload(struct device_model *m, struct diags *ds);
/* Returns their number; *out is borrowed from m. */
int device_ios(const struct device_model *m, const struct device_io **out);
int device_core(const struct device_model *m);

/* A tensor in the memory of a core. */
MUST_USE enum status device_tensor_new(struct device *d, int core, size_t size, const char *name, struct diags *ds,
                                       struct device_tensor **out);
void device_tensor_free(struct device_tensor *t); /* NULL is fine */
MUST_USE enum status device_tensor_write(struct device_tensor *t, size_t offset, const void *from, size_t size,
                                         struct diags *ds);
MUST_USE enum status device_tensor_read(struct device_tensor *t, size_t offset, void *to, size_t size,
                                        struct diags *ds);

struct device_argument {
  const char *name;
  struct device_tensor *tensor;
};
/* Executes the model once.  A tensor may be an input and an output.  *ns: the time of the call alone, on this host; may be
 * NULL. */
MUST_USE enum status device_execute(struct device_model *m, int n_in, const struct device_argument *in, int n_out,
                                    const struct device_argument *out, struct diags *ds, int64_t *ns);

/* Writes the profile of the executions between both calls to a file, which neuron-profile reads (NTFF).  DG_NEURON_FUNCTION if
 * the library has no such function. */
MUST_USE enum status device_profile_start(struct device_model *m, const char *path, struct diags *ds);
MUST_USE enum status device_profile_stop(struct device_model *m, const char *path, struct diags *ds);

#endif
