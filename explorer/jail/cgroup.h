/* cgroup: a control group (version 2) for each job.
 *
 * Needs a directory that was delegated to us: processes only in its leaves, and the controllers memory, pids and cpu.
 * Where none is to be had, nothing here is used; rlimits and the server's watch of resident memory remain.  Without an
 * explicit directory the one that this process lies in is taken, if it has those controllers and nobody else is in it.
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
  bool has_memory, has_pids, has_cpu; /* the controllers that its groups have */
  int fd;                             /* of the directory that the jobs' groups are made in */
  int home;                           /* of the one above it */
  int resident_mib;
  char name[32]; /* of the jobs' directory, in home */
  char why[160]; /* what is missing, if not all controllers are there */
};

static inline bool cgroup_is_open(const struct cgroup_tree *t) {
  return t->is_open;
}
static inline bool cgroup_is_whole(const struct cgroup_tree *t) {
  return t->is_open && t->has_memory && t->has_pids && t->has_cpu;
}

/* Which controllers could be had in dir, or, if that is NULL, in the group of this process; opens and changes nothing,
 * t->why says what is missing. */
void cgroup_look(const char *dir, struct cgroup_tree *t);
/* Opens dir, whatever controllers it has; NULL: opens the group of this process if it has all of them.  Groups that
 * dead processes left are removed.  server: moves with us and our parent into a leaf, 0: there is none.  Failing is no error: t->is_open stays false and t->why says why. */
void cgroup_open(const char *dir, pid_t server, const struct jail_limits *limits, struct cgroup_tree *t);
/* Removes what cgroup_open made; all jobs are gone. */
void cgroup_close(struct cgroup_tree *t);

/* A group with its limits, for CLONE_INTO_CGROUP; *fd belongs to the caller. */
MUST_USE enum status cgroup_make(const struct cgroup_tree *t, uint32_t id, int *fd, struct error *err);
/* Ends what may be left in it and removes it.  True if the kernel had ended a process in it for lack of memory. */
bool cgroup_remove(const struct cgroup_tree *t, uint32_t id);

#endif
