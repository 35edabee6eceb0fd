/* rewrite: what the files that write the loops of an attention share. */
#ifndef PASSES_FLASH_ATTENTION_REWRITE_H
#define PASSES_FLASH_ATTENTION_REWRITE_H

#include "passes/flash_attention/flash_attention.h"

/* What a dimension of an operand goes over: a batch dimension (its number), or one of these. */
enum role { ROLE_ROW = 100, ROLE_KEY, ROLE_FEATURE, ROLE_WIDTH, ROLE_ONE };

enum { PSUM_COLUMNS = 512 };      /* f32 of a bank */
enum { ATTENTION_TILES_MAX = 2 }; /* tiles of 128 queries in a block */

/* A part of the scores: so many rows and keys, at offsets, which may be null for 0. */
struct block {
  MlirValue row, key;
  int64_t rows, keys;
};

struct writer {
  struct pass_run *run;
  const struct attention *a;
  const struct attention_plan *p;
  MlirValue const *batch; /* counters of the batch loops */
  MlirValue keys, values; /* [features, keys] and [keys, width] in SBUF; null: they stay where they are */
};

/* The values of the members in one block, each of two dimensions. */
struct members {
  struct block at;
  MlirValue scores, now[ATTENTION_MEMBERS_MAX];
};

/* ---- take.c ------------------------------------------------------------------------------------------------------ */

/* Returns the part of v that a block reads: whole along features and width, without the batch dimensions.  roles has one
 * entry for each dimension of v; kept gets those that are left, and *n their number. */
MlirValue take_part(struct ir_builder *b, const struct writer *w, const struct block *at, MlirValue v,
                    enum role const *roles, enum role *kept, int *n);
/* The roles of the dimensions of operand o of a product.  n_role: that of its loop n; k_role: that of the summed loop. */
void take_product_roles(const struct product *p, int o, enum role n_role, enum role k_role, enum role *roles);
/* If v is a transpose, returns what it transposes, and permutes the roles. */
MlirValue take_untransposed(MlirValue v, enum role *roles);

/* Repeats member k on the block. */
MlirValue take_member(struct ir_builder *b, const struct writer *w, const struct members *m, int k);
/* The value of v, a member, the scores, or a value from outside, in the block. */
MlirValue take_value(const struct writer *w, const struct members *m, MlirValue v);

/* Says that v is in SBUF, and the tiles: of its memory and of the loops that compute it. */
void take_tiles(struct ir_builder *b, MlirValue v, const int64_t tile[2], int n_loops, const int64_t *loops);
/* The same for a value of rows and keys, computed by two loops. */
void take_block_tiles(struct ir_builder *b, MlirValue v);

/* x `name` y, element by element; y may be [rows, 1]. */
MlirValue take_binary(struct ir_builder *b, const char *name, MlirValue x, MlirValue y);

/* ---- running.c --------------------------------------------------------------------------------------------------- */

/* The results, [rows, width], of n tiles of rows with the keys in blocks.  tile[t].keys: all of them. */
void running_rows(struct ir_builder *b, const struct writer *w, int n, const struct block *tile, MlirValue *out);

/* ---- rewrite.c --------------------------------------------------------------------------------------------------- */

/* The second operands of the products for blocks of the same keys: [features, keys] and [keys, width]. */
struct operands {
  MlirValue keys, values;
};
struct operands rewrite_operands(struct ir_builder *b, const struct writer *w, const struct block *at);
/* Writes the tiles of 128 rows, the last one perhaps of fewer, of which a block consists.  Returns their number. */
int rewrite_split(struct ir_builder *b, const struct block *rows, struct block *tile);
MlirValue rewrite_scores(struct ir_builder *b, const struct writer *w, const struct block *at, MlirValue keys);
/* weights @ values of a block, in the type of the second product. */
MlirValue rewrite_mixed(struct ir_builder *b, const struct writer *w, const struct members *m, MlirValue values);
/* Multiplies by the divisor's reciprocal, and applies the epilogue. */
MlirValue rewrite_end(struct ir_builder *b, const struct writer *w, const struct members *m, MlirValue mixed);

static inline int64_t rewrite_min(int64_t x, int64_t y) {
  return x < y ? x : y;
}
/* The free tile of a row of n scores: a multiple of a PSUM bank, at most 2048. */
int64_t rewrite_free_tile(int64_t n);

#endif
