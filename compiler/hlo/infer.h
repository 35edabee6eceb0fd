/* infer: HLO's shape rules, stated once for the builders and the verifier. */
#ifndef HLO_INFER_H
#define HLO_INFER_H

#include "hlo/hlo.h"

/* Checks i's operands and attributes against its opcode's rules and gives the shape they lead to.  What operands do
 * not decide (the shape of a parameter or a reshape, the dtype of a convert or a dot) is read from i->shape.  Needs
 * i->op, shape, operands, called computations and attributes, nothing else, so that a builder can ask before it
 * appends.  ST_INPUT with a sentence that names the shapes.  *out lives in a (or is i's own). */
MUST_USE enum status hlo_infer_shape(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                     struct error *err);

/* infer_shape.c */
MUST_USE enum status hlo_infer_broadcast(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                         struct error *err);
MUST_USE enum status hlo_infer_reshape(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                       struct error *err);
MUST_USE enum status hlo_infer_transpose(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                         struct error *err);
MUST_USE enum status hlo_infer_slice(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                     struct error *err);
MUST_USE enum status hlo_infer_pad(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                   struct error *err);
MUST_USE enum status hlo_infer_concatenate(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                           struct error *err);
MUST_USE enum status hlo_infer_dynamic_slice(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                             struct error *err);
MUST_USE enum status hlo_infer_dynamic_update_slice(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                                    struct error *err);

/* infer_dims.c: the rules that speak of dimension numbers. */
MUST_USE enum status hlo_infer_dot(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                   struct error *err);
MUST_USE enum status hlo_infer_gather(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                      struct error *err);
MUST_USE enum status hlo_infer_scatter(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                       struct error *err);

/* infer_reduce.c: instructions with a combiner or a comparator, and those that order elements. */
MUST_USE enum status hlo_infer_map(const struct hlo_instr *i, struct hlo_shape *out, struct error *err);
MUST_USE enum status hlo_infer_reverse(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                       struct error *err);
MUST_USE enum status hlo_infer_reduce(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                      struct error *err);
MUST_USE enum status hlo_infer_sort(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                    struct error *err);
MUST_USE enum status hlo_infer_topk(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                    struct error *err);
MUST_USE enum status hlo_infer_collective(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                          struct error *err);

/* infer_window.c */
MUST_USE enum status hlo_infer_reduce_window(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                             struct error *err);
MUST_USE enum status hlo_infer_select_and_scatter(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                                  struct error *err);
MUST_USE enum status hlo_infer_convolution(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                           struct error *err);
/* Positions of a window over n elements; false if the window is not one.  *padded: the elements with padding. */
bool hlo_infer_window_positions(const struct hlo_window_dim *w, int64_t n, int64_t *padded, int64_t *positions);

/* infer_expanded.c: instructions that op-expander writes out in simpler ones. */
MUST_USE enum status hlo_infer_reduce_precision(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                                struct error *err);
/* Whether i, one of whose operands is complex, is written out in pairs of reals. */
bool hlo_infer_is_complex_op(const struct hlo_instr *i);
/* Whether i may give complex numbers though no operand is complex. */
bool hlo_infer_may_make_complex(const struct hlo_instr *i);
MUST_USE enum status hlo_infer_complex_part(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                            struct error *err);
MUST_USE enum status hlo_infer_fft(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                   struct error *err);
MUST_USE enum status hlo_infer_rng(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                   struct error *err);
MUST_USE enum status hlo_infer_cholesky(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                        struct error *err);
MUST_USE enum status hlo_infer_triangular_solve(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                                struct error *err);

/* infer_control.c: the rules of instructions whose called computations do the work. */
MUST_USE enum status hlo_infer_call(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                    struct error *err);
MUST_USE enum status hlo_infer_while(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                     struct error *err);
MUST_USE enum status hlo_infer_conditional(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                           struct error *err);

/* dim + low + high + interior between elements; false on overflow. */
bool hlo_infer_padded_size(int64_t dim, struct hlo_pad_dim p, int64_t *size);
/* The called computation must be (T[], T[]) -> T[]. */
MUST_USE enum status hlo_infer_combiner(const struct hlo_instr *i, enum dtype t, struct error *err);
const char *hlo_infer_ints_text(struct arena *a, struct hlo_ints v); /* "{0,1}" */
bool hlo_infer_contains(struct hlo_ints v, int64_t x);
bool hlo_infer_is_ascending(struct hlo_ints v);
bool hlo_infer_is_distinct_below(struct hlo_ints v, int64_t limit); /* each in [0, limit), none twice */

#endif
