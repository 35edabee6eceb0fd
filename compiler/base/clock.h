/* clock: monotonic time, the only kind used for deadlines and durations. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

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

#endif
