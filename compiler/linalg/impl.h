/* impl: what the files of linalg/ share and nobody else sees.
 *
 * Lowering is one walk over the entry computation.  Most instructions are emitted where they stand; constants,
 * broadcasts and reshapes that only insert or remove dimensions of size 1 are emitted only when somebody needs them as
 * a tensor, because element-wise users read them through an indexing map or as a scalar instead (elementwise.c).
 */
#ifndef LINALG_IMPL_H
#define LINALG_IMPL_H

#include "base/diag.h"
#include "ir/ir.h"
#include "linalg/emit.h"

/* The part `at` of a while's state that is first, first + step, … in its n iterations; at < 0: there is none.  iv is the
 * induction variable, null behind the loop, where n is 1 and first the last value. */
struct counter {
  int at;
  int64_t first, step, n;
  MlirValue iv;
};

/* A 0-d value that is computed outside of tensors, because it comes from a counter (counter.c). */
enum scalar_kind { SCALAR_NONE, SCALAR_INDEX, SCALAR_OTHER };

/* What is known of one instruction, by its id. */
struct node {
  MlirValue value;  /* null until emitted */
  MlirValue *parts; /* of a tuple that is not made by a tuple instruction; null where only the counter is */
  MlirValue scalar; /* a splat constant's element, or a scalar's value, once somebody asked for it */
  MlirValue index;  /* the same as an index, of a SCALAR_INDEX */
  enum scalar_kind scalar_kind;
  int scalar_depth;
  int64_t low, high;                /* SCALAR_INDEX: what it can be */
  struct counter counter;           /* tuples */
  const struct hlo_instr **origins; /* of a tuple: instructions around it that its parts are, NULL where they are new */
  MlirOperation work;               /* the operation that does the work and carries the knob; null if there is none */
  int n_loops;                      /* iterators of work, their extents and kinds (NULL: all parallel) */
  const int64_t *extents;
  const bool *reduction;
  int n_users;
  bool keeps_dims; /* reduce: emitted with its reduced axes as size 1 (kept), because all its users want that */
  MlirValue kept;
  struct hlo_shape kept_shape;
  bool is_done; /* emitted together with another instruction */
};

/* A function without a body, which custom calls or collectives call. */
struct lower_target {
  const char *symbol;
  const char *code; /* of one that nkigen's CustomOp made: NISA text; else NULL */
  bool is_collective;
  MlirAttribute what; /* nkipy.collective or nkipy.custom_call, see collective.c; null: nothing but its name */
  MlirType type;
  struct lower_target *next;
};

struct lower {
  struct ir *ir;
  const struct hlo_module *module;
  bool is_plain; /* without knobs */
  struct diags *ds;
  struct arena arena; /* for the time of the lowering */
  struct emit e;      /* where operations go */
  MlirBlock function; /* its body */
  struct node *nodes; /* module->next_id entries */
  struct lower_target *targets;
};

static inline struct node *node_of(struct lower *l, const struct hlo_instr *i) {
  return &l->nodes[i->id];
}

/* lower.c */
typedef enum status (*lower_fn)(struct lower *l, const struct hlo_instr *i);
/* i as a tensor, emitted now if it was put off; leaves l->e.loc alone. */
MlirValue lower_value(struct lower *l, const struct hlo_instr *i);
/* The element of a constant all of whose elements are equal, as a scalar; a null value for anything else. */
MlirValue lower_splat(struct lower *l, const struct hlo_instr *i);
bool lower_is_splat(const struct hlo_instr *i);
/* Location of an operation that stands for i and, if not NULL, other. */
MlirLocation lower_location(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *other);
enum status lower_refuse(struct lower *l, const struct hlo_instr *i, const char *fmt, ...) PRINTF(3, 4);
/* Records i's value and, if op is not null, the operation that works for it with one parallel iterator per dimension
 * of i's shape. */
void lower_set(struct lower *l, const struct hlo_instr *i, MlirValue v, MlirOperation op);
static inline MlirOperation lower_no_op(void) {
  return (MlirOperation){NULL};
}
MlirValue lower_empty(struct lower *l, const struct hlo_shape *s);
/* Lowers c's instructions to where operations go, with its knobs; parameters have got their values before. */
enum status lower_computation(struct lower *l, const struct hlo_computation *c);
/* Forgets what is known of c's instructions: it is lowered once for each call. */
void lower_forget(struct lower *l, const struct hlo_computation *c);

