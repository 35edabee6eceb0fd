/* overlap: what the files that reorder the body of a loop, or a program, share.  overlap.c describes them. */
#ifndef PASSES_SCHEDULE_OVERLAP_H
#define PASSES_SCHEDULE_OVERLAP_H

#include "passes/lib/round.h"
#include "passes/pass.h"

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
  MlirOperation parent; /* a scf.for, or the function */
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
  int64_t around[2]; /* bytes of SBUF and PSUM in each partition that are in use around the body */
};

/* ---- overlap.c --------------------------------------------------------------------------------------------------- */

/* Reads the body; false if it has something that cannot be moved. */
bool overlap_read(struct pass_run *run, MlirOperation parent, struct overlap *out);

/* Another order of a body's steps.  Those before step a come before those from step b on of the round before; b is 0 if the rounds
 * follow each other. */
struct overlap_cuts {
  int a, b;
  int *order;           /* step order[k] comes at place k */
  double before, after; /* ns of a round, or of the program */
};

/* What is done.  Rounds of loops with products always overlap where that pays. */
struct schedule_what {
  bool loops;          /* other loops get an order */
  bool program;        /* what is in no loop gets one */
  bool prefetches;     /* and its loads come first */
  int parts;           /* 0: loops stay; otherwise they are written out, with what is long in so many parts */
  bool halves;         /* and with loads that become two, each of one half of the partitions */
  bool is_written_out; /* the module has no loops any more: it is a copy in which they were written out */
  bool loops_changed, program_changed; /* answers */
  uint64_t orders;                     /* of all orders that were chosen, a hash: equal for equal programs */
  int steps;                           /* likewise: instructions of what was written out */
  double before, after;                /* ns of the program, for the remark; 0 if they are not known */
};

/* Looks for an order of the loop's body, or of the function's, in which a round, or the program, is shorter. */
bool overlap_choose(struct pass_run *run, MlirOperation parent, const struct round *r, struct schedule_what *what,
                    struct overlap_cuts *out);
/* Divides the body before steps a and b; if b is 0, all of it is the middle.  False if the end and the next round's first part
 * cannot change places. */
bool overlap_divide(struct overlap *o, int a, int b);

/* ---- order.c --------------------------------------------------------------------------------------------- */

/* What an order prefers. */
struct overlap_taste {
  double patience; /* ns for which an engine waits for a step for which more steps wait */
  double next;     /* how much those of the next round count, 0 to 1 */
};
/* Writes the steps in an order in which each begins early, for a round in the middle of many.  False if what is alive does not fit
 * into the memories then. */
bool overlap_order(const struct overlap *o, const struct round_step *steps, struct overlap_taste t, bool prefetches,
                   int *order);

/* ---- write.c ----------------------------------------------------------------------------------------------------- */

/* Writes the body in that order. */
void overlap_apply(struct pass_run *run, MlirOperation parent, const struct overlap_cuts *cuts);

/* Values of a body and what stands for them in another round. */
struct schedule_renamed {
  struct table by_value; /* value -> its new one */
};
/* Copies op to the place before `before` in the block, with the new values, and notes those that it makes. */
MlirOperation schedule_copy(struct pass_run *run, struct schedule_renamed *r, MlirOperation op, MlirBlock block,
                            MlirOperation before);
void schedule_erase_if_unused(MlirOperation op);

/* ---- unroll.c ----------------------------------------------------------------------------------------------------- */

/* True if the function is so short that its loops may be written out. */
bool schedule_can_unroll(const struct pass_run *run, MlirOperation function);
/* Writes out all loops of such a function. */
void schedule_unroll(struct pass_run *run, MlirOperation function);
/* Divides what is long in a function that was written out into `parts`, 1, 2 or 4, and loads into halves of the partitions if
 * `halves`, and puts its loads first.  Returns the number of instructions. */
int schedule_divide(struct pass_run *run, MlirOperation function, int parts, bool halves);

/* ---- measure.c --------------------------------------------------------------------------------------------------- */

/* Returns the simulated nanoseconds of the module.  The stages after this one change it for that.  -1: they refuse it, or it is too long. */
double schedule_measure(const struct pass_run *run, MlirOperation module);

#endif
