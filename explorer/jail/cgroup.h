/* cgroup: a control group (version 2) for each job.
 *
 * It needs a directory that is delegated to this process: processes only in its leaves, and the controllers memory, pids
 * and cpu.  Without an explicit directory it takes the group of this process, if that has those controllers and holds no
 * foreign processes.  Where there is none, jobs run without control groups: rlimits and the server's watch over resident
 * memory remain.
 */
#ifndef JAIL_CGROUP_H
#define JAIL_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "jail/limits.h"

struct cgroup_tree {
  bool is_open;
  bool has_memory, has_pids, has_cpu; /* the controllers of its groups */
  int fd;                             /* the directory with one group for each job */
  int home;                           /* its parent directory */
  int resident_mib;
  char name[32]; /* of the jobs' directory in home */
  char why[160]; /* what is missing, if not all controllers are there */
};

static inline bool cgroup_is_open(const struct cgroup_tree *t) {
  return t->is_open;
}
static inline bool cgroup_is_whole(const struct cgroup_tree *t) {
  return t->is_open && t->has_memory && t->has_pids && t->has_cpu;
}

/* Finds out which controllers are available in dir or, if that is NULL, in the group of this process.  Opens and changes
 * nothing; t->why says what is missing. */
void cgroup_look(const char *dir, struct cgroup_tree *t);
/* Opens dir, whatever controllers it has.  With dir NULL it opens the group of this process if that has all of them, and
 * moves this process, its parent and `server` (0: none) into a leaf.  It also removes groups left by dead processes.
 * Failing is no error: t->is_open stays false and t->why gives the reason. */
void cgroup_open(const char *dir, pid_t server, const struct jail_limits *limits, struct cgroup_tree *t);
/* Removes what cgroup_open made; call it after all jobs have ended. */
void cgroup_close(struct cgroup_tree *t);

/* Makes a group with its limits, for CLONE_INTO_CGROUP; the caller closes *fd. */
MUST_USE enum status cgroup_make(const struct cgroup_tree *t, uint32_t id, int *fd, struct error *err);
/* Kills what is left in the group and removes it.  True if the kernel had killed a process in it for lack of memory. */
bool cgroup_remove(const struct cgroup_tree *t, uint32_t id);

#endif
