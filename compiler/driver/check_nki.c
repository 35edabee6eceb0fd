/* check_nki: see check_nki.h. */
#include "driver/check_nki.h"

#include "nki/lower.h"
#include "nki/reroll.h"

enum status check_nki_module(struct ir *ir, const struct nki_program *p, struct diags *ds, MlirModule *out) {
  struct nki_program *rounds;
  struct nki_notes notes = {0};
  if (p->is_rerolled)
    return nki_lower(ir, p, ds, out);
  if (p->n_calls > CHECK_NKI_CALLS_MAX) {
    diag_add(ds, DS_ERROR, DG_TOO_MANY_OPS, NULL,
             "it has %d calls, of which at most %d are run one by one; nki-reroll makes loops of them", p->n_calls,
             CHECK_NKI_CALLS_MAX);
    return ST_LIMIT;
  }
  enum status st = nki_reroll(p, true, ds, &rounds, &notes);
  return st ? st : nki_lower(ir, rounds, ds, out);
}