/* control.c */
enum status lower_tuple(struct lower *l, const struct hlo_instr *i);
enum status lower_get_tuple_element(struct lower *l, const struct hlo_instr *i);
enum status lower_call(struct lower *l, const struct hlo_instr *i);
enum status lower_while(struct lower *l, const struct hlo_instr *i);
enum status lower_conditional(struct lower *l, const struct hlo_instr *i);
/* Gives i its results: as many as its tuple has elements, or the one. */
void lower_set_parts(struct lower *l, const struct hlo_instr *i, MlirValue const *parts);
void lower_copy_tuple(struct lower *l, const struct hlo_instr *i);
/* Element k of a tuple; an array is its own only element. */
MlirValue lower_part(struct lower *l, const struct hlo_instr *t, int k);

/* counter.c */
void counter_find(const struct hlo_instr *w, struct counter *out);
int64_t counter_lower(const struct counter *c); /* bounds and step of the scf.for */
int64_t counter_upper(const struct counter *c);
int64_t counter_step(const struct counter *c);
void counter_after(struct counter *c); /* makes it the counter behind the loop */
MlirValue counter_tensor(struct lower *l, const struct counter *c, enum dtype t);
/* Emits x as a scalar if it is one, so that regions can use it. */
void scalar_prepare(struct lower *l, const struct hlo_instr *x);
/* i is the same as x, which has been prepared; false if x is no scalar. */
bool scalar_inherit(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *x);
/* Whether i, whose operands have been asked already, is a scalar; such an instruction is emitted only when needed. */
bool scalar_note(struct lower *l, const struct hlo_instr *i);
MlirValue scalar_index(struct lower *l, const struct hlo_instr *i);  /* a SCALAR_INDEX, or a 0-d integer constant */
MlirValue scalar_of(struct lower *l, const struct hlo_instr *i);     /* the element of any 0-d value */
MlirValue scalar_tensor(struct lower *l, const struct hlo_instr *i); /* of one that scalar_note took, as a tensor */

/* scalar.c: one element of an element-wise instruction.  i gives opcode, direction and types. */
bool scalar_is_supported(const struct hlo_instr *i);
MlirValue scalar_apply(struct emit *e, const struct hlo_instr *i, MlirValue const *x);
MlirValue scalar_binary(struct emit *e, enum hlo_op op, enum dtype t, MlirValue x, MlirValue y);
MlirValue scalar_compare(struct emit *e, enum hlo_direction d, enum dtype t, bool is_total, MlirValue x, MlirValue y);
/* The comparison i is in the total order, but of operands that have one zero and one NaN only, made of *x and *y: that
 * needs no bits; see scalar_plain_compare. */
bool scalar_plain_order(const struct hlo_instr *i, const struct hlo_instr **x, const struct hlo_instr **y);
/* <, <=, > or >= of floats where -0 is 0, and NaN is above everything and equal to NaN. */
MlirValue scalar_plain_compare(struct emit *e, enum hlo_direction d, MlirValue x, MlirValue y);
MlirValue scalar_convert(struct emit *e, MlirValue x, enum dtype from, enum dtype to);
/* An integer scalar as an index. */
MlirValue scalar_to_index(struct emit *e, MlirValue x, enum dtype t);
/* max(0, min(x, limit)) of an index. */
MlirValue scalar_clamp_index(struct emit *e, MlirValue x, int64_t limit);
/* The type that sums and products of t are accumulated in: f32 for narrower floats, otherwise t. */
enum dtype scalar_accumulator(enum dtype t);

/* inline.c: computations on scalars, written into a body. */
/* Refuses i when c does more than compute with single elements. */
MUST_USE enum status inline_check(struct lower *l, const struct hlo_instr *i, const struct hlo_computation *c);
const struct hlo_instr *inline_obstacle_at(const struct hlo_computation *c, int depth);
/* results: one, or one for each element of the tuple that c gives. */
void inline_computation(struct lower *l, struct emit *e, const struct hlo_computation *c, MlirValue const *args,
                        MlirValue *results);
