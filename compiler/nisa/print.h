/* print: the readable form of a module with NISA operations.
 *
 * func, scf, arith and all other operations look as MLIR prints them, without aliases.  A NISA operation is one line:
 *
 *     %sbuf = nisa.alloc alignment=64 : memref<128x128xf32, #nisa.mem<sbuf>>
 *     nisa.dma_copy(dst<128| 128>=memref<…> %sbuf[d0, d1], src<128| 128>=memref<…> %arg0[%0 + d0, %i*128 + d1 + 64])
 *       engine=dma
 *     nisa.activation(dst<…>=…, src<…>=…, bias=f32 %cst, scale=f32 %cst_0, op=exp) engine=scalar
 *     nisa.release %sbuf : memref<…>
 *     %sbuf = nisa.alloc alignment=64 at=[0, 4096] copies=2 stride=2048 : memref<…>
 *
 * and in engine programs (streams.h)
 *
 *     nisa.program vector {   …   }
 *     nisa.queue qSyncIn on sync {   …   }
 *     nisa.wait qSyncIn >= %i*2 + 1
 *     nisa.dma_trigger qSyncIn
 *     nisa.barrier
 *     %sbuf_1 = nisa.rotate %sbuf[%i] : memref<…>
 *     nisa.memset(…) engine=vector signal
 *
 * (Each is one line in the text.)  An operand that is data is  name<partition dimensions| free dimensions>=TYPE
 * %base[…], with one index for each dimension of the base: a sum of SSA values, tile coordinates d0, d1, … and a
 * constant.  An access map that is not such a sum, or has its symbols in another order, is written as a map:  %base
 * affine_map<…>[%i, %j].  Scalars are  name=TYPE %value.  Attributes follow the operands: 1 is an i64, a word is a
 * string, [1, 0] an array<i64>, a name alone a unit attribute; all others are as in MLIR.  The place of an allocation is
 * at=[partition, offset] in SBUF, at=[bank, offset] in PSUM, at=[offset] in HBM.  An operation that this form
 * cannot express stays in MLIR's generic form, so the text is always complete; nisa/parse.h reads it.
 *
 * Allocations are called %sbuf, %psum, %hbm; induction variables %i, %j, … by depth; all other values as MLIR calls
 * them.
 */
#ifndef NISA_PRINT_H
#define NISA_PRINT_H

#include <stdint.h>

#include "base/buf.h"
#include "ir/query.h"

/* The first line of a file in the readable form.  nisa_print does not write it. */
#define NISA_TEXT_MARKER "// nisa text 1"

/* Appends the readable form of a builtin.module to text.  (*lines)[k] is the line, from 1, of the k-th operation in
 * pre-order, 0 if it is not shown; ir_snapshot_with takes this function.  Constants with more elements than elide_above
 * are shortened (0: never).  ST_LIMIT when text is full.  Does not change the module. */
MUST_USE enum status nisa_print(struct ir *ir, MlirOperation module, int64_t elide_above, struct buf *text,
                                struct arena *a, const int **lines, struct error *err);

#endif
