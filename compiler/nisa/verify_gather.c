/* verify_gather: what the hardware demands of shuffles, gathers and random numbers. */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "nisa/verify_ops.h"

enum { QUADRANT = 32, KEEPS = 255, CORE = 16, GENERATOR_WORDS = 6 };

static void check_equal_types(struct nisa_check *c, const struct nisa_instr *in) {
  if (!mlirTypeEqual(nisa_element(&in->operand[0]), nisa_element(nisa_operand(in, "src"))))
    nisa_complain(c, in->op, "dst and src must have the same type");
}

void nisa_check_shuffle(struct nisa_check *c, const struct nisa_instr *in) {
  MlirAttribute mask = ir_attr(in->op, "shuffle_mask");
  const int64_t partitions = nisa_partitions(&in->operand[1]);
  nisa_check_same(c, in, "src");
  check_equal_types(c, in);
  if (mlirAttributeIsNull(mask) || !mlirAttributeIsADenseI64Array(mask) ||
      mlirDenseArrayGetNumElements(mask) != QUADRANT) {
    nisa_complain(c, in->op, "shuffle_mask must have %d entries", QUADRANT);
    return;
  }
  for (int64_t p = 0; p < partitions; p++) {
    const int64_t from = mlirDenseI64ArrayGetElement(mask, p % QUADRANT);
    if (from != KEEPS && (from < 0 || from >= QUADRANT || p - p % QUADRANT + from >= partitions)) {
      nisa_complain(c, in->op, "shuffle_mask has %lld for partition %lld, which src does not have", (long long)from,
                    (long long)p);
      return;
    }
  }
}

void nisa_check_transpose(struct nisa_check *c, const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *src = &in->operand[1];
  const int64_t rows = nisa_partitions(src), columns = nisa_free_elements(src);
  check_equal_types(c, in);
  if (nisa_partitions(dst) != columns || nisa_free_elements(dst) != rows)
    nisa_complain(c, in->op, "dst is not as large as the transpose of src");
  if (rows > QUADRANT || columns > QUADRANT)
    nisa_complain(c, in->op, "Vector transposes at most %d by %d elements", QUADRANT, QUADRANT);
}

static void check_gather_index(struct nisa_check *c, const struct nisa_instr *in, int64_t bytes) {
  const struct nisa_access *x = nisa_operand(in, "src_index");
  if (!mlirTypeIsAInteger(nisa_element(x)) || nisa_element_bytes(nisa_element(x)) != bytes)
    nisa_complain(c, in->op, "src_index must be an integer of %lld bits", (long long)(8 * bytes));
}

void nisa_check_gather(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_same(c, in, "src_index");
  nisa_check_elements(c, in, "src", 1, INT64_MAX);
  check_equal_types(c, in);
  check_gather_index(c, in, 4);
}

void nisa_check_local_gather(struct nisa_check *c, const struct nisa_instr *in) {
  const int64_t run = ir_int_attr(in->op, "elements_per_index", 0), n = ir_int_attr(in->op, "n_indices", 0);
  const int64_t partitions = nisa_partitions(&in->operand[0]);
  check_equal_types(c, in);
  check_gather_index(c, in, 2);
  nisa_check_elements(c, in, "src_index", 1, INT64_MAX);
  nisa_check_elements(c, in, "src", 1, INT64_MAX);
  if (partitions % CORE)
    nisa_complain(c, in->op, "its partitions must be groups of %d", CORE);
  if (run < 1 || run > 32 || run & (run - 1))
    nisa_complain(c, in->op, "elements_per_index must be 1, 2, 4, 8, 16 or 32");
  else if (n < 1 || n > 4096 || n > CORE * nisa_free_elements(&in->operand[2]) ||
           nisa_free_elements(&in->operand[0]) != n * run || nisa_free_elements(&in->operand[1]) % run)
    nisa_complain(c, in->op, "n_indices and elements_per_index do not fit the operands");
}

