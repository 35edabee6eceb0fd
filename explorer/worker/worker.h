/* worker: the processes that load CPython and MLIR.
 *
 * The zygote loads everything once, compiles a small kernel so that nothing is left to initialise, and then makes
 * children on request.  A child enters its jail, tells the zygote which layers are active, waits for its one job, runs
 * it and exits.  The zygote holds no secret: it is a program of its own, started with an empty environment.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "ir/ir.h"
#include "jail/jail.h"
#include "worker/memory/memory.h"

struct worker_config {
  const char *python_dir, *site_dir; /* absolute */
  const char *cgroup_dir;            /* NULL: find one */
  struct jail_limits limits;
  int min_level;             /* enum jail_level */
  uint32_t missing, failing; /* layers of the jail, a bit each: see struct jail */
  uint32_t memory_tricks;    /* a bit each: memory/memory.h */
  int log_format, log_level; /* base/log.h */
  int server_pid;            /* 0: none */
};

/* options.c: reads the zygote's options, which main.c lists.  ST_INPUT with a text that names the wrong one. */
MUST_USE enum status worker_config_parse(int argc, char **argv, struct arena *a, struct worker_config *out,
                                         struct error *err);
/* dir/name as an absolute path on the heap, which lives as long as the process; NULL if there is no such file. */
const char *worker_resolve(const char *dir, const char *name);

/* warm.c: initialises everything that a job would otherwise have to.  ST_BUG when a thread is left running. */
MUST_USE enum status worker_warm_up(const struct worker_config *cfg, struct ir *ir, struct error *err);
/* Compiles a kernel through the whole path; is_checked: with the numeric check and with artifacts.  A kernel that does
 * not compile is logged and is no error: jobs then initialise what is missing. */
MUST_USE enum status worker_compile_kernel(struct ir *ir, enum memory_kernel which, bool is_checked, struct error *err);
/* Whether this process has one thread, as a process that forks must. */
bool worker_has_one_thread(void);

/* overrides.c: from now on a failed C++ allocation ends the process with EXIT_OOM instead of an exception. */
void worker_exit_when_out_of_memory(void);

/* jail_paths.c: the jail of the children: what they see of the file system, their limits, and the level. */
MUST_USE enum status worker_jail(const struct worker_config *cfg, struct jail *j, struct error *err);

/* zygote.c: serves the control socket WIRE_CTL_FD until the server closes it; does not return after it has begun to
 * serve, otherwise returns an exit status for main. */
int zygote_main(const struct worker_config *cfg);

/* child.c: the whole life of a child, called right after clone3 returned in it.  began_us: the time before clone3. */
_Noreturn void child_main(const struct jail *j, int64_t began_us, const struct memory_pages *pages, struct ir *ir,
                          int job_fd);
/* What CPython and NumPy have to do in a new process. */
void child_after_fork(void);

#endif
