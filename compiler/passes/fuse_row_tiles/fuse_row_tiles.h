/* fuse_row_tiles: declarations shared by its files.  See fuse_row_tiles.c. */
#ifndef PASSES_FUSE_ROW_TILES_H
#define PASSES_FUSE_ROW_TILES_H

#include "mlir-c/BuiltinTypes.h"

#include "base/table.h"
#include "ir/build.h"
#include "passes/lib/layout.h"

/* The tiles of rows that one iteration computes side by side, at most. */
enum { FUSE_JAM_MAX = 2 };

/* An operation of a block.  Annotations (nkipy) are nodes, too, since they move with the value that they annotate. */
struct fuse_node {
  MlirOperation op;
  struct fuse_member *member; /* NULL: the operation keeps its own loops or has none */
  int after;                  /* the last stage that the operation depends on, -1 if none; for a member: its stage */
  bool needs_named, is_needed_by_named; /* knob.fuse names a value that it depends on, or that depends on it */
};

/* An element-wise operation or a reduction that computes each tile of rows from the same rows of its operands; or a transpose of
 * matrices, whose operand or whose result has the rows as columns. */
struct fuse_member {
  struct fuse_node *node;
  struct structured s;
  struct layout at;
  int row_dim; /* the dimension that has the rows; those before it are planes */
  int row_loop,
      column_loop; /* the same and the last one, or the one that rows are cut along; of a transpose that turns rows to columns the other way round */
  bool takes_columns; /* a transpose whose operand has the rows as columns: its result has the rows of the group */
  int64_t rows, tile; /* the extent of row_loop and its tile */
  int parent;         /* union-find; members with one root are a group */
  bool is_single;     /* one tile has all rows: it is fused for its windows, or those of what it reads, only */
  bool is_wide;       /* its group does not fit with whole rows, so that it may not be fused with reductions */
};

/* The box around slices of one value, whose tile all of them are read from (windows.c). */
struct fuse_cover {
  MlirOperation slice; /* the first of them */
  int rank, n;         /* n: the slices */
  int64_t *offset, *end;
  int64_t elements, alone; /* of one row and plane: in the box, and in the slices together */
  bool pays;               /* one tile is loaded for all of them */
};

/* A value that is read from the tile of a cover. */
struct fuse_window {
  struct fuse_cover *cover;
  int64_t *offset; /* in the source of the cover */
};

/* Members that become one loop. */
struct fuse_group {
  int n;
  struct fuse_member **v; /* in program order */
  int n_planes;           /* loops around that of the rows, which go over one plane at a time */
  int64_t planes;         /* the product of their extents */
  int64_t rows, tile;     /* tile: rows that one instruction computes */
  int jam;                /* tiles in one iteration: of rows, or if all rows are one tile, of the last loop of planes */
  int64_t columns, cut;   /* the longest last dimension, and how much of it one iteration has */
  int64_t row_bytes;      /* the most bytes of a partition that are in use at a time with whole rows */
  int64_t all_bytes;      /* the same of all values together, in use or not */
  int64_t kept_bytes;     /* the bytes of a partition of what the loop reads again in every iteration */
  int64_t moved, moved_alone; /* bytes between HBM and SBUF: fused, and with a loop for each operation */
  bool has_reduction, has_transpose;
  int n_covers;
  struct fuse_cover *covers;
  struct table windows; /* value -> its fuse_window */
  const char *why_not;  /* NULL: the group is fused */
};

/* What the files share about one block. */
struct fuse_block {
  struct pass_run *run;
  MlirBlock block;
  int n;
  struct fuse_node *v; /* in program order, without the terminator */
  struct table by_op;  /* operation -> its fuse_node */
  int n_members;
  struct fuse_member *members;
  int n_groups;
  struct fuse_group *groups;
};

/* ---- groups.c: which operations become one loop ------------------------------------------------------------------- */

