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
  const char *cgroup_dir;            /* NULL: find one */
  struct jail_limits limits;
  int min_level;             /* enum jail_level */
  uint32_t missing, failing; /* layers; jail.h */
  int log_format, log_level; /* of base/log.h */
  int server_pid;            /* 0: none */
};

/* Reads the zygote's options (main.c); paths_find knows the directories' defaults. */
MUST_USE enum status worker_config_parse(int argc, char **argv, struct arena *a, struct worker_config *out,
                                         struct error *err);

/* Everything that a job would otherwise pay for.  ST_BUG when a thread is left running. */
MUST_USE enum status worker_warm_up(const struct worker_config *cfg, struct ir *ir, struct error *err);
/* Compiles a kernel that uses what any other may, or one that uses what every other does; with the numeric check and
 * artifacts or without. */
enum worker_kernel { WORKER_ANY_KERNEL, WORKER_LEAST_KERNEL };
MUST_USE enum status worker_compile_kernel(struct ir *ir, enum worker_kernel which, bool is_checked, struct error *err);

/* Leaves the children a heap of fresh memory; once everything is loaded. */
void heap_set_aside(void);

/* The pages that a job is going to need, and where a child takes them while it has none: until there is something to read
 * on job_fd; false when there never will be.  Learned once everything is loaded; *out stays as long as the process. */
struct prefault;
MUST_USE enum status prefault_learn(struct ir *ir, struct prefault **out, struct error *err);
bool prefault_take(const struct prefault *p, int job_fd);

/* What a child sees of the file system, and its limits. */
MUST_USE enum status worker_jail(const struct worker_config *cfg, struct jail *j, struct error *err);

/* Serves the control socket WIRE_CTL_FD until the server is gone; exit status for main. */
int zygote_main(const struct worker_config *cfg);

/* The life of a child, from the moment clone3 returned in it; began_us: when that was called. */
_Noreturn void child_main(const struct jail *j, int64_t began_us, const struct prefault *pages, struct ir *ir,
                          int job_fd);
/* What CPython and NumPy have to do in a new process. */
void child_is_forked(void);

#endif
