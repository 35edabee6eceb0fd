/* legalize_layout: declarations shared by its files and used by other passes.  legalize_layout.c describes the
 * pass. */
#ifndef PASSES_LEGALIZE_LAYOUT_H
#define PASSES_LEGALIZE_LAYOUT_H

#include "base/table.h"
#include "ir/structured.h"
#include "passes/lib/access.h"
#include "passes/pass.h"

enum {
  LEGAL_RANK_MAX = ACCESS_RANK_MAX,
  LEGAL_PARTS_MAX = 512, /* of one operation along one dimension; with more a tile does not suit the access */
};

/* ---- physical buffers (legalize_layout.c) ---------------------------------------------------------------------- */

/* The form of a buffer in the machine: [tile of the partition dimension, number of blocks of each dimension, tile of
 * each free dimension].  The numbers of blocks are omitted if there is one block. */
struct physical {
  MlirValue logical, physical; /* physical: null until it is allocated; equal to logical if the form does not change */
  int rank;
  int64_t dims[LEGAL_RANK_MAX], tile[LEGAL_RANK_MAX], blocks[LEGAL_RANK_MAX];
  int partition; /* the partition dimension */
  bool is_blocked;
  int n_free, free[LEGAL_RANK_MAX]; /* dimensions after the blocks */
  struct physical *next;
};

struct legalize {
  struct pass_run *run;
  struct physical *buffers, **end; /* end: where the next buffer is appended */
  struct table by_root;            /* logical value -> struct physical */
};

/* Returns the physical form of a buffer, or NULL if it equals the logical form. */
const struct physical *legal_find(const struct legalize *g, MlirValue root);

/* ---- operations (tiled.c, rewrite.c) ----------------------------------------------------------------------------- */

/* A linalg operation or memref.copy: its loops, and the loops that index each operand. */
struct tiled_op {
  MlirOperation op;
  enum structured_kind kind; /* SK_UNARY for memref.copy */
  bool is_copy;              /* memref.copy */
  int n_operands, n_inputs, n_loops;
  bool reduction[LEGAL_RANK_MAX];
  int64_t extents[LEGAL_RANK_MAX];
  int operand_rank[STRUCTURED_OPERANDS_MAX];         /* 0 for a scalar */
  int loop[STRUCTURED_OPERANDS_MAX][LEGAL_RANK_MAX]; /* indexed by operand and dimension; -1: the constant 0 */
};

/* Reads op.  Returns false for other operations, for maps whose results are not all loops or zeros, and beyond
 * LEGAL_RANK_MAX. */
bool tiled_read(MlirOperation op, struct tiled_op *t);
/* True if DMA or the tensor engine executes op: its source and destination need not have the same partitions. */
bool tiled_is_movement(const struct tiled_op *t);
/* Returns the loop that goes over the partitions of operand o, -1 if there is none, -2 if the operand is not on
 * chip. */
int legal_partition_loop(const struct legalize *g, const struct tiled_op *t, int o);
/* Finds the parts into which op is cut: cut[l] iterations of loop l, all of them if no operand's blocks cut it. */
void legal_cuts(const struct legalize *g, const struct tiled_op *t, int64_t *cut);
/* Makes op work on the physical buffers, in a nest of loops over blocks if it spans several. */
void legal_rewrite(struct legalize *g, MlirOperation op);

/* Cuts op, which tiled_read understands, into parts of length cut[l] along loop l and a remainder.  Drops loops of
 * extent 1 while more than two are left, but keeps loop `partition` (-1: none). */
void legal_split(struct pass_run *run, MlirOperation op, const int64_t *cut, int partition);

/* True if an engine computes op; DMA moves what is only moved. */
bool legal_needs_engine(const struct tiled_op *t);
/* True if a dimension of operand o goes over the loop. */
bool legal_indexes(const struct tiled_op *t, int o, int loop);

/* ---- DRAM operands (stage.c) ----------------------------------------------------------------------------------- */

/* Engines compute on chip: operands of op in DRAM get on-chip buffers, which are filled before op and written back
 * after it.  A fill of DRAM becomes a fill of a tile that is copied to all parts of the target. */
void legal_stage(struct pass_run *run, MlirOperation op);
/* DMA transposes only into SBUF: makes a linalg.transpose from DRAM to DRAM go through a tile in SBUF. */
void legal_stage_transpose(struct pass_run *run, MlirOperation op);
/* In each partition, engines read only that partition's memory.  If an input of a generic has one row for all
 * partitions of the result, broadcasts it to a buffer with one row per partition.  Returns true if there was such an
 * input. */
bool legal_spread(const struct legalize *g, MlirOperation op);
/* Moves copies and broadcasts from buffers that a loop does not write before that loop, if SBUF has room (hoist.c).
 * Returns true if any was moved. */
bool legal_hoist(struct pass_run *run);
/* Copies inputs that an engine cannot read where they are (align.c): to a buffer with the result's tiles if its partitions are another
 * dimension than the result's, or if its blocks would cut the result at a partition where no engine can start; to partition 0 if a
 * product or a copy from or to PSUM would start at such a partition.  Returns true if there was such an input. */
bool legal_align(const struct legalize *g, MlirOperation op);

#endif
