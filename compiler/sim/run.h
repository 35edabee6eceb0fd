/* run: executes a decoded program on arrays, one instruction at a time.
 *
 * A program that is one sequence runs in program order.  Engine programs (nisa/streams.h) run in one of several orders
 * that are all legal; every order gives the same values unless there is a race, which any of them reports (sim/order.h).
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
  SIM_FAULT_DEADLOCK,     /* all streams wait, for what none of them will do */
  SIM_FAULT_RACE,         /* two accesses to the same memory, one of which writes, that nothing orders */
  SIM_FAULT_KINDS
};
/* "unwritten-read" */
const char *sim_fault_name(enum sim_fault_kind k);

struct sim_fault {
  enum sim_fault_kind kind;
  const struct sim_instr *instr; /* NULL: no instruction did it */
  const struct src_loc *loc;     /* its Python place, or NULL */
  const struct sim_instr *other; /* of a race, the other instruction, and its place */
  const struct src_loc *other_loc;
  char text[400]; /* "dst: index 3 … 130 of dimension 0, which has 128" */
};

/* The order in which the streams of engine programs run. */
enum sim_schedule {
  SIM_SCHEDULE_TURNS,     /* all streams in turn, one step each */
  SIM_SCHEDULE_EARLY_DMA, /* transfers as soon as they can; engines in turn */
  SIM_SCHEDULE_LATE_DMA,  /* each engine as far as it can; a transfer only when all engines wait */
  SIM_SCHEDULE_RANDOM,    /* any stream that can go on, for some steps, by the seed */
  SIM_SCHEDULE_COUNT
};

struct sim_options {
  int64_t memory_max;  /* bytes of data; 0: 2 GiB */
  int64_t deadline_us; /* of clock_now_us; 0: none */
  enum sim_schedule schedule;
  uint64_t seed;
};

struct sim_counts {
  int64_t instrs, matmuls, dma_bytes;
};

/* Runs the program on args[n_args], which are not changed.  results[n_results] are filled; the caller has allocated
 * the bytes that the program's results have.  A null result is not copied.  counts may be NULL.  On ST_INPUT *fault says
 * what went wrong; otherwise it is SIM_FAULT_NONE. */
MUST_USE enum status sim_run(const struct sim_program *p, const void *const *args, void *const *results,
                             const struct sim_options *options, struct sim_counts *counts, struct sim_fault *fault);

/* Runs the streams of an engine program without values, and finds deadlocks and races only.  ST_LIMIT, without a fault,
 * for a program with a register_load: what it does depends on values. */
MUST_USE enum status sim_check_order(const struct sim_program *p, const struct sim_options *options,
                                     struct sim_fault *fault);

#endif
