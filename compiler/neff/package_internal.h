/* package_internal: what the files of neff/package share. */
#ifndef NEFF_PACKAGE_INTERNAL_H
#define NEFF_PACKAGE_INTERNAL_H

#include <jansson.h>

#include "neff/package.h"

/* package_engines.c: adds the folder of a core: def.json, the engines' files, constants. */
MUST_USE enum status neff_package_core(struct arena *a, const struct neff_package *p, int core, struct neff *x,
                                       struct error *err);

/* package_move.c: appends the descriptors of a transfer with these registers, the items of a list; false without any if the
 * data decide what it moves.  names: of the variable of each buffer of the program. */
bool neff_package_put_descriptors(const struct sim_program *p, const struct sim_instr *i, const int64_t *regs,
                                  const char *const *names, struct buf *b);

/* Adds v as a member, as a JSON text; takes v.  ST_NOMEM if v is NULL. */
MUST_USE enum status neff_package_add_json(struct arena *a, struct neff *x, const char *name, json_t *v,
                                           struct error *err);

#endif
