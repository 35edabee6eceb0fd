/* adopt: a module that was read from a text takes the place of the module that the text was printed from. */
#ifndef HLO_ADOPT_H
#define HLO_ADOPT_H

#include "hlo/hlo.h"

/* What a text does not say is taken from the older module: ids, provenance, places, knobs and fuse groups of the instructions
 * that are the same, names of results and parameters, and names that are taken.  m was just read; pairs[k] is the older
 * instruction of the k-th of m, in the order of computations and instructions, or NULL, and no instruction is there twice.
 * ST_INPUT with *why ("has 2 parameters instead of 3") if the entry computations have other parameters or results. */
MUST_USE enum status hlo_adopt(struct hlo_module *m, const struct hlo_module *older, struct hlo_instr *const *pairs,
                               const char **why);

#endif
