/* impl: declarations that the files of linalg/ share.
 *
 * Lowering is one walk over the entry computation.  Most instructions are emitted when the walk reaches them.
 * Constants, broadcasts and reshapes that only insert or remove dimensions of size 1 are emitted only when an
 * instruction needs them as a tensor, because element-wise users read them through an indexing map or as a scalar
 * (elementwise.c).
 */
#ifndef LINALG_IMPL_H
#define LINALG_IMPL_H

#include "base/diag.h"
#include "hlo/hlo.h"
#include "ir/build.h"

/* The counter of a while: the element of its state that has the values first, first + step, … in the n iterations.
 * `at` is its position in the tuple, or -1 if there is no counter.  After the loop, n is 1, first is the final value
 * and iv is null. */
struct counter {
  int at;
  int64_t first, step, n;
  MlirValue iv; /* the loop's induction variable */
};

/* A 0-d value that is computed as a scalar instead of a 0-d tensor, because it depends on a counter (counter.c). */
enum scalar_kind { SCALAR_NONE, SCALAR_INDEX, SCALAR_OTHER };

/* The state of the lowering for one instruction.  The instruction's id is the index. */
struct node {
  MlirValue value;  /* null until emitted */
  MlirValue *parts; /* elements of a tuple that no tuple instruction makes; the counter's is null until needed */
  MlirValue scalar; /* element of a splat constant, or value of a scalar; null until needed */
  MlirValue index;  /* SCALAR_INDEX: the same value with type index; null until needed */
  enum scalar_kind scalar_kind;
  int scalar_depth;
  int64_t low, high;                /* SCALAR_INDEX: the range of its values */
  struct counter counter;           /* tuple: the counter among its elements */
  const struct hlo_instr **origins; /* tuple, by element: the instruction outside the loop that it equals, or NULL */
  MlirOperation work;               /* the operation that computes the value and carries its knob, or null */
  int n_loops;                      /* iterators of work; extents and reduction have one entry for each */
  const int64_t *extents;
  const bool *reduction; /* NULL: all iterators are parallel */
  int n_users;
  bool keeps_dims; /* reduce: `kept` has the reduced axes with size 1, because all users read that shape */
  MlirValue kept;
  struct hlo_shape kept_shape;
  bool is_done; /* the walk skips it: it has been emitted, or its value has been set */
};

/* A function without a body, called by custom calls or collectives. */
struct lower_target {
  const char *symbol;
  const char *code;      /* NISA text of nkigen's CustomOp; NULL for other targets */
  const char *what_name; /* nkipy.collective, nkipy.custom_call (collective.c) or nkipy.topk (topk.c) */
  MlirAttribute what;    /* the attribute; null if the name of the function is sufficient */
  MlirType type;
  struct lower_target *next;
};

struct lower {
  struct ir *ir;
  const struct hlo_module *module;
  bool is_plain; /* without knobs */
  struct diags *ds;
  struct arena arena;  /* lives as long as the lowering */
  struct ir_builder b; /* the insertion point */
  MlirBlock function;  /* body of the function */
  struct node *nodes;  /* module->next_id entries */
  struct lower_target *targets;
  const struct hlo_computation *computation; /* that is being lowered */
};

static inline struct node *node_of(struct lower *l, const struct hlo_instr *i) {
  return &l->nodes[i->id];
}

/* ---- lower.c ------------------------------------------------------------------------------------------ */

typedef enum status (*lower_fn)(struct lower *l, const struct hlo_instr *i);
/* Returns i as a tensor.  Emits i if it has not been emitted yet.  Does not change l->b.loc. */
MlirValue lower_value(struct lower *l, const struct hlo_instr *i);
/* Returns the element of a constant whose elements are all equal, as a scalar; null for any other instruction. */
MlirValue lower_splat(struct lower *l, const struct hlo_instr *i);
bool lower_is_splat(const struct hlo_instr *i);
/* Returns the location of an operation that implements i and, if not NULL, other. */
MlirLocation lower_location(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *other);
enum status lower_refuse(struct lower *l, const struct hlo_instr *i, const char *fmt, ...) PRINTF(3, 4);
/* Records i's value.  op, if not null, is the operation that computes it; it has one parallel iterator for each
 * dimension of i's shape. */
