/* machine: the state of a run, and access to the memories.  Only the files that execute instructions see it. */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "nisa/cores.h"
#include "sim/fault.h"
#include "sim/number.h"
#include "sim/options.h"
#include "sim/state.h"

struct sim_memory {
  char *data;             /* NULL: not allocated at this time */
  struct sim_state state; /* of its elements; the caller's arrays and constants that nothing writes to have none */
  char *given;            /* the caller's memory for a result that is all of this buffer, or NULL */
  /* of a place on chip: the buffer's bytes in each partition, and the bytes from one partition to the next.  pitch is 0 for
   * others, whose bytes lie one after the other */
  int64_t row, pitch;
  int64_t copy; /* of a place: the one that the last allocation chose; that of an operand is added to it */
  bool is_released;
};

/* The memories in which allocations have places: SBUF and PSUM of each core, and the scratch space in HBM. */
enum { SIM_SCRATCH, SIM_SBUF, SIM_PSUM, SIM_SPACES_PER_CORE = 2, SIM_SPACES = 1 + SIM_SPACES_PER_CORE * NISA_CORES };
enum { SIM_SIZES = 4 }; /* of elements: 1, 2, 4 and 8 bytes */
struct sim_space {
  char *data; /* NULL until an allocation is in it */
  struct sim_state state[SIM_SIZES];
  size_t size;   /* of data */
  int64_t pitch; /* bytes from one partition to the next; HBM has one */
};

/* A transfer into SBUF whose bytes have not been moved yet (deferred.c). */
enum { SIM_DEFERRED = 64 };
struct sim_deferred {
  int buffer; /* the destination is in this copy of it: */
  int64_t copy;
  int64_t row0, rows, byte0, bytes; /* partitions, and bytes in each of them */
  char *to;
  const char *from;
  int64_t to_step, from_step; /* bytes from one partition to the next */
  int64_t column; /* of a place: where the destination begins in each partition of SBUF; -1: the buffer has none */
};

struct sim_machine {
  const struct sim_program *program;
  int64_t *regs;
  struct sim_memory *memories; /* one per buffer; NULL: the run has no values */
  struct sim_space spaces[SIM_SPACES];
  int64_t used, most;                         /* bytes of data */
  struct sim_deferred deferred[SIM_DEFERRED]; /* the oldest first */
  int n_deferred;
  struct sim_groups *groups; /* NULL: none yet */
  const struct sim_options *options;
  struct sim_counts counts;
  const struct sim_instr *instr;   /* that is executed */
  int stream;                      /* that executes it; 0 if the program is one sequence */
  int core;                        /* that executes it */
  const struct sim_parcel *parcel; /* of a sendrecv: what the other core has sent */
  struct sim_fault *fault;
  int64_t work;                                  /* elements since the last look at the clock */
  struct sim_generators *generators[NISA_CORES]; /* of random numbers; NULL until one is needed */
  char *scratch;                                 /* grows as an instruction needs it */
  size_t scratch_size;
};

/* Records the fault of the current instruction; returns false. */
bool sim_fail(struct sim_machine *m, enum sim_fault_kind kind, const char *fmt, ...) PRINTF(3, 4);
/* True when the deadline has passed. */
bool sim_is_late(const struct sim_machine *m);
/* Counts elements of a long instruction, and looks at the clock from time to time; false and a fault when it is late. */
MUST_USE bool sim_work(struct sim_machine *m, int64_t elements);
/* At least n bytes, valid until the next call; false and a fault when there are none. */
bool sim_scratch(struct sim_machine *m, size_t n, void **out);

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Begins a buffer's life, with all of it written or not; of an allocation that has a place in its copy number `copy`
 * modulo its copies.  The data is not initialised: the state keeps the program from reading it.  False and a fault when
 * there is no memory. */
MUST_USE bool sim_allocate(struct sim_machine *m, int buffer, int64_t copy, bool is_written);
void sim_drop(struct sim_machine *m, int buffer);
/* The memory of a core in which allocations of this kind have their places. */
struct sim_space *sim_space_of(struct sim_machine *m, enum mem_space space, int core);
/* Drops all buffers and frees what held them. */
void sim_free_memories(struct sim_machine *m);

/* ---- operands of the current instruction ------------------------------------------------------------------------- */

/* Where a copy of a buffer is: rows of `row` bytes that begin `pitch` bytes apart; pitch 0: one row without gaps. */
struct sim_rows {
  char *first;
  int64_t row, pitch;
};

