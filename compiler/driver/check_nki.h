/* check_nki: the instructions of a program of NKI, for the check of its stage. */
#ifndef DRIVER_CHECK_NKI_H
#define DRIVER_CHECK_NKI_H

#include "ir/ir.h"
#include "nki/nki.h"

/* Calls of a program without loops that are made instructions for the check: each costs a kilobyte or two. */
enum { CHECK_NKI_CALLS_MAX = 20000 };

/* Makes a NISA module of what nki-canonicalize or nki-reroll shows: of a program without loops every call is an instruction of its
 * own.  The caller destroys *out.  ST_INPUT or ST_LIMIT with a diagnostic if there is none. */
MUST_USE enum status check_nki_module(struct ir *ir, const struct nki_program *p, struct diags *ds, MlirModule *out);

#endif