/* n loops from 0 to extents[k] around the body, which replaces what is carried. */
struct emit_loops {
  int n;
  const int64_t *extents;
  int n_carried;
  void (*body)(struct emit *e, MlirValue const *at, MlirValue *carried, void *user);
  void *user;
};
void emit_loop_nest(struct emit *e, const struct emit_loops *p, MlirValue *carried);
MlirValue emit_insert(struct emit *e, MlirValue scalar, MlirValue tensor, int n, MlirValue const *at);

/* elementwise.c */
bool lower_is_elementwise(enum hlo_op op);
enum status lower_map(struct lower *l, const struct hlo_instr *i);
MlirOperation iota_tensor(struct lower *l, const struct hlo_shape *s, int64_t dim);
enum status lower_elementwise(struct lower *l, const struct hlo_instr *i);
enum status lower_broadcast(struct lower *l, const struct hlo_instr *i);
enum status lower_iota(struct lower *l, const struct hlo_instr *i);
bool lower_is_unit_reshape(const struct hlo_instr *r); /* only inserts and removes dimensions of size 1 */
/* x, of dtype from, as to: a generic of conversions; x itself when they are equal. */
MlirValue convert_tensor(struct lower *l, MlirValue x, const struct hlo_shape *shape, enum dtype to);

/* shape.c */
enum status lower_reshape(struct lower *l, const struct hlo_instr *i);
enum status lower_transpose(struct lower *l, const struct hlo_instr *i);
enum status lower_slice(struct lower *l, const struct hlo_instr *i);
enum status lower_pad(struct lower *l, const struct hlo_instr *i);
enum status lower_concatenate(struct lower *l, const struct hlo_instr *i);
enum status lower_copy(struct lower *l, const struct hlo_instr *i);
/* v of shape `from`, padded (negative: cut) to shape `to`. */
MlirValue pad_tensor(struct lower *l, MlirValue v, const struct hlo_shape *from, const struct hlo_pad_dim *pads,
                     MlirValue fill, const struct hlo_shape *to);
MlirValue reshape_tensor(struct lower *l, MlirValue x, const struct hlo_shape *from, int rank, const int64_t *dims);
/* x in a buffer of its own if writing to x in place would change what the caller passed. */
MlirValue writable_tensor(struct lower *l, const struct hlo_instr *x);
MlirValue writable_value(struct lower *l, MlirValue x);

/* reduce.c, dot.c */
void reduce_plan(struct lower *l, const struct hlo_computation *c); /* decides keeps_dims */
bool reduce_has_axis(const struct hlo_instr *reduce, int64_t dim);  /* dim of the operand is reduced */
enum status lower_reduce(struct lower *l, const struct hlo_instr *i);
enum status lower_dot(struct lower *l, const struct hlo_instr *i);

/* The combiner is add(lhs, rhs), or multiply, maximum, minimum, and, or, of its two parameters. */
bool reduce_is_plain(const struct hlo_instr *i);
/* True if narrow floats are combined in f32: the combiner is a plain add or multiply. */
bool reduce_rounds(const struct hlo_instr *i);

/* order.c, window.c, collective.c */
enum status lower_reverse(struct lower *l, const struct hlo_instr *i);
enum status lower_sort(struct lower *l, const struct hlo_instr *i);
enum status lower_topk(struct lower *l, const struct hlo_instr *i);
enum status lower_wide_reduce(struct lower *l, const struct hlo_instr *i);
MlirOperation reverse_tensor(struct lower *l, MlirValue x, const struct hlo_shape *s, struct hlo_ints dims);
enum status lower_reduce_window(struct lower *l, const struct hlo_instr *i);
enum status lower_select_and_scatter(struct lower *l, const struct hlo_instr *i);
enum status lower_convolution(struct lower *l, const struct hlo_instr *i);
enum status lower_collective(struct lower *l, const struct hlo_instr *i);
enum status lower_custom_call(struct lower *l, const struct hlo_instr *i);
void declare_targets(struct lower *l, MlirModule module);

/* gather.c, dynamic.c */
enum status lower_gather(struct lower *l, const struct hlo_instr *i);
enum status lower_scatter(struct lower *l, const struct hlo_instr *i);
enum status lower_dynamic_slice(struct lower *l, const struct hlo_instr *i);
enum status lower_dynamic_update_slice(struct lower *l, const struct hlo_instr *i);

/* knob.c */
/* Knobs of c's instructions and fuse groups between them. */
enum status lower_knobs(struct lower *l, const struct hlo_computation *c);

#endif
