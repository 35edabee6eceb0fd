/* nki: what an NKI kernel does, as a list of calls on tensors.
 *
 * The tracer runs the Python function and records every call of nki.isa in a struct nki_program; functions of
 * nki.language are recorded as the calls of nki.isa that they consist of, beside the text of the call as the kernel wrote it
 * (struct nki_written).  Loops of Python are unrolled in the record, which also says to which round of which loop each call
 * belongs.  canonical.h makes a program of it in which only calls of nki.isa remain, reroll.h one with loops, and lower.h a
 * NISA module.  This header needs neither Python nor MLIR.
 *
 * Tensors.  A tensor is memory: in HBM it is flat and row-major; on chip (SBUF, PSUM) its first dimension counts
 * partitions, and the others are row-major inside each partition.  Calls have views of tensors as operands.
 *
 * Views.  A view is a part of a tensor in its own shape: the element with the index (i0, …) lies
 *
 *     on chip    in partition  partition + i0 * stride0,  at element  offset + i1 * stride1 + …  of that partition
 *     in HBM     at element  offset + i0 * stride0 + i1 * stride1 + …
 *
 * In a program with loops, both places also grow by a constant in each round of a loop around the call (struct nki_term).
 *
 * A stride may be 0 (the same elements again), but not negative.  The functions below that make views of views have
 * the names of NKI's methods of tensors.
 *
 * Registers.  A register is a number of 32 bits that is known on the device only.  It is a tensor of one element in SBUF with
 * `reg` set: nki.isa.register_alloc makes one, and arithmetic and loops on the device have one as their result.  Whatever made it,
 * it may be an index and a scalar_offset (the notes of NKI 0.3 except the index of dynamic_range; the guide and 0.6 use it so).
 *
 * Device loops and branches.  They are calls among the others, so that a list of items stays flat: one that begins a region,
 * perhaps one in its middle, and NKI_DEVICE_END.  All three are in one list of items.
 *
 *     NKI_DEVICE_FOR … NKI_DEVICE_END                          for dst in range(lower, upper, step)
 *     NKI_DEVICE_WHILE condition NKI_DEVICE_DO … NKI_DEVICE_END
 *     NKI_DEVICE_IF … NKI_DEVICE_ELSE … NKI_DEVICE_END         the middle may be missing
 */
#ifndef NKI_NKI_H
#define NKI_NKI_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/dtype.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/target.h"
#include "nisa/kinds.h"

enum { NKI_RANK_MAX = 8, NKI_PARAMS_MAX = 14, NKI_ENGINES_MAX = 5 };
enum {
  NKI_LOOPS_MAX = 16, /* loops around a call that are known; those inside of them are unrolled */
  NKI_TERMS_MAX = 6   /* loops on which the place of a view depends */
};

/* The device loops and branches that may be open at a time. */
enum { NKI_REGIONS_MAX = 12, NKI_REGISTERS_MAX = 64 /* of an engine's sequencer */ };

/* ---- tensors and views ------------------------------------------------------------------------------------------- */

/* What the elements of a tensor are if no type of ours says it: integers have four small floats, or a scale of them; a float32 is a
 * tfloat32, of which the Tensor engine reads 10 bits of the mantissa. */
enum nki_packed { NKI_PLAIN, NKI_E4M3FN_X4, NKI_E5M2_X4, NKI_E2M1FN_X4, NKI_E8M0, NKI_TF32 };
static inline bool nki_is_packed(enum nki_packed k) {
  return k != NKI_PLAIN && k != NKI_TF32;
}
/* The kind of this name ("float8_e4m3fn_x4"), or NKI_PLAIN; *dtype: of the integers. */
enum nki_packed nki_packed_find(const char *name, enum dtype *dtype);

/* NKI_REGISTER: of register_alloc, which calls write; NKI_RESULT: the one call that writes it makes it, and no item does. */
enum nki_register_kind { NKI_NO_REGISTER, NKI_REGISTER, NKI_RESULT };

