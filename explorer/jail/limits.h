/* limits: what one job may use; the server names them when one is hit. */
#ifndef JAIL_LIMITS_H
#define JAIL_LIMITS_H

enum {
  JAIL_CPU_S = 10,       /* of processor time: a job's share of the 15 s it may take */
  JAIL_NOFILE = 32,      /* descriptors: stdio, the job socket, and what imports open for a moment */
  JAIL_MEMORY_MB = 2048, /* of address space, above what the zygote already maps */
};

#endif
