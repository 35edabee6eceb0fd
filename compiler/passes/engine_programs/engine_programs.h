/* engine_programs: what the files of the pass share.  engine_programs.c describes the pass.
 *
 * The function is read into arrays (read.c): instructions in program order, the loops around them, and the memory that
 * they use.  Barriers cut the function into segments.  All streams meet at a barrier, so only instructions of one segment
 * are ever compared.  Loops in a segment run a number of times that is known; the variables of an instruction are the
 * iteration numbers 0, 1, … of the loops around it in its segment, the outermost first.
 */
#ifndef PASSES_ENGINE_PROGRAMS_H
#define PASSES_ENGINE_PROGRAMS_H

#include "base/memory.h"
#include "base/table.h"
#include "ir/build.h"
#include "nisa/nisa.h"
#include "passes/pass.h"

enum { EP_DEPTH_MAX = 16, EP_STREAMS_MAX = 15, EP_NONE = -1 };

/* An engine, or a DMA queue.  Streams 0 … EP_ENGINES - 1 are the engines, in the order of the output. */
enum { EP_TENSOR, EP_VECTOR, EP_SCALAR, EP_GPSIMD, EP_SYNC, EP_ENGINES };
struct ep_stream {
  const char *name;
  const char *why;        /* what a queue transfers, and why its engine starts it */
  int on;                 /* the engine that triggers: of an engine itself */
  bool is_back;           /* qSyncBack */
  int n;                  /* instructions, loops counted once */
  double busy;            /* of an engine: nanoseconds for which it computes */
  double hardware, built; /* of a queue: nanoseconds that starting its transfers takes Sync or Scalar, and GpSimd */
};

struct ep_loop {
  MlirOperation op;
  int parent; /* EP_NONE: directly in its segment */
  int depth;  /* loops around it in its segment */
  int segment;
  int64_t trips, lower, step;
  int first, end; /* its instructions */
  int waits;      /* the first wait of the list before the loop; EP_NONE: none */
};

/* constant + sum of factor[k] * variable k. */
struct ep_linear {
  int64_t constant;
  int64_t factor[EP_DEPTH_MAX];
};

/* The indices low … low + width - 1 of one dimension; of them, if period is not 0, only the first `run` of each `period`.  Not
 * known: all of the dimension. */
struct ep_range {
  bool is_known;
  int64_t width, period, run;
  struct ep_linear low;
};

/* An operand.  Two accesses through the same `base` can be compared dimension by dimension. */
struct ep_access {
  int buffer;
  bool writes;
  bool is_earlier; /* a register of a transfer's indices: a register_load of the queue has waited for it */
  MlirValue base;
  int rank; /* 0: the whole buffer */
  const struct ep_range *range;
};

/* An argument, a global or an allocation. */
struct ep_buffer {
  MlirValue root;
  MlirOperation alloc; /* or null */
  enum mem_space space;
  int loop;       /* the loop of a segment whose body contains the allocation, or EP_NONE */
  int64_t copies; /* at least 1 */
  bool is_placed;
  int64_t from, to; /* bytes in its memory, all copies: in each partition on chip */
};

struct ep_instr {
  MlirOperation op;
  enum nisa_kind kind;
  unsigned streams; /* a bit for each stream that executes it; only a register_load has several, or none */
  unsigned signals; /* a bit for each of them in which it raises the semaphore */
  int segment, loop;
  int n_accesses;
  const struct ep_access *accesses;
  int waits; /* the first wait of the list before it; EP_NONE: none */
};

/* One loop variable of the instruction that is waited for, by the variables at the place of the wait. */
struct ep_row {
  bool from_end; /* the loop's trip count is added */
  struct ep_linear at;
};

/* `on` waits until `from` is complete in stream from_stream: the execution with the variables `row`.  If a variable is
 * less than 0, it is the last execution before that: of an earlier iteration of the loop around. */
struct ep_wait {
  int from, from_stream, to, on;
  int loop;                 /* the wait is before this loop; EP_NONE: before `to` */
  int depth;                /* variables at its place */
  const struct ep_row *row; /* as many as there are loops around `from` */
  bool is_kept;
  int next; /* in the list of its place */
};

struct ep {
  struct pass_run *run;
  MlirOperation function; /* or the region of a core (nisa/cores.h), which is a program of its own */
  bool is_core;
  struct ep_stream streams[EP_STREAMS_MAX];
  int n_streams, n_segments;
  double before,
      after; /* the program by the rule, and with the starters that were chosen by playing it; 0: it was not played */
  struct table queue_of;  /* DMA operation -> one more than its stream */
  struct table half;      /* load of a loop that was divided -> 1: by sync, 2: by scalar */
  struct table loop_of;   /* scf.for -> one more than its loop */
  struct table instr_of;  /* operation -> one more than its instruction */
  struct table buffer_of; /* root -> one more than its buffer */
  struct table needed;    /* operation -> bits of the streams that execute it */
  struct table controls;  /* register_load -> itself, if control flow depends on it */
  struct {
    struct ep_instr *v;
    int n, cap;
  } instrs;
  struct {
    struct ep_loop *v;
    int n, cap;
  } loops;
  struct {
    struct ep_buffer *v;
    int n, cap;
  } buffers;
  struct {
    struct ep_wait *v;
    int n, cap;
  } waits;
};

