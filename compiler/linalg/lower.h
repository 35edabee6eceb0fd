/* lower: lowers HLO to linalg on tensors, with one lowering per HLO opcode.
 *
 * The module gets one public func.func with the kernel's name.  Its arguments and results are ranked tensors, never
 * tuples.  Every operation has the location ir_loc_tagged(id of the HLO instruction, its places).  Knobs become
 * operations of the nkipy dialect directly after the operation that computes the value.  A reshape, convert or copy
 * that tracing adds between that operation and the knob is skipped:
 *
 *   "nkipy.tile_op"(%v) {loop_tile_size = array<i64: …>}   has one entry per linalg iterator of the operation, in order
 *   "nkipy.layout"(%v) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: …>}   states the user's
 *                                layout for the shape of the operation's result (a keepdims reshape may come between)
 *   "nkipy.fuse_op"(%v, %w)      asks to merge the loops that compute %v and %w
 *
 * An aliased input has the argument attribute nkipy.alias = <output index> : i64.  Unsigned integers become signless;
 * the operations (divui, cmpi ult, …) determine if an integer is read as unsigned.
 */
#ifndef LINALG_LOWER_H
#define LINALG_LOWER_H

#include "base/diag.h"
#include "hlo/hlo.h"
#include "ir/ir.h"

/* Lowers m, which must verify.  The caller destroys *out.  If m is refused, returns ST_INPUT and leaves *out unchanged;
 * the diagnostic is DG_LOWERING_UNSUPPORTED (with the instruction, its range and the reason) or DG_BAD_KNOB. */
MUST_USE enum status linalg_from_hlo(struct ir *ir, const struct hlo_module *m, struct diags *ds, MlirModule *out);
/* Does the same without knobs.  It is for a caller that needs only the values that m computes, before the knobs have
 * been checked. */
MUST_USE enum status linalg_from_hlo_plain(struct ir *ir, const struct hlo_module *m, struct diags *ds,
                                           MlirModule *out);

#endif
