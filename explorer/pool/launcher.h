/* launcher: the process that keeps the privileges with which the service was started.
 *
 * `nkx serve` listens and then splits.  The process that was started stays what it is, with one thread and no ear for
 * anybody outside: it starts zygotes, whose jails need its privileges, reaps what nobody else does, and passes signals on.
 * Its child is the service, which gives its own privileges up (jail/confine.h) and asks for zygotes over a socket: to
 * start one, or to end one that it started, is all that can be asked.  If either of the two ends, so does the other.
 */
#ifndef POOL_LAUNCHER_H
#define POOL_LAUNCHER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "jail/limits.h"

/* How zygotes are started; the strings must outlive the launcher. */
struct launcher_config {
  const char *worker_path;                 /* the nkx-worker binary */
  const char *python_dir, *site_dir;       /* NULL: its own defaults */
  struct jail_limits limits;               /* of one work */
  const char *jail_min;                    /* the least level of the jail; NULL: C */
  const char *jail_without, *jail_failing; /* layers to do without, for tests; NULL: none */
  const char *cgroup_dir;                  /* a delegated control group; NULL: look for one */
  const char *memory_tricks;               /* worker/memory/memory.h; NULL: all */
  int log_format, log_level;               /* of base/log.h; the workers' lines are like ours */
};

struct launcher_end {
  int status;             /* of the service, for exit */
  bool is_to_be_replaced; /* it was asked to end by SIGHUP, and did so well */
};

/* Splits; call it with SIGTERM, SIGINT, SIGHUP and SIGCHLD blocked, before the first thread.  In the service returns true
 * at once, with its end of the socket.  In the launcher returns false once the service and all zygotes are gone;
 * listen_fd is closed as soon as nobody is to connect any more, and -1 then. */
MUST_USE enum status launcher_split(const struct launcher_config *cfg, int *listen_fd, bool *is_service,
                                    int *control_fd, struct launcher_end *end, struct error *err);

#endif
