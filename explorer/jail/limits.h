/* limits: what one job may use unless the operator says otherwise; the server names them when one is hit. */
#ifndef JAIL_LIMITS_H
#define JAIL_LIMITS_H

enum {
  JAIL_CPU_S = 10,        /* of processor time: a job's share of the 15 s it may take */
  JAIL_NOFILE = 32,       /* descriptors: stdio, the job socket, and what imports open for a moment */
  JAIL_MEMORY_MIB = 2048, /* of address space, above what the zygote already maps */
  JAIL_RESIDENT_MIB = 768 /* of memory really used, above what is shared with the zygote */
};

struct jail_limits {
  int cpu_s, memory_mib, resident_mib;
  int wall_ms; /* what the server gives it, for a job to know; 0: no limit */
};

/* When code is told that its processor time is up, so that it may still say where it is; cpu_s later ends it. */
static inline int jail_cpu_warning_ms(const struct jail_limits *l) {
  return l->cpu_s > 4 ? (l->cpu_s - 2) * 1000 : l->cpu_s * 750;
}

#endif
