/* remark: a decision of a pass about one operation, as data.
 *
 * A remark has the rule by which the pass decided and what it decided, as text.  If the rule chooses (rule.h), it also has
 * what the choice costs, and a rejected choice with its cost, in the same unit.  If they are at hand, it has the limits of the
 * machine that the decision respects and how much of each it uses, further rejected choices, and the knob that would change it.  The knob is for the value of the remark's expression: the innermost place of locs.
 *
 *     r = pass_remark(run, op, RULE_TILE_SIZE, "TILE=[128,512]");
 *     remark_cost(r, "2 tiles");
 *     remark_limit(r, "partitions", "partitions", 128, 128);
 *     remark_knob(r, "tile_op", "tile_size", "[128, 512]");
 *     remark_reject_for(r, "[64, 512]", "[64, 512]", "4 tiles", "half of the partitions would be idle");
 *
 * All functions copy their texts, and accept NULL for the remark.
 */
#ifndef PASSES_REMARK_H
#define PASSES_REMARK_H

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/rule.h"
#include "base/src.h"

/* `used` of `available` of something; used may be more than there is. */
struct remark_limit {
  const char *name; /* "SBUF", "partitions" */
  const char *unit; /* "bytes per partition" */
  int64_t used, available;
  struct remark_limit *next;
};

/* A choice that was not taken. */
struct remark_rejected {
  const char *choice, *reason;
  const char *cost;  /* "4 tiles", "about 1.2 us"; NULL if it is not known */
  const char *value; /* what the knob would be given to take it, as JSON and as Python; NULL if no knob does */
  struct remark_rejected *next;
};

struct remark_knob {
  const char *call, *argument; /* "layout", "mem_space" */
  const char *value;           /* what it would be given for the present choice, as JSON and as Python */
  int n_dims;                  /* of tile_op: for each dimension of the value the entry of tile_size, -1 for none */
  const int *dims;
};

struct remark {
  const char *pass;
  enum rule rule;
  const char *text;
  const char *cost;     /* of what was chosen, as those of the rejected choices; NULL if it is not known */
  const char *name;     /* of the operation: "linalg.matmul" */
  struct src_locs locs; /* the operation's first place */
  const char *forced;   /* why there is no other choice here, though the rule chooses in general; otherwise NULL */
  int op;               /* id in the stage before of the operation, or of the one it was made from; -1: none */
  struct remark_limit *limits;
  struct remark_rejected *rejected;
  const struct remark_knob *knob; /* NULL if there is none for this expression */
  struct arena *arena;
  struct remark *next;
};

struct remarks {
  struct remark *first, *last;
  int n;
};

/* Adds a copy of a remark whose texts live as long as the arena.  Returns the copy. */
struct remark *remark_add(struct remarks *rs, struct arena *a, const struct remark *r);
/* Says what the chosen costs. */
void remark_cost(struct remark *r, const char *fmt, ...) PRINTF(2, 3);
/* Says why there is no other choice in this case.  Only for a remark that has no rejected choice. */
void remark_forced(struct remark *r, const char *why);
void remark_limit(struct remark *r, const char *name, const char *unit, int64_t used, int64_t available);
/* Adds a choice that no knob takes. */
void remark_reject(struct remark *r, const char *choice, const char *reason);
/* Adds a choice that the remark's knob takes when it is given `value`.  cost may be NULL. */
void remark_reject_for(struct remark *r, const char *choice, const char *value, const char *cost, const char *reason);
void remark_knob(struct remark *r, const char *call, const char *argument, const char *value);
/* Says which entry of the knob's value is for which dimension of the value. */
void remark_knob_dims(struct remark *r, int n, const int *dims);

/* Appends the members "rule", "cost", "forced", "limits", "rejected" and "knob" to a JSON object. */
void remark_put_reasons(struct buf *b, const struct remark *r);

#endif
