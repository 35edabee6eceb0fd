/* lower: HLO → linalg on tensors, one lowering per HLO opcode.
 *
 * The module gets one public func.func with the kernel's name, ranked tensors in and out, no tuple.  Every operation
 * has the location ir_loc_tagged(id of the HLO instruction, its places).  Knobs become operations of the nkipy dialect
 * directly after the operation that computes the value; a reshape, convert or copy that tracing puts after it is looked
 * through:
 *
 *   "nkipy.tile_op"(%v) {loop_tile_size = array<i64: …>}   one entry per linalg iterator of that operation, in its order
 *   "nkipy.layout"(%v) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: …>}   what the user gave,
 *                                for the shape of that operation's result (a keepdims reshape may lie in between)
 *   "nkipy.fuse_op"(%v, %w)      merge the loops that compute %v and %w
 *
 * An aliased input has the argument attribute nkipy.alias = <output index> : i64.  Unsigned integers become signless;
 * the operations (divui, cmpi ult, …) say how to read them.
 */
#ifndef LINALG_LOWER_H
#define LINALG_LOWER_H

#include "base/diag.h"
#include "hlo/hlo.h"
#include "ir/ir.h"

/* m must verify.  ST_INPUT with DG_LOWERING_UNSUPPORTED (which names the instruction, its range and the reason) or
 * DG_BAD_KNOB when refused; *out is then unchanged.  The caller destroys *out. */
MUST_USE enum status linalg_from_hlo(struct ir *ir, const struct hlo_module *m, struct diags *ds, MlirModule *out);
/* The same without knobs: for a caller that only wants the values m computes, before its knobs have been checked. */
MUST_USE enum status linalg_from_hlo_plain(struct ir *ir, const struct hlo_module *m, struct diags *ds,
                                           MlirModule *out);

#endif
