/* impl: what the files of linalg/ share.
 *
 * Lowering is one walk over the entry computation.  Most instructions are emitted in their place.  Constants,
 * broadcasts and reshapes that only insert or remove dimensions of size 1 are emitted only when an instruction needs
 * them as a tensor, because element-wise users read them through an indexing map or as a scalar (elementwise.c).
 */
#ifndef LINALG_IMPL_H
#define LINALG_IMPL_H

#include "base/diag.h"
#include "hlo/hlo.h"
#include "ir/build.h"

/* An element of a while's state that counts: it is first, first + step, … in the n iterations.  at: its position in the
 * tuple, -1 when there is no counter.  After the loop n is 1, first is the final value and iv is null. */
struct counter {
  int at;
  int64_t first, step, n;
  MlirValue iv; /* the loop's induction variable */
};

/* A 0-d value that is computed as a scalar instead of a 0-d tensor, because it depends on a counter (counter.c). */
enum scalar_kind { SCALAR_NONE, SCALAR_INDEX, SCALAR_OTHER };

/* What the lowering knows about one instruction, by the instruction's id. */
struct node {
  MlirValue value;  /* null until emitted */
  MlirValue *parts; /* elements of a tuple, unless a tuple instruction makes it; null where only the counter is */
  MlirValue scalar; /* element of a splat constant, or value of a scalar; null until it is needed */
  MlirValue index;  /* SCALAR_INDEX: the same value with type index; null until it is needed */
  enum scalar_kind scalar_kind;
  int scalar_depth;
  int64_t low, high;                /* SCALAR_INDEX: the range of its values */
  struct counter counter;           /* of a tuple */
  const struct hlo_instr **origins; /* of a tuple: the instruction outside the loop that an element is; NULL: none */
  MlirOperation work;               /* the operation that computes the value and carries its knob; null: none */
  int n_loops;                      /* iterators of work, with their extents and kinds (NULL: all parallel) */
  const int64_t *extents;
  const bool *reduction;
  int n_users;
  bool keeps_dims; /* reduce: `kept` has the reduced axes as size 1, because all users want them */
  MlirValue kept;
  struct hlo_shape kept_shape;
  bool is_done; /* already emitted, together with another instruction */
};

/* A function without a body, called by custom calls or collectives. */
struct lower_target {
  const char *symbol;
  const char *code; /* NISA text of nkigen's CustomOp; NULL for other targets */
  bool is_collective;
  MlirAttribute what; /* nkipy.collective or nkipy.custom_call, see collective.c; null: the name says everything */
  MlirType type;
  struct lower_target *next;
};

struct lower {
  struct ir *ir;
  const struct hlo_module *module;
  bool is_plain; /* without knobs */
  struct diags *ds;
  struct arena arena;  /* lives as long as the lowering */
  struct ir_builder b; /* where operations go */
  MlirBlock function;  /* body of the function */
  struct node *nodes;  /* module->next_id entries */
  struct lower_target *targets;
};

static inline struct node *node_of(struct lower *l, const struct hlo_instr *i) {
  return &l->nodes[i->id];
}

/* ---- lower.c ------------------------------------------------------------------------------------------ */

typedef enum status (*lower_fn)(struct lower *l, const struct hlo_instr *i);
/* i as a tensor.  Emits it when it has not been emitted yet; does not change l->b.loc. */
MlirValue lower_value(struct lower *l, const struct hlo_instr *i);
/* The element of a constant whose elements are all equal, as a scalar; null for any other instruction. */
MlirValue lower_splat(struct lower *l, const struct hlo_instr *i);
bool lower_is_splat(const struct hlo_instr *i);
/* Location of an operation that implements i and, if not NULL, other. */
MlirLocation lower_location(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *other);
enum status lower_refuse(struct lower *l, const struct hlo_instr *i, const char *fmt, ...) PRINTF(3, 4);
/* Records i's value.  op, if not null, is the operation that computes it; it has one parallel iterator for each
 * dimension of i's shape. */
void lower_set(struct lower *l, const struct hlo_instr *i, MlirValue v, MlirOperation op);
static inline MlirOperation lower_no_op(void) {
  return (MlirOperation){NULL};
}
MlirValue lower_empty(struct lower *l, const struct hlo_shape *s);
/* Lowers c's instructions at l->b, with their knobs.  The caller has set the values of c's parameters. */
enum status lower_computation(struct lower *l, const struct hlo_computation *c);
/* Clears the nodes of c's instructions: a computation is lowered once for each call. */
void lower_forget(struct lower *l, const struct hlo_computation *c);