struct nki_tensor {
  int number;         /* from 0, in the order of creation */
  const char *name;   /* unique in the program */
  const char *called; /* how the user calls it, or NULL */
  int n_alike;        /* so many numbers were tried after this name */
  enum dtype dtype;
  enum nki_packed packed;
  enum mem_space space; /* MEM_HBM, MEM_SHARED_HBM, MEM_SBUF or MEM_PSUM */
  int rank;             /* on chip at least 2 */
  int64_t dims[NKI_RANK_MAX];
  int input; /* the parameter that it is, or -1 */
  enum nki_register_kind reg;
  bool is_typed; /* of a register: its type, int32, uint32 or float32, is settled: something has been written to it */
  int scope;     /* of a record: the region that it was made in, 0 outside of all */
  int core;      /* that has it, if it is neither a parameter nor in shared_hbm */
  bool has_address;    /* the kernel says where on chip it is: */
  int64_t partition;   /* its first one */
  int64_t address;     /* its first byte in each partition; of PSUM counted through the banks */
  const void *initial; /* of a constant in HBM: its elements without gaps, in the program's arena; else NULL */
  struct src_locs locs;
  /* The tensor with whose memory it is the same, as elements of another type: then it has its number, and no item; else NULL. */
  struct nki_tensor *storage;
  struct nki_tensor *retyped; /* the first such tensor of this memory; the others are after it */
};

struct nki_dim {
  int64_t size, stride;
};

/* What a place grows by in each round of a loop, or for each one that a register counts. */
struct nki_term {
  const struct nki_loop *loop;
  struct nki_tensor *reg;    /* then loop is NULL, and partition is 0 */
  int64_t partition, offset; /* may be negative; not both 0 */
  int dim;                   /* of a register: the dimension of the tensor whose index grows, in steps of `by` */
  int64_t by;
};

struct nki_view {
  struct nki_tensor *tensor;
  int64_t partition; /* 0 in HBM; in loops: in their first round */
  int64_t offset;
  int n_terms;                  /* at most NKI_TERMS_MAX */
  const struct nki_term *terms; /* of the loops around the call, the outermost first */
  int rank;
  struct nki_dim dim[NKI_RANK_MAX];
  const char *written; /* of a record: the expression that made it, "x[0:64].reshape((64, 2, 4))"; NULL: none did */
  /* In HBM, while a call is read: the part of `rows` has for each index of dimension 0 the row of the tensor that it
   * begins at, and the stride of dimension 0 is 0.  A recorded call has `rows` as an operand of its own. */
  struct nki_view *rows;
  struct nki_columns *columns; /* on chip, while a call is read: numbers select the elements of dimension 1; or NULL */
};
/* The elements of each partition of a view that numbers select. */
struct nki_columns {
  struct nki_view of, index;
};

/* The name of the type of its elements, as kernels write it. */
const char *nki_type_name(const struct nki_tensor *t);
static inline bool nki_same_address(const struct nki_tensor *x, const struct nki_tensor *y) {
  return x->has_address == y->has_address && x->partition == y->partition && x->address == y->address;
}
/* True if the tensors have the same memory, type and shape. */
static inline bool nki_same_type(const struct nki_tensor *x, const struct nki_tensor *y) {
  return x->space == y->space && x->dtype == y->dtype && x->packed == y->packed && x->rank == y->rank &&
         !memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims);
}
static inline struct nki_tensor *nki_storage(struct nki_tensor *t) {
  return t->storage ? t->storage : t;
}
/* The memory of t, which is no other's, as elements of this type, which the last dimension must be a whole number of; t itself if
 * it has this type. */
struct nki_tensor *nki_retyped(struct arena *a, struct nki_tensor *t, enum dtype dtype, enum nki_packed packed);
/* True if both are the same memory. */
static inline bool nki_is_same(const struct nki_tensor *x, const struct nki_tensor *y) {
  return x->number == y->number;
}
static inline bool nki_is_on_chip(const struct nki_view *v) {
  return mem_is_on_chip(v->tensor->space);
}
int64_t nki_elements(const struct nki_view *v);
/* The elements of a view in each partition; of a view in HBM: per index of its first dimension. */
int64_t nki_free_elements(const struct nki_view *v);
/* The elements of a tensor in each partition; of one in HBM: all. */
int64_t nki_tensor_extent(const struct nki_tensor *t);

/* Why a function below refuses what it was asked for. */
struct nki_error {
  struct arena *arena; /* of the text; the caller sets it */
  enum diag_code code;
  const char *text; /* one sentence */
  const char *hint; /* what to do about it, or NULL */
};
/* Sets the other members of *err and returns false. */
bool nki_refuse(struct nki_error *err, enum diag_code code, const char *hint, const char *fmt, ...) PRINTF(4, 5);

