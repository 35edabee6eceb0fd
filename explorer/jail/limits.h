/* limits: what one job may use unless the operator changes it.  The server names the limit that a job reached. */
#ifndef JAIL_LIMITS_H
#define JAIL_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum {
  JAIL_CPU_S = 10,        /* of processor time, within the 15 s of wall time */
  JAIL_NOFILE = 32,       /* descriptors: stdio, the job socket, and files that imports open briefly */
  JAIL_MEMORY_MIB = 2048, /* of address space, in addition to what the zygote maps */
  JAIL_RESIDENT_MIB = 768 /* of resident memory, in addition to what is shared with the zygote */
};

struct jail_limits {
  int cpu_s, memory_mib, resident_mib;
  int wall_ms; /* the server enforces it; a job only knows it; 0: no limit */
};

/* A process that was killed after this much processor time may have been killed at its limit.  The kernel enforces the limit by ticks,
 * each of which it charges whole to the process that it finds running, and reports the exact time afterwards.  On a busy machine the two differ as a
 * sample does from what it estimates: by the square root of the limit times the length of a tick, here four times that. */
static inline bool jail_cpu_is_used_up(const struct jail_limits *l, int cpu_ms) {
  const int64_t limit = l->cpu_s * INT64_C(1000), tick = 10, short_by = limit - cpu_ms;
  return short_by <= 0 || short_by * short_by <= 16 * limit * tick;
}

#endif
