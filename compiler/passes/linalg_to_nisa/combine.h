/* combine: what the files that merge two instructions share.  combine.c describes the pass.
 *
 * A link is a buffer with one writer and one reader, which use the same elements of it. */
#ifndef PASSES_LINALG_TO_NISA_COMBINE_H
#define PASSES_LINALG_TO_NISA_COMBINE_H

#include "base/array.h"
#include "base/index.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

/* The position of each operation in the module.  MLIR renumbers a block when it is asked for the order of operations
 * after one was moved.  A position here does not change: a new instruction gets the position of the one that it
 * replaces. */
struct positions {
  struct arena *arena;
  struct index by_op;
  struct {
    struct position {
      const void *op;
      int at;
    } *v;
    int n, cap;
  } all;
};

/* A buffer with its writer, its reader and its release. */
struct link {
  struct pass_run *run;
  struct positions *positions;
  MlirOperation alloc, release;
  MlirValue buffer;
  struct nisa_instr w, r; /* its writer and its reader */
  int operand;            /* of the reader */
};

/* The buffers that are released between the writer and the reader: at most one for each operand of the writer. */
struct late {
  int n;
  MlirOperation v[NISA_OPERANDS_MAX];
};

/* ---- combine_links.c --------------------------------------------------------------------------------------------- */

/* Of all operations of the module. */
void link_positions(struct positions *p, struct pass_run *run);
/* Where the operation stands; NULL if it has no position. */
int *link_position(const struct positions *p, MlirOperation op);
/* Sets the position of op, which may have the address of an erased operation. */
void link_set_position(struct positions *p, MlirOperation op, int at);
/* True if x is before y.  Both are in one block. */
bool link_is_before(const struct link *l, MlirOperation x, MlirOperation y);

/* Fills *l with the link of a buffer in SBUF; false if the buffer is none. */
bool link_find(struct pass_run *run, struct positions *positions, MlirOperation alloc, struct link *l);
/* True if the reader may read the operands of the writer, and their later release costs no memory. */
bool link_can_read_late(const struct link *l, struct late *late);
/* Puts `in` in the place of the reader, or of the writer.  The other one, the buffer between them and its release go. */
void link_replace(struct link *l, const struct nisa_instr *in, const struct late *late, int n_attrs,
                  MlirNamedAttribute const *attrs);
void link_replace_writer(struct link *l, const struct nisa_instr *in, int n, MlirNamedAttribute const *attrs);

bool link_same_tile(const struct nisa_access *a, const struct nisa_access *b);
bool link_uses(MlirOperation op, MlirValue v);
bool link_is_own_buffer(MlirValue v); /* allocated here, on the chip */
bool link_is_unsigned(const struct nisa_instr *in);
bool link_is_in(const struct nisa_access *x, enum mem_space s);
bool link_is_constant(const struct nisa_access *x, double want);
MlirNamedAttribute link_named(const struct link *l, const char *name, const char *value);

/* ---- combine_scales.c -------------------------------------------------------------------------------------------- */

/* A factor or a summand becomes a part of the reader; a root and its reciprocal become one.  True if one of them was done. */
bool combine_scale(struct link *l);
/* An operation with a scalar and one with a tensor, both on Vector, become scalar_tensor_tensor, if that takes less time. */
bool combine_tensor(struct link *l);

#endif
