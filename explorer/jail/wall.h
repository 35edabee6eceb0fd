/* wall: restrictions that a process puts on itself and cannot remove: Landlock, the system call filter, capabilities.
 *
 * A worker's child (jail.c) and the server (confine.c) use them, each with its own lists.
 */
#ifndef JAIL_WALL_H
#define JAIL_WALL_H

#include <linux/filter.h>
#include <stdbool.h>

#include "base/error.h"

enum wall_rights {
  WALL_READ,
  WALL_DEVICE, /* read and write: /dev/null */
  WALL_OWN,    /* a directory: read, write, make and remove below it */
};

struct wall_path {
  const char *path;
  enum wall_rights rights;
};

/* What is forbidden besides paths, as far as the kernel's Landlock ABI supports it. */
struct wall_extent {
  bool no_bind, no_connect; /* TCP */
  bool no_abstract;         /* abstract sockets of other processes */
  bool no_signal;           /* to other processes */
};

int wall_landlock_abi(void); /* 0: none */
/* Denies every access that the ABI can deny, except to these paths.  0 or errno. */
int wall_landlock(int abi, const struct wall_path *paths, int n, const struct wall_extent *extent);

enum wall_filter {
  WALL_WORKER, /* syscalls.def; any other call kills the process */
  WALL_SERVER, /* server_syscalls.def; any other call fails */
};
/* Builds the filter's program; the caller frees out->filter. */
MUST_USE enum status wall_filter_build(enum wall_filter which, struct sock_fprog *out, struct error *err);
int wall_filter_install(const struct sock_fprog *filter); /* 0 or errno */

/* While still privileged: no capability can be gained from now on.  0 or errno. */
int wall_caps_bound(void);
/* Drops the capabilities that are still held.  0 or errno. */
int wall_caps_drop(void);

#endif
