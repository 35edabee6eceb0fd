/* flash_attention: declarations shared by the files of the pass.  flash_attention.c describes it.
 *
 * The scores of an attention are a value [batch…, queries, keys].  Between the product that computes them and the product
 * that reads the weights, there are operations on values of that shape, element by element, and on values
 * [batch…, queries, 1], which reductions along the keys make.  These are the members of the attention.  A row of a member
 * depends only on the same row of others.
 */
#ifndef PASSES_FLASH_ATTENTION_H
#define PASSES_FLASH_ATTENTION_H

#include "ir/build.h"
#include "passes/lib/product.h"
#include "passes/pass.h"

enum { ATTENTION_MEMBERS_MAX = 64, ATTENTION_EPILOGUE_MAX = 4 };

struct member {
  MlirOperation op;
  struct structured s;
  bool is_row;      /* its result has one element for each query */
  bool of_scores;   /* it depends on the scores */
  bool is_dropped;  /* the division by the row's sum, which is done after the product with the values */
  bool after_max;   /* it depends on the largest score of its row */
  bool after_sum;   /* it depends on the sum of its row */
  bool for_weights; /* the second product's operand depends on it */
};

/* Values that raise.c made in another shape, in the order of their operations.  is_replaced: of the same shape, and in the
 * place of the old one. */
struct raised {
  struct raised_value {
    MlirValue old, made;
    bool is_replaced;
  } *v;
  int n, cap;
};

struct attention {
  const struct raised *raised;
  struct product scores, mixed; /* queries @ keys and weights @ values */
  int n;
  struct member member[ATTENTION_MEMBERS_MAX]; /* each after the members that it reads */
  MlirValue weights;                           /* what the member that is dropped divides */
  MlirValue divisor;                           /* [batch…, queries, 1] by which the result is multiplied; null: none */
  MlirOperation division; /* the operation after the second product that multiplies by `divisor`; null: there is none */
  int n_epilogue;         /* element-wise operations, each the only reader of the result before it */
  MlirOperation epilogue[ATTENTION_EPILOGUE_MAX];
  int max, sum, exp; /* members: max, the largest score of a row; exp(x - max); the row's sum; -1 if there is none */
  bool can_run;      /* the keys can be in blocks: all that is computed from max is exp, its conversions, its sum */

  const char *why; /* why it is left alone, and the operation about which that is; NULL: it is none */
  MlirOperation who;
};

/* raise.c: gives what may be an attention that ends with the product `mixed` one shape.  Returns the product of the new shape,
 * or `mixed` itself. */
MlirOperation attention_raise(struct pass_run *run, MlirOperation mixed, struct raised *out);
/* True if op was repeated in another shape, or only such operations read it. */
bool attention_is_replaced(const struct raised *r, MlirOperation op);
/* Either of them ends it: erases the old operations, or the new ones. */
void attention_keep_raised(struct pass_run *run, struct raised *r);
void attention_lower(struct pass_run *run, struct raised *r);

/* match.c: reads the attention that ends with the product `mixed`.  Returns false if it is none or must be left alone
 * (out->why). */
bool attention_read(struct pass_run *run, MlirOperation mixed, const struct raised *raised, struct attention *out);
/* The member that computes v, or NULL. */
const struct member *attention_member(const struct attention *a, MlirValue v);

/* What is decided about an attention. */
struct attention_plan {
  int64_t batches; /* that are computed beside each other */
  int64_t queries, keys, features,
      width;                     /* scores: queries x keys, sums of `features`; the result has `width` columns */
  int64_t rows;                  /* queries of a block: a multiple of 128 unless there is one block only */
  int64_t step;                  /* keys of a block; `keys`: the whole row is in SBUF */
  bool keeps_keys, keeps_values; /* they are loaded into SBUF once */
  int scale;                     /* a member: the keys are multiplied by its factor, not the scores; -1: none is */
  int64_t bytes;                 /* that a block takes in each partition of SBUF */
};

/* plan.c.  Returns false if not even 128 queries and a PSUM bank of keys fit into SBUF with all that is computed from
 * them, or if the row of scores does not fit and the attention has not the form of a softmax. */
bool attention_plan(struct pass_run *run, const struct attention *a, struct attention_plan *out);
/* There are batches, of fewer queries than a quarter of the partitions: a block would use as few lanes, and the plain
 * operations can have the batches on the partitions. */
bool attention_is_narrow(const struct attention *a);
/* Cycles of the vector engine, for each batch, that a running maximum and sum cost beyond whole rows. */
int64_t attention_running_cycles(const struct attention_plan *p);
/* Bytes of scores and what is computed from them that go through HBM if each operation between the products is computed for all queries before the next one. */
int64_t attention_plain_bytes(const struct attention *a);
/* Bytes of queries, keys, values and result, each once; and with the keys and values that each block loads again. */
int64_t attention_operand_bytes(const struct attention *a, const struct attention_plan *p);
int64_t attention_block_bytes(const struct attention *a, const struct attention_plan *p);

/* rewrite.c: replaces the attention by loops, and erases what it replaces. */
void attention_rewrite(struct pass_run *run, const struct attention *a, const struct attention_plan *p);

#endif
