/* limits: the resource limits of a child. */
#include "jail/jail.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t jail_address_space_now(void) {
  unsigned long long pages = 0;
  FILE *f = fopen("/proc/self/statm", "re");
  if (f && fscanf(f, "%llu", &pages) != 1)
    pages = 0;
  if (f)
    fclose(f);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int jail_limits_set(const struct jail *j) {
  const struct {
    __rlimit_resource_t what;
    rlim_t value;
  } limits[] = {
      {RLIMIT_AS, j->address_space},         /* refuses a large allocation with MemoryError */
      {RLIMIT_CPU, (rlim_t)j->limits.cpu_s}, /* soft and hard limit are equal: SIGKILL at once */
      {RLIMIT_NOFILE, JAIL_NOFILE},
      {RLIMIT_FSIZE, 0},
      {RLIMIT_NPROC, 1},
      {RLIMIT_CORE, 0},
      {RLIMIT_MEMLOCK, 0},
      {RLIMIT_MSGQUEUE, 0},
      {RLIMIT_SIGPENDING, 64},
      {RLIMIT_NICE, 0},
      {RLIMIT_RTPRIO, 0},
  };
  assert(j->address_space && j->limits.cpu_s > 0);
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    struct rlimit r = {.rlim_cur = limits[i].value, .rlim_max = limits[i].value};
    if (setrlimit(limits[i].what, &r))
      return errno;
  }
  return 0;
}
