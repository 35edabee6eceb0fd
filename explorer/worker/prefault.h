/* prefault: what prefault.c learns, and what hugetext.c makes of it. */
#ifndef WORKER_PREFAULT_H
#define WORKER_PREFAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PREFAULT_RANGES_MAX = 4096 };

/* Whole pages, by rising address. */
struct prefault {
  int n;
  struct prefault_range {
    uintptr_t at;
    size_t len;
    bool is_written;
  } v[PREFAULT_RANGES_MAX];
};

/* Moves the code and constants of libraries that jobs read into huge pages, which a child has from the moment it is
 * made.  Where the kernel has none to give, nothing changes. */
void hugetext_move(const struct prefault *p);

#endif
