/* run: executes a decoded program on arrays, one instruction at a time in program order.
 *
 * It is a strict machine: it stops at the first thing that a NeuronCore would do silently, and says which instruction
 * did it.  Values follow nisa/nisa.h.
 */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "base/diag.h"
#include "sim/program.h"

enum sim_fault_kind {
  SIM_FAULT_NONE,
  SIM_FAULT_UNWRITTEN,    /* reads memory that nothing wrote */
  SIM_FAULT_BOUNDS,       /* an access, or an index of a gather, outside its buffer */
  SIM_FAULT_RELEASED,     /* use after release, or before the allocation */
  SIM_FAULT_ACCUMULATION, /* a matmul adds to what no matmul wrote */
  SIM_FAULT_RESULT,       /* the function ends before all of a result is written */
  SIM_FAULT_MEMORY,       /* the program needs more memory than the limit */
  SIM_FAULT_TIME,         /* it was told to stop */
  SIM_FAULT_INSTRUCTION,  /* operands or attributes that the instruction cannot have */
  SIM_FAULT_KINDS
};
/* "unwritten-read" */
const char *sim_fault_name(enum sim_fault_kind k);

struct sim_fault {
  enum sim_fault_kind kind;
  const struct sim_instr *instr; /* NULL: no instruction did it */
  const struct src_loc *loc;     /* its Python place, or NULL */
  char text[200];                /* "dst: index 3 … 130 of dimension 0, which has 128" */
};

/* ---- values of operands, kept while a program runs (watch.c) ---------------------------------------------------- */

enum sim_watch_state {
  SIM_WATCH_NONE, /* the instruction was not executed, or not as often as asked */
  SIM_WATCH_KEPT,
  SIM_WATCH_UNWRITTEN /* a part of the operand is memory that nothing has written */
};

/* The caller zeroes the last three members, and calls sim_watch_clear after the run. */
struct sim_watch {
  int instr, operand; /* of the program: its operand is an access or a scalar */
  int64_t nth;        /* after its execution number nth, from 1; 0: after the last */
  enum sim_watch_state state;
  int64_t n_executions;
  void *data; /* the elements in row-major order of the operand's tile, without gaps; on the heap */
};

void sim_watch_clear(struct sim_watch *w);

/* ---- runs ------------------------------------------------------------------------------------------------------- */

struct sim_options {
  int64_t memory_max;  /* bytes of data; 0: 2 GiB */
  int64_t deadline_us; /* of clock_now_us; 0: none */
  int n_watches;
  struct sim_watch *watches; /* filled */
};

struct sim_counts {
  int64_t instrs, matmuls, dma_bytes;
};

/* Runs the program on args[n_args], which are not changed.  results[n_results] are filled; the caller has allocated
 * the bytes that the program's results have.  A null result is not copied.  counts may be NULL.  On ST_INPUT *fault says
 * what went wrong; otherwise it is SIM_FAULT_NONE. */
MUST_USE enum status sim_run(const struct sim_program *p, const void *const *args, void *const *results,
                             const struct sim_options *options, struct sim_counts *counts, struct sim_fault *fault);

#endif
