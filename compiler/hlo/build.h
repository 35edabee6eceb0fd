/* build: checked construction of HLO instructions, with XLA's shape rules.
 *
 * A builder appends to one computation.  Every function infers the result's shape, gives the instruction the
 * builder's current location, and returns it; on a wrong shape or argument it returns NULL and fills b->err
 * (ST_INPUT, a sentence that names the shapes).  The error is sticky and a NULL operand gives NULL, so that a
 * composed operation checks once at its end.  All results live in the module's arena.
 *
 * These are HLO's rules, not NumPy's: element-wise operands must have equal shapes and dtypes; promotion and
 * broadcasting are the tracer's business (trace/), which calls hlo_convert and hlo_broadcast.
 */
#ifndef HLO_BUILD_H
#define HLO_BUILD_H

#include "hlo/hlo.h"

struct hlo_builder {
  struct hlo_module *module;
  struct hlo_computation *computation; /* usually module->entry */
  struct hlo_instr *before;            /* of that computation: instructions go in front of it; NULL: at the end */
  struct src_locs locs;                /* given to everything that is built */
  struct error err;                    /* first failure */
};

void hlo_builder_init(struct hlo_builder *b, struct hlo_module *m);

typedef struct hlo_instr *hlo_val; /* short, because the composed operations are full of it */

hlo_val hlo_parameter(struct hlo_builder *b, const char *name, struct hlo_shape shape);
hlo_val hlo_constant(struct hlo_builder *b, struct hlo_shape shape, const void *data); /* copies data */
/* A 0-d constant of dtype t holding v (rounded, for integers truncated). */
hlo_val hlo_scalar(struct hlo_builder *b, enum dtype t, double v);
/* 0-d constant broadcast to dims. */
hlo_val hlo_full(struct hlo_builder *b, enum dtype t, int rank, const int64_t *dims, double v);
/* The extreme value that max (lowest == true) or min starts from: -inf/+inf, or the integer type's limits. */
hlo_val hlo_extreme(struct hlo_builder *b, enum dtype t, bool lowest);
hlo_val hlo_iota(struct hlo_builder *b, enum dtype t, int rank, const int64_t *dims, int64_t dimension);

hlo_val hlo_unary(struct hlo_builder *b, enum hlo_op op, hlo_val x);
hlo_val hlo_binary(struct hlo_builder *b, enum hlo_op op, hlo_val x, hlo_val y);
hlo_val hlo_compare(struct hlo_builder *b, enum hlo_direction d, hlo_val x, hlo_val y);
hlo_val hlo_select(struct hlo_builder *b, hlo_val pred, hlo_val on_true, hlo_val on_false);
hlo_val hlo_convert(struct hlo_builder *b, hlo_val x, enum dtype t); /* x itself when it already is t */

/* dimensions[i]: the result dimension that x's dimension i becomes (XLA's broadcast_dimensions). */
hlo_val hlo_broadcast(struct hlo_builder *b, hlo_val x, int rank, const int64_t *dims, const int64_t *dimensions);
hlo_val hlo_reshape(struct hlo_builder *b, hlo_val x, int rank, const int64_t *dims); /* x itself if equal */
hlo_val hlo_transpose(struct hlo_builder *b, hlo_val x, const int64_t *permutation);  /* x->shape.rank entries */
hlo_val hlo_slice(struct hlo_builder *b, hlo_val x, const struct hlo_slice_dim *dims);
/* x itself when it is 0-d: HLO text has no form for that. */
hlo_val hlo_pad(struct hlo_builder *b, hlo_val x, hlo_val value, const struct hlo_pad_dim *dims);
hlo_val hlo_concatenate(struct hlo_builder *b, int n, hlo_val const *xs, int64_t dimension);
/* op: HLO_ADD, HLO_MULTIPLY, HLO_MAXIMUM, HLO_MINIMUM, HLO_AND or HLO_OR; the called computation is made, or
 * found, under the name that NKIPy gives it ("add_float32_computation").  init is 0-d of x's dtype. */
hlo_val hlo_reduce(struct hlo_builder *b, enum hlo_op op, hlo_val x, hlo_val init, int n, const int64_t *dimensions);
/* Result dims: batch, then lhs free, then rhs free; dtype t (operands may have narrower ones). */
hlo_val hlo_dot(struct hlo_builder *b, hlo_val lhs, hlo_val rhs, const struct hlo_dot_dims *dims, enum dtype t);
hlo_val hlo_gather(struct hlo_builder *b, hlo_val x, hlo_val indices, const struct hlo_gather_dims *dims);
/* The combiner assigns: the update replaces what was there. */
hlo_val hlo_scatter_assign(struct hlo_builder *b, hlo_val x, hlo_val indices, hlo_val updates,
                           const struct hlo_scatter_dims *dims);
