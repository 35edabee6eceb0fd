/* clock: monotonic time, the only kind used for deadlines and durations, and the processor time of this process. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline int64_t clock_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static inline int64_t clock_now_us(void) {
  return clock_now_ns() / 1000;
}
static inline int64_t clock_now_ms(void) {
  return clock_now_ns() / 1000000;
}

/* The processor time that all threads of this process have used. */
static inline int64_t clock_cpu_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* When a run must end: whichever comes first. */
struct time_limit {
  int64_t wall_us; /* of clock_now_us; 0: none */
  int64_t cpu_us;  /* of clock_cpu_us; 0: none */
};
/* Takes as long as some hundred instructions. */
static inline bool time_is_up(const struct time_limit *t) {
  return (t->wall_us && clock_now_us() > t->wall_us) || (t->cpu_us && clock_cpu_us() > t->cpu_us);
}

#endif
