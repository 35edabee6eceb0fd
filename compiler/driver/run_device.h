/* run_device: `nkx run --device neuron`: its options, NEFFs without a kernel, and what is shown. */
#ifndef DRIVER_RUN_DEVICE_H
#define DRIVER_RUN_DEVICE_H

#include "driver/terminal.h"
#include "driver/vendor_options.h"

struct run_device {
  struct job_device job;
  struct vendor_command vendor;
  const char *device, *neff_path;
  bool has_options; /* one of those that need --device neuron was given */
};

void run_device_init(struct run_device *d, struct arena *a);

/* Options, for getopt_long: their values are above those of characters. */
enum { RUN_DEVICE = 256, RUN_DEVICE_NEFF, RUN_DEVICE_LIBRARY, RUN_DEVICE_CORES, RUN_DEVICE_REPEAT, RUN_DEVICE_PROFILE };
#define RUN_DEVICE_OPTIONS \
  {"device", required_argument, NULL, RUN_DEVICE}, {"neff", required_argument, NULL, RUN_DEVICE_NEFF}, \
      {"libnrt", required_argument, NULL, RUN_DEVICE_LIBRARY}, {"cores", required_argument, NULL, RUN_DEVICE_CORES}, \
      {"repeat", required_argument, NULL, RUN_DEVICE_REPEAT}, \
      {"device-profile", required_argument, NULL, RUN_DEVICE_PROFILE}, VENDOR_OPTIONS
#define RUN_DEVICE_HELP \
  "  --device neuron            run the kernel on a Neuron device, too, and compare; KERNEL may be a NEFF alone\n" \
  "  --neff FILE                the NEFF of KERNEL; without it, the vendor's compiler makes one\n" \
  "  --libnrt FILE              the runtime's library ($NKX_LIBNRT, libnrt.so.1, or where the vendor's packages put " \
  "it)\n" \
  "  --cores N|N-M              the cores that may be used ($NEURON_RT_VISIBLE_CORES); the first of them is\n" \
  "  --repeat N                 executions after the first, for the time (10)\n" \
  "  --device-profile FILE      write a profile of the first execution there (NTFF), for the vendor's " \
  "tools\n" VENDOR_HELP

/* Reads an option; false if c is not one of these. */
bool run_device_option(struct run_device *d, int c, const char *value, struct terminal *t, enum status *st);

/* Reads the NEFF: of --neff, or `path` if it is one; without one the vendor's compiler is to make it.  Sets t->job.device.
 * *is_alone: `path` is a NEFF of the vendor's compiler, so that there is nothing to simulate. */
MUST_USE enum status run_device_read(struct run_device *d, struct terminal *t, const char *path, bool *is_alone);

/* Runs such a NEFF on inputs of the job.  json_path: as --json, or NULL. */
MUST_USE enum status run_device_alone(struct run_device *d, struct terminal *t, const char *json_path);

#endif