/* Fills groups; those with why_not are not fused.  Linear in uses. */
void fuse_find_groups(struct fuse_block *b);
/* The node in this block that is the operation that defines v, or NULL. */
struct fuse_node *fuse_node_of(const struct fuse_block *b, MlirValue v);
/* The root of a member's group in b->members. */
int fuse_root(struct fuse_block *b, int k);
/* True if the tiles of one iteration are of several planes. */
static inline bool fuse_jams_planes(const struct fuse_group *g) {
  return g->n_planes && g->rows <= g->tile;
}
static inline bool fuse_turns(const struct fuse_member *m) {
  return m->s.kind == SK_TRANSPOSE;
}
/* True if the member transposes rows: no other member reads its result, which has them as columns. */
static inline bool fuse_turns_out(const struct fuse_member *m) {
  return fuse_turns(m) && !m->takes_columns;
}
/* True if operand o of m is the same in every row: a broadcast along dimension 0. */
bool fuse_is_same_in_rows(const struct fuse_member *m, int o);
/* True if operand o of m has one row, which all partitions read. */
bool fuse_is_one_row(const struct fuse_member *m, int o);
/* True if an operation outside the group reads v, which a member computes. */
bool fuse_leaves(struct fuse_block *b, const struct fuse_group *g, MlirValue v);

/* ---- cost.c: does a group fit, and what does it save --------------------------------------------------------------- */

/* Sets the columns of an iteration and the costs of g; sets why_not if no number of columns fits. */
void fuse_weigh(struct fuse_block *b, struct fuse_group *g);

/* ---- order.c: where the members of a group are computed -------------------------------------------------------------- */

/* Moves the operations of the block so that each group is computed in one place, where it becomes a loop. */
void fuse_outline(struct fuse_block *b);

/* ---- outline.c: the loop ------------------------------------------------------------------------------------------- */

/* Makes the loop of a group at the builder's place; what read the members' results from outside reads its results. */
void fuse_make_loop(struct ir_builder *b, struct fuse_block *block, const struct fuse_group *g);

/* Allocates a tile in SBUF. */
MlirValue fuse_tile_in_sbuf(struct ir_builder *b, MlirType t);

/* ---- windows.c: slices that overlap ------------------------------------------------------------------------------------ */

/* True if v is one of several slices of a value outside SBUF. */
bool fuse_is_one_of_slices(MlirValue v);
/* Finds the operands of the group that are slices of one value and are read from one tile. */
void fuse_find_windows(struct fuse_block *b, struct fuse_group *g);
void fuse_forget_windows(struct fuse_block *b, struct fuse_group *g);
/* How v is read from the tile of a cover; NULL: it has a tile of its own. */
const struct fuse_window *fuse_window_of(const struct fuse_group *g, MlirValue v);
MlirValue fuse_cover_source(const struct fuse_cover *c);
/* Returns the part s of the window v, from the tile of its cover, which is loaded first unless `tiles` has it. */
MlirValue fuse_load_window(struct ir_builder *b, const struct fuse_group *g, MlirValue v, const struct ir_slice *s,
                           struct table *tiles);
/* Erases the slices, and the paddings, of the module that nothing reads any more. */
void fuse_drop_windows(struct pass_run *run);

/* ---- turns.c: transposes ------------------------------------------------------------------------------------------------ */

/* Reads a transpose of the last two dimensions as a member: sets its rows and their tile.  Returns false for any other one, and
 * for one that the Tensor engine does not do in whole tiles. */
bool fuse_read_turn(const struct fuse_block *b, struct fuse_member *m);
/* Takes the part s of v, whose columns are n tiles of rows side by side: loads it to SBUF, and transposes each of them to tile[u],
 * with rows[u] rows. */
void fuse_take_columns(struct ir_builder *b, MlirValue v, const struct ir_slice *s, int n, const int64_t *rows,
                       MlirValue *tile);
/* Inserts the transposes of n tiles of rows side by side as the part s of `carried`; returns what is carried then. */
MlirValue fuse_put_columns(struct ir_builder *b, int n, const int64_t *rows, MlirValue const *tile, MlirValue carried,
                           const struct ir_slice *s);
/* Bytes of a partition of what fuse_take_columns loads. */
int64_t fuse_taken_bytes(const struct fuse_member *m);

/* ---- join.c: values that are joined afterwards ---------------------------------------------------------------------- */

/* Lets loops write the tiles of values that are only parts of another one to their places in that. */
void fuse_join(struct pass_run *run);

/* Says what loops of their own cost: v, which is computed in one and read in another, goes to HBM and back unless it is in SBUF. */
void fuse_price_apart(struct remark *r, enum target t, MlirValue v, const char *choice, const char *why);

#endif
