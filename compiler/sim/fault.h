/* fault: what a program does wrong when it runs. */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

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

#endif
