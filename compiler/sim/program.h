/* program: a function of NISA, decoded for running.
 *
 * decode.c makes a program from a module of any of the three forms: plain (no addresses), allocated (addresses), engine
 * programs (a stream per engine and queue).  It is the only file that knows MLIR.  A program is constant once it is made,
 * lives in one arena, and can be run several times, also by several threads: what changes is in the runs (run.h).
 *
 *     buffers     what holds data: arguments, globals, allocations
 *     streams     code, in nodes; the plain and the allocated form have one, in program order
 *     registers   the scalars of a stream, 64 bits each: loop variables, index arithmetic, loaded numbers
 *     instrs      the instructions of all streams, with operands that are affine in the registers
 *
 * Numbers (of buffers, registers, nodes, instructions, …) are indices into the program's or the stream's arrays, and -1
 * where there is none.  decode.c ensures that each is in range; assertions elsewhere rely on it.  Whether an access stays
 * inside its buffer is not ensured: whoever executes it asks (control.h).
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

/* ---- numbers that depend on registers --------------------------------------------------------------------------- */

struct sim_term {
  int reg;
  int64_t factor;
};

/* constant + the sum of factor * register, modulo 2^64; the terms are terms[first], … of the program. */
struct sim_linear {
  int64_t constant;
  int first, n;
};

/* ---- buffers ---------------------------------------------------------------------------------------------------- */

enum sim_form { SIM_PLAIN, SIM_ALLOCATED, SIM_ENGINES };

/* Where a buffer lies.  Only in the allocated form and in engine programs, and there only for allocations. */
struct sim_place {
  bool is_placed;
  int64_t partition; /* on chip: the first partition */
  int64_t offset;    /* bytes: in each partition of SBUF or PSUM, or in the scratch space in HBM */
  int64_t stride;    /* bytes from one copy to the next */
};

enum sim_buffer_kind { SIM_ARGUMENT, SIM_GLOBAL, SIM_ALLOC };

/* The elements of a buffer are in row-major order without gaps.  On chip, dimension 0 is the partition, and row_bytes are
 * the bytes of the others; in HBM a buffer is one row.  partitions * row_bytes == bytes. */
struct sim_buffer {
  enum sim_buffer_kind kind;
  enum mem_space space;
  enum sim_type type;
  int rank;
  int64_t dims[NISA_RANK_MAX];
  int64_t partitions, row_bytes, bytes;
  int64_t
      pitch; /* bytes from one partition to the next in the simulator's memory: row_bytes, or the memory's if placed */
  struct sim_place place;
  int copies; /* rotating copies, at least 1; copy k is instance `instance + k` of the run */
  int instance;
  int round;                 /* the register that counts what the copies rotate by; -1: there is one copy */
  bool is_written;           /* by some instruction; an argument that is not may be the caller's memory */
  int last_node;             /* HBM: the node of the first stream after which no one uses it; -1: it stays */
  const char *name;          /* as the text has it, "%sbuf_3", or "argument 0", for messages */
  const void *initial;       /* globals: the elements; NULL: not initialised */
  const struct src_loc *loc; /* or NULL */
};

/* ---- operands --------------------------------------------------------------------------------------------------- */

/* One dimension of a tile.  Steps are in bytes of the simulator's memory; a partition is `pitch` bytes there. */
struct sim_dim {
  int64_t n, step;
};

/* An index of a view: at + low … at + high must be inside 0 … extent - 1.  Bounds that hold whatever the registers are,
 * are not in the program. */
struct sim_bound {
  struct sim_linear at;
  int64_t low, high, extent;
  int dim; /* of the memref that the operand names, for the message */
};

enum sim_operand_kind { SIM_ABSENT, SIM_SCALAR, SIM_ACCESS };

