/* hlo: the graph between tracing and linalg, with XLA's opcodes and meanings.
 *
 * A module is a list of computations.  A computation is a list of instructions in which every operand precedes
 * its users.  Everything lives in the module's arena and is freed with it.  Instructions
 * are mutable; shapes, literals, knobs and locations are immutable once set and may be shared.
 *
 * Identity: an instruction gets its id from a counter of the module, and ids are never reused.  So an id names the
 * same operation from one pass to the next.  from and n_from list the ids, in the previous stage, of the
 * instructions that this one came from.  hlo_stage_mark resets the list to the instruction itself; a pass that
 * creates or merges instructions extends it with hlo_derive.
 */
#ifndef HLO_HLO_H
#define HLO_HLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/src.h"
#include "base/step.h"

enum hlo_op {
#define HLO_OP(e, name, arity, class) e,
#include "hlo/opcodes.def"
#undef HLO_OP
  HLO_OP_COUNT
};
enum hlo_class { HC_LEAF, HC_UNARY, HC_BINARY, HC_OTHER };

const char *hlo_op_name(enum hlo_op op); /* "dynamic-update-slice" */
int hlo_op_arity(enum hlo_op op);        /* -1: any number */
enum hlo_class hlo_op_class(enum hlo_op op);
bool hlo_op_calls(enum hlo_op op); /* has called computations */
bool hlo_op_is_collective(enum hlo_op op);
bool hlo_op_hands_on(enum hlo_op op); /* hands values on, tuples included, and computes none itself */
/* True if a reduction over elements of type t may combine them with op: add, multiply, maximum, minimum, and, or. */
bool hlo_can_reduce(enum hlo_op op, enum dtype t);
int hlo_op_from_name(const char *name, size_t n); /* -1 when unknown */

/* ---- shapes and literals --------------------------------------------------------------------------- */

enum { HLO_RANK_MAX = 16, HLO_SPATIAL_MAX = 10 /* of a convolution: text has one digit */ };

/* An array shape, or (dtype == DT_TUPLE) a tuple of shapes.  dims is not NULL unless rank is 0. */
struct hlo_shape {
  enum dtype dtype : 8;
  int rank : 24; /* 0 of a tuple */
  int n_elems;   /* tuple only */
  union {
    const int64_t *dims;
    const struct hlo_shape *elems; /* tuple only */
  };
};

struct hlo_shape hlo_shape_array(struct arena *a, enum dtype t, int rank, const int64_t *dims); /* copies dims */
struct hlo_shape hlo_shape_dup(struct arena *a, const struct hlo_shape *s);                     /* a deep copy */
bool hlo_shape_equal(const struct hlo_shape *x, const struct hlo_shape *y);
/* Compare and copy the dims of shapes and of NumPy's arrays, which may be NULL if rank is 0. */
bool hlo_dims_equal(int rank, const int64_t *x, const int64_t *y);
void hlo_dims_copy(int rank, int64_t *to, const int64_t *from);
bool hlo_shape_same_dims(const struct hlo_shape *x, const struct hlo_shape *y); /* dtype aside */
int64_t hlo_shape_elements(const struct hlo_shape *s); /* product of dims; 1 for rank 0; -1 on overflow */
/* "f32[128,256]" or "(f32[2], s32[])", in the arena. */
const char *hlo_shape_text(struct arena *a, const struct hlo_shape *s);

/* Values in C order, native byte order, dtype_size bytes each (bool: 0 or 1). */
struct hlo_literal {
  struct hlo_shape shape;
  const void *data;
  size_t size; /* bytes */
};

/* ---- attributes ------------------------------------------------------------------------------------ */

enum hlo_direction { HLO_EQ, HLO_NE, HLO_GE, HLO_GT, HLO_LE, HLO_LT };
const char *hlo_direction_name(enum hlo_direction d); /* "EQ" */

struct hlo_slice_dim {
  int64_t start, limit, stride;
};
struct hlo_pad_dim {
  int64_t low, high, interior;
};
struct hlo_ints {
  int n;
  const int64_t *v;
};
struct hlo_ints hlo_ints_dup(struct arena *a, int n, const int64_t *v);
bool hlo_ints_equal(struct hlo_ints x, struct hlo_ints y);

