/* hlo: the graph between tracing and linalg, with XLA's opcodes and meanings.
 *
 * A module is a list of computations, a computation a list of instructions in an order in which every
 * operand precedes its user.  Everything lives in the module's arena and is freed with it.  Instructions
 * are mutable; shapes, literals, knobs and locations are immutable once set and may be shared.
 *
 * Identity: hlo_instr.id is given at creation from a counter of the module and is never reused, so that it
 * names "the same operation" from one pass to the next.  from/n_from are the ids in the previous stage that
 * an instruction came from; hlo_stage_mark resets them to "myself" and a pass that creates or merges
 * instructions says so with hlo_derive.
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

/* The loops that computed a value when a knob was put on it: what the user saw, whatever became of them since. */
struct hlo_loops {
  enum hlo_op op; /* of the instruction that does the work */
  int n;
  int64_t extents[HLO_RANK_MAX + 1];
  bool reduction[HLO_RANK_MAX + 1];
};

/* What knob calls said about one value, merged over several calls (later ones win, attribute by attribute).
 * Immutable.  Empty lists and MEM_NONE / -1 mean "not given". */
struct hlo_knob {
  struct hlo_ints loop_tile;                 /* tile_op(tile_size=…): one entry per iterator, in iterator order */
  struct hlo_ints tile_size, reduction_tile; /* function form: parallel and reduction entries apart */
  struct hlo_ints layout_tile;               /* layout(tile_size=…): value-shaped */
  enum mem_space mem_space;
  int partition_dim;
  const struct src_loc *loc;     /* the last knob call */
  const struct hlo_loops *loops; /* NULL: not known */
};

/* knob.fuse(a, b, …): the values whose loops are to be merged. */
struct hlo_fuse {
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

/* Passes walk over all instructions again and again, so they are small, stand side by side in memory, and begin with
 * what every walk reads. */
struct hlo_instr {
  enum hlo_op op : 16;
  bool is_fused; /* see rewrite.h; false between passes */
  int id;
  int n_operands;
  int mark; /* anybody's, who sets it before reading it */
  struct hlo_instr **operands;
  struct hlo_instr *next;
  struct hlo_computation *parent; /* NULL once removed */
  void *scratch;                  /* NULL between passes; rewrite.h says what passes keep here */
  const struct hlo_knob *knob;    /* on the value it defines, or NULL */

  struct hlo_shape shape;
  struct hlo_instr *prev;
  const struct hlo_attrs *attrs; /* never NULL */
  int n_called; /* while: body, condition; conditional: one per branch, in the order of the operands behind the first;
                   select-and-scatter: select, scatter; others: one, the combiner, comparator or callee */
  int n_from;   /* provenance, see the head */
  struct hlo_computation **called;
  const int *from;
  const char *name;     /* unique in the module, as printed after '%' */
  struct src_locs locs; /* Python places it stands for */
};

/* NKIPy's top-k, as the vendor compiler knows it: the largest of the last dimension, in order, and where they are; as
 * many as the result holds.  What HLO_TOPK is, with unsigned positions. */
#define HLO_TOPK_TARGET "AwsNeuronTopK"
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

/* Passes skip what has nothing for them.  False: c never had such an instruction.  True: it had, and may have. */
static inline bool hlo_may_have(const struct hlo_computation *c, enum hlo_op op) {
  return c->ops[op / 64] >> op % 64 & 1;
}

/* What the name of a parameter ends with, wherever it is printed, if the program writes it in place. */
#define HLO_ALIAS_SUFFIX ".must_alias_input"

/* One aliased parameter: the program writes it in place. */
struct hlo_alias {
  int output_index, param_index;
  const char *param_name; /* the Python name, without ".must_alias_input" */
  bool is_user_returned;  /* the kernel returned it itself; otherwise the tracer appended it */
};

/* Memory of the module's arena for things of one kind, side by side. */
struct hlo_pool {
  char *at;
  size_t left; /* bytes */
};

enum { HLO_KNOWN = 128 };

struct hlo_module {
  struct arena *arena;
  const char *name;                     /* the Python function's name */
  struct hlo_computation *computations; /* callees before callers; the entry is last */
  struct hlo_computation **entry_link;  /* what points at the entry in that list */
  struct hlo_computation *entry;
  int n_computations, next_id, next_computation_id;

