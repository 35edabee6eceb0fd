/* memory: what the zygote does to its memory so that its children start and end faster.
 *
 * A forked child shares the zygote's pages.  It pays a page fault and a copy for the first write to each page, and a page
 * fault for the first read of each page of a mapped file; at its end the kernel releases its page table entries one by
 * one.  For a small job this is a large part of its time.  Each of these tricks lowers the cost:
 *
 *   heap      fills the holes of glibc's heap and leaves one large block of fresh memory free, so that a child allocates
 *             from new pages instead of copying the zygote's (heap.c)
 *   hugetext  moves the code and constants of libraries that jobs use into huge pages, which are mapped in a child from
 *             its start (hugetext.c)
 *   prefault  faults in the pages that every job touches, in a waiting child, before its job arrives (prefault.c)
 *
 * hugetext moves memory while the process runs; addresses and contents stay the same.  The worker computes the same
 * results with any of the tricks off, and where the kernel does not support one, it runs without it.  All of them assume a
 * process with one thread.  tests/bench/memory.py measures what each one gains.
 */
#ifndef WORKER_MEMORY_H
#define WORKER_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

/* TRICK(enum, "name") */
#define MEMORY_TRICKS(TRICK) \
  TRICK(MEMORY_HEAP, "heap") \
  TRICK(MEMORY_HUGETEXT, "hugetext") \
  TRICK(MEMORY_PREFAULT, "prefault")

enum memory_trick {
#define TRICK(e, name) e,
  MEMORY_TRICKS(TRICK)
#undef TRICK
      MEMORY_TRICK_COUNT
};

enum { MEMORY_ALL = (1 << MEMORY_TRICK_COUNT) - 1 };

static inline const char *memory_trick_name(enum memory_trick t) {
  static const char *const names[] = {
#define TRICK(e, name) name,
      MEMORY_TRICKS(TRICK)
#undef TRICK
  };
  return (unsigned)t < MEMORY_TRICK_COUNT ? names[t] : "?";
}

/* The tricks in "on", "off" or a list such as "heap,prefault", a bit each.  False, and *out unchanged: a name is unknown, or
 * the text is empty. */
static inline bool memory_tricks_find(const char *text, uint32_t *out) {
  uint32_t bits = 0;
  if (!strcmp(text, "on") || !strcmp(text, "off")) {
    *out = text[1] == 'n' ? MEMORY_ALL : 0;
    return true;
  }
  for (const char *p = text; *p || p == text; p += strspn(p, ",")) {
    const size_t n = strcspn(p, ",");
    int t = 0;
    while (t < MEMORY_TRICK_COUNT && (strlen(memory_trick_name((enum memory_trick)t)) != n ||
                                      strncmp(memory_trick_name((enum memory_trick)t), p, n) != 0))
      t++;
    if (t == MEMORY_TRICK_COUNT)
      return false;
    bits |= 1u << t;
    p += n;
  }
  *out = bits;
  return true;
}

/* Which pages jobs touch is found out by running a kernel in a forked process. */
enum memory_kernel {
  MEMORY_ANY_KERNEL,   /* uses what any other kernel may use */
  MEMORY_LEAST_KERNEL, /* uses only what nearly every other kernel uses */
};
/* Compiles such a kernel as a job would; false if it does not compile. */
typedef bool (*memory_run)(void *user, enum memory_kernel which);

/* What memory_prefault faults in; static, lives as long as the process. */
struct memory_pages;

/* Applies the tricks whose bits are set.  Call it once, after everything is loaded and before the first child.  Only
 * ST_NOMEM is an error; a trick that the kernel does not support is logged and left out. */
MUST_USE enum status memory_prepare(uint32_t tricks, memory_run run, void *user, const struct memory_pages **out,
                                    struct error *err);

/* In a jailed child: faults the pages in until the job arrives on job_fd.  Returns at once where nothing was learned.
 * False when the other end of job_fd is closed, so that no job will come. */
bool memory_prefault(const struct memory_pages *p, int job_fd);

#endif
