/* device_run: executes a job's NEFF on a Neuron device, and compares what comes out.
 *
 * A NEFF names its inputs and outputs as the kernel does; an input that the kernel writes is called x.must_alias_input there, and
 * the output x has the same memory.
 */
#ifndef DRIVER_DEVICE_RUN_H
#define DRIVER_DEVICE_RUN_H

#include "base/buf.h"
#include "driver/job.h"
#include "neff/device.h"
#include "trace/trace.h"

struct device_run {
  const struct job_device *job;
  struct arena *arena;
  struct device *device;
  struct device_model *model;
  int n_inputs, n_outputs;
  struct trace_tensor *inputs, *outputs; /* as the NEFF has them, with the kernel's names */
};

struct device_times {
  int64_t first_ns, least_ns, median_ns; /* the last two are -1 without repeats */
};

/* Opens the device and loads the NEFF.  ST_INPUT with diagnostics.  Everything lives in a.  device_run_close must follow in any
 * case, and its status counts if this one is ST_OK. */
MUST_USE enum status device_run_open(const struct job_device *job, struct arena *a, struct diags *ds,
                                     struct device_run *out);
enum status device_run_close(struct device_run *r, struct diags *ds);

/* Executes it on in[n_in], arrays of the tensors `inputs`; out[n_out] get the shapes of `outputs`, and data in the arena.
 * DG_NEURON_NEFF if the tensors are not those of the NEFF. */
MUST_USE enum status device_run_execute(struct device_run *r, int n_in, const struct trace_tensor *inputs,
                                        const struct trace_array *in, int n_out, const struct trace_tensor *outputs,
                                        struct trace_array *out, struct diags *ds, struct device_times *times);

/* Append members of the frame "device" (frames.h). */
void device_run_put_about(struct buf *b, const struct device_run *r);
void device_run_put_times(struct buf *b, const struct device_run *r, const struct device_times *times);

#endif