/* ---- control.c ---------------------------------------------------------------------------------------- */

enum status lower_tuple(struct lower *l, const struct hlo_instr *i);
enum status lower_get_tuple_element(struct lower *l, const struct hlo_instr *i);
enum status lower_call(struct lower *l, const struct hlo_instr *i);
enum status lower_while(struct lower *l, const struct hlo_instr *i);
enum status lower_conditional(struct lower *l, const struct hlo_instr *i);
/* Records i's results: one for each element of its tuple, or the only one. */
void lower_set_parts(struct lower *l, const struct hlo_instr *i, MlirValue const *parts);
void lower_copy_tuple(struct lower *l, const struct hlo_instr *i);
/* Element k of a tuple.  An array counts as a tuple of one element. */
MlirValue lower_part(struct lower *l, const struct hlo_instr *t, int k);

/* ---- counter.c ---------------------------------------------------------------------------------------- */

void counter_find(const struct hlo_instr *w, struct counter *out);
int64_t counter_lower(const struct counter *c); /* bounds and step of the scf.for */
int64_t counter_upper(const struct counter *c);
int64_t counter_step(const struct counter *c);
void counter_after(struct counter *c); /* turns it into the counter after the loop */
MlirValue counter_tensor(struct lower *l, const struct counter *c, enum dtype t);
/* Emits x as a scalar if it is one, so that regions opened later can use it. */
void scalar_prepare(struct lower *l, const struct hlo_instr *x);
/* Gives i the scalar value of x, which scalar_prepare has emitted; false when x is not a scalar. */
bool scalar_inherit(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *x);
/* Decides whether i is a scalar; its operands have been decided.  A scalar is emitted when it is first needed. */
bool scalar_note(struct lower *l, const struct hlo_instr *i);
MlirValue scalar_index(struct lower *l, const struct hlo_instr *i);  /* a SCALAR_INDEX, or a 0-d integer constant */
MlirValue scalar_of(struct lower *l, const struct hlo_instr *i);     /* the element of a 0-d value or splat constant */
MlirValue scalar_tensor(struct lower *l, const struct hlo_instr *i); /* a scalar of scalar_note, as a tensor */

/* ---- scalar.c: one element of an element-wise instruction; i gives opcode, direction and types --------- */

bool scalar_is_supported(const struct hlo_instr *i);
MlirValue scalar_apply(struct ir_builder *b, const struct hlo_instr *i, MlirValue const *x);
MlirValue scalar_binary(struct ir_builder *b, enum hlo_op op, enum dtype t, MlirValue x, MlirValue y);
MlirValue scalar_compare(struct ir_builder *b, enum hlo_direction d, enum dtype t, bool is_total, MlirValue x,
                         MlirValue y);
/* True if i compares in the total order two operands that were computed to have one zero and one NaN only; *x and *y
 * are the values they were computed from.  scalar_plain_compare then gives the same result without looking at bits. */
bool scalar_plain_order(const struct hlo_instr *i, const struct hlo_instr **x, const struct hlo_instr **y);
/* <, <=, > or >= of floats where -0 equals 0, and NaN is above every number and equal to NaN. */
MlirValue scalar_plain_compare(struct ir_builder *b, enum hlo_direction d, MlirValue x, MlirValue y);
MlirValue scalar_convert(struct ir_builder *b, MlirValue x, enum dtype from, enum dtype to);
/* An integer scalar as an index. */
MlirValue scalar_to_index(struct ir_builder *b, MlirValue x, enum dtype t);
/* max(0, min(x, limit)) of an index. */
MlirValue scalar_clamp_index(struct ir_builder *b, MlirValue x, int64_t limit);
/* The type in which sums and products of t are accumulated: f32 for narrower floats, otherwise t. */
enum dtype scalar_accumulator(enum dtype t);

/* ---- body.c: called computations on scalars, written into the body of an operation --------------------- */

/* Refuses i when c does anything but compute on single elements. */
MUST_USE enum status body_check(struct lower *l, const struct hlo_instr *i, const struct hlo_computation *c);
/* Emits c at b.  results: one value, or one for each element of the tuple that c returns.  body_check has passed. */
void body_write(struct lower *l, struct ir_builder *b, const struct hlo_computation *c, MlirValue const *args,
                MlirValue *results);

