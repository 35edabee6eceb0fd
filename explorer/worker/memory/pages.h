/* pages: the page ranges that jobs touch, and huge pages to move memory into.  Shared by the files of this folder only. */
#ifndef WORKER_MEMORY_PAGES_H
#define WORKER_MEMORY_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "worker/memory/memory.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1; include/uapi/asm-generic/mman-common.h */
#endif

enum {
  PAGE_SIZE = 4096,
  PAGE_HUGE = 2 << 20,
  PAGE_CHUNK = 512, /* entries of /proc/self/pagemap in one read */
  PAGE_RANGES_MAX = 4096,
};

/* The bits of an entry of /proc/self/pagemap: the kernel's Documentation/admin-guide/mm/pagemap.rst. */
static const uint64_t PAGE_PRESENT = 1ull << 63, PAGE_OF_FILE = 1ull << 61, PAGE_EXCLUSIVE = 1ull << 56;

/* Ranges of whole pages, in rising order of their addresses, without overlap.  Not from the heap, whose fresh memory
 * belongs to the children. */
struct memory_pages {
  int n;
  int n_dropped; /* ranges beyond PAGE_RANGES_MAX: they cost time, nothing else */
  struct page_range {
    uintptr_t at;
    size_t len;
    bool is_written; /* by jobs; otherwise read */
  } v[PAGE_RANGES_MAX];
};

/* pages.c: runs the kernel in a forked process and notes which pages it touched.  Where that process fails, *out stays
 * as it is. */
MUST_USE enum status pages_learn(memory_run run, void *user, enum memory_kernel which, struct memory_pages *out,
                                 struct error *err);
/* len bytes, a multiple of PAGE_HUGE, aligned to PAGE_HUGE and advised to become huge pages; NULL when there is no
 * memory.  The caller fills it and then calls huge_collapse. */
char *huge_alloc(size_t len);
/* Turns filled memory from huge_alloc into huge pages.  False when the kernel has none. */
bool huge_collapse(char *copy, size_t len);
/* Moves memory from huge_alloc, or whole pages of it, to the address `to`, over what is mapped there.  False: nothing has
 * changed at `to`. */
bool huge_move(char *copy, size_t len, int prot, uintptr_t to);

/* heap.c */
void heap_set_aside(void);
/* hugetext.c */
void hugetext_move(const struct memory_pages *p);

#endif