struct hlo_dot_dims {
  struct hlo_ints lhs_contracting, rhs_contracting, lhs_batch, rhs_batch;
};
bool hlo_dot_dims_equal(const struct hlo_dot_dims *x, const struct hlo_dot_dims *y);
struct hlo_gather_dims {
  struct hlo_ints offset_dims, collapsed_slice_dims, start_index_map, slice_sizes;
  struct hlo_ints operand_batching_dims, start_indices_batching_dims;
  int64_t index_vector_dim;
  bool indices_are_sorted;
};
struct hlo_scatter_dims {
  struct hlo_ints update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims;
  struct hlo_ints input_batching_dims, scatter_indices_batching_dims;
  int64_t index_vector_dim;
  bool indices_are_sorted, unique_indices;
};

/* The window of reduce-window and select-and-scatter (one entry per dimension of the operand) and of convolution (one
 * per spatial dimension).  A neutral entry is {size, 1, 0, 0, 1, 1, false}. */
struct hlo_window_dim {
  int64_t size, stride, low, high, window_dilation, base_dilation;
  bool is_reversed;
};
struct hlo_window {
  int n;
  const struct hlo_window_dim *v;
};
struct hlo_conv_dims {
  int64_t input_batch, input_feature, kernel_input_feature, kernel_output_feature, output_batch, output_feature;
  struct hlo_ints input_spatial, kernel_spatial, output_spatial;
  int64_t feature_group_count, batch_group_count;
};
/* replica_groups of a collective; of collective-permute the source_target_pairs, groups of two. */
struct hlo_groups {
  int n;
  const struct hlo_ints *v;
};
/* A custom call writes this output (of a tuple: this element) into the buffer of an operand. */
struct hlo_operand_alias {
  struct hlo_ints output_index;
  int64_t operand;
};
struct hlo_operand_aliases {
  int n;
  const struct hlo_operand_alias *v;
};

/* Numbered as in XLA's protos. */
enum hlo_fft { HLO_FFT_FORWARD, HLO_FFT_INVERSE, HLO_FFT_OF_REAL, HLO_FFT_TO_REAL };
enum hlo_rng { HLO_RNG_DEFAULT, HLO_RNG_THREE_FRY, HLO_RNG_PHILOX };
enum hlo_call_api { HLO_API_UNSET, HLO_API_ORIGINAL, HLO_API_STATUS, HLO_API_STATUS_UNIFIED, HLO_API_TYPED };
enum hlo_transpose { HLO_TRANSPOSE_UNSET, HLO_TRANSPOSE_NO, HLO_TRANSPOSE_YES, HLO_TRANSPOSE_ADJOINT };
/* Which triangle of a symmetric matrix is read, and which factor is the result. */
struct hlo_cholesky {
  bool is_lower;
};
/* op(a) x = b, or x op(a) = b if not is_left; of a only one triangle is read, and not its diagonal if that is 1. */
struct hlo_triangular {
  bool is_left, is_lower, has_unit_diagonal;
  enum hlo_transpose transpose;
};

/* ---- knobs ----------------------------------------------------------------------------------------- */

const char *hlo_mem_space_name(enum mem_space m); /* "Sbuf" */

/* The loops that computed a value when the user put a knob on it.  Passes do not change them. */
struct hlo_loops {
  enum hlo_op op; /* of the instruction that does the work */
  int n;
  int64_t extents[HLO_RANK_MAX + 1];
  bool reduction[HLO_RANK_MAX + 1];
};

/* The knobs of one value, merged over several calls; for each attribute the last call counts.  Immutable.  Empty lists,
 * MEM_NONE and -1 mean "not given". */
struct hlo_knob {
  struct hlo_ints loop_tile;                 /* tile_op(tile_size=…): one entry per iterator, in iterator order */
  struct hlo_ints tile_size, reduction_tile; /* function form: parallel and reduction entries separately */
  struct hlo_ints layout_tile;               /* layout(tile_size=…): value-shaped */
  enum mem_space mem_space;
  int partition_dim;
  const struct src_loc *loc;     /* the last knob call */
  const struct hlo_loops *loops; /* NULL: not known */
};

