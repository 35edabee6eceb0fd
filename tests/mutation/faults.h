/* faults: the kinds of faults that plant.c puts into a program, by the form of the program.
 *
 * A kind says of an instruction or operation if it is a place for the fault, and makes the fault if that is wanted.  The
 * program is verified and checked afterwards, as after every pass.
 */
#ifndef MUTATION_FAULTS_H
#define MUTATION_FAULTS_H

#include "hlo/hlo.h"
#include "ir/ir.h"

/* Makes the fault at place number n, from 0, of its kind: first in the entry computation, then in the others.  False if
 * there are not so many places. */
bool fault_in_hlo(struct hlo_module *m, const char *kind, int n);

struct fault_kind {
  const char *name;
  bool (*change)(MlirOperation op, bool is_wanted);
};
/* The lists end with a name that is NULL.  Several kinds of one name belong together. */
extern const struct fault_kind linalg_faults[];  /* linalg on tensors and memrefs, and what all forms share */
extern const struct fault_kind nisa_faults[];    /* NISA in one sequence, with and without places */
extern const struct fault_kind streams_faults[]; /* engine programs */

/* Destroys op when the walk has ended. */
void fault_remove(MlirOperation op);
bool fault_is_one_of(MlirOperation op, const char *const *names); /* names end with NULL */
/* A new arith.constant before op. */
MlirValue fault_constant(MlirOperation before, MlirAttribute value);
MlirValue fault_index(MlirOperation before, int64_t value);
/* The last operation before op, in the order of the text and in its function, of which is_of is true; null if there is
 * none. */
MlirOperation fault_earlier(MlirOperation op, bool (*is_of)(MlirOperation, MlirOperation op));

#endif
