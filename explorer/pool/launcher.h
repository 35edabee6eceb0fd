/* launcher: the process that keeps the privileges with which the service was started.
 *
 * `nkx serve` listens and then splits into two processes.  The first one, the launcher, has one thread and reads
 * nothing from clients: it starts zygotes, whose jails need its privileges, reaps processes, and passes signals on.
 * Its child is the service, which gives up its privileges (jail/confine.h) and asks for zygotes over a socket.  It can
 * ask the launcher to start a zygote of a version that is installed, and to end one that it asked for, and for nothing else.  If either of the two
 * ends, so does the other.
 */
#ifndef POOL_LAUNCHER_H
#define POOL_LAUNCHER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "jail/limits.h"
#include "pool/versions.h"

/* How zygotes are started; the strings must outlive the launcher. */
struct launcher_config {
  const struct versions *versions;         /* whose workers there are */
  struct jail_limits limits;               /* of one work */
  const char *jail_min;                    /* the least level of the jail; NULL: C */
  const char *jail_without, *jail_failing; /* layers to leave out, or to let fail, for tests; NULL: none */
  const char *cgroup_dir;                  /* a delegated control group; NULL: look for one */
  const char *memory_tricks;               /* worker/memory/memory.h; NULL: all */
  int log_format, log_level;               /* of base/log.h; for the workers, too */
};

struct launcher_end {
  int status;             /* of the service, for exit */
  bool is_to_be_replaced; /* SIGHUP ended it, and without a failure */
  int warm_fd;            /* then: the control socket of the successor's zygote, -1: there is none */
  pid_t warm_pid;
};

/* Splits; to be called with SIGTERM, SIGINT, SIGHUP and SIGCHLD blocked and before the first thread is started.  In the
 * service it returns at once, with *is_service true and its end of the socket in *control_fd.  In the launcher it
 * returns once the service and all zygotes are gone, with *end set; the n_listen descriptors were closed and are -1 unless a
 * successor is to take them over. */
MUST_USE enum status launcher_split(const struct launcher_config *cfg, int *listen_fds, int n_listen, bool *is_service,
                                    int *control_fd, struct launcher_end *end, struct error *err);

/* The successor's zygote is started before the service ends, so that it is warm when the successor wants one.  To be called
 * before the program is replaced: the successor's launcher then finds it. */
void launcher_pass_warm(const struct launcher_end *end);

#endif
