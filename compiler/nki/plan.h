/* plan: what nki_lower knows of each item before it makes the first instruction. */
#ifndef NKI_PLAN_H
#define NKI_PLAN_H

#include "nki/nki.h"

struct nki_item_plan {
  bool skip;     /* a memset that products make needless */
  bool opens;    /* what it writes in PSUM gets a new allocation */
  unsigned ends; /* bits 1 << parameter: the allocation of this operand is not used after the call */
};
struct nki_plan {
  struct arena *arena;
  struct nki_item_plan *items; /* one for each item of the program */
};

/* False with a diagnostic if a use of PSUM has no form in NISA. */
bool nki_plan_make(const struct nki_program *p, struct arena *a, struct diags *ds, struct nki_plan *out);

#endif
