/* legalize_layout: what its files share.  See legalize_layout.c for what the pass does. */
#ifndef PASSES_LEGALIZE_LAYOUT_H
#define PASSES_LEGALIZE_LAYOUT_H

#include "base/table.h"
#include "ir/structured.h"
#include "passes/pass.h"

enum { LEGAL_RANK_MAX = 8, LEGAL_TERMS_MAX = 8, LEGAL_PARTITIONS = 128 };

/* ---- parts of buffers (lib/access.c) --------------------------------------------------------------- */

/* constant + sum of factor * value. */
struct linear {
  int64_t constant;
  int n;
  struct {
    MlirValue v;
    int64_t factor;
  } term[LEGAL_TERMS_MAX];
};

/* A view as a box in the buffer that it is a view of. */
struct access {
  MlirValue root;
  int rank; /* of root */
  struct linear at[LEGAL_RANK_MAX];
  int64_t size[LEGAL_RANK_MAX];
  int view_rank;
  int dim[LEGAL_RANK_MAX]; /* which of root's dimensions a dimension of the view is; -1: none, it has extent 1 */
};

/* False if v is no box, or its extents are not known. */
bool access_read(MlirValue v, struct access *a);

bool linear_add(struct linear *l, MlirValue v, int64_t factor);
/* The largest number that divides l whatever its values are; 0 for the constant 0. */
int64_t linear_granule(const struct linear *l);
int64_t legal_gcd(int64_t x, int64_t y);

/* ---- physical buffers (legalize_layout.c) ---------------------------------------------------------------------- */

/* How a buffer lies in the machine: [tile of the partition dimension, number of blocks of each dimension, tile of each
 * free dimension]; without the block counts if there is one block. */
struct physical {
  MlirValue logical, physical; /* physical is null while it is not made, and equal to logical if nothing changes */
  int rank;
  int64_t dims[LEGAL_RANK_MAX], tile[LEGAL_RANK_MAX], blocks[LEGAL_RANK_MAX];
  int partition; /* dimension */
  bool is_blocked;
  int n_free, free[LEGAL_RANK_MAX]; /* dimensions behind the blocks */
  struct physical *next;
};

struct legalize {
  struct pass_run *run;
  struct physical *buffers, **end; /* end: where the next one goes */
  struct table by_root;            /* logical value -> struct physical */
};

/* The physical form of a buffer that has another form than its logical one; NULL otherwise. */
const struct physical *legal_find(const struct legalize *g, MlirValue root);
/* Into how long parts an access of `size` from `at` on has to be cut along a dimension with this tile; `size` or more:
 * it need not be. */
int64_t legal_cut(const struct linear *at, int64_t size, int64_t tile);
/* The partitions that parts of length `cut` of such an access begin at suit an engine. */
bool legal_starts_well(const struct linear *at, int64_t size, int64_t tile, int64_t cut);

/* ---- operations (rewrite.c) -------------------------------------------------------------------- */

/* A linalg operation or memref.copy: loops, and per operand what it is indexed with. */
struct tiled_op {
  MlirOperation op;
  enum structured_kind kind; /* SK_UNARY for memref.copy */
  bool is_copy;              /* memref.copy */
  int n_operands, n_inputs, n_loops;
  bool reduction[LEGAL_RANK_MAX];
  int64_t extents[LEGAL_RANK_MAX];
  int operand_rank[STRUCTURED_OPERANDS_MAX];
  int loop[STRUCTURED_OPERANDS_MAX][LEGAL_RANK_MAX]; /* of each dimension of each operand, -1: constant 0 */
};

/* False for operations that are neither, or whose maps are more than loops and zeros. */
bool tiled_read(MlirOperation op, struct tiled_op *t);
/* Data is moved, by DMA or the tensor engine: partitions of source and destination need not be the same. */
bool tiled_is_movement(const struct tiled_op *t);
/* The loop that goes over the partitions of operand o: -1 if none does, -2 if the operand is not on the chip. */
int legal_partition_loop(const struct legalize *g, const struct tiled_op *t, int o);
/* Makes op work on the physical buffers, in a nest of loops over blocks where it spans several. */
enum status legal_rewrite(struct legalize *g, MlirOperation op);

/* Cuts op, which tiled_read understands, into parts of cut[l] along loop l (and the rest); loops of extent 1 go, as far
 * as two are left and loop `partition` (-1: none) stays. */
void legal_split(struct pass_run *run, MlirOperation op, const int64_t *cut, int partition);

/* ---- DRAM operands (stage.c) ------------------------------------------------------------------- */

/* Engines compute on-chip: operands of op in DRAM get buffers there, filled before and written back behind it; a fill
 * of DRAM becomes a fill of a tile that is copied to all of it. */
void legal_stage(struct pass_run *run, MlirOperation op);
/* DMA transposes into SBUF only: a linalg.transpose from DRAM to DRAM goes through a tile in SBUF. */
void legal_stage_transpose(struct pass_run *run, MlirOperation op);
/* Engines work lane by lane: an input of a generic that has one row for all partitions of the result is broadcast to a
 * buffer that has as many.  True if there was one. */
bool legal_spread(const struct legalize *g, MlirOperation op);
/* An input that lies in the partitions along another dimension than the result, or whose blocks would cut the result
 * where no engine can begin, is copied to a buffer with the result's tiles.  True if there was one. */
bool legal_align(const struct legalize *g, MlirOperation op);

#endif
