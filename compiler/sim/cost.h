/* cost: what an instruction takes on the machine, from its operands and the target.
 *
 * cost.def has the numbers, with their sources and how far to trust them.  Times are whole picoseconds everywhere, so that
 * results are the same on every host.  A cost does not depend on registers, so it is computed once per instruction; what
 * depends on the machine's state (the Tensor engine's clock, the loaded table, DMA engines that are shared) is added by
 * events.c.
 *
 * An engine starts an instruction, can start the next one `hold` later, and has written the result `done` later; done is
 * at least hold.  An instruction that needs the result starts sim_cost_signal after that.
 */
#ifndef SIM_COST_H
#define SIM_COST_H

#include "sim/program.h"

enum { SIM_PS_PER_NS = 1000 };

enum sim_confidence { SIM_CONFIDENCE_L, SIM_CONFIDENCE_M, SIM_CONFIDENCE_H };
enum sim_unit {
  SIM_UNIT_MHZ,
  SIM_UNIT_NS,
  SIM_UNIT_PS,
  SIM_UNIT_CYCLES,
  SIM_UNIT_MB_S,
  SIM_UNIT_PERCENT,
  SIM_UNIT_COUNT
};

enum sim_constant {
#define SIM_CONSTANT(e, unit, v1, v2, v3, c1, c2, c3, what, source) e,
#define SIM_RULE(e, name, engine, s1, s2, s3, hold, done, c1, c2, c3, formula, source)
#include "sim/cost.def"
#undef SIM_CONSTANT
#undef SIM_RULE
  SIM_CONSTANT_COUNT
};
enum sim_cost_rule {
#define SIM_CONSTANT(e, unit, v1, v2, v3, c1, c2, c3, what, source)
#define SIM_RULE(e, name, engine, s1, s2, s3, hold, done, c1, c2, c3, formula, source) e,
#include "sim/cost.def"
#undef SIM_CONSTANT
#undef SIM_RULE
  SIM_COST_COUNT
};

/* A row of the table. */
struct sim_constant_def {
  const char *what, *source;
  enum sim_unit unit;
  int64_t value[TARGET_COUNT];
  enum sim_confidence confidence[TARGET_COUNT];
};
struct sim_rule_def {
  const char *name, *formula, *source;
  enum nisa_engine engine;
  int slope[TARGET_COUNT]; /* hundredths of a cycle per element */
  enum sim_constant hold, done;
  enum sim_confidence confidence[TARGET_COUNT];
};
const struct sim_constant_def *sim_constant_def(enum sim_constant c);
const struct sim_rule_def *sim_rule_def(enum sim_cost_rule r);
int64_t sim_constant(enum sim_constant c, enum target t);    /* in the row's unit */
int64_t sim_constant_ps(enum sim_constant c, enum target t); /* of a row in NS or PS */
/* The time of so many cycles of an engine; of the Tensor engine at full clock. */
int64_t sim_cycles_ps(int64_t cycles, enum nisa_engine e, enum target t);

/* A transfer is split by partitions, or between HBM and HBM into pieces, among the DMA engines. */
struct sim_dma_cost {
  int64_t bytes;            /* in all, of the larger side */
  int64_t descriptor_bytes; /* of each descriptor */
  int64_t descriptors;
  int64_t units;      /* partitions or pieces: unit u is moved by engine u modulo 16 */
  int64_t unit_ps;    /* a DMA engine's time for a unit */
  int64_t latency_ps; /* before the first byte, besides the trigger's: steps of a collective */
  int64_t ideal_ps;   /* unit_ps if all bytes of the unit were one descriptor */
};

struct sim_cost {
  enum sim_cost_rule rule;
  enum sim_confidence confidence;
  int64_t hold, done;          /* ps; of a matmul and of a transfer 0 */
  int64_t load_cycles, cycles; /* of the Tensor engine */
  int table;                   /* the set of functions that the Scalar engine needs; 0: none */
  struct sim_dma_cost dma;
};

struct sim_cost sim_cost_of(const struct sim_program *p, const struct sim_instr *i, enum target t);
/* The part of sim_cost_of for transfers; *rule is the row. */
struct sim_dma_cost sim_dma_cost_of(const struct sim_program *p, const struct sim_instr *i, enum target t,
                                    enum sim_cost_rule *rule);
/* The elements of the innermost run without gaps; on chip it stays inside a partition. */
int64_t sim_run_elements(const struct sim_program *p, const struct sim_operand *o);
/* The time that DMA engine e, 0 … 15, works on a transfer. */
int64_t sim_dma_work(const struct sim_dma_cost *d, int e);
/* From the first byte on, the time in which the trigger's hardware supplies the descriptors. */
int64_t sim_dma_supply(const struct sim_dma_cost *d, enum nisa_engine trigger, enum target t);
/* The transfer's shortest time, on DMA engines that do nothing else: from the first byte to the semaphore write. */
int64_t sim_dma_alone(const struct sim_dma_cost *d, enum nisa_engine trigger, enum target t);

/* How long GpSimd builds the descriptors, before; from the trigger's start, how long it holds its engine, and when the first
 * byte moves. */
struct sim_trigger_cost {
  int64_t build, hold, start;
};
struct sim_trigger_cost sim_trigger_cost(const struct sim_dma_cost *d, enum nisa_engine trigger, enum target t);
/* From the end of an instruction on one engine, or of a transfer, to the start of one that waits for it. */
int64_t sim_cost_signal(enum nisa_engine from, enum nisa_engine to, enum target t);

/* Useful arithmetic: two for each product of a matmul, one for each element of other instructions. */
int64_t sim_instr_operations(const struct sim_instr *i);

#endif
