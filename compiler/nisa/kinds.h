/* kinds: the operations, engines and limits of NISA as C numbers, without MLIR.  nisa.h says what the operations mean. */
#ifndef NISA_KINDS_H
#define NISA_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/target.h"

enum nisa_engine {
  NISA_ENGINE_NONE,
  NISA_ENGINE_TENSOR,
  NISA_ENGINE_VECTOR,
  NISA_ENGINE_SCALAR,
  NISA_ENGINE_GPSIMD,
  NISA_ENGINE_DMA,
  NISA_ENGINE_SYNC,
  NISA_ENGINE_COUNT
};

/* Memories that an instruction can use: MEM_HBM … MEM_SHARED_HBM. */
enum { NISA_SPACES = MEM_SHARED_HBM + 1 };

const char *nisa_space_name(enum mem_space s);    /* "sbuf" */
const char *nisa_engine_name(enum nisa_engine e); /* "vector" */

enum nisa_kind {
#define NISA_OP(e, name, engines, operands) e,
#include "nisa/ops.def"
#undef NISA_OP
  NISA_KIND_COUNT
};

enum { NISA_OPERANDS_MAX = 6, NISA_TILE_MAX = 10, NISA_RANK_MAX = 12 };
/* The same on all targets: the partitions of SBUF and PSUM; the elements of f32 in each partition of a PSUM bank. */
enum { NISA_PARTITIONS = 128, NISA_BANK_F32 = 512 };

struct nisa_operand_def {
  const char *name; /* NULL after the last operand */
  size_t name_len;
  bool reads, writes;
  bool may_be_access, may_be_scalar, is_optional;
};

struct nisa_op_def {
  enum nisa_kind kind;
  const char *name;      /* "dma_copy" */
  const char *full_name; /* "nisa.dma_copy" */
  unsigned engines;      /* bit 1 << nisa_engine each */
  enum nisa_engine usual_engine;
  int n_operands;
  struct nisa_operand_def operand[NISA_OPERANDS_MAX];
};

const struct nisa_op_def *nisa_op_def(enum nisa_kind k);
/* The operation whose full name is the len bytes at name; NULL if it is none of ours. */
const struct nisa_op_def *nisa_op_named(const char *name, size_t len);
/* The operand of which a dimension's index comes from another operand, which is the last one; -1 if there is none. */
static inline int nisa_indirect_operand(enum nisa_kind k) {
  return k == NISA_DMA_COPY_INDIRECT ? 1 : k == NISA_DMA_SCATTER ? 0 : -1;
}

struct nisa_machine {
  int64_t partitions;
  int64_t sbuf_bytes, psum_bytes; /* per partition */
  int64_t psum_bank_bytes;        /* per partition */
  int64_t matmul_k, matmul_m, matmul_n;
  bool matmul_one_bank; /* a result must not cross a bank */
  bool bf16_psum;       /* a matmul may write bf16 */
  int free_dims;
};
const struct nisa_machine *nisa_machine(enum target t);

/* The memories, as bits 1 << mem_space, that an engine reads or writes.  The tensor engine adds to PSUM, which counts as
 * writing only. */
unsigned nisa_reach(enum nisa_engine e, bool writes);

#endif