struct sim_operand {
  enum sim_operand_kind kind;
  enum sim_type type;
  bool reads, writes;
  bool is_out_of_reach; /* the engine does not reach this memory */
  int reg;              /* SIM_SCALAR */
  /* SIM_ACCESS: of `buffer`, or of the buffer whose number is in register `ref` */
  int buffer, ref;
  int round; /* engine programs: the register that selects the copy; -1: the copy that the allocation made last */
  struct sim_linear start; /* byte of the first element in the simulator's memory of the buffer */
  int64_t low, high;       /* bytes from there to the first and after the last byte of the tile */
  int n_dims, par_dims;    /* partitions first; as in the text */
  struct sim_dim dim[NISA_TILE_MAX];
  int64_t partitions, elements; /* the product of the partition dimensions, and of the others */
  bool is_whole;                /* every element of the buffer, each once */
  int first_bound, n_bounds;    /* of the program's bounds */
};

/* Operands that correspond element by element, as one nest of loops: step[k][d] is that of operand k.  Neighbouring
 * dimensions are merged where all operands allow it; there is at least one.  An operand that has one element for each
 * partition has step 0 along the others. */
struct sim_nest {
  int n;
  int64_t count[2 * NISA_TILE_MAX];
  int64_t step[NISA_OPERANDS_MAX][2 * NISA_TILE_MAX];
};

/* ---- instructions ----------------------------------------------------------------------------------------------- */

struct sim_instr {
  enum nisa_kind kind;
  enum nisa_engine engine;
  const struct nisa_op_def *def;
  int id;                                        /* of the operation in its stage, -1 if it has none */
  const struct src_loc *loc;                     /* the first Python place, or NULL */
  const char *malformed;                         /* why it cannot be executed; NULL if it can */
  bool is_out_of_engine;                         /* the engine has no such instruction */
  struct sim_operand operand[NISA_OPERANDS_MAX]; /* as in def */
  const struct sim_nest *nest;        /* of the operands that go element by element; NULL: they have no common nest */
  enum sim_operator op[2];            /* op and op0, op1; of a reduction, of an activation */
  bool is_reversed[2];                /* tensor_scalar_arith: the operation has the operand on its left */
  bool in_integers;                   /* on gpsimd: integers stay integers */
  bool negates;                       /* tensor_reduce_arith */
  bool where_zero;                    /* tensor_copy_predicated: reverse_pred */
  int reduced_dims;                   /* tensor_reduce_arith: free dimensions at the end that are reduced */
  int dim;                            /* collectives; dma_copy_indirect: src_index_dim */
  int64_t limit;                      /* dma_copy_indirect: src_indirect_max_index */
  int64_t index_step;                 /* dma_copy_indirect: bytes from one index to the next */
  int64_t devices;                    /* collectives: of a group */
  int64_t coefficient[NISA_TILE_MAX]; /* iota: per dimension of dst */
  int result;                         /* register_load: the register; else -1 */
  bool signals;                       /* adds 1 to the semaphore of its stream when it is complete */
};

/* ---- code ------------------------------------------------------------------------------------------------------- */

enum sim_node_kind {
  SIM_NODE_INSTR,   /* a: instruction */
  SIM_NODE_ALLOC,   /* a: buffer */
  SIM_NODE_RELEASE, /* a: buffer */
  SIM_NODE_STEP,    /* arithmetic: register a = step(b, c, d) */
  SIM_NODE_LINEAR,  /* register a = linear b of the program */
  SIM_NODE_MOVE,    /* register a = register b */
  SIM_NODE_LOOP,    /* a: loop.  Goes to its end if it has no iteration */
  SIM_NODE_NEXT,    /* a: loop.  The end of its body */
  SIM_NODE_UNLESS,  /* goes to node b if register a is 0 */
  SIM_NODE_GOTO,    /* goes to node b */
  SIM_NODE_WAIT,    /* engine programs: semaphore a is at least linear b */
  SIM_NODE_TRIGGER, /* starts the next transfer of the queue whose stream is a */
  SIM_NODE_COUNT,   /* semaphore a += b */
  SIM_NODE_BARRIER, /* all streams meet */
  SIM_NODE_END
};