void lower_set(struct lower *l, const struct hlo_instr *i, MlirValue v, MlirOperation op);
static inline MlirOperation lower_no_op(void) {
  return (MlirOperation){NULL};
}
MlirValue lower_empty(struct lower *l, const struct hlo_shape *s);
/* Lowers c's instructions and their knobs at l->b.  The caller has set the values of c's parameters. */
enum status lower_computation(struct lower *l, const struct hlo_computation *c);
/* Clears the nodes of c's instructions.  This is needed because a computation is lowered again for each call. */
void lower_forget(struct lower *l, const struct hlo_computation *c);

/* ---- control.c ---------------------------------------------------------------------------------------- */

enum status lower_tuple(struct lower *l, const struct hlo_instr *i);
enum status lower_get_tuple_element(struct lower *l, const struct hlo_instr *i);
enum status lower_call(struct lower *l, const struct hlo_instr *i);
enum status lower_while(struct lower *l, const struct hlo_instr *i);
enum status lower_conditional(struct lower *l, const struct hlo_instr *i);
/* Records i's results: one for each element of its tuple, or one if i is not a tuple. */
void lower_set_parts(struct lower *l, const struct hlo_instr *i, MlirValue const *parts);
void lower_copy_tuple(struct lower *l, const struct hlo_instr *i);
/* Returns element k of a tuple.  An array counts as a tuple of one element. */
MlirValue lower_part(struct lower *l, const struct hlo_instr *t, int k);

/* ---- counter.c ---------------------------------------------------------------------------------------- */

void counter_find(const struct hlo_instr *w, struct counter *out);
int64_t counter_lower(const struct counter *c); /* bounds and step of the scf.for */
int64_t counter_upper(const struct counter *c);
int64_t counter_step(const struct counter *c);
void counter_after(struct counter *c); /* turns *c into the counter after the loop */
MlirValue counter_tensor(struct lower *l, const struct counter *c, enum dtype t);
/* Emits x as a scalar if it is one, so that regions opened later can use it. */
void scalar_prepare(struct lower *l, const struct hlo_instr *x);
/* Gives i the scalar value of x, which scalar_prepare has emitted.  Returns false if x is not a scalar. */
bool scalar_inherit(struct lower *l, const struct hlo_instr *i, const struct hlo_instr *x);
/* Decides if i is a scalar, and returns true if it is.  Its operands must have been decided before.  A scalar is
 * emitted when it is first needed. */
bool scalar_note(struct lower *l, const struct hlo_instr *i);
MlirValue scalar_index(struct lower *l, const struct hlo_instr *i);  /* i is a SCALAR_INDEX or 0-d integer constant */
MlirValue scalar_of(struct lower *l, const struct hlo_instr *i);     /* the element of a 0-d value or splat constant */
MlirValue scalar_tensor(struct lower *l, const struct hlo_instr *i); /* a scalar found by scalar_note, as a tensor */

/* ---- scalar.c: one element of an element-wise instruction; i gives opcode, direction and types --------- */

bool scalar_is_supported(const struct hlo_instr *i);
MlirValue scalar_apply(struct ir_builder *b, const struct hlo_instr *i, MlirValue const *x);
MlirValue scalar_binary(struct ir_builder *b, enum hlo_op op, enum dtype t, MlirValue x, MlirValue y);
MlirValue scalar_compare(struct ir_builder *b, enum hlo_direction d, enum dtype t, bool is_total, MlirValue x,
                         MlirValue y);
/* Returns true if i compares two operands in the total order, and both were computed so that they contain only one kind
 * of zero and one kind of NaN.  *x and *y are then the values they were computed from, and scalar_plain_compare gives
 * the same result for these without a comparison of bits. */