void nisa_check_bounds(struct nisa_check *c, const struct nisa_instr *in) {
  const int64_t n = nisa_free_elements(&in->operand[1]);
  if (nisa_partitions(&in->operand[0]) != 1 || nisa_partitions(&in->operand[1]) != 1)
    nisa_complain(c, in->op, "dst and src must be one partition");
  nisa_check_elements(c, in, "dst", 2 * n, 2 * n);
}

void nisa_check_nonzero(struct nisa_check *c, const struct nisa_instr *in) {
  const int64_t n = nisa_free_elements(&in->operand[1]) + 1;
  if (c->target == TARGET_TRN1)
    nisa_complain(c, in->op, "trn1 does not have it");
  nisa_check_elements(c, in, "dst", n, n);
  if (nisa_partitions(&in->operand[0]) != nisa_partitions(&in->operand[1]))
    nisa_complain(c, in->op, "dst and src must have as many partitions");
  if (!mlirTypeIsAInteger(nisa_element(&in->operand[0])))
    nisa_complain(c, in->op, "dst must be an integer");
}

void nisa_check_topk(struct nisa_check *c, const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *index = &in->operand[1], *src = &in->operand[2];
  const int64_t n = ir_int_attr(in->op, "n_elements", 0), k = CORE * nisa_free_elements(dst);
  if (nisa_partitions(src) % CORE || nisa_partitions(dst) != nisa_partitions(src))
    nisa_complain(c, in->op, "dst and src must have the same groups of 16 partitions");
  nisa_check_same(c, in, "dst_index");
  if (n < 8 || n > 65535 || n > CORE * nisa_free_elements(src) || k > n)
    nisa_complain(c, in->op,
                  "%lld of %lld elements are wanted, and a group of src has room for %lld; 8 to 65535 can be",
                  (long long)k, (long long)n, (long long)(CORE * nisa_free_elements(src)));
  if (!mlirTypeIsABF16(nisa_element(src)) || !mlirTypeIsABF16(nisa_element(dst)))
    nisa_complain(c, in->op, "dst and src must be bf16");
  if (!mlirTypeIsAInteger(nisa_element(index)) || nisa_element_bytes(nisa_element(index)) < 2)
    nisa_complain(c, in->op, "dst_index must have integers of 16 or 32 bits");
}

void nisa_check_random(struct nisa_check *c, const struct nisa_instr *in) {
  const bool has_low = nisa_operand(in, "low"), has_high = nisa_operand(in, "high");
  if (has_low != has_high)
    nisa_complain(c, in->op, "low and high go together");
  nisa_check_column(c, in, "low");
  nisa_check_column(c, in, "high");
  if (c->target == TARGET_TRN1 && in->engine == NISA_ENGINE_GPSIMD)
    nisa_complain(c, in->op, "trn1 has random numbers on Vector only");
  if (has_low && c->target != TARGET_TRN3)
    nisa_complain(c, in->op, "random numbers between two bounds are of trn3");
}

static bool is_word(const struct nisa_access *x) {
  return mlirTypeIsAInteger(nisa_element(x)) && nisa_element_bytes(nisa_element(x)) == 4;
}

void nisa_check_seed(struct nisa_check *c, const struct nisa_instr *in) {
  const struct nisa_access *x = &in->operand[0];
  if (nisa_partitions(x) != 1 || nisa_free_elements(x) != 1 || nisa_element_bytes(nisa_element(x)) != 4)
    nisa_complain(c, in->op, "a seed is one element of 32 bits");
}

void nisa_check_state(struct nisa_check *c, const struct nisa_instr *in) {
  const struct nisa_access *x = &in->operand[0];
  const bool gpsimd = in->engine == NISA_ENGINE_GPSIMD;
  if (c->target == TARGET_TRN1 || (c->target == TARGET_TRN2 && !gpsimd))
    nisa_complain(c, in->op, "the state of generators is accessible on GpSimd from trn2 on, on Vector from trn3 on");
  if (!is_word(x) || nisa_free_elements(x) != (gpsimd ? 1 : 4) * GENERATOR_WORDS)
    nisa_complain(c, in->op, "the state of a lane is %d words of 32 bits", (gpsimd ? 1 : 4) * GENERATOR_WORDS);
}
