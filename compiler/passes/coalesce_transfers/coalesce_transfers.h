/* coalesce_transfers: declarations shared by its files.  See coalesce_transfers.c. */
#ifndef PASSES_COALESCE_TRANSFERS_H
#define PASSES_COALESCE_TRANSFERS_H

#include "base/table.h"
#include "ir/build.h"
#include "nisa/nisa.h"
#include "passes/lib/access.h"
#include "passes/pass.h"

/* A loop with known bounds, and the instruction in its body whose rounds become one. */
struct repeated {
  MlirOperation loop;
  MlirValue counter;
  int64_t lower, step, trips;
  struct nisa_instr in;
  int64_t rounds; /* that become one transfer; trips is a multiple of it */
};

/* An index of one dimension of a buffer, by the values of registers. */
struct sum {
  struct linear of;    /* values that are known before the loop */
  int64_t per_counter; /* the factor of the loop's counter */
};

struct side {
  struct sum at[NISA_RANK_MAX];
  struct nisa_index index[NISA_RANK_MAX]; /* of the tile's dimensions */
  int rank;
};

struct coalesce_parts {
  struct table apart; /* buffer -> not NULL: an engine begins its work with what is loaded there */
};

/* ---- sides.c: access patterns over several rounds ------------------------------------------------------------------ */

/* True if v is known before the loop. */
bool coalesce_is_before(const struct repeated *r, MlirValue v);
/* Reads the indices of an operand; false if one is not a sum of multiples of the counter and of earlier values. */
bool coalesce_read_side(const struct repeated *r, const struct nisa_access *x, struct side *out);
/* Makes x the operand of r->rounds rounds, which are dimension `at`.  A loop that stays counts its parts from 0.  False if the
 * pattern gets too many dimensions. */
bool coalesce_make_side(const struct repeated *r, struct nisa_access *x, struct side *s, int at);
/* True if operand k has an element for each one of dst; the others are columns. */
bool coalesce_is_wide(const struct nisa_instr *in, int k);
/* True if the operand is the same in all rounds. */
bool coalesce_is_the_same(const struct repeated *r, const struct nisa_access *x);
/* In one dimension each round writes what comes after all that the round before wrote. */
bool coalesce_is_apart(const struct repeated *r, const struct side *dst);

/* ---- coalesce_transfers.c ------------------------------------------------------------------------------------------- */

/* Reads the loop's bounds; false if they are not known.  The instruction is the caller's to find. */
bool coalesce_read_bounds(MlirOperation loop, struct repeated *r);
/* Reads the instruction of a loop whose body is arithmetic and that instruction; false if there is more, or it is no transfer and not
 * element-wise. */
bool coalesce_read_body(struct repeated *r);
/* True if dst has at each place what the same place of the sources gives. */
bool coalesce_is_elementwise(const struct nisa_instr *in);
bool coalesce_is_transfer(const struct nisa_instr *in);
/* True if a source is another buffer than dst, or the same elements of it. */
bool coalesce_is_beside(const struct nisa_access *dst, const struct nisa_access *src);
/* The loop that stays counts its parts from 0. */
void coalesce_set_parts(struct pass_run *run, const struct repeated *r);
/* Removes the arithmetic in the loop that nothing uses. */
void coalesce_sweep(struct arena *a, MlirOperation loop);

/* ---- rounds.c: loops of several short transfers and instructions ------------------------------------------------------ */

/* What is short, and how long transfers, in bytes, and instructions, in elements of a partition, become at most.  mixed_elements: in a
 * loop that does not only move and compute element by element. */
struct coalesce_limits {
  int64_t short_bytes, transfer_bytes, short_elements, instruction_elements, mixed_elements;
};

/* Makes one transfer or instruction of all rounds of each of the loop's, and removes the loop; false if it is another one. */
bool coalesce_rounds(struct pass_run *run, const struct repeated *loop, const struct coalesce_limits *limits);

/* ---- banks.c: transposes that leave PSUM together -------------------------------------------------------------------- */

/* Lets the transposes of the loop fill a bank of PSUM before it is read; false if the loop is another one. */
bool coalesce_banks(struct pass_run *run, const struct repeated *loop);

/* ---- reading_order.c: the order of loads ----------------------------------------------------------------------------- */

/* Exchanges the loop, if all of its body is a loop of loads, with that one where their readers wait for less then.  Loads of
 * transfer_bytes and less become one transfer anyway. */
void coalesce_take_reading_order(struct pass_run *run, MlirOperation loop, int64_t transfer_bytes);
/* The only dimension of the access in whose index the loop's counter is, if each round begins there after the end of the
 * one before; -1 otherwise. */
int coalesce_dimension_of(const struct repeated *loop, const struct nisa_access *x);
/* True if every instruction but the load only reads the buffer, as `is` says of each access to it. */
bool coalesce_is_only_read(MlirOperation load, MlirValue buffer, bool (*is)(const struct nisa_access *x, void *user),
                           void *user);
/* How deep the innermost loop lies whose counter dimension d of the access depends on; 0: it depends on none. */
int coalesce_depth_of_index(const struct nisa_access *x, int d);

/* ---- follow.c: loops that go round with the one before ------------------------------------------------------------------ */

/* Puts the loop into the one after it, which reads what it writes, where that saves time; the loop is gone then. */
void coalesce_follow(struct pass_run *run, MlirOperation loop);

/* ---- turns.c: loads of single elements ---------------------------------------------------------------------------------- */

/* Makes the dma_copy a dma_transpose if it loads single elements whose rows lie along the partitions. */
void coalesce_turn(struct pass_run *run, MlirOperation copy);

/* ---- in_place.c: copies that only stand between ---------------------------------------------------------------------------- */

/* Removes each tensor_copy for which all that read what it fills can read its source instead. */
void coalesce_read_in_place(struct pass_run *run);

/* ---- parts.c: loads that stay apart ---------------------------------------------------------------------------------- */

/* Finds the buffers, before anything is merged.  They live in the arena. */
void coalesce_find_parts(struct arena *a, MlirOperation module, struct coalesce_parts *out);
/* True if the transfers of the loop, of so many bytes each, are better not merged. */
bool coalesce_stays_apart(const struct coalesce_parts *parts, const struct repeated *r, int64_t bytes);

#endif
