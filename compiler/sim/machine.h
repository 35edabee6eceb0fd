/* machine: the state of a run, and access to the memories.  Only the files that execute instructions see it. */
#ifndef SIM_MACHINE_H
#define SIM_MACHINE_H

#include "sim/number.h"
#include "sim/fault.h"
#include "sim/options.h"

/* What a shadow byte says of an element.  SIM_STARTED … SIM_GROUP_END - 1: a matmul of the accumulation group of this
 * number has written it; SIM_ENDED: one of a group to which nothing is added any more. */
enum sim_shadow { SIM_UNWRITTEN, SIM_WRITTEN, SIM_STARTED, SIM_GROUP_END = 255, SIM_ENDED = 255 };

struct sim_memory {
  char *data;      /* NULL: not allocated at this time */
  uint8_t *shadow; /* one byte per element; NULL: all are written, and none will be (the caller's arrays, constants) */
  char *given;     /* the caller's memory for a result that is all of this buffer, or NULL */
  /* of a place on chip: the buffer's bytes in each partition, and the bytes from one partition to the next.  pitch is 0 for
   * others, whose bytes lie one after the other */
  int64_t row, pitch;
  bool is_released;
};

/* The memories in which allocations have places. */
enum { SIM_SBUF, SIM_PSUM, SIM_SCRATCH, SIM_SPACES };
enum { SIM_SHADOWS = 4 }; /* for elements of 1, 2, 4 and 8 bytes */
struct sim_space {
  char *data; /* NULL until an allocation is in it */
  uint8_t *shadow[SIM_SHADOWS];
  size_t size;   /* of data; shadow k has size >> k bytes */
  int64_t pitch; /* bytes from one partition to the next; HBM has one */
};

/* Blocks that were released, for allocations of the same size: what a loop allocates would else come from the system each
 * time, page by page. */
enum { SIM_SPARE = 64 };
struct sim_spare {
  char *block;
  size_t size;
};

struct sim_machine {
  const struct sim_program *program;
  int64_t *regs;
  struct sim_memory *memories; /* one per buffer; NULL: the run has no values */
  struct sim_space spaces[SIM_SPACES];
  int64_t used, most; /* bytes of data */
  struct sim_spare spare[SIM_SPARE];
  size_t spare_bytes;
  struct sim_groups *groups; /* NULL: none yet */
  const struct sim_options *options;
  struct sim_counts counts;
  const struct sim_instr *instr; /* that is executed */
  int stream;                    /* that executes it; 0 if the program is one sequence */
  struct sim_fault *fault;
  int64_t work;  /* elements since the last look at the clock */
  char *scratch; /* grows as an instruction needs it */
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

/* Begins a buffer's life, all of it in this state; of an allocation that has a place in its copy number `copy` modulo its
 * copies.  The data is not initialised: the shadow keeps the program from reading it.  False and a fault when there is no
 * memory. */
MUST_USE bool sim_allocate(struct sim_machine *m, int buffer, int64_t copy, enum sim_shadow shadow);
void sim_drop(struct sim_machine *m, int buffer);
/* Drops all buffers and frees what held them. */
void sim_free_memories(struct sim_machine *m);

/* ---- operands of the current instruction ------------------------------------------------------------------------- */

/* An operand at the addresses that it has now.  Free dimensions are merged where elements are adjacent. */
struct sim_access {
  const struct sim_operand *o;
  const char *name;
  enum sim_type type;
  int size;      /* of an element, bytes */
  int buffer;    /* -1: a scalar */
  int64_t start; /* the byte of the buffer that the first element is, as if its bytes lay one after the other */
  char *at;      /* the first element */
  uint8_t *shadow;
  struct sim_dim dim[NISA_TILE_MAX]; /* of the operand, with the steps that its memory has */
  int n_free;
  struct sim_dim free[NISA_TILE_MAX];
  char scalar[8];
  uint8_t scalar_shadow;
};

/* Moves x by bytes of its buffer, to where it is still inside. */
void sim_move(const struct sim_machine *m, struct sim_access *x, int64_t bytes);
/* Finds operand k: its buffer is allocated and the tile is inside.  An absent operand is a fault. */
MUST_USE bool sim_open(struct sim_machine *m, int k, struct sim_access *x);

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

/* group.c: the shadow of what the current matmul's group has written, if it writes to dst. */
uint8_t sim_group_of(struct sim_machine *m, const struct sim_access *dst);
void sim_free_groups(struct sim_machine *m);

/* True if writing dst while src is read could change what is read later: they share memory, but are not the same
 * elements in the same order. */
bool sim_conflicts(const struct sim_access *dst, const struct sim_access *src);

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
MUST_USE bool sim_exec_gather(struct sim_machine *m);
MUST_USE bool sim_exec_predicated(struct sim_machine *m);
MUST_USE bool sim_exec_memset(struct sim_machine *m);
MUST_USE bool sim_exec_iota(struct sim_machine *m);
MUST_USE bool sim_exec_register_load(struct sim_machine *m);
MUST_USE bool sim_exec_elementwise(struct sim_machine *m); /* arith, power, scalar, activation, reciprocal */
MUST_USE bool sim_exec_reduce(struct sim_machine *m);
MUST_USE bool sim_exec_cross_lane(struct sim_machine *m);
MUST_USE bool sim_exec_matmul(struct sim_machine *m);
MUST_USE bool sim_exec_collective(struct sim_machine *m);

#endif
