/* jail: the walls around one job, finished before the job's first byte is read.
 *
 * jail_prepare does once what every child needs (the system call filter, the limits, an empty network, what the kernel
 * offers) and finds out, by building one, which level can be had; jail_spawn makes a child in new namespaces and its
 * control group; jail_enter, in that child, builds the rest.  The layers and levels are in layer.h; each layer reports
 * whether it stands, and one that the level needs and that does not stand ends the child.
 *
 * Assumes a process with one thread: the child is made with clone3, so nothing that other threads held is released
 * in it.  The caller runs CPython's fork hooks around jail_spawn.
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
  JAIL_ID = 65534, /* uid and gid inside, and outside as well when we are root: "nobody" */
};

struct jail {
  int n_paths;
  struct wall_path paths[JAIL_PATHS_MAX]; /* of the host, seen in the jail under the same names */
  struct sock_fprog filter;
  struct jail_limits limits;
  enum jail_level level, min_level; /* what can be had; with less than min_level jail_prepare fails */
  uint32_t missing;                 /* layers to do without, as if the kernel had none; for tests of the levels */
  uint32_t failing;                 /* layers that fail in children, though the probe had them; for tests */
  bool is_probing;
  struct cgroup_tree cgroup;
  char why[160];          /* what keeps the level from being a higher one */
  int landlock_abi;       /* 0: none */
  uint64_t address_space; /* bytes; RLIMIT_AS of a child */
  uint64_t clone_flags;
  bool is_cut_off;    /* this process is in an empty network, which its children share */
  pid_t *tid_address; /* libc's cached thread id, which a raw clone3 has to renew; NULL if it cannot be found */
  pid_t server_pid;   /* who starts our parent and us; 0: nobody */
  uid_t outer_uid;    /* what JAIL_ID is outside */
  gid_t outer_gid;
};

struct jail_report {
  uint32_t layers; /* a bit for each that stands */
  int32_t landlock_abi;
  int32_t failed;  /* the layer that failed, or -1 */
  int32_t error;   /* errno of the failure */
  int32_t took_us; /* from clone to the last wall; left to who spawned */
};

/* Adds a path, if it exists.  The string must outlive j. */
MUST_USE enum status jail_add_path(struct jail *j, const char *path, bool is_device, struct error *err);
/* Call once everything that makes the process large is loaded, after the paths were added and limits, min_level,
 * missing, failing were set.  cgroup_dir: a delegated control group, or NULL to look for one.  ST_DENIED when the level
 * is below min_level; j->why says which layer is missing. */
MUST_USE enum status jail_prepare(struct jail *j, const char *cgroup_dir, struct error *err);
void jail_clear(struct jail *j);

/* A child, as either side has it; fd is that side's end of the socket between them. */
struct jail_child {
  pid_t pid; /* 0 in the child, as fork has it */
  int pidfd; /* the parent's; -1 in the child */
  int fd;
};

/* Like fork.  The child must call jail_enter at once; it waits there until the parent has called jail_settle, and ends
 * when the parent does before that.  The descriptors are the caller's.  The control group is called after `id`, which no
 * living child has; once the child was waited for, jail_bury takes it away and tells whether the kernel ended it for its
 * use of memory.  ST_DENIED when the kernel refuses the namespaces. */
MUST_USE enum status jail_spawn(const struct jail *j, uint32_t id, struct jail_child *out, struct error *err);
bool jail_bury(const struct jail *j, uint32_t id);
/* In the parent: gives the child its ids and lets it go on. */
MUST_USE enum status jail_settle(const struct jail *j, const struct jail_child *c, struct error *err);
/* In the parent: kills the child, waits for it, buries it and closes its descriptors. */
void jail_end(const struct jail *j, uint32_t id, const struct jail_child *c);
/* In the child: returns with every layer standing, *job_fd moved to descriptor keep_fd (and changed accordingly), and
 * all other descriptors but stdio (which is /dev/null) closed.  On failure r->failed says where, and nothing but
 * *job_fd may be used. */
MUST_USE enum status jail_enter(const struct jail *j, int *job_fd, int keep_fd, struct jail_report *r);

/* ---- the layers, each in its own file ------------------------------------------------------------------------- */

/* ns.c: names and ids. */
MUST_USE enum status jail_ns_settle(const struct jail *j, pid_t pid, struct error *err);
/* mounts.c: two halves, since sources are opened with the outer identity and the tmpfs is filled with the inner. */
struct jail_trees {
  int fd[JAIL_PATHS_MAX];
};
int jail_mounts_open(const struct jail *j, struct jail_trees *t); /* these return 0 or errno */
int jail_mounts_pivot(const struct jail *j, const struct jail_trees *t);
/* limits.c */
int jail_limits_set(const struct jail *j);
uint64_t jail_address_space_now(void); /* bytes mapped by this process, 0 if unknown */

/* A child that builds its jail and leaves: what stood in it.  ST_DENIED when it could not be made. */
MUST_USE enum status jail_probe(struct jail *j, struct jail_report *r, struct error *err);

/* `nkx doctor`: makes a jailed child and prints what stands; exit status for main. */
int jail_doctor(void);

#endif
