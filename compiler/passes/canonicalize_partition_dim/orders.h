/* orders: provides values in another order of dimensions.
 *
 * A value is transposed once per order; all operations that need the order read the same transpose.  An
 * operation that now computes its result in another order registers a transpose back, for the readers that keep the
 * original order.  Once all operations are turned, orders_settle removes the transposes back that nobody reads.
 */
#ifndef CANONICALIZE_PARTITION_DIM_ORDERS_H
#define CANONICALIZE_PARTITION_DIM_ORDERS_H

#include "passes/lib/layout.h"

/* Dimension i of `turned` is dimension perm[i] of `value`. */
struct order {
  MlirValue value, turned;
  int rank;
  int64_t perm[STRUCTURED_LOOPS_MAX];
  bool is_back;     /* `value` is a transpose of `turned`; otherwise `turned` is a transpose of `value` */
  struct layout at; /* is_back: the layout that `value` gets if it is used */
};

struct orders {
  struct pass_run *run;
  struct order *v;
  int n, cap;
};

/* Returns x with its dimensions in the order perm: x itself if that is its order, a known value, a new transpose
 * after x's definition, or, for a fill, the same fill of the other shape.  tile is the tile of `reader` in the new
 * order; the transpose is in SBUF in tiles of this size, unless its readers have different ones. */
MlirValue orders_turned(struct orders *o, MlirOperation reader, MlirValue x, int rank, const int64_t *perm,
                        const int64_t *tile);

/* Builds the transpose of `turned` back to the original order after its definition, and makes the current readers of
 * `was`, which may be `turned` itself, read it.  at is the layout of the value in its original order. */
void orders_turn_back(struct orders *o, MlirValue was, MlirValue turned, int rank, const int64_t *perm,
                      const struct layout *at);

/* Called after the last operation: erases the transposes back that are not read and sets the layouts of the
 * others. */
void orders_settle(struct orders *o);

/* Sets out[perm[i]] = i. */
void orders_invert(int rank, const int64_t *perm, int64_t *out);
bool orders_is_identity(int rank, const int64_t *perm);

#endif