/* ---- elementwise.c ------------------------------------------------------------------------------------- */

bool lower_is_elementwise(enum hlo_op op);
enum status lower_map(struct lower *l, const struct hlo_instr *i);
MlirOperation lower_iota_tensor(struct lower *l, const struct hlo_shape *s, int64_t dim);
enum status lower_elementwise(struct lower *l, const struct hlo_instr *i);
enum status lower_broadcast(struct lower *l, const struct hlo_instr *i);
enum status lower_iota(struct lower *l, const struct hlo_instr *i);
bool lower_is_unit_reshape(const struct hlo_instr *r); /* only inserts and removes dimensions of size 1 */
/* x, whose shape and dtype `shape` says, converted to dtype `to`; x itself when the dtypes are equal. */
MlirValue lower_convert_tensor(struct lower *l, MlirValue x, const struct hlo_shape *shape, enum dtype to);

/* ---- shape.c, dynamic.c --------------------------------------------------------------------------------- */

enum status lower_reshape(struct lower *l, const struct hlo_instr *i);
enum status lower_transpose(struct lower *l, const struct hlo_instr *i);
enum status lower_slice(struct lower *l, const struct hlo_instr *i);
enum status lower_pad(struct lower *l, const struct hlo_instr *i);
enum status lower_concatenate(struct lower *l, const struct hlo_instr *i);
enum status lower_copy(struct lower *l, const struct hlo_instr *i);
enum status lower_dynamic_slice(struct lower *l, const struct hlo_instr *i);
enum status lower_dynamic_update_slice(struct lower *l, const struct hlo_instr *i);
/* v of shape `from`, padded to shape `to`; negative padding cuts. */
MlirValue lower_pad_tensor(struct lower *l, MlirValue v, const struct hlo_shape *from, const struct hlo_pad_dim *pads,
                           MlirValue fill, const struct hlo_shape *to);
MlirValue lower_reshape_tensor(struct lower *l, MlirValue x, const struct hlo_shape *from, int rank,
                               const int64_t *dims);
/* x, copied to a buffer of its own when writing to x in place would change an argument of the caller. */
MlirValue lower_writable(struct lower *l, const struct hlo_instr *x);
MlirValue lower_writable_value(struct lower *l, MlirValue x);

/* ---- reduce.c, dot.c ------------------------------------------------------------------------------------ */

void reduce_plan(struct lower *l, const struct hlo_computation *c); /* decides keeps_dims */
bool reduce_has_axis(const struct hlo_instr *reduce, int64_t dim);  /* dim of the operand is reduced */
/* The combiner is add, multiply, maximum, minimum, and, or or of its two parameters. */
bool reduce_is_plain(const struct hlo_instr *i);
/* True if narrow floats are combined in f32: the combiner is a plain add or multiply. */
bool reduce_rounds(const struct hlo_instr *i);
enum status lower_reduce(struct lower *l, const struct hlo_instr *i);
enum status lower_dot(struct lower *l, const struct hlo_instr *i);

/* ---- order.c, window.c, select_scatter.c, gather.c ------------------------------------------------------- */

enum status lower_reverse(struct lower *l, const struct hlo_instr *i);
enum status lower_sort(struct lower *l, const struct hlo_instr *i);
enum status lower_topk(struct lower *l, const struct hlo_instr *i);
enum status lower_wide_reduce(struct lower *l, const struct hlo_instr *i);
MlirOperation lower_reverse_tensor(struct lower *l, MlirValue x, const struct hlo_shape *s, struct hlo_ints dims);
enum status lower_reduce_window(struct lower *l, const struct hlo_instr *i);
enum status lower_convolution(struct lower *l, const struct hlo_instr *i);
enum status lower_select_and_scatter(struct lower *l, const struct hlo_instr *i);
enum status lower_gather(struct lower *l, const struct hlo_instr *i);
enum status lower_scatter(struct lower *l, const struct hlo_instr *i);

/* ---- collective.c --------------------------------------------------------------------------------------- */

enum status lower_collective(struct lower *l, const struct hlo_instr *i);
enum status lower_custom_call(struct lower *l, const struct hlo_instr *i);
/* Adds the declarations of the functions that were called. */
void lower_declare_targets(struct lower *l, MlirModule module);

/* ---- knob.c --------------------------------------------------------------------------------------------- */

/* Emits the knobs of c's instructions and the fuse groups between them. */
enum status lower_knobs(struct lower *l, const struct hlo_computation *c);

#endif
