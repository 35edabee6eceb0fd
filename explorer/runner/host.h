/* host: a Neuron host that asks a server for runs (api/runs.h has the protocol).
 *
 *   host.c    asks, and takes a run from its files to its end
 *   probe.c   what this host is
 *   task.c    compiles and executes, in a process of its own
 *   files.c   files from and to the server
 *
 * Each run has a process of its own: libnrt may crash or hang there without harm to the runner, which meanwhile says that it is
 * alive.  That process ends with the runner.
 */
#ifndef RUNNER_HOST_H
#define RUNNER_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <signal.h>

#include <jansson.h>

#include "base/arena.h"
#include "neff/vendor.h"
#include "runner/wire.h"

enum {
  HOST_FILE_MAX = 8 << 20, /* bytes of a file that the server takes (store/runs.h) */
  HOST_RUN_S = 1800,
};

struct host_config {
  const char *name, *instance_type, *target; /* NULL: found out, none, as the instance type says */
  const char *library, *cores;               /* of libnrt (neff/device.h) */
  int repeats, run_s;                        /* executions after the first; seconds after which a run is stopped */
  bool is_once;                              /* ends after a run */
  bool only_compiles;                        /* libnrt is not looked for */
  struct vendor_options vendor;
};

struct host {
  const struct host_config *cfg;
  struct wire *wire;
  char id[24];
  json_t *about;
  bool can_execute;
  const volatile sig_atomic_t *stop;
};

/* A run that the server has given. */
struct host_run {
  char run[72], fence[48]; /* fence: the header that names the lease */
  const char *target;
  bool executes, profiles;
  bool wants_nki; /* instead of a NEFF */
  int lease_ms;
  const json_t *about;
  const char *dir; /* a directory of its own */
};

/* Serves until *stop is set, or the token is not valid any more (ST_DENIED). */
MUST_USE enum status host_serve(struct host *h, struct error *err);

/* What this host is, for the server: an object.  ST_INPUT: it has no compiler, so that it is of no use. */
MUST_USE enum status host_probe(const struct host_config *cfg, json_t **out, bool *can_execute, struct error *err);

/* Does the run, in the process that this is; writes result.json and the files beside it into run->dir.  Standard output is the
 * log.  Returns the exit status. */
int host_do_task(const struct host_config *cfg, const struct host_run *run);

/* ST_DENIED: the lease is lost.  ST_BUSY: the server cannot be reached, or refuses for now. */
MUST_USE enum status host_fetch(struct host *h, const struct host_run *run, const char *name, struct error *err);
/* Sends a file of run->dir, if it is there, and writes its SHA-256 in hexadecimal digits; "" if there is none.  ST_LIMIT: it is
 * too large. */
MUST_USE enum status host_bring(struct host *h, const struct host_run *run, const char *name, char sha256[65],
                                struct error *err);
/* Maps an answer to the statuses above. */
MUST_USE enum status host_judge(const struct wire_answer *a, struct error *err);

/* Whole files; ST_IO, ST_INPUT if there is none. */
MUST_USE enum status host_read_file(const char *dir, const char *name, struct buf *out, struct error *err);
MUST_USE enum status host_write_file(const char *dir, const char *name, const void *data, size_t len,
                                     struct error *err);

#endif
