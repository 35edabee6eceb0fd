/* infer_layout: declarations shared by its files.  infer_layout.c describes the pass. */
#ifndef PASSES_INFER_LAYOUT_H
#define PASSES_INFER_LAYOUT_H

#include "mlir-c/BuiltinTypes.h"

#include "base/table.h"
#include "nisa/nisa.h"
#include "passes/lib/layout.h"

/* Longest free dimension of a tile unless the user gives another: 8 KiB per partition in f32.  16 tile buffers then
 * take 128 KiB of the smallest SBUF (176 KiB per partition) and leave room for whole values. */
enum { FREE_TILE_MAX = 2048 };
/* Most rows and columns of a matrix in one tile of a transpose: 2 KiB in f32, with which DMA comes near its peak. */
enum { TRANSPOSE_TILE_MAX = 512 };

/* The tile size along one loop of one operation.  Loops over the same dimension of a value are merged in a union-find
 * forest; the root of a set holds its limits. */
struct tile_var {
  int parent;
  int64_t extent;
  int64_t hard;       /* the machine's limit */
  int64_t soft;       /* the default limit if the user gives no size */
  int64_t user;       /* the user's size, 0 if none */
  MlirOperation knob; /* the annotation with the user's size */
};

/* An operation that gets tiles: element-wise, reduction, matmul, transpose, broadcast. */
struct tiled {
  MlirOperation op;
  struct structured s;
  MlirValue value;    /* result 0 */
  struct layout at;   /* the user's annotations of value; completed at the end */
  int rank;           /* rank of value */
  int var;            /* index of its first loop: its loops are vars[var … var + s.n_loops) */
  int part;           /* the loop that goes over the partitions */
  bool is_part_given; /* given by the user, for this operation or a neighbour */
  MlirOperation part_knob;
  bool is_gather;      /* its body picks elements of a tensor, by what it reads from others */
  uint32_t backwards;  /* a bit for each loop along which it picks elements from the last one to the first */
  bool is_boundary;    /* a neighbour has another partition loop: canonicalize-partition-dim transposes between them */
  bool is_user_space;  /* the user gave the memory space */
  bool is_space_fixed; /* no knob moves the value, because it is returned, carried or picked from */
  const char *why_space; /* "a returned value"; NULL if the value is in SBUF by the rule */
};

struct infer {
  struct pass_run *run;
  int n;
  struct tiled *v; /* in program order */
  int n_vars;
  struct tile_var *vars;
  struct table by_op; /* operation -> its struct tiled */
};

/* Returns the tiled operation that computes value, or NULL. */
struct tiled *infer_find(const struct infer *f, MlirValue value);
/* Returns the loop of t that goes over dimension `dim` of operand `o` (inputs, then inits), or -1. */
int infer_loop(const struct tiled *t, int o, int dim);
/* Does the same for the result. */
static inline int infer_result_loop(const struct tiled *t, int dim) {
  return infer_loop(t, t->s.n_inputs, dim);
}
/* Returns the dimension of operand o that the loop goes over, or -1. */
int infer_dim(const struct tiled *t, int o, int loop);
/* Returns "file:line" of an annotation for a message that names two places, or "elsewhere" if it has no location. */
const char *infer_place(const struct infer *f, MlirOperation op);
/* Adds a bad-knob error at an annotation.  Returns ST_INPUT. */
enum status infer_bad_knob(const struct infer *f, MlirOperation knob, const char *fmt, ...) PRINTF(3, 4);
/* Adds a knob-ignored warning at an annotation. */
void infer_warn_knob(const struct infer *f, MlirOperation knob, const char *fmt, ...) PRINTF(3, 4);

/* copies.c: copies values whose operation cannot produce the layout that the user wants, and values that are both
 * read in SBUF and returned.  Called in this order, before the rest of the pass. */
void infer_copy_relaid(struct pass_run *run);
void infer_copy_returned(struct pass_run *run);
void infer_copy_revisited(struct pass_run *run);

/* tiles.c: chooses the loop over the partitions and the tile size of every loop. */
enum status infer_partitions(struct infer *f);
enum status infer_tiles(struct infer *f);
int64_t infer_tile(const struct infer *f, const struct tiled *t, int loop);
/* The size that a knob of this operation or of a neighbour gives for the loop; 0 if none does. */
int64_t infer_given_tile(const struct infer *f, const struct tiled *t, int loop);
/* The number of tiles, of the default sizes, with this loop on the partitions. */
double infer_steps(const struct tiled *t, int part);
/* True if the operation may have this loop on the partitions. */
bool infer_may_turn(const struct tiled *t, int loop);

/* turned.c: gives an operation that puts rows in another order, with `part` on the partitions, a tile of which both sides have runs, of at most
 * free_dims dimensions longer than 1; leaves the tiles of any other one. */
void infer_tile_turned(const struct tiled *t, int part, int free_dims, int64_t *tile);

/* space.c: chooses the memory of every value.  Sets at.space of each tiled operation that has none, and annotates the
 * other values that need a memory: results of loops, fills that are read. */
void infer_spaces(struct infer *f);
/* The bytes that the value takes in one partition of SBUF; above the size of SBUF it is a lower bound. */
int64_t infer_partition_bytes(const struct infer *f, const struct tiled *t);
/* True if that is more than half of SBUF, which leaves no room for its readers. */
bool infer_is_too_large(const struct infer *f, const struct tiled *t);

/* explain.c: adds the remarks about t, whose layout is l now.  is_given: the user gave a tile. */
void infer_explain(struct infer *f, struct tiled *t, const struct layout *l, bool is_given);

#endif
