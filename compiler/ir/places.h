/* places: what the locations of operations say (ir.h), kept by their addresses. */
#ifndef IR_PLACES_H
#define IR_PLACES_H

#include "ir/ir.h"

/* The places that were read from locations of one context so far.  Lists of places are immutable and live as long as a. */
struct ir_places;
struct ir_places *ir_places_new(struct arena *a);
struct arena *ir_places_arena(const struct ir_places *k); /* a */

/* What the location of an operation says. */
struct ir_read {
  int n_from;      /* ids in the stage before, each once */
  int first;       /* the first of them; -1: none */
  const int *from; /* all of them until the next call, if there is more than one */
  struct src_locs locs;
  MlirLocation place; /* a location of the places alone; null: there are none */
  bool is_tagged;     /* the location is that of `first`, `place` and how many more there are */
};
struct ir_read ir_places_read(struct ir_places *k, MlirOperation op, struct arena *scratch);

/* The first of op's places, as a list; {0}: it has none. */
struct src_locs ir_places_first(struct ir_places *k, MlirOperation op, struct arena *scratch);

/* The id that ir_snapshot put into this location; -1 when it has none. */
int ir_op_id(MlirLocation loc);

#endif
