/* compose: calls that no instruction of NISA computes alone, as several calls.
 *
 * What is between the steps is in temporary tensors of f32 or uint8 in SBUF, so the values are those of the call. */
#ifndef NKI_COMPOSE_H
#define NKI_COMPOSE_H

#include "nki/nki.h"

enum { NKI_TEMPS_MAX = 3, NKI_STEPS_MAX = 6 };

struct nki_steps {
  struct arena *arena;
  int first_temp; /* the number of the first temporary tensor */
  int n_temps;
  struct nki_tensor *temp[NKI_TEMPS_MAX];
  int n;
  struct nki_call step[NKI_STEPS_MAX];
};

/* Writes the steps of c.  False if c is one step itself.  The caller sets arena and first_temp. */
bool nki_compose(const struct nki_call *c, struct nki_steps *out);

#endif
