/* confine: the server drops the privileges that it does not need, before its first thread and its first client.
 *
 * It runs no user code, but it reads input from any client.  So it runs as a user other than root, without capabilities,
 * with no_new_privs, with Landlock access to a few paths, and with a filter that allows no system call that makes
 * processes or runs programs.  A layer that the machine does not support is left out and reported.  The launcher, which must stay root
 * (pool/launcher.h), is another process.
 */
#ifndef JAIL_CONFINE_H
#define JAIL_CONFINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jail/wall.h"

/* CONFINE(enum, "name") */
#define CONFINE_LAYERS(CONFINE) \
  CONFINE(CONFINE_USER, "not-root") \
  CONFINE(CONFINE_CAPS, "no-capabilities") \
  CONFINE(CONFINE_NO_NEW_PRIVS, "no-new-privs") \
  CONFINE(CONFINE_LANDLOCK, "landlock") \
  CONFINE(CONFINE_SECCOMP, "seccomp")

enum confine_layer {
#define CONFINE(e, name) e,
  CONFINE_LAYERS(CONFINE)
#undef CONFINE
      CONFINE_COUNT
};

enum {
  CONFINE_PATHS_MAX = 16,
  CONFINE_UID = 65533, /* where no user is given or found; not 65534, which the workers use (jail.h) */
};

struct confine_plan {
  const char *user; /* a name or a number; NULL: the owner of own[0], else "nkx", else CONFINE_UID */
  int n_read, n_own;
  /* paths that the server reads, and directories that it also writes; NULL and absent ones are skipped */
  const char *read[CONFINE_PATHS_MAX], *own[CONFINE_PATHS_MAX];
  const char *family; /* the prefix of the server's files in own[]; root gives these to the new user */
  bool may_connect;   /* to a database on another machine */
  bool may_stay_root; /* if the other user cannot reach the paths; without root's capabilities */
};

struct confinement {
  uint32_t layers; /* a bit for each active one */
  uid_t uid;
  char why[200]; /* what is missing, if anything */
};

static inline const char *confine_layer_name(enum confine_layer l) {
  static const char *const names[] = {
#define CONFINE(e, name) name,
      CONFINE_LAYERS(CONFINE)
#undef CONFINE
  };
  return (unsigned)l < CONFINE_COUNT ? names[l] : "?";
}

/* Confines this process for the rest of its life.  ST_INPUT when plan->user does not exist or is root, or cannot reach the
 * plan's paths; a layer that is not supported is no error. */
MUST_USE enum status confine(const struct confine_plan *plan, struct confinement *out, struct error *err);
/* Confines a child process, to find out which layers a server would have on this machine. */
MUST_USE enum status confine_probe(struct confinement *out, struct error *err);

#endif