/* An operand at the addresses that it has now.  Free dimensions are merged where elements are adjacent. */
struct sim_access {
  const struct sim_operand *o;
  const char *name;
  enum sim_type type;
  int size;             /* of an element, bytes */
  int shift;            /* of a unit of its buffer's states: 1 << shift bytes */
  int parts;            /* of an element: so many units */
  int buffer;           /* -1: a scalar */
  int64_t copy;         /* of the buffer */
  struct sim_rows rows; /* that copy */
  int64_t start;        /* the byte of the buffer that the first element is, as if its bytes lay one after the other */
  char *at;             /* the first element */
  struct sim_state state;            /* from that element on */
  struct sim_dim dim[NISA_TILE_MAX]; /* of the operand, with the steps that its memory has */
  int n_free;
  struct sim_dim free[NISA_TILE_MAX];
  char scalar[8];
};

/* Moves x by bytes of its buffer, to where it is still inside. */
void sim_move(struct sim_access *x, int64_t bytes);
/* Finds operand k: its buffer is allocated and the tile is inside.  An absent operand is a fault. */
MUST_USE bool sim_open(struct sim_machine *m, int k, struct sim_access *x);
/* The same for looking at the values of an operand, even one that the instruction writes, after it has been executed. */
MUST_USE bool sim_look(struct sim_machine *m, int k, struct sim_access *x);

/* ---- deferred.c: transfers that are not carried out until something needs the bytes at their place ---------------- */

/* Defers the current instruction, a copy of src to dst, if that can be done; *is_done says so.  False and a fault when an
 * element of src is not written. */
MUST_USE bool sim_defer(struct sim_machine *m, const struct sim_access *dst, const struct sim_access *src,
                        bool *is_done);
/* x is going to be read: its rows may become those of a transfer's source.  x->start and x->rows are known. */
void sim_settle_read(struct sim_machine *m, struct sim_access *x);
/* x, which is complete, is going to be written. */
void sim_settle_write(struct sim_machine *m, const struct sim_access *x);
/* The buffer's memory of its own is going to be released; the copy of it that has a place is going to begin a life. */
void sim_settle_drop(struct sim_machine *m, int buffer);
void sim_settle_place(struct sim_machine *m, int buffer, int64_t copy);
/* Carries out all deferred transfers. */
void sim_settle_all(struct sim_machine *m);

/* ---- elements ---------------------------------------------------------------------------------------------------- */

/* Elements first … first+n-1 of partition p; a scalar is repeated.  False and a fault when one is not written. */
MUST_USE bool sim_read_f32(struct sim_machine *m, const struct sim_access *x, int64_t p, int64_t first, int64_t n,
                           float *out);
/* The same as integers of type t, which is as wide as the operand's type. */
MUST_USE bool sim_read_int(struct sim_machine *m, const struct sim_access *x, enum sim_type t, int64_t p, int64_t first,
                           int64_t n, int64_t *out);
/* The bits of the elements, without gaps. */
MUST_USE bool sim_read_bits(struct sim_machine *m, const struct sim_access *x, int64_t p, int64_t first, int64_t n,
                            char *out);

/* Elements first … first+n-1 of partition p as f32: where they are, if they lie there one after the other as such, else in
 * room[n].  NULL and a fault when one is not written. */
MUST_USE const float *sim_row_f32(struct sim_machine *m, const struct sim_access *x, int64_t p, int64_t first,
                                  int64_t n, float *room);
/* Where they can be computed: in the memory of x if they lie there one after the other as f32, else in room[n].  Then
 * sim_finish_f32 converts and writes what is not where it belongs. */
float *sim_start_f32(const struct sim_access *x, int64_t p, int64_t first, int64_t n, float *room);
void sim_finish_f32(const struct sim_access *x, int64_t p, int64_t first, int64_t n, const float *row);
/* Copies the bits of partition p between accesses of one type and shape, if its elements lie one after the other in both;
 * *is_done says so.  False and a fault when one is not written. */
MUST_USE bool sim_copy_row(struct sim_machine *m, const struct sim_access *dst, const struct sim_access *src, int64_t p,
                           bool *is_done);
/* The distance of partitions in elements, if the elements of each lie one after the other and the partitions are evenly
 * spaced; -1 if not.  Then all of x can be read and written where it is: */
int64_t sim_plain(const struct sim_access *x);
MUST_USE bool sim_check_plain(struct sim_machine *m, const struct sim_access *x); /* all are written; else a fault */
void sim_mark_plain(const struct sim_access *x);                                  /* all are written now */

void sim_write_f32(const struct sim_access *x, int64_t p, int64_t first, int64_t n, const float *in);
/* Integers wrap around; a float gets their bits, or their values. */
void sim_write_int(const struct sim_access *x, int64_t p, int64_t first, int64_t n, const int64_t *in);
void sim_write_int_value(const struct sim_access *x, int64_t p, int64_t first, int64_t n, const int64_t *in,
                         bool is_unsigned);
