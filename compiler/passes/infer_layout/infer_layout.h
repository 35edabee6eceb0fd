/* infer_layout: what the files of the pass share.  See infer_layout.c for the whole picture. */
#ifndef PASSES_INFER_LAYOUT_H
#define PASSES_INFER_LAYOUT_H

#include "mlir-c/BuiltinTypes.h"

#include "base/table.h"
#include "passes/lib/layout.h"

/* Limits of the machine, the same on trn1, trn2 and trn3: partitions; f32 elements of a PSUM bank. */
enum { PARTITIONS = 128, PSUM_BANK_ELEMENTS = 512 };
/* Longest free dimension of a tile unless the user says otherwise: 8 KiB per partition in f32, so that 16 tile buffers
 * take 128 KiB of the smallest SBUF (176 KiB per partition) and leave room for whole values. */
enum { FREE_TILE_MAX = 2048 };

/* The tile size along one loop of one operation.  Loops that walk the same dimension of one value are merged: a
 * union-find forest, whose roots hold what is known of the set. */
struct tile_var {
  int parent;
  int64_t extent;
  int64_t hard;       /* what the machine can do at most */
  int64_t soft;       /* what we choose at most when the user says nothing */
  int64_t user;       /* what the user says, 0 if nothing */
  MlirOperation knob; /* where he says it */
};

/* One operation that gets tiles: element-wise, reduction, matmul, transpose, broadcast. */
struct tiled {
  MlirOperation op;
  struct structured s;
  MlirValue value;    /* result 0 */
  struct layout at;   /* the user's annotations of it; completed at the end */
  int rank;           /* of value */
  int var;            /* its loops are vars[var … var + s.n_loops) */
  int part;           /* the loop that is spread over the partitions */
  bool is_part_given; /* by the user, here or on a neighbour */
  MlirOperation part_knob;
  bool is_boundary;   /* a neighbour has another one: canonicalize-partition-dim lays the data out anew in between */
  bool is_user_space; /* the memory space is the user's */
};

struct infer {
  struct pass_run *run;
  int n;
  struct tiled *v; /* in program order */
  int n_vars;
  struct tile_var *vars;
  struct table by_op; /* operation -> its struct tiled */
};

/* The tiled operation that computes value; NULL if it is none. */
struct tiled *infer_find(const struct infer *f, MlirValue value);
/* The loop of t that walks dimension `dim` of operand `o` (inputs, then inits), or -1. */
int infer_loop(const struct tiled *t, int o, int dim);
/* The same of the result. */
static inline int infer_result_loop(const struct tiled *t, int dim) {
  return infer_loop(t, t->s.n_inputs, dim);
}
/* The dimension of operand o that loop walks, or -1. */
int infer_dim(const struct tiled *t, int o, int loop);
/* "file:line" of an annotation, for the second place of a message; "elsewhere" if it has none. */
const char *infer_place(const struct infer *f, MlirOperation op);
/* A bad-knob error at an annotation. */
enum status infer_bad_knob(const struct infer *f, MlirOperation knob, const char *fmt, ...) PRINTF(3, 4);
/* A knob-ignored warning at an annotation. */
void infer_warn_knob(const struct infer *f, MlirOperation knob, const char *fmt, ...) PRINTF(3, 4);

/* copies.c: copies of values that have to lie otherwise than their operation leaves them, and of those that
 * are read in SBUF and returned; in this order, before everything else. */
void infer_copy_relaid(struct pass_run *run);
void infer_copy_returned(struct pass_run *run);

/* tiles.c: which loop goes over the partitions; the tile size of every loop. */
enum status infer_partitions(struct infer *f);
enum status infer_tiles(struct infer *f);
int64_t infer_tile(const struct infer *f, const struct tiled *t, int loop);

/* space.c: where values live.  Sets at.space of every tiled operation that has none, and annotates the
 * other values that need it (results of loops, fills that are read). */
enum status infer_spaces(struct infer *f);

#endif
