/* confine: the server gives up what it does not need, before its first thread and its first client.
 *
 * It runs no user code, but it reads what everybody sends.  So: another user than root, no capabilities, no new
 * privileges, Landlock on its own few paths, and a list of system calls without processes and programs.  What a machine
 * does not offer is left out and told; what has to stay root (the launcher, pool/launcher.h) is another process.
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
  CONFINE_UID = 65533, /* where there is no user for it; not 65534, which workers are (jail.h) */
};

struct confine_plan {
  const char *user; /* a name or a number; NULL: the one that owns `own[0]`, "nkx", or CONFINE_UID */
  int n_read, n_own;
  const char *read[CONFINE_PATHS_MAX], *own[CONFINE_PATHS_MAX]; /* NULL or absent ones do not count */
  const char *family; /* files in own[] that start with this are the server's: root hands them over */
  bool may_connect;   /* to a database elsewhere */
};

struct confinement {
  uint32_t layers; /* a bit for each that stands */
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

/* For this process and for good.  ST_INPUT when there is no such user; a layer that cannot be had is no error. */
MUST_USE enum status confine(const struct confine_plan *plan, struct confinement *out, struct error *err);
/* What a server would reach here, found out in a child. */
MUST_USE enum status confine_probe(struct confinement *out, struct error *err);

#endif
