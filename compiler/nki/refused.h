/* refused: names of NKI that are known, but not compiled. */
#ifndef NKI_REFUSED_H
#define NKI_REFUSED_H

#include <stdbool.h>

struct nki_refused {
  const char *name;  /* "nl.tfloat32", "tensor.indirect" */
  bool newer, beta1; /* the generations that have it */
  const char *why, *instead;
};
extern const struct nki_refused nki_refused[];
extern const int nki_n_refused;

#endif
