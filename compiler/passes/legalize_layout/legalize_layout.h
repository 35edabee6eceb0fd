/* legalize_layout: what its files share, and what other passes use of it.  legalize_layout.c describes the pass. */
#ifndef PASSES_LEGALIZE_LAYOUT_H
#define PASSES_LEGALIZE_LAYOUT_H

#include "base/table.h"
#include "ir/structured.h"
#include "passes/lib/access.h"
#include "passes/pass.h"

enum { LEGAL_RANK_MAX = ACCESS_RANK_MAX };

/* ---- physical buffers (legalize_layout.c) ---------------------------------------------------------------------- */

/* The form of a buffer in the machine: [tile of the partition dimension, number of blocks of each dimension, tile of
 * each free dimension]; without the numbers of blocks when there is one block. */
struct physical {
  MlirValue logical, physical; /* physical: null until it is made; equal to logical when the form does not change */
  int rank;
  int64_t dims[LEGAL_RANK_MAX], tile[LEGAL_RANK_MAX], blocks[LEGAL_RANK_MAX];
  int partition; /* dimension */
  bool is_blocked;
  int n_free, free[LEGAL_RANK_MAX]; /* dimensions after the blocks */
  struct physical *next;
};

struct legalize {
  struct pass_run *run;
  struct physical *buffers, **end; /* end: where to append the next one */
  struct table by_root;            /* logical value -> struct physical */
};

/* The physical form of a buffer; NULL when it equals the logical form. */
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
  int loop[STRUCTURED_OPERANDS_MAX][LEGAL_RANK_MAX]; /* by operand and dimension; -1: the constant 0 */
};

/* False for other operations, for maps that have more than loops and zeros, and beyond LEGAL_RANK_MAX. */
bool tiled_read(MlirOperation op, struct tiled_op *t);
/* True if op is done by DMA or the tensor engine: source and destination need not have the same partitions. */
bool tiled_is_movement(const struct tiled_op *t);
/* The loop that goes over the partitions of operand o: -1 if none does, -2 if the operand is not on chip. */
int legal_partition_loop(const struct legalize *g, const struct tiled_op *t, int o);
/* Makes op work on the physical buffers, in a nest of loops over blocks where it spans several. */
void legal_rewrite(struct legalize *g, MlirOperation op);

/* Cuts op, which tiled_read understands, into parts of length cut[l] along loop l, and the rest.  Loops of extent 1 are
 * dropped while more than two are left; loop `partition` (-1: none) stays. */
void legal_split(struct pass_run *run, MlirOperation op, const int64_t *cut, int partition);

/* ---- DRAM operands (stage.c) ----------------------------------------------------------------------------------- */

/* Engines compute on chip: operands of op in DRAM get buffers on chip, which are filled before op and written back
 * after it.  A fill of DRAM becomes a fill of a tile that is copied to all of it. */
void legal_stage(struct pass_run *run, MlirOperation op);
/* DMA transposes into SBUF only: a linalg.transpose from DRAM to DRAM goes through a tile in SBUF. */
void legal_stage_transpose(struct pass_run *run, MlirOperation op);
/* Engines read each partition's own memory: an input of a generic with one row for all partitions of the result is
 * broadcast to a buffer that has a row for each.  True if there was one. */
bool legal_spread(const struct legalize *g, MlirOperation op);
/* An input whose partitions are another dimension than the result's, or whose blocks would cut the result at a
 * partition where no engine can start, is copied to a buffer with the result's tiles.  True if there was one. */
bool legal_align(const struct legalize *g, MlirOperation op);

#endif
