/* wall: the walls that a process puts around itself for good: Landlock and the system call filter.
 *
 * A worker's child (jail.c) and the server (confine.c) build theirs with these, each from its own lists.
 */
#ifndef JAIL_WALL_H
#define JAIL_WALL_H

#include <linux/filter.h>
#include <stdbool.h>

#include "base/error.h"

enum wall_rights {
  WALL_READ,
  WALL_DEVICE, /* and write: /dev/null */
  WALL_OWN,    /* a directory: also write, make and remove below it */
};

struct wall_path {
  const char *path;
  enum wall_rights rights;
};

/* What besides paths is forbidden, as far as the kernel's ABI knows it. */
struct wall_extent {
  bool no_bind, no_connect; /* TCP */
  bool no_abstract;         /* abstract sockets of processes outside */
  bool no_signal;           /* to processes outside */
};

int wall_landlock_abi(void); /* 0: none */
/* Everything that the ABI knows is denied but for these paths.  0 or errno. */
int wall_landlock(int abi, const struct wall_path *paths, int n, const struct wall_extent *extent);

enum wall_filter {
  WALL_WORKER, /* syscalls.def; what is not named kills */
  WALL_SERVER, /* server_syscalls.def; what is not named fails */
};
/* The program, heap: out->filter is the caller's. */
MUST_USE enum status wall_filter_build(enum wall_filter which, struct sock_fprog *out, struct error *err);
int wall_filter_install(const struct sock_fprog *filter); /* 0 or errno */

/* Nothing can be gained any more, while still privileged; and what is still held goes.  0 or errno. */
int wall_caps_bound(void);
int wall_caps_drop(void);

#endif