hlo_val hlo_dynamic_slice(struct hlo_builder *b, hlo_val x, hlo_val const *starts, const int64_t *sizes);
hlo_val hlo_dynamic_update_slice(struct hlo_builder *b, hlo_val x, hlo_val update, hlo_val const *starts);

hlo_val hlo_tuple(struct hlo_builder *b, int n, hlo_val const *xs);
/* Element k of a tuple; x's operand k when x is made by hlo_tuple. */
hlo_val hlo_tuple_element(struct hlo_builder *b, hlo_val x, int k);
/* With called computations, which the caller has finished: each has its root and comes before the builder's. */
hlo_val hlo_call(struct hlo_builder *b, struct hlo_computation *c, int n, hlo_val const *xs);
/* x is handed to body as long as condition says true of it. */
hlo_val hlo_while(struct hlo_builder *b, struct hlo_computation *condition, struct hlo_computation *body, hlo_val x);
/* Branch k is given operand k.  Two branches: index is pred[], and branch 0 is taken when it is true.  Otherwise index
 * is s32[], and the last branch is also taken when no branch has that number. */
hlo_val hlo_conditional(struct hlo_builder *b, hlo_val index, int n, struct hlo_computation *const *branches,
                        hlo_val const *operands);

/* build_more.c */
hlo_val hlo_clamp(struct hlo_builder *b, hlo_val low, hlo_val x, hlo_val high); /* low, high: x's shape or 0-d */
/* The complex number with these f32 parts, and a part (HLO_REAL or HLO_IMAG) of one. */
hlo_val hlo_complex(struct hlo_builder *b, hlo_val re, hlo_val im);
hlo_val hlo_complex_part(struct hlo_builder *b, enum hlo_op part, hlo_val x);
/* Transforms the last n dimensions; lengths: of the reals, or of the complex numbers. */
hlo_val hlo_fft(struct hlo_builder *b, hlo_val x, enum hlo_fft kind, int n, const int64_t *lengths);
hlo_val hlo_reverse(struct hlo_builder *b, hlo_val x, int n, const int64_t *dimensions);
/* A wider element becomes a last dimension of narrower ones, and back.  x itself if it already is t. */
hlo_val hlo_bitcast_convert(struct hlo_builder *b, hlo_val x, enum dtype t);
/* Sorts xs[0] along a dimension, stable, and brings the others along: a tuple of n (n == 1: the array).  NaN counts as
 * the largest value, as in NumPy. */
hlo_val hlo_sort(struct hlo_builder *b, int n, hlo_val const *xs, int64_t dimension, bool is_descending);
/* The custom call AwsNeuronTopK, a tuple: the k largest of the last dimension, in order, and their indices as u32. */
hlo_val hlo_topk(struct hlo_builder *b, hlo_val x, int64_t k);
/* op as in hlo_reduce; one window entry per dimension. */
hlo_val hlo_reduce_window(struct hlo_builder *b, enum hlo_op op, hlo_val x, hlo_val init,
                          const struct hlo_window *window);
/* Result dtype t; the window's sizes are the kernel's. */
hlo_val hlo_convolution(struct hlo_builder *b, hlo_val x, hlo_val kernel, const struct hlo_window *window,
                        const struct hlo_conv_dims *dims, enum dtype t);
struct hlo_custom {
  const char *target, *backend_config;
  int n_aliases;
  const struct hlo_operand_alias *aliases; /* NULL when there are none */
  bool has_collectives;
};
/* The shape is the caller's word. */
hlo_val hlo_custom_call(struct hlo_builder *b, const struct hlo_custom *what, struct hlo_shape shape, int n,
                        hlo_val const *xs);
/* op: HLO_ALL_GATHER, HLO_ALL_REDUCE, HLO_REDUCE_SCATTER or HLO_ALL_TO_ALL; groups of equal size; reduce: what
 * all-reduce and reduce-scatter combine with; dimension: what the others gather, scatter or split along.  The combiner
 * is called collective_add_float32_computation. */
hlo_val hlo_collective(struct hlo_builder *b, enum hlo_op op, hlo_val x, const struct hlo_groups *groups,
                       enum hlo_op reduce, int64_t dimension);

/* Ends the entry computation: root copy (one result), tuple (several) or nothing (none); records names. */
enum status hlo_finish(struct hlo_builder *b, int n, hlo_val const *results, const char *const *names);

#endif
