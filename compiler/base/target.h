/* target: the NeuronCore generations, and the languages in which a kernel can be given.  A NEFF is a compiled kernel: its
 * contents are shown, and it has no stages. */
#ifndef BASE_TARGET_H
#define BASE_TARGET_H

#include <stdbool.h>

#include "base/error.h"

enum target { TARGET_TRN1, TARGET_TRN2, TARGET_TRN3, TARGET_COUNT };
enum language { LANG_NKIPY, LANG_HLO, LANG_MLIR, LANG_NEFF, LANG_COUNT };

const char *target_name(enum target t);     /* "trn2" */
const char *language_name(enum language l); /* "nkipy" */
/* False when no target or language has this name; *out is then unchanged. */
MUST_USE bool target_from_name(const char *name, enum target *out);
MUST_USE bool language_from_name(const char *name, enum language *out);

/* The names, for messages; those of languages are the ones of kernels. */
#define TARGET_NAMES "trn1, trn2 or trn3"
#define LANGUAGE_NAMES "nkipy, hlo or mlir"

#endif