struct nki_view nki_whole(struct nki_tensor *t);

/* One entry of an index: t[entry, entry, …]. */
enum nki_index_kind { NKI_AT, NKI_SLICE, NKI_ELLIPSIS, NKI_NEW };
struct nki_index {
  enum nki_index_kind kind;
  int64_t start, stop, step; /* NKI_AT: start */
  bool has_start, has_stop;
};
/* v[at[0], …]: on chip an integer keeps its dimension with size 1 if it is the partitions or if less than two
 * dimensions would remain. */
bool nki_view_index(const struct nki_view *v, int n, const struct nki_index *at, struct nki_view *out,
                    struct nki_error *err);
bool nki_view_permute(const struct nki_view *v, int n, const int64_t *dims, struct nki_view *out,
                      struct nki_error *err);
/* dims may contain one -1, which stands for what remains. */
bool nki_view_reshape(const struct nki_view *v, int n, const int64_t *dims, struct nki_view *out,
                      struct nki_error *err);
bool nki_view_reshape_dim(const struct nki_view *v, int64_t dim, int n, const int64_t *dims, struct nki_view *out,
                          struct nki_error *err);
/* Merges the dimensions first … last. */
bool nki_view_flatten_dims(const struct nki_view *v, int64_t first, int64_t last, struct nki_view *out,
                           struct nki_error *err);
bool nki_view_expand_dim(const struct nki_view *v, int64_t dim, struct nki_view *out, struct nki_error *err);
bool nki_view_squeeze_dim(const struct nki_view *v, int64_t dim, struct nki_view *out, struct nki_error *err);
/* Repeats a dimension of size 1. */
bool nki_view_broadcast(const struct nki_view *v, int64_t dim, int64_t size, struct nki_view *out,
                        struct nki_error *err);
bool nki_view_slice(const struct nki_view *v, int64_t dim, int64_t start, int64_t end, int64_t step,
                    struct nki_view *out, struct nki_error *err);
bool nki_view_select(const struct nki_view *v, int64_t dim, int64_t index, struct nki_view *out, struct nki_error *err);
/* The same bytes as elements of another type; the last dimension, which has no gaps, becomes longer or shorter. */
bool nki_view_as(const struct nki_view *v, enum dtype dtype, enum nki_packed packed, struct arena *a,
                 struct nki_view *out, struct nki_error *err);
/* Where v begins in its tensor as elements of another type, for nki_view_ap: the dimensions do not matter. */
bool nki_view_begin_as(const struct nki_view *v, enum dtype dtype, enum nki_packed packed, struct arena *a,
                       struct nki_view *out, struct nki_error *err);
/* Pairs of stride and size over the tensor's own elements, outermost first; on chip the first pair counts partitions,
 * and its stride is the number of elements in a partition.  offset counts elements from the view's first one (the package says
 * so; two guides count from the tensor's first one). */
bool nki_view_ap(const struct nki_view *v, int n, const int64_t (*pairs)[2], int64_t offset, struct nki_view *out,
                 struct nki_error *err);
/* The same, but the elements of index p of the first pair begin at row rows[p] of the tensor, plus offset; the first stride
 * does not matter. */
bool nki_view_rows(const struct nki_view *v, int n, const int64_t (*pairs)[2], int64_t offset, struct nki_view *rows,
                   struct nki_view *out, struct nki_error *err);
/* The view begins at an index of dimension d that is reg more; the caller has made it of one element, or of as many as it has
 * from there on.  On chip d is not the partitions. */
bool nki_view_move(struct nki_view *v, int d, struct nki_tensor *reg, struct arena *a, struct nki_error *err);
/* The view begins reg * (the elements of one index of the tensor's dimension `dim`) later. */
bool nki_view_move_by_tensor(struct nki_view *v, int64_t dim, struct nki_tensor *reg, struct arena *a,
                             struct nki_error *err);
/* True if all elements of the view lie one after another, on chip in each partition. */
bool nki_is_contiguous(const struct nki_view *v);
/* Where a view begins, over the dimensions of its tensor: at the index start[d] + the sum of by[d][i] * the round of the loop of
 * terms[i], of which the greatest is most[d]. */
