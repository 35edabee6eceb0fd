/* memo_internal: the walk over an operation, shared by memo.c and memo_scan.c. */
#ifndef INTERP_MEMO_INTERNAL_H
#define INTERP_MEMO_INTERNAL_H

#include "interp/internal.h"

struct outside {
  int slot;
  bool is_written;
};

struct memo_room {
  struct arena *arena;
  struct place {
    unsigned scan;    /* the others are set if this is the present scan's number */
    int number, root; /* root: the number of the slot from outside whose memory a memref is a part of; -1: none */
  } *places;          /* of slots */
  unsigned n_scans;
  int n_numbers;
  struct {
    struct outside *v;
    int n, cap;
  } outside;
};

/* The walk over an operation. */
struct scan {
  struct machine *m;
  struct memo_room *room;
  struct key *key;
};

static inline void mix(struct scan *s, int64_t v) {
  key_mix(s->key, (uint64_t)v);
}

static inline void mix_list(struct scan *s, int n, const int64_t *v) {
  mix(s, v ? n : -1);
  for (int k = 0; v && k < n; k++)
    mix(s, v[k]);
}

/* Adds to the key what the operation does, with slots numbered in their order, and finds the slots from outside that it
 * uses.  False for an operation that is not described. */
bool memo_scan(struct scan *s, const struct instr *in);

#endif