bool scalar_plain_order(const struct hlo_instr *i, const struct hlo_instr **x, const struct hlo_instr **y);
/* Compares floats with <, <=, > or >=.  -0 equals 0; NaN is above every number and equal to NaN. */
MlirValue scalar_plain_compare(struct ir_builder *b, enum hlo_direction d, MlirValue x, MlirValue y);
MlirValue scalar_convert(struct ir_builder *b, MlirValue x, enum dtype from, enum dtype to);
/* Casts an integer scalar to an index. */
MlirValue scalar_to_index(struct ir_builder *b, MlirValue x, enum dtype t);
/* Returns max(0, min(x, limit)) of an index. */
MlirValue scalar_clamp_index(struct ir_builder *b, MlirValue x, int64_t limit);
/* Returns the type in which sums and products of t are accumulated: f32 for narrower floats, otherwise t. */
enum dtype scalar_accumulator(enum dtype t);

/* ---- body.c: called computations on scalars, written into the body of an operation --------------------- */

/* Refuses i if c does anything other than compute on single elements. */
MUST_USE enum status body_check(struct lower *l, const struct hlo_instr *i, const struct hlo_computation *c);
/* Emits c at b, and sets results to one value, or to one for each element of the tuple that c returns.  body_check must
 * have accepted c. */
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
/* Converts x, which has the shape and dtype `shape`, to dtype `to`.  Returns x itself if the dtypes are equal. */
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
/* Pads v from shape `from` to shape `to`.  Negative padding removes elements. */
MlirValue lower_pad_tensor(struct lower *l, MlirValue v, const struct hlo_shape *from, const struct hlo_pad_dim *pads,
                           MlirValue fill, const struct hlo_shape *to);
MlirValue lower_reshape_tensor(struct lower *l, MlirValue x, const struct hlo_shape *from, int rank,
                               const int64_t *dims);
/* Returns a value that may be overwritten in place: x, or a copy of x if writing to x would change an argument of the
 * caller. */
MlirValue lower_writable(struct lower *l, const struct hlo_instr *x);
MlirValue lower_writable_value(struct lower *l, MlirValue x);

/* ---- topk.c --------------------------------------------------------------------------------------------- */

/* The k largest or smallest elements of the rows of a value.  topk.c says what the flags mean. */
struct topk {
  const struct hlo_shape *x;
  MlirValue value;
  int64_t k;
  bool is_smallest, is_backwards, is_total;
};
/* True if topk_call may be used: an axis whose elements, type and k max8 takes. */
bool topk_takes(const struct hlo_shape *x, int axis, int64_t k);
/* Emits the call.  out: the elements and their places, i32, in the shape of x with k elements in the last dimension. */
void topk_call(struct lower *l, const struct topk *t, MlirValue *out);
/* Lowers the sort i with the slices that read it, if they are all that is read of it: the first or last elements. */
bool topk_of_sort(struct lower *l, const struct hlo_instr *i);

/* ---- reduce.c, dot.c ------------------------------------------------------------------------------------ */

void reduce_plan(struct lower *l, const struct hlo_computation *c); /* decides keeps_dims */
bool reduce_has_axis(const struct hlo_instr *reduce, int64_t dim);  /* true if dim of the operand is reduced */
/* True if the combiner is add, multiply, maximum, minimum, and, or `or` of its two parameters. */
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
/* Returns the symbol of the private declaration with the type and attribute of `want`, and adds the declaration if there is
 * none.  A number is appended to its name if that is the kernel's, or belongs to a declaration that differs. */
MlirAttribute lower_declare(struct lower *l, const struct lower_target *want);
/* Adds declarations of the functions that were called. */
void lower_declare_targets(struct lower *l, MlirModule module);

/* ---- knob.c --------------------------------------------------------------------------------------------- */

/* Emits the knobs and the fuse groups of c's instructions. */
enum status lower_knobs(struct lower *l, const struct hlo_computation *c);

#endif
