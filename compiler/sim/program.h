/* program: a function of NISA, decoded for running.
 *
 * decode.c makes a program from a module that nisa_verify has accepted; the files decode*.c are the only ones here that
 * know MLIR.  A program is constant once it is made, lives in one arena, and can be run several times (run.h).
 *
 *     buffers     what holds data: arguments, globals, allocations
 *     registers   the scalars, 64 bits each: loop variables, index arithmetic, loaded numbers
 *     nodes       the code, in program order
 *     instrs      the instructions, with operands that are affine in the registers
 *
 * Numbers (of buffers, registers, nodes, instructions) are indices into the program's arrays, and -1 where there is none.
 * decode.c ensures that each is in range.  Whether an access stays inside its buffer is known only when it runs.
 */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "base/arena.h"
#include "base/src.h"
#include "nisa/kinds.h"

enum sim_type {
  SIM_NONE,
#define SIM_TYPE(e, name, bytes, kind) e,
#include "sim/types.def"
#undef SIM_TYPE
  SIM_TYPE_COUNT
};

enum sim_operator {
  SIM_NO_OPERATOR,
#define SIM_ARITH(e, name) e,
#define SIM_BITS(e, name) e,
#define SIM_FUNCTION(e, name) e,
#include "sim/operators.def"
#undef SIM_ARITH
#undef SIM_BITS
#undef SIM_FUNCTION
  SIM_OPERATOR_COUNT
};

enum sim_step_kind {
  SIM_STEP_NONE,
#define SIM_STEP(e, name, operands) e,
#include "sim/steps.def"
#undef SIM_STEP
  SIM_STEP_COUNT
};

/* constant + the sum of factor * register, modulo 2^64. */
struct sim_term {
  int reg;
  int64_t factor;
};
struct sim_linear {
  int64_t constant;
  int n;
  const struct sim_term *terms;
};

/* ---- buffers ---------------------------------------------------------------------------------------------------- */

enum sim_buffer_kind { SIM_ARGUMENT, SIM_GLOBAL, SIM_ALLOC };

/* Where allocate-memory put an allocation.  Copy k of an allocation in a loop is k * stride bytes after the first. */
struct sim_place {
  bool is_set;
  int partition;  /* the first one, in SBUF */
  int bank;       /* the first one, in PSUM */
  int64_t offset; /* bytes: in each partition of SBUF, in the bank of PSUM, in the kernel's scratch space in HBM */
  int copies;     /* at least 1 */
  int64_t stride; /* bytes, in each partition on chip; of PSUM a multiple of the size of a bank */
};

/* The elements are in row-major order without gaps.  On chip, dimension 0 is the partition. */
struct sim_buffer {
  enum sim_buffer_kind kind;
  enum mem_space space;
  enum sim_type type;
  int rank;
  int64_t dims[NISA_RANK_MAX];
  int64_t bytes;
  int unit;               /* of its states, bytes: the smallest element that an instruction accesses it with */
  const void *initial;    /* globals: the elements; NULL: not initialised */
  int64_t initial_repeat; /* bytes of `initial` that repeat to the end of the buffer; 0: it is as long as the buffer */
  const struct src_loc *loc; /* or NULL */
  struct sim_place place;    /* of an allocation */
  int core;                  /* whose memory it is in, on chip */
};

/* ---- operands --------------------------------------------------------------------------------------------------- */

/* One dimension of a tile: the extent, and bytes from one element to the next. */
struct sim_dim {
  int64_t n, step;
};

/* An index of a memref: the tile covers at + low … at + high, which must be inside 0 … extent - 1.  Bounds that hold
 * whatever the registers are, are not in the program. */
struct sim_bound {
  struct sim_linear at;
  int64_t low, high, extent;
  int dim; /* of the memref that the operand names, for the message */
};

enum sim_operand_kind { SIM_ABSENT, SIM_SCALAR, SIM_ACCESS };

struct sim_operand {
  enum sim_operand_kind kind;
  enum sim_type type;
  int reg; /* SIM_SCALAR */
  /* SIM_ACCESS: of `buffer`, or, if that is -1, of the buffer whose number is in register `ref` */
  int buffer, ref;
  struct sim_linear copy;  /* of the buffer, modulo its copies; 0 unless a nisa.rotate selects one */
  int group;               /* of a rotate in PSUM: a register that each execution of the rotate changes; else -1 */
  struct sim_linear start; /* byte of the first element */
  int n_dims, par_dims;    /* partitions first, as in the text */
  struct sim_dim dim[NISA_TILE_MAX];
  int64_t partitions, elements; /* the product of the partition dimensions, and of the others */
  int n_bounds;
  const struct sim_bound *bounds;
};

/* ---- instructions ----------------------------------------------------------------------------------------------- */