/* knob.fuse(a, b, …): the values whose loops are to be merged; knob.fuse(a, …, never=True): those that are to keep loops of
 * their own. */
struct hlo_fuse {
  bool is_never;
  int n;
  struct hlo_instr **v;
  const struct src_loc *loc;
  struct hlo_fuse *next;
};

/* ---- instructions ---------------------------------------------------------------------------------- */

/* What an instruction has besides operands and called computations: attrs.def lists the members with their opcodes.
 * Members that an opcode does not have are zero.  Immutable, because copies share it: hlo_set_attrs gives an instruction
 * other attributes. */
struct hlo_attrs {
#define HLO_ATTR(type, member, ...) type member;
#define HLO_PART(type, member, ...) const type *member;
#include "hlo/attrs.def"
};
extern const struct hlo_attrs hlo_no_attrs;

/* Every pass walks over all instructions, so they are small, contiguous in memory, and begin with the members that every
 * walk reads. */
struct hlo_instr {
  enum hlo_op op : 16;
  bool is_fused; /* see rewrite.h; false between passes */
  int id;
  int n_operands;
  int mark; /* free for any pass, which sets it before it reads it */
  struct hlo_instr **operands;
  struct hlo_instr *next;
  struct hlo_computation *parent; /* NULL once removed */
  void *scratch;                  /* NULL between passes; rewrite.h says what passes keep here */
  const struct hlo_knob *knob;    /* on the value it defines, or NULL */

  struct hlo_shape shape;
  struct hlo_instr *prev;
  const struct hlo_attrs *attrs; /* never NULL */
  int n_called; /* while: body, condition; conditional: one per branch, in the order of the operands after the first;
                   select-and-scatter: select, scatter; others: one, the combiner, comparator or callee */
  int n_from;   /* provenance, see the head */
  struct hlo_computation **called;
  const int *from;
  const char *name;     /* unique in the module, as printed after '%' */
  struct src_locs locs; /* the Python places that it implements */
};

/* NKIPy's top-k, under the vendor compiler's name: the largest elements of the last dimension in order, and their
 * positions, as many as the result has.  The same as HLO_TOPK, but with unsigned positions. */
#define HLO_TOPK_TARGET "AwsNeuronTopK"
/* The target of a call of an NKI kernel begins with this; the rest is the name of its record (nki/nki.h). */
#define HLO_NATIVE_PREFIX "nki."
bool hlo_is_topk(const struct hlo_instr *i);

struct hlo_computation {
  const char *name;
  int id;
  struct hlo_module *module;
  struct hlo_instr *first, *last;
  int n_instrs;
  struct hlo_instr *root; /* NULL only in an entry computation without results */
  int n_params;
  struct hlo_instr **params; /* by number */
  struct hlo_computation *next;
  uint64_t ops[(HLO_OP_COUNT + 63) / 64]; /* hlo_may_have */
  bool may_call;                          /* may any instruction have called computations? */
};

/* Lets a pass skip a computation.  False: c never had an instruction with this opcode.  True: it had one, and may still. */
static inline bool hlo_may_have(const struct hlo_computation *c, enum hlo_op op) {
  return c->ops[op / 64] >> op % 64 & 1;
}

/* The printed name of a parameter that the program writes in place ends with this. */
#define HLO_ALIAS_SUFFIX ".must_alias_input"

/* One aliased parameter: the program writes it in place. */
struct hlo_alias {
  int output_index, param_index;
  const char *param_name; /* the Python name, without ".must_alias_input" */
  bool is_user_returned;  /* the kernel returned it itself; otherwise the tracer appended it */
};

/* A contiguous piece of the module's arena for objects of one kind. */
struct hlo_pool {
  char *at;
  size_t left; /* bytes */
};

enum { HLO_KNOWN = 128 };

struct hlo_module {
  struct arena *arena;
  const char *name;                     /* the Python function's name */
  struct hlo_computation *computations; /* callees before callers; the entry is last */
  struct hlo_computation **entry_link;  /* the pointer to the entry in that list */
  struct hlo_computation *entry;
  int n_computations, next_id, next_computation_id;