void sim_write_bits(const struct sim_access *x, int64_t p, int64_t first, int64_t n, const char *in);

/* group.c: the state of what the current matmul's group has written, if it writes to dst. */
uint8_t sim_group_of(struct sim_machine *m, const struct sim_access *dst);
void sim_free_groups(struct sim_machine *m);

/* True if writing dst while src is read could change what is read later: they share memory, but are not the same
 * elements in the same order. */
bool sim_conflicts(const struct sim_access *dst, const struct sim_access *src);
/* False if it is certain that two operands in one buffer have no byte in common. */
bool sim_may_meet(const struct sim_machine *m, const struct sim_access *x, const struct sim_access *y);

/* The current instruction has been executed: keeps the operands that the caller watches (watch.c). */
void sim_watch_now(struct sim_machine *m);
/* The life of a buffer ends. */
void sim_watch_end(struct sim_machine *m, int buffer);

/* ---- instructions ------------------------------------------------------------------------------------------------ */

/* Executes an instruction with the registers m->regs, and keeps what the caller watches.  run.c */
MUST_USE bool sim_execute(struct sim_machine *m, const struct sim_instr *i);

/* exec_copy.c, exec_arith.c, exec_matmul.c, exec_collective.c: each executes the current instruction. */
MUST_USE bool sim_exec_copy(struct sim_machine *m);
MUST_USE bool sim_exec_transpose(struct sim_machine *m);
MUST_USE bool sim_exec_gather(struct sim_machine *m); /* dma_copy_indirect, dma_scatter */
MUST_USE bool sim_exec_dma_compute(struct sim_machine *m);
MUST_USE bool sim_exec_predicated(struct sim_machine *m);
MUST_USE bool sim_exec_memset(struct sim_machine *m);
MUST_USE bool sim_exec_iota(struct sim_machine *m);
MUST_USE bool sim_exec_register_load(struct sim_machine *m);
MUST_USE bool sim_exec_register_store(struct sim_machine *m);
MUST_USE bool sim_exec_elementwise(struct sim_machine *m); /* arith, power, scalar, activation, reciprocal */
MUST_USE bool sim_exec_reduce(struct sim_machine *m);
MUST_USE bool sim_exec_cross_lane(struct sim_machine *m);
MUST_USE bool sim_exec_scan(struct sim_machine *m);         /* tensor_tensor_scan, tensor_scalar_cumulative */
MUST_USE bool sim_exec_stats(struct sim_machine *m);        /* bn_stats, bn_aggr */
MUST_USE bool sim_exec_eight(struct sim_machine *m);        /* max8, find_index8, match_replace8 */
MUST_USE bool sim_exec_shuffle(struct sim_machine *m);      /* stream_shuffle */
MUST_USE bool sim_exec_square(struct sim_machine *m);       /* transpose */
MUST_USE bool sim_exec_row_gather(struct sim_machine *m);   /* gather */
MUST_USE bool sim_exec_local_gather(struct sim_machine *m); /* local_gather */
MUST_USE bool sim_exec_bounds(struct sim_machine *m);       /* sequence_bounds */
MUST_USE bool sim_exec_nonzero(struct sim_machine *m);      /* nonzero_with_count */
MUST_USE bool sim_exec_topk(struct sim_machine *m);
MUST_USE bool sim_exec_random(struct sim_machine *m);
MUST_USE bool sim_exec_random_seed(struct sim_machine *m);
MUST_USE bool sim_exec_random_state(struct sim_machine *m); /* random_set_state, random_get_state */
MUST_USE bool sim_exec_matmul(struct sim_machine *m);       /* matmul, matmul_mx */
MUST_USE bool sim_exec_quantize(struct sim_machine *m);     /* quantize_mx */
/* The elements of operand k of a matmul_mx times their scales, as a row of f32 for each 4 partitions * element. */
MUST_USE bool sim_read_packed(struct sim_machine *m, const struct sim_access *x, const struct sim_access *scale,
                              enum sim_type format, float *out);
MUST_USE bool sim_exec_collective(struct sim_machine *m);

/* exec_exchange.c: what one core sends to the other: the elements of an access, without gaps. */
struct sim_parcel {
  char *bits; /* on the heap */
  int64_t partitions, elements;
  enum sim_type type;
};
/* Takes a copy of src of the sendrecv i. */
MUST_USE bool sim_exchange_send(struct sim_machine *m, const struct sim_instr *i, struct sim_parcel *out);
/* dst of the current instruction = m->parcel. */
MUST_USE bool sim_exec_exchange(struct sim_machine *m);

#endif
