/* layer: the names of the jail's layers, and the levels that they make up.  Shared by the jail and by code that reports
 * on it. */
#ifndef JAIL_LAYER_H
#define JAIL_LAYER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* LAYER(enum, "name", needed with namespaces, needed without) */
#define JAIL_LAYERS(LAYER) \
  LAYER(LAYER_USER, "user", 1, 0) \
  LAYER(LAYER_PID, "pid", 1, 0) \
  LAYER(LAYER_NET, "net", 1, 0) \
  LAYER(LAYER_IPC, "ipc", 1, 0) \
  LAYER(LAYER_UTS, "uts", 1, 0) \
  LAYER(LAYER_CGROUP_NS, "cgroup-ns", 0, 0) \
  LAYER(LAYER_MOUNT, "mount", 1, 0) \
  LAYER(LAYER_IDS, "ids", 1, 1) \
  LAYER(LAYER_NO_USERNS, "no-nested-userns", 0, 0) \
  LAYER(LAYER_LIMITS, "rlimits", 1, 1) \
  LAYER(LAYER_FDS, "fds", 1, 1) \
  LAYER(LAYER_CAPS, "no-capabilities", 1, 1) \
  LAYER(LAYER_NO_NEW_PRIVS, "no-new-privs", 1, 1) \
  LAYER(LAYER_LANDLOCK, "landlock", 1, 1) \
  LAYER(LAYER_SECCOMP, "seccomp", 1, 1) \
  LAYER(LAYER_CGROUP, "cgroup", 0, 0)

enum jail_layer {
#define LAYER(e, name, with_ns, without_ns) e,
  JAIL_LAYERS(LAYER)
#undef LAYER
      LAYER_COUNT
};

/* What the active layers make up; a higher level is safer. */
enum jail_level {
  JAIL_NONE, /* less than C: the server runs no code, unless the operator allows it */
  JAIL_C,    /* no namespaces: another uid, Landlock, system call filter, rlimits */
  JAIL_B,    /* namespaces, Landlock, filter, rlimits; the server watches resident memory */
  JAIL_A,    /* B, and a control group for each job */
};

static inline const char *jail_level_name(enum jail_level l) {
  static const char *const names[] = {"none", "C", "B", "A"};
  return (unsigned)l < sizeof names / sizeof *names ? names[l] : "?";
}

/* -1 if there is no level of this name. */
static inline int jail_level_find(const char *name) {
  for (int l = JAIL_NONE; l <= JAIL_A; l++)
    if (!strcmp(name, jail_level_name((enum jail_level)l)))
      return l;
  return -1;
}

static inline const char *jail_layer_name(enum jail_layer l) {
  static const char *const names[] = {
#define LAYER(e, name, with_ns, without_ns) name,
      JAIL_LAYERS(LAYER)
#undef LAYER
  };
  return (unsigned)l < LAYER_COUNT ? names[l] : "?";
}

/* Adds the layers of a list such as "mount,landlock" to *out, a bit each.  False if a name is unknown. */
static inline bool jail_layers_find(const char *text, uint32_t *out) {
  for (const char *p = text; *p; p += strspn(p, ",")) {
    size_t n = strcspn(p, ",");
    int l = 0;
    while (l < LAYER_COUNT && (strlen(jail_layer_name((enum jail_layer)l)) != n ||
                               strncmp(jail_layer_name((enum jail_layer)l), p, n) != 0))
      l++;
    if (l == LAYER_COUNT)
      return false;
    *out |= 1u << l;
    p += n;
  }
  return true;
}

/* A bit for each layer that a level requires. */
static inline uint32_t jail_layers_needed(enum jail_level level) {
#define LAYER(e, name, with_ns, without_ns) \
  | (uint32_t)(level == JAIL_NONE ? 0 : level == JAIL_C ? (without_ns) : (with_ns)) << e
  uint32_t needed = 0 JAIL_LAYERS(LAYER);
#undef LAYER
  return level == JAIL_A ? needed | 1u << LAYER_CGROUP : needed;
}

#endif
