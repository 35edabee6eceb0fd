/* layer: the walls of the jail, by name.  Shared by the jail and by whoever reports on it. */
#ifndef JAIL_LAYER_H
#define JAIL_LAYER_H

#include <stdint.h>

/* LAYER(enum, "name", required): a required layer that cannot be had means that no job is read. */
#define JAIL_LAYERS(LAYER) \
  LAYER(LAYER_USER, "user", 1) \
  LAYER(LAYER_PID, "pid", 1) \
  LAYER(LAYER_NET, "net", 1) \
  LAYER(LAYER_IPC, "ipc", 1) \
  LAYER(LAYER_UTS, "uts", 1) \
  LAYER(LAYER_CGROUP_NS, "cgroup-ns", 0) \
  LAYER(LAYER_MOUNT, "mount", 1) \
  LAYER(LAYER_IDS, "ids", 1) \
  LAYER(LAYER_NO_USERNS, "no-nested-userns", 0) \
  LAYER(LAYER_LIMITS, "rlimits", 1) \
  LAYER(LAYER_FDS, "fds", 1) \
  LAYER(LAYER_CAPS, "no-capabilities", 1) \
  LAYER(LAYER_NO_NEW_PRIVS, "no-new-privs", 1) \
  LAYER(LAYER_LANDLOCK, "landlock", 0) \
  LAYER(LAYER_SECCOMP, "seccomp", 1)

enum jail_layer {
#define LAYER(e, name, required) e,
  JAIL_LAYERS(LAYER)
#undef LAYER
      LAYER_COUNT
};

static inline const char *jail_layer_name(enum jail_layer l) {
  static const char *const names[] = {
#define LAYER(e, name, required) name,
      JAIL_LAYERS(LAYER)
#undef LAYER
  };
  return (unsigned)l < LAYER_COUNT ? names[l] : "?";
}

/* A bit for each required layer. */
static inline uint32_t jail_layers_required(void) {
#define LAYER(e, name, required) | (uint32_t)(required) << e
  return 0 JAIL_LAYERS(LAYER);
#undef LAYER
}

#endif