  int n_outputs;
  const char **output_names; /* neff_output_names: "output0", or the parameter's name for an alias */
  int n_aliases;
  struct hlo_alias *aliases;
  struct hlo_fuse *fuses, *last_fuse;
  struct hlo_names *names;                      /* instruction names in use; names of removed instructions stay taken */
  struct hlo_pool instrs, attrs;                /* where the next ones go */
  const struct hlo_attr_row *const **attr_rows; /* by opcode: see attrs.c */
  /* what instructions share, by hash: the last ones seen */
  struct hlo_ints ints[HLO_KNOWN];
  const struct hlo_literal *literals[HLO_KNOWN];
  const struct hlo_dot_dims *dots[HLO_KNOWN];
  const struct hlo_attrs *known_attrs[HLO_KNOWN];
};

struct hlo_module *hlo_module_new(struct arena *a, const char *name); /* with an empty entry computation "main" */
/* Appends a computation before the entry. */
struct hlo_computation *hlo_computation_new(struct hlo_module *m, const char *name);
/* Moves c behind all others but the entry: for one that came to call what was made after it. */
void hlo_computation_move_last(struct hlo_computation *c);
/* Moves c in front of `before`, which came to call it. */
void hlo_computation_move_before(struct hlo_computation *c, struct hlo_computation *before);
/* Unlinks a computation that nothing calls. */
void hlo_computation_remove(struct hlo_computation *c);

/* Low level, no checks: appends an instruction with the given operands; the caller fills the attributes.
 * name NULL gives "op<n>".  A name that XLA's syntax would not take is spelled with '_', one that is taken gets a
 * number behind it, so i->name may differ from name.  Builders (build.h) are the checked way. */
struct hlo_instr *hlo_append(struct hlo_computation *c, enum hlo_op op, const char *name, struct hlo_shape shape,
                             int n_operands, struct hlo_instr *const *operands);
/* Same, inserted in front of `before`. */
struct hlo_instr *hlo_insert(struct hlo_instr *before, enum hlo_op op, const char *name, struct hlo_shape shape,
                             int n_operands, struct hlo_instr *const *operands);
/* Gives i these attributes; what they point to is borrowed, unchanged, for as long as the module lives: others share it. */
void hlo_set_attrs(struct hlo_instr *i, const struct hlo_attrs *attrs);
/* Unlinks an instruction that nothing uses any more. */
void hlo_remove(struct hlo_instr *i);

/* knob.c: true if i only changes how a value is seen; a knob on it is meant for what is behind. */
bool hlo_is_light(const struct hlo_instr *i);
/* The loops that a knob on i speaks of. */
struct hlo_loops *hlo_loops_of(struct arena *a, const struct hlo_instr *i);

/* heir takes over for dead: unions locations and provenance, and takes dead's knob if it has none itself. */
void hlo_derive(struct hlo_instr *heir, const struct hlo_instr *dead);
/* Starts a new stage: every instruction's provenance becomes itself. */
void hlo_stage_mark(struct hlo_module *m);

/* Asks for the memory of instructions that a walk from i on (direction 1) or back (-1) will come to: they mostly follow
 * it (hlo.c), and the processor cannot know through their links.  Any address may be asked for. */
static inline void hlo_prefetch(const struct hlo_instr *i, int direction) {
  enum { AHEAD = 3072, LINE = 64 };
  const char *p = (const char *)i + direction * AHEAD;
  __builtin_prefetch(p);
  __builtin_prefetch(p + LINE);
  __builtin_prefetch(p + 2 * LINE);
}

/* What an instruction of a walk is followed by, after asking for what is to come: what stands ahead, and the attributes
 * of the next. */
static inline struct hlo_instr *hlo_next(const struct hlo_instr *i) {
  struct hlo_instr *next = i->next;
  hlo_prefetch(i, 1);
  __builtin_prefetch(next ? next->attrs : NULL);
  return next;
}

/* Iterates over a computation; safe against removal of i. */
#define hlo_for_each(i, c) \
  for (struct hlo_instr *i = (c)->first, *i##_next; i && (i##_next = hlo_next(i), 1); i = i##_next)

#endif
