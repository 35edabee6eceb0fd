/* overlap: what the files that reorder the body of a loop share.  overlap.c describes them. */
#ifndef PASSES_BALANCE_ENGINES_OVERLAP_H
#define PASSES_BALANCE_ENGINES_OVERLAP_H

#include "passes/balance_engines/balance_engines.h"

enum part { FIRST, MIDDLE, END, PARTS, PURE = PARTS };

/* An operation of the body. */
struct item {
  MlirOperation op;
  int step;     /* -1: it takes no time */
  int buffer;   /* of an allocation or a release; -1: it is none */
  bool is_fill; /* a transfer, or a constant that fills a buffer */
  enum part part;
  int first_use, n_uses; /* of a step */
  int64_t inside[2];     /* bytes of SBUF and PSUM in each partition that a loop allocates in its body */
};

struct use {
  int buffer;
  bool writes;
};

struct buffer {
  MlirValue v;
  bool is_own; /* allocated in the body */
  bool is_crossing;
  enum mem_space space;
  int64_t bytes;          /* in each partition */
  unsigned used, written; /* 1 << part */
};

struct overlap {
  struct pass_run *run;
  MlirOperation loop;
  MlirBlock block;
  struct table by_value; /* buffer, plus 1 */
  struct {
    struct item *v;
    int n, cap;
  } items;
  struct {
    struct use *v;
    int n, cap;
  } uses;
  struct {
    struct buffer *v;
    int n, cap;
  } buffers;
  int n_steps;
  int *of_step;      /* the item of each step */
  int64_t around[2]; /* bytes of SBUF and PSUM in each partition that are in use around the loop */
};

/* ---- overlap.c --------------------------------------------------------------------------------------------------- */

/* Reads the body of a loop; false if it has something that cannot be moved. */
bool overlap_read(struct pass_run *run, MlirOperation loop, struct overlap *out);
/* Divides the body before steps a and b; if b is 0, all of it is the middle.  False if the end and the next round's first part
 * cannot change places. */
bool overlap_divide(struct overlap *o, int a, int b);

/* ---- overlap_order.c --------------------------------------------------------------------------------------------- */

/* What an order prefers. */
struct overlap_taste {
  double patience; /* ns for which an engine waits for a step for which more steps wait */
  double next;     /* how much those of the next round count, 0 to 1 */
};
/* Writes the steps in an order in which each begins early, for a round in the middle of many.  False if what is alive does not fit
 * into the memories then. */
bool overlap_order(const struct overlap *o, const struct balance_step *steps, struct overlap_taste t, int *order);

#endif
