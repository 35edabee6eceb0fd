/* lower: HLO → linalg on tensors, one lowering per HLO opcode.
 *
 * The module gets one public func.func named like the kernel, ranked tensors in and out, no tuple.  Every operation
 * carries ir_loc_tagged(id of the HLO instruction, its places).  Knobs become operations of the nkipy dialect right
 * behind the operation that does the work (looking through the reshape, convert and copy that tracing puts behind it):
 *
 *   "nkipy.tile_op"(%v) {loop_tile_size = array<i64: …>}   one entry per linalg iterator of that operation, in its order
 *   "nkipy.layout"(%v) {mem_space = 3 : i32, partition_dim = 0 : i32, tile_size = array<i64: …>}   what was given, for
 *                                the shape of that operation's result (a keepdims reshape may lie in between)
 *   "nkipy.fuse_op"(%v, %w)      the loops that make them are to be merged
 *
 * An aliased input carries the argument attribute nkipy.alias = <output index> : i64.  Unsigned integers are
 * signless here; the operations chosen (divui, cmpi ult, …) know.
 */
#ifndef LINALG_LOWER_H
#define LINALG_LOWER_H

#include "base/diag.h"
#include "hlo/hlo.h"
#include "ir/ir.h"

/* m must verify.  ST_INPUT with DG_LOWERING_UNSUPPORTED (naming the instruction, its range and the reason) or
 * DG_BAD_KNOB when refused; *out is then untouched.  The caller destroys *out. */
MUST_USE enum status linalg_from_hlo(struct ir *ir, const struct hlo_module *m, struct diags *ds, MlirModule *out);
/* The same without the knobs: for whoever wants only what m computes, before it is known whether they fit. */
MUST_USE enum status linalg_from_hlo_plain(struct ir *ir, const struct hlo_module *m, struct diags *ds,
                                           MlirModule *out);

#endif