  int n_outputs;
  const char **output_names; /* neff_output_names: "output0", or the parameter's name for an alias */
  int n_aliases;
  struct hlo_alias *aliases;
  struct hlo_fuse *fuses, *last_fuse;
  struct hlo_names *names;                      /* instruction names in use; names of removed instructions stay taken */
  struct step_listener *steps;                  /* hears of the passes' rewrites; NULL: nobody does */
  struct hlo_pool instrs, attrs;                /* memory for the next ones */
  const struct hlo_attr_row *const **attr_rows; /* by opcode: see attrs.c */
  /* recently seen values, by hash, which instructions share */
  struct hlo_ints ints[HLO_KNOWN];
  const struct hlo_literal *literals[HLO_KNOWN];
  const struct hlo_dot_dims *dots[HLO_KNOWN];
  const struct hlo_attrs *known_attrs[HLO_KNOWN];
};

struct hlo_module *hlo_module_new(struct arena *a, const char *name); /* with an empty entry computation "main" */
/* Appends a computation before the entry. */
struct hlo_computation *hlo_computation_new(struct hlo_module *m, const char *name);
/* Moves c after all others but the entry: for a computation that calls one that was made later. */
void hlo_computation_move_last(struct hlo_computation *c);
/* Moves c in front of `before`, which came to call it. */
void hlo_computation_move_before(struct hlo_computation *c, struct hlo_computation *before);
/* Unlinks a computation that nothing calls. */
void hlo_computation_remove(struct hlo_computation *c);

/* Appends an instruction with the given operands, without checks; the caller sets the attributes.  Builders (build.h)
 * check.  name NULL gives "op<n>".  Characters that XLA's syntax does not allow become '_', and a name that is taken gets
 * a number as a suffix, so i->name may differ from name. */
struct hlo_instr *hlo_append(struct hlo_computation *c, enum hlo_op op, const char *name, struct hlo_shape shape,
                             int n_operands, struct hlo_instr *const *operands);
/* The same, inserted before `before`. */
struct hlo_instr *hlo_insert(struct hlo_instr *before, enum hlo_op op, const char *name, struct hlo_shape shape,
                             int n_operands, struct hlo_instr *const *operands);
/* Sets i's attributes.  What they point to must live as long as the module and must not change, because instructions
 * share it. */
void hlo_set_attrs(struct hlo_instr *i, const struct hlo_attrs *attrs);
/* Unlinks an instruction that nothing uses any more. */
void hlo_remove(struct hlo_instr *i);

/* knob.c: true if i only changes the view of a value; a knob on it is meant for the instruction that computed
 * that value. */
bool hlo_is_light(const struct hlo_instr *i);
/* The loops that a knob on i refers to. */
struct hlo_loops *hlo_loops_of(struct arena *a, const struct hlo_instr *i);

/* heir replaces dead: it gets the union of their locations and provenance, and dead's knob if it has none itself. */
void hlo_derive(struct hlo_instr *heir, const struct hlo_instr *dead);
/* Starts a new stage: every instruction's provenance becomes itself. */
void hlo_stage_mark(struct hlo_module *m);

/* Prefetches the instructions that a walk from i forward (direction 1) or backward (-1) will reach.  They mostly follow i
 * in memory (hlo.c), which the processor cannot see through the links.  Any address may be prefetched. */
static inline void hlo_prefetch(const struct hlo_instr *i, int direction) {
  enum { AHEAD = 3072, LINE = 64 };
  const char *p = (const char *)i + direction * AHEAD;
  __builtin_prefetch(p);
  __builtin_prefetch(p + LINE);
  __builtin_prefetch(p + 2 * LINE);
}

/* The next instruction of a walk.  Prefetches the instructions after it, and its attributes. */
static inline struct hlo_instr *hlo_next(const struct hlo_instr *i) {
  struct hlo_instr *next = i->next;
  hlo_prefetch(i, 1);
  __builtin_prefetch(next ? next->attrs : NULL);
  return next;
}

/* Iterates over a computation; i may be removed. */
#define hlo_for_each(i, c) \
  for (struct hlo_instr *i = (c)->first, *i##_next; i && (i##_next = hlo_next(i), 1); i = i##_next)

#endif