struct nki_start {
  int64_t start[NKI_RANK_MAX], by[NKI_RANK_MAX][NKI_TERMS_MAX], most[NKI_RANK_MAX];
};
/* False if the beginning moves over the end of a dimension. */
bool nki_start_of(const struct nki_view *v, struct nki_start *out);
/* Splits dimensions of x and y, which have as many elements in the same order, so that both have the same sizes.  merges: where
 * this does not do, neighbours that are one run of strides are merged before; a part of them may be no step along one dimension
 * of the tensor.  False if the strides of one do not allow it, or if there would be too many dimensions. */
bool nki_views_align(struct nki_view *x, struct nki_view *y, bool merges);

/* ---- calls ------------------------------------------------------------------------------------------------------- */

enum nki_call_kind {
#define NKI_CALL(e, ...) NKI_##e,
#include "nki/calls.def"
#undef NKI_CALL
  NKI_CALLS
};

enum nki_param_kind {
  NKI_PARAM_END,
  NKI_PARAM_DST,    /* a view that is written */
  NKI_PARAM_SRC,    /* a view that is read */
  NKI_PARAM_NUMBER, /* a number, or a view with one element in each partition */
  NKI_PARAM_CONST,  /* a number */
  NKI_PARAM_OP,     /* an operator of two values */
  NKI_PARAM_ALU,    /* one of these, or a function of one value that the engines have beside them */
  NKI_PARAM_FUNC,   /* a function of one value */
  NKI_PARAM_FLAG,
  NKI_PARAM_INTS, /* integers, or pairs of them in a row */
  NKI_PARAM_ENGINE,
  NKI_PARAM_WORD, /* a choice that is recorded and shown */
};

struct nki_param_def {
  const char *name;
  enum nki_param_kind kind;
  unsigned memories; /* of views: bits 1 << mem_space */
  bool is_optional;
};

struct nki_call_def {
  const char *name;                          /* "tensor_tensor" */
  enum nisa_engine engines[NKI_ENGINES_MAX]; /* the usual one first; NISA_ENGINE_NONE after the last */
  const char *what;                          /* what it computes */
  struct nki_param_def param[NKI_PARAMS_MAX];
};
extern const struct nki_call_def nki_calls[NKI_CALLS];
int nki_n_params(const struct nki_call_def *def);

/* An operator or function: as kernels write it, and as NISA calls it. */
enum nki_op_class { NKI_ARITH, NKI_BITS, NKI_FUNC };
struct nki_op {
  const char *name; /* "maximum" */
  const char *nisa; /* "max" */
  enum nki_op_class is;
  bool can_reduce;
  bool is_alu; /* of a function: tensor_scalar has it, too */
};
extern const struct nki_op nki_ops[];
extern const int nki_n_ops;
/* NULL if there is none of this name. */
const struct nki_op *nki_op_find(const char *name);

enum nki_value_kind { NKI_ABSENT, NKI_VIEW, NKI_FLOAT, NKI_INT, NKI_OP, NKI_FLAG, NKI_WORD, NKI_LIST };
struct nki_value {
  enum nki_value_kind kind;
  int n;           /* NKI_LIST */
  double number;   /* NKI_FLOAT, NKI_INT */
  int64_t integer; /* NKI_INT; of NKI_FLAG 0 or 1 */
  union {          /* by kind; there are many calls */
    struct nki_view *view;
    const struct nki_op *op;
    const char *word;
    const int64_t *ints;
  };
  /* of a list of one integer: what it grows by in each round of the loops around the call, as `offset` */
  int n_terms;
  const struct nki_term *terms;
};

