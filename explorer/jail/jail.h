/* jail: the layers of protection around one job, complete before the child reads the job's first byte.
 *
 * jail_prepare does once what every child needs (the system call filter, the limits, an empty network) and finds out, by
 * building a jail, which level this machine reaches.  jail_spawn makes a child in new namespaces and in its own control
 * group.  jail_enter, called in that child, adds the other layers.  layer.h lists the layers and levels.  The child
 * reports which layers are active; if one that the level needs fails, jail_enter fails and the child must exit.
 *
 * Assumes a process with one thread: the child is made with clone3, so locks held by other threads would never be
 * released in it.  The caller runs CPython's fork hooks around jail_spawn.
 */
#ifndef JAIL_JAIL_H
#define JAIL_JAIL_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "jail/cgroup.h"
#include "jail/layer.h"
#include "jail/limits.h"
#include "jail/wall.h"

enum {
  JAIL_PATHS_MAX = 24,
  JAIL_ID = 65534, /* "nobody": uid and gid inside, and also outside when the zygote is root */
};

struct jail {
  int n_paths;
  struct wall_path paths[JAIL_PATHS_MAX]; /* absolute paths of the host; the jail has them under the same names */
  struct sock_fprog filter;
  struct jail_limits limits;
  enum jail_level level, min_level; /* the level reached; below min_level jail_prepare fails */
  uint32_t missing;                 /* layers to treat as not supported by the kernel; for tests of the levels */
  uint32_t failing;                 /* layers that fail in children, but not in the probe; for tests */
  bool is_probing;
  struct cgroup_tree cgroup;
  char why[160];          /* the reason why the level is not a higher one */
  int landlock_abi;       /* 0: none */
  uint64_t address_space; /* bytes; RLIMIT_AS of a child */
  uint64_t clone_flags;
  bool is_cut_off;    /* this process is in an empty network namespace, which its children share */
  pid_t *tid_address; /* libc's cached thread id, which a raw clone3 must update; NULL if its address is not known */
  pid_t server_pid;   /* the service that this zygote works for; 0: none */
  uid_t outer_uid;    /* the host's ids that JAIL_ID stands for */
  gid_t outer_gid;
};

struct jail_report {
  uint32_t layers; /* a bit for each active one */
  int32_t landlock_abi;
  int32_t failed;  /* the layer that failed, or -1 */
  int32_t error;   /* errno of the failure */
  int32_t took_us; /* from clone3 to the last layer; the caller of jail_enter sets it */
};

/* Adds an absolute path, if it exists.  The string must outlive j. */
MUST_USE enum status jail_add_path(struct jail *j, const char *path, bool is_device, struct error *err);
/* Call it after everything large is loaded (the address space limit counts from there), after the paths were added, and
 * after limits, min_level, missing and failing were set.  cgroup_dir: a delegated control group, or NULL to look for
 * one.  ST_DENIED when the level is below min_level; j->why says which layer is missing. */
MUST_USE enum status jail_prepare(struct jail *j, const char *cgroup_dir, struct error *err);
void jail_clear(struct jail *j);

/* A child, as the parent or the child itself sees it. */
struct jail_child {
  pid_t pid; /* 0 in the child, as after fork */
  int pidfd; /* -1 in the child */
  int fd;    /* this side's end of the socket between them */
};

/* Like fork.  The child must call jail_enter at once; it waits there until the parent calls jail_settle, and exits if
 * the parent ends first.  The caller closes the descriptors.  The control group is named after `id`, which no living
 * child may have.  ST_DENIED when the kernel refuses the namespaces. */
MUST_USE enum status jail_spawn(const struct jail *j, uint32_t id, struct jail_child *out, struct error *err);
/* In the parent, after it has waited for the child: removes the control group.  True if the kernel had killed the child
 * for its use of memory. */
bool jail_bury(const struct jail *j, uint32_t id);
/* In the parent: writes the child's ids and lets it continue. */
MUST_USE enum status jail_settle(const struct jail *j, const struct jail_child *c, struct error *err);
/* In the parent: kills the child, waits for it, removes its control group and closes its descriptors. */
void jail_end(const struct jail *j, uint32_t id, const struct jail_child *c);
/* In the child: returns ST_OK with every needed layer active, *job_fd moved to descriptor keep_fd, stdio on /dev/null and
 * all other descriptors closed.  On failure r->failed names the layer, and the child may only use *job_fd. */
MUST_USE enum status jail_enter(const struct jail *j, int *job_fd, int keep_fd, struct jail_report *r);

/* ---- the layers, each in its own file ------------------------------------------------------------------------- */

/* ns.c: names and ids. */
MUST_USE enum status jail_ns_settle(const struct jail *j, pid_t pid, struct error *err);
/* mounts.c: two steps, because the outer user opens the trees and the inner user attaches them.  Both return 0 or
 * errno. */
struct jail_trees {
  int fd[JAIL_PATHS_MAX];
};
int jail_mounts_open(const struct jail *j, struct jail_trees *t);
int jail_mounts_pivot(const struct jail *j, const struct jail_trees *t);
/* limits.c */
int jail_limits_set(const struct jail *j); /* 0 or errno */
uint64_t jail_address_space_now(void);     /* bytes mapped by this process, 0 if unknown */

/* Makes a child that builds its jail and exits, and reports which layers were active.  ST_DENIED when it cannot be
 * made. */
MUST_USE enum status jail_probe(struct jail *j, struct jail_report *r, struct error *err);

/* `nkx doctor`: makes a jailed child and prints which layers are active; returns an exit status for main. */
int jail_doctor(void);

#endif
