/* prepare_arithmetic: the steps of the pass, each in its own file.  prepare_arithmetic.c describes the pass. */
#ifndef PASSES_PREPARE_ARITHMETIC_H
#define PASSES_PREPARE_ARITHMETIC_H

#include "ir/build.h"
#include "ir/structured.h"
#include "passes/pass.h"

/* One instruction processes a row of this many elements in about as many cycles.  That is less than the cost of the
 * DMA descriptors that spread the row over the partitions. */
enum { PREPARE_ROW_MAX = 512 };

/* expand.c: replaces functions that no engine has, in the body of `generic`. */
void prepare_expand(struct pass_run *run, MlirOperation generic);
/* divide.c: replaces divisions of floats by op, a linalg operation, where possible; may erase op. */
void prepare_divide(struct pass_run *run, MlirOperation op);
/* windows.c: rewrites a convolution to a matrix product; gives any other linalg.generic maps that leave a loop for
 * the partitions.  May erase op. */
void prepare_windows(struct pass_run *run, MlirOperation op);
/* first.c: the place of the largest or smallest element of a row is found by one operation and a minimum. */
void prepare_first(struct pass_run *run);
/* diagonal.c: a sum that leaves one diagonal of an argument reads only that. */
void prepare_diagonal(struct pass_run *run);
/* places.c: values that say where their elements are are counted by one operation. */
void prepare_places(struct pass_run *run);
/* weights.c: weighted sums over rows become products, and products with one column sums along rows, where that takes less time. */
void prepare_weights(struct pass_run *run);
/* outer.c: outer products of many short vectors are computed in rows that fill the partitions, where that takes less time. */
void prepare_outer(struct pass_run *run);
/* ends.c: what reduces the first and the last dimensions, and keeps few in the middle, is reduced along the last ones first. */
void prepare_ends(struct pass_run *run);
/* row_parts.c: parts of few long rows lie across the partitions together, where that takes less time. */
void prepare_row_parts(struct pass_run *run);
/* rows.c: makes the leading dimensions of a normalisation one, where that takes less time than one of them across the partitions. */
void prepare_rows(struct pass_run *run);
/* pools.c: what reduces windows of an argument has rows of all images. */
void prepare_pools(struct pass_run *run);
/* dots.c: makes the product of a long row with a column a sum of products. */
void prepare_dots(struct pass_run *run);
/* short.c: puts several short rows in each partition, where that takes fewer cycles. */
void prepare_short(struct pass_run *run);
/* spread.c: spreads long rows and columns over the partitions, where no neighbour needs their form. */
void prepare_spread(struct pass_run *run);
/* parts.c: what is computed of a value that is joined of equal parts of rows is computed part by part. */
void prepare_parts(struct pass_run *run);
/* strides.c: other slices with a step along the last dimension become such that interleave.c reads.  Before that. */
void prepare_strides(struct pass_run *run);
/* interleave.c: true if so many rows with groups of elements, of each of which one is read, are read in rows in less time than one by one. */
bool prepare_comb_pays(int64_t rows, int64_t groups, int64_t apart);
/* interleave.c: slices of every second element, or of a last dimension that is short, become slices of transposes. */
void prepare_interleave(struct pass_run *run);
/* swap.c: a product of images and a matrix takes the images as its right operand, where that leaves their order as it is. */
void prepare_swap(struct pass_run *run);
/* border.c: only the border of what a slice is put into is filled or copied. */
void prepare_border(struct pass_run *run);
/* taps.c: columns that are read along rows become rows of a transposed matrix. */
void prepare_taps(struct pass_run *run);
/* turns.c: transposes that keep their first dimensions become copies of rows, where that takes less time. */
void prepare_turns(struct pass_run *run);
/* follow.c: what computes with results of reductions alone gets their dimensions.  After prepare_shapes. */
void prepare_follow(struct pass_run *run);
/* shapes.c: gives every operation two dimensions, the first for the partitions. */
void prepare_shapes(struct pass_run *run);

/* middle.c: gives reductions over dimensions before the last one, and what computes with their results, rows to reduce. */
void prepare_middle(struct pass_run *run);

/* ---- groups.c: operations that get other dimensions together -------------------------------------------------------- */

struct prepare_group {
  struct pass_run *run;
  const char *mark; /* the attribute with the number of the group that an operation is in */
  bool (*fits)(struct pass_run *run, MlirOperation op, const void *what);
  const void *what; /* that is passed to fits */
  int64_t rows;     /* a value with no more elements is soon in another shape, and may be anything's */
  int number;
  MlirOperation *ops; /* room for every candidate: none is put in twice */
  int n;
  bool is_free; /* nothing that wants the old shapes touches it; true at first */
};

