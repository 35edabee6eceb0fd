/* timeline: when each instruction of a program runs on the machine: a simulation by discrete events.
 *
 * Engines execute their programs in order.  An instruction starts when its engine is free and what its waits ask for has
 * happened; cost.h says when the engine is free again and when the result is written.  Besides that the machine has these
 * rules:
 *
 *     same engine   an instruction that reads or overwrites what an earlier one on its engine is still writing waits for it
 *     Tensor        the stationary operand of a product is loaded while the product before is computed; on trn2 the clock
 *                   is halved until a window of time was busy enough
 *     Scalar        a function whose table is not loaded loads it first
 *     transfers     a trigger holds its engine; later the bytes move, on 16 DMA engines: each serves the queues by turns
 *                   and the transfers of one queue in order
 *     descriptors   GpSimd builds those of a transfer after its last instruction before the trigger, whatever the trigger
 *                   waits for, and one transfer after another
 *     trn1          Vector and GpSimd share a way to SBUF, Vector and Scalar one to PSUM
 *
 * A program without streams is timed, too, with an ideal schedule of its dependences: its instructions go to their engines
 * in program order, and each starts when the last access to the same memory that it conflicts with has ended.  Sync
 * triggers loads and, as if it were another engine, stores; GpSimd triggers transfers that convert types, and collectives.
 * What a loop allocates has as many copies as its place says; without one two in PSUM and two to eight in SBUF.
 *
 * No values are computed.  Where control depends on loaded data, the outcome comes from a record of a run with values;
 * without one every second visit of a branch is taken, so that a loop makes one round, and n_assumed says how many times
 * that happened.
 *
 * The result is the same on every host.  Times are picoseconds from the start of the program.
 */
#ifndef SIM_TIMELINE_H
#define SIM_TIMELINE_H

#include "base/clock.h"
#include "sim/cost.h"
#include "sim/lane.h"
#include "sim/record.h"
#include "sim/fault.h"

enum sim_exec_kind {
  SIM_EXEC_INSTR,
  SIM_EXEC_TRIGGER,  /* of the transfer `instr` */
  SIM_EXEC_TRANSFER, /* on a queue */
  SIM_EXEC_BUILD,    /* GpSimd builds the descriptors of the transfer `instr`, on a lane of its own */
  SIM_EXEC_TABLE,    /* the Scalar engine loads the table that `instr` needs */
  SIM_EXEC_BARRIER   /* instr is -1 */
};

/* What an execution waited for last.  Its start is: */
enum sim_reason {
  SIM_REASON_START,      /* 0: nothing */
  SIM_REASON_ENGINE,     /* the cause's `free`: the engine was busy with it */
  SIM_REASON_STATIONARY, /* the cause's start, or that of the wait, and the time to load the stationary operand */
  SIM_REASON_SIGNAL,     /* the cause's end and the latency of a semaphore */
  SIM_REASON_INTERLOCK,  /* the cause's end and a latency: it is on the same engine */
  SIM_REASON_PORT,       /* the cause's `free`: another engine uses the way to memory; trn1 */
  SIM_REASON_TRIGGER,    /* a transfer: the start of its trigger and its latency */
  SIM_REASON_BUILD,      /* a trigger: the cause's end, when its descriptors are built */
  SIM_REASON_QUEUE,      /* a transfer: the cause, of the same queue, has left a DMA engine */
  SIM_REASON_BARRIER,    /* the cause is the barrier before */
  SIM_REASON_COUNT
};
const char *sim_reason_name(enum sim_reason r); /* "semaphore" */

struct sim_exec {
  int instr;
  int16_t lane;
  uint8_t kind, reason;
  bool is_matmul;
  bool is_half_clock; /* a matmul that ran at half clock, in part at least */
  int cause;          /* an execution, or -1 */
  int64_t ready; /* when its engine was free; of a matmul that waited for its stationary operand: when the load of it
                       * began; of a transfer: when its bytes could move */
  int64_t start; /* of a transfer: when the first byte moved */
  int64_t free;  /* when the next one could start; of a transfer: its end */
  int64_t end;   /* when the result was written, or all bytes and the semaphore */
};

/* Memory in use: from the start of the first access to the end of the last. */
struct sim_life {
  int buffer;
  int64_t instance; /* of a buffer with copies: the n-th use; it is in copy n modulo the copies */
  int64_t from, to;
};

struct sim_timeline {
  const struct sim_program *program;
  enum target target;
  const struct sim_cost *costs; /* one per instruction */
  int n_lanes;
  const struct sim_lane
      *lanes;    /* the program's streams, or those of the ideal schedule; then, if GpSimd triggers transfers,
                                 * "descriptors" */
  bool is_ideal; /* the program has no streams */
  int n;
  const struct sim_exec *execs; /* in the order of simulation; those of one lane in the order of their starts */
  int n_lives;
  const struct sim_life *lives;
  int64_t total_ps;
  int n_assumed; /* branches on data whose outcome was not in the record */
};

struct sim_time_options {
  enum target target;
  const struct sim_record *record; /* or NULL */
  int executions_max;              /* 0: 4 million */
  struct time_limit limit;
};

/* Everything is allocated in a.  ST_INPUT with a fault for a program that cannot run to its end: a wait that is never met,
 * a trigger without a transfer, more executions than the limit, no more time. */
MUST_USE enum status sim_time(const struct sim_program *p, const struct sim_time_options *options, struct arena *a,
                              struct sim_timeline *out, struct sim_fault *fault);

#endif