struct sim_instr {
  enum nisa_kind kind;
  enum nisa_engine engine;
  const struct nisa_op_def *def;
  const struct src_loc *loc;                     /* the first Python place, or NULL */
  struct sim_operand operand[NISA_OPERANDS_MAX]; /* as in def */
  enum sim_operator op[2];                       /* op and op0, op1; of a reduction, of an activation */
  bool is_reversed[2];                           /* op0, op1 of instructions with two: the operand is on the left */
  bool is_unsigned;                              /* all integers are unsigned; their types say so, too */
  bool in_integers;                              /* on gpsimd: integers stay integers */
  bool negates;                                  /* tensor_reduce_arith */
  bool is_tf32[2];                    /* matmul: stationary and moving are rounded to 10 bits of the mantissa */
  bool is_transpose;                  /* matmul: passes the moving operand through unchanged */
  bool is_for_clock;                  /* matmul: nothing reads its sums; it only brings the engine to its full clock */
  enum sim_type format[2];            /* of packed elements; SIM_NONE: f4E2M1FN */
  bool is_double_row;                 /* matmul */
  bool where_zero;                    /* tensor_copy_predicated: reverse_pred */
  int reduced_dims;                   /* tensor_reduce_arith: free dimensions at the end that are reduced */
  int dim;                            /* collectives: dim; dma_copy_indirect: src_index_dim */
  int64_t limit;                      /* dma_copy_indirect: src_indirect_max_index; dma_scatter: dst_… */
  int64_t index_step;                 /* of these: bytes from one index to the next */
  bool skips;                         /* of these: skips_out_of_range */
  int64_t devices;                    /* collectives: of a group; at least 1 */
  int64_t coefficient[NISA_TILE_MAX]; /* iota: of each dimension of dst */
  const int64_t *shuffle;             /* stream_shuffle: 32 entries */
  int64_t index_run, n_indices;       /* local_gather: elements_per_index, n_indices; topk: n_elements */
  int64_t index_offset, padding;      /* nonzero_with_count */
  int result;                         /* register_load: the register; else -1 */
  bool signals;                       /* raises the semaphore of its stream by 1 when it is complete */
};

/* ---- code ------------------------------------------------------------------------------------------------------- */

enum sim_node_kind {
  SIM_NODE_INSTR, /* a: instruction */
  SIM_NODE_ALLOC, /* a: buffer; b: the register that counts the executions of its loop's body, -1 if it has one copy */
  SIM_NODE_RELEASE, /* a: buffer */
  SIM_NODE_STEP,    /* register a = step(b, c, d) */
  SIM_NODE_MOVE,    /* register a = register b */
  SIM_NODE_LINEAR,  /* register a = linear */
  SIM_NODE_LESS,    /* register a = register b < register c, signed */
  SIM_NODE_UNLESS,  /* goes to node b if register a is 0 */
  SIM_NODE_GOTO,    /* goes to node b */
  SIM_NODE_WAIT,    /* waits until the semaphore of stream a is at least linear */
  SIM_NODE_TRIGGER, /* starts the next transfer of stream a, a queue */
  SIM_NODE_BARRIER, /* waits until all streams of its core are here and all transfers complete; all semaphores become 0;
                     * a is 1: those of all cores */
  SIM_NODE_END
};

struct sim_node {
  enum sim_node_kind kind;
  enum sim_step_kind step;
  enum sim_type type, from; /* of the result, of the operands */
  int predicate;            /* of a comparison, as MLIR numbers them */
  int a, b, c, d;
  const struct sim_linear *linear;
};

/* What one engine executes, or one DMA queue (nisa/streams.h says how); or, in a program that has no engine programs, all
 * that one of two cores executes (nisa/cores.h).  Each stream has registers of its own.  At its start they are as the
 * function's own code left them. */
struct sim_stream {
  const char *name; /* "vector", "qSyncIn", "core1.vector", "core1"; of its semaphore, too */
  int core;
  enum nisa_engine engine; /* NISA_ENGINE_DMA for a queue; NISA_ENGINE_NONE for a whole core */
  int trigger;             /* of a queue: the stream that starts its transfers, one by one; -1: an engine */
  int first;               /* its first node; it ends at a SIM_NODE_END */
};

/* An argument or a result, as the caller gives or gets it: row-major without gaps.  A result may be a view. */
struct sim_value {
  enum sim_type type;
  int rank;
  int64_t dims[NISA_RANK_MAX], steps[NISA_RANK_MAX]; /* steps in bytes */
  int64_t bytes;
  int buffer, ref;         /* as in sim_operand */
  struct sim_linear start; /* by the registers at the end */
};

struct sim_program {
  int n_buffers;
  const struct sim_buffer *buffers;
  int n_instrs;
  const struct sim_instr *instrs;
  int n_nodes;
  const struct sim_node *nodes; /* from 0 to a SIM_NODE_END: the function's own code; then that of the streams */
  int n_cores;
  int n_streams; /* 0: the program is one sequence */
  const struct sim_stream *streams;
  bool has_engines; /* its streams are engines and queues; false: there are none, or they are whole cores */
  int n_regs;
  const int64_t *initial; /* of the registers: constants */
  int n_args, n_results;
  const struct sim_value *args, *results;
};

int sim_type_bytes(enum sim_type t);
const char *sim_type_name(enum sim_type t);
bool sim_type_is_float(enum sim_type t);
bool sim_type_is_unsigned(enum sim_type t);
/* The integer type of this many bytes; SIM_NONE if there is none. */
enum sim_type sim_int_type(int bytes, bool is_unsigned);
/* SIM_NO_OPERATOR for a name that there is not. */
enum sim_operator sim_operator_from_name(const char *name);
bool sim_operator_is_bits(enum sim_operator o);
bool sim_operator_is_function(enum sim_operator o);

static inline int64_t sim_linear_value(const struct sim_linear *x, const int64_t *regs) {
  uint64_t v = (uint64_t)x->constant;
  for (int k = 0; k < x->n; k++)
    v += (uint64_t)x->terms[k].factor * (uint64_t)regs[x->terms[k].reg];
  return (int64_t)v;
}

#endif
