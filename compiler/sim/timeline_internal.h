/* timeline_internal: the state of the simulation, which the files of the timeline share.
 *
 *   timeline.c        engines, transfers, the loop
 *   timeline_meet.c   where several lanes meet: barriers, and exchanges between cores
 */
#ifndef SIM_TIMELINE_INTERNAL_H
#define SIM_TIMELINE_INTERNAL_H

#include "base/clock.h"
#include "base/index.h"
#include "nisa/cores.h"
#include "sim/dma.h"
#include "sim/source.h"
#include "sim/tensor_clock.h"
#include "sim/timeline.h"

enum { FLIGHT = 8 /* instructions of one engine whose results may still be under way */ };

/* An earlier instruction of an engine, and what it writes. */
struct flight {
  int exec;
  int64_t end;
  int n;
  struct sim_region writes[2];
};

struct lane {
  enum nisa_engine engine;
  int trigger, core;
  int64_t free;  /* when the next instruction can start */
  int last;      /* the execution that it waits for then; -1: none */
  bool has_item; /* `item` is the next one */
  struct sim_item item;
  struct { /* executions that raised the semaphore since the last barrier */
    int *v;
    int n, cap;
  } raised;
  struct flight flight[FLIGHT];
  int n_flights; /* ever; the newest are at n_flights modulo FLIGHT */
  int computed;  /* the last execution that is no trigger; -1: none */
  int table;     /* that the Scalar engine has loaded */
  /* of a queue */
  struct {
    struct touched {
      int n;
      struct {
        int buffer;
        int64_t instance;
      } v[NISA_OPERANDS_MAX];
    } *v;
    int n, cap;
  } touched;      /* by each transfer, so that it can be counted when it ends */
  int64_t n_done; /* transfers */
  int n_unpaired; /* exchanges that have been started here, but not by the other core */
};

/* A way to memory that two engines of trn1 share. */
struct port {
  int64_t free;
  int exec;
  enum nisa_engine engine;
};

/* What each core has of its own. */
struct core {
  struct sim_tensor_clock tensor;
  int64_t tensor_start; /* of the last product */
  struct port ports[2]; /* to SBUF, to PSUM */
  int built;            /* the last execution of the lane of descriptors; -1: none */
  struct {
    struct exchange {
      int queue;
      struct sim_transfer transfer;
    } *v;
    int n, cap;
  } exchanges; /* that it has started */
};

struct machine {
  const struct sim_program *program;
  struct arena *arena;
  enum target target;
  struct sim_fault *fault;
  struct time_limit limit;
  int executions_max;
  struct sim_source *source;
  const struct sim_lane *lanes_def;
  int n_lanes;
  struct lane *lanes;
  struct sim_cost *costs;
  struct {
    struct sim_exec *v;
    int n, cap;
  } execs;
  struct {
    struct sim_life *v;
    int n, cap;
  } lives;
  struct index by_buffer; /* of lives */
  struct sim_dma dma;
  struct core cores[NISA_CORES];
};

/* A time, and what it waits for. */
struct moment {
  int64_t at;
  enum sim_reason reason;
  int cause;
};

static inline void later(struct moment *x, int64_t at, enum sim_reason reason, int cause) {
  if (at > x->at)
    *x = (struct moment){at, reason, cause};
}

/* Appends an execution; returns its number. */
int timeline_add_exec(struct machine *m, struct sim_exec x);

/* ---- timeline_meet.c --------------------------------------------------------------------------------------------- */

/* All transfers of the queue that were started are complete. */
bool timeline_is_idle(const struct machine *m, int queue);
/* Starts an exchange between the cores once both have come to it: number n of each. */
void timeline_add_exchange(struct machine *m, int queue, struct sim_transfer x);
/* Passes the barriers to which all have come; false if there is none, or with *is_failed and a fault. */
bool timeline_run_barriers(struct machine *m, bool *is_failed);

#endif
