/* streams: engine programs, the form of NISA in which every engine and every DMA queue has a program of its own.
 *
 * A function in this form has the same arguments and results as before.  Its entry block has all allocations, then
 * views and scalars, then one region per stream, then func.return.  In a function for two cores (cores.h) the region of
 * each core has this form, and ends in its scf.yield.  The region of a stream is an scf.execute_region:
 *
 *     nisa.program vector {                      nisa.stream = "vector"
 *       scf.for %i = %c0 to %c2 step %c1 {
 *         nisa.wait qSyncIn >= %i*2 + 1          "nisa.wait"(%i) {semaphore = "qSyncIn", count = affine_map<()[s0] -> …>}
 *         %sbuf_1 = nisa.rotate %sbuf[%i] : memref<…>
 *         nisa.reciprocal(dst<…>=… %sbuf_2[…], src<…>=… %sbuf_1[…]) engine=vector signal
 *       }
 *     }
 *     nisa.program sync {
 *       scf.for %i = %c0 to %c2 step %c1 {
 *         nisa.wait vector >= %i - 1
 *         nisa.dma_trigger qSyncIn
 *       }
 *     }
 *     nisa.queue qSyncIn on sync {               nisa.stream = "qSyncIn", nisa.on = "sync"
 *       scf.for %i = %c0 to %c2 step %c1 {
 *         %sbuf_1 = nisa.rotate %sbuf[%i] : memref<…>
 *         nisa.dma_copy(…) engine=dma signal
 *       }
 *     }
 *
 * Streams.  All streams run at the same time, and each has registers of its own.  The engines are called tensor, vector,
 * scalar, gpsimd and sync; a queue has any other name, and the engine whose program starts its transfers (nisa.on).
 * An engine executes its program in order: what comes later starts when what came before is complete, except that a
 * dma_trigger is complete at once.  The instructions of a queue are its transfers.  Transfer n of a queue starts after
 * the n-th dma_trigger of the queue and after the queue's control has reached it.  Control goes on without waiting for
 * the transfer.  Transfers of one queue start in order, but they overlap in time: only a semaphore tells that one is
 * complete.
 *
 * Semaphores.  Each stream has one, of its name, which is 0 at the start.  An instruction with the unit attribute
 * `signal` adds 1 to the semaphore of its stream when it is complete.  The transfers of a queue signal in order: the
 * count n says that the first n transfers that signal are complete, and all before the last of them.  wait: the stream
 * goes on when the semaphore is at least `count`, a sum of multiples of index values and a constant.  An engine waits
 * before an instruction or a trigger, a queue before a register_load.
 *
 * Barriers.  All streams, queues too, wait until each is at its barrier and all transfers are complete; then all
 * semaphores become 0, and all go on.  All streams have the same barriers, in loops and branches of the same form.
 * Loops and branches that depend on data have a barrier at the start of each round, or before a branch, and one after
 * the end.
 *
 * register_load.  Each stream loads the registers that its control needs.  In a queue's program the engine is the one
 * that starts its transfers.
 *
 * rotate.  An allocation from a loop has copies = K places; the n-th execution of the loop's body, counted from 0 through the loops
 * around it as far as the last barrier, uses copy n mod K.  In the program
 * of the tensor engine the execution of a rotate in PSUM also begins an accumulation group: the first matmul that writes
 * an element of the copy overwrites it.  So an allocation in PSUM from a loop is reached through rotate even if K is 1.
 */
#ifndef NISA_STREAMS_H
#define NISA_STREAMS_H

#include "nisa/nisa.h"

enum nisa_sync {
  NISA_SYNC_NONE,
  NISA_SYNC_WAIT,
  NISA_SYNC_TRIGGER,
  NISA_SYNC_BARRIER,
  NISA_SYNC_CORE_BARRIER, /* cores.h; it also stands in a program that is one sequence */
  NISA_SYNC_ROTATE
};

/* The operation's kind; NISA_SYNC_NONE for all others. */
enum nisa_sync nisa_sync_of(MlirOperation op);
const char *nisa_sync_name(enum nisa_sync k); /* "nisa.wait" */

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* The region of a stream: an scf.execute_region with nisa.stream. */
bool nisa_is_stream(MlirOperation op);
const char *nisa_stream_name(MlirOperation stream); /* "vector"; owned by the context */
/* The engine that executes the program; of a queue, the one that starts its transfers.  NISA_ENGINE_NONE if there is no
 * such engine. */
enum nisa_engine nisa_stream_engine(MlirOperation stream);
bool nisa_stream_is_queue(MlirOperation stream);
/* The stream that op belongs to, or is; null outside. */
MlirOperation nisa_stream_around(MlirOperation op);
/* The function, or the region of a core, has engine programs: the function itself, or one of its cores.  Looks at all
 * operations of its body. */
bool nisa_has_streams(MlirOperation function);

/* Reads what a wait counts to: an access without base and tile, whose map has one result.  False, with a reason, when
 * the attributes do not fit together. */
bool nisa_read_wait(MlirOperation wait, struct nisa_access *count, const char **why);
/* The allocation that a rotate selects a copy of; v itself for all other values. */
MlirValue nisa_rotated(MlirValue v);
/* The instruction raises its stream's semaphore. */
bool nisa_signals(MlirOperation op);

/* ---- making ----------------------------------------------------------------------------------------------------- */

/* Operations that are in no block yet.  The region of a stream has a block that ends in an scf.yield; `on` is NULL for
 * the program of an engine. */
MlirOperation nisa_create_stream(MlirLocation loc, const char *name, const char *on);
/* count has no dimensions, n symbols, and one result. */
MlirOperation nisa_create_wait(MlirLocation loc, const char *semaphore, MlirAffineMap count, intptr_t n,
                               MlirValue const *indices);
MlirOperation nisa_create_trigger(MlirLocation loc, const char *queue);
MlirOperation nisa_create_barrier(MlirLocation loc);
MlirOperation nisa_create_core_barrier(MlirLocation loc);
MlirOperation nisa_create_rotate(MlirLocation loc, MlirValue alloc, MlirValue index);
void nisa_set_signal(MlirOperation instr);

#endif
