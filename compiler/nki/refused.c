/* refused: see refused.h. */
#include "nki/refused.h"

const struct nki_refused nki_refused[] = {
#define NKI_REFUSED(name, newer, beta1, why, instead) {name, newer, beta1, why, instead},
#include "nki/refused.def"
#undef NKI_REFUSED
};
const int nki_n_refused = sizeof nki_refused / sizeof *nki_refused;