/* Element-wise operations and reductions of the module. */
struct ir_ops prepare_candidates(struct pass_run *run);
/* Reads op; false unless it is element-wise or a reduction, with one result, without a knob, and picks no elements. */
bool prepare_may_change(struct pass_run *run, MlirOperation op, struct structured *s);
/* Fills ops from the seed on. */
void prepare_grow(struct prepare_group *g, MlirOperation seed);
/* True if op is in a group, or in one that was given up. */
bool prepare_is_marked(MlirOperation op, const char *mark);
/* Those that are erased are null. */
void prepare_unmark(struct ir_ops ops, const char *mark);

/* ---- rows.c, for turns.c too --------------------------------------------------------------------------------------- */

/* About how many cycles an instruction on each tile takes, if so many rows of so many elements lie across the partitions. */
int64_t prepare_cycles(int64_t rows, int64_t columns);
/* Returns a copy of v as a tensor of n dimensions, element by element where the map has it. */
MlirValue prepare_copy(struct ir_builder *b, MlirValue v, MlirAffineMap map, int n, const int64_t *dims);

/* ---- places.c: values that say where their elements are ------------------------------------------------------------- */

/* The element at (d0, d1 …) is constant + the sum of factor[k] * dk. */
struct prepare_places {
  int64_t factor[STRUCTURED_LOOPS_MAX], constant;
  int n_steps; /* operations that compute it, each of them as often as it is used */
};
/* Reads v, a tensor of 32-bit integers; false for any other value. */
bool prepare_read_places(MlirValue v, struct prepare_places *p);
/* Reads v, a mask that compares places: *predicate, one of enum ir_int_pred, of *p and 0. */
bool prepare_read_mask(MlirValue v, struct prepare_places *p, int64_t *predicate);

/* ---- between shapes.c and reduce.c ------------------------------------------------------------------------------- */

/* The largest divisor of n that is at most `most`. */
int64_t prepare_divisor(int64_t n, int64_t most);
/* The largest divisor of n that is at most NISA_PARTITIONS. */
int64_t prepare_partitions(int64_t n);
/* The number of elements of v, a ranked tensor with known dimensions; -1: it has too many dimensions. */
int64_t prepare_elements(MlirValue v);
bool prepare_has_knob(MlirValue v); /* of its own */
bool prepare_has_op(struct pass_run *run, MlirOperation op, const char *name);
/* Gives result r of op, and its init, another shape; users other than annotations get a reshape.  The caller sets the
 * maps. */
void prepare_result(struct pass_run *run, MlirOperation op, const struct structured *s, int r, int rank,
                    const int64_t *dims);
/* Gives every input of the generic op full rank: its dimension d is loop d, or has extent 1 (map result 0) if the
 * input lacks the loop.  Inputs with other maps (permuted, or with computed indices) do not change. */
void prepare_inputs(struct pass_run *run, MlirOperation op);
/* columns.c: true if the body is the operation of this name on its two arguments: of a sum "arith.addf". */
bool prepare_is_plain(MlirOperation op, const char *name);
/* columns.c: true if the result of a reduction of one input has the loops that are not reduced, in their order; what else it has is of one
 * element. */
bool prepare_keeps_order(const struct structured *s);
/* columns.c: makes a sum over leading dimensions a matrix product with ones, if its last dimension would have to lie
 * across the partitions otherwise.  Erases op and returns true if it did.  Another reduction of this kind gets two dimensions, also
 * in s. */
bool prepare_columns(struct pass_run *run, MlirOperation op, struct structured *s);
/* columns.c: weights[R,1], x[R,N], init[1,N] -> [1,N] */
MlirValue prepare_product(struct ir_builder *b, MlirValue weights, MlirValue x, MlirValue init);
/* columns.c: the same weights for each of A matrices: weights[R,1], x[A,R,N], init[A,1,N] -> [A,1,N] */
MlirValue prepare_batch_product(struct ir_builder *b, MlirValue weights, MlirValue x, MlirValue init);
/* columns.c: the init of a named product: undefined if it is zero, because PSUM starts from zero. */
MlirValue prepare_start_of(struct ir_builder *b, MlirValue init, int rank, const int64_t *dims);
/* reduce.c: true if the body is combiner(out, f(inputs)) of a combiner with a neutral element. */
bool prepare_has_combiner(MlirOperation op, const struct structured *s);
/* reduce.c: the combiner's name, "arith.addf"; NULL if the body is another. */
const char *prepare_combiner(MlirOperation op, const struct structured *s);
/* reduce.c: the neutral element of a combiner that prepare_combiner has returned. */
MlirValue prepare_neutral(struct ir_builder *b, MlirType t, const char *combiner);
/* Gives op, a reduction of one input with such a body, the result [partitions, columns], which starts from the neutral element; another
 * reduction of that makes op's result, from its initial value.  The caller sets op's maps and iterators. */
void prepare_reduce_partitions(struct pass_run *run, MlirOperation op, int64_t partitions, int64_t columns);
void prepare_reduction(struct pass_run *run, MlirOperation op);

#endif
