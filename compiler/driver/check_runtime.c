/* check_runtime: the functions that are called by code compiled for a check.
 *
 * The engine gets their addresses, so that nothing is loaded from disk: the sandbox has no file system.
 *
 * All allocations are in a list, so that everything can be freed after a run, whichever buffers the program
 * returned.  Allocated memory is zeroed, because the passes drop a matmul's zero fill: the hardware starts
 * accumulation groups from zero, and a check must do the same.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "driver/check_internal.h"
#include "hlo/literal.h"
#include "interp/interp.h"

/* ---- memory ------------------------------------------------------------------------------------------------------ */

enum { ALIGNMENT = 64 };

struct check_block {
  struct check_block *prev, *next;
};
static_assert(sizeof(struct check_block) <= ALIGNMENT, "the header fits before the aligned data");

/* The heap of the program that this thread runs.  It is a variable because compiled code passes only sizes. */
static _Thread_local struct check_heap *current;

static struct check_block *zeroed_block(uint64_t size) {
  uint64_t total;
  void *p = NULL;

  if (!__builtin_add_overflow(size, (uint64_t)(2 * ALIGNMENT - 1), &total)) {
    total &= ~(uint64_t)(ALIGNMENT - 1);
    p = aligned_alloc(ALIGNMENT, total);
  }
  return p ? memset(p, 0, total) : NULL;
}

static void *heap_alloc(uint64_t size) {
  struct check_block *b = zeroed_block(size);
  assert(current);

  if (b) {
    b->next = current->blocks;
    if (b->next)
      b->next->prev = b;
    current->blocks = b;
    return (char *)b + ALIGNMENT;
  }
  arena_oom(size);
}

static void heap_free(void *p) {
  if (!p)
    return;
  struct check_block *b = (struct check_block *)((char *)p - ALIGNMENT);
  if (b->next)
    b->next->prev = b->prev;
  if (b->prev)
    b->prev->next = b->next;
  else
    current->blocks = b->next;
  free(b);
}

void check_heap_begin(struct check_heap *h) {
  assert(!current);
  h->blocks = NULL;
  current = h;
}

void check_heap_end(struct check_heap *h) {
  assert(current == h);
  while (h->blocks) {
    struct check_block *b = h->blocks;
    h->blocks = b->next;
    free(b);
  }
  current = NULL;
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* MLIR's ABI: a ranked memref of rank r is {allocated, aligned, offset, sizes[r], strides[r]}. */
struct descriptor {
  char *allocated, *aligned;
  int64_t offset, dims[];
};
struct unranked {
  int64_t rank;
  struct descriptor *memref;
};

/* Called for memref.copy between buffers that are not both contiguous. */
static void memref_copy(int64_t size, const struct unranked *from, const struct unranked *to) {
  const struct descriptor *a = from->memref, *b = to->memref;
  const int64_t rank = from->rank;

  interp_copy((size_t)size, rank, a->dims, b->aligned + b->offset * size, b->dims + rank, a->aligned + a->offset * size,
              a->dims + rank);
}

/* ---- narrow floats ----------------------------------------------------------------------------------------------- */

static float widen_f8e4m3(uint8_t x) {
  return (float)hlo_literal_decode_float(DT_F8E4M3, x);
}
static float widen_f8e4m3fn(uint8_t x) {
  return (float)hlo_literal_decode_float(DT_F8E4M3FN, x);
}
static float widen_f8e5m2(uint8_t x) {
  return (float)hlo_literal_decode_float(DT_F8E5M2, x);
}
static uint8_t narrow_f8e4m3(float x) {
  return (uint8_t)hlo_literal_encode_float(DT_F8E4M3, (double)x);
}
static uint8_t narrow_f8e4m3fn(float x) {
  return (uint8_t)hlo_literal_encode_float(DT_F8E4M3FN, (double)x);
}
static uint8_t narrow_f8e5m2(float x) {
  return (uint8_t)hlo_literal_encode_float(DT_F8E5M2, (double)x);
}

const char *check_widen_name(MlirType t) {
  return mlirTypeIsAFloat8E4M3(t)     ? "nkx_widen_f8e4m3"
         : mlirTypeIsAFloat8E4M3FN(t) ? "nkx_widen_f8e4m3fn"
         : mlirTypeIsAFloat8E5M2(t)   ? "nkx_widen_f8e5m2"
                                      : NULL;
}

const char *check_narrow_name(MlirType t) {
  return mlirTypeIsAFloat8E4M3(t)     ? "nkx_narrow_f8e4m3"
         : mlirTypeIsAFloat8E4M3FN(t) ? "nkx_narrow_f8e4m3fn"
         : mlirTypeIsAFloat8E5M2(t)   ? "nkx_narrow_f8e5m2"
                                      : NULL;
}

/* On machines without F16C, LLVM calls these for half precision; libgcc has them but does not export them. */
extern float __extendhfsf2(_Float16);
extern _Float16 __truncsfhf2(float);
extern _Float16 __truncdfhf2(double);

void check_register_runtime(MlirExecutionEngine engine) {
  static const struct {
    const char *name;
    void (*fn)(void);
  } table[] = {
#define FN(name, fn) {name, (void (*)(void))fn}
      FN("_mlir_memref_to_llvm_alloc", heap_alloc),
      FN("_mlir_memref_to_llvm_free", heap_free),
      FN("memrefCopy", memref_copy),
      FN("nkx_widen_f8e4m3", widen_f8e4m3),
      FN("nkx_widen_f8e4m3fn", widen_f8e4m3fn),
      FN("nkx_widen_f8e5m2", widen_f8e5m2),
      FN("nkx_narrow_f8e4m3", narrow_f8e4m3),
      FN("nkx_narrow_f8e4m3fn", narrow_f8e4m3fn),
      FN("nkx_narrow_f8e5m2", narrow_f8e5m2),
      FN(CHECK_POWER, interp_power),
      FN("__extendhfsf2", __extendhfsf2),
      FN("__truncsfhf2", __truncsfhf2),
      FN("__truncdfhf2", __truncdfhf2),
#undef FN
  };
  for (size_t k = 0; k < sizeof table / sizeof table[0]; k++)
    check_register(engine, table[k].name, table[k].fn);
}