/* split.c: divides the loop that has most of the loads, if there is one, so that two queues share them; true if it did.
 * loads: the loads of the function; start: how long all executions of each keep the engine that starts them, in nanoseconds. */
bool ep_split_loads(struct ep *ep, const struct ir_ops *loads, const double *start);
/* streams.c: assigns every DMA operation of the function to a queue. */
void ep_assign_queues(struct ep *ep);
/* The stream that executes op, an instruction other than register_load. */
int ep_stream_of(struct ep *ep, MlirOperation op);

/* read.c: the first value, the end and the step of a loop; false if one of them is no constant, or the loop has results. */
bool ep_bounds(MlirOperation loop, int64_t bound[3]);
/* read.c: fills the arrays. */
void ep_read(struct ep *ep);
/* A barrier between the cores: all streams have it. */
bool ep_is_core_barrier(MlirOperation op);
/* True if op is control flow that depends on data, or contains such control flow or a core_barrier: it begins with a
 * barrier. */
bool ep_has_barrier(struct ep *ep, MlirOperation op);
unsigned ep_needed(const struct ep *ep, MlirOperation op);
/* The stream whose program has the waits of an instruction of stream s: its own, or that of the engine that triggers. */
static inline int ep_waits_on(const struct ep *ep, int instr, int s) {
  return ep->instrs.v[instr].kind == NISA_REGISTER_LOAD ? s : ep->streams[s].on;
}
/* It can be waited for in stream s: it is no register_load of a queue, whose semaphore counts transfers. */
static inline bool ep_is_counted(const struct ep *ep, int instr, int s) {
  return ep->instrs.v[instr].kind != NISA_REGISTER_LOAD || s < EP_ENGINES;
}
/* The loop of depth d among the loops around an instruction or a loop, `loop` being the innermost one. */
int ep_loop_at(const struct ep *ep, int loop, int d);
static inline int ep_depth(const struct ep *ep, int loop) {
  return loop == EP_NONE ? 0 : ep->loops.v[loop].depth + 1;
}

/* depend.c: the waits that all dependences need. */
void ep_find_waits(struct ep *ep);
/* solve.c: adds the waits of y in stream ys for x in stream xs, if accesses a of x and b of y are to the same memory.
 * x is before y in program order, or in an earlier iteration of a loop around both.  With `whole` set the two are to
 * different allocations whose places overlap. */
void ep_order(struct ep *ep, int x, int xs, const struct ep_access *a, int y, int ys, const struct ep_access *b,
              bool whole);

/* count.c: numbers the executions of a segment, stream by stream. */
struct ep_counts {
  int n_streams;
  int64_t *at;    /* [instruction][stream]: executions before it in an iteration of its loop */
  int64_t *start; /* [loop][stream]: executions before it in an iteration of the loop around */
  int64_t *body;  /* [loop][stream]: executions in one iteration */
  int64_t total;  /* of all streams and segments */
};
/* Counts the instructions that raise a semaphore if `signals`, otherwise all.  No loop runs more than `trips_max` times. */
void ep_count(const struct ep *ep, bool signals, int64_t trips_max, struct ep_counts *out);
static inline int64_t ep_trips(const struct ep *ep, int loop, int64_t trips_max) {
  return ep->loops.v[loop].trips < trips_max ? ep->loops.v[loop].trips : trips_max;
}
/* The number of the execution that w waits for, counted from 1 in its segment, by the variables at the place of w. */
struct ep_linear ep_count_of(const struct ep *ep, const struct ep_counts *c, const struct ep_wait *w,
                             int64_t trips_max);

/* ahead.c: the first rounds of the outermost loop around w in which it waits for nothing, and is left out: 0 if there are none. */
int64_t ep_rounds_ahead(const struct ep *ep, const struct ep_wait *w);
/* The most of all waits in a loop that are kept and would wait; c: of the instructions that raise semaphores. */
int64_t ep_loop_ahead(const struct ep *ep, const struct ep_counts *c, int loop);

/* What instructions first … end - 1, in the first `ahead` rounds of their outermost loop (0: in all), are in the program of Sync:
 * loads of what was stored before; transfers that wait for nothing, which may go before those; or anything else. */
enum ep_sync_part { EP_PART_BACKS, EP_PART_FREE, EP_PART_FIXED };
enum ep_sync_part ep_sync_part(const struct ep *ep, int first, int end, int64_t ahead);

/* Of each instruction, in how many of the first rounds of its outermost loop a transfer of Sync's may go before others: INT64_MAX:
 * in all.  What such a transfer implies is only that it is complete. */
void ep_find_free_rounds(const struct ep *ep, int64_t *rounds);

/* reduce.c: drops the waits that others imply, moves the others out of loops, and marks what raises semaphores. */
void ep_reduce(struct ep *ep);

/* emit.c: replaces the function's body by the programs of the streams. */
void ep_emit(struct ep *ep);

#endif