struct nki_call {
  enum nki_call_kind kind;
  enum nisa_engine engine;
  bool in_order;           /* it is in a block of no_reorder (order.h) */
  int scope;               /* of a record: the region or branch that it begins, which tensors name */
  struct nki_order *order; /* it has a name, or waits for others (order.h); or NULL */
  struct src_locs locs;
  /* As in the definition.  Last: a call that is kept has only as many as it has parameters (nki_call_keep), because a kernel
   * may have hundreds of thousands of calls.  It is copied by nki_call_copy. */
  struct nki_value value[NKI_PARAMS_MAX];
};
static inline const struct nki_call_def *nki_def(const struct nki_call *c) {
  return &nki_calls[c->kind];
}
/* A copy that is as large as the call needs. */
struct nki_call *nki_call_keep(struct arena *a, const struct nki_call *c);
struct nki_call nki_call_copy(const struct nki_call *c);
/* What a call does to regions. */
enum nki_region { NKI_NO_REGION, NKI_BEGINS, NKI_GOES_ON, NKI_ENDS };
enum nki_region nki_region_of(const struct nki_call *c);
/* True if users call it as nki.isa.NAME: the others come of loops, branches and operators. */
static inline bool nki_is_users(enum nki_call_kind k) {
  return k < NKI_REGISTER_ALU;
}
/* True if its result is a register of the kind NKI_RESULT. */
static inline bool nki_makes_register(const struct nki_call *c) {
  return c->kind == NKI_REGISTER_ALU || c->kind == NKI_DEVICE_FOR;
}
typedef void nki_tensor_fn(void *user, struct nki_tensor *t, bool is_written);
/* Calls f for the memory of each tensor that a call names, registers in the places of views among them. */
void nki_each_tensor(const struct nki_call *c, nki_tensor_fn *f, void *user);
/* True if a parameter that the call reads is a view of the tensor. */
bool nki_reads(const struct nki_call *c, const struct nki_tensor *t);
/* The value of the parameter of this name, which the call must have. */
const struct nki_value *nki_value(const struct nki_call *c, const char *name);
/* The first integer of a list; `missing` for an absent or empty one. */
static inline int64_t nki_first_int(const struct nki_value *v, int64_t missing) {
  return v->kind == NKI_LIST && v->n ? v->ints[0] : missing;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* A round of a Python loop, in which calls were made. */
struct nki_round {
  int outer;           /* the round of the loop around it, or -1 */
  uint64_t loop;       /* tells the runs of loops apart */
  int number;          /* from 0 */
  bool is_independent; /* of the other rounds of this run: affine_range of beta 1 */
};

/* Of a record: a call as the kernel made it that is no item itself: of a function of nki.language, of nki.isa of beta 1 with its
 * masks, or of an operator of tiles.  The items that point to it are what it consists of. */
struct nki_written {
  const char *name; /* "nl.load" */
  const char *text; /* "x = nl.load(a[0:128, :])" */
  const char *note; /* a note about its instructions, such as the part that a mask leaves; NULL: none */
  struct src_locs locs;
  int round; /* as of an item */
  int core;
  int id;                          /* of its line */
  int n;                           /* its items; several instances have items of their own */
  bool is_taken;                   /* `takes` of another one is this */
  const struct nki_written *takes; /* the call before it whose instruction writes what this one assigns, or NULL */
  struct nki_written *next;        /* in a list of calls without items */
};

/* A call, a tensor that is made, or a loop: one of the three. */
struct nki_item {
  struct nki_call *call;
  struct nki_tensor *tensor;
  struct nki_loop *loop;
  struct nki_written *written; /* of a record: what it is a part of; NULL: the kernel made this call itself */
  struct nki_written *before;  /* of a record: the calls just before it that have no items, the last one first */
  struct src_locs locs;
  int round;      /* in a record: the innermost round that it belongs to, or -1 */
  int core;       /* that executes it */
  int id;         /* of its line in the text */
  int written_id; /* of a record: of its line, if it is not a part of something */
  struct {
    int *v, n, cap;
  } from; /* the ids of the lines of the stage before that it stands for */
};

struct nki_items {
  struct nki_item *v;
  int n, cap;
};

/* for name in nl.affine_range(trips): items */
struct nki_loop {
  const char *name;
  int64_t trips; /* at least 2 */
  int depth;     /* how many loops of Python were around it; unique among the loops around a call */
  struct nki_items items;
  struct src_locs locs; /* of its header */
};

/* The call with this name waits for another one (order.h). */
struct nki_edge {
  const char *after, *before;
};
struct nki_wait {
  struct nki_call *after, *before;
};

/* How often a launch runs the kernel: once for each index of the grid, which nl.program_id gives.  rank 0: once. */
enum { NKI_GRID_RANK_MAX = 4 };
struct nki_grid {
  int rank;
  int64_t dims[NKI_GRID_RANK_MAX];
  int cores; /* that the launch asks for */
  /* the axis that is spread over them: index i of it is on core i / core_step modulo the cores */
  int core_axis;
  int64_t core_step;
  int n_edges; /* of its schedule */
  const struct nki_edge *edges;
};
int64_t nki_grid_size(const struct nki_grid *g);

/* One run of the kernel.  The instances of one core follow one another in the program; two cores run theirs side by side.
 * All share the inputs and the tensors in shared_hbm; all others are an instance's own. */
struct nki_instance {
  int64_t id[NKI_GRID_RANK_MAX];
  int core;
  int first, n;              /* its items */
  struct nki_written *after; /* its last calls, which have no items, the last one first */
  int same_as;   /* an instance before it with equal calls, which have to run only once: it has no items; -1: none */
  uint64_t hash; /* of the calls */
};

struct nki_program {
  struct arena *arena;
  const char *name;
  enum target target;
  struct nki_grid grid;
  bool on_one_core; /* all instances are on core 0, whatever the launch asks for: a part of a larger program */
  int core;         /* of the running instance */
  struct {
    struct nki_instance *v;
    int n, cap;
  } instances;
  struct {
    struct nki_tensor **v;
    int n, cap;
  } shared;                      /* the tensors in shared_hbm that the kernel makes */
  int next_shared, first_tensor; /* of the running instance */
  struct {
    struct nki_tensor **v;
    int n, cap;
  } tensors;
  struct nki_items items;
  bool is_rerolled;            /* reroll.h made it; false: a record */
  int n_calls;                 /* of a record: those among the items */
  bool is_canonical;           /* canonical.h made it of a record: no item is a part of something */
  struct nki_written *writing; /* of a record: the call that is being made, or NULL */
  int next_written_id;         /* of a record that has ended: of its return */
  struct nki_written *empty;   /* of a record: the last calls, which have no items, the last one first */
  struct {
    struct nki_round *v;
    int n, cap;
  } rounds;  /* of a record, in the order in which they began */
  int round; /* of a record: the one that the next items belong to, or -1 */
  struct {
    struct nki_wait *v;
    int n, cap;
  } waits;              /* of the running instance (order.h) */
  int in_order;         /* of a record: the blocks of no_reorder that are open */
  int n_scopes, n_open; /* of a record: regions and branches so far, and those that are open */
  struct {
    int scope, begin; /* the item that begins it */
  } open[NKI_REGIONS_MAX];
  struct index names; /* of the tensors */
  int n_outputs;
  struct nki_tensor **outputs;
  struct src_locs locs;        /* of the function */
  struct src_locs return_locs; /* of the return statement */
};

enum { NKI_CALLS_MAX = 200000, NKI_INSTANCES_MAX = 4096 }; /* of one kernel; unrolled loops reach it */

/* Adds a tensor.  name: how the user calls it, or NULL; the program makes it unique.  input: the parameter's number, or
 * -1.  NULL with *err if no tensor can have this shape, type and memory. */
struct nki_tensor *nki_tensor_new(struct nki_program *p, const char *name, enum dtype dtype, enum mem_space space,
                                  int rank, const int64_t *dims, int input, struct src_locs locs,
                                  struct nki_error *err);
/* Adds a tensor that the kernel makes; one in shared_hbm that an instance before has made is that. */
struct nki_tensor *nki_tensor_make(struct nki_program *p, const char *name, enum dtype dtype, enum mem_space space,
                                   int rank, const int64_t *dims, struct src_locs locs, struct nki_error *err);
/* Puts the last tensor that was made, which is on chip, at an address.  False with *err if it cannot be there. */
bool nki_tensor_place(struct nki_program *p, struct nki_tensor *t, int64_t partition, int64_t address,
                      struct nki_error *err);
/* Checks that tensors at the same address are not in use at the same time: from the first call of the record that uses one
 * to the last.  False with *err; *at is the one that is used later. */
bool nki_check_addresses(const struct nki_program *p, struct nki_error *err, const struct nki_tensor **at);
/* Checks that no two rounds of a loop whose rounds are independent overwrite the same place.  False with *err; *at is the later
 * call of the first such pair. */
bool nki_check_dependences(const struct nki_program *p, struct nki_error *err, const struct nki_call **at);
/* Begins the next instance, and ends it: equal instances become one if that computes the same. */
struct nki_instance *nki_instance_begin(struct nki_program *p);
void nki_instance_end(struct nki_program *p);
/* The core of the running instance, as the launch numbers them, even if one core runs them all. */
int nki_instance_core(const struct nki_program *p);
/* How many cores have something to do: 1 or 2. */
int nki_program_cores(const struct nki_program *p);
/* Checks that the cores meet in the same barriers and exchanges, one after another; of a program on one core that several
 * instances of it meet in none.  False with *err; *at is the call at which they differ. */
bool nki_check_meetings(const struct nki_program *p, struct nki_error *err, const struct nki_call **at);
/* Checks a call against the rules of the hardware (rules.c), chooses its engine if it is unknown, and adds it. */
bool nki_call_add(struct nki_program *p, const struct nki_call *call, struct nki_error *err);
/* Begins a call as the kernel wrote it; the calls that are added until nki_written_end are its parts.  False, and nothing begins,
 * inside of another one. */
bool nki_written_begin(struct nki_program *p, const char *name, struct src_locs locs);
/* Ends it.  text: NULL if it did nothing that a reader should see. */
void nki_written_end(struct nki_program *p, const char *text);
/* Adds a note to the call that is being made, if there is one; the first note stays. */
void nki_written_note(struct nki_program *p, const char *text);
/* A register, which register_alloc makes: an item.  kind NKI_RESULT: for a call that is added next. */
struct nki_tensor *nki_register_new(struct nki_program *p, const char *name, enum nki_register_kind kind,
                                    enum dtype dtype, struct src_locs locs, struct nki_error *err);
/* Begins a loop or branch, goes on to its middle, and ends it.  begin: for NKI_DEVICE_WHILE the item that is first in the
 * condition, which has been recorded; otherwise items.n. */
bool nki_region_begin(struct nki_program *p, const struct nki_call *call, int begin, struct nki_error *err);
bool nki_region_go_on(struct nki_program *p, const struct nki_call *call, struct nki_error *err);
void nki_region_end(struct nki_program *p, struct src_locs locs);
/* The tensor was made outside of loops and branches on the device, or in one that is open. */
bool nki_is_open(const struct nki_program *p, const struct nki_tensor *t);
/* Finds the item in the middle of the region that item `begin` begins, -1 if there is none, and its end. */
void nki_region_find(const struct nki_items *items, int begin, int *middle, int *end);
/* Says which rounds run now, the outermost first, for what is added next; their `outer` does not matter. */
void nki_set_rounds(struct nki_program *p, int n, const struct nki_round *rounds);
/* A name for a tensor that no tensor of the program has yet.  NULL: that of the memory. */
const char *nki_unique_name(struct nki_program *p, const char *name, enum mem_space space);

/* True if a call of the program writes the tensor. */
bool nki_is_written(const struct nki_program *p, const struct nki_tensor *t);
bool nki_is_output(const struct nki_program *p, const struct nki_tensor *t);
/* True if both have the same calls on the same tensors; names and places may differ. */
bool nki_programs_equal(const struct nki_program *p, const struct nki_program *q);
/* Lets the last call write to `to` instead of the tensor `from`, and drops `from`, which was made for it as the last
 * tensor.  accumulate: of a product, 0 or 1; -1 keeps it.  False, and nothing changes, if the call is another one, if the
 * rules refuse the new operand, or if the value would be another one: `from` rounds, or `to` overlaps another operand. */
bool nki_call_redirect(struct nki_program *p, const struct nki_tensor *from, const struct nki_view *to, int accumulate);

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* A line of the text, from 1, and what it shows. */
enum nki_line_kind { NKI_LINE_HEADER, NKI_LINE_ITEM, NKI_LINE_RETURN };
struct nki_line {
  int line;
  enum nki_line_kind kind;
  int id; /* of the item; 0: the header; after all items: the return */
  const struct nki_item
      *item; /* of a call that consists of several: the first one; of one without items: one near it */
  const struct nki_written *written; /* the call that it shows as it was written, or NULL */
};
struct buf;
/* Appends the program in the syntax of NKI; a record as the kernel wrote its calls and views.  instance: of a program without
 * loops, the one to show alone, with the tensors that all share; -1: all.  Of a long record it shows only the first two rounds
 * and the last round of each loop.  *lines, *n: in a. */
enum status nki_print(const struct nki_program *p, int instance, struct buf *out, struct arena *a,
                      struct nki_line **lines, int *n);
/* The view as an expression: "x[0:64, 3]", or "x.ap([[512, 128], [2, 256]], offset=1)"; in a. */
const char *nki_view_text(struct arena *a, const struct nki_view *v);

#endif
