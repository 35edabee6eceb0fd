/* prefault: what prefault.c learns, and what hugetext.c and pack.c make of it. */
#ifndef WORKER_PREFAULT_H
#define WORKER_PREFAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1; include/uapi/asm-generic/mman-common.h */
#endif

enum { PREFAULT_PAGE = 4096, PREFAULT_HUGE = 2 << 20, PREFAULT_RANGES_MAX = 4096 };

/* /proc/self/pagemap, as the kernel's Documentation/admin-guide/mm/pagemap.rst has it. */
static const uint64_t PAGE_PRESENT = 1ull << 63, PAGE_OF_FILE = 1ull << 61, PAGE_EXCLUSIVE = 1ull << 56;

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
/* Memory for huge pages, at the border of one; len is a multiple of PREFAULT_HUGE.  NULL when there is none.  To be
 * collapsed (MADV_COLLAPSE) once it is full, which fails where there are no huge pages; unmapped by the caller. */
char *hugetext_room(size_t len);
/* Moves such memory, or a part of it, to where something else was mapped.  False: that is as it was. */
bool hugetext_place(char *copy, size_t len, int prot, uintptr_t to);
/* Moves what else children share with the zygote, or read, into parts of huge pages; likewise. */
void pack_shared(const struct prefault *p);

#endif
