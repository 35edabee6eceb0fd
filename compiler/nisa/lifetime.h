/* lifetime: when the allocations of a function are alive, in program order.
 *
 * Operations are numbered in pre-order: program order, each loop once.  An allocation on chip is released in its own
 * block, so that it is alive from its own number to that of its release, in every iteration of the loops around it.
 * Memory in HBM is never released: it is alive to the end of the function.
 */
#ifndef NISA_LIFETIME_H
#define NISA_LIFETIME_H

#include "nisa/nisa.h"

struct nisa_lifetime {
  MlirOperation alloc;
  enum mem_space space;
  int64_t bytes;          /* in each partition on chip, of PSUM in whole banks; of the whole array in HBM */
  int64_t exact;          /* the same without rounding */
  int from, to;           /* the numbers of the allocation and of its release */
  MlirOperation loop;     /* the scf.for in whose body the allocation is; null if it is in none */
  int loop_from, loop_to; /* the numbers of the loop and of the end of its body */
};

struct nisa_lifetimes {
  struct nisa_lifetime *v; /* in program order */
  int n, cap;
};

/* The allocations of static shape under root. */
struct nisa_lifetimes nisa_find_lifetimes(struct arena *a, MlirOperation root, const struct nisa_machine *m);

static inline bool nisa_lifetimes_meet(const struct nisa_lifetime *x, const struct nisa_lifetime *y) {
  return x->from < y->to && y->from < x->to;
}

/* The most bytes of SBUF or PSUM that are alive at once; *at is the allocation with which the peak is reached, or NULL
 * if there is none in this memory. */
int64_t nisa_live_peak(struct arena *a, const struct nisa_lifetimes *l, enum mem_space s,
                       const struct nisa_lifetime **at);

/* "65536 bytes of k.py:12:9, 32768 bytes of k.py:14:5 and 3 more": what is alive in the memory s at number
 * `at`, the largest first.  Allocations without a place in the source show their type instead. */
const char *nisa_describe_live(struct arena *a, const struct nisa_lifetimes *l, enum mem_space s, int at);

#endif
