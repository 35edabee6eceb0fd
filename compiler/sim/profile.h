/* profile: where the time of a timeline goes.
 *
 * Everything is derived from the executions of a timeline; nothing is simulated again.  The critical path is the chain of
 * executions, each of which began when the one before in the chain let it, that ends with the last event: it covers every
 * picosecond from 0 to the total once.
 */
#ifndef SIM_PROFILE_H
#define SIM_PROFILE_H

#include "nisa/cores.h"
#include "sim/timeline.h"

/* Why an instruction started no earlier, or what a part of the critical path is spent on. */
enum sim_wait {
  SIM_WAIT_WORK,      /* of the path only: the instruction itself */
  SIM_WAIT_ENGINE,    /* its engine was busy */
  SIM_WAIT_DATA,      /* it reads what another engine or a transfer wrote */
  SIM_WAIT_REUSE,     /* it writes memory that was still in use */
  SIM_WAIT_SEMAPHORE, /* another semaphore; the latency of any */
  SIM_WAIT_DMA_START, /* a trigger's latency until the first byte */
  SIM_WAIT_DMA_BUSY,  /* the DMA engines had other transfers of its queue */
  SIM_WAIT_BARRIER,
  SIM_WAIT_COUNT
};
const char *sim_wait_name(enum sim_wait w); /* "memory reused" */

/* An engine or a queue.  busy: of an engine, the time until it could start the next instruction; of a queue, the time in
 * which at least one transfer was under way. */
struct sim_lane_use {
  int64_t busy_ps, executions, bytes, operations;
  int64_t waits_ps[SIM_WAIT_COUNT]; /* before its instructions; their sum and busy are the total, but for the end */
};

/* A part of the critical path: from from_ps to to_ps, on account of an execution. */
struct sim_path_part {
  int exec;
  enum sim_wait wait;
  int64_t from_ps, to_ps;
};

/* The instructions of one line of the source; line 0: those without a place. */
struct sim_line {
  const char *file;
  int line;
  const struct src_loc *loc; /* of the first of them */
  int64_t executions, bytes, operations;
  int64_t busy_ps[NISA_ENGINE_COUNT]; /* of transfers: NISA_ENGINE_DMA; of triggers: the engine */
  int64_t critical_ps;
  int64_t waits_ps[SIM_WAIT_COUNT]; /* of the critical path, by what for */
};

/* What costs time, in words. */
struct sim_advice {
  const char *text;          /* a sentence without the place */
  const struct src_loc *loc; /* or NULL */
  int64_t cost_ps;           /* what it takes of the total, at most */
  enum sim_confidence confidence;
};

struct sim_occupancy {
  enum mem_space space;
  int core;
  int64_t capacity;   /* bytes of each partition */
  int64_t peak_bytes; /* of the fullest partition */
  int64_t peak_ps;    /* when */
  int n_alive;        /* at the peak, the largest first */
  const struct sim_life **alive;
  int n_lives; /* of buffers in this memory */
  int n_shown; /* at most 2,048: those of most bytes times time */
  const struct sim_shown {
    const struct sim_life *life;
    int buffer; /* the number in `buffers` */
  } *shown;     /* in the order of their starts */
  int n_buffers;
  const int *buffers; /* of the program, those that are shown */
  int n_points;       /* at most 512, in order: the bytes in use from then on, of the fullest partition */
  const struct sim_point {
    int64_t ps, bytes;
    int64_t part[8]; /* PSUM: bytes in use of each bank; SBUF: of the fullest partition in each group of 16 */
  } *points;
  bool has_places; /* allocate-memory has placed the buffers; otherwise the banks of PSUM are not known */
};

struct sim_profile {
  const struct sim_timeline *timeline;
  struct sim_lane_use *lanes;
  int n_path;
  struct sim_path_part *path; /* in the order of time */
  int64_t path_waits_ps[SIM_WAIT_COUNT];
  int n_lines;
  struct sim_line *lines; /* by their share of the critical path */
  int n_advice;
  struct sim_advice *advice;                               /* the dearest first */
  struct sim_occupancy sbuf[NISA_CORES], psum[NISA_CORES]; /* of each core of the program */
  int64_t hbm_read, hbm_written, dma_bytes;                /* bytes */
  int64_t dma_engine_ps;                                   /* the work of all DMA engines */
  int64_t matmul_operations, operations;                   /* of the Tensor engine, of the others */
  int64_t peak_operations; /* a second, for the types of its products, on all cores of the program */
  int64_t half_clock_ps;   /* the Tensor engine was busy at half clock */
  int64_t low_ps;          /* of the critical path: work whose cost has low confidence */
  const char *bound;       /* "memory", "compute": Tensor engine, "vector", …, "latency" */
};

/* What the cores of the program have together: DMA engines, and 10^9 bytes a second from and to HBM. */
int64_t sim_dma_engines(const struct sim_timeline *t);
int64_t sim_peak_gb_s(const struct sim_timeline *t);
/* In a. */
void sim_profile_make(const struct sim_timeline *t, struct arena *a, struct sim_profile *out);

#endif