struct sim_node {
  enum sim_node_kind kind;
  enum sim_step_kind step;
  enum sim_type type, from; /* of the result, of the operands */
  int predicate;            /* of a comparison, as MLIR counts them */
  int a, b, c, d;
};

/* for (variable = lower; variable < upper; variable += step), signed.  All are registers; step is positive or the loop
 * is a fault.  `left` counts the iterations that are left, this one included; `round` those that are complete. */
struct sim_loop {
  int lower, upper, step;
  int variable, left, round;
  int begin, end; /* nodes: the first of the body, the first after the loop's SIM_NODE_NEXT */
  int parent;     /* the loop around it */
  const struct src_loc *loc;
};

enum sim_stream_kind { SIM_PROGRAM_ORDER, SIM_ENGINE_STREAM, SIM_QUEUE_STREAM };

struct sim_stream {
  enum sim_stream_kind kind;
  const char *name;        /* "vector", "qSyncIn"; of its semaphore too, which has the stream's number */
  enum nisa_engine engine; /* that executes it; of a queue, that triggers it */
  int n_nodes;
  const struct sim_node *nodes; /* the last one is SIM_NODE_END */
  int n_regs;
  const int64_t *initial; /* of the registers */
};

/* ---- the program ------------------------------------------------------------------------------------------------ */

/* An argument or a result, as the caller gives or gets it: row-major without gaps. */
struct sim_value {
  enum sim_type type;
  int rank;
  int64_t dims[NISA_RANK_MAX];
  int64_t bytes;
  int buffer, ref;              /* as in sim_operand */
  struct sim_linear start;      /* results: byte in the buffer, by the registers of the first stream at its end */
  int64_t steps[NISA_RANK_MAX]; /* bytes */
  bool is_whole;                /* a result that is a whole allocation, which nothing else returns */
};

/* The program lives in its arena and is not changed after decoding. */
struct sim_program {
  enum sim_form form;
  enum target target;
  const struct nisa_machine *machine;
  const char *name;
  int n_buffers, n_instances;
  const struct sim_buffer *buffers;
  int n_instrs;
  const struct sim_instr *instrs;
  int n_streams;
  const struct sim_stream *streams;
  int n_loops;
  const struct sim_loop *loops;
  int n_linears;
  const struct sim_linear *linears;
  int n_terms;
  const struct sim_term *terms;
  int n_bounds;
  const struct sim_bound *bounds;
  int n_args, n_results;
  const struct sim_value *args, *results;
  int64_t hbm_bytes; /* scratch in HBM of the allocated form */
};

/* Limits of a program; beyond them decoding is ST_LIMIT.  A tile of more elements than this is malformed: no memory
 * that can be simulated holds as many, and an instruction that repeats its data must end in time, too. */
enum { SIM_NODES_MAX = 1 << 22, SIM_TILE_ELEMENTS_MAX = 1 << 28 };

int sim_type_bytes(enum sim_type t);
const char *sim_type_name(enum sim_type t);
bool sim_type_is_float(enum sim_type t);
bool sim_type_is_unsigned(enum sim_type t);
/* SIM_NO_OPERATOR for a name that there is not. */
enum sim_operator sim_operator_from_name(const char *name);
const char *sim_operator_name(enum sim_operator o);
bool sim_operator_is_bits(enum sim_operator o);
bool sim_operator_is_function(enum sim_operator o);

static inline int64_t sim_linear_value(const struct sim_program *p, const struct sim_linear *x, const int64_t *regs) {
  uint64_t v = (uint64_t)x->constant;
  for (int k = x->first; k < x->first + x->n; k++)
    v += (uint64_t)p->terms[k].factor * (uint64_t)regs[p->terms[k].reg];
  return (int64_t)v;
}

#endif
