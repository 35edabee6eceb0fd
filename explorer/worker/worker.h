/* worker: the processes that know CPython and MLIR.
 *
 * The zygote loads everything once, compiles a small kernel so that nothing is left to be initialised, and then makes
 * children on request.  A child jails itself, tells the zygote which layers stand, waits for its one job, runs it and
 * exits.  The zygote holds no secret: it is a program of its own, started with an empty environment.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "ir/ir.h"
#include "jail/jail.h"

struct worker_config {
  const char *python_dir, *site_dir; /* absolute */
};

/* Reads --python-dir and --site-dir; the defaults are paths_find's. */
MUST_USE enum status worker_config_parse(int argc, char **argv, struct arena *a, struct worker_config *out,
                                         struct error *err);

/* Everything that a job would otherwise pay for.  ST_BUG when a thread is left running. */
MUST_USE enum status worker_warm_up(const struct worker_config *cfg, struct ir *ir, struct error *err);
/* What a child sees of the file system, and its limits. */
MUST_USE enum status worker_jail(const struct worker_config *cfg, struct jail *j, struct error *err);

/* Serves the control socket WIRE_CTL_FD until the server is gone; exit status for main. */
int zygote_main(const struct worker_config *cfg);

/* The life of a child, from the moment clone3 returned in it. */
_Noreturn void child_main(const struct jail *j, struct ir *ir, int job_fd);

#endif
