/* options: how a program runs, and what is counted and kept meanwhile. */
#ifndef SIM_OPTIONS_H
#define SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* ---- values of operands, kept while a program runs (watch.c) ---------------------------------------------------- */

enum sim_watch_state {
  SIM_WATCH_NONE, /* the instruction was not executed, or not as often as asked */
  SIM_WATCH_KEPT,
  SIM_WATCH_UNWRITTEN /* a part of the operand is memory that nothing has written */
};

/* The caller zeroes the last four members, and calls sim_watch_clear after the run. */
struct sim_watch {
  bool is_buffer;     /* it watches all of `buffer` at the end of its life, not an operand */
  int buffer;         /* of the program */
  int instr, operand; /* of the program: its operand is an access or a scalar */
  /* after execution number nth of the instruction, from 1; 0: after the last.  Of a buffer, its nth life; of an allocation
   * of engine programs with several copies, the nth copy */
  int64_t nth;
  enum sim_watch_state state;
  int64_t n_executions; /* of a buffer: its lives, or its copies */
  int64_t n_unwritten;  /* elements of a buffer that nothing has written; they are 0 in the data */
  void *data;           /* the elements in row-major order of the operand's tile, without gaps; on the heap */
};

void sim_watch_clear(struct sim_watch *w);

/* ---- runs ------------------------------------------------------------------------------------------------------- */

/* The order in which the streams of engine programs run. */
enum sim_schedule {
  SIM_SCHEDULE_TURNS,     /* all streams in turn, one step each */
  SIM_SCHEDULE_EARLY_DMA, /* transfers as soon as they can; engines in turn */
  SIM_SCHEDULE_LATE_DMA,  /* each engine as far as it can; a transfer only when all engines wait */
  SIM_SCHEDULE_RANDOM,    /* any stream that can go on, for some steps, by the seed */
  SIM_SCHEDULE_COUNT
};

struct sim_record;
struct sim_options {
  int64_t memory_max; /* bytes of data; 0: 2 GiB */
  struct time_limit limit;
  enum sim_schedule schedule; /* of engine programs */
  uint64_t seed;
  int n_watches;
  struct sim_watch *watches; /* filled */
  struct sim_record *record; /* filled with what register loads give (record.h), unless NULL */
};

struct sim_counts {
  int64_t instrs, matmuls, dma_bytes; /* matmuls: whose sums are read */
};

#endif
