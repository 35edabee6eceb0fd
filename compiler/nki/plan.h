/* plan: which uses of a tensor in PSUM belong together.
 *
 * In NISA an allocation in PSUM starts an accumulation group, and nothing else writes to it.  In NKI a tensor can be used for
 * several groups, one after another: a product with accumulate=False, or a write by another engine, starts anew.  Each such
 * use needs a tensor of its own.  A memset to zero before products is needless, because a group starts from zero by itself.
 */
#ifndef NKI_PLAN_H
#define NKI_PLAN_H

#include "nki/nki.h"

struct nki_item_plan {
  bool skip;  /* a memset that products make needless */
  bool opens; /* what it writes in PSUM begins anew */
};
struct nki_plan {
  struct arena *arena;
  struct nki_item_plan *items; /* one for each item of the record */
  int scope, n_outer;          /* while it is made: the region around the next item, and those around that */
  int outer[NKI_REGIONS_MAX];
};

/* False with a diagnostic if a use of PSUM has no form in NISA. */
bool nki_plan_make(const struct nki_program *p, struct arena *a, struct diags *ds, struct nki_plan *out);

#endif
